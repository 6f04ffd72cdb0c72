package local

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/surface"
)

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
func defines(q question, text, language string) bool {
	if !asksWhat.MatchString(q.text) || len(q.terms) == 0 {
		return false
	}
	at := says.FindStringIndex(text)
	if at == nil || surface.Negations(text[at[1]:]) > 0 {
		return false
	}
	subject := text[:at[0]]
	held := stems(language, subject)
	for _, t := range q.terms {
		if !holdsTerm(held, t) {
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
		case holdsTerm(c.held, t):
			sum += t.Weight
		case holdsTerm(c.near, t):
			sum += t.Weight / 2
		}
	}
	if all == 0 {
		return 0
	}
	s := sum / all
	s += focusBonus * c.focus
	if s > 0 && (fits(q.text, c.text) || compares(q.whole) && contrasts(c.text)) {
		s += formBonus
	}
	if s > 0 && defines(q, c.text, c.language) {
		s += definitionBonus
	}
	if s > 0 {
		s += pairBonus*pairs(q, c.text, c.language) - flaws(c)
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
func pairs(q question, text, language string) float64 {
	if len(q.terms) < 2 {
		return 0
	}
	const reach = 3
	term := map[string]int{} // form → which of the question's
	for i, t := range q.terms {
		term[t.Stem] = i
		for _, form := range t.Forms {
			term[form] = i
		}
	}
	at := make([][]int, len(q.terms))
	for _, t := range analysis.Tokens(text, language) {
		if i, ok := term[t.Term]; ok {
			at[i] = append(at[i], t.Position)
		}
	}
	for _, positions := range at {
		slices.Sort(positions) // the parts of a compound follow it
	}
	n := 0
	for i := range q.terms[1:] {
		if within(reach, at[i], at[i+1]) {
			n++
		}
	}
	return float64(n) / float64(len(q.terms)-1)
}

// within reports whether a position of a and one of b, both ascending, are at
// most reach apart.
func within(reach int, a, b []int) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case max(a[0]-b[0], b[0]-a[0]) <= reach:
			return true
		case a[0] < b[0]:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return false
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
	case has("when"), has("if"), has("what happens"), has("what happens to"):
		return has("when") && len(surface.Numbers(text)) > 0 || conditional.MatchString(text)
	case has("who"), has("whose"), has("whom"):
		return len(surface.Names(text)) > 0 || containsAny(text, "responsib")
	case has("why"):
		return containsAny(text, "because", "since", "so that", "in order to", "therefore", "note that", "reason", "to avoid", "to prevent", "should not")
	case has("how do i"), has("how can i"), has("how do you"), has("how to"):
		return instructs.MatchString(text)
	case has("what is"), has("what are"):
		return says.MatchString(text)
	}
	return false
}

// conditional matches a sentence that says when.
var conditional = regexp.MustCompile(`(?i)\b(when|if|until|after|before|once|as soon as|unless|while)\b`)

// instructs matches a sentence that tells what to do.
var instructs = regexp.MustCompile(`(?i)(^|[,:;] |you (can|must|should|may) |\bto |\bthen )(use|call|set|run|pass|specify|add|create|register)\b|\bby (using|calling|setting|running|passing|adding)\b`)

func contrasts(text string) bool {
	_, _, ok := surface.Contrasts(text)
	return ok
}

// compares reports whether a question asks how things differ.
func compares(question string) bool {
	return containsAny(question, "difference", "differ ", "compare", " vs", "versus")
}

func containsAny(text string, phrases ...string) bool {
	lower := strings.ToLower(text)
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(lower, p) })
}
