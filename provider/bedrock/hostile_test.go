package bedrock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/bedrock"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestHostile replaces each value in the replies of knowledge bases, guardrails and managed answers
// with values of other types, and leaves it out. The outcome must be an *llm.Error or keep the
// contract.
func TestHostile(t *testing.T) {
	var reply []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(reply)
	}))
	defer server.Close()
	p := bedrocktest.Open(t, server.URL)
	k, err := p.KnowledgeBase(bedrock.KnowledgeBase{ID: "KB12345678", Sharing: byKey, Pages: 2})
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Verifier(bedrock.Grounding{Guardrail: bedrock.Guardrail{ID: "gr1"}})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reply object
		ask   func() error
	}{
		"retrieve": {object{"retrievalResults": []any{object{"content": object{"text": "thirty days", "type": "TEXT"}, "location": bedrocktest.S3("s3://b/k"), "score": 0.5,
			"metadata": object{"users": []any{"ann"}, "n": 1}}}, "guardrailAction": "NONE", "nextToken": "x"}, func() error {
			r, err := k.Retrieve(t.Context(), ann.Access(), assay.Query{Text: "days", Limit: 5})
			for _, h := range r.Hits {
				checkHit(t, h)
			}
			return err
		}},
		"answer": {object{"output": object{"text": "Thirty days."}, "sessionId": "s", "citations": []any{cited("Thirty days.", 0, 11, toAnn)}}, func() error {
			a, err := k.Answer(t.Context(), ann.Access(), bedrock.Generation{Model: answerModel}, bedrock.Question{Text: "days"}, nil)
			for _, c := range a.Citations {
				if c.Start < 0 || c.End < c.Start || c.End > len(a.Text) {
					t.Errorf("citation %+v of %q", c, a.Text)
				}
				for _, h := range c.Hits {
					checkHit(t, h)
				}
			}
			return err
		}},
		"guardrail": {object{"action": "NONE", "assessments": []any{object{"contextualGroundingPolicy": object{"filters": []any{object{"type": "GROUNDING", "threshold": 0.5, "score": 0.9, "action": "NONE"}}}}}}, func() error {
			j, err := v.Verify(t.Context(), "a", []ground.Passage{leave})
			if !(j.Score >= 0 && j.Score <= 1) {
				t.Errorf("%+v", j)
			}
			if j.Verdict == assay.Supported && !strings.Contains(string(reply), `"GROUNDING"`) {
				t.Errorf("%+v after %s", j, reply)
			}
			return err
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var doc any
			if err := json.Unmarshal(llmtest.JSON(test.reply), &doc); err != nil {
				t.Fatal(err)
			}
			n := 0
			llmtest.Mutate(doc, func() {
				if n++; testing.Short() && n%3 != 0 {
					return
				}
				reply = llmtest.JSON(doc)
				if err := test.ask(); err != nil && !errors.Is(err, assay.ErrUnavailable) {
					t.Errorf("after %s: %v", reply, err)
				}
				if t.Failed() {
					t.Fatalf("after %s", reply)
				}
			})
			for _, garbage := range []string{"", "null", "[]", "{", `{"a":` + strings.Repeat("[", 100_000), "\xff\xfe", `"text"`} {
				reply = []byte(garbage)
				if err := test.ask(); err != nil && !errors.Is(err, assay.ErrUnavailable) {
					t.Errorf("after %.40q: %v", garbage, err)
				}
			}
			if n < 50 {
				t.Errorf("only %d replies were tried", n)
			}
		})
	}
}

// checkHit checks the invariants of every hit.
func checkHit(t *testing.T, h assay.Hit) {
	t.Helper()
	if h.Text == "" || h.Text[h.Chunk.Start:h.Chunk.End] != h.Text || !utf8.ValidString(h.Text+h.URI+h.Title) || h.Chunk.ID == "" || h.Page < 0 {
		t.Errorf("hit %+v", h)
	}
	if s := h.Scores; !(s.Relevance >= 0 && s.Relevance <= 1) || s.Managed != nil && (math.IsNaN(*s.Managed) || math.IsInf(*s.Managed, 0)) {
		t.Errorf("scores %+v", s)
	}
	if _, err := json.Marshal(h); err != nil {
		t.Errorf("hit %+v: %v", h, err)
	}
}

// testScript is a reply of two pieces.
var testScript = llmtest.Script{Pieces: []string{"Thirty ", "days."}, Finish: llm.FinishStop, Usage: assay.Usage{InputTokens: 5, OutputTokens: 5}}

// TestHostileStreams checks invalid frames.
func TestHostileStreams(t *testing.T) {
	whole := bedrocktest.Reply(testScript, true, false)
	parts := whole.Parts
	streams := map[string][][]byte{
		"nothing":             {},
		"no frames":           {[]byte("data: hello\n\n")},
		"a huge frame":        {{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 2, 3, 4}},
		"a frame of nothing":  {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		"a wrong checksum":    {append([]byte(nil), flip(parts[1], len(parts[1])-1)...)},
		"a wrong length":      {flip(parts[1], 3)},
		"a wrong payload":     {flip(parts[1], len(parts[1])-8)},
		"an end, twice":       append(append([][]byte{}, parts...), parts[len(parts)-1]),
		"no end":              parts[:len(parts)-2],
		"no metadata":         parts[:len(parts)-1],
		"deltas of no block":  {bedrocktest.Event("contentBlockDelta", object{"contentBlockIndex": 7, "delta": object{"toolUse": object{"input": "{}"}}})},
		"a delta of nothing":  {bedrocktest.Event("contentBlockDelta", object{}), bedrocktest.Event("contentBlockStart", object{}), bedrocktest.Event("messageStop", object{}), bedrocktest.Event("metadata", object{})},
		"no JSON":             {bedrocktest.Event("messageStop", json.RawMessage(`"x"`))},
		"an unknown error":    {bedrocktest.Failure("Strange", "x\n\x00y")},
		"an unknown thing":    {bedrocktest.Exception("strangeException", "x")},
		"metadata, then text": {parts[len(parts)-2], parts[len(parts)-1], parts[1]},
	}
	for name, frames := range streams {
		t.Run(name, func(t *testing.T) {
			s := &service{kind: bedrocktest.StreamType, parts: frames}
			r, _, err := s.generate(t, func(c *bedrock.Config) { c.Stream = true }, haiku, llm.Request{})
			e, _ := errors.AsType[*llm.Error](err)
			switch {
			case err != nil && (e == nil || r.Text != "" || e.Usage.Calls != 1 || strings.ContainsAny(e.Message, "\n\x00")):
				t.Errorf("%+v, %v", r, err)
			case err == nil && name != "an end, twice" && name != "metadata, then text" && name != "a delta of nothing":
				t.Errorf("%+v", r)
			}
		})
	}
}

func flip(frame []byte, at int) []byte {
	out := append([]byte(nil), frame...)
	out[at] ^= 0x55
	return out
}

// ExampleSharing shows access control of a knowledge base.
func ExampleSharing() {
	p, err := bedrock.New(bedrock.Config{Region: "eu-west-1"})
	if err != nil {
		panic(err)
	}
	k, err := p.KnowledgeBase(bedrock.KnowledgeBase{
		ID: "KB12345678", Collection: "handbook",
		Sharing: bedrock.Sharing{OpenTo: []string{"group:hr"}, UsersKey: "allowed_users", GroupsKey: "allowed_groups"},
	})
	fmt.Println(k.Model(), err)
	// Output: bedrock/knowledge-base/KB12345678 <nil>
}
