package ground

import (
	"cmp"
	_ "embed"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

//go:embed units.txt
var unitsFile string

// A measure is a unit of measurement.
type measure struct {
	dimension string
	factor    float64
}

// The tables of units.txt, by lower-case words.
var (
	numerals    = map[string]float64{}
	implied     = map[string][]float64{}
	ordinals    = map[string]float64{}
	fractions   = map[string]float64{}
	powers      = map[string]float64{}
	moneyPowers = map[string]float64{}
	calendar    = map[string]quantity{}
	measures    = map[string]measure{}
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

var thousands = lazyregexp.New(`^\d{1,3}(?:,\d{3})+(?:\.\d+)?$`)

// numeral returns the value of a number in digits or in words, and of a time in hours.
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
	a, okA := numeral(over)
	b, okB := numeral(under)
	return a / b, okA && okB && 0 < a && a < b
}

// A quantity is a number of a text with its unit.
type quantity struct {
	value   float64
	unit    measure // zero: none, or an unknown one
	ordinal bool
	spelled bool     // in words
	about   bool     // not exact: "nearly 90", "a third"
	also    float64  // another value that the words may have; 0: none
	of      []string // stems of the content words after it, which name the things counted
	text    string
}

// quantitiesOf returns the quantities of a text.
func quantitiesOf(words wordList) []quantity {
	var out []quantity
	for i := 0; i < len(words); i++ {
		q, next, ok := quantityAt(words, i)
		if !ok {
			continue
		}
		q.about = q.about || approximate[words.lower(i-1)]
		for _, w := range words[next:min(next+2, len(words))] {
			if w.isPlain() {
				q.of = append(q.of, w.stem)
			}
		}
		out = append(out, q)
		i = next - 1
	}
	return out
}

// approximate lists words before numbers that are not exact. "Than" is that of "more than".
var approximate = map[string]bool{
	"about": true, "around": true, "nearly": true, "almost": true, "roughly": true, "approximately": true,
	"over": true, "under": true, "than": true,
}

// A wordList is a text in words.
type wordList []word

// lower returns the word at i in lower case, or "" if i is out of range.
func (ws wordList) lower(i int) string {
	if i < 0 || i >= len(ws) {
		return ""
	}
	return strings.ToLower(ws[i].raw)
}

// andAHalf reports whether the words from i on are "and a half".
func (ws wordList) andAHalf(i int) bool {
	return ws.lower(i) == "and" && ws.lower(i+1) == "a" && ws.lower(i+2) == "half"
}

// quantityAt reads the quantity that begins with word i. Next is the index of the word after
// it.
func quantityAt(words wordList, i int) (q quantity, next int, ok bool) {
	raw, lower := words[i].raw, words.lower(i)
	if day, ok := calendar[lower]; ok && isCapital(raw) {
		day.text = raw
		return day, i + 1, true
	}
	if q, next, ok := fractionAt(words, i); ok {
		return q, next, true
	}
	if q, next, ok := unitAndAHalfAt(words, i); ok {
		return q, next, true
	}
	if v, ok := ordinals[lower]; ok && (i == 0 || !words[i-1].number) {
		return quantity{value: v, ordinal: true, spelled: true, text: raw}, i + 1, true
	}
	q.text = raw
	if q.value, next, ok = numberAt(words, i); !ok {
		return q, next, false
	}
	_, q.spelled = numerals[lower]
	if part, ok := fraction(words.lower(next)); ok { // "2 1/2"
		q.value += part
		next++
	}
	if sign := words.lower(i - 1); strings.ContainsAny(sign, "€$£¥") {
		q.unit = measures[sign]
		if factor := moneyPowers[words.lower(next)]; factor > 0 { // "$8.2m"
			q.value *= factor
			next++
		}
	}
	if words.andAHalf(next) {
		q.value += 0.5
		next += 3
	}
	switch m, isUnit := measures[words.lower(next)]; {
	case slices.Contains(ordinalEndings, words.lower(next)):
		q.ordinal = true
		next++
	case words.lower(next) == "pm" && q.value < 12: // 3 pm is 15:00, too
		q.also = q.value + 12
	case isUnit && q.unit == (measure{}):
		q.unit, q.text = m, q.text+" "+words[next].raw
		more, end := m.moreAt(words, next+1)
		q.value, next = q.value+more, end
	}
	return q, next, true
}

// moreAt reads the words that add to a quantity after its unit: the "and a half" of "two hours
// and a half", and the "and 30 minutes" of "1 hour and 30 minutes".
func (m measure) moreAt(words wordList, i int) (value float64, next int) {
	if words.andAHalf(i) {
		value, i = 0.5, i+3
	}
	at := i
	if words.lower(at) == "and" {
		at++
	}
	if at >= len(words) {
		return value, i
	}
	smaller, end, ok := quantityAt(words, at)
	if ok && smaller.unit.dimension == m.dimension && smaller.unit.factor < m.factor {
		return value + smaller.value*smaller.unit.factor/m.factor, end
	}
	return value, i
}

// unitAndAHalfAt reads "an hour and a half", which begins with word i.
func unitAndAHalfAt(words wordList, i int) (q quantity, next int, ok bool) {
	m, isUnit := measures[words.lower(i+1)]
	isArticle := words.lower(i) == "a" || words.lower(i) == "an"
	if !isUnit || !isArticle || !words.andAHalf(i+2) {
		return q, i + 1, false
	}
	return quantity{value: 1.5, unit: m, text: words[i+1].raw + " and a half"}, i + 5, true
}

// numberAt reads the number that begins with word i: "1,200", "2.5 million", "four hundred
// and twenty-five".
func numberAt(words wordList, i int) (value float64, next int, ok bool) {
	value, ok = numeral(words.lower(i))
	_, spelled := numerals[words.lower(i)]
	next = i + 1
	if !ok {
		article := words.lower(i - 1)
		if article != "a" && article != "the" || powers[words.lower(i)] == 0 { // "a million"
			return 0, next, false
		}
		value, next, spelled = 1, i, true
	}
	sum, power := 0.0, 0.0 // sum of the thousands and millions before; the last power
	for {
		at := next
		if power > 0 && words.lower(at) == "and" {
			at++
		}
		n := numerals[words.lower(at)]
		tens := value >= 20 && math.Mod(value, 10) == 0
		adds := power > n || tens && n < 10 // "hundred and five", "twenty-five"
		switch p := powers[words.lower(next)]; {
		case p >= 1000:
			sum, value, power = sum+value*p, 0, p
		case p > 0:
			value, power = value*p, p
		case spelled && n > 0 && adds:
			value, power, next = value+n, 0, at
		default:
			return sum + value, next, true
		}
		next++
	}
}

// fractionAt reads a fraction that begins with word i: "half an hour", "three quarters of a
// minute", and "a third of" and "2/3" as percentages.
func fractionAt(words wordList, i int) (q quantity, next int, ok bool) {
	if part, ok := fraction(words.lower(i)); ok {
		if m, isUnit := measures[words.lower(i+1)]; isUnit {
			return quantity{value: part, unit: m, text: words[i].raw + " " + words[i+1].raw}, i + 2, true
		}
		return percentage(part, words[i].raw), i + 1, true
	}
	times, at := 1.0, i
	if n, ok := numerals[words.lower(i)]; ok && fractions[words.lower(i+1)] > 0 {
		times, at = n, i+1
	}
	part := fractions[words.lower(at)]
	counted := at > i || words.lower(i-1) == "a" // "two thirds", "a third"
	isOrdinal := ordinals[words.lower(at)] > 0 && !counted
	if part == 0 || isOrdinal {
		return q, i + 1, false
	}
	q.value, q.text = times*part, words[at].raw
	next = at + 1
	for slices.Contains(articles, words.lower(next)) {
		next++
	}
	ofUnit := next > at+1
	if m, isUnit := measures[words.lower(next)]; isUnit && (ofUnit || part == 0.5) {
		q.unit, q.text = m, q.text+" "+words[next].raw
		return q, next + 1, true
	}
	if isHalfOf := ofUnit && part == 0.5; !counted && !isHalfOf {
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

// scale returns the factor of a unit, or 1 if there is no unit.
func scale(m measure) float64 { return cmp.Or(m.factor, 1) }

func (q quantity) isYear() bool {
	return q.unit == (measure{}) && q.value >= 1000 && q.value < 2100 && q.value == math.Trunc(q.value)
}

// agrees reports whether q and a quantity of the source have the same value, and whether they
// are the same quantity, in whatever units. A number without a known unit agrees with any
// unit.
func (q quantity) agrees(g quantity) (value, unit bool) {
	same := equal
	if (q.about || g.about) && !q.isYear() {
		same = nearly
	}
	value = same(q.value, g.value) || q.value == math.Round(g.value)
	if q.unit.dimension != "" && q.unit.dimension == g.unit.dimension {
		onlyOneInMonths := (q.unit.factor < month) != (g.unit.factor < month)
		if q.unit.dimension == "time" && onlyOneInMonths {
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
