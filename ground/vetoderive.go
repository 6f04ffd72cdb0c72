package ground

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// derived reports whether a quantity of a claim, which what is nearest to it does not
// have, follows from what stands there by arithmetic that needs no knowledge: it is
// rounded, half or twice of it, the difference of two, so many after a year, one more than
// what has to be exceeded, or a case that lies within a bound. theirs are the quantities of
// the nearest sentences; those that are reckoned with stand in one of them.
func derived(claim string, q quantity, theirs [][]quantity) bool {
	about := roughness(claim, q)
	ok := func(x float64) bool {
		return q.value > 0 && (near1(q.value, x) || about.holds(x/q.value))
	}
	var years, spans []quantity
	for _, list := range theirs {
		list = list[:min(len(list), mostOperands)]
		whole := completed(list)
		if q.dim == duration && q.value == q.plain*86400 && q.plain > 1 && int(q.plain) == days(list) {
			return true // "on two days": on Tuesdays and Thursdays
		}
		for i, a := range list {
			if a.weak {
				continue
			}
			if a.dim == year {
				years = append(years, a)
			}
			if a.dim == span12 {
				spans = append(spans, a)
			}
			if (alike(q, a) || q.dim == a.dim && a.plain > named) && about.holds(a.value/q.value) && rounder(q, a) || q.follows(claim, a) || q.ageOf(claim, a) {
				return true
			}
			for j, b := range whole {
				if i != j && !b.weak && (q.combines(claim, whole[i], b, ok) || b.excess && q.dim == a.dim && near1(q.value, a.value-b.value) && a.value > b.value && q.dim != count) {
					return true
				}
			}
		}
	}
	for i, a := range years { // she joined in 2004; she left in 2011
		for _, b := range years[:i] {
			if q.dim == span12 && near1(q.value, 12*math.Abs(a.value-b.value)) {
				return true
			}
		}
	}
	for _, a := range years { // it burned in 1944; it was moved two years earlier
		for _, b := range spans {
			if q.combines(claim, a, b, ok) {
				return true
			}
		}
	}
	return q.price(theirs)
}

// partOf reports whether a part said in words, as "half", is what one of two quantities is of
// the other.
func (q quantity) partOf(all []quantity) bool {
	if q.dim != part1 || q.plain >= 1 {
		return false
	}
	all = all[:min(len(all), mostOperands)]
	for _, a := range all {
		for _, b := range all {
			if alike(a, b) && !a.weak && !b.weak && a.dim != year && a.dim != part1 && b.value > 0 && near1(q.value, a.value/b.value) {
				return true
			}
		}
	}
	return false
}

// ageOf reports whether a quantity is the century or decade of a year.
func (q quantity) ageOf(claim string, a quantity) bool {
	switch {
	case a.dim != year:
		return false
	case q.order && centuryBehind.MatchString(claim[q.end:]):
		return q.plain == math.Ceil(a.value/100)
	}
	return q.dim == year && decadeBehind.MatchString(claim[q.end:]) && q.value == a.value-math.Mod(a.value, 10)
}

// price reports whether a quantity is a sum of money that stands there so many times:
// "three months' rent" of so much.
func (q quantity) price(theirs [][]quantity) bool {
	if q.dim != "€" && q.dim != "$" && q.dim != "£" {
		return false
	}
	for _, a := range slices.Concat(theirs...) {
		for _, b := range slices.Concat(theirs...) {
			if a.dim == q.dim && (b.dim == count || b.dim == span12) && b.plain > 2 && b.plain < 100 && near1(q.value, a.value*b.plain) {
				return true
			}
		}
	}
	return false
}

// days counts the weekdays that are named.
func days(list []quantity) int {
	n := 0
	for _, q := range list {
		n += int(oneIf(q.dim == weekday))
	}
	return n
}

// completed gives bare numbers the unit of the one before: "9 euros, for students 5".
func completed(list []quantity) []quantity {
	list = slices.Clone(list)
	for i, q := range list {
		if q.dim == count && q.elided.dim != count {
			list[i].dim, list[i].value = q.elided.dim, q.plain*q.elided.value
		}
	}
	return list
}

// named is the number above which it does not matter by what name things are counted: 38,000
// people are 38,000 passengers.
const named = 100

// mostOperands bounds how many quantities are tried with one another.
const mostOperands = 24

var (
	centuryBehind = regexp.MustCompile(`(?i)^(?:st|nd|rd|th)?[ -]centur`)
	decadeBehind  = regexp.MustCompile(`^['’]?s\b`)
)

// near1 is near, of what was reckoned.
func near1(a, b float64) bool { return math.Abs(a-b) <= 5e-3*math.Max(math.Abs(a), math.Abs(b)) }

// alike reports whether two quantities measure the same.
func alike(q, o quantity) bool {
	return q.dim == o.dim && !q.order && !o.order && (q.dim != count || q.noun == o.noun || q.noun == "" || o.noun == "")
}

// combines reports whether a quantity follows from two others.
func (q quantity) combines(claim string, a, b quantity, ok func(float64) bool) bool {
	factor := (b.dim == part1 || b.dim == times) && b.value > 0 && b.value != 1
	counted := q.dim != count || a.noun == q.noun || q.noun == "" || a.plain > named
	switch {
	case a.order || b.order || q.order:
		return false
	case factor && a.dim != part1 && q.dim == a.dim && counted && q.dim != clock && q.dim != year:
		return q.bound != most && (ok(a.value*b.value) || ok(a.value/b.value))
	case q.dim == year && a.dim == year && b.dim == span12:
		return q.value == a.value+b.value/12 || q.value == a.value-b.value/12
	case a.dim != b.dim || q.dim != a.dim || q.dim == year || q.dim == clock:
		return false
	}
	apart := near1(q.value, math.Abs(a.value-b.value))
	if about := roughness(claim, q); about.from > 0 && about.from < 1 && about.to > 1 {
		apart = apart || about.holds(math.Abs(a.value-b.value)/q.value)
	}
	return apart && (differs.MatchString(claim) || q.dim == count && deniesOutright.MatchString(claim)) || near1(q.value, a.value+b.value) && sums.MatchString(claim)
}

var (
	differs = regexp.MustCompile(`(?i)\b(?:more|less|fewer|longer|shorter|older|younger|higher|lower|cheaper|dearer|heavier|lighter|larger|smaller|faster|slower|ahead|behind|differ\w*|gap|apart|sav(?:e|es|ed|ing)|rise|rises|rose|risen|increas\w*|gr[eo]w\w*|up by|f[ae]ll\w*|drop\w*|decreas\w*|down|gain\w*|los[et]s?|remain\w*|left|others?|rest|extra|additional)\b`)
	sums    = regexp.MustCompile(`(?i)\b(?:total|totals|altogether|together|in all|combined|both|overall|sum)\b`)
)

// follows reports whether a quantity follows from another one that is bounded: "13 or
// older" from "over 12", "the fourth" from "the first three", or, of a case, "with 25" from
// "more than 20".
func (q quantity) follows(claim string, o quantity) bool {
	if q.dim == monthDim && o.dim == monthDim {
		return math.Mod(o.value, 12)+1 == q.value && before.MatchString(claim[:q.start]) // "before April" of the end of March
	}
	if q.dim == span12 && o.dim == count && aged.MatchString(claim[max(0, q.start-8):]) {
		q.dim, q.value = count, q.plain
	}
	one := q.plain == o.plain+1 && (o.dim == count || q.order)
	switch {
	case q.dim != o.dim && !(q.order && one):
		return false
	case q.order && !o.order && one:
		return o.bound == least || deniesOutright.MatchString(claim)
	case one && o.bound == least && o.strict && !exceedingBefore.MatchString(claim[:q.start]) && (q.bound == least || caseOf.MatchString(claim)):
		return true
	case q.plain == o.plain-1 && o.dim == count && o.bound == most && q.bound == most && !exceedingBefore.MatchString(claim[:q.start]):
		return o.strict
	}
	if q.bound != exact || !caseOf.MatchString(claim) || q.value == o.value {
		return false
	}
	return alike(q, o) && (o.bound == least && q.value > o.value || o.bound == most && q.value < o.value)
}

var (
	before = regexp.MustCompile(`(?i)\b(?:before|until|up to)\s*(?:the (?:beginning|start) of |early )?$`)
	aged   = regexp.MustCompile(`(?i)\baged |years? old|-year-old`)

	exceedingBefore = regexp.MustCompile(`(?i)(?:\w+er than|more than|less than|over|above|below|under|beyond|exceed\w*)\s*(?:the |an? |about |age of )?$`)
	caseOf          = regexp.MustCompile(`(?i)\b(?:someone who|somebody who|anyone who|a person|come with|sufficient|suffices|enough|old)\b`)
)

// A rough is what a number stands for when it is said with "about" or "almost": from so
// many times it to so many.
type rough struct{ from, to float64 }

func (r rough) holds(x float64) bool { return r.to > 0 && x >= r.from && x <= r.to }

var roughs = []struct {
	before *regexp.Regexp
	rough
}{
	{regexp.MustCompile(`(?i)\b(?:nearly|almost|close to|just under|not quite|(?:a )?little under|just below)\s+(?:an? )?$`), rough{0.85, 1.03}},
	{regexp.MustCompile(`(?i)\b(?:about|around|roughly|some|approximately|approx\.|circa)\s+(?:an? )?$`), rough{0.88, 1.12}},
	{regexp.MustCompile(`(?i)\b(?:more than|over|just above|upwards of|in excess of|well over|exceed(?:ed|ing|s)?)\s+(?:an? )?$`), rough{1, 1.4}},
	{regexp.MustCompile(`(?i)\b(?:less than|fewer than|under|not even|below)\s+(?:an? )?$`), rough{0.65, 1}},
}

// roughness is what a quantity of a claim stands for.
func roughness(claim string, q quantity) rough {
	for _, r := range roughs {
		if before := claim[max(0, q.start-24):q.start]; r.before.MatchString(before) && !deniesOutright.MatchString(before) {
			return r.rough
		}
	}
	return rough{}
}

// rounder reports whether a quantity is said with fewer digits than another one, or in
// words for a part.
func rounder(q, o quantity) bool {
	if q.dim == part1 && q.plain < 1 && o.plain >= 1 {
		return true
	}
	return digitsOf(q.plain) < digitsOf(o.plain) && (o.bound == exact || o.bound == q.bound)
}

// digitsOf counts the digits of a number that say something: 2 of 1500.
func digitsOf(x float64) int {
	if x == math.Trunc(x) && x != 0 {
		for math.Mod(x, 10) == 0 {
			x /= 10
		}
	}
	n := 0
	for _, r := range strings.TrimLeft(formatted(x), "0.-") {
		if r != '.' {
			n++
		}
	}
	return n
}
