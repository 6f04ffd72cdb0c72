package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/pdftest"
	"github.com/assay-rag/assay/limit"
)

const hrPath = "/api/v1/collections/hr/documents"

// TestDocument checks a document from its upload to its deletion.
func TestDocument(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	created := w.do("ann", "PUT", hrPath+"/guide/leave.md", leaveText, header{"Content-Type", "text/markdown"})
	var o FileOutcome
	if err := json.Unmarshal([]byte(created.body), &o); err != nil || created.StatusCode != http.StatusCreated || o.Outcome != "added" || len(o.Documents) != 1 {
		t.Fatalf("put: %d %s", created.StatusCode, created.body)
	}
	d := o.Documents[0]
	path := created.Header.Get("Location")
	tag := created.Header.Get("ETag")
	if path != "/api/v1/documents/"+d.ID || d.URI != "upload:guide/leave.md" || d.Title != "Leave" || d.Collection != "hr" {
		t.Errorf("Location %q of %+v", path, d)
	}
	if again := w.put("ann", "hr", "guide/leave.md", leaveText, http.StatusOK); again.Outcome != "unchanged" {
		t.Errorf("the same again: %+v", again)
	}
	shown := w.do("rob", "GET", path, "")
	var view engine.DocumentView
	if err := json.Unmarshal([]byte(shown.body), &view); err != nil || shown.Header.Get("ETag") != tag || !strings.Contains(view.Text, "carry over 5 days") || len(view.Structure.Blocks) == 0 {
		t.Errorf("show: ETag %s, want %s; %s", shown.Header.Get("ETag"), tag, shown.body)
	}
	if r := w.do("rob", "GET", path, "", header{"If-None-Match", tag}); r.StatusCode != http.StatusNotModified {
		t.Errorf("show with its tag: %d", r.StatusCode)
	}
	checkText(t, w, path, view.Text)

	// Conditions.
	for _, tt := range []struct {
		headers []header
		text    string
		status  int
	}{
		{[]header{{"If-None-Match", "*"}}, "other", http.StatusPreconditionFailed},
		{[]header{{"If-Match", `"other"`}}, "other", http.StatusPreconditionFailed},
		{[]header{{"If-Match", tag}}, leaveText + "\nMore.\n", http.StatusOK},
		{[]header{{"If-Match", tag}}, "other", http.StatusPreconditionFailed}, // it is another version now
		{[]header{{"If-Match", "*"}}, leaveText, http.StatusOK},
	} {
		w.put("ann", "hr", "guide/leave.md", tt.text, tt.status, tt.headers...)
	}
	w.put("ann", "hr", "new.md", "# New\n\nA new one.\n", http.StatusPreconditionFailed, header{"If-Match", "*"})
	w.put("ann", "hr", "new.md", "# New\n\nA new one.\n", http.StatusCreated, header{"If-None-Match", "*"})
	w.wantProblem("ann", "DELETE", path, "", "changed", header{"If-Match", `"other"`})
	w.wantProblem("rob", "DELETE", path, "", "forbidden")
	want[none](w, "ann", "DELETE", path, "", http.StatusNoContent, header{"If-Match", tag})
	w.wantProblem("ann", "DELETE", path, "", "not_found")
	w.wantProblem("ann", "GET", path, "", "not_found")
	w.wantProblem("ann", "GET", path+"/text", "", "not_found")
}

// checkText checks the forms and parts of a document's text.
func checkText(t *testing.T, w *site, path, text string) {
	t.Helper()
	whole := w.do("rob", "GET", path+"/text", "")
	if whole.StatusCode != http.StatusOK || whole.body != text || whole.Header.Get("Content-Type") != "text/plain; charset=utf-8" || whole.Header.Get("Document-Version") == "" {
		t.Errorf("text: %d %q %v", whole.StatusCode, whole.body, whole.Header)
	}
	n := len(text)
	for _, tt := range []struct{ start, end, want string }{
		{"0", "5", text[:5]}, {"2", "", text[2:]}, {"", "7", text[:7]}, {strconv.Itoa(n - 1), strconv.Itoa(n), text[n-1:]},
	} {
		r := w.do("rob", "GET", path+"/text?"+url.Values{"start": {tt.start}, "end": {tt.end}}.Encode(), "")
		if tt.start == "" || tt.end == "" {
			r = w.do("rob", "GET", strings.NewReplacer("start=&", "", "&start=", "", "end=&", "", "?start=", "?end=").Replace(r.Request.URL.Path)+map[bool]string{true: "?end=" + tt.end, false: "?start=" + tt.start}[tt.start == ""], "")
		}
		if r.StatusCode != http.StatusPartialContent || r.body != tt.want || !strings.HasSuffix(r.Header.Get("Content-Range"), "/"+strconv.Itoa(n)) {
			t.Errorf("text from %q to %q: %d %q %v", tt.start, tt.end, r.StatusCode, r.body, r.Header)
		}
	}
	for _, query := range []string{"start=5&end=5", "start=6&end=5", "start=-1", "end=0", "end=" + strconv.Itoa(n+1), "start=" + strconv.Itoa(n)} {
		if p := w.wantProblem("rob", "GET", path+"/text?"+query, "", "range"); p.Status != http.StatusRequestedRangeNotSatisfiable {
			t.Errorf("%s: %+v", query, p)
		}
	}
	for _, query := range []string{"start=x", "start=99999999999999999999", "end=1e3", "start=1&start=2"} {
		w.wantProblem("rob", "GET", path+"/text?"+query, "", "invalid")
	}
	md := w.do("rob", "GET", path+"/text?download", "", header{"Accept", "text/markdown"})
	if md.StatusCode != http.StatusOK || !strings.HasPrefix(md.body, "# Leave\n") || md.Header.Get("Content-Disposition") != "attachment; filename=leave.md" {
		t.Errorf("Markdown: %d %q %v", md.StatusCode, md.body, md.Header)
	}
	w.wantProblem("rob", "GET", path+"/text?start=1", "", "invalid", header{"Accept", "text/markdown"})
	w.wantProblem("rob", "GET", path+"/text", "", "not_acceptable", header{"Accept", "image/png"})
}

// TestIsSpan checks that a part of a text begins and ends between characters.
func TestIsSpan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text       string
		start, end int
		want       bool
	}{
		{"aé", 0, 1, true}, {"aé", 1, 3, true}, {"aé", 0, 2, false}, {"aé", 2, 3, false}, {"", 0, 0, true}, {"", 0, 1, false}, {"a", 1, 1, false},
	} {
		if got := isSpan(tt.text, tt.start, tt.end); got != tt.want {
			t.Errorf("isSpan(%q, %d, %d) = %v", tt.text, tt.start, tt.end, got)
		}
	}
}

// TestDocumentList checks the pages of the list, and that nobody sees the documents of others.
func TestDocumentList(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	var all []string
	for _, c := range []string{"hr", "law"} {
		for i := range 4 {
			name := fmt.Sprintf("doc %d.md", i)
			w.put("ann", c, url.PathEscape(name), fmt.Sprintf("# Document %d\n\nIt is of %s.\n", i, c), http.StatusCreated)
			all = append(all, c+" upload:"+name)
		}
	}
	w.put("bob", "law", "secret.md", "# Secret\n\nOnly the board knows the price of Falcon.\n", http.StatusCreated, header{"Assay-Metadata", `{"acl": ["group:board"]}`})
	list := func(user, query string) (names []string) {
		t.Helper()
		for cursor := ""; ; {
			page := want[DocumentPage](w, user, "GET", "/api/v1/documents?"+query+"&cursor="+cursor, "", http.StatusOK)
			for _, d := range page.Documents {
				names = append(names, d.Collection+" "+d.URI)
			}
			if cursor = page.Next; cursor == "" {
				return names
			}
		}
	}
	for _, limit := range []string{"limit=1", "limit=3", "limit=8", "limit=500"} {
		if diff := cmp.Diff(all, list("ann", limit)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", limit, diff)
		}
	}
	if diff := cmp.Diff(append(all[4:8:8], "law upload:secret.md"), list("bob", "limit=2&collection=law")); diff != "" {
		t.Errorf("bob's list of law (-want +got):\n%s", diff)
	}
	if got := list("zed", "limit=5"); got != nil {
		t.Errorf("another tenant sees %q", got)
	}
	w.wantProblem("zed", "GET", "/api/v1/documents?collection=hr", "", "not_found")
	counts := func(user string) (n int) {
		for _, c := range want[CollectionList](w, user, "GET", "/api/v1/collections", "", http.StatusOK).Collections {
			n += c.Documents
		}
		return n
	}
	if ann, bob, zed := counts("ann"), counts("bob"), counts("zed"); ann != 8 || bob != 9 || zed != 0 {
		t.Errorf("collections have %d, %d, %d documents", ann, bob, zed)
	}
	if c := want[engine.CollectionSummary](w, "ann", "GET", "/api/v1/collections/law", "", http.StatusOK); c.Documents != 4 {
		t.Errorf("law = %+v", c)
	}
	w.wantProblem("zed", "GET", "/api/v1/collections/law", "", "not_found")
	for user, n := range map[string]int{"ann": 8, "bob": 9, "zed": 0} {
		if got := want[engine.CoverageReport](w, user, "GET", "/api/v1/documents/coverage", "", http.StatusOK); got.Documents != n {
			t.Errorf("coverage of %s = %+v, want %d documents", user, got, n)
		}
	}
}

// TestUploadACL checks that a caller neither replaces a document that it may not see, nor opens it by
// uploading another one of its name after it was deleted.
func TestUploadACL(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	secret := "# Falcon\n\nThe price of Falcon is 77 euros.\n"
	board := header{"Assay-Metadata", `{"acl": ["group:board"], "team": "board"}`}
	o := w.put("bob", "law", "falcon.md", secret, http.StatusCreated, board)
	if d := o.Documents[0]; !d.ACL.Restricted || d.Metadata["team"].String != "board" {
		t.Errorf("metadata and ACL: %+v", d)
	}
	const path = "/api/v1/collections/law/documents/falcon.md"
	md := header{"Content-Type", "text/markdown"}
	w.wantProblem("ann", "PUT", path, "# Mine\n\nNow it is mine.\n", "forbidden", md)
	w.wantProblem("ann", "GET", "/api/v1/documents/"+o.Documents[0].ID, "", "not_found")
	w.wantProblem("ann", "DELETE", "/api/v1/documents/"+o.Documents[0].ID, "", "not_found")
	if r := want[engine.SearchReport](w, "ann", "POST", "/api/v1/search", `{"text": "price of Falcon"}`, http.StatusOK); len(r.Hits) != 0 {
		t.Errorf("ann finds %+v", r.Hits)
	}
	run := w.ask("bob", "What is the price of Falcon?")
	if !strings.Contains(run.Text, "77") {
		t.Fatalf("bob's answer: %s", run.Text)
	}
	want[none](w, "bob", "DELETE", "/api/v1/documents/"+o.Documents[0].ID, "", http.StatusNoContent)
	w.wantProblem("ann", "PUT", path, "# Mine\n\nNow it is mine.\n", "forbidden", md)
	w.put("bob", "law", "falcon.md", secret, http.StatusCreated, header{"Assay-Metadata", `{"acl": ["*"]}`})
	w.put("ann", "law", "falcon.md", secret+"More.\n", http.StatusOK)

	want[none](w, "ann", "PUT", "/api/v1/collections/vault", `{"require_acl": true}`, http.StatusNoContent)
	if p := w.wantProblem("ann", "PUT", "/api/v1/collections/vault/documents/a.md", secret, "unreadable", md); p.Reason != "no_acl" {
		t.Errorf("without an ACL: %+v", p)
	}
	w.put("ann", "vault", "a.md", secret, http.StatusCreated, header{"Assay-Metadata", `{"acl": ["user:ann"]}`})
	for _, bad := range []string{`{"acl": "ann"}`, `{"acl": ["ann"]}`, `{`, `[]`, `{"a": 1, "a": 2}`, `{"ACL": []}`} {
		w.wantProblem("ann", "PUT", "/api/v1/collections/vault/documents/b.md", secret, "invalid", md, header{"Assay-Metadata", bad})
	}
}

// TestUploadNames checks the names of documents.
func TestUploadNames(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	for _, name := range []string{"a.md", "deep/er/b.md", "with space.md", "Ünïcode–✓.md", "a!b.md", "ends!/in.md", "100%.md", "what?.md", "#.md", "stdin:-", strings.Repeat("n", engine.MaxUploadName)} {
		o := w.put("ann", "names", strings.ReplaceAll(url.PathEscape(name), "%2F", "/"), leaveText, http.StatusCreated)
		if o.Name != name || len(o.Documents) != 1 || strings.Contains(o.URI, assay.PartSeparator) {
			t.Errorf("%q is stored as %+v", name, o)
		}
	}
	for _, path := range []string{
		"%2e%2e/a.md", "a/%2e%2e/b.md", "%2e/a.md", "a%2f%2fb.md", "%2fetc%2fpasswd", "a/", "%00.md", "a%0ab.md", "a%5cb.md", "%ff%fe.md", "a%e2%80%ae.md",
		strings.Repeat("n", engine.MaxUploadName+1),
	} {
		r := w.do("ann", "PUT", "/api/v1/collections/names/documents/"+path, leaveText, header{"Content-Type", "text/markdown"})
		if r.StatusCode != http.StatusBadRequest {
			t.Errorf("the name %s: %d %s", path, r.StatusCode, r.body)
		}
	}
	// A collection that no query can name holds nothing.
	for _, collection := range []string{"%00", "a%0ab", "%ff", "%1b%5b2J", strings.Repeat("c", engine.MaxNameBytes+1)} {
		w.wantProblem("ann", "PUT", "/api/v1/collections/"+collection, `{}`, "invalid")
		w.wantProblem("ann", "PUT", "/api/v1/collections/"+collection+"/documents/a.md", leaveText, "invalid", header{"Content-Type", "text/markdown"})
		w.wantProblem("ann", "POST", "/api/v1/collections/"+collection+"/pages", `{"url": "https://example.com/"}`, "invalid")
	}
}

// TestUploadRefused checks documents that cannot be used.
func TestUploadRefused(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	locked := &pdftest.File{Password: "open sesame"}
	page := locked.Page(595, 842)
	page.Text(72, 72, 12, false, "The code of the vault is 4711.")
	secret := string(locked.Bytes())
	for _, tt := range []struct{ name, body, reason string }{
		{"blob.bin", "\x00\x01\x02\x03\x00\x00\xff\xfe", "binary"}, {"empty.md", "", "empty"}, {"broken.pdf", "%PDF-1.7\nnothing", "damaged"}, {"locked.pdf", secret, "password"},
	} {
		p := w.wantProblem("ann", "PUT", hrPath+"/"+tt.name, tt.body, "unreadable", header{"Content-Type", "application/octet-stream"})
		if p.Reason != tt.reason || p.Detail == "" {
			t.Errorf("%s: %+v, want the reason %s", tt.name, p, tt.reason)
		}
	}
	failed := want[FailedList](w, "ann", "GET", "/api/v1/documents/failed", "", http.StatusOK)
	if len(failed.Documents) != 4 {
		t.Errorf("failed = %+v", failed)
	}
	o := w.put("ann", "hr", "locked.pdf", secret, http.StatusCreated, header{"Content-Type", "application/pdf"}, header{"Assay-Password", "open sesame"})
	if len(o.Documents) != 1 || o.Documents[0].Pages == nil {
		t.Errorf("an encrypted PDF: %+v", o)
	}
	if p := w.wantProblem("ann", "PUT", hrPath+"/large.md", strings.Repeat("a", engine.MaxUploadBytes+1), "too_large"); !strings.Contains(p.Detail, strconv.Itoa(engine.MaxUploadBytes)) {
		t.Errorf("too large: %+v does not name the limit", p)
	}
	w.wantProblem("ann", "PUT", hrPath+"/a.md", leaveText, "media_type", header{"Content-Encoding", "gzip"})
	w.wantProblem("rob", "PUT", hrPath+"/a.md", leaveText, "forbidden")
	w.wantProblem("rob", "POST", "/api/v1/collections/hr/pages", `{"url": "https://example.com/"}`, "forbidden")
	files, err := filepath.Glob(filepath.Join(os.TempDir(), "assay-upload-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && info.Size() > engine.MaxUploadBytes-2<<20 {
			t.Errorf("an upload left %s", f)
		}
	}
}

// A formPart is a part of a form.
type formPart struct{ name, file, media, body string }

func form(t *testing.T, parts ...formPart) (body string, contentType header) {
	t.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		disposition := fmt.Sprintf("form-data; name=%q", p.name)
		if p.file != "" {
			disposition += fmt.Sprintf("; filename=%q", p.file)
		}
		h.Set("Content-Disposition", disposition)
		if p.media != "" {
			h.Set("Content-Type", p.media)
		}
		out, err := m.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(out, p.body)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), header{"Content-Type", m.FormDataContentType()}
}

// TestUploadForm checks the outcome of each file of a form.
func TestUploadForm(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	body, contentType := form(t,
		formPart{"file", "a.md", "text/markdown", leaveText},
		formPart{"file", "../up.md", "", leaveText},
		formPart{"metadata", "", "application/json", `{"acl": ["group:board"]}`},
		formPart{"file", "deep/b.md", "", "# Board\n\nThe board meets on Mondays.\n"},
		formPart{"file", "c.bin", "application/octet-stream", "\x00\x01\x02\x00\x00"},
		formPart{"metadata", "", "application/json", `{"acl": ["group:staff"], "team": "hr"}`},
		formPart{"file", "d.md", "", "# Staff\n\nThe staff meets on Fridays.\n"},
		formPart{"file", "a.md", "text/markdown", leaveText},
	)
	report := want[UploadReport](w, "ann", "POST", hrPath, body, http.StatusOK, contentType)
	var got []string
	for _, f := range report.Files {
		kind := ""
		if f.Problem != nil {
			kind = " " + strings.TrimPrefix(f.Problem.Type, "/problems/")
		}
		got = append(got, f.Name+" "+f.Outcome+kind)
	}
	wanted := []string{"a.md added", "../up.md refused invalid", "deep/b.md added", "c.bin refused unreadable", "d.md added", "a.md updated"}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if page := want[DocumentPage](w, "ann", "GET", "/api/v1/documents", "", http.StatusOK); len(page.Documents) != 2 {
		t.Errorf("ann sees %+v", page.Documents)
	}

	events := w.events("ann", "POST", hrPath, body, contentType, header{"Accept", typeEvents})
	files, progress := 0, 0
	for _, ev := range events {
		switch ev.name {
		case "file":
			files++
		case "progress":
			progress++
			var p engine.IngestProgress
			if err := json.Unmarshal([]byte(ev.data), &p); err != nil {
				t.Errorf("progress %s: %v", ev.data, err)
			}
		}
	}
	if last := events[len(events)-1]; files != len(wanted) || progress == 0 || last.name != "report" {
		t.Errorf("%d files, %d of progress, and %s last", files, progress, last.name)
	}
	events = w.events("ann", "PUT", hrPath+"/e.md", leaveText, header{"Accept", typeEvents}, header{"Content-Type", "text/markdown"})
	if last := events[len(events)-1]; last.name != "file" || !strings.Contains(last.data, `"outcome":"added"`) {
		t.Errorf("the last event of an upload is %+v", last)
	}
	events = w.events("ann", "PUT", hrPath+"/e.bin", strings.Repeat("\x00\x01", 40_000), header{"Accept", typeEvents}, header{"Content-Type", "text/markdown"})
	if last := events[len(events)-1]; last.name != "error" || !strings.Contains(last.data, "/problems/unreadable") {
		t.Errorf("the last event of a refused upload is %+v", last)
	}

	one, oneType := form(t, formPart{"file", "a.md", "", leaveText})
	empty, emptyType := form(t)
	field, fieldType := form(t, formPart{"colour", "", "", "red"})
	long, longType := form(t, formPart{"metadata", "", "", strings.Repeat(" ", 300<<10)})
	for _, tt := range []struct {
		body string
		h    header
		kind string
	}{
		{one, header{"Content-Type", "multipart/form-data"}, "media_type"},
		{one, header{"Content-Type", "multipart/mixed; boundary=x"}, "media_type"},
		{one, header{"Content-Type", ""}, "media_type"},
		{one, header{"Content-Type", "multipart/form-data; boundary=other"}, "invalid"},
		{one[:len(one)-40], oneType, "invalid"},
		{empty, emptyType, "invalid"}, {field, fieldType, "invalid"}, {long, longType, "invalid"},
		{"", oneType, "invalid"},
	} {
		w.wantProblem("ann", "POST", hrPath, tt.body, tt.kind, tt.h)
	}
	w.wantProblem("rob", "POST", hrPath, one, "forbidden", oneType)
}

// A page is a fetcher of one page.
type page struct{ url, text string }

func (p page) Fetch(_ context.Context, url string) (assay.WebPage, error) {
	switch {
	case strings.Contains(url, "169.254"):
		return assay.WebPage{}, fmt.Errorf("the address is private: %w", assay.ErrInvalid)
	case url != p.url:
		return assay.WebPage{}, fmt.Errorf("HTTP 404: %w", assay.ErrUnavailable)
	}
	return assay.WebPage{URL: url + "#top", Type: "text/html", Data: []byte(p.text)}, nil
}

// TestFetch checks that pages are read by policy only.
func TestFetch(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/collections/web/pages"
	const address = "https://example.com/a/falcon"
	pages := page{address, "<html><title>Falcon</title><body><h1>Falcon</h1><p>Falcon flies at 300 km/h.</p></body></html>"}
	closed := newSite(t, func(c *engine.HostConfig) { c.Pages = pages })
	if p := closed.wantProblem("ann", "POST", path, `{"url": "`+address+`"}`, "forbidden"); !strings.Contains(p.Detail, "example.com") {
		t.Errorf("without a policy: %+v", p)
	}
	w := newSite(t, func(c *engine.HostConfig) {
		c.Pages = pages
		c.AllowURL = func(tenant, url string) bool { return tenant == "acme" && !strings.Contains(url, "forbidden") }
	})
	o := want[FileOutcome](w, "ann", "POST", path, `{"url": "`+address+`", "metadata": {"team": "zoo", "acl": ["group:staff"]}}`, http.StatusCreated)
	if d := o.Documents[0]; d.URI != address || d.Title != "Falcon" || d.Metadata["team"].String != "zoo" || !d.ACL.Restricted {
		t.Errorf("the page is %+v", d)
	}
	if a := w.ask("ann", "How fast does Falcon fly?"); !strings.Contains(a.Text, "300 km/h") {
		t.Errorf("the answer is %s", a.Text)
	}
	for body, kind := range map[string]string{
		`{"url": "https://example.com/other"}`: "unavailable", `{"url": "https://forbidden.example/"}`: "forbidden", `{"url": "http://169.254.169.254/"}`: "forbidden",
		`{"url": "/etc/passwd"}`: "invalid", `{"url": ""}`: "invalid", `{"url": "https://u:p@example.com/"}`: "invalid", `{}`: "invalid",
		`{"url": "` + address + `", "metadata": []}`: "invalid",
	} {
		w.wantProblem("ann", "POST", path, body, kind)
	}
	w.wantProblem("zed", "POST", path, `{"url": "`+address+`"}`, "forbidden")
	w.wantProblem("bob", "POST", path, `{"url": "`+address+`"}`, "forbidden") // it would replace ann's
}

// TestUploadsAtOnce checks that uploads at once are all stored, those of one name one after the other,
// and that questions are answered meanwhile.
func TestUploadsAtOnce(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	var work sync.WaitGroup
	for i := range 12 {
		work.Go(func() {
			user := []string{"ann", "bob", "root"}[i%3]
			text := fmt.Sprintf("# Note %d\n\nThe number of note %d is %d.\n", i, i, 1000+i)
			for _, name := range []string{fmt.Sprintf("note-%d.md", i), "shared.md"} {
				res, err := w.send(t.Context(), user, "PUT", hrPath+"/"+name, strings.NewReader(text), header{"Content-Type", "text/markdown"})
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
				if res.StatusCode != http.StatusCreated && res.StatusCode != http.StatusOK {
					t.Errorf("upload of %s: %d", name, res.StatusCode)
				}
			}
		})
	}
	work.Wait()
	if page := want[DocumentPage](w, "ann", "GET", "/api/v1/documents", "", http.StatusOK); len(page.Documents) != 13 {
		t.Errorf("%d documents, want 13", len(page.Documents))
	}
	if a := w.ask("rob", "What is the number of note 7?"); !strings.Contains(a.Text, "1007") {
		t.Errorf("the answer is %q", a.Text)
	}
}

// A slowBody is a body of which nothing more arrives until it is closed.
type slowBody struct {
	first io.Reader
	wait  chan struct{}
}

func (s *slowBody) Read(p []byte) (int, error) {
	if n, err := s.first.Read(p); n > 0 || err == nil {
		return n, nil
	}
	<-s.wait
	return 0, errors.New("broken off")
}

// TestUploadQueue checks that one user's slow uploads block no other user, and that there is an end to
// their number.
func TestUploadQueue(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	wait := make(chan struct{})
	var slow sync.WaitGroup
	refused := make(chan reply, 17)
	for i := range 17 {
		slow.Go(func() {
			body := &slowBody{first: strings.NewReader(strings.Repeat(leaveText, 1000)), wait: wait}
			res, err := w.send(t.Context(), "ann", "PUT", fmt.Sprintf("%s/slow-%d.md", hrPath, i), body, header{"Content-Type", "text/markdown"})
			if err != nil {
				return // broken off
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err != nil {
				t.Error(err)
			}
			refused <- reply{res, string(text)}
		})
	}
	r := <-refused // one is too many
	var p Problem
	if err := json.Unmarshal([]byte(r.body), &p); err != nil || r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") != strconv.FormatInt(p.RetryAfter, 10) {
		t.Errorf("%d %s %v", r.StatusCode, r.body, r.Header)
	}
	w.put("bob", "hr", "bob.md", leaveText, http.StatusCreated)
	close(wait)
	slow.Wait()
	for _, d := range want[DocumentPage](w, "ann", "GET", "/api/v1/documents", "", http.StatusOK).Documents {
		if strings.Contains(d.URI, "slow") {
			t.Errorf("the broken upload %s is stored", d.URI)
		}
	}
}

// utcDay returns the day of the limits of a day.
func utcDay() string { return time.Now().UTC().Format(time.DateOnly) }

// TestQuota checks that a limit of requests names itself and the time to wait.
func TestQuota(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.put("ann", "hr", "leave.md", leaveText, http.StatusCreated)
	session, err := w.host.Session(t.Context(), w.grant("root"))
	if err != nil {
		t.Fatal(err)
	}
	if err := session.SetLimits(t.Context(), "user:rob", limit.Limits{limit.RequestsPerDay: 1}, "a test"); err != nil {
		t.Fatal(err)
	}
	day := utcDay()
	w.ask("rob", question)
	body := mustJSON(t, engine.Request{Question: question})
	r := w.do("rob", "POST", "/api/v1/ask", body)
	if utcDay() != day { // that may have been the first one of the next day
		r = w.do("rob", "POST", "/api/v1/ask", body)
	}
	var p Problem
	if err := json.Unmarshal([]byte(r.body), &p); err != nil || r.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("the second question: %d %s", r.StatusCode, r.body)
	}
	if p.Limit == nil || p.RetryAfter == 0 || r.Header.Get("Retry-After") != strconv.FormatInt(p.RetryAfter, 10) {
		t.Errorf("%s, Retry-After %q", r.body, r.Header.Get("Retry-After"))
	}
}

// TestUploadWithEvents checks that an upload whose body arrives after the header of the response is
// stored as a whole.
func TestUploadWithEvents(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.handler.firstTime = 0 // the body goes on once the header is there
	text := "# Leave\n\n" + strings.Repeat("Employees may carry over 5 days of leave.\n", 20_000)
	form, boundary := form(t, formPart{name: "file", file: "form.md", body: text})
	for name, c := range map[string]struct {
		method, path, body string
		media              header
	}{
		"one document": {"PUT", hrPath + "/put.md", text, header{"Content-Type", "text/markdown"}},
		"a form":       {"POST", hrPath, form, boundary},
	} {
		body, rest := io.Pipe()
		begun := make(chan struct{})
		go func() {
			_, err := io.WriteString(rest, c.body[:len(c.body)/3])
			<-begun
			if err == nil {
				_, err = io.WriteString(rest, c.body[len(c.body)/3:])
			}
			rest.CloseWithError(err)
		}()
		res, err := w.send(t.Context(), "ann", c.method, c.path, body, c.media, header{"Accept", typeEvents})
		close(begun)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		data, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(data), fmt.Sprintf(`"size_bytes":%d`, len(text))) {
			t.Errorf("%s of %d bytes: %v, %s", name, len(text), err, data)
		}
	}
}

// TestDownloadName checks that the name of a downloaded text is one that every file system takes.
func TestDownloadName(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	for name, want := range map[string]string{
		"guide/leave.md": "leave.txt", "a:b.md": "a_b.txt", "what?.md": "what_.txt", `"q" <x>|*.md`: "_q_ _x___.txt",
		"été.md": "été.txt", " ": "document.txt", ".profile": "document.txt", "a; filename=b.html": "a; filename=b.txt",
	} {
		o := w.put("ann", "hr", strings.ReplaceAll(url.PathEscape(name), "%2F", "/"), leaveText, http.StatusCreated)
		r := w.do("rob", "GET", "/api/v1/documents/"+o.Documents[0].ID+"/text?download", "")
		media, params, err := mime.ParseMediaType(r.Header.Get("Content-Disposition"))
		if err != nil || media != "attachment" || params["filename"] != want {
			t.Errorf("%q is downloaded as %q, want %q (%v)", name, r.Header.Get("Content-Disposition"), want, err)
		}
	}
}

// TestForbiddenObject checks that the refusal of one object does not ask for a scope that the credential
// has (RFC 6750, section 3.1).
func TestForbiddenObject(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.put("bob", "law", "falcon.md", leaveText, http.StatusCreated, header{"Assay-Metadata", `{"acl": ["group:board"]}`})
	for user, want := range map[string]string{"ann": "", "rob": `Bearer realm="assay", error="insufficient_scope", scope="ingest"`} {
		r := w.do(user, "PUT", "/api/v1/collections/law/documents/falcon.md", leaveText, header{"Content-Type", "text/markdown"})
		if got := r.Header.Get("WWW-Authenticate"); r.StatusCode != http.StatusForbidden || got != want {
			t.Errorf("as %s: %d, WWW-Authenticate %q, want %q", user, r.StatusCode, got, want)
		}
	}
}

// TestOriginalName checks that the address of a document does not choose how the name of its file is shown.
func TestOriginalName(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"file:///a/report.pdf": "report.pdf", "https://example.com/scan": "scan.pdf",
		"file:///a/report.\u202efdp.exe": "report._fdp.exe", "file:///a/r.\u202efdp": "r._fdp", "https://example.com/r.p\ndf?x=\"": "r.p_df_x=_",
	} {
		if got := originalName(uri, "application/pdf"); got != want {
			t.Errorf("originalName(%q) = %q, want %q", uri, got, want)
		}
	}
}
