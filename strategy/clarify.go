package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/ambiguity"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// Limits on the meanings of an ambiguous question.
const (
	shownReadings    = 4  // meanings named when asking back
	answeredReadings = 3  // meanings answered in one answer; if there are more, the answer asks back
	readingRunes     = 80 // length of a meaning's name
)

// clarify asks back if the question does not name its subject, as in "How do I configure it?"
// without a conversation, and the documents offer several. It takes no step for a question that is
// clear by its words. Done is false in that case, and also if only one subject is possible.
func (e Env) clarify(ctx context.Context, s run.Scope, strategy string, notes *noteList) (answer Result, done bool, err error) {
	if e.unresolved.words != "" {
		return e.askAntecedent(strategy), true, nil
	}
	open, bare := lexical.Dangling(e.Question)
	if open == "" || e.chosenMeaning != "" {
		return Result{}, false, nil
	}
	sq, q := subQuestion{question: e.Question, stop: assay.StopAmbiguous}, assay.Query{Text: e.Question}
	var found assay.Results
	if !bare { // a bare question has no word to search for
		found, err = e.search(ctx, s, q)
		if stopOf(err) != "" {
			return Result{}, false, nil // the strategy will report it
		}
		if err != nil {
			return Result{}, false, err
		}
		sq.addResults(e, q, found)
		sq.iterations++
	}
	in := role.ClarifyInput{Question: e.Question, History: e.History, Open: open, Hits: found.Hits, Means: topics(found.Hits)}
	c, err := e.ambiguity(ctx, s, in, notes)
	if stopOf(err) != "" || err == nil && !c.Ambiguous {
		if names := readingNames(in.Means, []int{0}[:min(1, len(in.Means))]); len(names) == 1 {
			notes.say(assay.NoteQuestion, fmt.Sprintf("the question does not say what %q stands for; the documents have one candidate: %s", open, names[0]))
		}
		return Result{}, false, nil
	}
	if err != nil {
		return Result{}, false, err
	}
	r := e.base(strategy, []subQuestion{sq})
	whole := strings.EqualFold(strings.TrimRight(strings.TrimSpace(e.Question), "?!. "), open)
	r.details.ambiguous = fmt.Sprintf("The question does not say what %q stands for.", open)
	if whole {
		r.details.ambiguous = "The question does not say what it is about."
	}
	r.askBack(open, whole, readingNames(in.Means, c.Readings))
	return r, true, nil
}

// unresolvedReferences describes the unresolved words of a follow-up: the words, and their possible
// antecedents in the conversation, if these are known.
type unresolvedReferences struct {
	words       string
	antecedents []string
}

// askAntecedent asks back about words of a follow-up that the conversation does not explain.
func (e Env) askAntecedent(strategy string) Result {
	r := e.base(strategy, []subQuestion{{question: e.Question, stop: assay.StopAmbiguous}})
	words, names := sources{}.line(e.unresolved.words), shownNames(e.unresolved.antecedents)
	if len(names) < 2 {
		names = nil
	}
	r.details.ambiguous = fmt.Sprintf("The conversation does not say what %q means.", words)
	r.askBack(words, false, names)
	return r
}

// topics returns the subjects of the hits that have at least half the best relevance.
func topics(hits []assay.Hit) []ambiguity.Meaning {
	top := 0.0
	for _, h := range hits {
		top = max(top, h.Scores.Relevance)
	}
	return slices.DeleteFunc(ambiguity.Topics(hits), func(t ambiguity.Meaning) bool {
		return !slices.ContainsFunc(t.Hits, func(i int) bool { return hits[i].Scores.Relevance >= top/2 })
	})
}

// ambiguity asks the clarifier whether a question is ambiguous. If the clarifier fails, the
// question is not. Readings that were not offered are ignored.
func (e Env) ambiguity(ctx context.Context, s run.Scope, in role.ClarifyInput, notes *noteList) (role.Clarity, error) {
	c, err := runRole(ctx, s, e, job[role.ClarifyInput, role.Clarity]{
		task:     role.ClarifierTask,
		do:       e.Roles.Rewriter.Clarify,
		cautious: role.Clarity{Readings: []int{}},
	}, in, notes)
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

// readingNames returns the names of the chosen senses in the form in which they are shown.
func readingNames(senses []ambiguity.Meaning, chosen []int) []string {
	var names []string
	for _, i := range chosen {
		names = append(names, senses[i].Name)
	}
	return shownNames(names)
}

// shownNames returns the distinct names in the form in which they are shown: without links and
// markup, and shortened.
func shownNames(of []string) []string {
	var names []string
	for _, name := range of {
		name = sources{}.line(name)
		if r := []rune(name); len(r) > readingRunes { // the distinguishing part may be at its end
			name = string(r[:readingRunes/2]) + " … " + string(r[len(r)-readingRunes/2:])
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// askBack turns a result into a question to the user. Open holds the ambiguous words; whole means
// that they are the whole question.
func (a *Result) askBack(open string, whole bool, names []string) {
	a.Stop, a.spent = assay.StopAmbiguous, ""
	a.Claims, a.Citations, a.Missing, a.closest = []assay.Claim{}, []assay.Citation{}, []assay.Gap{}, []assay.Closest{}
	a.Readings = names[:min(len(names), shownReadings)]
	of := ""
	if open != "" && !whole {
		of = fmt.Sprintf(" by %q", open)
	}
	switch {
	case len(names) == 0 && whole && len(lexical.Names("of "+open)) > 0:
		a.AskBack = "What is the question about? It refers to an earlier question, which is missing."
	case len(names) == 0 && whole:
		a.AskBack = "What is the question about? Nothing to look for is named in it."
	case len(names) == 0:
		a.AskBack = fmt.Sprintf("What is meant%s? The question does not say.", of)
	case len(names) == 1 || len(names) > shownReadings:
		a.AskBack = fmt.Sprintf("What is meant%s: %s, or something else?", of, strings.Join(a.Readings, ", "))
	default:
		a.AskBack = fmt.Sprintf("What is meant%s: %s?", of, alternatives(names))
	}
	a.updateStatus()
}

// alternatives formats a list as "a or b" or "a, b or c".
func alternatives(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// A firstSearch holds the results of the search for the question itself. If there are several such
// searches, it keeps the one with the least path, so that every replay keeps the same.
type firstSearch struct {
	mu      sync.Mutex
	path    string
	results assay.Results
}

// record records the results of the search at path.
func (f *firstSearch) record(path string, r assay.Results) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" || path < f.path {
		f.path, f.results = path, r
	}
}

// readings checks whether documents of the same name, such as two versions, or about different
// subjects that the question fits equally, answer the question differently. If there are two or three, each is answered separately from the hits already found.
// If there are more, or the answers do not cover the question, it asks back. It takes no step if
// there are no such documents.
func (e Env) readings(ctx context.Context, s run.Scope, answer Result, notes *noteList) (Result, error) {
	if e.first == nil || len(answer.Claims) == 0 || spentBy(answer.Stop) {
		return answer, nil
	}
	found := e.first.results
	in := role.ClarifyInput{Question: e.Question, History: e.History, Hits: found.Hits, Means: ambiguity.Alike(e.Question, found.Hits)}
	if len(in.Means) < 2 && answer.Status != assay.Conflicting {
		var err error
		if in.Means, err = e.subjects(ctx, s, found.Hits, notes); err != nil {
			return Result{}, err
		}
	}
	if len(in.Means) < 2 {
		return answer, nil
	}
	c, err := e.ambiguity(ctx, s, in, notes)
	if stopOf(err) != "" || err == nil && !c.Ambiguous {
		return answer, nil
	}
	if err != nil {
		return Result{}, err
	}
	if len(readingNames(in.Means, c.Readings)) < len(c.Readings) {
		return answer, nil // their shown names are equal
	}
	if len(c.Readings) <= answeredReadings {
		each, err := e.answerEach(ctx, s, found, in.Means, c.Readings)
		if err != nil {
			return Result{}, err
		}
		if len(each.Readings) > 1 {
			each.Strategy, each.Searched, each.Iterations = answer.Strategy, answer.Searched, answer.Iterations
			each.Notes = withNotes(answer.Notes, each.Notes...)
			each.takeReservations(answer)
			return each, nil
		}
		if answer.Status == assay.Answered {
			return answer, nil // the documents say too little about the others
		}
	}
	back := answer
	back.details.ambiguous = fmt.Sprintf("The documents answer the question for each of %d subjects, and the question names none of them.", len(c.Readings))
	back.askBack("", false, readingNames(in.Means, c.Readings))
	return back, nil
}

// takeReservations makes r, which replaces another answer, incomplete if that was held back or ended in
// an error state.
func (r *Result) takeReservations(other Result) {
	if other.verdicts.heldBack {
		r.Review, r.verdicts.heldBack = other.Review, true
		r.details.remarks = append(r.details.remarks, other.details.remarks...)
		r.Missing = withGaps(r.Missing, other.Missing...)
	}
	if other.Stop == assay.StopMalformed {
		r.Stop = other.Stop
	}
	r.updateStatus()
}

// leastAnswered is the least probability with which each of several subjects answers the question.
const minAnswered = 0.5

// subjects returns the documents that the question may be about, if the reader finds different
// answers in them. It takes no step if only one document is possible. If the reader fails, it returns
// none and adds a note.
func (e Env) subjects(ctx context.Context, s run.Scope, hits []assay.Hit, notes *noteList) ([]ambiguity.Meaning, error) {
	if e.ReaderModel == "" {
		return nil, nil
	}
	possible := ambiguity.Subjects(e.Question, hits)
	if len(possible) < 2 {
		return nil, nil
	}
	in := make([]ground.Passage, len(possible))
	for i, p := range possible {
		h := p.Best(hits)
		in[i] = ground.Passage{Quote: h.Text, Context: h.Text, Heading: headingsOf(h)}
	}
	step := run.Step{Name: "subjects", Kind: assay.StepReader, Model: e.ReaderModel}
	out, err := run.Do(ctx, s, step, in, func(ctx context.Context, in []ground.Passage) (subjectsFound, assay.Usage, error) {
		distinct, err := ground.Distinct(ctx, e.Roles.Reader, e.Question, in, minAnswered)
		if err != nil && ctx.Err() == nil {
			return subjectsFound{Failure: err.Error()}, assay.Usage{}, nil
		}
		return subjectsFound{Distinct: distinct}, assay.Usage{}, err
	})
	if stopOf(err) != "" {
		return nil, nil
	}
	if out.Failure != "" {
		notes.say(assay.NoteFailed, "reader: it failed to compare the documents that the question may be about: "+out.Failure)
	}
	var senses []ambiguity.Meaning
	for _, i := range out.Distinct {
		senses = append(senses, possible[i])
	}
	return senses, err
}

// subjectsFound is the recorded output of the step.
type subjectsFound struct {
	Distinct []int  `json:"distinct"` // indexes of the passages whose answers differ
	Failure  string `json:"failure,omitempty"`
}

// answerEach answers the question for each of the chosen senses with sufficient evidence, under its
// name. The answer's Readings are the names with a supported statement.
func (e Env) answerEach(ctx context.Context, s run.Scope, found assay.Results, senses []ambiguity.Meaning, chosen []int) (Result, error) {
	var each []subQuestion
	var names []string
	for n, i := range chosen {
		of := found
		of.Hits = nil
		for _, h := range senses[i].Hits {
			of.Hits = append(of.Hits, found.Hits[h])
		}
		sq := subQuestion{question: e.Question, stop: assay.StopSufficient}
		sq.addResults(e, assay.Query{Text: e.Question}, of)
		err := sq.gradeAll(ctx, s.Sub("reading", n), e)
		if stopOf(err) != "" {
			return Result{}, nil
		}
		if err != nil {
			return Result{}, err
		}
		name := readingNames(senses, []int{i})
		if sq.sufficient() && len(name) == 1 && !slices.Contains(names, name[0]) {
			each, names = append(each, sq), append(names, name[0])
		}
	}
	if len(each) < 2 {
		return Result{}, nil
	}
	e.Sections, e.mayDiffer, e.versions = names, true, ambiguity.Versions(senses)
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

// A sectioned generator writes each part under its own heading.
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
	// Sort by heading, so that each heading appears once.
	order := make([]int, len(d.Statements))
	for i := range d.Statements {
		d.Statements[i].Section = of(d.Statements[i])
		order[i] = i
	}
	rank := func(i int) int { return slices.Index(g.names, d.Statements[i].Section) }
	slices.SortStableFunc(order, func(a, b int) int { return rank(a) - rank(b) })
	at := make([]int, len(order)) // new index of each statement
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
