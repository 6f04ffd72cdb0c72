package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/server"
)

// folderSite is a site in which administrators may add the folder that it returns, which has n documents.
func folderSite(t *testing.T, n int) (*site, string) {
	t.Helper()
	folder := t.TempDir()
	for i := range n {
		writeFile(t, filepath.Join(folder, fmt.Sprintf("note-%02d.md", i)), fmt.Sprintf("# Note %d\n\nText of the note %d.\n", i, i))
	}
	return newSite(t, func(c *engine.HostConfig, _ *server.Config) {
		c.Folders = append(c.Folders, folder)
		c.AllowSource = engine.SourcesOf([]string{"folder", "git"}, []string{"env:GIT_TOKEN"}, []string{folder})
	}), folder
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	x, folder := folderSite(t, 3)
	contains(t, x.page("ann", "/sources"), "No source is connected.", "An administrator can connect one")
	contains(t, x.page("root", "/source-kinds"), "/source-kinds/folder", "/source-kinds/s3")
	contains(t, x.page("root", "/source-kinds/git"), "env:GIT_TOKEN", `name="option.branch"`)
	added := x.post("root", "/source-kinds/folder", url.Values{"name": {"notes"}, "target": {folder}, "collection": {"team"}, "option.hidden": {"false"}})
	if added.StatusCode != http.StatusSeeOther || added.Header.Get("Location") != "/sources/notes" {
		t.Fatalf("add: status %d: %s", added.StatusCode, added.body)
	}
	contains(t, x.page("root", "/sources/notes"), "not synced yet", folder, "Remove this source")
	if r := x.post("ann", "/sources/notes/sync", nil); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("sync: status %d: %s", r.StatusCode, r.body)
	}
	body := x.page("ann", "/sources/notes")
	contains(t, body, ">synced<", "3 added", "Documents now")
	lacks(t, body, "Remove this source")
	contains(t, x.page("ann", "/documents?collection=team"), "Note 2")
	contains(t, x.page("zed", "/sources"), "No source is connected.")
	for user, want := range map[string]int{"zed": http.StatusNotFound, "rob": http.StatusForbidden} {
		if r := x.get(user, "/sources/notes"); r.StatusCode != want {
			t.Errorf("the source as %s: status %d, want %d", user, r.StatusCode, want)
		}
		if r := x.post(user, "/sources/notes/sync", nil); r.StatusCode != want {
			t.Errorf("sync as %s: status %d, want %d", user, r.StatusCode, want)
		}
	}
	if r := x.post("ann", "/sources/notes/remove", url.Values{"documents": {"remove"}, "confirm": {"1"}}); r.StatusCode != http.StatusForbidden {
		t.Errorf("an editor removes a source: status %d", r.StatusCode)
	}
	if r := x.post("root", "/sources/notes/remove", url.Values{"documents": {"remove"}}); r.StatusCode != http.StatusBadRequest {
		t.Errorf("remove without a confirmation: status %d", r.StatusCode)
	}
	if r := x.post("root", "/sources/notes/remove", url.Values{"documents": {"remove"}, "confirm": {"1"}}); r.StatusCode != http.StatusSeeOther {
		t.Errorf("remove: status %d: %s", r.StatusCode, r.body)
	}
	contains(t, x.page("root", "/sources"), "is removed with 3 documents", "No source is connected.")
}

// TestHeldDeletions checks that a sync which misses many documents deletes none, says so, and deletes
// them after a confirmation.
func TestHeldDeletions(t *testing.T) {
	t.Parallel()
	const all, gone = 20, 12
	x, folder := folderSite(t, all)
	if err := x.session("root").AddSource(t.Context(), engine.NewSource{Name: "notes", Kind: "folder", Target: folder, Collection: "team"}); err != nil {
		t.Fatal(err)
	}
	x.post("ann", "/sources/notes/sync", nil)
	for i := range gone {
		if err := os.Remove(filepath.Join(folder, fmt.Sprintf("note-%02d.md", i))); err != nil {
			t.Fatal(err)
		}
	}
	held := x.post("ann", "/sources/notes/sync", nil)
	contains(t, held.body, "deletions held", "did not find 12 of 20 documents (60 %)", "Sync and delete them", `role="alert"`)
	contains(t, x.page("ann", "/documents?collection=team"), "note-00.md")
	contains(t, x.page("ann", "/sources"), "deletions held")
	if r := x.post("ann", "/sources/notes/sync", url.Values{"yes": {"1"}}); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("confirmed: status %d: %s", r.StatusCode, r.body)
	}
	contains(t, x.page("ann", "/sources/notes"), "12 removed", ">synced<")
	lacks(t, x.page("ann", "/documents?collection=team"), "note-00.md")
}

// TestAddSource checks that a form with an error keeps what was typed, and never a secret.
func TestAddSource(t *testing.T) {
	t.Parallel()
	x, folder := folderSite(t, 1)
	for name, test := range map[string]struct {
		kind   string
		form   url.Values
		status int
		want   []string
		lacks  string
	}{
		"secret":        {"git", url.Values{"name": {"code"}, "target": {"https://git.example/a"}, "credential.token": {"ghp_secret"}}, http.StatusBadRequest, []string{`value="code"`, `id="credential-token-error"`}, "ghp_secret"},
		"other kind":    {"web", url.Values{"name": {"site"}, "target": {"https://site.example/"}}, http.StatusForbidden, []string{`value="site"`, "Who runs this server"}, ""},
		"other folder":  {"folder", url.Values{"name": {"etc"}, "target": {"/etc"}}, http.StatusForbidden, []string{`value="/etc"`}, ""},
		"unlisted":      {"git", url.Values{"name": {"code"}, "target": {"https://git.example/a"}, "credential.token": {"env:HOME"}}, http.StatusForbidden, []string{`value="env:HOME"`}, ""},
		"name":          {"folder", url.Values{"name": {"No Name"}, "target": {folder}}, http.StatusBadRequest, []string{`value="No Name"`, `role="alert"`}, ""},
		"XSS":           {"folder", url.Values{"name": {"<script>"}, "target": {folder}}, http.StatusBadRequest, nil, "<script>"},
		"wrong setting": {"folder", url.Values{"name": {"a"}, "target": {folder}, "option.hidden": {"maybe"}}, http.StatusBadRequest, []string{`role="alert"`}, ""},
	} {
		r := x.post("root", "/source-kinds/"+test.kind, test.form)
		if r.StatusCode != test.status {
			t.Errorf("%s: status %d: %s", name, r.StatusCode, r.body)
		}
		contains(t, r.body, test.want...)
		if test.lacks != "" {
			lacks(t, r.body, test.lacks)
		}
	}
	if r := x.get("root", "/source-kinds/none"); r.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown kind: status %d", r.StatusCode)
	}
	if r := x.get("ann", "/source-kinds"); r.StatusCode != http.StatusForbidden {
		t.Errorf("an editor adds sources: status %d", r.StatusCode)
	}
	closed := newSite(t)
	contains(t, closed.page("root", "/source-kinds"), "lets no page add sources")
}

// TestSourceReport checks that the report of a sync names no document that its reader may not see.
func TestSourceReport(t *testing.T) {
	t.Parallel()
	x, folder := folderSite(t, 1)
	writeFile(t, filepath.Join(folder, "merger.md"), "# Merger\n\nText.\n")
	writeFile(t, filepath.Join(folder, "merger.md.metadata.json"), `{"acl": ["group:board"]}`)
	if err := x.session("root").AddSource(t.Context(), engine.NewSource{Name: "notes", Kind: "folder", Target: folder, Collection: "team"}); err != nil {
		t.Fatal(err)
	}
	sync := func() {
		if _, err := x.session("root").Sync(t.Context(), engine.SyncRequest{Name: "notes", Full: true}); err != nil {
			t.Fatal(err)
		}
	}
	sync()
	writeFile(t, filepath.Join(folder, "merger.md"), "\x00\x01\x02\x03 no text at all \xff\xfe")
	sync()
	for user, sees := range map[string]bool{"root": true, "ann": false} {
		all, err := x.session(user).Sources(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("sources of %s: %v, %v", user, all, err)
		}
		if got := strings.Contains(string(all[0].Report), "merger.md"); got != sees {
			t.Errorf("the report of %s names the document: %t: %s", user, got, all[0].Report)
		}
	}
}
