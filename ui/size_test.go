package ui

import (
	"io"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxFirstPage is the most bytes of the first page with everything that it loads.
const maxFirstPage = 60_000

// TestSize checks what a browser loads for the first page: HTML, style sheet, modules and icon, compressed
// as they are sent.
func TestSize(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	sizes := map[string]int{"/": len(x.packed(t, "/"))}
	queue := []string{}
	for n := range elements(t, x.page("ann", "/")) {
		for _, name := range []string{"src", "href"} {
			if at := attribute(n, name); strings.HasPrefix(at, assetsPath) {
				queue = append(queue, at)
			}
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if _, known := sizes[at]; known {
			continue
		}
		sizes[at] = len(x.packed(t, at))
		if strings.HasSuffix(at, ".js") {
			queue = append(queue, imports(x.get("ann", at).body, at)...)
		}
	}
	all := 0
	for _, at := range slices.Sorted(maps.Keys(sizes)) {
		t.Logf("%6d bytes %s", sizes[at], at)
		all += sizes[at]
	}
	t.Logf("%6d bytes for the first page", all)
	if all > maxFirstPage {
		t.Errorf("the first page has %d bytes, more than %d", all, maxFirstPage)
	}
}

var imported = regexp.MustCompile(`(?:from|import)\s*\(?"(\.[^"]+)"`)

// imports returns the modules that a module imports.
func imports(text, at string) []string {
	var found []string
	for _, m := range imported.FindAllStringSubmatch(text, -1) {
		found = append(found, path.Join(path.Dir(at), m[1]))
	}
	return found
}

// packed returns the body of a response as a browser receives it.
func (x *site) packed(t *testing.T, at string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.url+at, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	r.Header.Set("Accept", "text/html, */*;q=0.8")
	res, err := x.client("ann").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: status %d, %v", at, res.StatusCode, err)
	}
	return data
}
