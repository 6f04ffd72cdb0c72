package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sourcetest"
)

// A fake is a web site.
type fake struct {
	*httptest.Server

	mu       sync.Mutex
	pages    map[string]string // path → HTML, or "redirect:ADDRESS", "status:CODE" or "type:MEDIA:TEXT"
	requests map[string]int    // path → requests answered with content
	unread   map[string]int    // path → requests answered with 304
	throttle int
	after    time.Duration
}

func newFake(t *testing.T, pages map[string]string) *fake {
	t.Helper()
	f := &fake{pages: pages, requests: map[string]int{}, unread: map[string]int{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.throttle > 0 {
		f.throttle--
		w.Header().Set("Retry-After", strconv.Itoa(int(f.after.Seconds())))
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	text, ok := f.pages[r.URL.RequestURI()]
	if !ok {
		http.NotFound(w, r)
		return
	}
	text = strings.ReplaceAll(text, "{host}", f.URL)
	if target, ok := strings.CutPrefix(text, "redirect:"); ok {
		http.Redirect(w, r, target, http.StatusMovedPermanently)
		return
	}
	if code, ok := strings.CutPrefix(text, "status:"); ok {
		n, _ := strconv.Atoi(code)
		w.WriteHeader(n)
		return
	}
	if text, ok := strings.CutPrefix(text, "break:"); ok { // the connection ends in the middle
		w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
		io.WriteString(w, text)
		return
	}
	media := "text/html; charset=utf-8"
	if typed, ok := strings.CutPrefix(text, "type:"); ok {
		media, text, _ = strings.Cut(typed, ":")
	}
	etag := fmt.Sprintf(`"%x"`, len(text)*31+int(text[len(text)-1]))
	w.Header().Set("Content-Type", media)
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		f.unread[r.URL.Path]++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	f.requests[r.URL.Path]++
	fmt.Fprint(w, text)
}

func (f *fake) set(address, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages[address] = text
	if text == "" {
		delete(f.pages, address)
	}
}

func (f *fake) open(t *testing.T, clock *sourcetest.Clock, dir string, options map[string]string) source.Source {
	t.Helper()
	all, err := Kind().Complete(options)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Kind().Open(t.Context(), source.Config{
		Target: f.URL, Options: all, HTTP: f.Client(), Dir: dir, Now: clock.Now, Sleep: clock.Sleep,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sweep returns the paths of the pages, sorted, and the skips.
func (f *fake) sweep(t *testing.T, s source.Source) (paths []string, skips []*source.Skip) {
	t.Helper()
	for item, err := range s.Sweep(t.Context()) {
		if skip, ok := source.AsSkip(err); ok {
			skips = append(skips, skip)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, strings.TrimPrefix(item.URI, f.URL))
	}
	slices.Sort(paths)
	return paths, skips
}

func wantPaths(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const noIndex = `<meta name="robots" content="noindex">`

func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.World {
		f := newFake(t, map[string]string{"/": noIndex})
		names := map[string]bool{}
		index := func() {
			page := noIndex
			for _, name := range slices.Sorted(maps.Keys(names)) {
				page += fmt.Sprintf("<a href='/%s'>%s</a>", name, name)
			}
			f.set("/", page)
		}
		return sourcetest.World{
			Kind: Kind(), Config: source.Config{Target: f.URL, HTTP: f.Client(), Dir: t.TempDir()},
			Put: func(name, text string) {
				f.set("/"+name, "<p>"+text)
				names[name] = true
				index()
			},
			Delete: func(name string) {
				f.set("/"+name, "")
				delete(names, name)
				index()
			},
			URI: func(name string) string { return f.URL + "/" + name },
			Throttle: func(n int, after time.Duration) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.throttle, f.after = n, after
			},
		}
	})
}

func TestCrawl(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, `<urlset><url><loc>/zipped</loc></url></urlset>`)
	z.Close()
	f := newFake(t, map[string]string{
		"/robots.txt":     "type:text/plain:User-agent: *\nDisallow: /private\nCrawl-delay: 3\nSitemap: {host}/maps.xml",
		"/maps.xml":       `type:text/xml:<?xml version="1.0"?><sitemapindex><sitemap><loc>{host}/map.xml</loc></sitemap><sitemap><loc>https://elsewhere.example/map.xml</loc></sitemap></sitemapindex>`,
		"/map.xml":        `type:text/xml:<urlset><url><loc> {host}/mapped </loc><lastmod>2025</lastmod></url><url><loc>https://elsewhere.example/x</loc></url></urlset>`,
		"/sitemap.xml":    `type:text/xml:<urlset><url><loc>/late</loc></url></urlset>`,
		"/":               `<a href="a#top">a</a> <a href="/private/x">p</a> <a href="//elsewhere.example/">e</a> <a href="mailto:x@example.com">m</a> <a href="/q?x=1">q</a> <a href="/style.css">c</a>`,
		"/a":              `<base href="/sub/"><a href="b">b</a><a href="/hidden">h</a><a href="/dup">d</a><a href="/old">o</a><a rel="nofollow" href="/unfollowed">n</a>`,
		"/sub/b":          `<a href="/pdf">pdf</a><a href="/picture">picture</a><a href="/latin">latin</a>`,
		"/pdf":            "type:application/pdf:%PDF-",
		"/picture":        "type:image/png:x",
		"/latin":          "type:text/plain; charset=iso-8859-1:caf\xe9",
		"/hidden":         noIndex + `<a href="/under">u</a>`,
		"/under":          `<meta name=robots content="nofollow"><a href="/unfollowed">n</a>`,
		"/dup":            `<link rel="canonical" href="/original">`,
		"/original":       "original",
		"/old":            "redirect:/new",
		"/new":            "new",
		"/away":           "redirect:https://elsewhere.example/",
		"/mapped":         `<a href="/away">away</a><a href="/gone">gone</a>`,
		"/late":           "late",
		"/private/x":      "private",
		"/unfollowed":     "unfollowed",
		"/q?x=1":          "query",
		"/sub/zipped.xml": "type:text/plain:" + zipped.String(),
	})
	clock := sourcetest.NewClock()
	s := f.open(t, clock, "", nil)
	paths, skips := f.sweep(t, s)
	wantPaths(t, "Sweep", paths, "/", "/a", "/late", "/latin", "/mapped", "/new", "/original", "/pdf", "/sub/b", "/under")
	if len(skips) > 0 {
		t.Errorf("skipped %v", skips[0])
	}
	if clock.Slept() < 3*10*time.Second {
		t.Errorf("slept for %v, want three seconds between requests", clock.Slept())
	}
	content, err := s.Fetch(t.Context(), source.Item{URI: f.URL + "/latin", Ref: f.URL + "/latin"})
	if err != nil || string(content.Data) != "café" || content.Type != "text/plain" {
		t.Errorf("Fetch = %q, %q, %v", content.Data, content.Type, err)
	}
	paths, _ = f.sweep(t, f.open(t, clock, "", map[string]string{"queries": "true", "prefix": "/q"}))
	wantPaths(t, "Sweep of a prefix", paths, "/", "/q?x=1")
	paths, _ = f.sweep(t, f.open(t, clock, "", map[string]string{"depth": "1", "sitemaps": "false"}))
	wantPaths(t, "Sweep of depth 1", paths, "/", "/a")
	paths, _ = f.sweep(t, f.open(t, clock, "", map[string]string{"links": "false"}))
	wantPaths(t, "Sweep of sitemaps", paths, "/", "/late", "/mapped")
}

// TestConditional checks that a page that did not change is not sent again, and that its links are
// still followed.
func TestConditional(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"/": `<a href="/a">a</a>`, "/a": `<a href="/b">b</a>`, "/b": "b"})
	clock, dir := sourcetest.NewClock(), t.TempDir()
	f.sweep(t, f.open(t, clock, dir, nil))
	f.set("/b", "changed")
	paths, _ := f.sweep(t, f.open(t, clock, dir, nil))
	wantPaths(t, "Sweep", paths, "/", "/a", "/b")
	if f.requests["/a"] != 1 || f.unread["/a"] != 1 || f.requests["/b"] != 2 {
		t.Errorf("answered %v with content and %v without", f.requests, f.unread)
	}
}

// TestIncomplete checks that a site that could not be read completely says so, because nothing may be
// deleted then.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"/": `<a href="/a">a</a><a href="/b">b</a>`, "/a": `<a href="/c">c</a>`, "/b": "b", "/c": "c"})
	clock, dir := sourcetest.NewClock(), t.TempDir()
	folders := func(options map[string]string, dir string) (n int, paths []string) {
		t.Helper()
		paths, skips := f.sweep(t, f.open(t, clock, dir, options))
		for _, s := range skips {
			if s.Folder {
				n++
			}
		}
		return n, paths
	}
	for _, options := range []map[string]string{{"pages": "2"}, {"megabytes": "0"}, {"minutes": "0"}} {
		if n, _ := folders(options, ""); n != 1 {
			t.Errorf("%v: %d skips of the site, want one", options, n)
		}
	}
	f.set("/a", "status:500")
	if n, paths := folders(nil, ""); n != 1 || len(paths) != 2 {
		t.Errorf("a page that was never read: %d skips of parts, pages %v", n, paths)
	}
	f.set("/a", `<a href="/c">c</a>`)
	folders(nil, dir)
	f.set("/a", "status:500")
	n, paths := folders(nil, dir)
	if n != 0 {
		t.Errorf("a page whose links are remembered hides %d parts", n)
	}
	wantPaths(t, "Sweep with remembered links", paths, "/", "/b", "/c")
}

// TestSitemapIncomplete checks that a sitemap that could not be read completely is a part that was
// not seen.
func TestSitemapIncomplete(t *testing.T) {
	t.Parallel()
	const whole = `<urlset><url><loc>{host}/a</loc></url><url><loc>{host}/b</loc></url></urlset>`
	long := "<urlset>" + strings.Repeat("<url><loc>{host}/a</loc></url>", maxSitemapURLs+1) + "</urlset>"
	for name, test := range map[string]struct {
		pages map[string]string
		parts int
	}{
		"whole":         {map[string]string{"/sitemap.xml": whole}, 0},
		"gone":          {map[string]string{"/robots.txt": "type:text/plain:Sitemap: {host}/other.xml"}, 0},
		"refused":       {map[string]string{"/robots.txt": "type:text/plain:Sitemap: {host}/other.xml", "/other.xml": "status:403"}, 1},
		"guess refused": {map[string]string{"/sitemap.xml": "status:403"}, 0},
		"a page":        {map[string]string{"/sitemap.xml": "<html><p>not found<br></html>"}, 0},
		"cut off":       {map[string]string{"/sitemap.xml": whole[:60]}, 1},
		"broken":        {map[string]string{"/sitemap.xml": "<urlset><url><loc>{host}/a</loc></url><url %"}, 1},
		"connection":    {map[string]string{"/sitemap.xml": "break:" + whole[:60]}, 1},
		"compressed":    {map[string]string{"/robots.txt": "type:text/plain:Sitemap: {host}/other.gz", "/other.gz": "no gzip"}, 1},
		"text":          {map[string]string{"/robots.txt": "type:text/plain:Sitemap: {host}/other.txt", "/other.txt": "{host}/a\n{host}/b\n"}, 0},
		"too long":      {map[string]string{"/sitemap.xml": long}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			test.pages["/"], test.pages["/a"], test.pages["/b"] = "words", "a", "b"
			f := newFake(t, test.pages)
			_, skips := f.sweep(t, f.open(t, sourcetest.NewClock(), "", nil))
			parts := 0
			for _, s := range skips {
				if s.Folder {
					parts++
				}
			}
			if parts != test.parts {
				t.Errorf("%d skips of the site, want %d: %v", parts, test.parts, skips)
			}
		})
	}
}

// TestEndlessSitemaps checks the limits of sitemaps that list ever more sitemaps.
func TestEndlessSitemaps(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/sitemap") {
			w.Header().Set("Content-Type", "text/html")
			return
		}
		n := requests.Add(1)
		fmt.Fprint(w, "<sitemapindex>")
		for i := range 2 * maxSitemaps {
			fmt.Fprintf(w, "<sitemap><loc>http://%s/sitemap-%d-%d</loc></sitemap>", r.Host, n, i)
		}
		fmt.Fprint(w, "</sitemapindex>")
	}))
	t.Cleanup(server.Close)
	f := &fake{Server: server}
	_, skips := f.sweep(t, f.open(t, sourcetest.NewClock(), "", map[string]string{"megabytes": "1"}))
	if len(skips) != 1 || !skips[0].Folder || requests.Load() > 20 {
		t.Errorf("%d requests, skips %v; want few requests and a skip of the site", requests.Load(), skips)
	}
}

// TestManyPages checks that as many pages are read as the limit allows if a site has many more.
func TestManyPages(t *testing.T) {
	t.Parallel()
	var sitemap strings.Builder
	pages := map[string]string{"/": "words"}
	for i := range 200 {
		fmt.Fprintf(&sitemap, "<url><loc>{host}/%d</loc></url>", i)
		pages[fmt.Sprintf("/%d", i)] = "words"
	}
	pages["/sitemap.xml"] = "<urlset>" + sitemap.String() + "</urlset>"
	f := newFake(t, pages)
	paths, skips := f.sweep(t, f.open(t, sourcetest.NewClock(), "", map[string]string{"pages": "3"}))
	if len(paths) != 3 || len(skips) != 1 || !skips[0].Folder {
		t.Errorf("Sweep yielded %v and %v, want three pages and a skip of the site", paths, skips)
	}
}

// TestRedirectToExcluded checks that a redirect does not lead to a page that robots.txt excludes.
func TestRedirectToExcluded(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"/": `<a href="/go">go</a>`, "/go": "redirect:/secret/page", "/secret/page": `<a href="/b">b</a>`, "/b": "b",
		"/robots.txt": "type:text/plain:User-agent: *\nDisallow: /secret/",
	})
	paths, _ := f.sweep(t, f.open(t, sourcetest.NewClock(), "", nil))
	wantPaths(t, "Sweep", paths, "/")
	if n := f.requests["/secret/page"]; n != 0 {
		t.Errorf("%d requests for an excluded page", n)
	}
}

func TestRobots(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		robots string
		want   error
	}{
		"excluded":    {"type:text/plain:User-agent: assay\nDisallow: /", assay.ErrInvalid},
		"unavailable": {"status:503", assay.ErrUnavailable},
	} {
		f := newFake(t, map[string]string{"/": "words", "/robots.txt": test.robots})
		for _, err := range f.open(t, sourcetest.NewClock(), "", nil).Sweep(t.Context()) {
			if _, skipped := source.AsSkip(err); skipped || !errors.Is(err, test.want) {
				t.Errorf("%s: Sweep = %v, want %v", name, err, test.want)
			}
		}
	}
}

// TestGuard checks that without a client of its own the crawler does not reach this machine.
func TestGuard(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"/": "words"})
	for _, private := range []string{"false", "true"} {
		options, err := Kind().Complete(map[string]string{source.AllowPrivate: private})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Kind().Open(t.Context(), source.Config{Target: f.URL, Options: options, Sleep: sourcetest.NewClock().Sleep})
		if err != nil {
			t.Fatal(err)
		}
		failed, last := false, error(nil)
		for _, err := range s.Sweep(t.Context()) {
			failed, last = failed || err != nil, err
		}
		if failed != (private == "false") {
			t.Errorf("%s=%s: failed = %v: %v", source.AllowPrivate, private, failed, last)
		}
	}
}

func TestInvalidOptions(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"depth": "x", "pages": "-1", "links": "maybe", "delay": "soon"} {
		options, err := Kind().Complete(map[string]string{name: value})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Kind().Open(t.Context(), source.Config{Target: "https://example.com", Options: options}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s=%s: Open = %v", name, value, err)
		}
	}
}

func FuzzReadHTML(f *testing.F) {
	f.Add([]byte(`<base href="x"><a href="//y/z">`))
	f.Fuzz(func(t *testing.T, data []byte) {
		u, _ := resolve(mustParse("https://example.com/"), "/a")
		p := page{url: u, data: data}
		readHTML(&p)
		for _, link := range p.Links {
			if !strings.HasPrefix(link, "http") {
				t.Errorf("link %q", link)
			}
		}
	})
}

func mustParse(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return u
}

func FuzzReadSitemap(f *testing.F) {
	f.Add([]byte(`<urlset><url><loc>x</loc></url></urlset>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = readSitemap(bytes.NewReader(data))
	})
}
