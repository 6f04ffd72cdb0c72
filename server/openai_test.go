package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

var updateOpenAI = flag.Bool("update-openai", false, "write testdata/openai and the tables in docs/openai.md")

// An openaiWorld is a server with the documents of openaiPapers.
type openaiWorld struct {
	*httptest.Server
	server  *Server
	session *engine.Session
}

var openaiPapers = map[string]string{
	"leave.md": "# Leave\n\n## Carrying over\n\nUp to five days of unused leave may be carried over to the next year. Days that are carried over expire on 31 March.\n",
	"emoji.md": "# Café 🎉\r\n\r\nThe opening party 🎉 in the cafe\u0301 begins at nine in the evening.\r\n\r\nThe code word for the door is مرحبا or 🗝️ of course.\r\n",
}

const leaveQuestion = "How many days of unused leave may be carried over to the next year?"

// An openaiEncoders has one encoder.
type openaiEncoders struct{ llm.Embedder }

func (e openaiEncoders) Default() string { return e.Model() }

func (e openaiEncoders) Open(context.Context, string) (llm.Embedder, error) { return e.Embedder, nil }

// openOpenAI starts a server. change may be nil.
func openOpenAI(t *testing.T, change func(*engine.HostConfig)) *openaiWorld {
	t.Helper()
	var runs atomic.Int64
	c := engine.HostConfig{Config: engine.Config{
		Dir: t.TempDir(), NoBackground: true, Encoders: openaiEncoders{&llmtest.Hashing{Name: "hashing/8", Dimensions: 8}},
		NewID: func() string { return fmt.Sprintf("run%d", runs.Add(1)) },
	}, AllowLocal: true}
	if change != nil {
		change(&c)
	}
	host, err := engine.OpenHost(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	grant := identity.Local("default")
	x := &openaiWorld{}
	if x.session, err = host.Session(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	for name, text := range openaiPapers {
		in := engine.IngestRequest{Paths: []string{"-"}, Stdin: strings.NewReader(text), StdinName: name, Collection: "handbook", Wait: true}
		if _, err := x.session.Ingest(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(Config{Host: host, Local: grant, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	x.server, x.Server = s, httptest.NewServer(s)
	t.Cleanup(x.Close)
	return x
}

// do sends a request and returns the response with its whole body. An empty body is a GET.
func (x *openaiWorld) do(t *testing.T, path, body string) (*http.Response, string) {
	t.Helper()
	method := "GET"
	if body != "" {
		method = "POST"
	}
	req, err := http.NewRequestWithContext(t.Context(), method, x.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer any")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	r, err := x.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(data)
}

func chatBody(model, question, more string) string {
	data, err := json.Marshal(question)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%s}]%s}`, model, data, more)
}

// reviewed makes every answer wait for a review.
func (x *openaiWorld) reviewed(t *testing.T) {
	t.Helper()
	if err := x.session.SetPolicy(t.Context(), review.Policy{Name: "all", Always: true}, "a test"); err != nil {
		t.Fatal(err)
	}
}

var changing = regexp.MustCompile(`"(?:created|created_at)":\d+`)

// started are the messages that a step has started, of which a follower may miss some.
var started = regexp.MustCompile(`(?m)^(?:: |data: .*"reasoning_content":")(?:searching |writing|verifying |looking ).*\n\n`)

// golden compares a text with testdata/openai/NAME.txt, or writes it.
func (x *openaiWorld) golden(t *testing.T, name, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, strings.TrimPrefix(x.URL, "http://"), "HOST")
	got = strings.ReplaceAll(started.ReplaceAllString(got, ""), "\n\n:\n\n", "\n\n") // the comments of a slow machine, see TestOpenAIKeepAlive
	got = changing.ReplaceAllStringFunc(got, func(m string) string { return m[:strings.IndexByte(m, ':')] + ":0" })
	file := filepath.Join("testdata", "openai", name+".txt")
	if *updateOpenAI {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; run go test ./server -run OpenAI -update-openai (-want +got):\n%s", file, diff)
	}
}

// TestOpenAIGolden compares whole exchanges with testdata/openai.
func TestOpenAIGolden(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		requests [][2]string // paths and bodies
		reviewed bool
	}{
		{name: "models", requests: [][2]string{{"/v1/models", ""}, {"/v1/models/assay%2Fhandbook:quick", ""}, {"/v1/models/gpt-4", ""}}},
		{name: "chat", requests: [][2]string{{"/v1/chat/completions", chatBody("assay", leaveQuestion, `,"temperature":0,"unknown":[{}]`)}}},
		{name: "chat-stream", requests: [][2]string{{"/v1/chat/completions", chatBody("assay/handbook:static", leaveQuestion, `,"stream":true,"stream_options":{"include_usage":true}`)}}},
		{name: "chat-unicode", requests: [][2]string{{"/v1/chat/completions", chatBody("assay", "When does the opening party begin?", `,"stream":true`)}}},
		{name: "chat-not-found", requests: [][2]string{{"/v1/chat/completions", chatBody("assay:quick", "What is the capital of Peru?", `,"stream":true`)}}},
		{name: "chat-pending", reviewed: true, requests: [][2]string{
			{"/v1/chat/completions", chatBody("assay", leaveQuestion, `,"stream":true`)},
			{"/v1/responses/resp_run1", ""},
		}},
		{name: "response", requests: [][2]string{
			{"/v1/responses", `{"model":"assay","input":[{"role":"developer","content":"Be brief."},{"type":"message","role":"user","content":[{"type":"input_text","text":"` + leaveQuestion + `"}]}]}`},
			{"/v1/responses", `{"model":"assay","input":"And when do they expire?","previous_response_id":"resp_run1"}`},
			{"/v1/responses/resp_run2?include[]=file_search_call.results", ""},
		}},
		{name: "response-stream", requests: [][2]string{{"/v1/responses", `{"model":"assay","input":"` + leaveQuestion + `","stream":true}`}}},
		{name: "response-pending", reviewed: true, requests: [][2]string{{"/v1/responses", `{"model":"assay","input":"` + leaveQuestion + `","stream":true}`}}},
		{name: "embeddings", requests: [][2]string{
			{"/v1/embeddings", `{"model":"assay-embedding","input":"a text"}`},
			{"/v1/embeddings", `{"model":"hashing/8","input":["a text","another"],"encoding_format":"base64","dimensions":8}`},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			x := openOpenAI(t, nil)
			if test.reviewed {
				x.reviewed(t)
			}
			var b strings.Builder
			for _, r := range test.requests {
				response, body := x.do(t, r[0], r[1])
				fmt.Fprintf(&b, "> %s\n", strings.TrimSpace(r[0]+" "+r[1]))
				fmt.Fprintf(&b, "< %d %s\n%s\n", response.StatusCode, response.Header.Get("Content-Type"), body)
			}
			x.golden(t, test.name, b.String())
		})
	}
}

// TestOpenAIErrors checks the form and status of errors.
func TestOpenAIErrors(t *testing.T) {
	t.Parallel()
	x := openOpenAI(t, nil)
	const chatPath, responsePath, embedPath = "/v1/chat/completions", "/v1/responses", "/v1/embeddings"
	messages := func(list string) string { return `{"model":"assay","messages":` + list + `}` }
	for _, test := range []struct {
		path, body string
		status     int
		param      string
	}{
		{"/v1/nothing", "", 404, ""},
		{"/v1/models/assay/none", "", 404, "model"},
		{"/v1/models/assay/", "", 404, "model"},
		{chatPath, "nonsense", 400, ""},
		{chatPath, "[]", 400, ""},
		{chatPath, "null", 400, ""},
		{chatPath, `{"model":7}`, 400, "model"},
		{chatPath, `{"model":"assay"}`, 400, "messages"},
		{chatPath, chatBody("assay/none", "A question?", ""), 404, "model"},
		{chatPath, chatBody("assay:quick:quick", "A question?", ""), 404, "model"},
		{chatPath, chatBody("assay:quick:static", "A question?", ""), 404, "model"},
		{chatPath, chatBody("assay/%zz", "A question?", ""), 404, "model"},
		{chatPath, chatBody("gpt-4", "A question?", ""), 404, "model"},
		{chatPath, chatBody("assay", "  ", ""), 400, "messages"},
		{chatPath, chatBody("assay", "A question?", `,"reasoning_effort":"much"`), 400, "reasoning_effort"},
		{chatPath, chatBody("assay", "A question?", `,"stream_options":{"include_usage":"yes"}`), 400, "stream_options.include_usage"},
		{chatPath, chatBody("assay", "A question?", `,"response_format":{"type":"json_schema","json_schema":{}}`), 400, "response_format"},
		{chatPath, messages(`[7]`), 400, "messages[0]"},
		{chatPath, messages(`[{"role":7}]`), 400, "messages[0]"},
		{chatPath, messages(`[{"role":"owner","content":"x"}]`), 400, "messages[0].role"},
		{chatPath, messages(`[{"role":"user","content":7}]`), 400, "messages[0].content"},
		{chatPath, messages(`[{"role":"user","content":[{"type":"text"}]}]`), 400, "messages[0].content[0]"},
		{chatPath, messages(`[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:"}}]}]`), 400, "messages[0].content[1].type"},
		{chatPath, messages(`[{"role":"user","content":[{"type":"input_audio"}]}]`), 400, "messages[0].content[0].type"},
		{chatPath, messages(`[{"role":"user","content":[{"type":"file"}]}]`), 400, "messages[0].content[0].type"},
		{chatPath, messages(`[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]`), 400, "messages"},
		{chatPath, messages(`[{"role":"user","content":"x"},{"role":"tool","content":"y"}]`), 400, "messages"},
		{chatPath, messages(`[{"role":"system","content":"x"}]`), 400, "messages"},
		{chatPath, strings.Repeat(" ", DefaultMaxBody+1), 413, ""},
		{chatPath, "{\"model\":\"\xff\"}", 400, ""},
		{"/v1/models", "{}", 405, ""},
		{responsePath, `{"model":"assay"}`, 400, "input"},
		{responsePath, `{"model":"assay","input":7}`, 400, "input"},
		{responsePath, `{"model":"assay","input":[{"type":"function_call_output","output":"x"}]}`, 400, "input"},
		{responsePath, `{"model":"assay","input":[{"role":"user","content":[{"type":"input_image"}]}]}`, 400, "input[0].content[0].type"},
		{responsePath, `{"model":"assay","input":"And then?","previous_response_id":"resp_none"}`, 404, ""},
		{responsePath, `{"model":"assay","input":"And then?","previous_response_id":"resp_"}`, 404, "previous_response_id"},
		{responsePath, `{"model":"assay","input":""}`, 400, "input"},
		{responsePath, `{"model":"assay","input":[{"role":"user","content":"x"},{"role":"user","content":"y"}],"previous_response_id":"resp_none"}`, 400, "input"},
		{responsePath, `{"model":"assay","input":"x","reasoning":{"effort":"much"}}`, 400, "reasoning.effort"},
		{"/v1/responses/resp_none", "", 404, ""},
		{"/v1/responses/resp_none/cancel", "{}", 404, ""},
		{embedPath, `{"model":"assay-embedding"}`, 400, "input"},
		{embedPath, `{"input":"x"}`, 400, "model"},
		{embedPath, `{"model":"other","input":"x"}`, 404, "model"},
		{embedPath, `{"model":"assay-embedding","input":[]}`, 400, "input"},
		{embedPath, `{"model":"assay-embedding","input":[1,2]}`, 400, "input"},
		{embedPath, `{"model":"assay-embedding","input":[[1],[2]]}`, 400, "input"},
		{embedPath, `{"model":"assay-embedding","input":{}}`, 400, "input"},
		{embedPath, `{"model":"assay-embedding","input":"x","dimensions":3}`, 400, "dimensions"},
		{embedPath, `{"model":"assay-embedding","input":"x","encoding_format":"int8"}`, 400, "encoding_format"},
		{embedPath, `{"model":"assay-embedding","input":"x","input_type":"other"}`, 400, "input_type"},
		{embedPath, `{"model":"assay-embedding","input":"  "}`, 400, "input"},
		{embedPath, `{"model":"assay-embedding","input":["x",null]}`, 400, "input"},
		{embedPath, `{"model":"assay-embedding","input":["x"` + strings.Repeat(`,"x"`, engine.MaxEmbedTexts) + `]}`, 400, "input"},
	} {
		r, body := x.do(t, test.path, test.body)
		var got struct {
			Error *openaiError `json:"error"`
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.Error == nil || got.Error.Message == "" || got.Error.Type == "" {
			t.Errorf("%s %.100s: %d %s", test.path, test.body, r.StatusCode, body)
			continue
		}
		param := ""
		if got.Error.Param != nil {
			param = *got.Error.Param
		}
		if r.StatusCode != test.status || param != test.param {
			t.Errorf("%s %.100s: %d, param %q, want %d, %q: %s", test.path, test.body, r.StatusCode, param, test.status, test.param, got.Error.Message)
		}
	}
}

// TestOpenAICredentials checks that a server without identities ignores the placeholder that OpenAI's
// clients must send, and nothing else.
func TestOpenAICredentials(t *testing.T) {
	t.Parallel()
	x := openOpenAI(t, nil)
	for _, test := range []struct {
		path, name, value string
		status            int
	}{
		{"/v1/models", "Authorization", "Bearer sk-anything", 200},
		{"/v1/models", "authorization", "bearer x", 200},
		{"/v1/models", "Authorization", "Bearer eyJhbGciOiJub25lIn0.e30.x", 401},
		{"/v1/models", "Authorization", "Bearer eyJhbGciOiJub25lIn0.e30.x.y.z", 401},
		{"/v1/models", "Authorization", "Bearer assay_key_1234", 401},
		{"/v1/models", "Authorization", "Bearer ", 401},
		{"/v1/models", "Authorization", "Basic eDp4", 401},
		{"/v1/models", "X-API-Key", "sk-anything", 401},
		{"/v1/models?api_key=x", "Accept", "*/*", 401},
		{"/v1/nothing", "Authorization", "Bearer x", 404},
		{"/api/v1/runs/none/events", "Authorization", "Bearer x", 401},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", x.URL+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(test.name, test.value)
		r, err := x.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != test.status {
			t.Errorf("%s with %s: %s: %d, want %d", test.path, test.name, test.value, r.StatusCode, test.status)
		}
	}
}

// TestOpenAILimits checks the responses over a limit.
func TestOpenAILimits(t *testing.T) {
	t.Parallel()
	for measure, want := range map[limit.Measure][2]string{
		limit.RequestsPerDay:    {"insufficient_quota", "false"},
		limit.RequestsPerMinute: {"rate_limit_exceeded", ""},
	} {
		x := openOpenAI(t, nil)
		if err := x.session.SetLimits(t.Context(), limit.Tenant, limit.Limits{measure: 1}, "a test"); err != nil {
			t.Fatal(err)
		}
		var r *http.Response
		var body string
		day := utcDay()
		for range 2 {
			r, body = x.do(t, "/v1/chat/completions", chatBody("assay", leaveQuestion, ""))
		}
		if utcDay() != day { // that may have been the first one of the next day
			r, body = x.do(t, "/v1/chat/completions", chatBody("assay", leaveQuestion, ""))
		}
		got := [2]string{"", r.Header.Get("X-Should-Retry")}
		var e struct{ Error openaiError }
		if err := json.Unmarshal([]byte(body), &e); err == nil && e.Error.Code != nil {
			got[0] = *e.Error.Code
		}
		if got != want || r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %q, Retry-After %q, want 429 %q: %s", measure, r.StatusCode, got, r.Header.Get("Retry-After"), want, body)
		}
	}
}

// TestOpenAIErrorOf checks the statuses of errors that requests in a test do not have.
func TestOpenAIErrorOf(t *testing.T) {
	t.Parallel()
	x := &exchange{server: &Server{config: Config{Log: slog.New(slog.DiscardHandler)}, drain: t.Context()}}
	x.r = httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", nil)
	for _, test := range []struct {
		err    error
		status int
		kind   string
		retry  string
		shown  bool
	}{
		{assay.ErrForbidden, 403, "permission_error", "", true},
		{assay.ErrStopped, 503, "server_error", "false", true},
		{assay.ErrSuspended, 409, "invalid_request_error", "", true},
		{&engine.BusyError{RetryAfter: time.Second}, 503, "server_error", "", true},
		{&engine.RunError{Run: "run1", Err: assay.ErrUnavailable}, 502, "server_error", "false", true},
		{errors.New("a secret path"), 500, "server_error", "", false},
	} {
		w := httptest.NewRecorder()
		x.w = w
		failOpenAI(x, test.err)
		shown := strings.Contains(w.Body.String(), test.err.Error())
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.kind) || w.Header().Get("X-Should-Retry") != test.retry || shown != test.shown {
			t.Errorf("%v: %d, retry %q: %s", test.err, w.Code, w.Header().Get("X-Should-Retry"), w.Body)
		}
	}
}

// TestOpenAIParameters checks every parameter of the tables: a wrong type is an error that names it, a
// refused one too, and those that are honoured or ignored are no error.
func TestOpenAIParameters(t *testing.T) {
	t.Parallel()
	samples := map[string]string{"string": `"x"`, "number": "3", "boolean": "true", "object": `{"x":1}`, "array": `["x"]`}
	for _, table := range [][]parameter{chatParameters, responseParameters, embedParameters} {
		for _, p := range table {
			for kind, value := range samples {
				var out struct{}
				body := fmt.Sprintf(`{%q:%s}`, p.name, value)
				skipped, err := decodeParameters([]byte(body), table, &out)
				wrong, _ := errors.AsType[*parameterError](err)
				fits := slices.Contains(strings.Split(p.types, "|"), kind)
				wantErr := !fits || p.use == refused
				switch {
				case (wrong != nil) != wantErr, wrong != nil && wrong.param != p.name, wrong == nil && err != nil:
					t.Errorf("%s: %v", body, err)
				case !wantErr && slices.Contains(skipped, p.name) != (p.use == ignored):
					t.Errorf("%s: ignored %q", body, skipped)
				}
			}
			for _, value := range append(slices.Clone(p.allowed), "null") {
				var out struct{}
				if _, err := decodeParameters([]byte(fmt.Sprintf(`{%q: %s }`, p.name, value)), table, &out); err != nil {
					t.Errorf("%s: %s is refused: %v", p.name, value, err)
				}
			}
		}
	}
	for typ, table := range map[reflect.Type][]parameter{reflect.TypeFor[chatRequest](): chatParameters, reflect.TypeFor[responseRequest](): responseParameters, reflect.TypeFor[embedRequest](): embedParameters} {
		var read, listed []string
		for i := range typ.NumField() {
			if name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ","); name != "" {
				read = append(read, name)
			}
		}
		for _, p := range table {
			if p.use == honoured {
				listed = append(listed, p.name)
			}
		}
		slices.Sort(read)
		slices.Sort(listed)
		if diff := cmp.Diff(listed, read); diff != "" {
			t.Errorf("%v: the fields differ from the honoured parameters (-table +fields):\n%s", typ, diff)
		}
	}
}

// TestOpenAIDocs compares the tables of parameters in docs/openai.md with those of the program.
func TestOpenAIDocs(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "docs", "openai.md")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, table := range map[string][]parameter{"chat": chatParameters, "responses": responseParameters, "embeddings": embedParameters} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
		before, rest, found := strings.Cut(text, begin)
		got, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no place for the table of %s", file, name)
		}
		want := parameterTable(table)
		if *updateOpenAI {
			text = before + begin + want + end + after
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s differs; run go test ./server -run OpenAI -update-openai (-want +got):\n%s", file, diff)
		}
	}
	if *updateOpenAI {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// parameterTable writes a table in Markdown.
func parameterTable(table []parameter) string {
	var b strings.Builder
	b.WriteString("| parameter | use | note |\n| --- | --- | --- |\n")
	for _, p := range table {
		note := p.note
		if len(p.allowed) > 0 {
			note += "; allowed: `" + strings.Join(p.allowed, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.name, p.use, strings.TrimPrefix(note, "; "))
	}
	return b.String()
}

// TestOpenAIOffsets checks that the indices of citations count code points.
func TestOpenAIOffsets(t *testing.T) {
	t.Parallel()
	for _, parts := range [][3]string{
		{"", "Plain words.", " [1]"},
		{"🎉🎉 ", "A party 🎉.", " [1]"},
		{"مرحبا ", "بالعالم", " [1]"},
		{"cafe\u0301 ", "re\u0301sume\u0301", " [1]"},
		{"one\r\ntwo\r\n", "three\r\nfour", " [1]"},
		{"👩‍👩‍👧 ", "🇩🇪 flags", " [1]"},
		{"\xff ", "after a byte that is no character", " [1]"},
	} {
		text := strings.Join(parts[:], "")
		a := assay.Answer{Status: assay.Answered, Text: text,
			Claims:    []assay.Claim{{Start: len(parts[0]), End: len(parts[0]) + len(parts[1]), Citations: []int{1}}},
			Citations: []assay.Citation{{Number: 1, Document: "d", URI: "https://example.com/d"}, {Number: 1, Document: "d", URI: "https://example.com/d", Start: 9}},
		}
		x := &exchange{r: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)}
		data, err := json.Marshal(x.completionOf(a))
		if err != nil {
			t.Fatal(err)
		}
		var got chatCompletion
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		m := got.Choices[0].Message
		if len(m.Annotations) != 1 {
			t.Fatalf("%q has %d annotations, want one for a claim and a source", text, len(m.Annotations))
		}
		c := m.Annotations[0].URLCitation
		if part := string([]rune(m.Content)[c.StartIndex:c.EndIndex]); part != parts[1] {
			t.Errorf("%q: the citation is of %q, want %q", text, part, parts[1])
		}
	}
}

func (x *exchange) completionOf(a assay.Answer) chatCompletion {
	return chatReply{ID: "chatcmpl-run1", Model: "assay"}.completion(x, a, nil)
}

// TestOpenAICitationURL checks that a link leads to the source itself, if that is on the web, or to
// this server.
func TestOpenAICitationURL(t *testing.T) {
	t.Parallel()
	x := &exchange{r: httptest.NewRequestWithContext(t.Context(), "GET", "https://assay.example.com/v1/models", nil)}
	for want, c := range map[string]assay.Citation{
		"https://example.com/a":                            {Document: "d1", URI: "https://example.com/a"},
		"https://example.com/a.pdf#page=2":                 {Document: "d1", URI: "https://example.com/a.pdf", Link: "https://example.com/a.pdf#page=2"},
		"https://assay.example.com/api/v1/documents/d1":    {Document: "d1", URI: "/srv/a.pdf", Link: "file:///srv/a.pdf#page=2"},
		"https://assay.example.com/api/v1/documents/d2":    {Document: "d2", URI: "javascript:alert(1)"},
		"https://assay.example.com/api/v1/documents/..%2F": {Document: "../", URI: "x"},
		"": {Document: "", URI: "s3://bucket/key", Origin: assay.FromService},
	} {
		if got := x.citationURL(c); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

// TestOpenAIStatuses compares the text, finish reason and metadata of every status with testdata.
func TestOpenAIStatuses(t *testing.T) {
	t.Parallel()
	claim := []assay.Claim{{End: 11, Verdict: assay.Supported, Score: 1, Citations: []int{1}}}
	cited := []assay.Citation{{Number: 1, Document: "d1", Title: "A title", URI: "https://example.com/a", Quote: "It is blue."}}
	answers := []assay.Answer{
		{Status: assay.Answered, Reason: assay.ReasonSupported, Text: "It is blue. [1]", Claims: claim, Citations: cited},
		{Status: assay.Incomplete, Reason: assay.ReasonPartsOpen, Text: "It is blue. [1]", Claims: claim, Citations: cited, Justification: "a part of the question is open", Missing: []assay.Gap{{Text: "its\nsize"}, {Text: strings.Repeat("größe ", 200)}}},
		{Status: assay.Incomplete, Reason: assay.ReasonAmbiguous, AskBack: "Do you mean the ship or the sky?", Readings: []string{"the ship", "the sky"}},
		{Status: assay.Conflicting, Reason: assay.ReasonDisagree, Text: "It is blue. [1] It is red. [2]", Claims: claim, Citations: cited, Justification: "two documents contradict each other"},
		{Status: assay.NotFound, Reason: assay.ReasonNoHits, Searched: []assay.Searched{{Query: "its colour"}, {Query: "its\ncolour", Hits: 3, TopRelevance: 0.5, Collections: []string{"ships"}}}},
		{Status: assay.NotFound, Reason: assay.ReasonNoHits, Text: "Not found in these documents."},
		{Status: assay.PendingReview, Reason: assay.ReasonReview, Text: "The answer waits for a person's review."},
		{Status: assay.Rejected, Reason: assay.ReasonReviewer, Text: "A reviewer rejected the answer: wrong colour"},
		{Status: assay.Rejected, Reason: assay.ReasonWithheld, Justification: "The answer was withheld."},
		{Status: "new"},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	x := &exchange{r: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)}
	for _, a := range answers {
		a.Run, a.Understood = "run1", "What is its colour?"
		c := x.completionOf(a)
		for key, value := range c.Metadata {
			if utf8.RuneCountInString(value) > 512 || len(key) > 64 || len(c.Metadata) > 16 {
				t.Errorf("metadata %s of %d characters, %d members", key, utf8.RuneCountInString(value), len(c.Metadata))
			}
		}
		if err := e.Encode(c); err != nil {
			t.Fatal(err)
		}
		o := newResponse("run1", engine.Request{})
		o.finish(x, a, nil)
		if err := e.Encode(map[string]any{"response": o.Status, "incomplete_details": o.IncompleteDetails}); err != nil {
			t.Fatal(err)
		}
	}
	(&openaiWorld{Server: &httptest.Server{URL: "http://example.com"}}).golden(t, "statuses", b.String())
}

// FuzzPieces checks that the pieces of a text are the text, and cut no character.
func FuzzPieces(f *testing.F) {
	f.Add("")
	f.Add(strings.Repeat("word ", 50))
	f.Add(strings.Repeat("🎉", 50))
	f.Add(strings.Repeat("e\u0301\r\n", 50) + "\xff")
	f.Fuzz(func(t *testing.T, text string) {
		list := pieces(text)
		if strings.Join(list, "") != text {
			t.Errorf("%q is cut into %q", text, list)
		}
		for _, p := range list {
			if p == "" || utf8.ValidString(text) && !utf8.ValidString(p) {
				t.Errorf("%q has the piece %q", text, p)
			}
		}
	})
}

// TestOpenAIModels checks that the names of models are read as they are written.
func TestOpenAIModels(t *testing.T) {
	t.Parallel()
	for _, m := range []askModel{
		{}, {collection: "handbook"}, {strategy: "static"}, {effort: strategy.Quick}, {collection: "a:quick", effort: strategy.Thorough},
		{collection: "100 % / über:alles", strategy: "react", effort: strategy.Quick}, {collection: "assay/handbook"},
	} {
		got, err := parseModel(m.String())
		if err != nil || got != m {
			t.Errorf("%+v: %q is read as %+v, %v", m, m, got, err)
		}
	}
}

// FuzzOpenAIBodies checks that no body makes the decoders panic, and that their errors are of the kind
// of an invalid request.
func FuzzOpenAIBodies(f *testing.F) {
	f.Add([]byte(chatBody("assay/x:quick", "A question?", `,"stream":true`)))
	f.Add([]byte(`{"model":"assay","input":[{"type":"reasoning"},{"role":"user","content":[{"type":"input_text","text":"x"}]}],"previous_response_id":"resp_x"}`))
	f.Add([]byte(`{"model":"assay-embedding","input":[[1,2],[3]],"dimensions":1e9}`))
	f.Add([]byte(`{"messages":[null,{},{"role":"user","content":null}],"model":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(err error) {
			if err != nil && !errors.Is(err, assay.ErrInvalid) && !errors.Is(err, assay.ErrNotFound) {
				t.Errorf("%q: %v", data, err)
			}
		}
		var c chatRequest
		if c.decodeBody(data) == nil {
			_, err := c.request()
			check(err)
		}
		var r responseRequest
		if r.decodeBody(data) == nil {
			_, err := r.request()
			check(err)
		}
		var e embedRequest
		if e.decodeBody(data) == nil {
			_, err := e.texts()
			check(err)
		}
	})
}

// TestOpenAIHistory checks how messages become a question and the turns before it.
func TestOpenAIHistory(t *testing.T) {
	t.Parallel()
	var list []json.RawMessage
	text := `[{"role":"system","content":"s"},{"role":"assistant","content":"hello"},{"role":"user","content":"one"},{"role":"assistant","content":null,"tool_calls":[]},
		{"role":"tool","content":"t"},{"role":"assistant","content":"first"},{"role":"assistant","content":[{"type":"text","text":"second"}]},{"type":"reasoning"},
		{"role":"user","content":"two"},{"role":"user","content":[{"type":"text","text":"three"},{"type":"text","text":"four"}]}]`
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	got, err := conversationOf("messages", list)
	want := conversation{
		question: "three\nfour",
		history:  []assay.Turn{{Question: "one", Answer: "first\n\nsecond"}, {Question: "two"}},
		skipped:  []string{"messages[0] (system)", "messages[4] (tool)", "messages[7] (reasoning)"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(conversation{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestOpenAIKeepAlive checks that a silent stream has comments, and nothing else.
func TestOpenAIKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		x := &exchange{w: w, r: httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), cancel: func() {}}
		s := x.openOpenAI()
		time.Sleep(2*idleTime + time.Second)
		s.out.stop()
		if got, want := w.Body.String(), strings.Repeat(":\n\n", 2); got != want {
			t.Errorf("the stream is %q, want %q", got, want)
		}
	})
}

// TestOpenAIProgress checks that progress has nothing of drafts and no marks of Markdown.
func TestOpenAIProgress(t *testing.T) {
	t.Parallel()
	step := func(kind assay.StepKind, summary string) *engine.Step {
		return &engine.Step{Kind: kind, Summary: summary}
	}
	for want, ev := range map[string]engine.Event{
		"searching \"! [x] (http://evil.example) ‹img>\"": {Kind: engine.StepStarted, Step: step(assay.StepSearch, "searching \"![x](http://evil.example)\n<img>\"")},
		"verifying the answer":                            {Kind: engine.StepStarted, Step: step(assay.StepVerify, "verify")}, // subject to review
		"sufficient, 1 relevant chunk":                    {Kind: engine.StepEnded, Step: step(assay.StepGrade, "sufficient, 1 relevant chunk"), Grade: &role.Grade{}},
		"1 of 2 claims supported":                         {Kind: engine.StepEnded, Step: step(assay.StepVerify, "1 of 2 claims supported; claim 2 unsupported: a draft"), Verdicts: []ground.Judgement{{}}},
		"":                                                {Kind: engine.Draft, Draft: "a draft", Path: "generate"},
	} {
		if got := progressOf(ev); got != want {
			t.Errorf("%+v: %q, want %q", ev, got, want)
		}
	}
	for _, ev := range []engine.Event{
		{Kind: engine.StepEnded, Step: step(assay.StepGenerate, "a draft")},
		{Kind: engine.StepStarted, Step: step(assay.StepPlan, "planning")},
		{Kind: engine.StepEnded, Step: step(assay.StepSearch, "not shown: the answer is subject to review")},
		{Kind: engine.StepStarted, Step: step(assay.StepModel, "asking a model")},
		{Kind: engine.RunStarted},
	} {
		if got := progressOf(ev); got != "" {
			t.Errorf("%+v: %q, want nothing", ev, got)
		}
	}
}

// TestOpenAIDrafts checks that nothing of a draft whose claims are not supported is sent.
func TestOpenAIDrafts(t *testing.T) {
	t.Parallel()
	const invented = "ZANZIBAR"
	model := &llmtest.Scripted{Name: "scripted/writer", Reply: llmtest.Say(`{"statements":[{"text":"The leave is spent in ` + invented + `.","citations":[1]}],"missing":[]}`)}
	x := openOpenAI(t, func(c *engine.HostConfig) {
		c.Models = engine.Models{Roles: map[string]llm.Model{role.GeneratorRole: model}, LocalVerifier: true}
	})
	for path, body := range map[string]string{
		"/v1/chat/completions": chatBody("assay:static", leaveQuestion, `,"stream":true`),
		"/v1/responses":        `{"model":"assay:static","input":"` + leaveQuestion + `","stream":true}`,
	} {
		r, got := x.do(t, path, body)
		if r.StatusCode != 200 || strings.Contains(got, invented) {
			t.Errorf("%s: %d %s", path, r.StatusCode, got)
		}
	}
	if len(model.Requests()) == 0 {
		t.Error("the model was not asked")
	}
}

// TestOpenAIClientGone checks that the run of a chat ends with its client, and that of a response goes
// on.
func TestOpenAIClientGone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path, body string
		cancelled  bool
	}{
		{"/v1/chat/completions", chatBody("assay:static", leaveQuestion, `,"stream":true`), true},
		{"/v1/chat/completions", chatBody("assay:static", leaveQuestion, `,"stream":true,"store":true`), false},
		{"/v1/responses", `{"model":"assay:static","input":"` + leaveQuestion + `","stream":true,"store":false}`, true},
		{"/v1/responses", `{"model":"assay:static","input":"` + leaveQuestion + `","stream":true}`, false},
	} {
		t.Run(test.path, func(t *testing.T) {
			t.Parallel()
			model := &heldModel{asked: make(chan struct{}), let: make(chan struct{})}
			x := openOpenAI(t, func(c *engine.HostConfig) {
				c.Models = engine.Models{Roles: map[string]llm.Model{role.GeneratorRole: model}, LocalVerifier: true}
			})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			req, err := http.NewRequestWithContext(ctx, "POST", x.URL+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			r, err := x.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			if _, err := bufio.NewReader(r.Body).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			<-model.asked
			leave()
			if !test.cancelled {
				close(model.let)
			}
			a, err := final(x.session.Follow(t.Context(), r.Header.Get("X-Assay-Run"), -1))
			if err != nil || (a.Stop == assay.StopCancelled) != test.cancelled {
				t.Errorf("the run ended with %s, %s, %v", a.Status, a.Stop, err)
			}
			uses, err := x.session.LimitUsage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range uses {
				if u.Reserved != 0 || u.Measure == limit.CallsPerDay && test.cancelled && u.Spent > 1 {
					t.Errorf("the ledger has %+v", u)
				}
			}
		})
	}
}

// TestOpenAIDrain checks that a stream that was begun before the shutdown gets its answer.
func TestOpenAIDrain(t *testing.T) {
	t.Parallel()
	model := &heldModel{asked: make(chan struct{}), let: make(chan struct{})}
	x := openOpenAI(t, func(c *engine.HostConfig) {
		c.Models = engine.Models{Roles: map[string]llm.Model{role.GeneratorRole: model}, LocalVerifier: true}
	})
	go func() {
		<-model.asked
		x.server.Drain()
		close(model.let)
	}()
	if r, body := x.do(t, "/v1/chat/completions", chatBody("assay:static", leaveQuestion, `,"stream":true`)); r.StatusCode != 200 || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("%d %s", r.StatusCode, body)
	}
}

// TestOpenAIReviewed checks that a response shows the answer when a reviewer has released it.
func TestOpenAIReviewed(t *testing.T) {
	t.Parallel()
	x := openOpenAI(t, nil)
	x.reviewed(t)
	_, body := x.do(t, "/v1/responses", `{"model":"assay","input":"`+leaveQuestion+`"}`)
	if strings.Contains(body, "five days") || !strings.Contains(body, `"status":"incomplete"`) {
		t.Fatalf("before the decision: %s", body)
	}
	rita := identity.Local("default")
	rita.Principal = assay.Principal{User: "rita", Roles: []string{string(identity.Admin)}}
	reviewer, err := x.server.config.Host.Session(t.Context(), rita)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reviewer.Claim(t.Context(), "run1", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := reviewer.Review(t.Context(), "run1"); err != nil {
		t.Fatal(err)
	}
	if _, err := reviewer.Approve(t.Context(), "run1"); err != nil {
		t.Fatal(err)
	}
	if _, body := x.do(t, "/v1/responses/resp_run1", ""); !strings.Contains(body, "five days") || !strings.Contains(body, `"status":"completed"`) {
		t.Errorf("after it: %s", body)
	}
}

// A heldModel replies when it is let.
type heldModel struct {
	asked, let chan struct{}
	once       atomic.Bool
}

func (m *heldModel) Model() string    { return "held/model" }
func (m *heldModel) Facts() llm.Facts { return llm.Facts{} }

func (m *heldModel) Generate(ctx context.Context, req llm.Request, _ func(llm.Delta)) (llm.Response, error) {
	if m.once.CompareAndSwap(false, true) {
		close(m.asked)
	}
	select {
	case <-m.let:
		return (&llmtest.Scripted{Reply: llmtest.Say("ok")}).Generate(ctx, req, nil)
	case <-ctx.Done():
		return llm.Response{}, ctx.Err()
	}
}
