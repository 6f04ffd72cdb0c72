package strategy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// written returns the Env of a question that a model answers with a draft. V verifies its claims,
// and reader reads the documents.
func written(t *testing.T, reader llm.Reader, v func(claim string) assay.Verdict, d role.Draft, texts ...string) strategy.Env {
	t.Helper()
	e := proven(t, d, role.ByClaim(verifier(func(claim string, _ []ground.Passage) (ground.Judgement, error) {
		j := ground.Judgement{Verdict: v(claim), Score: 0.9, Reason: "so it is"}
		if j.Verdict != assay.Supported {
			j.Score = 0.1
		}
		return j, nil
	})), texts...)
	e.Began = map[string]string{role.GeneratorRole: "fake/writer"}
	if reader != nil {
		e.Roles.Reader, e.ReaderModel = reader, reader.Model()
	}
	return e
}

// TestReplace checks that a refused statement is replaced only by the nearest sentence of its
// sources that answers the question, and is otherwise dropped and reported as missing.
func TestReplace(t *testing.T) {
	const opens, coffee = "The kiosk opens at nine in the morning.", "Coffee at the kiosk is two euros."
	contrary := func(p llm.ClaimPair) (llm.Entailment, error) {
		return llm.Entailment{Contradicted: 0.9, Neutral: 0.1}, nil
	}
	reads := func(answerable float64) func(string, llm.Excerpt) (llm.Reading, error) {
		return func(q string, p llm.Excerpt) (llm.Reading, error) {
			r, err := llmtest.ReadByWords(q, p)
			r.Answerable = answerable
			return r, err
		}
	}
	tests := []struct {
		name    string
		reader  *llmtest.Reader
		says    string
		want    string // text shown
		missing bool   // the statement is reported as missing
	}{
		{"nearly the same words", &llmtest.Reader{OnRead: reads(0.9)}, "The kiosk opens at ten in the morning.", opens + " [1]", false},
		{"contradicted", &llmtest.Reader{OnRead: reads(0.9), OnEntail: contrary}, "The kiosk opens only at noon.", opens + " [1]", false},
		{"other words", &llmtest.Reader{OnRead: reads(0.9)}, "The kiosk opens only when the owner pleases.", "", true},
		{"nothing near", &llmtest.Reader{OnRead: reads(0.9)}, "Rolls are sold out by lunch.", "", true},
		{"near, and answers nothing", &llmtest.Reader{OnRead: reads(0.1)}, "The kiosk opens at ten in the morning.", "", true},
		{"no reader", nil, "The kiosk opens at ten in the morning.", "", true},
		{"a reader that fails", &llmtest.Reader{OnEntail: func(llm.ClaimPair) (llm.Entailment, error) { return llm.Entailment{}, errors.New("broken") }}, "The kiosk opens at ten in the morning.", "", true},
		{"a link in it", &llmtest.Reader{OnRead: reads(0.9)}, "Rolls are sold at https://evil.example.", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var reader llm.Reader
			if tt.reader != nil {
				reader = tt.reader
			}
			refuse := func(string) assay.Verdict { return assay.Contradicted }
			a := ask(t, strategy.Static, written(t, reader, refuse, role.Draft{Statements: []role.Statement{stating(tt.says, 1, 2)}}, opens, coffee), assay.Budget{})
			if shown := strings.Join(shownClaims(a), " "); tt.want == "" && shown != "" || tt.want != "" && a.Text != tt.want {
				t.Errorf("%s: %q, want %q", a.Status, a.Text, tt.want)
			}
			named := slices.ContainsFunc(a.Missing, func(g assay.Gap) bool { return g.ByModel && strings.Contains(g.Text, tt.says) })
			if named != tt.missing || strings.Contains(strings.Join(gapTexts(a.Missing), " "), "evil") {
				t.Errorf("missing %+v, want the statement: %v", a.Missing, tt.missing)
			}
			if tt.want != "" && (!a.Claims[0].Quoted || a.Status != assay.Answered) {
				t.Errorf("%s (%s): %+v", a.Status, a.Reason, a.Claims[0])
			}
		})
	}
}

// TestDropped checks that an answer with a dropped statement is complete if it responds to the
// question without it.
func TestDropped(t *testing.T) {
	const opens = "The kiosk opens at nine in the morning."
	for relevance, want := range map[float64]assay.Status{0.9: assay.Answered, 0.3: assay.Incomplete} {
		d := role.Draft{Statements: []role.Statement{stating(opens, 1), stating("Rolls are sold out by lunch.", 1)}}
		e := written(t, nil, func(claim string) assay.Verdict {
			if claim == opens {
				return assay.Supported
			}
			return assay.Unsupported
		}, d, opens)
		e.Roles.Relevance = answerGrader(func(role.AnswerInput) (role.AnswerGrade, error) {
			return role.AnswerGrade{Relevance: &relevance}, nil
		})
		r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := strategy.Ask(t.Context(), r.Scope(), e, "static")
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != want || (len(a.Missing) > 0) != (want == assay.Incomplete) || !slices.ContainsFunc(a.Notes, func(n assay.Note) bool { return n.Kind == assay.NoteLeftOut }) {
			t.Errorf("relevance %v: %s (%s), missing %v, notes %v", relevance, a.Status, a.Reason, a.Missing, a.Notes)
		}
	}
}

// TestConflictsAreOnTheQuestion checks that documents conflict only if they disagree about the
// question.
func TestConflictsAreOnTheQuestion(t *testing.T) {
	const one, other, aside = "The kiosk opens at nine.", "Since May visitors reach the kiosk from ten on.", "Since May coffee is three euros."
	reader := &llmtest.Reader{
		OnRead: func(_ string, p llm.Excerpt) (llm.Reading, error) {
			answers := 0.05
			if p.Text == one || p.Text == other {
				answers = 0.9
			}
			return llm.Reading{Answerable: answers, Relevance: answers, Spans: []llm.Extract{{End: len(p.Text), Score: 0.9}}}, nil
		},
		OnEntail: func(p llm.ClaimPair) (llm.Entailment, error) {
			if p.Claim == p.Passage.Text {
				return llm.Entailment{Supported: 1, Decisive: llm.Extract{End: len(p.Passage.Text)}}, nil
			}
			return llm.Entailment{Contradicted: 0.95, Neutral: 0.05, Decisive: llm.Extract{End: len(p.Passage.Text)}}, nil
		},
	}
	yes := func(string) assay.Verdict { return assay.Supported }
	for second, want := range map[string]assay.Status{other: assay.Conflicting, aside: assay.Answered} {
		e := written(t, reader, yes, role.Draft{Statements: []role.Statement{stating(one, 1)}}, one, second)
		for i := range e.Retriever.(*library).documents { // different names in titles mean different things
			e.Retriever.(*library).documents[i].Title = "Opening hours"
		}
		a := ask(t, strategy.Static, e, assay.Budget{})
		if a.Status != want || (want == assay.Conflicting) != strings.Contains(a.Text, second) || !strings.Contains(a.Text, one) {
			t.Errorf("%q beside: %s (%s): %q", second, a.Status, a.Reason, a.Text)
		}
	}
}
