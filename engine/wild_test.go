package engine

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// The tests in this file give every strategy a role or a retriever of the caller that breaks its
// contract. A run may fail, but it must not panic, must not support a claim that the documents do
// not contain, and must replay.

// A wildPlanner returns one of the plans that no planner may return.
type wildPlanner struct {
	role.Planner
	plan role.Plan
}

func (p wildPlanner) Plan(context.Context, role.Caller, string) (role.Plan, error) {
	return p.plan, nil
}

// A wildGrader returns a grade that no grader may return.
type wildGrader struct{ grade role.Grade }

func (g wildGrader) Grade(context.Context, role.Caller, role.GradeInput) (role.Grade, error) {
	return g.grade, nil
}

// A wildGenerator returns a draft that no generator may return.
type wildGenerator struct{ draft role.Draft }

func (g wildGenerator) Generate(context.Context, role.Caller, role.GenerateInput) (role.Draft, error) {
	return g.draft, nil
}

// A wildVerifier returns judgements that no verifier may return.
type wildVerifier struct{ judgement ground.Judgement }

func (v wildVerifier) Verify(_ context.Context, _ role.Caller, claims []role.Claim) ([]ground.Judgement, error) {
	out := make([]ground.Judgement, len(claims))
	for i := range out {
		out[i] = v.judgement
	}
	return out, nil
}

// A wildAnswerGrader returns a grade that no grader of answers may return.
type wildAnswerGrader struct{ relevance float64 }

func (g wildAnswerGrader) GradeAnswer(context.Context, role.Caller, role.AnswerInput) (role.AnswerGrade, error) {
	return role.AnswerGrade{Relevance: &g.relevance}, nil
}

func wildRoles() map[string]func(*strategy.Roles) {
	half := 7.5
	sub := func(texts ...string) (list []role.SubQuestion) {
		for _, t := range texts {
			list = append(list, role.SubQuestion{Text: t, Needs: []int{0, 5, -1}})
		}
		return list
	}
	plan := func(p role.Plan) func(*strategy.Roles) {
		return func(r *strategy.Roles) { r.Planner = wildPlanner{r.Planner, p} }
	}
	grade := func(g role.Grade) func(*strategy.Roles) {
		return func(r *strategy.Roles) { r.Grader = wildGrader{g} }
	}
	draft := func(d role.Draft) func(*strategy.Roles) {
		return func(r *strategy.Roles) { r.Generator = wildGenerator{d} }
	}
	verdict := func(j ground.Judgement) func(*strategy.Roles) {
		return func(r *strategy.Roles) { r.Verifier = wildVerifier{j} }
	}
	return map[string]func(*strategy.Roles){
		"plan of nothing":    plan(role.Plan{}),
		"plan of blanks":     plan(role.Plan{Shape: "spiral", SubQuestions: sub("", " ", "#1 and #9")}),
		"plan in a circle":   plan(role.Plan{Shape: role.Chain, SubQuestions: sub("Who approves #2?", "Who is #1?", "#3")}),
		"grade of nothing":   grade(role.Grade{}),
		"grade of strangers": grade(role.Grade{Verdict: "superb", Relevant: []string{"", "nosuch", "nosuch"}, Answerability: &half}),
		"sufficient":         grade(role.Grade{Verdict: assay.Sufficient, Relevant: []string{"nosuch"}, Answers: []role.Extract{{}}}),
		"draft of nothing":   draft(role.Draft{}),
		"draft of strangers": draft(role.Draft{Statements: []role.Statement{{Text: "Anyone.", Evidence: []int{0, -1, 99}}, {}}, Conflicts: [][2]int{{0, 9}, {-1, 0}}}),
		"draft of a table":   draft(role.Draft{Shape: role.Table, Statements: []role.Statement{{Text: "Anyone.", Evidence: []int{1}, Cells: []string{"a", "b"}}}}),
		"draft of blanks":    draft(role.Draft{Statements: []role.Statement{{Text: "\n", Evidence: []int{1}}, {Text: "\xff", Evidence: []int{1, 1}}}}),
		"score of 7.5":       verdict(ground.Judgement{Verdict: assay.Supported, Score: half}),
		"score of NaN":       verdict(ground.Judgement{Verdict: assay.Supported, Score: math.NaN()}),
		"no score":           verdict(ground.Judgement{Verdict: assay.Supported}),
		"a verdict of none":  verdict(ground.Judgement{Verdict: "fine", Score: 1}),
		"relevance of 7.5":   func(r *strategy.Roles) { r.Relevance = wildAnswerGrader{half} },
		"relevance of NaN":   func(r *strategy.Roles) { r.Relevance = wildAnswerGrader{math.NaN()} },
	}
}

// unsure are the wild roles with which no answer can be complete.
var unsure = map[string]bool{
	"grade of nothing": true, "grade of strangers": true, "sufficient": true, "draft of nothing": true, "draft of strangers": true, "draft of a table": true,
	"draft of blanks": true, "score of 7.5": true, "score of NaN": true, "no score": true, "a verdict of none": true, "relevance of 7.5": true, "relevance of NaN": true,
}

func TestWildRoles(t *testing.T) {
	e, _, _ := openEvery(t)
	names := strategy.Names()
	if testing.Short() {
		names = []string{"auto", "corrective", "multihop"}
	}
	for label, wild := range wildRoles() {
		e.config.Roles = func(r strategy.Roles) strategy.Roles {
			wild(&r)
			return r
		}
		for _, name := range names {
			wildly(t, e, label, name, everyRequest(name).Question)
		}
	}
}

// wildly asks a question and checks the answer, if there is one.
func wildly(t *testing.T, e *Engine, label, name, question string) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s, %s: panic: %v", label, name, p)
		}
	}()
	req := everyRequest(name)
	req.Question, req.Budget.Wall = question, 20*time.Second
	a, err := e.Answer(t.Context(), assay.Local(), req)
	if err != nil {
		return // a run may fail
	}
	ownDraft := name == "managed" && strings.HasPrefix(label, "draft")
	if unsure[label] && !ownDraft && a.Status == assay.Answered {
		t.Errorf("%s, %s: answered: %q", label, name, a.Text)
	}
	if _, err := e.Replay(t.Context(), assay.Local(), a.Run); err != nil {
		t.Errorf("%s, %s: %v", label, name, err)
	}
}

// A wildRetriever changes the hits of the built-in one.
type wildRetriever struct {
	assay.Retriever
	change func(*assay.Hit)
}

func (w wildRetriever) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	r, err := w.Retriever.Retrieve(ctx, access, q)
	for i := range r.Hits {
		w.change(&r.Hits[i])
	}
	return r, err
}

func TestWildRetriever(t *testing.T) {
	e, _, _ := openEvery(t)
	var change func(*assay.Hit)
	e.config.Retriever = func(builtin assay.Retriever) assay.Retriever {
		return wildRetriever{builtin, func(h *assay.Hit) { change(h) }}
	}
	e.wrap = e.config.wrapper(e.content)
	score := func(x float64) func(*assay.Hit) { return func(h *assay.Hit) { h.Scores.Relevance = x } }
	names := strategy.Names()
	if testing.Short() {
		names = []string{"auto", "corrective", "multihop"}
	}
	for label, f := range map[string]func(*assay.Hit){
		"no chunk":        func(h *assay.Hit) { h.Chunk.ID = "" },
		"one chunk":       func(h *assay.Hit) { h.Chunk.ID = "the same" },
		"before the text": func(h *assay.Hit) { h.Chunk.Start = -5 },
		"after the text":  func(h *assay.Hit) { h.Chunk.Start, h.Chunk.End = 1<<40, 1<<41 },
		"backwards":       func(h *assay.Hit) { h.Chunk.Start, h.Chunk.End = h.Chunk.End, h.Chunk.Start },
		"other words":     func(h *assay.Hit) { h.Text = "Anyone approves everything." },
		"no words":        func(h *assay.Hit) { h.Text = "" },
		"half a rune":     func(h *assay.Hit) { h.Text = "\xc3" },
		"another version": func(h *assay.Hit) { h.Chunk.Version = "nosuch" },
		"relevance 2":     score(2), "relevance -1": score(-1), "relevance NaN": score(math.NaN()), "relevance Inf": score(math.Inf(1)),
	} {
		change = f
		for _, name := range names {
			wildly(t, e, label, name, everyRequest(name).Question)
		}
	}
}
