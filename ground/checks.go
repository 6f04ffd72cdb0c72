package ground

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
)

// Check refuses a claim that differs from the cited passages in a number, a unit, a name or a
// negation, and returns the reason. An empty reason does not mean that the claim is supported.
//
// The checks compare words, so they refuse some claims wrongly: numbers computed from numbers that
// are far apart, names in another form, rephrased negation. The test of each check lists such
// cases.
func Check(claim string, cited []Passage) (reason string) {
	var source strings.Builder
	for _, p := range cited {
		fmt.Fprintf(&source, "%s\n\n%s\n\n", strings.Join(p.Heading, "\n\n"), p.Context)
		if !strings.Contains(p.Context, p.Quote) {
			fmt.Fprintf(&source, "%s\n\n", p.Quote)
		}
	}
	stated := withoutQuestions(claim)
	words, given := wordsOf(stated), wordsOf(source.String())
	if reason := checkNumbers(words, given); reason != "" {
		return reason
	}
	if reason := checkNames(stated, given); reason != "" {
		return reason
	}
	return checkNegation(claim, cited)
}

// withoutQuestions returns the sentences of a text that are not questions.
func withoutQuestions(text string) string {
	var kept []string
	for _, u := range unitsOf(text) {
		if s := text[u.Start:u.End]; !isQuestion(s) {
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, "\n\n")
}

// checkNumbers refuses a number that is not in the source, or has another unit there, and does
// not follow from the numbers of the source. A small number in words, or an ordinal, may be
// the claim's own count. It is refused only if the source has another number of the same
// thing.
func checkNumbers(claim, source []word) (reason string) {
	stated := quantitiesOf(source)
	given := slices.Concat(stated, impliedBy(source), computedFrom(stated))
	for _, q := range quantitiesOf(claim) {
		if q.value == 1 && q.unit == (measure{}) {
			continue // "one" may be a pronoun
		}
		value, unit := false, false
		for _, g := range given {
			sameValue, same := q.agrees(g)
			same = same || q.also > 0 && q.also == g.value
			value, unit = value || sameValue, unit || same
		}
		switch {
		case unit, q.counts() && !slices.ContainsFunc(stated, q.rivals):
		case value:
			return fmt.Sprintf("the source has another unit than %q", q.text)
		default:
			return fmt.Sprintf("the number %s is not in the source", q.text)
		}
	}
	return ""
}

// counts reports whether q may follow from a source that does not have it: "two" of two
// things, "Saturday" of the weekend.
func (q quantity) counts() bool {
	const most = 12
	return q.spelled && q.value <= most || q.dated()
}

// dated reports whether q is a weekday or a month.
func (q quantity) dated() bool { return q.unit.dimension == "weekday" || q.unit.dimension == "month" }

// rivals reports whether q and g are numbers of the same thing.
func (q quantity) rivals(g quantity) bool {
	if q.ordinal != g.ordinal {
		return false
	}
	if q.unit.dimension != "" {
		return q.unit.dimension == g.unit.dimension
	}
	return slices.ContainsFunc(q.of, func(stem string) bool { return slices.Contains(g.of, stem) })
}

// impliedBy returns the numbers that are implied by other words of a text: "twice", "v3", "a
// day", "daily", 50 % by "half", 15 by "3 pm" and 5 by "17:00".
func impliedBy(source wordList) []quantity {
	var given []quantity
	for i, w := range source {
		lower := source.lower(i)
		for _, v := range implied[lower] {
			given = append(given, quantity{value: v})
		}
		plural := strings.HasSuffix(lower, "s")
		if unit, ok := measures[lower]; ok && !plural && i > 0 && !source[i-1].number {
			given = append(given, quantity{value: 1, unit: unit})
		}
		if part := fractions[lower]; part > 0 { // "students pay half"
			given = append(given, percentage(part, lower))
		}
		v, ok := numeral(lower)
		switch q, _, _ := quantityAt(source, i); {
		case ok && v < 12 && q.also > 0:
			given = append(given, quantity{value: q.also})
		case ok && v >= 13 && strings.Contains(lower, ":"): // "17:00" is five
			given = append(given, quantity{value: v - 12})
		}
		if w.number || !strings.ContainsFunc(w.raw, unicode.IsDigit) {
			continue
		}
		for digits := range strings.FieldsFuncSeq(w.raw, func(r rune) bool { return !unicode.IsDigit(r) }) { // "v3"
			if v, ok := numeral(digits); ok {
				given = append(given, quantity{value: v})
			}
		}
	}
	return given
}

// computedFrom returns sums, differences and ratios of numbers that are near each other in a
// text, and the differences between all its years.
func computedFrom(stated []quantity) []quantity {
	const near = 2
	var given []quantity
	for i, a := range stated {
		for k, b := range stated[i+1:] {
			low, high := min(a.value, b.value), max(a.value, b.value)
			ordinal := a.ordinal || b.ordinal
			switch {
			case a.isYear() && b.isYear():
				given = append(given, quantity{value: high - low})
			case k >= near || ordinal || a.unit.dimension != b.unit.dimension:
			case a.dated():
				given = append(given, quantity{value: high - low}, quantity{value: high - low + 1}) // "Monday to Friday"
			default:
				x, y := a.value, b.value*scale(b.unit)/scale(a.unit)
				given = append(given, quantity{value: math.Abs(x - y), unit: a.unit}, quantity{value: x + y, unit: a.unit})
			}
			if k == 0 && low > 0 && low < high { // "20 of 60"
				given = append(given, percentage(low/high, ""))
			}
		}
	}
	return given
}

// checkNames refuses a name or an identifier that the source has in no form. In a claim that is
// written like a title, or in a language that capitalises nouns, only identifiers are checked.
func checkNames(claim string, source []word) (reason string) {
	words := contentOf(wordsOf(claim))
	capitals := 0
	for _, w := range words {
		if isCapital(w.raw) {
			capitals++
		}
	}
	titled := len(words) > 5 && 5*capitals > 2*len(words)
	known := namesOf(source, words)
	for _, name := range lexical.Names(claim) {
		for _, w := range contentOf(wordsOf(name)) {
			if isNamePart(w.raw) && !known.has(w) && !(titled && isCapital(w.raw)) {
				return fmt.Sprintf("the name %q is not in the source", name)
			}
		}
	}
	return ""
}

// isNamePart reports whether a word of a name is checked: it is not a date and has a form that
// plain words and labels like "Q4" do not have.
func isNamePart(raw string) bool {
	lower := strings.ToLower(raw)
	_, isDate := calendar[lower]
	return len(lower) > 1 && !isDate && naming.MatchString(raw) && !numbered.MatchString(raw)
}

var (
	naming   = lazyregexp.New(`\p{Lu}|_|\pL[.\d]`)
	numbered = lazyregexp.New(`^\pL?\d+$`)
)

// knownNames holds the forms that the names of a claim may have.
type knownNames struct {
	words    map[string]bool // of the source, and their stems
	prefixes map[string]bool // first letters of its capitalised words
	initials string          // of its content words, and of those of the claim
}

// namesOf returns the forms of names that a source allows. A claim may explain its own
// acronyms: "folic acid (FA)".
func namesOf(source, claim []word) knownNames {
	k := knownNames{words: map[string]bool{}, prefixes: map[string]bool{}}
	for _, w := range source {
		k.words[strings.ToLower(w.raw)], k.words[w.stem] = true, true
		if isCapital(w.raw) {
			k.prefixes[firstLetters(w.raw)] = true
		}
	}
	k.initials = initials(contentOf(source)) + " " + initials(claim)
	return k
}

// has reports whether a word of a name is known.
func (k knownNames) has(w word) bool {
	lower := strings.ToLower(w.raw)
	acronym := strings.TrimSuffix(lower, "s")
	switch {
	case k.words[lower], k.words[w.stem], k.words[acronym], measures[lower].factor > 0:
		return true
	case isCapital(w.raw):
		return k.prefixes[firstLetters(w.raw)] // "Swedish" of "Sweden"
	}
	return strings.Contains(k.initials, acronym) // "UN" of "United Nations"
}

// initials returns the first letters of words in lower case.
func initials(words []word) string {
	var letters strings.Builder
	for _, w := range words {
		r, _ := utf8.DecodeRuneInString(w.raw)
		letters.WriteRune(unicode.ToLower(r))
	}
	return letters.String()
}

// firstLetters returns the letters that all forms of a name begin with.
func firstLetters(raw string) string {
	const n = 4
	runes := []rune(strings.ToLower(raw))
	return string(runes[:min(n, len(runes))])
}

// isCapital reports whether the first letter of a word, and no other, is a capital.
func isCapital(raw string) bool {
	r, size := utf8.DecodeRuneInString(raw)
	return unicode.IsUpper(r) && strings.ToLower(raw[size:]) == raw[size:]
}

// nearlySame is the least share of content words that two sentences with nearly the same words have
// in common.
const nearlySame = 0.8

// shifts finds words that can replace a negation: "within" for "no later than", "unless" for
// "if not", "a maximum of" for "not more than", "unlike" for "but not".
var shifts = lazyregexp.New(`\b(?:unless|only|until|without|except|before|within|than|at (?:least|most)|(?:min|max)imum|up to|unlike|but|whereas|neither|either)\b`)

func shiftsOf(text string) []string { return shifts.FindAllString(strings.ToLower(text), -1) }

// checkNegation refuses a claim if it has a negation and the sentence with nearly the same
// words has none, or the other way round.
func checkNegation(claim string, cited []Passage) (reason string) {
	want := stemsOf(contentOf(wordsOf(claim)))
	if len(want) == 0 {
		return ""
	}
	same, opposite := false, false
	for _, p := range cited {
		units := unitsOf(p.Context)
		for i, bag := range bagsOf(p.Context, units) {
			text := p.Context[units[i].Start:units[i].End]
			there := stemsOf(contentOf(wordsOf(text)))
			if n := float64(commonStems(want, bag)); n < nearlySame*float64(max(len(want), len(there))) {
				continue
			}
			negated := negationDiffers(claim, text)
			shifted := !slices.Equal(shiftsOf(claim), shiftsOf(text))
			same = same || !negated || shifted
			opposite = opposite || negated
		}
	}
	if opposite && !same {
		return "one of claim and source has a negation and the other does not"
	}
	return ""
}

// negationDiffers reports whether one of two sentences is negated. Two negations cancel out.
func negationDiffers(a, b string) bool { return lexical.Negations(a)%2 != lexical.Negations(b)%2 }
