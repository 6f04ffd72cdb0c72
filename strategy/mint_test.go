package strategy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// given asks and returns what the generator was given.
func given(t *testing.T, l *library, limits strategy.Limits) role.GenerateInput {
	t.Helper()
	var in role.GenerateInput
	roles := localRoles()
	roles.Grader = grader(enough)
	roles.Generator = generator(func(got role.GenerateInput) (role.Draft, error) {
		in = got
		return verbatim(got)
	})
	e := env(l, "When does the kiosk open?", roles)
	e.Limits = limits
	ask(t, strategy.Static, e, assay.Budget{})
	return in
}

// Evidence that says the same again does not crowd out what says more.
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

// A generator is told what of the evidence fits, in the bytes of its documents.
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
