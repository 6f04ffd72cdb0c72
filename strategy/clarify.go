package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sense"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// How much is said of what an ambiguous question can mean.
const (
	shownReadings    = 4  // that are named when asking back
	answeredReadings = 3  // that are answered side by side; with more it is asked back
	readingRunes     = 80 // of a reading's name
)

// clarify asks back where the question does not say what it is about, as "How do I
// configure it?" without a conversation, and the documents speak of several things. Of
// a question that is clear by its words it takes no step; done is false then, and where
// one thing alone can be meant.
func (e Env) clarify(ctx context.Context, s run.Scope, strategy string, said *notes) (answer Result, done bool, err error) {
	if e.untold.words != "" {
		return e.askWhich(strategy), true, nil
	}
	open, bare := surface.Dangling(e.Question)
	if e.Roles.Clarifier == nil || open == "" || e.picked != "" {
		return Result{}, false, nil
	}
	f, q := finding{question: e.Question, stop: assay.StopAmbiguous}, assay.Query{Text: e.Question}
	var found assay.Results
	if !bare { // else there is no word to search for
		found, err = e.search(ctx, s, q)
		if stopOf(err) != "" {
			return Result{}, false, nil // the strategy will say so
		}
		if err != nil {
			return Result{}, false, err
		}
		f.take(e, q, found)
		f.iterations++
	}
	in := role.ClarifyInput{Question: e.Question, History: e.History, Open: open, Hits: found.Hits, Means: topics(found.Hits)}
	c, err := e.ambiguity(ctx, s, in, said)
	if stopOf(err) != "" || err == nil && !c.Ambiguous {
		if names := readingNames(in.Means, []int{0}[:min(1, len(in.Means))]); len(names) == 1 {
			said.say(assay.NoteQuestion, fmt.Sprintf("the question does not say what %q stands for; the documents speak of one thing that it can be: %s", open, names[0]))
		}
		return Result{}, false, nil
	}
	if err != nil {
		return Result{}, false, err
	}
	r := e.base(strategy, []finding{f})
	whole := strings.EqualFold(strings.TrimRight(strings.TrimSpace(e.Question), "?!. "), open)
	r.details.ambiguous = fmt.Sprintf("The question does not say what %q stands for.", open)
	if whole {
		r.details.ambiguous = "The question does not say what it is about."
	}
	r.askBack(open, whole, readingNames(in.Means, c.Readings))
	return r, true, nil
}

// An untold is what a follow-up leaves open: words of it, and what they can stand for
// by the conversation, if that is known.
type untold struct {
	words string
	means []string
}

// askWhich asks back what the words of a follow-up stand for that the conversation does
// not make plain.
func (e Env) askWhich(strategy string) Result {
	r := e.base(strategy, []finding{{question: e.Question, stop: assay.StopAmbiguous}})
	words, names := sources{}.line(e.untold.words), shownNames(e.untold.means)
	if len(names) < 2 {
		names = nil
	}
	r.details.ambiguous = fmt.Sprintf("The conversation does not make plain what %q means.", words)
	r.askBack(words, false, names)
	return r
}

// topics are the things that hits speak of about as much as the best of them does.
func topics(hits []assay.Hit) []sense.Sense {
	top := 0.0
	for _, h := range hits {
		top = max(top, h.Scores.Relevance)
	}
	return slices.DeleteFunc(sense.Topics(hits), func(t sense.Sense) bool {
		return !slices.ContainsFunc(t.Hits, func(i int) bool { return hits[i].Scores.Relevance >= top/2 })
	})
}

// ambiguity has the clarifier say whether a question is ambiguous. One that cannot be
// told is not. What it chose and was not offered is passed over.
func (e Env) ambiguity(ctx context.Context, s run.Scope, in role.ClarifyInput, said *notes) (role.Clarity, error) {
	c, err := hand(ctx, s, e, job[role.ClarifyInput, role.Clarity]{
		role:     role.ClarifierRole,
		do:       e.Roles.Clarifier.Clarify,
		outcome:  func(c *role.Clarity) *role.Outcome { return &c.Outcome },
		cautious: role.Clarity{Readings: []int{}},
	}, in, said)
	var known []int
	for _, i := range c.Readings {
		if i >= 0 && i < len(in.Means) && !slices.Contains(known, i) {
			known = append(known, i)
		}
	}
	slices.Sort(known)
	c.Readings = known
	c.Ambiguous = c.Ambiguous && c.Failure == "" && (len(known) > 1 || in.Open != "")
	return c, err
}

// readingNames are the names of the senses that were chosen, for people.
func readingNames(senses []sense.Sense, chosen []int) []string {
	var names []string
	for _, i := range chosen {
		names = append(names, senses[i].Name)
	}
	return shownNames(names)
}

// shownNames are names as they may be shown, each once: without links and markup.
func shownNames(of []string) []string {
	var names []string
	for _, name := range of {
		name = sources{}.line(name)
		if r := []rune(name); len(r) > readingRunes { // what tells it apart may stand at its end
			name = string(r[:readingRunes/2]) + " … " + string(r[len(r)-readingRunes/2:])
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// askBack turns a result into the question of what is meant. Open are the words that
// stand for it; whole, that they are all of the question.
func (a *Result) askBack(open string, whole bool, names []string) {
	a.Stop, a.spent = assay.StopAmbiguous, ""
	a.Claims, a.Citations, a.Missing, a.closest = []assay.Claim{}, []assay.Citation{}, []assay.Gap{}, []assay.Closest{}
	a.Readings = names[:min(len(names), shownReadings)]
	of := ""
	if open != "" && !whole {
		of = fmt.Sprintf(" by %q", open)
	}
	switch {
	case len(names) == 0 && whole && len(surface.Names("of "+open)) > 0:
		a.AskBack = "What is the question about? It goes on from another one, which is not there."
	case len(names) == 0 && whole:
		a.AskBack = "What is the question about? Nothing to look for is named in it."
	case len(names) == 0:
		a.AskBack = fmt.Sprintf("What is meant%s? The question does not say.", of)
	case len(names) == 1 || len(names) > shownReadings:
		a.AskBack = fmt.Sprintf("What is meant%s: %s, or something else?", of, strings.Join(a.Readings, ", "))
	default:
		a.AskBack = fmt.Sprintf("What is meant%s: %s?", of, alternatives(names))
	}
	a.settle()
}

// alternatives writes a list: "a or b", "a, b or c".
func alternatives(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// A firstSearch is what the search for the question itself brought, that of the first
// path by name if there are several: so it is the same in every replay.
type firstSearch struct {
	mu      sync.Mutex
	path    string
	results assay.Results
}

// saw takes up what a search at that path brought.
func (f *firstSearch) saw(path string, r assay.Results) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" || path < f.path {
		f.path, f.results = path, r
	}
}

// readings looks once more at an answer to a question that documents which are called
// alike, as of two versions, answer differently: each of two or three such things is
// answered for itself, from what was found already; where there are more, or what was
// answered is not all of the question, it is asked back. It takes no step where there
// are no such documents.
func (e Env) readings(ctx context.Context, s run.Scope, answer Result, said *notes) (Result, error) {
	if e.Roles.Clarifier == nil || e.first == nil || len(answer.Claims) == 0 || spentBy(answer.Stop) {
		return answer, nil
	}
	found := e.first.results
	in := role.ClarifyInput{Question: e.Question, History: e.History, Hits: found.Hits, Means: sense.Alike(e.Question, found.Hits)}
	if len(in.Means) < 2 {
		return answer, nil
	}
	c, err := e.ambiguity(ctx, s, in, said)
	if stopOf(err) != "" || err == nil && !c.Ambiguous {
		return answer, nil
	}
	if err != nil {
		return Result{}, err
	}
	if len(readingNames(in.Means, c.Readings)) < len(c.Readings) {
		return answer, nil // nobody could tell them apart
	}
	if len(c.Readings) <= answeredReadings {
		each, err := e.answerEach(ctx, s, found, in.Means, c.Readings)
		if err != nil {
			return Result{}, err
		}
		if len(each.Readings) > 1 {
			each.Strategy, each.Searched, each.Iterations = answer.Strategy, answer.Searched, answer.Iterations
			each.Notes = withNotes(answer.Notes, each.Notes...)
			return each, nil
		}
		if answer.Status == assay.Answered {
			return answer, nil // of the others the documents do not say enough
		}
	}
	back := answer
	back.details.ambiguous = fmt.Sprintf("The documents answer the question for each of %d things, and it does not say which.", len(c.Readings))
	back.askBack("", false, readingNames(in.Means, c.Readings))
	return back, nil
}

// answerEach answers the question for each of the chosen senses of which enough is
// known, under its name. The answer's Readings are those that have a statement which
// stands.
func (e Env) answerEach(ctx context.Context, s run.Scope, found assay.Results, senses []sense.Sense, chosen []int) (Result, error) {
	var each []finding
	var names []string
	for n, i := range chosen {
		of := found
		of.Hits = nil
		for _, h := range senses[i].Hits {
			of.Hits = append(of.Hits, found.Hits[h])
		}
		f := finding{question: e.Question, stop: assay.StopSufficient}
		f.take(e, assay.Query{Text: e.Question}, of)
		err := f.regrade(ctx, s.Sub("reading", n), e)
		if stopOf(err) != "" {
			return Result{}, nil
		}
		if err != nil {
			return Result{}, err
		}
		name := readingNames(senses, []int{i})
		if f.sufficient() && len(name) == 1 && !slices.Contains(names, name[0]) {
			each, names = append(each, f), append(names, name[0])
		}
	}
	if len(each) < 2 {
		return Result{}, nil
	}
	e.Sections, e.eachForItself, e.versions = names, true, sense.Versions(senses)
	e.Roles.Generator = sectioned{e.Roles.Generator, names}
	if e.Roles.Quoter != nil {
		e.Roles.Quoter = sectioned{e.Roles.Quoter, names}
	}
	a, _, err := e.finish(ctx, s.Sub("finish", 0), "", each)
	if err != nil {
		return Result{}, err
	}
	for _, name := range names {
		if slices.Contains(a.sections, name) {
			a.Readings = append(a.Readings, name)
		}
	}
	return a, nil
}

// A sectioned generator writes each part under a heading of its own.
type sectioned struct {
	role.Generator
	names []string // of the parts
}

// Generate implements role.Generator.
func (g sectioned) Generate(ctx context.Context, c role.Caller, in role.GenerateInput) (role.Draft, error) {
	d, err := g.Generator.Generate(ctx, c, in)
	of := func(st role.Statement) string {
		for i, p := range in.Parts[:min(len(in.Parts), len(g.names))] {
			if len(st.Evidence) > 0 && !slices.ContainsFunc(st.Evidence, func(n int) bool { return !slices.Contains(p.Evidence, n) }) {
				return g.names[i]
			}
		}
		return ""
	}
	// In the order of the headings, so that each stands there once.
	order := make([]int, len(d.Statements))
	for i := range d.Statements {
		d.Statements[i].Section = of(d.Statements[i])
		order[i] = i
	}
	rank := func(i int) int { return slices.Index(g.names, d.Statements[i].Section) }
	slices.SortStableFunc(order, func(a, b int) int { return rank(a) - rank(b) })
	at := make([]int, len(order)) // where a statement is now
	sorted := make([]role.Statement, len(order))
	for now, before := range order {
		sorted[now], at[before] = d.Statements[before], now
	}
	d.Statements = sorted
	for k, pair := range d.Conflicts {
		if pair[0] >= 0 && pair[0] < len(at) && pair[1] >= 0 && pair[1] < len(at) {
			d.Conflicts[k] = [2]int{at[pair[0]], at[pair[1]]}
		}
	}
	return d, err
}
