package strategy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// given answers a question and returns the input of the generator.
func given(t *testing.T, l *library, limits strategy.Limits) role.GenerateInput {
	t.Helper()
	var in role.GenerateInput
	roles := localRoles()
	roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
		g, err := enough(in)
		g.Relevant = slices.DeleteFunc(g.Relevant, func(id string) bool {
			return slices.ContainsFunc(in.Hits, func(h assay.Hit) bool { return h.Chunk.ID == id && h.Scores.Relevance < in.Floor })
		})
		return g, err
	})
	roles.Generator = generator(func(got role.GenerateInput) (role.Draft, error) {
		in = got
		return verbatim(got)
	})
	e := env(l, "When does the kiosk open?", roles)
	e.Limits = limits
	ask(t, strategy.Static, e, assay.Budget{})
	return in
}

// TestEvidenceIsDistinct checks that near-duplicate evidence does not displace other evidence.
func TestEvidenceIsDistinct(t *testing.T) {
	const opens = "The kiosk opens at nine and closes at six, every day of the week but Sunday."
	l := newLibrary(opens, strings.ToUpper(opens), opens+" ", strings.ReplaceAll(opens, "nine", "eight"), "The kiosk sells bread.")
	in := given(t, l, strategy.Limits{Keep: 2})
	var texts []string
	for i, ev := range in.Evidence {
		texts = append(texts, ev.Hit.Text)
		if ev.Number != i+1 {
			t.Errorf("evidence %d has the number %d", i, ev.Number)
		}
	}
	if len(texts) != 2 || !strings.EqualFold(strings.TrimSpace(texts[0]), opens) || strings.EqualFold(strings.TrimSpace(texts[1]), opens) {
		t.Errorf("evidence %q", texts)
	}
	if diff := cmp.Diff([]int{1, 2}, in.Parts[0].Evidence); diff != "" {
		t.Errorf("of the question: -want +got\n%s", diff)
	}
}

// TestContextFits checks that a generator gets the excerpts that fit, as bytes of their documents.
func TestContextFits(t *testing.T) {
	filler := strings.Repeat("Nothing of this is of use to anybody. ", 40)
	l := newLibrary(filler+"The kiosk opens at nine. "+filler, "The kiosk is red. "+filler)
	in := given(t, l, strategy.Limits{ContextTokens: 40})
	bytes, answer := 0, ""
	for _, x := range in.Context {
		text := x.Text(in.Evidence[x.Evidence-1])
		bytes += len(text)
		answer += text + "\n"
		for _, s := range x.Spans {
			if q := l.documents[x.Evidence-1].Text[s.Start:s.End]; !strings.Contains(text, q) {
				t.Errorf("%q is not in %q", q, text)
			}
		}
	}
	if !strings.Contains(answer, "The kiosk opens at nine.") || bytes > 4*40 {
		t.Errorf("%d bytes: %q", bytes, answer)
	}
	if in := given(t, newLibrary("The kiosk opens at nine."), strategy.Limits{}); len(in.Context) != 1 || len(in.Context[0].Spans) != 1 {
		t.Errorf("what fits goes whole: %+v", in.Context)
	}
}

// TestCutContextIsSaid checks that the answer says which passages a model did not read, or not whole,
// because they do not fit into the limit of tokens.
func TestCutContextIsSaid(t *testing.T) {
	filler := strings.Repeat("Nothing of this is of use to anybody. ", 40)
	for _, tt := range []struct {
		texts  []string
		tokens int
		writer string
		want   string // a part of the note; empty: there is none
	}{
		{[]string{"The kiosk opens at nine. " + filler, "The kiosk is red. " + filler}, 9, "big/model", "of 2 passages to answer from, 1 are left out"},
		{[]string{"The kiosk opens at nine. " + filler}, 40, "big/model", "1 passage to answer from is shortened"},
		{[]string{"The kiosk opens at nine."}, 40, "big/model", ""},
		{[]string{"The kiosk opens at nine. " + filler}, 40, "", ""}, // the local generator reads all
	} {
		roles := localRoles()
		roles.Grader, roles.Generator = grader(enough), generator(func(in role.GenerateInput) (role.Draft, error) {
			return role.Draft{Statements: []role.Statement{{Text: "The kiosk opens at nine.", Evidence: []int{1}}}}, nil
		})
		e := env(newLibrary(tt.texts...), "When does the kiosk open?", roles)
		e.Limits = strategy.Limits{ContextTokens: tt.tokens}
		e.Began = map[string]string{role.GeneratorRole: tt.writer}
		a := ask(t, strategy.Static, e, assay.Budget{})
		said := ""
		for _, n := range a.Notes {
			if n.Kind == assay.NoteLeftOut {
				said += n.Text
			}
		}
		if len(a.Claims) == 0 || tt.want == "" && said != "" || !strings.Contains(said, tt.want) {
			t.Errorf("%d tokens, writer %q: %d claims, %q; want %q", tt.tokens, tt.writer, len(a.Claims), said, tt.want)
		}
	}
}

// TestSoManyPassages checks that with a fixed number of passages the accepted ones come first and
// the best others fill the rest.
func TestSoManyPassages(t *testing.T) {
	l := newLibrary("The kiosk opens at nine.", "The kiosk opens in May.", "The kiosk is red.", "The kiosk sells bread.", "The kiosk is old.")
	l.relevance = map[string]float64{"doc3": 0.1, "doc4": 0.2, "doc5": 0.3}
	for passages, want := range map[int][]string{
		1:  {"doc1"},
		4:  {"doc1", "doc2", "doc3", "doc4"}, // in the order of the search
		10: {"doc1", "doc2", "doc3", "doc4", "doc5"},
	} {
		var got []string
		for _, ev := range given(t, l, strategy.Limits{Passages: passages, Keep: 1}).Evidence {
			got = append(got, ev.Hit.URI)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d passages: -want +got\n%s", passages, diff)
		}
	}
}
