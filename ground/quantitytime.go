package ground

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// time reads a time of the day: "10:00", "8 p.m.", "16 o'clock", "noon".
func (r *quantityReader) time(i int) int {
	w := r.words[i]
	h, m, hasMinutes := strings.Cut(w.raw, ":")
	half := func(j int) (add float64, n int) {
		switch p := r.word(j); {
		case p == "am" || p == "pm":
			n = 1
		case (p == "a" || p == "p") && r.word(j+1) == "." && r.word(j+2) == "m":
			n = 3
			if r.word(j+3) == "." {
				n = 4
			}
		default:
			return 0, 0
		}
		if strings.HasPrefix(r.word(j), "p") {
			add = 12
		}
		return add, n
	}
	hour, err := strconv.Atoi(h)
	switch {
	case w.lower == "noon":
		return r.add(quantity{value: 12 * 60, dim: clock}, i, i+1)
	case w.lower == "midnight":
		return r.add(quantity{value: 0, dim: clock}, i, i+1)
	case err != nil || hour > 24 || len(h) > 2 || letterBefore(r.text, w.start):
		return 0
	}
	add, n := half(i + 1)
	if hasMinutes || n > 0 || r.word(i+1) == "o'clock" || r.word(i+1) == "o’clock" {
		minutes, _ := strconv.Atoi(m)
		if hour == 12 && n > 0 {
			hour = 0
		}
		if n == 0 && !hasMinutes {
			n = 1
		}
		return r.add(quantity{value: (float64(hour)+add)*60 + float64(minutes), dim: clock}, i, i+1+n)
	}
	return 0
}

// date reads a month, a weekday or a year; the day of a month is read as a number.
func (r *quantityReader) date(i int) int {
	w := r.words[i]
	upper := unicode.IsUpper([]rune(w.raw)[0])
	if k := slices.Index(monthsInOrder, strings.TrimSuffix(w.lower, "'s")); k >= 0 && upper {
		if (w.lower == "may" || w.lower == "march") && i == 0 {
			return 0
		}
		return r.add(quantity{value: float64(k + 1), dim: monthDim}, i, i+1)
	}
	for k, day := range weekdaysNamed {
		if upper && (w.lower == day || w.lower == day+"s") {
			return r.add(quantity{value: float64(k), dim: weekday}, i, i+1)
		}
	}
	if n := r.isoDate(i); n > 0 {
		return n
	}
	follows := r.word(i-1) == "(" || r.word(i-1) == "–" || r.word(i-1) == "-" && len(r.word(i-2)) == len(w.raw)
	if yearly(w.raw) && (!r.glued(i) || follows) {
		if _, unit := measures[r.word(i+1)]; !unit || r.word(i+1) == "s" {
			y, _ := strconv.ParseFloat(w.raw, 64)
			r.add(quantity{value: y, plain: y, dim: year}, i, i+1)
			if next := r.word(i + 2); (r.word(i+1) == "–" || r.word(i+1) == "-") && r.glued(i+1) && r.glued(i+2) && len(next) == 2 {
				if end, err := strconv.ParseFloat(next, 64); err == nil { // "1348–50"
					y = math.Floor(y/100)*100 + end
					return 2 + r.add(quantity{value: y, plain: y, dim: year}, i+2, i+3)
				}
			}
			return 1
		}
	}
	return 0
}

// yearly reports whether a word is a year by its form.
func yearly(w string) bool {
	return len(w) == 4 && w >= "1000" && w < "2200" && strings.Trim(w, "0123456789") == ""
}

// isoDate reads "2021-04-03".
func (r *quantityReader) isoDate(i int) int {
	const words = 5
	if i+words > len(r.words) || len(r.words[i].raw) != 4 || len(r.words[i+2].raw) != 2 || len(r.words[i+4].raw) != 2 || r.word(i+1) != "-" || r.word(i+3) != "-" {
		return 0
	}
	var parts [3]float64
	for k := range parts {
		if k > 0 && !r.glued(i+2*k) {
			return 0
		}
		n, err := strconv.ParseUint(r.words[i+2*k].raw, 10, 16)
		if err != nil {
			return 0
		}
		parts[k] = float64(n)
	}
	if parts[1] < 1 || parts[1] > 12 || parts[2] < 1 || parts[2] > 31 {
		return 0
	}
	r.add(quantity{value: parts[0], plain: parts[0], dim: year}, i, i+1)
	r.add(quantity{value: parts[1], dim: monthDim}, i+2, i+3)
	r.add(quantity{value: parts[2], plain: parts[2]}, i+4, i+words)
	return words
}
