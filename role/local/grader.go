package local

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// Grader judges evidence by its calibrated relevance and by whether it speaks of
// what the question names: every name, identifier and number, and most of the
// weight of its other words. Where it is told how likely the hits have to hold the
// answer it goes by that instead.
type Grader struct {
	// Encoder, where there is one, has it see what is said in other words.
	Encoder ground.Encoder

	// Held says how likely the hits hold the answer; nil: the model in the program.
	Held *HeldModel
}

// minCoverage is the share of the question's weight that the relevant hits must
// hold together. maxUnknown is the share from which on words that no document
// has say that the documents are about something else: at 0.4 one foreign
// question in a hundred more is refused, and one or two answerable ones where
// the collection is small.
const (
	minCoverage = 0.5
	maxUnknown  = 0.4
)

// A hit that is known to say something similar may say it in other words: once its
// relevance reaches sure, less has to be held. Names and numbers have to be spoken
// of all the same, and a word that no document has may be what the question is
// about. On the golden questions of eval/testdata, with vectors, two more of 120 are
// answered rather than in part, and as many are right and refused as before.
const (
	sure         = 0.6
	sureCoverage = 0.3
)

// Grade implements role.Grader. It returns an error only when ctx has ended.
func (g Grader) Grade(ctx context.Context, _ role.Caller, in role.GradeInput) (role.Grade, error) {
	if err := ctx.Err(); err != nil {
		return role.Grade{}, err
	}
	q := read(in.Question, in.Terms)
	grade := byCoverage(q, in)
	if in.Held > 0 && len(q.terms) > 0 && len(in.Hits) > 0 {
		return g.byHeld(ctx, q, in, grade)
	}
	return grade, nil
}

// acceptedUnder is how many hits become evidence where the answer is held and none of them
// reaches the floor by itself.
const acceptedUnder = 2

// usualFloor is the floor where nobody sets one, which what holds the answer need not reach.
const usualFloor = 0.5

// By how much the odds are less or more that are needed.
const (
	// Where passages are relevant and suffice by the question's words, too: one of them, with an
	// encoder, which the words are no part of; or several, and by words alone also where a
	// second one has the words nearly as well. What was learned from is
	// encyclopaedias and abstracts; documentation and source code say a thing in several places,
	// and every one of them then stands out less. What one passage alone speaks of has hardly
	// such an excuse: of what is left when an answer is taken away it is mostly one that says
	// nearly the same of another thing.
	oneSuffices           = 0.62
	severalSuffice        = 0.12
	severalSufficeByWords = 0.165
	severalHits           = 2

	// By words alone: 0.79 for 0.65, which with what several passages let pass is what lets 5 of 100
	// questions pass whose answer was taken away, of sets that were not learned from.
	byWords = 2.0

	// With each further search. It is another chance for what holds no answer to look as if it
	// did, by the scores of a query that is not the question.
	furtherSearch = 3.0
)

// HeldNeeded is how likely the hits of one search have to hold the answer, where nobody set
// another limit and no several passages suffice: DefaultHeld, and more by words alone.
func HeldNeeded(vectors bool) float64 {
	if vectors {
		return DefaultHeld
	}
	const odds = byWords * DefaultHeld / (1 - DefaultHeld)
	return odds / (1 + odds)
}

// needed is how likely the hits have to hold the answer.
func (g Grader) needed(in role.GradeInput, verdict assay.GradeVerdict, relevant int) float64 {
	if in.Held >= 1 {
		return 1
	}
	words := g.Encoder == nil || in.Hits[0].Scores.Vector == nil
	odds, suffices := in.Held/(1-in.Held), verdict == assay.Sufficient
	switch {
	case len(in.Tried) > 0:
		odds *= math.Pow(furtherSearch, float64(len(in.Tried)))
	case suffices && words && (relevant >= severalHits || saidTwice(in.Hits)):
		odds *= severalSufficeByWords
	case suffices && relevant >= severalHits:
		odds *= severalSuffice
	case suffices && !words:
		odds *= oneSuffices
	}
	if words {
		odds *= byWords
	}
	return odds / (1 + odds)
}

// saidTwice reports whether two hits have the question's words nearly as well, by BM25.
func saidTwice(hits []assay.Hit) bool {
	const nearly = 0.92
	bm25 := sortedScores(hits, func(s assay.Scores) *float64 { return s.BM25 })
	return bm25[1] >= nearly*bm25[0]
}

// byHeld grades by how likely the hits hold the answer. What is missing of the question,
// and what to search next, is as it was graded by coverage.
func (g Grader) byHeld(ctx context.Context, q question, in role.GradeInput, grade role.Grade) (role.Grade, error) {
	model := g.Held
	if model == nil {
		model = defaultHeld()
	}
	held, err := model.heldBy(ctx, g.Encoder, in)
	if role.Ends(ctx, err) {
		return role.Grade{}, err
	}
	if err != nil {
		grade.Notes = append(grade.Notes, "grader: "+err.Error()+"; the passages were judged by their words alone")
		if held, err = model.heldBy(ctx, nil, in); err != nil {
			return role.Grade{}, err
		}
	}
	grade.Held = &held
	needed := g.needed(in, grade.Verdict, len(grade.Relevant))
	reason := beside(q, in)
	if !(held >= needed) {
		reason = fmt.Sprintf("the passages are unlikely to hold the answer (%.2f; %.2f is needed)", held, needed)
	}
	if reason != "" {
		if grade.Verdict != assay.Insufficient || len(grade.Missing) == 0 {
			grade.Missing = []string{in.Question}
		}
		grade.Verdict, grade.Relevant, grade.Reason = assay.Insufficient, []string{}, reason
		if grade.Query == "" {
			grade.Query = reformulate(q, in)
		}
		return grade, nil
	}
	if len(unknownNames(q)) > 0 || len(unknownActor(q)) > 0 || grade.Verdict == assay.Partly && len(missingNames(q, heldOf(in))) > 0 {
		return grade, nil // what others do is no answer, however like it is
	}
	if len(grade.Relevant) == 0 {
		if in.Floor > usualFloor {
			return grade, nil // somebody wants passages that are relevant by themselves
		}
		for _, h := range in.Hits[:min(len(in.Hits), acceptedUnder)] {
			grade.Relevant = append(grade.Relevant, h.Chunk.ID)
		}
	}
	grade.Verdict, grade.Query = assay.Sufficient, ""
	grade.Reason = fmt.Sprintf("the passages are likely to hold the answer (%.2f; %.2f is needed)", held, needed)
	return grade, nil
}

// heldOf returns the terms of the hits that reach the floor.
func heldOf(in role.GradeInput) map[string]bool {
	held := map[string]bool{}
	for _, h := range in.Hits {
		if h.Scores.Relevance >= in.Floor {
			for stem := range stems(h.Language, around(h)...) {
				held[stem] = true
			}
		}
	}
	return held
}

// byCoverage grades by relevance and by what of the question the hits speak of.
func byCoverage(q question, in role.GradeInput) role.Grade {
	g := role.Grade{Verdict: assay.Insufficient, Relevant: []string{}, Missing: []string{}}
	held := heldOf(in)
	for _, h := range in.Hits {
		if h.Scores.Relevance >= in.Floor {
			g.Relevant = append(g.Relevant, h.Chunk.ID)
		}
	}
	minCoverage := minCoverage
	if slices.ContainsFunc(in.Hits, func(h assay.Hit) bool { return h.Scores.Vector != nil && h.Scores.Relevance >= sure }) {
		minCoverage = sureCoverage
	}
	unknown, lacking := append(unknownNames(q), unknownActor(q)...), missingNames(q, held)
	if g.Missing = missing(q, held); len(g.Relevant) == 0 {
		g.Missing = []string{in.Question}
	}
	switch {
	case len(q.terms) == 0:
		g.Reason = "the question has no words to search for"
	case len(in.Hits) == 0:
		g.Reason = "nothing was found"
	case len(g.Relevant) == 0:
		g.Reason = fmt.Sprintf("no passage reaches the relevance floor of %.2f; the best has %.2f", in.Floor, in.Hits[0].Scores.Relevance)
	case len(unknown) > 0:
		g.Reason = "no document speaks of " + strings.Join(unknown, ", ")
		g.Relevant, g.Missing = []string{}, unknown
	case unknownShare(q) >= maxUnknown:
		g.Reason = fmt.Sprintf("no document has the words for %.0f%% of what the question asks", 100*unknownShare(q))
		g.Relevant, g.Missing = []string{}, unknownWords(q)
	case len(q.terms) == 1 && len(surface.Asking(q.text)) > 0 && !measured(q, in):
		g.Verdict = assay.Partly
		g.Reason = "the question asks a measure, and no relevant passage gives a number with " + q.terms[0].Text
	case asksDate.MatchString(q.text) && !dated(q, in):
		g.Relevant, g.Missing = []string{}, []string{in.Question}
		g.Reason = "the question asks for a date, and no relevant passage has one"
	case len(lacking) > 0:
		g.Verdict = assay.Partly
		g.Reason = "no relevant passage speaks of " + strings.Join(lacking, ", ")
	case q.coverage(held) < minCoverage:
		g.Verdict = assay.Partly
		g.Reason = fmt.Sprintf("the relevant passages hold %.0f%% of what the question asks", 100*q.coverage(held))
	default:
		g.Verdict = assay.Sufficient
		g.Reason = fmt.Sprintf("%d relevant passages, the best with relevance %.2f", len(g.Relevant), in.Hits[0].Scores.Relevance)
	}
	if g.Verdict != assay.Sufficient {
		g.Query = reformulate(q, in)
	}
	return g
}

var (
	asksDate = regexp.MustCompile(`(?i)^(when (was|were|did)|(in )?(what|which) (year|month|date))\b`)
	date     = regexp.MustCompile(`(?i)\b(\d{3,4}s?|\d{1,2}(st|nd|rd|th)|\d+ (BC|AD)|january|february|march|april|june|july|august|september|october|november|december|century|spring|summer|autumn|winter)\b`)
)

// dated reports whether a sentence of a relevant hit has what may be a date, and
// minDated of the question's weight.
func dated(q question, in role.GradeInput) bool {
	const minDated = 0.3
	for _, h := range in.Hits {
		if h.Scores.Relevance < in.Floor {
			continue
		}
		for _, sp := range sentence.Spans(h.Text) {
			text := h.Text[sp.Start:sp.End]
			if date.MatchString(text) && q.coverage(stems(h.Language, text)) >= minDated {
				return true
			}
		}
	}
	return false
}

// measured reports whether a sentence of a relevant hit has the question's one
// term and a number: to speak of a lease is not to say how long it is.
func measured(q question, in role.GradeInput) bool {
	for _, h := range in.Hits {
		if h.Scores.Relevance < in.Floor {
			continue
		}
		for _, sp := range sentence.Spans(h.Text) {
			text := h.Text[sp.Start:sp.End]
			if len(surface.Numbers(text)) > 0 && holdsTerm(stems(h.Language, text), q.terms[0]) {
				return true
			}
		}
	}
	return false
}

// missing lists what the question says and held does not, in its words: names
// first, then the weightier words.
func missing(q question, held map[string]bool) []string {
	out := missingNames(q, held)
	for _, t := range q.terms {
		inName := slices.ContainsFunc(out, func(n string) bool { return strings.Contains(strings.ToLower(n), strings.ToLower(t.Text)) })
		if !holdsTerm(held, t) && !inName {
			out = append(out, t.Text)
		}
	}
	return out
}

// unknownWords lists the content words that no document has.
func unknownWords(q question) []string {
	out := []string{}
	for _, t := range q.terms {
		if t.Chunks == 0 {
			out = append(out, t.Text)
		}
	}
	return out
}

// unknownShare is the share of the question's weight that those words have.
func unknownShare(q question) float64 {
	sum, all := 0.0, q.weight()
	for _, t := range q.terms {
		if t.Chunks == 0 {
			sum += t.Weight
		}
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// unknownNames lists the names of which no document holds a word.
func unknownNames(q question) []string {
	out := []string{}
	for _, n := range q.names {
		known, seen := false, false
		held := stems("", n)
		for _, t := range q.terms {
			if holdsName(held, t.Text) {
				seen = true
				known = known || t.Chunks > 0
			}
		}
		if seen && !known {
			out = append(out, n)
		}
	}
	return out
}

// whoDoes matches what stands between an auxiliary and the verb of a question: "interns" of
// "How many days of leave do interns have?".
var whoDoes = regexp.MustCompile(`(?i)\b(?:do|does|did|can|may|must|should) (?:the |an? |all |our )?(\p{L}+) \p{L}+`)

// unknownActor is who or what a question asks after the doings of, in one word, where no
// document has that word: what others do is no answer.
func unknownActor(q question) []string {
	m := whoDoes.FindStringSubmatch(q.text)
	if m == nil {
		return nil
	}
	for _, t := range q.terms {
		if t.Chunks == 0 && strings.EqualFold(t.Text, m[1]) && !slices.Contains(q.names, t.Text) {
			return []string{t.Text}
		}
	}
	return nil
}

// missingNames lists the names that held lacks. A name that the documents are
// full of goes without saying.
func missingNames(q question, held map[string]bool) []string {
	const common = 0.35 // weight
	out := []string{}
	for _, n := range q.names {
		if !q.speaksOf(held, n) && q.nameWeight(n) >= common {
			out = append(out, n)
		}
	}
	return out
}

// nameWeight is the weight of a name's weightiest term; 1 when the question's
// terms do not have it.
func (q question) nameWeight(name string) float64 {
	weight, known := 0.0, false
	held, words := stems("", name), wordsOf(name)
	for _, t := range q.terms {
		if held[t.Stem] || words[t.Text] {
			weight, known = max(weight, t.Weight), true
		}
	}
	if !known {
		return 1
	}
	return weight
}

// reformulate returns the first of these that was not searched yet: the content
// words alone; those that the best hits lack, with the names; the content words
// with the headings of the best hit; the two weightiest words.
func reformulate(q question, in role.GradeInput) string {
	words := make([]string, len(q.terms))
	for i, t := range q.terms {
		words[i] = t.Text
	}
	var best map[string]bool
	var heading []string
	if len(in.Hits) > 0 {
		best = stems(in.Hits[0].Language, around(in.Hits[0])...)
		if hs := in.Hits[0].Chunk.Headings; len(hs) > 0 {
			heading = contentWords(hs[len(hs)-1])
		}
	}
	weighty := slices.Clone(q.terms)
	slices.SortStableFunc(weighty, func(a, b assay.Term) int {
		switch {
		case a.Weight > b.Weight:
			return -1
		case a.Weight < b.Weight:
			return 1
		}
		return 0
	})
	var top []string
	for _, t := range weighty[:min(2, len(weighty))] {
		top = append(top, t.Text)
	}
	for _, candidate := range [][]string{
		words,
		append(missing(q, best), q.names...),
		append(slices.Clone(words), heading...),
		top,
	} {
		query := strings.Join(distinct(candidate), " ")
		if query != "" && !slices.ContainsFunc(in.Tried, func(t string) bool { return strings.EqualFold(t, query) }) {
			return query
		}
	}
	return ""
}

func distinct(words []string) []string {
	var out []string
	for _, w := range words {
		if !slices.ContainsFunc(out, func(o string) bool { return strings.EqualFold(o, w) }) && !surface.Function(strings.ToLower(w)) {
			out = append(out, w)
		}
	}
	return out
}
