package bedrock_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/bedrock"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
)

type object = map[string]any

// A service is a server that answers every request with the same bytes.
type service struct {
	status int
	header http.Header
	kind   string
	parts  [][]byte
	cut    int // number of bytes sent; 0: all
	abort  bool

	path string
	body []byte
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.path = r.URL.Path
	s.body, _ = io.ReadAll(r.Body)
	for k, v := range s.header {
		w.Header()[k] = v
	}
	w.Header().Set("Content-Type", s.kind)
	w.WriteHeader(max(s.status, 200))
	all := slices.Concat(s.parts...)
	if s.cut > 0 || s.abort {
		all = all[:s.cut]
	}
	_, _ = w.Write(all)
	if s.abort {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func (s *service) serve(t *testing.T) *bedrock.Provider {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return bedrocktest.Open(t, server.URL)
}

const answerModel = "arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-haiku-4-5-20251001-v1:0"

// cited returns a citation of RetrieveAndGenerate and InvokeAgent. The end of a span is its last
// character, as in the examples of the User Guide.
func cited(text string, start, end int, references ...object) object {
	return object{
		"generatedResponsePart": object{"textResponsePart": object{"text": text, "span": object{"start": start, "end": end}}},
		"retrievedReferences":   references,
	}
}

func reference(text, uri string, metadata object) object {
	return object{"content": object{"text": text, "type": "TEXT"}, "location": bedrocktest.S3(uri), "metadata": metadata}
}

var (
	toAnn = reference("Everybody has thirty days of leave.", "s3://handbook/leave.md", object{"users": []string{"ann"}})
	toEve = reference("Eve has none.", "s3://handbook/eve.md", object{"users": []string{"eve"}})
)

// generated returns a service with an answer of RetrieveAndGenerate.
//
// Source: AWS, Amazon Bedrock API Reference, RetrieveAndGenerate, response syntax.
func generated(text string, citations ...object) *service {
	return &service{kind: "application/json", parts: [][]byte{llmtest.JSON(object{
		"output": object{"text": text}, "citations": citations, "sessionId": "session-1", "guardrailAction": "NONE",
	})}}
}

// streamed returns the same for RetrieveAndGenerateStream.
//
// Source: AWS, Amazon Bedrock API Reference, RetrieveAndGenerateStream, response syntax.
func streamed(pieces []string, citations ...object) *service {
	s := &service{kind: bedrocktest.StreamType, header: http.Header{"X-Amzn-Bedrock-Knowledge-Base-Session-Id": {"session-1"}}}
	for _, p := range pieces {
		s.parts = append(s.parts, bedrocktest.Event("output", object{"text": p}))
	}
	for _, c := range citations {
		s.parts = append(s.parts, bedrocktest.Event("citation", c))
	}
	s.parts = append(s.parts, bedrocktest.Event("guardrail", object{"action": "NONE"}))
	return s
}

// ask has the service answer a question of ann's.
func (s *service) ask(t *testing.T, c bedrock.KnowledgeBase, g bedrock.Generation, text func(string)) (bedrock.Answer, error) {
	t.Helper()
	c.ID, g.Model = "KB12345678", answerModel
	k, err := s.serve(t).KnowledgeBase(c)
	if err != nil {
		t.Fatal(err)
	}
	return k.Answer(t.Context(), ann.Access(), g, bedrock.Question{Text: "How many days?", Limit: 4}, text)
}

// checkCitations checks the cited text of each citation.
func checkCitations(t *testing.T, a bedrock.Answer, want ...string) {
	t.Helper()
	var got []string
	for _, c := range a.Citations {
		got = append(got, a.Text[c.Start:c.End])
		for _, h := range c.Hits {
			if h.Text[h.Chunk.Start:h.Chunk.End] != h.Text || h.URI == "" {
				t.Errorf("hit %+v", h)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cited parts of %q (-want +got):\n%s", a.Text, diff)
	}
}

func TestAnswer(t *testing.T) {
	s := generated("Thirty days. 漢字 😀 are also said.", cited("Thirty days.", 0, 11, toAnn), cited("漢字 😀 are also said.", 13, 32, toAnn, toAnn))
	a, err := s.ask(t, bedrock.KnowledgeBase{Sharing: byKey, Search: bedrock.SearchHybrid}, bedrock.Generation{Decompose: true, MaxTokens: 300, Guardrail: bedrock.Guardrail{ID: "gr1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkCitations(t, a, "Thirty days.", "漢字 😀 are also said.")
	if a.Session != "session-1" || a.Intervened || a.Usage.Calls != 1 || len(a.Citations[1].Hits) != 2 || len(a.Notes) > 0 {
		t.Errorf("%+v", a)
	}
	const want = `{"input":{"text":"How many days?"},"retrieveAndGenerateConfiguration":{"type":"KNOWLEDGE_BASE","knowledgeBaseConfiguration":{"knowledgeBaseId":"KB12345678","modelArn":"` + answerModel + `",` +
		`"generationConfiguration":{"guardrailConfiguration":{"guardrailId":"gr1","guardrailVersion":"DRAFT"},"inferenceConfig":{"textInferenceConfig":{"maxTokens":300}}},` +
		`"orchestrationConfiguration":{"queryTransformationConfiguration":{"type":"QUERY_DECOMPOSITION"}},` +
		`"retrievalConfiguration":{"vectorSearchConfiguration":{"numberOfResults":4,"overrideSearchType":"HYBRID","filter":{"orAll":[{"listContains":{"key":"groups","value":"board"}},{"listContains":{"key":"groups","value":"legal"}},{"listContains":{"key":"users","value":"ann"}}]}}}}}}`
	if s.path != "/retrieveAndGenerate" || compact(t, string(s.body)) != compact(t, want) {
		t.Errorf("asked %s %s\nwant %s", s.path, s.body, want)
	}
}

// TestSpans checks every way of counting a span, and wrong spans.
func TestSpans(t *testing.T) {
	const text = "é one. 😀 two. one. three."
	tests := []struct {
		name       string
		words      string
		start, end int
		want       string
		lost       bool
	}{
		{"code points, last in", "😀 two.", 7, 12, "😀 two.", false},
		{"code points, last out", "😀 two.", 7, 13, "😀 two.", false},
		{"UTF-16, last in", "two.", 10, 13, "two.", false},
		{"bytes, last in", "😀 two.", 8, 16, "😀 two.", false},
		{"wrong span", "three.", 1, 3, "three.", false},
		{"wrong span, twice there", "one.", 100, 103, "one.", false},
		{"negative", "three.", -5, -1, "three.", false},
		{"huge", "three.", 0, 1 << 30, "three.", false},
		{"backwards", "three.", 9, 3, "three.", false},
		{"other words", "four.", 0, 4, "", true},
		{"no words", "", 0, 4, "", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, err := generated(text, cited(test.words, test.start, test.end, toAnn)).ask(t, bedrock.KnowledgeBase{Sharing: byKey}, bedrock.Generation{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkCitations(t, a, test.want)
			if noted := len(a.Notes) > 0; noted != test.lost {
				t.Errorf("notes %q", a.Notes)
			}
		})
	}
	t.Run("in order", func(t *testing.T) {
		a, err := generated(text, cited("one.", 500, 500, toAnn), cited("one.", 500, 500, toAnn)).ask(t, bedrock.KnowledgeBase{Sharing: byKey}, bedrock.Generation{}, nil)
		if err != nil || a.Citations[0].Start >= a.Citations[1].Start {
			t.Errorf("%+v, %v", a.Citations, err)
		}
	})
	t.Run("no part", func(t *testing.T) {
		a, err := generated(text, object{"retrievedReferences": []any{toAnn}}, object{"generatedResponsePart": object{}}).ask(t, bedrock.KnowledgeBase{Sharing: byKey}, bedrock.Generation{}, nil)
		if err != nil || len(a.Citations) != 1 || len(a.Citations[0].Hits) != 1 || len(a.Notes) != 1 {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// TestAnswerNameless checks that passages without a source in Bedrock's reply become separate
// documents.
func TestAnswerNameless(t *testing.T) {
	nameless := func(text string) object {
		return object{"content": object{"text": text}, "metadata": object{"users": []string{"ann"}}}
	}
	one, other := nameless("Everybody has thirty days of leave."), nameless("Nobody works on Sunday.")
	a, err := generated("Thirty days.", cited("Thirty days.", 0, 11, one, other, one)).ask(t, bedrock.KnowledgeBase{Sharing: byKey}, bedrock.Generation{}, nil)
	if err != nil || len(a.Citations) != 1 || len(a.Citations[0].Hits) != 3 {
		t.Fatalf("%+v, %v", a, err)
	}
	if hits := a.Citations[0].Hits; hits[0].URI == hits[1].URI || hits[0].URI != hits[2].URI {
		t.Errorf("URIs %q, %q and %q again", hits[0].URI, hits[1].URI, hits[2].URI)
	}
}

// TestAnswerAccess checks that a caller receives no document that they may not see.
func TestAnswerAccess(t *testing.T) {
	for name, test := range map[string]struct {
		sharing bedrock.Sharing
		ref     object
		want    error
	}{
		"by default":   {bedrock.Sharing{}, toAnn, assay.ErrNotFound},
		"hers":         {byKey, toAnn, nil},
		"another's":    {byKey, toEve, assay.ErrUnavailable},
		"nobody's":     {byKey, reference("x", "s3://b/x", nil), assay.ErrUnavailable},
		"without keys": {open, toEve, nil},
	} {
		s := generated("Thirty days.", cited("Thirty days.", 0, 11, toAnn), cited("Thirty days.", 0, 11, test.ref))
		a, err := s.ask(t, bedrock.KnowledgeBase{Sharing: test.sharing}, bedrock.Generation{}, nil)
		if !errors.Is(err, test.want) || test.want != nil && (a.Text != "" || a.Citations != nil) {
			t.Errorf("%s: %+v, %v; want %v", name, a, err, test.want)
		}
		if asked := s.body != nil; asked != (test.want != assay.ErrNotFound) {
			t.Errorf("%s: asked: %v", name, asked)
		}
	}
}

func TestAnswerStream(t *testing.T) {
	pieces := []string{"Thirty ", "days. ", "😀 And ", "more."}
	s := streamed(pieces, cited("Thirty days.", 0, 11, toAnn), object{"citation": cited("😀 And more.", 13, 23, toAnn)})
	var told []string
	a, err := s.ask(t, bedrock.KnowledgeBase{Sharing: byKey}, bedrock.Generation{Stream: true}, func(text string) { told = append(told, text) })
	if err != nil {
		t.Fatal(err)
	}
	checkCitations(t, a, "Thirty days.", "😀 And more.")
	if s.path != "/retrieveAndGenerateStream" || strings.Join(told, "") != a.Text || len(told) < 3 || a.Session != "session-1" {
		t.Errorf("%s: %+v, told %q", s.path, a, told)
	}
	t.Run("intervened", func(t *testing.T) {
		s := streamed([]string{"Sorry."})
		s.parts[1] = bedrocktest.Event("guardrail", object{"action": "INTERVENED"})
		a, err := s.ask(t, bedrock.KnowledgeBase{Sharing: byKey}, bedrock.Generation{Stream: true}, nil)
		if err != nil || !a.Intervened || len(a.Notes) != 1 {
			t.Errorf("%+v, %v", a, err)
		}
	})
	t.Run("late errors", func(t *testing.T) {
		for exception, kind := range map[string]llm.ErrorKind{
			"throttlingException": llm.RateLimited, "internalServerException": llm.ServerError, "validationException": llm.BadRequest, "accessDeniedException": llm.BadKey,
			"resourceNotFoundException": llm.NoModel, "serviceQuotaExceededException": llm.NoQuota, "dependencyFailedException": llm.ServerError, "badGatewayException": llm.ServerError,
		} {
			s := streamed(pieces)
			s.parts = append(s.parts[:2], bedrocktest.Exception(exception, "the words"))
			_, err := s.ask(t, bedrock.KnowledgeBase{Sharing: byKey}, bedrock.Generation{Stream: true}, nil)
			if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != kind || !strings.Contains(e.Message, "the words") {
				t.Errorf("%s: %v, want the kind %q", exception, err, kind)
			}
		}
		s := streamed(pieces)
		s.parts = append(s.parts[:2], bedrocktest.Failure("InternalFailure", "the words"))
		if _, err := s.ask(t, bedrock.KnowledgeBase{Sharing: byKey}, bedrock.Generation{Stream: true}, nil); !strings.Contains(err.Error(), "the words") {
			t.Error(err)
		}
	})
}

// TestManagedCut cuts streams off at every byte. A cut is undetectable only at the end of a frame,
// if the connection is closed normally.
func TestManagedCut(t *testing.T) {
	whole := map[string]func() *service{
		"answer": func() *service { return streamed([]string{"Thirty ", "days."}, cited("Thirty days.", 0, 11, toAnn)) },
		"agent":  func() *service { return invoked(part("Thirty days.", cited("Thirty days.", 0, 11, toAnn))) },
	}
	for name, make := range whole {
		for _, abort := range []bool{true, false} {
			s := make()
			ends := map[int]bool{}
			n := 0
			for _, p := range s.parts {
				n += len(p)
				ends[n] = true
			}
			s.abort = abort
			ask := s.asker(t, name)
			step := 1
			if testing.Short() {
				step = 7
			}
			for s.cut = 1; s.cut < n; s.cut += step {
				a, err := ask()
				e, _ := errors.AsType[*llm.Error](err)
				if err == nil && !(ends[s.cut] && !abort && a.Text != "") || err != nil && (e == nil || e.Kind != llm.BrokeOff) {
					t.Fatalf("%s, connection broken: %v, cut after %d of %d bytes: %+v, %v", name, abort, s.cut, n, a, err)
				}
			}
		}
	}
}

// asker returns a function that calls the service, with a new connection each time.
func (s *service) asker(t *testing.T, name string) func() (bedrock.Answer, error) {
	p := s.serve(t)
	k, err := p.KnowledgeBase(bedrock.KnowledgeBase{ID: "KB12345678", Sharing: byKey})
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Agent(bedrock.Agent{ID: "AG1", Alias: "AL1", OpenTo: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	q := bedrock.Question{Text: "How many days?", Session: "session-1"}
	if name == "agent" {
		return func() (bedrock.Answer, error) { return a.Answer(t.Context(), ann.Access(), q, nil) }
	}
	return func() (bedrock.Answer, error) {
		return k.Answer(t.Context(), ann.Access(), bedrock.Generation{Model: answerModel, Stream: true}, q, nil)
	}
}

// invoked returns a service with a reply of InvokeAgent.
//
// Source: AWS, Amazon Bedrock API Reference, InvokeAgent, response syntax.
func invoked(parts ...[]byte) *service {
	return &service{kind: bedrocktest.StreamType, header: http.Header{"X-Amz-Bedrock-Agent-Session-Id": {"session-1"}}, parts: parts}
}

func part(text string, citations ...object) []byte {
	p := object{"bytes": base64.StdEncoding.EncodeToString([]byte(text))}
	if len(citations) > 0 {
		p["attribution"] = object{"citations": citations}
	}
	return bedrocktest.Event("chunk", p)
}

func (s *service) agent(t *testing.T, a bedrock.Agent, bases ...bedrock.KnowledgeBase) (bedrock.Answer, error) {
	t.Helper()
	p := s.serve(t)
	for _, b := range bases {
		k, err := p.KnowledgeBase(b)
		if err != nil {
			t.Fatal(err)
		}
		a.KnowledgeBases = append(a.KnowledgeBases, k)
	}
	a.AliasARN = "arn:aws:bedrock:eu-west-1:123456789012:agent-alias/AG12345678/AL12345678"
	c, err := p.Agent(a)
	if err != nil {
		t.Fatal(err)
	}
	return c.Answer(t.Context(), ann.Access(), bedrock.Question{Text: "How many days?", Session: "session-1"}, nil)
}

func TestAgent(t *testing.T) {
	trace := bedrocktest.Event("trace", object{"agentId": "AG12345678", "sessionId": "session-1", "trace": object{"orchestrationTrace": object{"rationale": object{"text": "thinking", "traceId": "1"}}}})
	s := invoked(trace, part("Thirty "), part("days. 😀", cited("Thirty days.", 0, 11, toAnn)), bedrocktest.Event("files", object{"files": []any{object{"name": "chart.png", "type": "image/png", "bytes": "AAAA"}}}))
	s.parts[1] = part("Thirty \xf0\x9f")
	s.parts = slices.Insert(s.parts, 2, part("\x98\x80 "))
	var told []string
	p := s.serve(t)
	c, err := p.Agent(bedrock.Agent{ID: "AG1", Alias: "AL1", OpenTo: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := c.Answer(t.Context(), ann.Access(), bedrock.Question{Text: "x", Session: "s1"}, func(text string) { told = append(told, text) }); err != nil || strings.Join(told, "") != a.Text || a.Text != "Thirty 😀 days. 😀" {
		t.Errorf("%+v, %v, told %q", a, err, told)
	}
	s.parts = slices.Delete(s.parts, 2, 3)
	s.parts[1] = part("Thirty ")
	a, err := s.agent(t, bedrock.Agent{OpenTo: []string{"group:legal"}}, bedrock.KnowledgeBase{ID: "KB12345678", Sharing: byKey})
	if err != nil {
		t.Fatal(err)
	}
	checkCitations(t, a, "Thirty days.")
	if a.Text != "Thirty days. 😀" || a.Session != "session-1" || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "chart.png") {
		t.Errorf("%+v", a)
	}
	const want = `{"inputText":"How many days?","sessionState":{"knowledgeBaseConfigurations":[{"knowledgeBaseId":"KB12345678","retrievalConfiguration":{"vectorSearchConfiguration":` +
		`{"filter":{"orAll":[{"listContains":{"key":"groups","value":"board"}},{"listContains":{"key":"groups","value":"legal"}},{"listContains":{"key":"users","value":"ann"}}]}}}}]}}`
	if s.path != "/agents/AG12345678/agentAliases/AL12345678/sessions/session-1/text" || compact(t, string(s.body)) != compact(t, want) {
		t.Errorf("asked %s %s", s.path, s.body)
	}
}

func TestAgentRefuses(t *testing.T) {
	answer := func() *service { return invoked(part("Thirty days.", cited("Thirty days.", 0, 11, toAnn))) }
	t.Run("by default", func(t *testing.T) {
		s := answer()
		if a, err := s.agent(t, bedrock.Agent{}); !errors.Is(err, assay.ErrNotFound) || s.body != nil {
			t.Errorf("%+v, %v", a, err)
		}
	})
	t.Run("open to others", func(t *testing.T) {
		s := answer()
		if a, err := s.agent(t, bedrock.Agent{OpenTo: []string{"user:eve"}}); !errors.Is(err, assay.ErrNotFound) || s.body != nil {
			t.Errorf("%+v, %v", a, err)
		}
	})
	t.Run("a knowledge base that is not shared", func(t *testing.T) {
		s := answer()
		if a, err := s.agent(t, bedrock.Agent{OpenTo: []string{"*"}}, bedrock.KnowledgeBase{ID: "KB1"}); !errors.Is(err, assay.ErrNotFound) || s.body != nil {
			t.Errorf("%+v, %v", a, err)
		}
	})
	t.Run("what she may not see", func(t *testing.T) {
		s := invoked(part("None.", cited("None.", 0, 4, toEve)))
		if a, err := s.agent(t, bedrock.Agent{OpenTo: []string{"*"}}, bedrock.KnowledgeBase{ID: "KB1", Sharing: byKey}); !errors.Is(err, assay.ErrUnavailable) || a.Text != "" {
			t.Errorf("%+v, %v", a, err)
		}
	})
	t.Run("what she may not see, in bytes that are no text", func(t *testing.T) {
		s := invoked(part("None.\xff", cited("None.", 0, 4, toEve)))
		if a, err := s.agent(t, bedrock.Agent{OpenTo: []string{"*"}}, bedrock.KnowledgeBase{ID: "KB1", Sharing: byKey}); !errors.Is(err, assay.ErrUnavailable) || a.Text != "" {
			t.Errorf("%+v, %v", a, err)
		}
	})
	t.Run("return of control", func(t *testing.T) {
		s := invoked(part("I "), bedrocktest.Event("returnControl", object{"invocationId": "1", "invocationInputs": []any{object{"functionInvocationInput": object{"actionGroup": "pay", "function": "transfer"}}}}))
		a, err := s.agent(t, bedrock.Agent{OpenTo: []string{"*"}})
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.BadRequest || !strings.Contains(e.Message, "return of control") || a.Text != "" {
			t.Errorf("%+v, %v", a, err)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		a, err := invoked(bedrocktest.Event("trace", object{})).agent(t, bedrock.Agent{OpenTo: []string{"*"}})
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.BrokeOff {
			t.Errorf("%+v, %v", a, err)
		}
	})
	t.Run("settings", func(t *testing.T) {
		p := bedrocktest.Open(t, "http://127.0.0.1:1")
		for _, a := range []bedrock.Agent{{}, {ID: "A"}, {ID: "A", Alias: "*"}, {AliasARN: "arn:aws:bedrock:eu-west-1:123456789012:agent/A"}, {ID: "A", Alias: "B", OpenTo: []string{"ann"}}} {
			if _, err := p.Agent(a); !errors.Is(err, assay.ErrInvalid) {
				t.Errorf("%+v: %v", a, err)
			}
		}
		c, err := p.Agent(bedrock.Agent{ID: "A", Alias: "B", OpenTo: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []bedrock.Question{{Session: "s1"}, {Text: "x"}, {Text: "x", Session: "a b"}, {Text: "x", Session: "s1", Filter: assay.Filter{Op: assay.OpEquals, Key: "a", Value: assay.NumberValue(1)}}} {
			if _, err := c.Answer(t.Context(), ann.Access(), q, nil); !errors.Is(err, assay.ErrInvalid) {
				t.Errorf("%+v: %v", q, err)
			}
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		c, err := answer().serve(t).Agent(bedrock.Agent{ID: "A1", Alias: "B1", OpenTo: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Answer(ctx, ann.Access(), bedrock.Question{Text: "x", Session: "s1"}, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestManagedSecrets checks that credentials sent back by a service are removed.
func TestManagedSecrets(t *testing.T) {
	for name, s := range map[string]*service{
		"answer": generated("The key is "+llmtest.Canary+".", cited("The key", 0, 6, toAnn)),
		"stream": streamed([]string{"The key is sk-can", strings.TrimPrefix(llmtest.Canary, "sk-can")}),
		"error":  {status: 400, kind: "application/json", parts: [][]byte{llmtest.JSON(object{"message": "bad: " + llmtest.Canary})}},
	} {
		var told strings.Builder
		a, err := s.ask(t, bedrock.KnowledgeBase{Sharing: byKey}, bedrock.Generation{Stream: name == "stream"}, func(text string) { told.WriteString(text) })
		data, _ := json.Marshal(a)
		if all := string(data) + told.String(); strings.Contains(all, llmtest.Canary) || err != nil && strings.Contains(err.Error(), llmtest.Canary) {
			t.Errorf("%s: %s, told %s, %v", name, data, told.String(), err)
		}
		if (err != nil) != (name == "error") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
