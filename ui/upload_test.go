package ui

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/pdftest"
	"github.com/assay-rag/assay/server"
)

func TestUpload(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	contains(t, x.page("ann", "/documents/upload?collection=handbook"), `value="handbook"`, `type="file"`, "group:staff")
	r := x.upload("ann", "/documents/upload", []file{{"notes/a.md", "# Travel notes\n\nBy train.\n"}, {"b.txt", "Plain text of a file.\n"}},
		"collection", "team", "access", "named", "names", "group:staff, user:rob", "metadata", "team = legal\nyear = 2026\ntags = [draft, \"in house\"]")
	if r.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", r.StatusCode, r.body)
	}
	contains(t, r.body, "2 files stored", `data-outcome="added"`, "Travel notes", "a.md")
	for user, sees := range map[string]bool{"ann": true, "rob": true, "bob": false, "zed": false} {
		if got := x.get(user, "/documents?collection=team").StatusCode == http.StatusOK; got != sees {
			t.Errorf("%s sees the documents: %t", user, got)
		}
	}
	for d, err := range x.session("ann").Documents(t.Context(), "team") {
		if err != nil {
			t.Fatal(err)
		}
		if d.Metadata["team"].String != "legal" || d.Metadata["year"].Number != 2026 || len(d.Metadata["tags"].List) != 2 {
			t.Errorf("%s: metadata %v", d.URI, d.Metadata)
		}
	}
}

// TestUploadReplaces checks that a document is replaced only if that was asked for.
func TestUploadReplaces(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	send := func(user, text string, more ...string) reply {
		return x.upload(user, "/documents/upload?rows=1", []file{{"plan.md", text}}, append([]string{"collection", "team", "access", "everyone"}, more...)...)
	}
	contains(t, send("ann", "# One\n\nFirst.\n").body, `data-outcome="added"`)
	contains(t, send("ann", "# Two\n\nSecond.\n").body, `data-outcome="taken"`, "is stored")
	contains(t, x.page("ann", "/documents?collection=team"), "One")
	contains(t, send("ann", "# Two\n\nSecond.\n", "replace", "1").body, `data-outcome="updated"`)
	contains(t, x.page("ann", "/documents?collection=team"), "Two")
	contains(t, send("ann", "# Two\n\nSecond.\n", "replace", "1").body, `data-outcome="unchanged"`)

	taken := map[string]takenName{}
	names := url.Values{"collection": {"team"}, "name": {"plan.md", "other.md"}}
	if err := json.Unmarshal([]byte(x.post("ann", "/documents/upload/check", names).body), &taken); err != nil || len(taken) != 1 || taken["plan.md"].Version == "" {
		t.Errorf("names that are taken: %v, %v", taken, err)
	}
	if body := x.post("zed", "/documents/upload/check", names).body; body != "{}" {
		t.Errorf("another tenant is told of names: %s", body)
	}
	x.put("bob", "team", "secret.md", "# Secret\n\nFalcon.\n", `{"acl": ["group:board"]}`)
	hidden := x.upload("ann", "/documents/upload?rows=1", []file{{"secret.md", "# Mine\n\nText.\n"}}, "collection", "team", "access", "everyone", "replace", "1")
	contains(t, hidden.body, `data-outcome="refused"`, "choose another name")
	contains(t, x.page("bob", "/documents?collection=team"), "Secret")
}

func TestUploadRefuses(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	long := strings.Repeat("x", engine.MaxUploadName+1)
	for name, test := range map[string]struct {
		file file
		want string
	}{
		"empty":         {file{"empty.md", ""}, "No text"},
		"wrong type":    {file{"program.exe", "MZ\x00\x01\x02\x03\x00\x00"}, "Not a document"},
		"parent":        {file{"../../etc/passwd", "text"}, "has an empty part"},
		"backslash":     {file{`..\\up.md`, "text"}, "has a"},
		"long name":     {file{long, "text"}, "longer than"},
		"right to left": {file{"a\u202egnp.md", "text"}, "control character"},
		"huge":          {file{"huge.txt", strings.Repeat("word ", engine.MaxUploadBytes/5+1)}, "Too large"},
	} {
		r := x.upload("ann", "/documents/upload?rows=1", []file{test.file}, "collection", "team", "access", "everyone")
		if r.StatusCode != http.StatusOK || !strings.Contains(r.body, `data-outcome="refused"`) || !strings.Contains(r.body, test.want) {
			t.Errorf("%s: status %d: %s", name, r.StatusCode, r.body)
		}
	}
	if r := x.get("ann", "/documents?collection=team"); r.StatusCode != http.StatusNotFound {
		t.Errorf("something was stored: %s", r.body)
	}
	if r := x.upload("rob", "/documents/upload", []file{{"a.md", "text"}}, "collection", "team", "access", "everyone"); r.StatusCode != http.StatusForbidden {
		t.Errorf("a reader uploads: status %d", r.StatusCode)
	}
	if r := x.post("ann", "/documents/upload", url.Values{"collection": {"team"}}); r.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a form that is not multipart: status %d", r.StatusCode)
	}
}

// TestUploadForm checks that a form with a wrong field stores nothing and keeps what was typed.
func TestUploadForm(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	files := []file{{"a.md", "# A\n\n" + strings.Repeat("Long text. ", 1<<17)}, {"b.md", "# B\n\nText.\n"}}
	for name, test := range map[string]struct {
		files  []file
		fields []string
		want   []string
	}{
		"no file":       {nil, []string{"collection", "team", "access", "me"}, []string{`id="files-error"`, "Choose at least one file", `value="team"`}},
		"no collection": {files, []string{"collection", " ", "access", "me"}, []string{`id="collection-error"`, `value="me" required checked`}},
		"no names":      {files, []string{"collection", "team", "access", "named", "names", ""}, []string{`id="names-error"`, "at least one"}},
		"wrong names":   {files, []string{"collection", "team", "access", "named", "names", "legal"}, []string{`id="names-error"`, `value="legal"`, "group:NAME"}},
		"wrong access":  {files, []string{"collection", "team", "access", "world"}, []string{`id="access-error"`}},
		"no pair":       {files, []string{"collection", "team", "access", "me", "metadata", "legal"}, []string{`id="metadata-error"`, "Line 1", ">legal</textarea>"}},
		"twice":         {files, []string{"collection", "team", "access", "me", "metadata", "a = 1\na = 2"}, []string{"Line 2", "twice"}},
		"list by hand":  {files, []string{"collection", "team", "access", "me", "metadata", "ACL = *"}, []string{"chosen above"}},
		"wrong kind":    {files, []string{"collection", "team", "access", "me", "metadata", "language = 7"}, []string{`id="metadata-error"`}},
	} {
		r := x.upload("ann", "/documents/upload", test.files, test.fields...)
		if r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", name, r.StatusCode)
		}
		contains(t, r.body, append(test.want, `aria-`)...)
		if row := x.upload("ann", "/documents/upload?rows=1", test.files, test.fields...); !strings.HasPrefix(strings.TrimSpace(row.body), `<div class="outcome" data-outcome="refused"`) {
			t.Errorf("%s: the row is %s", name, row.body)
		}
	}
	if r := x.get("ann", "/documents?collection=team"); r.StatusCode != http.StatusNotFound {
		t.Errorf("something was stored: %s", r.body)
	}
}

// TestUploadEscapes checks that names, titles and metadata never become markup.
func TestUploadEscapes(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	const evil = `<img src=x onerror=alert(1)>`
	r := x.upload("ann", "/documents/upload", []file{{evil + ".md", "# " + evil + "\n\nText of " + evil + ".\n"}},
		"collection", "x"+evil, "access", "named", "names", "group:"+evil+",user:ann", "metadata", evil+" = "+evil)
	lacks(t, r.body, "<img")
	lacks(t, x.page("ann", "/documents"), "<img")
	list := x.page("ann", "/documents?collection="+url.QueryEscape("x"+evil)+"&name="+url.QueryEscape("<img"))
	contains(t, list, "&lt;img")
	lacks(t, list, "<img")
	lacks(t, x.page("ann", "/search?q="+url.QueryEscape(evil)), "<img")
}

// TestUploadBroken checks that a client that leaves within a file stores nothing of it.
func TestUploadBroken(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.page("ann", "/documents")
	at, err := url.Parse(x.url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		t.Fatal(err)
	}
	cookie := x.client("ann").Jar.Cookies(at)[0]
	field := func(name, value string) string {
		return "--B\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	file := func(name, text string) string {
		return "--B\r\nContent-Disposition: form-data; name=\"files\"; filename=\"" + name + "\"\r\n\r\n" + text
	}
	body := field("collection", "team") + field("access", "everyone") + file("whole.md", "# Whole\n\nText.\r\n") + file("half.md", "# Half\n\nThe first part")
	_, err = fmt.Fprintf(conn, "POST /documents/upload HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nCookie: %s\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: %d\r\n\r\n%s",
		at.Host, x.url, cookie.String(), len(body)+1000, body)
	if err != nil {
		t.Fatal(err)
	}
	names := func() string {
		var all []string
		for d, err := range x.session("ann").Documents(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, documentName(d.URI))
		}
		return strings.Join(all, " ")
	}
	for deadline := time.Now().Add(5 * time.Minute); !strings.Contains(names(), "whole.md"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the first file was not stored")
		}
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	conn.Close()
	if got := names(); strings.Contains(got, "half.md") {
		t.Errorf("documents %s", got)
	}
}

func TestUploadURL(t *testing.T) {
	t.Parallel()
	lacks(t, newSite(t).page("ann", "/documents/upload"), `name="url"`)
	x := newSite(t, func(c *engine.HostConfig, _ *server.Config) {
		c.AllowURL = func(_, address string) bool { return !strings.Contains(address, "forbidden") }
	})
	contains(t, x.page("ann", "/documents/upload"), `name="url"`)
	r := x.upload("ann", "/documents/upload", nil, "collection", "web", "access", "everyone", "url", "https://forbidden.example/page")
	contains(t, r.body, "not stored", "does not read pages")
	r = x.upload("ann", "/documents/upload", nil, "collection", "web", "access", "everyone", "url", "nowhere")
	contains(t, r.body, "not stored", "no address of a page")
}

func TestParseMetadata(t *testing.T) {
	t.Parallel()
	got, wrong := parseMetadata("a = text with = sign\r\nb=7\n\nc = true\nd = \"7\"\ne = [x, \"y z\"]\nf = {\"g\": 1}\n")
	text, _ := json.Marshal(got)
	const want = `{"a":"text with = sign","b":7,"c":true,"d":"7","e":["x","y z"],"f":"{\"g\": 1}"}`
	if wrong != "" || string(text) != want {
		t.Errorf("parseMetadata = %s, %q, want %s", text, wrong, want)
	}
}

// TestUploadPages checks that pages without text are told with the outcome and in the list.
func TestUploadPages(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	var scan pdftest.File
	scan.Page(595, 842).Text(72, 700, 12, false, "The first page of the contract has its text.")
	scan.Page(595, 842).Image(50, 50, 500, 700)
	scan.Page(595, 842).Image(50, 50, 500, 700)
	r := x.upload("ann", "/documents/upload", []file{{"scan.pdf", string(scan.Bytes())}}, "collection", "scans", "access", "everyone")
	contains(t, r.body, "2 of 3 pages have no text", `data-outcome="added"`)
	contains(t, x.page("ann", "/documents?collection=scans"), "2 of 3 pages have no text", ">pdf<")
	r = x.upload("ann", "/documents/upload", []file{{"all.pdf", string((&pdftest.File{Password: "secret"}).Bytes())}}, "collection", "scans", "access", "everyone")
	contains(t, r.body, "not stored")
}

// TestUploadPassword checks that an encrypted document is read with its password, which is not shown
// again.
func TestUploadPassword(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	locked := pdftest.File{Password: "open sesame"}
	locked.Page(595, 842).Text(72, 700, 12, false, "The locked page has text as well.")
	files := []file{{"locked.pdf", string(locked.Bytes())}}
	contains(t, x.upload("ann", "/documents/upload", files, "collection", "locked", "access", "me").body, "Needs a password")
	r := x.upload("ann", "/documents/upload", files, "collection", "locked", "access", "me", "password", "open sesame")
	contains(t, r.body, `data-outcome="added"`)
	lacks(t, r.body, "sesame")
}
