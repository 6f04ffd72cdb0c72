package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/mcpserver"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/server"
)

// planted begins all words of the test that are not to be reported.
const planted = "planted"

// A lying model streams a false statement and then replies with it, or fails with it.
type lying struct{ fails bool }

func (lying) Model() string    { return "openai/test-1" }
func (lying) Facts() llm.Facts { return llm.Facts{Window: 100_000} }

func (m lying) Generate(_ context.Context, _ llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	const reply = `{"statements":[{"text":"The head of plantedlie approves travel.","citations":[1]}],"missing":[]}`
	for i := range reply {
		if stream != nil {
			stream(llm.Delta{Text: reply[i : i+1]})
		}
		if m.fails && i == len(reply)/2 {
			return llm.Response{}, fmt.Errorf("the service says: plantedlie: %w", assay.ErrUnavailable)
		}
	}
	return llm.Response{Text: reply, Finish: llm.FinishStop, Usage: assay.Usage{Calls: 1, InputTokens: 7, OutputTokens: 3}}, nil
}

// A hashingEncoders has one encoder.
type hashingEncoders struct{ llm.Embedder }

func (e hashingEncoders) Default() string { return e.Model() }

func (e hashingEncoders) Open(context.Context, string) (llm.Embedder, error) { return e.Embedder, nil }

// A safeBuffer is a bytes.Buffer for concurrent use.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// doors are requests with planted words in each place of a request.
var doors = [][3]string{ // method, target, body
	{"POST", "/api/v1/ask?plantedquery=1", `{"question":"Who approves plantedquestion travel?","strategy":"STRATEGY"}`},
	{"POST", "/api/v1/ask", `{"question":"Who approves travel?","strategy":"plantedstrategy","plantedmember":1}`},
	{"POST", "/api/v1/ask", `{"question":"Who approves travel?","collections":["plantedhidden"]}`},
	{"POST", "/api/v1/search?plantedquery=1", `{"text":"plantedquestion"}`},
	{"GET", "/api/v1/documents/planteddocument", ""},
	{"GET", "/api/v1/runs/plantedrun", ""},
	{"GET", "/plantedpath/plantedfile?plantedquery=1", ""},
	{"plantedmethod", "/plantedpath", ""},
	{"POST", "/v1/chat/completions", `{"model":"assay:STRATEGY","messages":[{"role":"user","content":"Who approves plantedquestion travel?"}],"stream":true}`},
	{"POST", "/v1/chat/completions", `{"model":"assay:STRATEGY","messages":[{"role":"user","content":"Who approves plantedquestion travel?"}],"user":"planteduser"}`},
	{"POST", "/v1/chat/completions", `{"model":"plantedmodel","messages":[]}`},
	{"POST", "/v1/responses", `{"model":"assay:STRATEGY","input":"Who approves plantedquestion travel?","stream":true}`},
	{"POST", "/v1/responses", `{"model":"assay:STRATEGY","input":"Who approves plantedquestion travel?","previous_response_id":"resp_planted"}`},
	{"GET", "/v1/responses/resp_planted", ""},
	{"POST", "/v1/embeddings", `{"model":"plantedmodel","input":"plantedquestion"}`},
	{"POST", "/mcp", `{"jsonrpc":"2.0","id":"plantedid","method":"tools/call","params":{"name":"ask","arguments":{"question":"Who approves plantedquestion travel?"},"_meta":META}}`},
	{"POST", "/mcp", `{"jsonrpc":"2.0","id":"plantedid","method":"tools/call","params":{"name":"fetch","arguments":{"id":"planteddocument"},"_meta":META}}`},
	{"POST", "/mcp", `{"jsonrpc":"2.0","id":"plantedid","method":"plantedmethod","params":{"_meta":META}}`},
}

const protocolMeta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"plantedclient","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// TestDoors sends requests to all interfaces of a server. No word of a text, a name, a query or a
// credential may be in a span, a metric or a line of the log, nor a word of an unverified draft in a
// response.
func TestDoors(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		for _, strategy := range []string{"static", "corrective", "react"} {
			t.Run(fmt.Sprintf("%s fails=%t", strategy, fails), func(t *testing.T) {
				t.Parallel()
				testDoors(t, strategy, lying{fails})
			})
		}
	}
}

func testDoors(t *testing.T, strategy string, m llm.Model) {
	t.Helper()
	to := newCollector(t)
	c := to.config()
	var logs safeBuffer
	c.OpenInference, c.EMF = true, &logs
	log, err := NewLogger(&logs, "json")
	if err != nil {
		t.Fatal(err)
	}
	c.Logger = log
	tel, end := newTelemetry(t, c)
	host, err := engine.OpenHost(t.Context(), engine.HostConfig{AllowLocal: true, Config: engine.Config{
		Dir: t.TempDir(), NoBackground: true, Observer: tel, Encoders: hashingEncoders{&llmtest.Hashing{Name: "hashing/8", Dimensions: 8}},
		Models: engine.Models{Roles: map[string]llm.Model{role.GeneratorRole: m, role.GraderRole: m, role.PlannerRole: m}, LocalVerifier: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}()
	grant := identity.Local("default")
	session, err := host.Session(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	text := "# Plantedtitle\n\nTravel to a plantedcustomer is approved by the head of the planteddepartment.\n"
	if _, err := session.Ingest(t.Context(), engine.IngestRequest{Paths: []string{"-"}, Stdin: strings.NewReader(text), StdinName: "plantedname.md", Wait: true}); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Host: host, Local: grant, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	door, err := mcpserver.New(mcpserver.Config{Session: s.Session, Log: log, NoteRun: server.NoteRun})
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	s.Handle("/mcp", door)
	web := httptest.NewServer(tel.Middleware(s))
	defer web.Close()
	for _, d := range doors {
		before := len(logs.String())
		body := strings.NewReplacer("STRATEGY", strategy, "META", protocolMeta).Replace(d[2])
		got := knock(t, web, d[0], d[1], body)
		if strings.Contains(got, "plantedlie") {
			t.Errorf("%s %s: a draft is in the response: %s", d[0], d[1], got)
		}
		if d[1] == "/mcp" && strings.Contains(body, `"ask"`) && !namesRun(logs.String()[before:]) {
			t.Errorf("the line of a request has no run: %s", logs.String()[before:])
		}
	}
	runs, err := session.Runs(t.Context(), 1)
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %+v, %v", runs, err)
	}
	for _, target := range []string{"/api/v1/runs/" + runs[0].ID, "/v1/responses/resp_" + runs[0].ID} {
		before := len(logs.String())
		knock(t, web, "GET", target, "")
		if got := logs.String()[before:]; !strings.Contains(got, `"run":"`+runs[0].ID+`"`) {
			t.Errorf("the line of a request has no run: %s", got)
		}
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	all := []string{logs.String()}
	for _, span := range to.spans {
		all = append(all, prototext.Format(span))
	}
	for _, metric := range to.metrics {
		all = append(all, prototext.Format(metric))
	}
	for _, reported := range all {
		for line := range strings.Lines(reported) {
			if strings.Contains(strings.ToLower(line), planted) {
				t.Errorf("reported: %s", line)
			}
		}
	}
	if len(to.spans) < len(doors) || len(to.metrics) == 0 || !strings.Contains(all[0], `"run"`) {
		t.Errorf("%d spans, %d metrics and %d bytes of logs were reported", len(to.spans), len(to.metrics), len(all[0]))
	}
}

// namesRun reports whether the line of a request to MCP has a run.
func namesRun(log string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"route":"/mcp"`) && strings.Contains(line, `"run":"`) {
			return true
		}
	}
	return false
}

// knock sends a request and returns the whole response.
func knock(t *testing.T, web *httptest.Server, method, target, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, web.URL+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("X-Planted", "plantedheader")
	req.Header.Set("User-Agent", "plantedagent")
	if strings.HasPrefix(target, "/v1/") {
		req.Header.Set("Authorization", "Bearer plantedcredential")
	}
	if target == "/mcp" {
		req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		for _, method := range []string{"tools/call", "plantedmethod"} {
			if strings.Contains(body, `"method":"`+method) {
				req.Header.Set("Mcp-Method", method)
			}
		}
		for _, name := range []string{"ask", "fetch"} {
			if strings.Contains(body, `"name":"`+name) {
				req.Header.Set("Mcp-Name", name)
			}
		}
	}
	r, err := web.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s: %d %.300s", method, target, r.StatusCode, data)
	return string(data)
}
