package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/source"
)

// TestProblemKinds checks that each kind of error has a kind of problem, with a page of its own.
func TestProblemKinds(t *testing.T) {
	t.Parallel()
	x := &exchange{server: &Server{config: Config{Log: slog.New(slog.DiscardHandler)}}, r: httptest.NewRequest("GET", "/", nil)}
	names := map[string]bool{}
	for _, k := range ProblemKinds() {
		if k.Name == "" || k.Title == "" || k.Means == "" || k.Status < 400 || names[k.Name] {
			t.Errorf("incomplete or given twice: %+v", k)
		}
		names[k.Name] = true
	}
	for _, k := range assay.Kinds() {
		p := x.problem(fmt.Errorf("read /secret/file: %w", k.Err))
		name := strings.TrimPrefix(p.Type, "/problems/")
		if !names[name] || k.Status < 500 && name != k.Name {
			t.Errorf("the problem of %v is %s", k.Err, p.Type)
		}
		hidden := k.Status == 500 || k.Status == 507 || k.Name == "read_only"
		if hidden != (p.Detail == "") {
			t.Errorf("the detail of %s is %q", k.Name, p.Detail)
		}
	}
	for _, tt := range []struct {
		err    error
		name   string
		status int
	}{
		{errors.New("a bug in /secret/file"), "internal", 500},
		{fmt.Errorf("host: %w", fs.ErrClosed), "closing", 503},
		{&http.MaxBytesError{Limit: 7}, "too_large", 413},
		{&engine.UploadError{Skipped: engine.Skipped{Reason: source.TooLarge}}, "too_large", 413},
		{&engine.UploadError{Skipped: engine.Skipped{Reason: "damaged"}}, "unreadable", 422},
		{os.ErrDeadlineExceeded, "slow", 408},
		{&engine.BusyError{RetryAfter: 1500 * time.Millisecond}, "busy", 503},
		{&engine.QueueError{RetryAfter: time.Second}, "busy", 503},
		{&engine.RunError{Run: "r", Resumable: true, Err: assay.ErrUnavailable}, "unavailable", 502},
		{context.Canceled, "interrupted", 409},
	} {
		p := x.problem(tt.err)
		if p.Type != "/problems/"+tt.name || p.Status != tt.status {
			t.Errorf("the problem of %v is %+v", tt.err, p)
		}
		if strings.Contains(p.Detail, "/secret") {
			t.Errorf("%s leaks %q", tt.name, p.Detail)
		}
	}
	if p := x.problem(&engine.BusyError{RetryAfter: 1500 * time.Millisecond}); p.RetryAfter != 2 {
		t.Errorf("retry_after = %d, want 2", p.RetryAfter)
	}
	if p := x.problem(&engine.RunError{Run: "r", Resumable: true, Err: assay.ErrUnavailable}); p.Run != "r" || !p.Resumable {
		t.Errorf("the problem of a run = %+v", p)
	}
}

// TestErrors checks requests that no route takes, or that it refuses before its work.
func TestErrors(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	get := "DELETE, GET, HEAD, OPTIONS"
	for _, tt := range []struct{ method, path, allow string }{
		{"PUT", "/api/v1/runs/x", get}, {"PATCH", "/api/v1/documents/x", get}, {"POST", "/api/v1/runs/x", get}, {"GET", "/api/v1/ask", "OPTIONS, POST"},
		{"TRACE", "/api/v1/search", "GET, HEAD, OPTIONS, POST"}, {"DELETE", "/healthz", "GET, HEAD, OPTIONS"},
	} {
		p := w.wantProblem("", tt.method, tt.path, "", "method")
		r := w.do("", tt.method, tt.path, "")
		if r.Header.Get("Allow") != tt.allow || p.Status != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: Allow %q, want %q", tt.method, tt.path, r.Header.Get("Allow"), tt.allow)
		}
		if r := w.do("", "OPTIONS", tt.path, ""); r.StatusCode != http.StatusNoContent || r.Header.Get("Allow") != tt.allow {
			t.Errorf("OPTIONS %s: %d %v", tt.path, r.StatusCode, r.Header)
		}
	}
	for _, path := range []string{"/", "/api", "/api/v1", "/api/v1/", "/api/v1/nothing", "/api/v2/ask", "/api/v1/runs/", "/api/v1/runs/x/none"} {
		w.wantProblem("ann", "GET", path, "", "not_found")
	}
	for _, method := range []string{"GET", "POST"} {
		path := map[string]string{"GET": "/api/v1/runs", "POST": "/api/v1/ask"}[method]
		r := w.do("", method, path, "")
		if r.StatusCode != http.StatusUnauthorized || r.Header.Get("WWW-Authenticate") != `Bearer realm="assay"` {
			t.Errorf("%s without a credential: %d %v", path, r.StatusCode, r.Header)
		}
		r = w.do("", method, path, "", header{"Authorization", "Bearer nonsense"})
		if r.StatusCode != http.StatusUnauthorized || !strings.Contains(r.Header.Get("WWW-Authenticate"), `error="invalid_token"`) {
			t.Errorf("%s with a wrong credential: %d %v", path, r.StatusCode, r.Header)
		}
	}
	r := w.do("rob", "PUT", "/api/v1/collections/hr", "{}")
	if r.StatusCode != http.StatusForbidden || !strings.Contains(r.Header.Get("WWW-Authenticate"), `scope="ingest"`) {
		t.Errorf("without the scope: %d %v", r.StatusCode, r.Header)
	}
	for _, accept := range []string{"text/html", "image/*", "application/json;q=0", "application/xml, text/*"} {
		w.wantProblem("ann", "GET", "/api/v1/runs", "", "not_acceptable", header{"Accept", accept})
	}
	for _, accept := range []string{"*/*", "application/*", "text/html, */*;q=0.1", "application/json; charset=utf-8", "application/problem+json", "nonsense, application/json"} {
		want[RunPage](w, "ann", "GET", "/api/v1/runs", "", http.StatusOK, header{"Accept", accept})
	}
	w.wantProblem("ann", "GET", "/api/v1/runs/x/events", "", "not_acceptable", header{"Accept", "application/json"})
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "json", ""} {
		w.wantProblem("ann", "POST", "/api/v1/ask", `{"question": "x"}`, "media_type", header{"Content-Type", media})
	}
	w.wantProblem("ann", "POST", "/api/v1/ask", `{"question": "x"}`, "media_type", header{"Content-Encoding", "gzip"})
	w.wantProblem("ann", "POST", "/api/v1/ask", `{"question": "`+strings.Repeat("x", DefaultMaxBody)+`"}`, "too_large")
	w.wantProblem("ann", "DELETE", "/api/v1/runs/x", `{"reason": "a body"}`, "invalid")
	want[ProblemKind](w, "", "GET", "/problems/quota", "", http.StatusOK)
	w.wantProblem("", "GET", "/problems/none", "", "not_found")
	if log := w.log.String(); strings.Contains(log, "request failed") {
		t.Errorf("the log has failures: %s", log)
	}
}

// TestBodies checks the problems of JSON bodies.
func TestBodies(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	for _, tt := range []struct {
		body string
		want []FieldProblem
	}{
		{`{"question": 7}`, []FieldProblem{{Pointer: "/question", Detail: "it is a number, want a string"}}},
		{`{"question": "a", "question": "b"}`, []FieldProblem{{Pointer: "/question", Detail: "it is given twice"}}},
		{`{"question": "a", "Question": "b"}`, []FieldProblem{{Pointer: "/Question", Detail: "unknown field"}}},
		{`{"question": "a", "history": [{"question": "b"}, {"question": "c", "a/b~": 1}]}`, []FieldProblem{{Pointer: "/history/1/a~1b~0", Detail: "unknown field"}}},
		{`{"question": "a", "budget": {"calls": 1.5, "tokens": "x", "wall_ns": 1}}`, []FieldProblem{{Pointer: "/budget/calls", Detail: "it is a number, want an integer in range"}, {Pointer: "/budget/tokens", Detail: "it is a string, want an integer in range"}}},
		{`{"question": "a", "collections": "hr"}`, []FieldProblem{{Pointer: "/collections", Detail: "it is a string, want a list"}}},
		{`{"question": "a", "collections": ["hr", 2]}`, []FieldProblem{{Pointer: "/collections/1", Detail: "it is a number, want a string"}}},
		{`{"question": "a"} x`, nil}, {`{"question": "a"}{}`, nil}, {`{"question": "a"`, nil}, {``, nil}, {`[]`, nil}, {`"a"`, nil}, {"{\"question\": \"\xff\"}", nil},
		{strings.Repeat(`[`, 100_000), nil}, {`{"question": ` + strings.Repeat(`[`, 200) + strings.Repeat(`]`, 200) + `}`, nil},
	} {
		p := w.wantProblem("ann", "POST", "/api/v1/ask", tt.body, "invalid", header{"Content-Type", typeJSON})
		if diff := cmp.Diff(tt.want, p.Errors); tt.want != nil && diff != "" || len(p.Errors) == 0 {
			t.Errorf("%.100s (-want +got):\n%s", tt.body, diff)
		}
	}
	filter := w.wantProblem("ann", "POST", "/api/v1/search", `{"text": "a", "filter": {"like": 1}}`, "invalid")
	if len(filter.Errors) != 1 || filter.Errors[0].Pointer != "/filter" {
		t.Errorf("a wrong filter: %+v", filter)
	}
	want[engine.SearchReport](w, "ann", "POST", "/api/v1/search", `{"text": "a", "filter": null, "rewrites": null}`, http.StatusOK)
}

// TestListsAreNotNull checks that no body has a null where a list belongs, even without any data.
func TestListsAreNotNull(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	check := func(path string) {
		t.Helper()
		r := w.do("ann", "GET", path, "")
		if r.StatusCode != http.StatusOK || strings.Contains(r.body, "null") {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	for _, path := range []string{"runs", "documents", "documents/failed", "collections", "search?q=leave"} {
		check("/api/v1/" + path)
	}
	o := w.put("ann", "hr", "leave.md", leaveText, http.StatusCreated)
	run := w.ask("ann", question).Run
	w.ask("ann", "What is the capital of Peru?")
	for _, path := range []string{"runs", "documents", "collections", "search?q=leave", "documents/" + o.Documents[0].ID, "runs/" + run, "runs/" + run + "/diff/" + run} {
		check("/api/v1/" + path)
	}
}

// TestHostileClients checks clients that lie about their bodies.
func TestHostileClients(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	head := "PUT " + hrPath + "/a.md HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + w.keys["ann"] + "\r\nContent-Type: text/markdown\r\n"
	for _, tt := range []struct{ name, request, status string }{
		{"a body shorter than it says", head + "Content-Length: 100\r\n\r\n# Half", "400"},
		{"a length that is no number", head + "Content-Length: many\r\n\r\n# x", "400"},
		{"two lengths", head + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n# xx", "400"},
		{"a negative length", head + "Content-Length: -1\r\n\r\n# x", "400"},
		{"a length over the limit", head + "Content-Length: 99999999999\r\n\r\n# x", "4"},
		{"chunks that break off", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n# abc\r\n", "400"},
		{"a chunk of nonsense", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n# abc\r\n", "400"},
		{"a length and chunks", head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n# x\r\n0\r\n\r\n", ""},
	} {
		conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, tt.request); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(conn) // the server may reset the connection
		conn.Close()
		if !bytes.HasPrefix(answer, []byte("HTTP/1.1 "+tt.status)) && len(answer) > 0 {
			t.Errorf("%s: %s", tt.name, answer)
		}
	}
	for _, d := range want[DocumentPage](w, "ann", "GET", "/api/v1/documents", "", http.StatusOK).Documents {
		if d.SizeBytes != 3 { // the one that was complete
			t.Errorf("%+v is stored", d)
		}
	}
}

// fuzzed is a struct with all forms of JSON.
type fuzzed struct {
	Text   string            `json:"text"`
	Number int               `json:"number"`
	Real   *float64          `json:"real"`
	Flag   bool              `json:"flag"`
	List   []fuzzed          `json:"list"`
	Map    map[string]string `json:"map"`
	Raw    json.RawMessage   `json:"raw"`
	Filter assay.Filter      `json:"filter"`
	Time   time.Time         `json:"time"`
	Bytes  []byte            `json:"bytes"`
	Any    any               `json:"any"`
}

// FuzzDecodeJSON checks that what decodeJSON accepts is what package json reads, and that it refuses with
// assay.ErrInvalid only.
func FuzzDecodeJSON(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"text": "a", "number": 1, "real": 1.5, "flag": true, "list": [{}], "map": {"a": "b"}, "raw": {"x": [1]}, "filter": {}, "time": "2026-01-01T00:00:00Z", "bytes": "YQ==", "any": [null]}`,
		`{"list": [{"list": [{"text": 1}]}]}`, `{"map": {"a": 1}}`, `{"text": "\ud800"}`, `null`, `[1]`, "{\"text\": \"\xff\"}", `{"a": {"b": 1, "b": 2}}`, ` {"raw": 1} `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want fuzzed
		err := decodeJSON(data, &got)
		if err != nil {
			if !errors.Is(err, assay.ErrInvalid) || len(err.(fieldErrors)) == 0 || len(err.(fieldErrors)) > maxProblems {
				t.Errorf("%v", err)
			}
			return
		}
		if err := json.Unmarshal(data, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("decodeJSON(%q) = %+v, json: %+v, %v", data, got, want, err)
		}
	})
}

// FuzzCursor checks that no cursor but its own is accepted by a list.
func FuzzCursor(f *testing.F) {
	x := &exchange{route: Route{Name: "list"}, r: httptest.NewRequest("GET", "/list?a=b", nil)}
	own, err := x.cursor(documentPlace{"c", "u"})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{own, own + "A", own[1:], "", "AAAA", "====", strings.Repeat("A", 99)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p documentPlace
		if err := x.place(text, &p); err != nil && !errors.Is(err, assay.ErrInvalid) {
			t.Error(err)
		} else if err == nil && text != own && text != "" {
			t.Errorf("the cursor %q is accepted as %+v", text, p)
		}
	})
}

// FuzzNegotiate checks that negotiation chooses an offer or none.
func FuzzNegotiate(f *testing.F) {
	for _, seed := range []string{"*/*", "application/json;q=0.5, text/event-stream", "text/*;q=x", ";;;", "a/b/c, */*;q=1e9", "\x00"} {
		f.Add(seed)
	}
	offers := []string{typeJSON, typeMarkdown, typeEvents}
	f.Fuzz(func(t *testing.T, accept string) {
		media, err := negotiate([]string{accept}, offers)
		if err == nil != (media != "") || err != nil && !errors.Is(err, errNotAcceptable) {
			t.Errorf("negotiate(%q) = %q, %v", accept, media, err)
		}
		acceptsGzip(http.Header{"Accept-Encoding": {accept}})
		matches([]string{accept}, `"tag"`)
	})
}

// FuzzForm checks that a form of any bytes ends with outcomes or an error of the client.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.md\"\r\n\r\n# A\r\n--b--\r\n",
		"--b\r\nContent-Disposition: form-data; name=\"metadata\"\r\n\r\n{}\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../a\"\r\n\r\nx\r\n--b--\r\n",
		"--b\r\n\r\n--b--", "--b--\r\n", "", "--b\r\nContent-Disposition: attachment\r\n\r\n\r\n--b--\r\n",
	} {
		f.Add([]byte(seed))
	}
	w := newSite(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := httptest.NewRequest("POST", hrPath, bytes.NewReader(data))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		r.Header.Set("Authorization", "Bearer "+w.keys["ann"])
		out := httptest.NewRecorder()
		w.handler.ServeHTTP(out, r)
		if out.Code != http.StatusOK && (out.Code < 400 || out.Code >= 500) {
			t.Errorf("%q: %d %s", data, out.Code, out.Body)
		}
	})
}

// TestDecodeJSONWork checks that the work for a body is in proportion to its size, however deep its
// values lie and however long its names are.
func TestDecodeJSONWork(t *testing.T) {
	const size = 1 << 18
	for name, value := range map[string]string{
		"a deep list":        strings.Repeat("[", 60) + strings.Repeat("[],", size/3) + "[]" + strings.Repeat("]", 60),
		"a long list":        "[" + strings.Repeat("1,", size/2) + "1]",
		"a list in a member": `{"` + strings.Repeat("k", size/2) + `": [` + strings.Repeat("1,", size/4) + "1]}",
	} {
		var out struct {
			Value json.RawMessage `json:"value"`
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := decodeJSON([]byte(`{"value": `+value+`}`), &out)
		runtime.ReadMemStats(&after)
		if err != nil || string(out.Value) != value {
			t.Errorf("%s: %v", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 100*size {
			t.Errorf("%s of %d bytes: %d bytes are allocated", name, len(value), used)
		}
	}
}
