package prompted_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

var gradeInput = role.GradeInput{
	Question: "How long is the notice period for tenants?",
	Hits:     hits("Tenants give notice three months ahead.", "Bananas are yellow.", "Landlords wait."),
	Tried:    []string{"notice period tenants"},
	Floor:    0.5,
}

func TestGrade(t *testing.T) {
	good := `{"reason":"1 says it","relevant_chunks":[1],"missing":[],"verdict":"sufficient","reformulated_query":""}`
	sufficient := role.Grade{Verdict: assay.Sufficient, Relevant: []string{"chunk-1"}, Missing: []string{}, Reason: "1 says it"}
	stoodIn, err := local.Grader{}.Grade(t.Context(), replies(t), gradeInput)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		script []any
		want   role.Grade
		calls  int
		says   string // part of the failure or the notes
	}{
		{"good", []any{good}, sufficient, 1, ""},
		{"fenced", []any{"```json\n" + good + "\n```"}, sufficient, 1, ""},
		{"prose around it", []any{"Sure! Here {as asked} it is:\n" + good + "\nAnything else?"}, sufficient, 1, ""},
		{"thoughts before it", []any{"<think>maybe {\"verdict\":\"insufficient\"}?</think>" + good}, sufficient, 1, ""},
		{"the same twice", []any{good + "\n" + good}, sufficient, 1, ""},
		{"single quotes, a trailing comma, capitals, numbers as text", []any{
			`{'reason': '1 says it', 'relevant_chunks': ["1"], 'missing': null, 'verdict': 'Sufficient', 'extra': 1,}`,
		}, sufficient, 1, ""},
		{"two that differ, then one", []any{good + strings.Replace(good, "sufficient", "insufficient", 1), good}, sufficient, 2, ""},
		{"an invented number, then right", []any{strings.Replace(good, "[1]", "[1,9]", 1), good}, sufficient, 2, ""},
		{"an invented verdict, then right", []any{strings.Replace(good, "sufficient", "excellent", 1), good}, sufficient, 2, ""},
		{"an invented tool, then right", []any{llm.Response{Calls: []llm.ToolCall{{Name: "search"}}, Finish: llm.FinishTools}, good}, sufficient, 2, ""},
		{"cut off, then right", []any{llm.Response{Text: good[:40], Finish: llm.FinishLength}, good}, sufficient, 2, ""},
		{"a field twice, then right", []any{strings.Replace(good, `"missing":[]`, `"verdict":"partly"`, 1), good}, sufficient, 2, ""},
		{"sufficient, but something is missing", []any{strings.Replace(good, `"missing":[]`, `"missing":["for landlords"]`, 1)}, role.Grade{
			Verdict: assay.Partly, Relevant: []string{"chunk-1"}, Missing: []string{"for landlords"}, Reason: "1 says it",
		}, 1, ""},
		{"a query that was tried", []any{`{"relevant_chunks":[],"verdict":"insufficient","reformulated_query":"Notice  period tenants"}`}, role.Grade{
			Verdict: assay.Insufficient, Relevant: []string{}, Missing: []string{gradeInput.Question},
		}, 1, ""},
		{"a new query", []any{`{"relevant_chunks":[],"missing":["the period"],"verdict":"insufficient","reformulated_query":"\"lease\ntermination\""}`}, role.Grade{
			Verdict: assay.Insufficient, Relevant: []string{}, Missing: []string{"the period"}, Query: "lease termination",
		}, 1, ""},
		{"invented numbers to the end", []any{strings.Replace(good, "[1]", "[1,9]", 1)}, role.Grade{
			Verdict: assay.Partly, Relevant: []string{"chunk-1"}, Missing: []string{gradeInput.Question}, Reason: "1 says it",
		}, 3, "named unknown passages"},
		{"nothing but invented numbers", []any{strings.Replace(good, "[1]", "[8,9]", 1)}, stoodIn, 3, "passage 8 does not exist"},
		{"never JSON", []any{"I think it is enough."}, stoodIn, 3, "no JSON object"},
		{"empty", []any{""}, stoodIn, 3, "it is empty"},
		{"refused", []any{llm.Response{Text: "I can't help with that.", Finish: llm.FinishRefused}}, stoodIn, 1, "I can't help"},
		{"10 MB", []any{strings.Repeat(good, 10<<20/len(good))}, stoodIn, 3, "bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := replies(t, tt.script...)
			got, err := prompted.Grader{Config: config(), Local: local.Grader{}}.Grade(t.Context(), c, gradeInput)
			if err != nil {
				t.Fatal(err)
			}
			said := got.Failure + strings.Join(got.Notes, "\n")
			if len(c.calls) != tt.calls || tt.says == "" && said != "" || !strings.Contains(said, tt.says) {
				t.Errorf("%d calls, want %d; failure %q, notes %q, want %q", len(c.calls), tt.calls, got.Failure, got.Notes, tt.says)
			}
			if got.Failure != "" {
				got.Reason = ""
			}
			if local := cmp.Equal(tt.want, stoodIn); local != got.StoodIn {
				t.Errorf("stood in: %v, want %v", got.StoodIn, local)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(role.Grade{}, "Outcome")); diff != "" {
				t.Errorf("grade (-want +got):\n%s", diff)
			}
			for i := range c.calls {
				if n := len(c.last(i)); n > 8<<10 {
					t.Errorf("message %d has %d bytes", i, n)
				}
			}
		})
	}
}

// TestAskedAgain checks that the next prompt contains the unusable reply and the problem with it.
func TestAskedAgain(t *testing.T) {
	wrong := `{"relevant_chunks":[7],"verdict":"partly"}`
	c := replies(t, wrong, "```", `{"relevant_chunks":[1],"verdict":"partly"}`)
	if _, err := (prompted.Grader{Config: config()}).Grade(t.Context(), c, gradeInput); err != nil {
		t.Fatal(err)
	}
	second := c.calls[1].Request.Messages
	if len(second) != 3 || second[1].Text != wrong || !strings.Contains(second[2].Text, "passage 7 does not exist; there are 1, 2 and 3") {
		t.Errorf("second call: %+v", second)
	}
	if second[0].Text != c.calls[0].Request.Messages[0].Text || c.calls[1].Request.System != c.calls[0].Request.System {
		t.Error("the second prompt does not begin as the first")
	}
	if third := c.calls[2].Request.Messages; len(third) != 3 || !strings.Contains(third[2].Text, "no JSON object") {
		t.Errorf("third call: %+v", third)
	}
}

// TestAskedDifferently checks that no request is made twice, since the reply would be the same.
func TestAskedDifferently(t *testing.T) {
	c := replies(t, `{"relevant_chunks":[7],"verdict":"partly"}`)
	if _, err := (prompted.Grader{Config: config()}).Grade(t.Context(), c, gradeInput); err != nil {
		t.Fatal(err)
	}
	if len(c.calls) != 3 || len(c.calls[1].Request.Messages) != 3 || len(c.calls[2].Request.Messages) != 1 || !strings.Contains(c.last(2), "Your last reply cannot be used: passage 7") {
		t.Errorf("%d calls, the last with %q", len(c.calls), c.last(len(c.calls)-1))
	}
}

func TestProviderFails(t *testing.T) {
	in := gradeInput
	in.Terms = []assay.Term{{Text: "notice", Stem: "notic", Chunks: 1, Weight: 0.5}, {Text: "tenants", Stem: "tenant", Chunks: 1, Weight: 0.5}}
	want, err := local.Grader{}.Grade(t.Context(), nil, in)
	if err != nil {
		t.Fatal(err)
	}
	for _, failure := range []error{down, fmt.Errorf("step sub[0]/grade/call[0]/model: %w", down)} {
		got, err := prompted.Grader{Config: config(), Local: local.Grader{}}.Grade(t.Context(), replies(t, failure), in)
		if err != nil {
			t.Fatal(err)
		}
		if note := "grader: fake/small: rate limited (HTTP 429): slow down; the local grader stood in"; len(got.Notes) != 1 || got.Notes[0] != note || got.Failure != "" {
			t.Errorf("notes %q, failure %q; want %q", got.Notes, got.Failure, note)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(role.Grade{}, "Outcome")); diff != "" {
			t.Errorf("grade (-local +got):\n%s", diff)
		}
	}
	got, err := prompted.Grader{Config: config()}.Grade(t.Context(), replies(t, down), in)
	if err != nil || got.Verdict != assay.Insufficient || got.Failure == "" || len(got.Notes) != 1 {
		t.Errorf("without a local one: %+v, %v", got, err)
	}
}

// TestRunEnds checks that an error that ends the run is returned.
func TestRunEnds(t *testing.T) {
	over := fmt.Errorf("step x: %w", assay.ErrBudget)
	if _, err := (prompted.Grader{Config: config(), Local: local.Grader{}}).Grade(t.Context(), replies(t, over), gradeInput); !errors.Is(err, assay.ErrBudget) {
		t.Errorf("error %v, want ErrBudget", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (prompted.Grader{Config: config(), Local: local.Grader{}}).Grade(ctx, replies(t, ""), gradeInput); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestWithoutSchema(t *testing.T) {
	refusal := &llm.Error{Model: "fake/small", Kind: llm.BadRequest, Status: 400, Message: "Failed to initialize samplers"}
	c := replies(t, refusal, `{"relevant_chunks":[1],"verdict":"sufficient"}`)
	got, err := prompted.Grader{Config: config()}.Grade(t.Context(), c, gradeInput)
	if err != nil || got.Verdict != assay.Sufficient || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "without a schema") {
		t.Errorf("%+v, %v", got, err)
	}
	if len(c.calls) != 2 || c.calls[0].Request.Schema == nil || c.calls[1].Request.Schema != nil {
		t.Errorf("%d calls; the first has to have a schema, the second none", len(c.calls))
	}
}

// TestNobodyThere checks that a request is not retried if any request to the address would fail,
// even if the error is replayed.
func TestNobodyThere(t *testing.T) {
	for _, status := range []int{307, 404, 405} {
		refusal := error(&llm.Error{Model: "fake/small", Kind: llm.BadRequest, Status: status, Message: "page not found"})
		for _, err := range []error{refusal, fmt.Errorf("step auto/grade/call[0]/model: %w", refusal)} {
			c := replies(t, err)
			got, err := prompted.Grader{Config: config()}.Grade(t.Context(), c, gradeInput)
			if err != nil || got.Verdict != assay.Insufficient || len(c.calls) != 1 {
				t.Errorf("HTTP %d: %+v, %v after %d calls", status, got, err, len(c.calls))
			}
		}
	}
}

// TestSmallWindow checks that hits that do not fit into the window are left out, the worst first,
// with a note.
func TestSmallWindow(t *testing.T) {
	in := gradeInput
	in.Hits = nil
	for i := range 20 {
		in.Hits = append(in.Hits, hit(i+1, strings.Repeat("Tenants give notice three months ahead. ", 20)))
	}
	good := `{"relevant_chunks":[1],"verdict":"sufficient"}`
	c := replies(t, good)
	got, err := prompted.Grader{Config: prompted.Config{Model: model{llm.Facts{Window: 2048}}}}.Grade(t.Context(), c, in)
	if err != nil || got.Verdict != assay.Sufficient {
		t.Fatalf("%+v, %v", got, err)
	}
	if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "of 20 passages") {
		t.Errorf("notes %q", got.Notes)
	}
	if p := c.last(0); !strings.Contains(p, `number="1"`) || strings.Contains(p, `number="20"`) {
		t.Errorf("the prompt has not the best passage, or the worst")
	}
	// The server has less room than is known.
	long := &llm.Error{Model: "fake/small", Kind: llm.TooLong, Status: 400, Message: "exceeds the available context size (2048 tokens)"}
	c = replies(t, long, long, good)
	got, err = prompted.Grader{Config: config()}.Grade(t.Context(), c, in)
	if err != nil || got.Verdict != assay.Sufficient || len(c.calls) != 3 || len(c.last(1)) >= len(c.last(0)) || len(c.last(2)) >= len(c.last(1)) {
		t.Errorf("%+v, %v after %d calls", got, err, len(c.calls))
	}
	// No hit fits the window.
	c = replies(t, good)
	got, err = prompted.Grader{Config: prompted.Config{Model: model{llm.Facts{Window: 300}}}}.Grade(t.Context(), c, in)
	if err != nil || got.Failure == "" || len(c.calls) != 0 {
		t.Errorf("%+v, %v after %d calls", got, err, len(c.calls))
	}
}

// TestGraderReadsAll checks that hits far from the question's words are read too, that no model is
// called without hits, and that a local grader in the model's place applies the relevance floor.
func TestGraderReadsAll(t *testing.T) {
	in := gradeInput
	in.Hits = hits("Renters tell the owner a quarter of a year before they leave.")
	in.Hits[0].Scores.Relevance = 0.05
	c := replies(t, `{"relevant_chunks":[1],"verdict":"sufficient"}`)
	got, err := prompted.Grader{Config: config()}.Grade(t.Context(), c, in)
	if err != nil || got.Verdict != assay.Sufficient || len(got.Relevant) != 1 || !strings.Contains(c.last(0), "Renters tell") {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = prompted.Grader{Config: config(), Local: local.Grader{}}.Grade(t.Context(), replies(t, down), in)
	if err != nil || got.Verdict != assay.Insufficient || len(got.Relevant) != 0 {
		t.Errorf("the local one, standing in: %+v, %v", got, err)
	}
	in.Hits = nil
	for _, stand := range []role.Grader{nil, local.Grader{}} {
		c := replies(t, "no")
		got, err := prompted.Grader{Config: config(), Local: stand}.Grade(t.Context(), c, in)
		if err != nil || got.Verdict != assay.Insufficient || got.Failure != "" || len(got.Notes) > 0 || len(c.calls) != 0 || len(got.Missing) == 0 {
			t.Errorf("nothing found: %+v, %v after %d calls", got, err, len(c.calls))
		}
	}
}

// TestCutOff checks that a reply that was cut off gets more room, within the limits of the model
// and its window.
func TestCutOff(t *testing.T) {
	good := `{"relevant_chunks":[1],"verdict":"sufficient"}`
	cut := func(text string) llm.Response { return llm.Response{Text: text, Finish: llm.FinishLength} }
	long := gradeInput
	long.Hits = hits(strings.Repeat("Tenants give notice three months ahead. ", 400))
	for _, tt := range []struct {
		name   string
		facts  llm.Facts
		in     role.GradeInput
		script []any
		want   []int // MaxTokens of each call
	}{
		{"half a reply", llm.Facts{}, gradeInput, []any{cut(good[:20]), cut(good[:30]), good}, []int{600, 1200, 2400}},
		{"thoughts alone", llm.Facts{Window: 1 << 20}, gradeInput, []any{cut(""), cut(" "), good}, []int{600, 2400, 9600}},
		{"an object in thoughts", llm.Facts{Window: 1 << 20}, gradeInput, []any{cut("<think>" + good), good}, []int{600, 1200}},
		{"a whole one", llm.Facts{}, gradeInput, []any{cut(good + " and")}, []int{600}},
		{"a model that says no more", llm.Facts{MaxOutput: 700}, gradeInput, []any{cut("x"), good}, []int{600, 700}},
		{"a full window", llm.Facts{Window: 2048}, long, []any{cut("x"), good}, []int{512, 512}},
	} {
		c := replies(t, tt.script...)
		got, err := prompted.Grader{Config: prompted.Config{Model: model{tt.facts}}}.Grade(t.Context(), c, tt.in)
		var limits []int
		for _, call := range c.calls {
			limits = append(limits, call.Request.MaxTokens)
		}
		if diff := cmp.Diff(tt.want, limits); err != nil || got.Verdict != assay.Sufficient || diff != "" {
			t.Errorf("%s: %+v, %v (-want +got):\n%s", tt.name, got, err, diff)
		}
	}
}

// brokenGrader is a local role that fails, unlike the real ones.
type brokenGrader struct{ err error }

func (b brokenGrader) Grade(context.Context, role.Caller, role.GradeInput) (role.Grade, error) {
	return role.Grade{}, b.err
}

func TestStandInFails(t *testing.T) {
	got, err := prompted.Grader{Config: config(), Local: brokenGrader{errors.New("broken")}}.Grade(t.Context(), replies(t, down), gradeInput)
	if err != nil || got.Verdict != assay.Insufficient || !strings.Contains(got.Failure, "broken") || len(got.Notes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := (prompted.Grader{Config: config(), Local: brokenGrader{assay.ErrDeadline}}).Grade(t.Context(), replies(t, down), gradeInput); !errors.Is(err, assay.ErrDeadline) {
		t.Errorf("error %v, want ErrDeadline", err)
	}
}

// TestGradeAnswers checks that answers are kept in the words of the passage that they name, and that
// the local grader reads them if the model gives none.
func TestGradeAnswers(t *testing.T) {
	const reply = `{"reason":"","relevant_chunks":[1],"missing":[],"verdict":"sufficient","reformulated_query":"","answers":[%s]}`
	for name, tt := range map[string]struct {
		answers string
		want    []role.Extract
	}{
		"in the passage":    {`{"text":"three  months","passage":1},{"text":"Bananas","passage":2}`, []role.Extract{{Text: "three months", Chunk: "chunk-1", Score: 1}, {Text: "Bananas", Chunk: "chunk-2", Score: 0.5}}},
		"in another":        {`{"text":"three months","passage":2}`, nil},
		"of no passage":     {`{"text":"three months","passage":9},{"text":"three months","passage":0}`, nil},
		"invented":          {`{"text":"four months","passage":1}`, nil},
		"empty":             {`{"text":"","passage":1}`, nil},
		"more than allowed": {strings.Repeat(`{"text":"three","passage":1},`, 4) + `{"text":"months","passage":1}`, []role.Extract{{Text: "three", Chunk: "chunk-1", Score: 1}, {Text: "three", Chunk: "chunk-1", Score: 0.5}, {Text: "three", Chunk: "chunk-1", Score: 1. / 3}}},
	} {
		g, err := prompted.Grader{Config: config()}.Grade(t.Context(), replies(t, fmt.Sprintf(reply, tt.answers)), gradeInput)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, g.Answers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
