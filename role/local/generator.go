package local

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// Generator answers with sentences of the evidence, verbatim, each citing where
// it stands: the one that holds most of what the question asks, then those that
// add to it. It writes nothing of its own.
type Generator struct{}

// The size of an answer to one part of a question.
const (
	maxSentences = 3
	maxWords     = 90
	maxPerPart   = 2 // sentences for each part when there are several
)

// Generate implements role.Generator. It returns an error only when ctx has
// ended.
func (Generator) Generate(ctx context.Context, in role.GenerateInput) (role.Draft, error) {
	if err := ctx.Err(); err != nil {
		return role.Draft{}, err
	}
	limit := maxSentences
	if len(in.Parts) > 1 {
		limit = maxPerPart
	}
	draft := role.Draft{Statements: []role.Statement{}}
	said := map[string]bool{}
	for _, p := range in.Parts {
		q := read(p.Question, p.Terms)
		var candidates []candidate
		for _, n := range p.Evidence {
			if n >= 1 && n <= len(in.Evidence) {
				candidates = append(candidates, sentences(q, in.Evidence[n-1])...)
			}
		}
		for _, c := range pick(q, candidates, limit) {
			if key := strings.Join(strings.Fields(strings.ToLower(c.text)), " "); !said[key] {
				said[key] = true
				draft.Statements = append(draft.Statements, role.Statement{Text: c.text, Evidence: []int{c.number}})
			}
		}
	}
	return draft, nil
}

// A candidate is a sentence that may go into the answer.
type candidate struct {
	text   string
	number int // of its evidence
	at     int // its place among the sentences of its chunk
	words  int
	held   map[string]bool // terms of the sentence
	near   map[string]bool // terms of the headings and title it stands under
	focus  float64         // share of the words of its heading that the question holds
	score  float64
}

// sentences returns the sentences of one piece of evidence, scored.
func sentences(q question, ev assay.Evidence) []candidate {
	h := ev.Hit
	near := stems(append(slices.Clone(h.Chunk.Headings), h.Title)...)
	heading := h.Title
	if hs := h.Chunk.Headings; len(hs) > 0 {
		heading = hs[len(hs)-1]
	}
	focus := surface.Focus(heading, q.holds)
	var out []candidate
	for i, text := range units(h) {
		c := candidate{
			text:   text,
			number: ev.Number,
			at:     i,
			words:  len(surface.Words(text)),
			held:   stems(text),
			near:   near,
			focus:  focus,
		}
		c.score = score(q, c) * h.Scores.Relevance
		out = append(out, c)
	}
	return out
}

// units cuts a hit's text into what can be quoted by itself: sentences, with
// their line breaks taken for blanks and without the mark of a list item, and
// the lines of tables. Code is quoted only where there is nothing else.
func units(h assay.Hit) []string {
	var prose, code []string
	for _, sp := range sentence.Spans(h.Text) {
		text := h.Text[sp.Start:sp.End]
		switch {
		case h.Chunk.Kind == assay.ChunkTable:
			for line := range strings.Lines(text) {
				if line = strings.TrimSpace(line); line != "" {
					prose = append(prose, line)
				}
			}
		case surface.Code(text):
			code = append(code, text)
		case len(surface.Words(text)) >= minUnitWords:
			prose = append(prose, withoutMark(strings.Join(strings.Fields(text), " ")))
		}
	}
	if len(prose) > 0 {
		return prose
	}
	return code
}

// minUnitWords keeps labels and crumbs of markup from being quoted as sentences.
const minUnitWords = 3

// withoutMark cuts the mark of a list item off: "- ", "* ", "• ".
func withoutMark(text string) string {
	for _, mark := range []string{"- ", "* ", "• "} {
		if rest, ok := strings.CutPrefix(text, mark); ok {
			return rest
		}
	}
	return text
}

// formBonus is what a sentence gains that has the form the question asks for.
const formBonus = 0.1

// definitionBonus is what a sentence gains that says what the question's subject
// is.
const definitionBonus = 0.25

var (
	asksWhat = regexp.MustCompile(`(?i)^(?:what|who)(?:'s| is| are| was| were)\b`)
	says     = regexp.MustCompile(`(?i)\s(?:is|are|was|were|means?|refers? to|denotes?|represents?|specif(?:y|ies)|describes?)\s`)
)

// defines reports whether a question asks what something is and a sentence opens
// with saying it: "A data race is defined as …".
func defines(q question, text string) bool {
	if !asksWhat.MatchString(q.text) || len(q.terms) == 0 {
		return false
	}
	at := says.FindStringIndex(text)
	if at == nil || surface.Negations(text[at[1]:]) > 0 {
		return false
	}
	subject := text[:at[0]]
	held := stems(subject)
	for _, t := range q.terms {
		if !held[t.Stem] {
			return false
		}
	}
	const article, more = 1, 1
	return len(surface.Words(subject)) <= len(q.terms)+article+more
}

// pairBonus is what a sentence gains that has all of the question's neighbouring
// words near one another.
const pairBonus = 0.15

// focusBonus is what a sentence gains whose section is about nothing else than
// the question.
const focusBonus = 0.2

// score says how well one sentence answers the question: the share of the
// question's weight that it holds, half of what only its headings hold, and a
// little for the form that the question asks for.
func score(q question, c candidate) float64 {
	sum, all := 0.0, q.weight()
	for _, t := range q.terms {
		switch {
		case c.held[t.Stem]:
			sum += t.Weight
		case c.near[t.Stem]:
			sum += t.Weight / 2
		}
	}
	if all == 0 {
		return 0
	}
	s := sum / all
	s += focusBonus * c.focus
	if s > 0 && fits(q.text, c.text) {
		s += formBonus
	}
	if s > 0 && defines(q, c.text) {
		s += definitionBonus
	}
	if s > 0 {
		s += pairBonus*pairs(q, c.text) - flaws(c)
	}
	return s
}

// flaws is what a sentence loses for not standing well by itself.
func flaws(c candidate) float64 {
	const slight, serious = 0.05, 0.2
	loss := 0.0
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(c.text, "\"')]}”’»*_`"))
	switch {
	case last == '?':
		loss += serious
	case last == ':':
		loss += slight
	case !strings.ContainsRune(".!;。！", last):
		loss += serious // a heading, a label, a line of a table of contents
	}
	if first, _ := utf8.DecodeRuneInString(c.text); unicode.IsLower(first) {
		loss += slight // a fragment
	}
	if leaning.MatchString(c.text) {
		loss += slight
	}
	if c.words > 50 {
		loss += 2 * slight
	}
	if c.at == 0 {
		loss -= slight / 2 // a passage opens with what it is about
	}
	return loss
}

// leaning matches a sentence that cannot be read without the one before it.
var leaning = regexp.MustCompile(`^(This|That|These|Those|It|They|He|She|However|Otherwise|Also|But|And|Or|So|Thus|Therefore|Hence|Then|Doing|Such)\b`)

// pairs is the share of the question's neighbouring words that stand within
// three words of one another in text.
func pairs(q question, text string) float64 {
	if len(q.terms) < 2 {
		return 0
	}
	const reach = 3
	at := map[string][]int{}
	for _, t := range analysis.Tokens(text, "") {
		at[t.Term] = append(at[t.Term], t.Position)
	}
	n := 0
	for i := range q.terms[1:] {
		near := slices.ContainsFunc(at[q.terms[i].Stem], func(a int) bool {
			return slices.ContainsFunc(at[q.terms[i+1].Stem], func(b int) bool { return max(a-b, b-a) <= reach })
		})
		if near {
			n++
		}
	}
	return float64(n) / float64(len(q.terms)-1)
}

// fits reports whether a sentence has what the question word asks for.
func fits(question, text string) bool {
	words := surface.Words(strings.ToLower(question))
	has := func(phrase string) bool { return strings.Contains(" "+strings.Join(words, " ")+" ", " "+phrase+" ") }
	switch {
	case has("how many"), has("how much"), has("how long"), has("how large"), has("how big"), has("how old"):
		return len(surface.Numbers(text)) > 0
	case has("what year"), has("which year"), has("what date"):
		return len(surface.Numbers(text)) > 0
	case has("when"):
		return len(surface.Numbers(text)) > 0 || containsAny(text, " when ", " if ", " until ", " after ", " before ", " once ", " as soon as ")
	case has("who"), has("whose"), has("whom"):
		return len(surface.Names(text)) > 0
	case has("why"):
		return containsAny(text, "because", "since", "so that", "in order to", "therefore", "reason", "to avoid", "to prevent")
	case has("what is"), has("what are"):
		return says.MatchString(text)
	}
	return false
}

func containsAny(text string, phrases ...string) bool {
	lower := strings.ToLower(text)
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(lower, p) })
}

// pick returns the best candidate and then, up to limit, the one that adds most
// each time: terms of the question that are still open, or the sentence that
// follows a picked one. They are ordered as they were picked, but sentences of
// one passage in the passage's order.
func pick(q question, candidates []candidate, limit int) []candidate {
	var picked []candidate
	held := map[string]bool{}
	words := 0
	for len(picked) < limit {
		best, bestGain := -1, 0.0
		for i, c := range candidates {
			if c.score <= 0 || words > 0 && words+c.words > maxWords {
				continue
			}
			if gain := gain(q, c, held, picked); gain > bestGain {
				best, bestGain = i, gain
			}
		}
		if best < 0 {
			break
		}
		c := candidates[best]
		candidates = slices.Delete(slices.Clone(candidates), best, best+1)
		picked = append(picked, c)
		words += c.words
		for stem := range c.held {
			held[stem] = true
		}
	}
	rank := map[int]int{}
	for i, c := range picked {
		if _, known := rank[c.number]; !known {
			rank[c.number] = i
		}
	}
	slices.SortStableFunc(picked, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(rank[a.number], rank[b.number]), cmp.Compare(a.at, b.at))
	})
	return picked
}

// A further sentence must add minGain, score minShare of what the first does, and
// not stand before it in its passage, to be worth reading.
const (
	minGain  = 0.15
	minShare = 0.5
)

// gain is what a candidate adds to what was picked.
func gain(q question, c candidate, held map[string]bool, picked []candidate) float64 {
	if len(picked) == 0 {
		return c.score
	}
	open := 0.0
	for _, t := range q.terms {
		if c.held[t.Stem] && !held[t.Stem] {
			open += t.Weight
		}
	}
	g := 0.0
	if all := q.weight(); all > 0 {
		g = open / all
	}
	for _, p := range picked {
		if p.number == c.number && c.at == p.at+1 {
			g += 0.1 + c.score/4 // goes on where a picked one ended
		}
	}
	first := picked[0]
	if g < minGain || c.score < minShare*first.score || c.number == first.number && c.at < first.at {
		return 0
	}
	return g
}
