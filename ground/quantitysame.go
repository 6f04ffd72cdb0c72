package ground

import (
	"math"
	"strconv"
)

// same reports whether a quantity of a claim and one of a source say the same, whatever
// their bounds. A claim may leave the unit away.
func (q quantity) same(o quantity) bool {
	if q.order && o.order && q.noun != "" && o.noun != "" && q.noun != o.noun {
		return false
	}
	if q.order != o.order && !q.weak && !o.weak {
		return near(q.plain, o.plain)
	}
	if q.dim != o.dim {
		switch {
		case (q.dim == part1 && o.dim == count || q.dim == count && o.dim == part1) && q.noun == "" && o.noun == "":
			return near(q.value, o.value) || near(q.value*100, o.value) || near(q.value, o.value*100)
		case q.dim == times && o.dim == count || q.dim == count && o.dim == times:
			return near(q.value, o.value)
		case q.dim == year && o.dim == count || q.dim == count && o.dim == year:
			return near(q.value, o.value)
		case q.dim == clock && o.dim == count:
			return near(q.value, o.value*60)
		case q.dim == count && o.dim == clock:
			return near(q.value*60, o.value)
		}
		const monthDays, slack = 86400 * 30.44, 0.09
		switch {
		case q.dim == span12 && o.dim == duration:
			return math.Abs(o.value/(q.value*monthDays)-1) < slack // "a month" for four weeks
		case q.dim == duration && o.dim == span12:
			return math.Abs(q.value/(o.value*monthDays)-1) < slack
		case q.weak || o.weak:
			return false
		case q.aged && o.dim == count && o.noun == "" || o.aged && q.dim == count:
			return near(q.plain, o.plain)
		case q.dim == count && q.noun == "":
			return near(q.plain, o.plain)
		}
		return o.dim == count && o.elided.dim == q.dim && near(q.value, o.plain*o.elided.value)
	}
	return near(q.value, o.value)
}

// near reports whether two numbers are the same but for how they were brought to one unit.
// Whole numbers up to a million are so only where they are equal: 1990 is not 1991.
func near(a, b float64) bool {
	const counted = 1e6
	if a == math.Trunc(a) && b == math.Trunc(b) && math.Abs(a) < counted && math.Abs(b) < counted {
		return a == b
	}
	return a == b || math.Abs(a-b) <= 1e-3*max(math.Abs(a), math.Abs(b))
}

func formatted(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
