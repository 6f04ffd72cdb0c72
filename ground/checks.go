package ground

import (
	"cmp"
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
// from others than neighbours, names in another form, negation that was rephrased. The test
// of each check lists such cases.
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
	calendar = map[string]quantity{}
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
			case "weekday", "month":
				calendar[w] = quantity{value: value, unit: measure{fields[0], 1}}
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

// numeral returns the value of a number in digits or as a word, and of a time in hours.
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
	if hours, minutes, ok := strings.Cut(lower, ":"); ok { // "15:30"
		h, err := strconv.Atoi(hours)
		m, wrong := strconv.Atoi(minutes)
		return float64(h) + float64(m)/60, err == nil && wrong == nil
	}
	v, err := strconv.ParseFloat(strings.Replace(lower, ",", ".", 1), 64)
	return v, err == nil && !math.IsInf(v, 0)
}

// fraction returns the value of a proper fraction in digits: "2/3".
func fraction(raw string) (value float64, ok bool) {
	over, under, ok := strings.Cut(raw, "/")
	if !ok {
		return 0, false
	}
	a, ok := numeral(over)
	b, too := numeral(under)
	return a / b, ok && too && 0 < a && a < b
}

// A quantity is a number of a text with its unit.
type quantity struct {
	value   float64
	unit    measure // zero: none that is known
	ordinal bool
	spelled bool     // in words
	about   bool     // not exact: "nearly 90", "a third"
	also    float64  // another value that it stands for; 0: none
	of      []string // stems of the content words after it: of what it is the number
	text    string
}

// quantitiesOf returns the quantities of a text.
func quantitiesOf(words []word) []quantity {
	var out []quantity
	for i := 0; i < len(words); i++ {
		q, next, ok := quantityAt(words, i)
		if !ok {
			continue
		}
		q.about = q.about || i > 0 && approximate[strings.ToLower(words[i-1].raw)]
		for _, w := range words[next:min(next+2, len(words))] {
			if w.content && !w.number {
				q.of = append(q.of, w.stem)
			}
		}
		out = append(out, q)
		i = next - 1
	}
	return out
}

// approximate words stand before numbers that are not exact. "Than" is that of "more than".
var approximate = map[string]bool{
	"about": true, "around": true, "nearly": true, "almost": true, "roughly": true, "approximately": true,
	"over": true, "under": true, "than": true,
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
	if day, ok := calendar[lower(i)]; ok && isCapital(words[i].raw) {
		day.text = q.text
		return day, next, true
	}
	if q, next, ok := fractionAt(words, i, lower); ok {
		return q, next, true
	}
	if _, is := measures[lower(i+1)]; is && (lower(i) == "a" || lower(i) == "an") && lower(i+2) == "and" && lower(i+4) == "half" {
		q.value, q.unit, q.text = 1.5, measures[lower(i+1)], words[i+1].raw+" and a half"
		return q, i + 5, true
	}
	if v, is := ordinals[lower(i)]; is && (i == 0 || !words[i-1].number) {
		q.value, q.ordinal, q.spelled = v, true, true
		return q, next, true
	}
	if q.value, next, ok = numberAt(i, lower); !ok {
		return q, next, false
	}
	_, q.spelled = numerals[lower(i)]
	if part, ok := fraction(lower(next)); ok { // "2 1/2"
		q.value += part
		next++
	}
	if currency := measures[lower(i-1)]; strings.ContainsAny(lower(i-1), "€$£¥") {
		q.unit = currency
		if factor := moneyPowers[lower(next)]; factor > 0 { // "$8.2m"
			q.value *= factor
			next++
		}
	}
	half := func(k int) bool { return lower(k) == "and" && lower(k+1) == "a" && lower(k+2) == "half" }
	if half(next) {
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
		if next++; half(next) { // "an hour and a half"
			q.value += 0.5
			next += 3
		}
		rest := next
		if lower(rest) == "and" {
			rest++
		}
		if rest >= len(words) {
			break
		}
		smaller, end, ok := quantityAt(words, rest)
		if ok && smaller.unit.dimension == m.dimension && smaller.unit.factor < m.factor { // "1 hour and 30 minutes"
			q.value += smaller.value * smaller.unit.factor / m.factor
			next = end
		}
	}
	return q, next, true
}

// numberAt reads the number that begins with word i: "1,200", "2.5 million", "four hundred
// and twenty-five".
func numberAt(i int, lower func(int) string) (value float64, next int, ok bool) {
	value, ok = numeral(lower(i))
	_, spelled := numerals[lower(i)]
	next = i + 1
	if !ok {
		if lower(i-1) != "a" && lower(i-1) != "the" || powers[lower(i)] == 0 { // "a million"
			return 0, next, false
		}
		value, next, spelled = 1, i, true
	}
	sum, power := 0.0, 0.0 // of the thousands and millions before; the last power
	for {
		at := next
		if power > 0 && lower(at) == "and" {
			at++
		}
		n := numerals[lower(at)]
		switch p := powers[lower(next)]; {
		case p >= 1000:
			sum, value, power = sum+value*p, 0, p
		case p > 0:
			value, power = value*p, p
		case spelled && n > 0 && (power > n || n < 10 && value >= 20 && math.Mod(value, 10) == 0):
			value, power, next = value+n, 0, at
		default:
			return sum + value, next, true
		}
		next++
	}
}

// fractionAt reads a fraction that begins with word i: "half an hour", "three quarters of a
// minute", and "a third of" and "2/3" as percentages.
func fractionAt(words []word, i int, lower func(int) string) (q quantity, next int, ok bool) {
	times, at := 1.0, i
	if part, ok := fraction(lower(i)); ok {
		if m, is := measures[lower(i+1)]; is {
			return quantity{value: part, unit: m, text: words[i].raw + " " + words[i+1].raw}, i + 2, true
		}
		return percentage(part, words[i].raw), i + 1, true
	}
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
	if m, is := measures[lower(next)]; is && (next > at+1 || part == 0.5) {
		q.unit, q.text = m, q.text+" "+words[next].raw
		return q, next + 1, true
	}
	if at == i && lower(i-1) != "a" && (next == at+1 || part != 0.5) {
		return q, i + 1, false // "the fourth quarter of the year"
	}
	return percentage(q.value, q.text), at + 1, true
}

// percentage returns a fraction as a percentage.
func percentage(part float64, text string) quantity {
	return quantity{value: 100 * part, unit: measures["percent"], about: true, text: text}
}

var (
	articles       = []string{"of", "a", "an", "the"}
	ordinalEndings = []string{"st", "nd", "rd", "th"}
)

// checkNumbers refuses a number that the source does not have, or has with another unit, and
// that does not follow from its numbers. A small number in words, or an ordinal, may be the
// claim's own count: it is refused only if the source has another number of the same thing.
func checkNumbers(claim, source []word) (reason string) {
	stated := quantitiesOf(source)
	given := append(append(slices.Clone(stated), impliedBy(source)...), computedFrom(stated)...)
	for _, q := range quantitiesOf(claim) {
		if q.value == 1 && q.unit == (measure{}) {
			continue // "one" is a pronoun as well
		}
		value, unit := false, false
		for _, g := range given {
			v, u := q.agrees(g)
			value, unit = value || v, unit || u || q.also > 0 && q.also == g.value
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

// rivals reports whether g is another number of what q is the number of.
func (q quantity) rivals(g quantity) bool {
	if q.ordinal != g.ordinal {
		return false
	}
	if q.unit.dimension != "" {
		return q.unit.dimension == g.unit.dimension
	}
	return slices.ContainsFunc(q.of, func(stem string) bool { return slices.Contains(g.of, stem) })
}

// impliedBy returns what words of a text stand for that are no numbers: "twice", "v3", "a
// day", "daily", of "half" 50 %, of "3 pm" 15 and of "17:00" 5.
func impliedBy(source []word) []quantity {
	var given []quantity
	for i, w := range source {
		lower := strings.ToLower(w.raw)
		for _, v := range implied[lower] {
			given = append(given, quantity{value: v})
		}
		if unit, ok := measures[lower]; ok && i > 0 && !source[i-1].number && !strings.HasSuffix(lower, "s") {
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

// computedFrom returns sums, differences and shares of numbers that stand near each other in
// a text, and the differences of all its years.
func computedFrom(stated []quantity) []quantity {
	const near = 2
	var given []quantity
	for i, a := range stated {
		for k, b := range stated[i+1:] {
			low, high := min(a.value, b.value), max(a.value, b.value)
			switch {
			case a.isYear() && b.isYear():
				given = append(given, quantity{value: high - low})
			case k >= near || a.unit.dimension != b.unit.dimension || a.ordinal || b.ordinal:
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

// scale is the factor of a unit; of none it is 1.
func scale(m measure) float64 { return cmp.Or(m.factor, 1) }

func (q quantity) isYear() bool {
	return q.unit == (measure{}) && q.value >= 1000 && q.value < 2100 && q.value == math.Trunc(q.value)
}

// agrees reports whether a quantity of the source has the value of q, and whether it is the
// same with its unit. Units of other dimensions than both, and none, agree with any.
func (q quantity) agrees(g quantity) (value, unit bool) {
	same := equal
	if (q.about || g.about) && !q.isYear() {
		same = nearly
	}
	value = same(q.value, g.value) || q.value == math.Round(g.value)
	if q.unit.dimension != "" && q.unit.dimension == g.unit.dimension {
		if (q.unit.factor < month) != (g.unit.factor < month) && q.unit.dimension == "time" {
			same = roughly // months have no fixed number of days
		}
		return value, same(q.value*q.unit.factor, g.value*g.unit.factor) || value && q.unit == g.unit
	}
	return value, value && (q.unit.dimension == "" || g.unit.dimension == "")
}

const month = 2629800 // seconds, on average

func nearly(a, b float64) bool { return math.Abs(a-b) <= 0.05*max(math.Abs(a), math.Abs(b)) }

func roughly(a, b float64) bool { return math.Abs(a-b) <= 0.1*max(math.Abs(a), math.Abs(b)) }

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
			_, date := calendar[lower]
			switch {
			case date || !naming.MatchString(w.raw) || numbered.MatchString(w.raw) || len(lower) < 2: // a plain word, or "Q4"
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
// for "if not", "a maximum of" for "not more than", "unlike" for "but not".
var shifts = regexp.MustCompile(`\b(?:unless|only|until|without|except|before|within|than|at (?:least|most)|(?:min|max)imum|up to|unlike|but|whereas|neither|either)\b`)

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
