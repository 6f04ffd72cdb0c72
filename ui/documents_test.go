package ui

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay/engine"
)

// A file is a file of a form.
type file struct{ name, text string }

// upload sends files with fields of the form: pairs of a name and a value.
func (x *site) upload(user, path string, files []file, fields ...string) reply {
	x.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		if err := form.WriteField(fields[i], fields[i+1]); err != nil {
			x.t.Fatal(err)
		}
	}
	for _, f := range files {
		part, err := form.CreateFormFile("files", f.name)
		if err != nil {
			x.t.Fatal(err)
		}
		if _, err := io.WriteString(part, f.text); err != nil {
			x.t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		x.t.Fatal(err)
	}
	return x.do(user, http.MethodPost, path, &b, form.FormDataContentType())
}

// put stores a document as the engine does it for other doors.
func (x *site) put(user, collection, name, text, sidecar string) engine.Uploaded {
	x.t.Helper()
	u := engine.Upload{Collection: collection, Name: name, Body: strings.NewReader(text)}
	if sidecar != "" {
		u.Sidecar = []byte(sidecar)
	}
	out, err := x.session(user).Upload(x.t.Context(), u)
	if err != nil {
		x.t.Fatal(err)
	}
	return out
}

func contains(t *testing.T, body string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(body, part) {
			t.Errorf("the page lacks %q:\n%s", part, body)
		}
	}
}

func lacks(t *testing.T, body string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(body, part) {
			t.Errorf("the page has %q:\n%s", part, body)
		}
	}
}

func TestCollections(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.put("bob", "board", "plan.md", "# Plan\n\nThe merger is called Falcon.\n", `{"acl": ["group:board"]}`)
	contains(t, x.page("ann", "/documents"), ">handbook</bdi>", "3 documents", "Add documents", "New collection")
	lacks(t, x.page("ann", "/documents"), ">board<", "Falcon")
	contains(t, x.page("bob", "/documents"), ">board</bdi>", "1 document<")
	rob := x.page("rob", "/documents")
	contains(t, rob, ">handbook</bdi>")
	lacks(t, rob, "Add documents", "New collection", "Not read", "Sources")
	contains(t, x.page("zed", "/documents"), "There is no document that you may see.", "Connect a source")
	for _, user := range []string{"ann", "zed"} { // one may not see the documents, the other is of another tenant
		if r := x.get(user, "/documents?collection=board"); r.StatusCode != http.StatusNotFound {
			t.Errorf("the collection as %s: status %d", user, r.StatusCode)
		}
	}
	contains(t, x.page("bob", "/documents?collection=board"), "Plan", "plan.md", "group board")
}

func TestCreateCollection(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	r := x.post("ann", "/documents/collections", url.Values{"name": {"contracts"}, "require_acl": {"1"}})
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/documents/upload?collection=contracts" {
		t.Fatalf("status %d to %q: %s", r.StatusCode, r.Header.Get("Location"), r.body)
	}
	refused := x.upload("ann", "/documents/upload", []file{{"a.md", "# A\n\nText.\n"}}, "collection", "contracts")
	contains(t, refused.body, "No access list", "1 of 1 file was not stored")
	x.upload("ann", "/documents/upload", []file{{"a.md", "# A\n\nText.\n"}}, "collection", "contracts", "access", "me")
	contains(t, x.page("ann", "/documents"), "access list required")
	if body := x.page("ann", "/documents/upload?collection=contracts"); strings.Contains(body, "required checked") {
		t.Error("who may see the documents is chosen already")
	}
	for name, want := range map[string]string{"handbook": "There is a collection of this name", "": "", strings.Repeat("x", 5000): ""} {
		r := x.post("ann", "/documents/collections", url.Values{"name": {name}})
		if r.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: status %d", name, r.StatusCode)
		}
		contains(t, r.body, want, `aria-invalid="true"`, `id="name-error"`)
	}
	if r := x.post("rob", "/documents/collections", url.Values{"name": {"own"}}); r.StatusCode != http.StatusForbidden {
		t.Errorf("a reader makes a collection: status %d", r.StatusCode)
	}
}

// TestDocumentList checks the filter, and that pages neither repeat nor hide a document while others
// are added.
func TestDocumentList(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	for i := range documentRows + 7 {
		x.put("ann", "many", fmt.Sprintf("report-%03d.md", 2*i), fmt.Sprintf("# Report %d\n\nText number %d.\n", i, i), "")
	}
	x.put("bob", "many", "report-001-secret.md", "# Board secret\n\nHidden.\n", `{"acl": ["group:board"]}`)
	first := x.page("ann", "/documents?collection=many")
	contains(t, first, "report-000.md", "report-098.md", "Next page")
	lacks(t, first, "report-100.md", "secret")
	x.put("ann", "many", "report-001.md", "# New before\n\nText.\n", "")
	x.put("ann", "many", "report-101.md", "# New after\n\nText.\n", "")
	second := x.page("ann", nextOf(t, first))
	contains(t, second, "report-100.md", "report-101.md", "report-112.md", "First page")
	lacks(t, second, "report-098.md", "report-001.md", "Next page")
	filtered := x.page("ann", "/documents?collection=many&name=PORT-11")
	contains(t, filtered, "report-110.md", "report-112.md", `value="PORT-11"`)
	lacks(t, filtered, "report-100.md")
	contains(t, x.page("ann", "/documents?collection=many&name=nowhere"), "No document", "Show all")
	lacks(t, x.page("ann", "/documents?collection=many&name=secret"), "Board")
	contains(t, x.page("bob", "/documents?collection=many&name=secret"), "Board secret")
}

// nextOf returns the path of the next page.
func nextOf(t *testing.T, body string) string {
	t.Helper()
	_, rest, ok := strings.Cut(body, `rel="next" href="`)
	path, _, closed := strings.Cut(rest, `"`)
	if !ok || !closed {
		t.Fatal("the page has no next one")
	}
	return strings.ReplaceAll(path, "&amp;", "&")
}

func TestFailedDocuments(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.upload("ann", "/documents/upload", []file{{"broken.pdf", "%PDF-1.7 and no more"}, {"blank.txt", "  \n"}}, "collection", "handbook", "access", "everyone")
	x.upload("bob", "/documents/upload", []file{{"board-broken.pdf", "%PDF-1.7 and no more"}}, "collection", "handbook", "access", "me")
	body := x.page("ann", "/documents/failed")
	contains(t, body, "broken.pdf", "blank.txt", "No text", "Upload it again")
	lacks(t, body, "board-broken")
	contains(t, x.page("bob", "/documents/failed?collection=handbook"), "board-broken.pdf")
	contains(t, x.page("ann", "/documents"), "could not be read")
	contains(t, x.page("zed", "/documents/failed"), "could be read.")
	if r := x.get("rob", "/documents/failed"); r.StatusCode != http.StatusForbidden {
		t.Errorf("a reader sees why documents failed: status %d", r.StatusCode)
	}
	if r := x.post("ann", "/documents/failed", url.Values{"uri": {"/etc/passwd"}, "collection": {"handbook"}}); r.StatusCode != http.StatusForbidden {
		t.Errorf("a file of the machine is read: status %d", r.StatusCode)
	}
}

// TestRetry checks that a file of the machine that could not be read is read again on demand, and only
// if it is in a folder that sessions may read.
func TestRetry(t *testing.T) {
	t.Parallel()
	x, folder := folderSite(t, 0)
	name := filepath.Join(folder, "plan.md")
	writeFile(t, name, "\x00\x01\x02\x03\x04")
	if _, err := x.session("root").Ingest(t.Context(), engine.IngestRequest{Paths: []string{name}, Collection: "team"}); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"uri": {name}, "collection": {"team"}}
	contains(t, x.page("ann", "/documents/failed"), "Try again", "plan.md", "Not a document")
	if r := x.post("ann", "/documents/failed", form); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d: %s", r.StatusCode, r.body)
	}
	contains(t, x.page("ann", "/documents/failed"), "could still not be read", "Try again")
	writeFile(t, name, "# Plan\n\nThe plan of the team.\n")
	if r := x.post("ann", "/documents/failed", form); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d: %s", r.StatusCode, r.body)
	}
	contains(t, x.page("ann", "/documents/failed"), "plan.md was read.", "could be read.")
	contains(t, x.page("ann", "/documents?collection=team"), "Plan")
	if engine.SessionReadsFile(x.session("ann"), "/etc/passwd") || engine.SessionReadsFile(x.session("ann"), filepath.Join(folder, "..", "..")) {
		t.Error("files outside the folders may be read")
	}
}
