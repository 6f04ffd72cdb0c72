package ground

import (
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/surface"
)

// Check refuses a claim that differs from the cited passages in a number, a unit, a name or
// a negation, and returns the reason. An empty reason says that the checks found nothing,
// not that the claim is supported.
//
// The checks compare words, so they refuse some claims wrongly: numbers that were computed
// or rounded up, counts of things that the source lists, names in another form, negation
// that was rephrased. The test of each check lists such cases.
func Check(claim string, cited []Passage) (reason string) {
	var source strings.Builder
	for _, p := range cited {
		fmt.Fprintf(&source, "%s\n\n%s\n\n%s\n\n", strings.Join(p.Heading, "\n\n"), p.Context, p.Quote)
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

//go:embed units.txt
var unitsFile string

// A measure is a unit of measurement.
type measure struct {
	dimension string
	factor    float64
}

var (
	numerals = map[string]float64{} // "five"
	implied  = map[string][]float64{}
	ordinals = map[string]float64{}
	powers   = map[string]float64{} // "million"
	measures = map[string]measure{}

	moneyPowers = map[string]float64{}
	fractions   = map[string]float64{}
)

func init() {
	for line := range strings.Lines(unitsFile) {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.HasPrefix(line, "#") {
			continue
		}
		value, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			panic("units.txt: " + line)
		}
		for _, w := range fields[2:] {
			switch fields[0] {
			case "number":
				numerals[w] = value
			case "also":
				implied[w] = append(implied[w], value)
			case "ordinal":
				ordinals[w] = value
			case "times":
				powers[w] = value
			case "fraction":
				fractions[w] = value
			case "money":
				moneyPowers[w] = value
			default:
				measures[w] = measure{fields[0], value}
			}
		}
	}
}

var thousands = regexp.MustCompile(`^\d{1,3}(?:,\d{3})+(?:\.\d+)?$`)

// numeral returns the value of a number in digits or as a word.
func numeral(lower string) (value float64, ok bool) {
	if v, ok := numerals[lower]; ok {
		return v, true
	}
	if lower == "" || lower[0] < '0' || lower[0] > '9' {
		return 0, false
	}
	if thousands.MatchString(lower) {
		lower = strings.ReplaceAll(lower, ",", "")
	}
	v, err := strconv.ParseFloat(strings.Replace(lower, ",", ".", 1), 64)
	return v, err == nil && !math.IsInf(v, 0)
}

// A quantity is a number of a text with its unit.
type quantity struct {
	value   float64
	unit    measure // zero: none that is known
	ordinal bool
	also    float64 // another value that it stands for; 0: none
	text    string
}

// quantitiesOf returns the quantities of a text.
func quantitiesOf(words []word) []quantity {
	var out []quantity
	for i := 0; i < len(words); i++ {
		q, next, ok := quantityAt(words, i)
		if ok {
			out = append(out, q)
			i = next - 1
		}
	}
	return out
}

// quantityAt reads the quantity that begins with word i. Next is the word after it.
func quantityAt(words []word, i int) (q quantity, next int, ok bool) {
	lower := func(k int) string {
		if k < 0 || k >= len(words) {
			return ""
		}
		return strings.ToLower(words[k].raw)
	}
	next = i + 1
	q.text = words[i].raw
	if q, next, ok := fractionAt(words, i, lower); ok {
		return q, next, true
	}
	if v, is := ordinals[lower(i)]; is && (i == 0 || !words[i-1].number) {
		q.value, q.ordinal = v, true
		return q, next, true
	}
	if q.value, ok = numeral(lower(i)); !ok {
		article := lower(i-1) == "a" || lower(i-1) == "the"
		if q.value = powers[lower(i)]; q.value == 0 || !article { // "a million"
			return q, next, false
		}
	}
	_, spelled := numerals[lower(i)]
	if digit := numerals[lower(next)]; spelled && q.value >= 20 && digit > 0 && digit < 10 { // "twenty-five"
		q.value += digit
		next++
	}
	if currency := measures[lower(i-1)]; strings.ContainsAny(lower(i-1), "€$£¥") {
		q.unit = currency
		if factor := moneyPowers[lower(next)]; factor > 0 { // "$8.2m"
			q.value *= factor
			next++
		}
	}
	for ; powers[lower(next)] > 0; next++ {
		q.value *= powers[lower(next)]
	}
	if lower(next) == "and" && lower(next+1) == "a" && lower(next+2) == "half" {
		q.value += 0.5
		next += 3
	}
	switch m, is := measures[lower(next)]; {
	case slices.Contains(ordinalEndings, lower(next)):
		q.ordinal = true
		next++
	case lower(next) == "pm" && q.value < 12: // 3 pm is 15:00, too
		q.also = q.value + 12
	case is && q.unit == (measure{}):
		q.unit, q.text = m, q.text+" "+words[next].raw
		next++
	}
	return q, next, true
}

// fractionAt reads a fraction that begins with word i: "half an hour", "three quarters of a
// minute", and "a third of" as a percentage.
func fractionAt(words []word, i int, lower func(int) string) (q quantity, next int, ok bool) {
	times, at := 1.0, i
	if n, is := numerals[lower(i)]; is && fractions[lower(i+1)] > 0 {
		times, at = n, i+1
	}
	part := fractions[lower(at)]
	if part == 0 || ordinals[lower(at)] > 0 && at == i && lower(i-1) != "a" {
		return q, i + 1, false
	}
	q.value, q.text = times*part, words[at].raw
	next = at + 1
	for slices.Contains(articles, lower(next)) {
		next++
	}
	if m, is := measures[lower(next)]; is && next > at+1 {
		q.unit, q.text = m, q.text+" "+words[next].raw
		return q, next + 1, true
	}
	if next == at+1 && at == i && lower(i-1) != "a" {
		return q, i + 1, false // "the fourth quarter"
	}
	return quantity{value: 100 * q.value, unit: measures["percent"], text: q.text}, at + 1, true
}

var (
	articles       = []string{"of", "a", "an", "the"}
	ordinalEndings = []string{"st", "nd", "rd", "th"}
)

// checkNumbers refuses a number that the source does not have, or has with another unit.
func checkNumbers(claim, source []word) (reason string) {
	given := quantitiesOf(source)
	for _, g := range slices.Clone(given) {
		if g.also > 0 {
			given = append(given, quantity{value: g.also})
		}
	}
	for _, w := range source {
		for _, v := range implied[strings.ToLower(w.raw)] {
			given = append(given, quantity{value: v})
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
	for _, q := range quantitiesOf(claim) {
		if q.value == 1 && q.unit == (measure{}) || q.text == "00" {
			continue // "one" is a pronoun as well, and 15:00 is 3 pm
		}
		value, unit := false, false
		for _, g := range given {
			v, u := q.agrees(g)
			value, unit = value || v, unit || u || q.also > 0 && q.also == g.value
		}
		switch {
		case !value && !unit:
			return fmt.Sprintf("the number %s is not in the source", q.text)
		case !unit:
			return fmt.Sprintf("the source has another unit than %q", q.text)
		}
	}
	return ""
}

// agrees reports whether a quantity of the source has the value of q, and whether it is the
// same with its unit. Units of other dimensions than both, and none, agree with any.
func (q quantity) agrees(g quantity) (value, unit bool) {
	value = equal(q.value, g.value) || q.value == math.Round(g.value)
	if q.unit.dimension != "" && q.unit.dimension == g.unit.dimension {
		return value, equal(q.value*q.unit.factor, g.value*g.unit.factor) || value && q.unit == g.unit
	}
	return value, value && (q.unit.dimension == "" || g.unit.dimension == "")
}

func equal(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// checkNames refuses a name or an identifier of which the source has no form. Of a claim
// that is written like a title, or in a language that capitalises nouns, only identifiers
// are checked.
func checkNames(claim string, source []word) (reason string) {
	given, names := map[string]bool{}, map[string]bool{} // names by their first letters
	var initials strings.Builder
	for _, w := range source {
		given[strings.ToLower(w.raw)], given[w.stem] = true, true
		if isCapital(w.raw) {
			names[firstLetters(w.raw)] = true
		}
		if r, _ := utf8.DecodeRuneInString(w.raw); w.content {
			initials.WriteRune(unicode.ToLower(r))
		}
	}
	words := contentOf(wordsOf(claim))
	capitals := 0
	initials.WriteByte(' ')
	for _, w := range words {
		r, _ := utf8.DecodeRuneInString(w.raw)
		initials.WriteRune(unicode.ToLower(r)) // "folic acid (FA)" explains itself
		if isCapital(w.raw) {
			capitals++
		}
	}
	titled := len(words) > 5 && 5*capitals > 2*len(words)
	for _, name := range surface.Names(claim) {
		for _, w := range contentOf(wordsOf(name)) {
			lower := strings.ToLower(w.raw)
			acronym := strings.TrimSuffix(lower, "s")
			switch {
			case !naming.MatchString(w.raw) || numbered.MatchString(w.raw) || len(lower) < 2: // a plain word, or "Q4"
			case given[lower] || given[w.stem] || given[acronym] || measures[lower].factor > 0 || titled && isCapital(w.raw):
			case isCapital(w.raw) && names[firstLetters(w.raw)]: // "Swedish" of "Sweden"
			case !isCapital(w.raw) && strings.Contains(initials.String(), acronym): // "UN" of "United Nations"
			default:
				return fmt.Sprintf("the name %q is not in the source", name)
			}
		}
	}
	return ""
}

var (
	naming   = regexp.MustCompile(`\p{Lu}|_|\pL[.\d]`)
	numbered = regexp.MustCompile(`^\pL?\d+$`)
)

// firstLetters returns the letters that the forms of a name have in common.
func firstLetters(raw string) string {
	const n = 4
	runes := []rune(strings.ToLower(raw))
	return string(runes[:min(n, len(runes))])
}

// isCapital reports whether a word is written with one capital at its beginning.
func isCapital(raw string) bool {
	r, size := utf8.DecodeRuneInString(raw)
	return unicode.IsUpper(r) && strings.ToLower(raw[size:]) == raw[size:]
}

// Nearly all content words of two sentences are the same from nearlySame on.
const nearlySame = 0.8

// shifts finds words that say what a negation says: "no later than" for "within", "unless"
// for "if not".
var shifts = regexp.MustCompile(`\b(?:unless|only|until|without|except|before|within|(?:no|not) \pL+ than|at (?:least|most)|up to)\b`)

func shiftsOf(text string) []string { return shifts.FindAllString(strings.ToLower(text), -1) }

// checkNegation refuses a claim if only one of it and the sentence with nearly the same
// words has a negation.
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
			n := float64(held(want, []map[string]int{bag}))
			if n < nearlySame*float64(len(want)) || n < nearlySame*float64(len(there)) {
				continue
			}
			negated := surface.Negations(claim)%2 != surface.Negations(text)%2
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
