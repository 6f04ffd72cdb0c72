package ground

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/surface"
)

// A Placed is a statement with the title and the headings that it stands under: what it does
// not name itself, it is of these.
type Placed struct {
	Text     string
	Headings []string
}

// Disputed reports whether two statements of two documents cannot both hold, where their
// words are not near enough for Contrary: one has an apposition that the other does not
// have, one is a part of a longer sentence, one has from its headings of what it speaks, or
// they differ in a number behind a noun that the question asks for ("Which port …?").
//
// It is stricter than Contrary in all else. The words of content are the same, but for
// those that the other's headings say; one number differs, and no word that bounds it
// stands in either; and no heading of one tells of something that the other does not
// know.
func Disputed(a, b Placed, question string) bool {
	for _, x := range assertions(a) {
		for _, y := range assertions(b) {
			if disputed(x, y, question) {
				return true
			}
		}
	}
	return false
}

// Bears reports whether a statement says of what it is about something that a question asks
// for: they have a word of content in common that is not one of its headings.
func Bears(s Placed, question string) bool {
	asked, about := plainTerms(question), headingTerms(s)
	for t := range plainTerms(s.Text) {
		if asked[t] && !about[t] {
			return true
		}
	}
	return false
}

// hedging are words after which two numbers can both hold, or neither is said to.
var hedging = regexp.MustCompile(`(?i)\b(?:as of|at (?:least|most)|up to|no (?:more|less|fewer)|more|less|fewer|over|under|above|below|about|around|approximately|roughly|nearly|almost|between|from|until|till|before|after|since|if|when|while|unless|only|except|without|or|either|may|might|can|could|should|would|each|another|additional|extra|further|other|also|usually|often|sometimes)\b`)

// unnamed are statements whose subject is told elsewhere.
var unnamed = regexp.MustCompile(`(?i)^(?:it|they|he|she|this|that|these|those|both|each|some|such|one|which|who|its|their|his|her)\b`)

// disputed is Disputed of single assertions.
func disputed(a, b Placed, question string) bool {
	if !asserts(a) || !asserts(b) {
		return false
	}
	onlyA, onlyB := difference(surface.Numbers(a.Text), surface.Numbers(b.Text)), difference(surface.Numbers(b.Text), surface.Numbers(a.Text))
	if len(onlyA) != 1 || len(onlyB) != 1 || surface.Negations(a.Text)%2 != surface.Negations(b.Text)%2 {
		return false
	}
	if named := surface.Labels(question); slices.Contains(named, onlyA[0]) || slices.Contains(named, onlyB[0]) {
		return false
	}
	ta, tb := plainTerms(a.Text), plainTerms(b.Text)
	ha, hb := headingTerms(a), headingTerms(b)
	if !heldBy(ta, tb, hb) || !heldBy(tb, ta, ha) || shared(ta, tb) < minTerms {
		return false
	}
	return heldBy(ha, tb, hb, general) && heldBy(hb, ta, ha, general) && sameNumbers(a.Headings, b.Headings) && values(a.Text, b.Text, question)
}

// asserts reports whether a statement says something of a thing that it, or what it stands
// under, names: no step of a list, no cell of a table, and nothing that two documents can
// say of two studies.
func asserts(p Placed) bool {
	first, _ := utf8.DecodeRuneInString(p.Text)
	if !unicode.IsLetter(first) || strings.Contains(p.Text, "|") || hedging.MatchString(p.Text) || unnamed.MatchString(p.Text) {
		return false
	}
	return len(headingTerms(p)) > 0 || len(surface.Names(p.Text)) > 0
}

// values reports whether the numbers in which two texts differ are said of something, and do
// not name it; those that name something are what is asked for, at the end of both.
func values(a, b, question string) bool {
	la, lb := labels(a), labels(b)
	if len(difference(la, lb))+len(difference(lb, la)) == 0 {
		return true
	}
	na, oka := endLabel(a)
	nb, okb := endLabel(b)
	return oka && okb && na == nb && len(la) == 1 && len(lb) == 1 && plainTerms(question)[na] && asksFor.MatchString(question)
}

// asksFor are questions for something by its name or number.
var asksFor = regexp.MustCompile(`(?i)\b(?:which|what)\b`)

// endLabel returns the term of the noun whose number a text ends with: "port" of "… listens
// on port 8080."
func endLabel(text string) (noun string, ok bool) {
	words := surface.Words(text)
	n := len(words)
	if n < 4 || len(surface.Numbers(words[n-1])) != 1 || !introduces[strings.ToLower(words[n-3])] {
		return "", false
	}
	for term := range plainTerms(words[n-2]) {
		return term, true
	}
	return "", false
}

// assertions cuts a statement into what it says one after the other, without appositions.
func assertions(p Placed) []Placed {
	text := strings.TrimSpace(withoutApposition(p.Text))
	var all []Placed
	for _, part := range parts(text) {
		all = append(all, Placed{strings.TrimSpace(part.lead + " " + text[part.Start:part.End]), p.Headings})
	}
	return all
}

// apposition is what is said between commas of a subject, and could be left out.
var apposition = regexp.MustCompile(`^([^,]+), (?:which|who|(?:a|an|the)|(?:made|built|sold|run|known|located|based|founded|developed|produced|introduced|released|owned|supplied|designed|manufactured))\b[^,;:.!?\d]*, (\p{Ll})`)

// withoutApposition leaves out what a sentence says in passing of a subject that it names.
func withoutApposition(text string) string {
	m := apposition.FindStringSubmatchIndex(text)
	if m == nil || len(surface.Names(text[:m[3]])) == 0 || goesOn.MatchString(text[m[4]:]) {
		return text
	}
	return text[:m[3]] + " " + text[m[4]:]
}

// goesOn are words that go on with a list.
var goesOn = regexp.MustCompile(`^(?:and|or|but|nor|as well as)\b`)

// general are terms of headings that tell of nothing in particular.
var general = plainTerms("overview introduction general summary about description details notes faq basics information specification specifications features product products documentation manual guide handbook readme old older new newer former previous archive archived obsolete superseded draft copy current latest facts data sheet technical")

// headingTerms are the terms of what a statement stands under.
func headingTerms(p Placed) map[string]bool { return plainTerms(strings.Join(p.Headings, ". ")) }

// heldBy reports whether each term is in one of the sets.
func heldBy(terms map[string]bool, sets ...map[string]bool) bool {
	for t := range terms {
		if !slices.ContainsFunc(sets, func(s map[string]bool) bool { return s[t] }) {
			return false
		}
	}
	return true
}

// shared counts the terms that two sets have.
func shared(a, b map[string]bool) int {
	n := 0
	for t := range a {
		if b[t] {
			n++
		}
	}
	return n
}

// sameNumbers reports whether two lists of headings name the same numbers, as versions and
// years are.
func sameNumbers(a, b []string) bool {
	na, nb := surface.Numbers(strings.Join(a, ". ")), surface.Numbers(strings.Join(b, ". "))
	return len(difference(na, nb))+len(difference(nb, na)) == 0
}
