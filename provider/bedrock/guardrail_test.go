package bedrock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/bedrock"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
)

// assessment is a reply of ApplyGuardrail with a grounding score.
//
// Source: AWS, Amazon Bedrock API Reference, ApplyGuardrail, response syntax; User Guide, "Use
// contextual grounding check to filter hallucinations in responses".
const assessment = `{"action":%q,"outputs":[],"usage":{"topicPolicyUnits":0,"contentPolicyUnits":0,"wordPolicyUnits":0,"sensitiveInformationPolicyUnits":0,"sensitiveInformationPolicyFreeUnits":0,"contextualGroundingPolicyUnits":1},"assessments":[{"contextualGroundingPolicy":{"filters":[%s]}%s}]}`

func grounding(score, threshold, action string) string {
	return fmt.Sprintf(`{"type":"GROUNDING","threshold":%s,"score":%s,"action":%q}`, threshold, score, action)
}

// verify checks a claim with a guardrail that answers with reply.
func verify(t *testing.T, status int, reply string, c bedrock.Grounding, claim string, cited ...ground.Passage) (j ground.Judgement, asked []byte, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ = io.ReadAll(r.Body)
		if r.URL.Path != "/guardrail/gr12345/version/3/apply" {
			t.Errorf("asked %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, reply)
	}))
	defer server.Close()
	c.Guardrail = bedrock.Guardrail{ID: "gr12345", Version: "3"}
	v, err := bedrocktest.Open(t, server.URL).Verifier(c)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(v.Model(), "bedrock/guardrail/gr12345:3") {
		t.Errorf("it is called %s", v.Model())
	}
	j, err = v.VerifyFor(t.Context(), holiday, claim, cited)
	return j, asked, err
}

// holiday is a user's question.
const holiday = "How much holiday is there, and who approves it?"

var leave = ground.Passage{Quote: "Everybody has thirty days of leave.", Context: "Everybody has thirty days of leave. Nobody has more.", Heading: []string{"Handbook", "Leave"}}

func TestVerifier(t *testing.T) {
	const relevant = `,{"type":"RELEVANCE","threshold":0.5,"score":0.99,"action":"NONE"}`
	tests := map[string]struct {
		reply     string
		threshold float64
		verdict   assay.Verdict
		score     float64
	}{
		"grounded":             {fmt.Sprintf(assessment, "NONE", grounding("0.93", "0.7", "NONE")+relevant, ""), 0, assay.Supported, 0.93},
		"at the threshold":     {fmt.Sprintf(assessment, "NONE", grounding("0.7", "0.7", "NONE"), ""), 0, assay.Supported, 0.7},
		"blocked":              {fmt.Sprintf(assessment, "GUARDRAIL_INTERVENED", grounding("0.2", "0.7", "BLOCKED")+relevant, ""), 0, assay.Unsupported, 0.2},
		"detected, not acted":  {fmt.Sprintf(assessment, "NONE", grounding("0.2", "0.7", "NONE"), ""), 0, assay.Unsupported, 0.2},
		"our own threshold":    {fmt.Sprintf(assessment, "NONE", grounding("0.8", "0.7", "NONE"), ""), 0.9, assay.Unsupported, 0.8},
		"no threshold":         {fmt.Sprintf(assessment, "NONE", `{"type":"GROUNDING","score":0.99,"action":"NONE"}`, ""), 0, assay.Unsupported, 0},
		"no score":             {fmt.Sprintf(assessment, "NONE", `{"type":"GROUNDING","threshold":0.5,"action":"NONE"}`, ""), 0, assay.Unsupported, 0},
		"no action":            {fmt.Sprintf(assessment, "NONE", `{"type":"GROUNDING","threshold":0.5,"score":0.9}`, ""), 0, assay.Unsupported, 0.9},
		"score out of range":   {fmt.Sprintf(assessment, "NONE", grounding("7", "0.7", "NONE"), ""), 0, assay.Unsupported, 0},
		"relevance alone":      {fmt.Sprintf(assessment, "NONE", relevant[1:], ""), 0, assay.Unsupported, 0},
		"no filters":           {fmt.Sprintf(assessment, "NONE", "", ""), 0, assay.Unsupported, 0},
		"no assessments":       {`{"action":"NONE","assessments":[],"outputs":[]}`, 0, assay.Unsupported, 0},
		"no policy":            {`{"action":"NONE","assessments":[{}],"outputs":[]}`, 0, assay.Unsupported, 0},
		"nothing":              {`{}`, 0, assay.Unsupported, 0},
		"intervened otherwise": {fmt.Sprintf(assessment, "GUARDRAIL_INTERVENED", grounding("0.93", "0.7", "NONE"), ""), 0, assay.Unsupported, 0.93},
		"another policy":       {fmt.Sprintf(assessment, "NONE", grounding("0.93", "0.7", "NONE"), `,"topicPolicy":{"topics":[{"name":"leave","type":"DENY","action":"BLOCKED"}]}`), 0, assay.Unsupported, 0.93},
		"masked":               {fmt.Sprintf(assessment, "GUARDRAIL_INTERVENED", grounding("0.93", "0.7", "NONE"), `,"sensitiveInformationPolicy":{"piiEntities":[{"match":"x","type":"NAME","action":"ANONYMIZED"}],"regexes":[]}`), 0, assay.Unsupported, 0.93},
		"content":              {fmt.Sprintf(assessment, "NONE", grounding("0.93", "0.7", "NONE"), `,"contentPolicy":{"filters":[{"type":"HATE","confidence":"HIGH","action":"BLOCKED"}]}`), 0, assay.Unsupported, 0.93},
		"word":                 {fmt.Sprintf(assessment, "NONE", grounding("0.93", "0.7", "NONE"), `,"wordPolicy":{"customWords":[{"match":"x","action":"BLOCKED"}],"managedWordLists":[]}`), 0, assay.Unsupported, 0.93},
		"several, one is not":  {fmt.Sprintf(assessment, "NONE", grounding("0.93", "0.7", "NONE")+","+grounding("0.3", "0.7", "NONE"), ""), 0, assay.Unsupported, 0.3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			j, _, err := verify(t, 200, test.reply, bedrock.Grounding{Threshold: test.threshold}, "There are thirty days of leave.", leave)
			if err != nil || j.Verdict != test.verdict || j.Score != test.score || j.Reason == "" || j.Usage.Calls != 1 {
				t.Errorf("%+v, %v; want %s with %v", j, err, test.verdict, test.score)
			}
		})
	}
}

// TestRelevance checks that the relevance to the question is a score of its own, with the guardrail's
// own threshold, and that it does not count in the verdict on the grounding.
func TestRelevance(t *testing.T) {
	relevance := func(score, threshold, action string) string {
		return fmt.Sprintf(`,{"type":"RELEVANCE","threshold":%s,"score":%s,"action":%q}`, threshold, score, action)
	}
	good, bad := grounding("0.93", "0.7", "NONE"), grounding("0.2", "0.7", "BLOCKED")
	const topic = `,"topicPolicy":{"topics":[{"name":"leave","type":"DENY","action":"BLOCKED"}]}`
	tests := map[string]struct {
		action, filters, other string
		verdict                assay.Verdict
		relevance              float64 // -1: none
		offTopic               bool
		refused, failed        bool
	}{
		"relevant":               {"NONE", good + relevance("0.8", "0.5", "NONE"), "", assay.Supported, 0.8, false, false, false},
		"at the threshold":       {"NONE", good + relevance("0.5", "0.5", "NONE"), "", assay.Supported, 0.5, false, false, false},
		"off topic":              {"GUARDRAIL_INTERVENED", good + relevance("0.1", "0.5", "BLOCKED"), "", assay.Supported, 0.1, true, false, false},
		"off topic, only told":   {"NONE", good + relevance("0.1", "0.5", "NONE"), "", assay.Supported, 0.1, true, false, false},
		"relevant, not grounded": {"GUARDRAIL_INTERVENED", bad + relevance("0.8", "0.5", "NONE"), "", assay.Unsupported, 0.8, false, false, false},
		"neither":                {"GUARDRAIL_INTERVENED", bad + relevance("0.1", "0.5", "BLOCKED"), "", assay.Unsupported, 0.1, true, false, false},
		"the lower of two":       {"NONE", good + relevance("0.9", "0.5", "NONE") + relevance("0.6", "0.5", "NONE"), "", assay.Supported, 0.6, false, false, false},
		"not checked":            {"NONE", good, "", assay.Supported, -1, false, false, false},
		"no score":               {"NONE", good + `,{"type":"RELEVANCE","threshold":0.5,"action":"NONE"}`, "", assay.Supported, -1, true, false, false},
		"score out of range":     {"NONE", good + relevance("7", "0.5", "NONE"), "", assay.Supported, -1, true, false, false},
		"another policy as well": {"GUARDRAIL_INTERVENED", good + relevance("0.1", "0.5", "BLOCKED"), topic, assay.Unsupported, 0.1, true, true, false},
		"an unexplained block":   {"GUARDRAIL_INTERVENED", good + relevance("0.8", "0.5", "NONE"), "", assay.Unsupported, 0.8, false, true, false},
		"neither was checked":    {"NONE", "", "", assay.Unsupported, -1, false, false, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j, _, err := verify(t, 200, fmt.Sprintf(assessment, tt.action, tt.filters, tt.other), bedrock.Grounding{}, "There are thirty days of leave.", leave)
			got := -1.0
			if j.Relevance != nil {
				got = *j.Relevance
			}
			if err != nil || j.Verdict != tt.verdict || got != tt.relevance || j.OffTopic != tt.offTopic || (j.Refused != "") != tt.refused || j.Failed != tt.failed {
				t.Errorf("%+v with relevance %v, %v", j, got, err)
			}
		})
	}
}

// TestGuardrailBlocks checks that a verifier sends what a claim cites, the user's question and the
// claim in blocks of their own, and that both scores come back.
func TestGuardrailBlocks(t *testing.T) {
	g := &bedrocktest.Guardrail{Name: "gr12345", Grounding: 0.7, Relevance: 0.5, Score: func(in bedrocktest.Guarded) (float64, float64) { return 0.9, 0.3 }}
	v, err := bedrocktest.Open(t, g.Serve(t)).Verifier(bedrock.Grounding{Guardrail: bedrock.Guardrail{ID: "gr12345", Version: "3"}})
	if err != nil {
		t.Fatal(err)
	}
	j, err := v.VerifyFor(t.Context(), holiday, "There are thirty days.", []ground.Passage{leave})
	if err != nil || j.Verdict != assay.Supported || j.Score != 0.9 || j.Relevance == nil || *j.Relevance != 0.3 || !j.OffTopic {
		t.Errorf("%+v, %v", j, err)
	}
	want := []bedrocktest.Guarded{{Sources: []string{"Handbook — Leave\nEverybody has thirty days of leave."}, Query: holiday, Content: "There are thirty days."}}
	if diff := cmp.Diff(want, g.Asked()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if j, err := v.Verify(t.Context(), "There are thirty days.", []ground.Passage{leave}); err != nil || j.Verdict != assay.Supported || j.Relevance != nil || j.OffTopic {
		t.Errorf("without a question: %+v, %v", j, err)
	}
	if _, err := v.VerifyFor(t.Context(), strings.Repeat("why ", 300), "There are thirty days.", []ground.Passage{leave}); err == nil || len(g.Asked()) != 2 {
		t.Errorf("a question over the limit: %v", err)
	}
}

// TestVerifierAsks checks the request to a guardrail.
func TestVerifierAsks(t *testing.T) {
	_, asked, err := verify(t, 200, `{"action":"NONE"}`, bedrock.Grounding{}, "There are thirty days.", leave, ground.Passage{Quote: " "}, leave, ground.Passage{Quote: "Nobody has more."})
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(asked, &got); err != nil {
		t.Fatal(err)
	}
	const want = `{"content":[{"text":{"qualifiers":["grounding_source"],"text":"Handbook — Leave\nEverybody has thirty days of leave."}},{"text":{"qualifiers":["grounding_source"],"text":"Nobody has more."}},` +
		`{"text":{"qualifiers":["query"],"text":"How much holiday is there, and who approves it?"}},{"text":{"qualifiers":["guard_content"],"text":"There are thirty days."}}],"outputScope":"FULL","source":"OUTPUT"}`
	if compact(t, string(asked)) != compact(t, want) {
		t.Errorf("asked %s\nwant %s", asked, want)
	}
}

// TestVerifierFails checks that a failing verifier supports nothing.
func TestVerifierFails(t *testing.T) {
	long := strings.Repeat("é", 5001)
	tests := map[string]struct {
		status int
		reply  string
		claim  string
		cited  []ground.Passage
		kind   llm.ErrorKind
	}{
		"throttled":        {429, `{"message":"slow down"}`, "a", []ground.Passage{leave}, llm.RateLimited},
		"no guardrail":     {404, `{"__type":"ResourceNotFoundException","message":"no such guardrail"}`, "a", []ground.Passage{leave}, llm.NoModel},
		"server error":     {500, `{}`, "a", []ground.Passage{leave}, llm.ServerError},
		"no JSON":          {200, `<html>`, "a", []ground.Passage{leave}, llm.BadReply},
		"cut":              {200, `{"action":"NONE","assess`, "a", []ground.Passage{leave}, ""},
		"a long claim":     {200, `{}`, long, []ground.Passage{leave}, llm.TooLong},
		"long sources":     {200, `{}`, "a", []ground.Passage{{Quote: strings.Repeat("x", 60_000)}, {Quote: strings.Repeat("y", 60_000)}}, llm.TooLong},
		"nonsense numbers": {200, fmt.Sprintf(assessment, "NONE", grounding("1e999", "0.7", "NONE"), ""), "a", []ground.Passage{leave}, ""},
		"wrong types":      {200, fmt.Sprintf(assessment, "NONE", grounding(`"0.99x"`, "0.7", "NONE"), ""), "a", []ground.Passage{leave}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			j, asked, err := verify(t, test.status, test.reply, bedrock.Grounding{}, test.claim, test.cited...)
			e, ok := errors.AsType[*llm.Error](err)
			if j.Verdict != assay.Unsupported || !ok || test.kind != "" && e.Kind != test.kind {
				t.Errorf("%+v, %v; want unsupported and an error of the kind %q", j, err, test.kind)
			}
			if test.kind == llm.TooLong && asked != nil {
				t.Error("what is too long was sent")
			}
		})
	}
	for _, cited := range [][]ground.Passage{nil, {{Quote: "  "}}} {
		if j, asked, err := verify(t, 200, `{}`, bedrock.Grounding{}, "a", cited...); err != nil || j.Verdict != assay.Unsupported || asked != nil {
			t.Errorf("a claim that cites nothing: %+v, %v", j, err)
		}
	}
}

// TestVerifierName checks that verifiers with other thresholds have other names, since the answer
// cache tells them apart by these.
func TestVerifierName(t *testing.T) {
	for threshold, want := range map[float64]string{0: "bedrock/guardrail/gr1:3", 0.75: "bedrock/guardrail/gr1:3@0.75"} {
		v, err := bedrocktest.Open(t, "http://127.0.0.1:1").Verifier(bedrock.Grounding{Guardrail: bedrock.Guardrail{ID: "gr1", Version: "3"}, Threshold: threshold})
		if err != nil || v.Model() != want {
			t.Errorf("threshold %v: %q, %v, want %q", threshold, v.Model(), err, want)
		}
	}
}

func TestVerifierRefused(t *testing.T) {
	p := bedrocktest.Open(t, "http://127.0.0.1:1")
	for _, c := range []bedrock.Grounding{{}, {Guardrail: bedrock.Guardrail{ID: "a*"}}, {Guardrail: bedrock.Guardrail{ID: "a"}, Threshold: 2}, {Guardrail: bedrock.Guardrail{ID: "arn:aws:bedrock:eu-west-1:123456789012:agent/x"}}} {
		if _, err := p.Verifier(c); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
