package strategy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// TestAdaptiveWork checks the number of searches and hits for each kind of question.
func TestAdaptiveWork(t *testing.T) {
	tests := []struct {
		name     string
		router   router
		grader   grader
		searches int
		limit    int
		stop     assay.Stop
	}{
		{"simple", says(role.Simple), enough, 1, 3, assay.StopSufficient},
		{"simple, and not enough", says(role.Simple), partly, 1, 3, assay.StopIterationLimit},
		{"moderate", says(role.Moderate), enough, 1, 5, assay.StopSufficient},
		{"moderate, enough then", says(role.Moderate), when(2), 2, 5, assay.StopSufficient},
		{"moderate, and not enough", says(role.Moderate), partly, 2, 5, assay.StopIterationLimit},
		{"complex", says(role.Complex), enough, 1, 3, assay.StopSufficient},
		{"something else", says("whatever"), partly, 2, 5, assay.StopIterationLimit},
		{"a failure", func(string) (role.Route, error) { return role.Route{}, errors.New("no signal") }, partly, 2, 5, assay.StopIterationLimit},
	}
	for _, tt := range tests {
		l := growing(9)
		l.limits = nil
		roles := localRoles()
		roles.Router, roles.Querier, roles.Grader, roles.Generator = tt.router, numbered(), tt.grader, generator(verbatim)
		a := ask(t, strategy.Adaptive, env(l, about, roles), assay.Budget{})
		if len(l.searches) != tt.searches || a.Stop != tt.stop || a.Strategy != "adaptive" {
			t.Errorf("%s: searched %q (%s, %s), want %d searches (%s)", tt.name, l.searches, a.Stop, a.Strategy, tt.searches, tt.stop)
		}
		if slices.ContainsFunc(l.limits, func(n int) bool { return n != tt.limit }) {
			t.Errorf("%s: searches for %v hits, want %d", tt.name, l.limits, tt.limit)
		}
		if want := tt.stop == assay.StopSufficient; (a.Status == assay.Answered) != want {
			t.Errorf("%s: %s", tt.name, a.Status)
		}
	}
}

// TestAdaptiveRounds checks that Settings limit the rounds and that the querier can end them.
func TestAdaptiveRounds(t *testing.T) {
	fixed := func(q string) querier {
		return func(role.QueryInput) (role.NextQuery, error) { return role.NextQuery{Query: q}, nil }
	}
	tests := []struct {
		name     string
		querier  querier
		rounds   int
		searches int
		stop     assay.Stop
	}{
		{"as many as are set", numbered(), 4, 4, assay.StopIterationLimit},
		{"nothing better is known", fixed(" "), 4, 1, assay.StopNoProgress},
		{"the same again", fixed(strings.ToUpper(about)), 4, 1, assay.StopCircular},
		{"one query over and over", fixed("apple1"), 4, 2, assay.StopCircular},
		{"nothing new twice", func(in role.QueryInput) (role.NextQuery, error) {
			return role.NextQuery{Query: "gravity" + strings.Repeat(" first", len(in.History))}, nil
		}, 9, 3, assay.StopNoProgress},
		{"too long", fixed(strings.Repeat("apples ", 10_000)), 4, 1, assay.StopNoProgress},
		{"a failure", func(role.QueryInput) (role.NextQuery, error) { return role.NextQuery{}, errors.New("broken") }, 4, 1, assay.StopNoProgress},
	}
	for _, tt := range tests {
		l := growing(9)
		roles := localRoles()
		roles.Router, roles.Querier, roles.Grader, roles.Generator = says(role.Moderate), tt.querier, grader(partly), generator(verbatim)
		e := env(l, about, roles)
		e.Settings.Adaptive.Rounds = tt.rounds
		a := ask(t, strategy.Adaptive, e, assay.Budget{})
		if len(l.searches) != tt.searches || a.Stop != tt.stop || a.Status != assay.Incomplete {
			t.Errorf("%s: %s (%s) after searches %.60q, want %d (%s)", tt.name, a.Status, a.Stop, l.searches, tt.searches, tt.stop)
		}
		if wantNote := tt.name == "too long" || tt.name == "a failure"; (len(a.Notes) > 0) != wantNote {
			t.Errorf("%s: notes %q", tt.name, a.Notes)
		}
	}
}

// TestAdaptiveChecksTheAnswer checks that a moderate question with sufficient evidence is searched
// again for the points that the answer grader misses.
func TestAdaptiveChecksTheAnswer(t *testing.T) {
	for name, lacks := range map[string][][]string{"complete": {{}}, "complete then": {{"who"}, {}}, "never": {{"who"}, {"who"}}} {
		l := growing(9)
		var gaps [][]string
		graded := 0
		roles := localRoles()
		roles.Router, roles.Grader, roles.Generator = says(role.Moderate), grader(enough), generator(verbatim)
		roles.Querier = querier(func(in role.QueryInput) (role.NextQuery, error) {
			gaps = append(gaps, in.Gaps)
			return numbered()(in)
		})
		roles.AnswerGrader = answerGrader(func(role.AnswerInput) (role.AnswerGrade, error) {
			whole := 1.0
			graded++
			return role.AnswerGrade{Relevance: &whole, Lacks: lacks[graded-1]}, nil
		})
		a := ask(t, strategy.Adaptive, env(l, about, roles), assay.Budget{})
		if len(l.searches) != len(lacks) || graded != len(lacks) || a.Status != assay.Answered {
			t.Errorf("%s: %s after %d searches and %d grades, want %d of each", name, a.Status, len(l.searches), graded, len(lacks))
		}
		if want := name != "never"; (a.Stop == assay.StopSufficient) != want {
			t.Errorf("%s: %s", name, a.Stop)
		}
		if len(lacks) == 2 && (len(gaps) != 1 || !slices.Equal(gaps[0], []string{"who"})) {
			t.Errorf("%s: searched for the gaps %q, want who", name, gaps)
		}
	}
}

// TestAdaptiveFilters checks that a complex question keeps the plan's filters, in one part or in
// several.
func TestAdaptiveFilters(t *testing.T) {
	year := assay.Filter{Op: assay.OpEquals, Key: "year", Value: assay.NumberValue(2024)}
	for _, texts := range [][]string{{"gravity"}, {"gravity", "apple1"}} {
		l := growing(9)
		roles := localRoles()
		var subs []role.SubQuestion
		for _, text := range texts {
			subs = append(subs, role.SubQuestion{Text: text, Filter: year})
		}
		roles.Router, roles.Querier, roles.Planner, roles.Grader = says(role.Complex), numbered(), plans(role.Conjunction, subs...), grader(enough)
		a := ask(t, strategy.Adaptive, env(l, about, roles), assay.Budget{})
		if len(a.Searched) != len(texts) || slices.ContainsFunc(a.Searched, func(s assay.Searched) bool { return s.Filter.String() != year.String() }) {
			t.Errorf("%q: searched %+v, want each with the filter %s", texts, a.Searched, year)
		}
	}
}

// TestAdaptiveSubAnswers walks through the branches of a complex question: each sub-question gets a
// verified answer of its own, which is kept, and the answer is put together from these.
func TestAdaptiveSubAnswers(t *testing.T) {
	const question = "How heavy are alpha and beta in all?"
	parts := []role.SubQuestion{{Text: "How heavy is the alpha?"}, {Text: "How heavy is the beta?"}}
	const alpha, beta = "The alpha weighs 3 kg.", "The beta weighs 5 kg."
	quoting := func(in role.GenerateInput) (role.Draft, error) { // the evidence of its parts, or the sub-answers
		d := role.Draft{}
		for _, sub := range in.SubAnswers {
			d.Statements = append(d.Statements, sub.Statements...)
		}
		for _, p := range in.Parts {
			for _, n := range p.Evidence {
				if len(in.SubAnswers) == 0 {
					d.Statements = append(d.Statements, role.Statement{Text: in.Evidence[n-1].Hit.Text, Evidence: []int{n}})
				}
			}
		}
		return d, nil
	}
	inventing := func(in role.GenerateInput) (role.Draft, error) {
		d, err := quoting(in)
		if len(in.SubAnswers) > 0 {
			d.Statements = []role.Statement{{Text: "The beta weighs 5 kg and the alpha weighs 900 kg.", Evidence: []int{1, 2}}, {Text: beta, Evidence: []int{2}}}
		}
		return d, err
	}
	lying := func(in role.GenerateInput) (role.Draft, error) {
		d, err := quoting(in)
		if len(in.SubAnswers) == 0 && in.Question == parts[0].Text {
			d.Statements[0].Text = "The alpha weighs 900 kg."
		}
		return d, err
	}
	tests := []struct {
		name      string
		subs      []role.SubQuestion
		documents []string
		generator role.Generator
		grader    grader
		status    assay.Status
		text      string
		kept      []string // answers to the sub-questions
	}{
		{"local, joined", parts, []string{alpha, beta}, local.Generator{}, enough, assay.Answered, alpha + " [1] " + beta + " [2]", []string{alpha + " [1]", beta + " [2]"}},
		{"local, joined without repetition", parts, []string{"The alpha and the beta weigh 3 kg, which is heavy."}, local.Generator{}, enough, assay.Answered,
			"The alpha and the beta weigh 3 kg, which is heavy. [1]", []string{"The alpha and the beta weigh 3 kg, which is heavy. [1]", "The alpha and the beta weigh 3 kg, which is heavy. [1]"}},
		{"written", parts, []string{alpha, beta}, generator(quoting), enough, assay.Answered, alpha + " [1] " + beta + " [2]", []string{alpha + " [1]", beta + " [2]"}},
		{"the synthesis invents", parts, []string{alpha, beta}, generator(inventing), enough, assay.Incomplete, beta + " [2]", []string{alpha + " [1]", beta + " [2]"}},
		{"a sub-answer is not supported", parts, []string{alpha, beta}, generator(lying), enough, assay.Incomplete, beta + " [2]", []string{"", beta + " [2]"}},
		{"a part is not found", parts, []string{alpha}, local.Generator{}, func(in role.GradeInput) (role.Grade, error) {
			if in.Question == parts[1].Text {
				return role.Grade{Verdict: assay.Insufficient, Missing: []string{"the beta"}}, nil
			}
			return enough(in)
		}, assay.Incomplete, alpha + " [1]", []string{alpha + " [1]", ""}},
		{"nothing is found", parts, []string{"Bananas."}, local.Generator{}, enough, assay.NotFound, "Not found in these documents.", []string{"", ""}},
		{"the plan has one part", parts[:1], []string{alpha}, local.Generator{}, enough, assay.Answered, alpha + " [1]", nil},
	}
	for _, tt := range tests {
		roles := localRoles()
		roles.Router, roles.Planner, roles.Grader, roles.Generator = says(role.Complex), plans(role.Conjunction, tt.subs...), tt.grader, tt.generator
		l := newLibrary(tt.documents...)
		l.relevant = map[string]string{"alpha": "alpha", "beta": "beta"}
		e := env(l, question, roles)
		if _, isLocal := tt.generator.(local.Generator); !isLocal {
			e.Began = map[string]string{role.GeneratorRole: "some/model"}
			e.Roles.Models = e.Began
		}
		a := ask(t, strategy.Adaptive, e, assay.Budget{})
		if a.Status != tt.status || a.Text != tt.text || a.Strategy != "adaptive" {
			t.Errorf("%s: %s %q (%s), want %s %q", tt.name, a.Status, a.Text, a.Justification, tt.status, tt.text)
		}
		if tt.kept == nil {
			if a.Review != nil {
				t.Errorf("%s: review %+v of one part", tt.name, a.Review)
			}
			continue
		}
		if a.Review == nil || len(a.Review.SubAnswers) != len(tt.kept) {
			t.Errorf("%s: review %+v, want %d sub-answers", tt.name, a.Review, len(tt.kept))
			continue
		}
		for i, sub := range a.Review.SubAnswers {
			if sub.Question != parts[i].Text || sub.Answer != tt.kept[i] {
				t.Errorf("%s: sub-answer %+v, want %q to %q", tt.name, sub, tt.kept[i], parts[i].Text)
			}
			check(t, e, assay.Answer{Status: "kept", Stop: "kept", Justification: "kept", Text: sub.Answer + " ", Claims: sub.Claims, Citations: sub.Citations})
		}
	}
}

// TestAdaptiveSubAnswersAreRecorded checks that the drafts and the verdicts of sub-answers are in the
// journal, and that the verified sub-answers stand if the run has no room for a synthesis.
func TestAdaptiveSubAnswersAreRecorded(t *testing.T) {
	l := newLibrary("The alpha weighs 3 kg.", "The beta weighs 5 kg.")
	l.relevant = map[string]string{"alpha": "alpha", "beta": "beta"}
	roles := localRoles()
	roles.Router, roles.Grader = says(role.Complex), grader(enough)
	roles.Planner = plans(role.Conjunction, role.SubQuestion{Text: "How heavy is the alpha?"}, role.SubQuestion{Text: "How heavy is the beta?"})
	roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
		if len(in.SubAnswers) > 0 {
			return role.Draft{}, fmt.Errorf("a call: %w", assay.ErrBudget)
		}
		return local.Generator{}.Generate(t.Context(), nil, in)
	})
	journal := &run.Memory{}
	r, err := run.New(run.Config{Run: "r", Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	a, err := strategy.Adaptive(t.Context(), r.Scope(), env(l, "How heavy are the alpha and the beta?", roles))
	if err != nil {
		t.Fatal(err)
	}
	if a.Text != "The alpha weighs 3 kg. [1] The beta weighs 5 kg. [2]" || a.Stop != assay.StopCallBudget {
		t.Errorf("%s (%s): %q, want both sub-answers", a.Status, a.Stop, a.Text)
	}
	if !slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool {
		return strings.Contains(n, "no budget left to put the answers to its parts together")
	}) {
		t.Errorf("notes %q", noteTexts(a.Notes))
	}
	var paths []string
	for _, rec := range journal.Records() {
		if rec.Kind == assay.StepGenerate || rec.Kind == assay.StepVerify {
			paths = append(paths, rec.Path)
		}
	}
	slices.Sort(paths)
	if want := []string{"answer[0]/generate", "answer[0]/verify", "answer[1]/generate", "answer[1]/verify", "finish[0]/generate"}; !slices.Equal(paths, want) {
		t.Errorf("steps %q, want %q", paths, want)
	}
}

// TestUnsynthesisedSubAnswersStayOpen checks that sub-answers which stand as they are, for lack of
// room, are no complete answer if a draft of one reports an open point, is torn, or failed.
func TestUnsynthesisedSubAnswersStayOpen(t *testing.T) {
	for name, flaw := range map[string]func(*role.Draft){
		"open":     func(d *role.Draft) { d.Open = []string{"how heavy the box of the alpha is"} },
		"torn":     func(d *role.Draft) { d.Torn = true },
		"conflict": func(d *role.Draft) { d.Conflicts = [][2]int{{0, 1}} },
		"failed":   func(d *role.Draft) { d.Failure = "it broke off" },
	} {
		l := newLibrary("The alpha weighs 3 kg.", "The beta weighs 5 kg.", "The beta weighs 6 kg.")
		l.relevant = map[string]string{"alpha": "alpha", "beta": "beta"}
		roles := localRoles()
		roles.Router, roles.Grader, roles.Verifier = says(role.Complex), grader(enough), role.ByClaim(verifier(func(string, []ground.Passage) (ground.Judgement, error) {
			return ground.Judgement{Verdict: assay.Supported, Score: 1}, nil
		}))
		roles.Planner = plans(role.Conjunction, role.SubQuestion{Text: "How heavy is the alpha?"}, role.SubQuestion{Text: "How heavy is the beta?"})
		roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
			if len(in.SubAnswers) > 0 {
				return role.Draft{}, fmt.Errorf("a call: %w", assay.ErrBudget)
			}
			d, err := verbatim(in)
			d.Statements = slices.DeleteFunc(d.Statements, func(st role.Statement) bool { return !slices.Contains(in.Parts[0].Evidence, st.Evidence[0]) })
			if strings.Contains(in.Question, "beta") {
				flaw(&d)
			}
			return d, err
		})
		e := env(l, "How heavy are the alpha and the beta?", roles)
		e.Began = map[string]string{role.GeneratorRole: "some/model"}
		a := ask(t, strategy.Adaptive, e, assay.Budget{})
		if len(a.Claims) != 3 || a.Status == assay.Answered {
			t.Errorf("%s: %s with %d claims, want 3 and no complete answer", name, a.Status, len(a.Claims))
		}
	}
}

// TestBlockedSubAnswersAreNotShown checks that an answer which does not respond to the question shows
// none of the sub-answers that it was put together from, and that the words of a planner are shown
// without links.
func TestBlockedSubAnswersAreNotShown(t *testing.T) {
	for relevance, status := range map[float64]assay.Status{0.9: assay.Answered, 0.01: assay.NotFound} {
		l := newLibrary("The alpha weighs 3 kg.", "The beta weighs 5 kg.")
		roles := localRoles()
		roles.Router, roles.Grader = says(role.Complex), grader(enough)
		roles.Planner = plans(role.Conjunction, role.SubQuestion{Text: "How heavy is the alpha?"}, role.SubQuestion{Text: "How heavy is the beta? See [this](https://evil.example/x)"})
		roles.AnswerGrader = answerGrader(func(role.AnswerInput) (role.AnswerGrade, error) {
			return role.AnswerGrade{Relevance: &relevance}, nil
		})
		a := askWith(t, env(l, "How heavy are the alpha and the beta?", roles), "adaptive")
		if a.Status != status || a.Review == nil || len(a.Review.SubAnswers) != 2 {
			t.Fatalf("%s with review %+v, want %s and two sub-answers", a.Status, a.Review, status)
		}
		for _, sub := range a.Review.SubAnswers {
			if shown := sub.Answer != "" || len(sub.Claims)+len(sub.Citations) > 0; shown != (status == assay.Answered) {
				t.Errorf("relevance %v: shown %+v", relevance, sub)
			}
			if strings.Contains(sub.Question, "evil") {
				t.Errorf("a link is shown: %q", sub.Question)
			}
		}
	}
}
