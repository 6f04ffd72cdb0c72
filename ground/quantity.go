package ground

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A quantity is a number of a text with what it counts or measures, brought to one unit
// for each dimension: half an hour and 30 minutes are the same.
type quantity struct {
	value float64
	plain float64 // as it is written, whatever its unit; 0 for a weak one
	dim   dimension
	order bool // "the fifth day", "15th": no unit belongs to it

	// elided is the unit of the quantity before, where a bare number may mean that: "the
	// battery two years, the frame five".
	elided quantityUnit
	weak   bool   // not counted: "an hour", "daily"
	noun   string // stem of what is counted, where it is no unit
	bound  bound
	turned bool // a denial has turned the bound: "not more than"
	excess bool // how much more something is: "0.7 million more than planned"
	aged   bool // years of a life: "a ten-year-old"
	strict bool // the bound itself is beyond it: "more than", "under"
	start  int  // in the text, in bytes
	end    int
}

// A quantityUnit is a dimension and how much of its unit.
type quantityUnit struct {
	dim   dimension
	value float64
}

// A dimension is what a quantity measures.
type dimension string

const (
	count    dimension = ""
	duration dimension = "s"
	span12   dimension = "month" // months and years, which are no fixed number of days
	part1    dimension = "share" // of the whole: 25% and a quarter
	times    dimension = "times" // once, twice
	clock    dimension = "clock" // minutes of the day
	year     dimension = "year"
	monthDim dimension = "month of the year"
	weekday  dimension = "weekday"
)

// A bound says on which side of a quantity something lies.
type bound int

const (
	exact bound = iota
	most        // up to it, or less
	least       // from it on, or more
)

// measures are the units by their spelling: the dimension and how much of its unit.
var measures = func() map[string]quantity {
	m := map[string]quantity{}
	add := func(dim dimension, value float64, spellings string) {
		for w := range strings.FieldsSeq(spellings) {
			m[w] = quantity{value: value, dim: dim}
		}
	}
	add(duration, 1e-9, "nanosecond nanoseconds ns")
	add(duration, 1e-6, "microsecond microseconds µs")
	add(duration, 1e-3, "millisecond milliseconds ms")
	add(duration, 1, "second seconds sec secs s")
	add(duration, 60, "minute minutes min mins")
	add(duration, 3600, "hour hours hr hrs h hourly")
	add(duration, 86400, "day days daily")
	add(duration, 7*86400, "week weeks weekly")
	add(duration, 14*86400, "fortnight fortnights fortnightly biweekly")
	add(span12, 1, "month months monthly")
	add(span12, 3, "quarterly")
	add(span12, 12, "year years yearly annually annual annum p.a")
	add(span12, 120, "decade decades")
	add(span12, 1200, "century centuries")
	add("night", 1, "night nights nightly")
	add(part1, 0.01, "% percent pct")
	add("€", 1, "€ eur euro euros")
	add("$", 1, "$ usd dollar dollars")
	add("£", 1, "£ gbp pounds pound")
	add("m", 1e-3, "mm millimetre millimetres millimeter millimeters")
	add("m", 1e-2, "cm centimetre centimetres centimeter centimeters")
	add("m", 1, "m metre metres meter meters")
	add("m", 1000, "km kilometre kilometres kilometer kilometers")
	add("m", 1609.344, "mile miles mi")
	add("m", 0.3048, "foot feet ft")
	add("m", 0.0254, "inch inches")
	add("m²", 1e6, "km² sqkm")
	add("m²", 1e4, "hectare hectares ha")
	add("g", 1e-3, "mg milligram milligrams")
	add("g", 1, "g gram grams")
	add("g", 1e3, "kg kilogram kilograms kilo kilos")
	add("g", 1e6, "tonne tonnes")
	add("g", 1e6, "ton tons")
	add("l", 1e-6, "µl microlitre microlitres microliter microliters")
	add("l", 1e-3, "ml millilitre millilitres milliliter milliliters")
	add("l", 1, "l litre litres liter liters")
	add("l", 3.785, "gallon gallons")
	add("°C", 1, "°c celsius")
	add("°F", 1, "°f fahrenheit")
	add("bit", 1, "bit bits")
	add("byte", 1, "byte bytes")
	add("byte", 1e3, "kb kilobyte kilobytes")
	add("byte", 1e6, "mb megabyte megabytes")
	add("byte", 1e9, "gb gigabyte gigabytes")
	add("byte", 1e12, "tb terabyte terabytes")
	add("W", 1, "watt watts")
	add("W", 1e3, "kw kilowatt kilowatts")
	add("V", 1, "volt volts")
	add("Wh", 1, "wh watt-hour watt-hours")
	add("Wh", 1e3, "kwh kilowatt-hour kilowatt-hours")
	return m
}()

var (
	lexeme = regexp.MustCompile(`\d{1,2}:\d{2}|\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)*|[€$£%;:()]|°\s?[CF]\b|km²|(?:watt|kilowatt)-hours?|o['’]clock|[µ\p{L}]+|['’]s\b|[–—−-]|\S`)

	monthsInOrder = strings.Fields("january february march april may june july august september october november december")
	weekdaysNamed = strings.Fields("monday tuesday wednesday thursday friday saturday sunday")

	ordinals = map[string]float64{"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
		"eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15, "sixteenth": 16, "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20, "thirtieth": 30}
	signs     = map[string]float64{"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1. / 3, "⅔": 2. / 3}
	fractions = map[string]float64{"half": 0.5, "third": 1. / 3, "thirds": 1. / 3, "quarter": 0.25, "quarters": 0.25, "fifth": 0.2, "tenth": 0.1, "fifths": 0.2, "tenths": 0.1}
	often     = map[string]float64{"once": 1, "twice": 2, "thrice": 3, "double": 2, "doubles": 2, "doubled": 2, "triple": 3}
	between   = wordSet("working calendar full whole consecutive more extra further metric square about roughly")
)

// A lexed is a word or sign of a text.
type lexed struct {
	raw, lower string
	start, end int
}

func lex(text string) []lexed {
	var out []lexed
	for _, at := range lexeme.FindAllStringIndex(text, -1) {
		raw := text[at[0]:at[1]]
		out = append(out, lexed{raw, strings.Replace(strings.ToLower(raw), "° ", "°", 1), at[0], at[1]})
	}
	return out
}

// quantities reads the quantities of a text, in their order.
func quantities(text string) []quantity {
	r := quantityReader{words: lex(text), text: text}
	for i := 0; i < len(r.words); {
		i += r.step(i)
	}
	r.shares()
	r.ranges()
	r.ellipses()
	for i := range r.found {
		q := &r.found[i]
		q.bound = r.boundOf(i)
		q.turned = deniedBound.MatchString(text[:q.start])
		q.excess = moreBehind.MatchString(text[q.end:])
		q.aged = q.dim == span12 && oldBehind.MatchString(text[q.end:])
		q.strict = q.bound != exact && exceedingBefore.MatchString(text[:q.start])
	}
	return r.found
}

type quantityReader struct {
	text  string
	words []lexed
	found []quantity
	at    []int // index of the first word of each
	to    []int // and behind the last
}

func (r *quantityReader) word(i int) string {
	if i < 0 || i >= len(r.words) {
		return ""
	}
	return r.words[i].lower
}

func (r *quantityReader) add(q quantity, from, to int) int {
	q.start, q.end = r.words[from].start, r.words[to-1].end
	r.found, r.at, r.to = append(r.found, q), append(r.at, from), append(r.to, to)
	return to - from
}

// glued reports whether the word at i follows the one before without a blank.
func (r *quantityReader) glued(i int) bool {
	return i > 0 && i < len(r.words) && r.words[i].start == r.words[i-1].end
}

// step reads what is at i and says how many words it has.
func (r *quantityReader) step(i int) int {
	w := r.words[i]
	if n := r.time(i); n > 0 {
		return n
	}
	if n := r.date(i); n > 0 {
		return n
	}
	if m := measures[w.lower]; (w.lower == "€" || w.lower == "$" || w.lower == "£") && m.dim != "" {
		if value, n := r.number(i + 1); n > 0 {
			return r.add(quantity{value: value, plain: value, dim: m.dim}, i, i+1+n)
		}
	}
	if value, n := r.number(i); n > 0 {
		return r.measured(i, value, n)
	}
	if times1, ok := often[w.lower]; ok && !(w.lower == "once" && !r.frequency(i+1)) {
		return r.add(quantity{value: times1, dim: times}, i, i+1)
	}
	if m, ok := measures[w.lower]; ok && (m.dim == duration || m.dim == span12 || m.dim == "night") && len(w.lower) > 2 {
		if (r.word(i-1) == "other" || r.word(i-1) == "second") && r.word(i-2) == "every" {
			return r.add(quantity{value: 2 * m.value, dim: m.dim, weak: true}, i, i+1)
		}
		if article2[r.word(i-1)] || strings.HasSuffix(w.lower, "ly") || w.lower == "annual" || w.lower == "annum" {
			if r.word(i+1) == "and" && r.word(i+2) == "a" && r.word(i+3) == "half" {
				return r.add(quantity{value: 1.5 * m.value, plain: 1.5, dim: m.dim}, i, i+4)
			}
			return r.add(quantity{value: m.value, dim: m.dim, weak: true}, i, i+1)
		}
	}
	return 1
}

// article2 are the words by which a unit counts once.
var article2 = wordSet("a an per each every one another the")

func (r *quantityReader) frequency(i int) bool {
	w := r.word(i)
	return w == "a" || w == "an" || w == "per" || w == "in" || w == "every" || w == "each" || measures[w].dim != ""
}

// measured adds a number with the unit behind it.
func (r *quantityReader) measured(i int, value float64, n int) int {
	j := i + n
	if next := r.word(i + 1); ordinals[r.word(i)] > 0 && value == ordinals[r.word(i)] || n == 2 && (next == "st" || next == "nd" || next == "rd" || next == "th") {
		return r.add(quantity{value: value, plain: value, order: true, noun: r.turnOf(i + n)}, i, i+n)
	}
	if r.word(j) == "-" && r.glued(j) && r.glued(j+1) {
		j++
	}
	if d := r.word(j); d == "degrees" || d == "degree" {
		j++
	}
	if d := measures[r.word(j+1)].dim; d != "" && len(r.word(j+1)) > 2 && (between[r.word(j)] || d == duration && r.isWord(j) && r.word(j) != "times") {
		j++ // "40 overtime hours"
	}
	if r.word(j) == "per" && r.word(j+1) == "cent" || r.word(j) == "percentage" && strings.HasPrefix(r.word(j+1), "point") {
		return r.add(quantity{value: value / 100, plain: value, dim: part1}, i, j+2)
	}
	if m, ok := measures[r.word(j)]; ok && r.isUnit(j) {
		q := quantity{value: value * m.value, plain: value, dim: m.dim}
		if m.dim == "m" && r.word(j-1) == "square" {
			q.value, q.dim = value*m.value*m.value, "m²"
		}
		return r.add(q, i, j+1)
	}
	q := quantity{value: value, plain: value}
	if _, fraction := fractions[r.word(i)]; fraction || value > 0 && value < 1 && n > 1 {
		q.dim = part1
	}
	q.noun = r.counted(j)
	return r.add(q, i, i+n)
}

// turnOf is the stem of the unit whose turn an ordinal before j counts: "the third working
// day". Empty: it is none.
func (r *quantityReader) turnOf(j int) string {
	if between[r.word(j)] {
		j++
	}
	if m := measures[r.word(j)]; m.dim == duration || m.dim == span12 {
		return stemOf(r.word(j))
	}
	return ""
}

// isWord reports whether the word at j has content and is no unit.
func (r *quantityReader) isWord(j int) bool {
	w := r.word(j)
	_, unit := measures[w]
	return len(w) > 3 && !unit && phrases[w] == 0 && !idle[w] && !finiteWord.MatchString(w) && unicode.IsLetter([]rune(w)[0])
}

// counted is the stem of what a number before j counts; empty where that is not said.
func (r *quantityReader) counted(j int) string {
	noun := ""
	for k := j; k < len(r.words) && k < j+3; k++ {
		w := r.words[k]
		_, unit := measures[w.lower]
		if !unicode.IsLetter([]rune(w.raw)[0]) || phrases[w.lower] != 0 || idle[w.lower] || unit || finiteWord.MatchString(w.lower) {
			break
		}
		if comparative[w.lower] {
			return "" // "40 less": of what was said before
		}
		noun = stemOf(w.lower)
	}
	return noun
}

var comparative = wordSet("less more fewer later earlier older younger longer shorter higher lower each apiece")

var finiteWord = regexp.MustCompile(`^(?:` + finite + `|` + bases + `)$`)

// isUnit reports whether the word at j is a unit there: "m", "s", "g" and "l" only right
// behind a number.
func (r *quantityReader) isUnit(j int) bool {
	w := r.words[j].raw
	if w == "second" && r.word(j-1) != "one" && r.word(j-1) != "a" {
		return false
	}
	return len(w) > 1 || strings.Contains("smglh%€$£", w)
}

// ranges gives the first number of "20 to 24 °C" the unit of the second.
func (r *quantityReader) ranges() {
	for i := len(r.found) - 2; i >= 0; i-- {
		a, b := &r.found[i], r.found[i+1]
		if a.dim != count || b.dim == count || b.weak || b.dim == year || b.dim == monthDim || b.dim == weekday || b.dim == times {
			continue
		}
		gap := strings.TrimSpace(strings.ToLower(r.text[a.end:b.start]))
		if gap == "to" || gap == "and" || gap == "or" || gap == "–" || gap == "-" || gap == "until" || gap == "to about" || gap == "up to" {
			if b.dim == clock {
				a.value *= 60
			} else if m := measures[r.word(r.to[i+1]-1)]; m.value > 0 {
				a.value *= m.value
			}
			a.dim, a.noun = b.dim, ""
		}
	}
}

// oneIn stands between the two numbers of "one in ten" and "14 out of 20".
var oneIn = regexp.MustCompile(`^ (?:\p{L}+ )?(?:in|out of|in every) (?:every )?$`)

// shares makes one quantity of "one in ten".
func (r *quantityReader) shares() {
	for i := len(r.found) - 2; i >= 0; i-- {
		a, b := r.found[i], r.found[i+1]
		if a.dim == count && b.dim == count && a.value < b.value && !a.order && !b.order && oneIn.MatchString(r.text[a.end:b.start]) {
			r.found[i] = quantity{value: a.value / b.value, plain: a.value / b.value, dim: part1, start: a.start, end: b.end}
			r.to[i] = r.to[i+1]
			r.found, r.at, r.to = slices.Delete(r.found, i+1, i+2), slices.Delete(r.at, i+1, i+2), slices.Delete(r.to, i+1, i+2)
		}
	}
}

// ellipses gives bare numbers the unit of the one before.
func (r *quantityReader) ellipses() {
	var unit quantityUnit
	for i := range r.found {
		q := &r.found[i]
		switch {
		case q.dim == count && q.noun == "" && !q.order:
			q.elided = unit
		case q.plain > 0 && !q.weak && q.dim != year && q.dim != count:
			unit = quantityUnit{q.dim, q.value / q.plain}
		}
	}
}

var (
	mostBefore  = regexp.MustCompile(`(?i)(?:\b(?:up to|until|at most|no more than|not more than|no longer than|not longer than|(?:a |the )?maximum (?:of|is)|as (?:many|much|late|long|far) as|not (?:exceed|be over|cost more than|last longer than|use more than)|no later than|not later than|within|in less than|less than|fewer than|shorter than|smaller than|younger than|earlier than|lower than|under|below|beneath|just under|a little under|little under|before|is limited to|limited to|nearly|almost|not yet|cheaper than|max\.?|never more than|must not (?:cost|be|exceed)(?: more than)?|in at most|no farther than|stay below|inside of|inside)|[<≤])\s*(?:the |an? |about |age of |over )?$`)
	leastBefore = regexp.MustCompile(`(?i)(?:\b(?:at least|no less than|not less than|no fewer than|no shorter than|(?:a |the )?minimum (?:of|is)|more than|longer than|larger than|greater than|bigger than|older than|higher than|later than|over|above|beyond|exceed(?:s|ing|ed)?|in excess of|upwards of|starting (?:at|from)|after more than|as of|min\.?|past|only after|no earlier than|as (?:early|few|little) as|begins? at|beginning with)|[>≥])\s*(?:the |an? |about |age of )?$`)
	mostAfter   = regexp.MustCompile(`(?i)^\s*(?:[\p{L}%€]+\s+){0,2}?(?:at (?:the )?(?:most|latest|maximum)|or (?:less|fewer|below|under|younger|shorter|earlier|sooner)|maximum|max\b|beforehand)`)
	leastAfter  = regexp.MustCompile(`(?i)^\s*(?:[\p{L}%€]+\s+){0,2}?(?:at (?:the )?(?:least|earliest|minimum)|or (?:more|longer|above|over|older|later|higher)|minimum|onwards?|and (?:more|over|above|older|up)|on\b)`)
)

// boundOf reads off the words around a quantity on which side of it something lies.
func (r *quantityReader) boundOf(i int) bound {
	q := r.found[i]
	before, behind := r.text[max(0, q.start-40):q.start], r.text[q.end:min(len(r.text), q.end+40)]
	if k := strings.LastIndexAny(before, ",;:.("); k >= 0 && !strings.HasSuffix(strings.TrimSpace(before), "max.") {
		before = before[k+1:]
	}
	if k := strings.IndexAny(behind, ",;:.("); k >= 0 {
		behind = behind[:k]
	}
	timed := q.dim == clock || q.dim == year || q.dim == monthDim || q.dim == duration && leastAfter.MatchString(behind)
	switch {
	case q.dim == times:
		return exact
	case mostBefore.MatchString(before) && !lessNot.MatchString(before):
		return most
	case mostBefore.MatchString(before):
		return least
	case leastBefore.MatchString(before) && moreNot.MatchString(before):
		return most
	case (q.order || q.dim == clock || q.dim == weekday || q.dim == monthDim) && byBefore.MatchString(before):
		return most
	case timed && fromBefore.MatchString(before):
		if rangeBehind.MatchString(behind) {
			return exact // "from 10:00 to 15:00"
		}
		return least
	case leastBefore.MatchString(before):
		return least
	case mostAfter.MatchString(behind):
		return most
	case leastAfter.MatchString(behind):
		return least
	}
	return exact
}

var (
	moreBehind  = regexp.MustCompile(`(?i)^(?: [\p{L}€$£%]+)? (?:more|longer|later|higher|larger|older|heavier|further) than\b`)
	oldBehind   = regexp.MustCompile(`(?i)^[ -](?:old|of age)\b`)
	byBefore    = regexp.MustCompile(`(?i)\bby\s*(?:the |about )?$`)
	deniedBound = regexp.MustCompile(`(?i)(?:\b(?:not|no|never|nobody|none|cannot)|n['’]t)\b(?: \w+){0,4} (?:\w+er than|more than|less than|over|above|below|under|beyond|before|exceed\w*|until|up to|at least|at most|within)\s*(?:the |an? |about |age of )?$`)
	rangeBehind = regexp.MustCompile(`^\s*(?:to|–|-)\s`)

	fromBefore = regexp.MustCompile(`(?i)\b(?:from|since|after)\s*(?:the |an? |about )?$`)
	moreNot    = regexp.MustCompile(`(?i)\b(?:not|no|never|nobody|cannot)\b(?: (?:\w+ ){0,3}?)(?:(?:more|longer|larger|greater|bigger|older|higher|later) than|exceed|over|above|beyond|at least)\s*(?:the |an? |about )?$`)
	lessNot    = regexp.MustCompile(`(?i)\b(?:not|no|never|nobody|cannot)\b(?: (?:\w+ ){0,3}?)(?:(?:less|fewer|shorter|smaller|younger|earlier|lower) than|under|below|before)\s*(?:the |an? |about )?$`)
)
