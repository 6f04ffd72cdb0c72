package llmtest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay/llm"
)

// conversation returns a request with every field set.
func conversation() llm.Request {
	return llm.Request{
		System: "Answer from the sources.\nSay \"unknown\" otherwise — 漢字, 😀.",
		Messages: []llm.Message{
			{Speaker: llm.User, Text: "How many days of leave?"},
			{Speaker: llm.Assistant, Text: "I look it up.", Calls: []llm.ToolCall{
				{ID: "call_1", Name: "search", Arguments: `{"query":"days of leave","limit":3}`},
				{ID: "call_2", Name: "search", Arguments: `{"query":"carry <over> & \"more\""}`},
			}},
			{Speaker: llm.User, Results: []llm.ToolResult{
				{Call: "call_1", Name: "search", Text: "Thirty days.\nNo more."},
				{Call: "call_2", Name: "search", Text: "the index is locked", Error: true},
			}},
			{Speaker: llm.Assistant, Text: "Thirty days."},
			{Speaker: llm.User, Text: "And what may be carried over?"},
		},
		Tools: []llm.Tool{
			{Name: "search", Description: "Searches the documents.", Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}`)},
			{Name: "open_document", Description: "Opens a document.", Parameters: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","enum":["a","b"]}},"required":["id"]}`)},
		},
		MaxTokens: 77, Temperature: 0.5, Attempts: 1,
	}
}

// verdictSchema returns a schema like those of the roles.
func verdictSchema() *llm.Schema {
	return &llm.Schema{Name: "verdict", Schema: json.RawMessage(`{"type":"object","properties":{"verdict":{"type":"string","enum":["ACCEPT","REVISE"]},"reasons":{"type":"array","items":{"type":"string"}}},"required":["verdict","reasons"],"additionalProperties":false}`)}
}

// testRequests checks that requests arrive completely and in order.
func (s suite) testRequests(t *testing.T) {
	with := func(change func(*llm.Request)) llm.Request {
		r := conversation()
		change(&r)
		return r
	}
	tests := map[string]llm.Request{
		"question":     question(),
		"conversation": conversation(),
		"required":     with(func(r *llm.Request) { r.Choice = llm.ToolsRequired }),
		"none":         with(func(r *llm.Request) { r.Choice = llm.ToolsNone }),
		"images": with(func(r *llm.Request) {
			r.Messages[4].Images = []llm.Image{{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n\x00\xff")}, {Type: "image/jpeg", Data: []byte{0xff, 0xd8, 0xff}}}
		}),
		"schema": with(func(r *llm.Request) {
			r.Schema, r.Tools, r.Messages = verdictSchema(), nil, r.Messages[4:]
		}),
		"results and text": with(func(r *llm.Request) {
			r.Messages[2].Text = "Go on."
		}),
	}
	for name, req := range tests {
		t.Run(name, func(t *testing.T) {
			if name == "images" && s.lacks(Images) {
				t.Skip("the format has no images")
			}
			s.checkArrives(t, req)
		})
	}
	t.Run("arguments that are no JSON", func(t *testing.T) {
		for _, arguments := range []string{`{"query": "lea`, "", "null", `[1]`, `"text"`, "\x00"} {
			req := conversation()
			req.Messages[1].Calls[1].Arguments = arguments
			got := s.arrived(t, req)
			if n := len(merged(got.Messages)); n != 5 {
				t.Errorf("with the arguments %q %d messages arrive, want 5", arguments, n)
			}
		}
	})
}

// arrived sends a request and returns the request that the server decoded.
func (s suite) arrived(t *testing.T, req llm.Request) llm.Request {
	t.Helper()
	script := Script{Pieces: []string{"Five."}, Finish: llm.FinishStop, Usage: someUsage}
	if req.Schema != nil {
		script.Pieces, script.Schema = []string{`{"verdict":"ACCEPT",`, `"reasons":[]}`}, true
	}
	before := clone(t, req)
	h := serve(t, s.reply(script))
	if o := ask(bounded(t), t, s.open(t, h, Setup{}), req); o.err != nil {
		t.Fatal(o.err)
	}
	if diff := cmp.Diff(before, req); diff != "" {
		t.Errorf("the call has changed its request (-before +after):\n%s", diff)
	}
	requests, bodies := h.seen()
	if len(requests) != 1 {
		t.Fatalf("%d requests for one call", len(requests))
	}
	if s.Streams(requests[0], bodies[0]) != s.stream {
		t.Errorf("the request asks for a stream: %v, want %v", !s.stream, s.stream)
	}
	checkAddress(t, requests[0])
	return s.Request(t, requests[0], bodies[0])
}

// checkAddress checks that the credential is not in the URL, which proxies log.
func checkAddress(t *testing.T, r *http.Request) {
	t.Helper()
	if strings.Contains(r.RequestURI, Canary) {
		t.Errorf("the credential is in the address: %s", r.RequestURI)
	}
}

// checkArrives compares a request with the one that the server decoded, as far as the format can
// express it.
func (s suite) checkArrives(t *testing.T, req llm.Request) {
	t.Helper()
	got, want := s.arrived(t, req), clone(t, req)
	for _, r := range []*llm.Request{&got, &want} {
		r.Messages, r.Attempts = merged(r.Messages), 0
		if s.lacks(Temperature) {
			r.Temperature = 0
		}
		if s.lacks(Choices) {
			r.Choice = ""
		}
		if r.Schema != nil && s.lacks(SchemaNames) {
			r.Schema.Name = ""
		}
		for i := range r.Messages {
			s.forget(&r.Messages[i])
		}
	}
	if s.lacks(Schemas) && want.Schema != nil {
		if !strings.Contains(got.System+got.Messages[len(got.Messages)-1].Text, `"REVISE"`) {
			t.Error("nothing tells the model of the schema")
		}
		want.Schema, want.System, got.System, want.Messages, got.Messages = nil, "", "", nil, nil
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Transformer("json", canonical)); diff != "" {
		t.Errorf("what arrives (-want +got):\n%s", diff)
	}
}

// forget removes from a message the parts that the format cannot express.
func (s suite) forget(m *llm.Message) {
	for i := range m.Calls {
		if s.lacks(ToolIDs) {
			m.Calls[i].ID = ""
		}
		m.Calls[i].Arguments = canonical(json.RawMessage(m.Calls[i].Arguments))
	}
	for i, r := range m.Results {
		if s.lacks(ToolIDs) {
			m.Results[i].Call = ""
		} else {
			m.Results[i].Name = "" // its call has it
		}
		if s.lacks(ResultErrors) {
			// The text reports the error, in the provider's words.
			if m.Results[i].Error = false; strings.Contains(r.Text, "the index is locked") {
				m.Results[i].Text = "the index is locked"
			}
		}
	}
}

// merged joins consecutive messages of the same speaker, since formats divide them in different
// ways.
func merged(messages []llm.Message) []llm.Message {
	var out []llm.Message
	for _, m := range messages {
		if n := len(out); n > 0 && out[n-1].Speaker == m.Speaker {
			last := &out[n-1]
			last.Text += m.Text
			last.Images, last.Calls, last.Results = append(last.Images, m.Images...), append(last.Calls, m.Calls...), append(last.Results, m.Results...)
			continue
		}
		out = append(out, m)
	}
	return out
}

// canonical returns JSON in canonical form, and other text unchanged.
func canonical(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(data)
}

func clone(t *testing.T, r llm.Request) llm.Request {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var out llm.Request
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	for i, m := range r.Messages {
		out.Messages[i].Images = m.Images // whose JSON leaves out the data
	}
	return out
}
