package ground

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// number reads a number in digits or words at i: "twenty-eight", "four and a half", "half
// a", "three quarters of an". n is how many words it has.
func (r *quantityReader) number(i int) (value float64, n int) {
	if i >= len(r.words) || i < 0 {
		return 0, 0
	}
	w := r.words[i]
	switch first := []rune(w.raw)[0]; {
	case unicode.IsDigit(first) && first < 128:
		if r.glued(i) && (letterBefore(r.text, w.start) || r.word(i-1) == "-" && letterBefore(r.text, w.start-1)) {
			return 0, 0 // part of a name
		}
		f, err := strconv.ParseFloat(strings.ReplaceAll(w.raw, ",", ""), 64)
		if err != nil {
			return 0, 0
		}
		value, n = f, 1
		if next := r.word(i + 1); r.glued(i+1) && (next == "st" || next == "nd" || next == "rd" || next == "th") {
			return value, 2
		} else if r.glued(i+1) && unicode.IsLetter([]rune(next)[0]) && measures[next].dim == "" && !(scaleLetters[next] > 0 && (currency[r.word(i-1)] || len(next) > 1)) {
			return 0, 0
		}
		if part := signs[r.word(i+1)]; part > 0 {
			value += part
			n++
		}
		if r.word(i-1) == "−" && r.glued(i) || r.word(i-1) == "minus" || r.word(i-1) == "-" && r.glued(i) && !r.glued(i-1) {
			value = -value
		}
	case signs[w.lower] > 0:
		return signs[w.lower], 1 + r.skip(i+1, "of", "a", "an", "the")
	case fractions[w.lower] > 0 && ordinals[w.lower] == 0:
		value, n = fractions[w.lower], 1
		if w.lower == "quarter" || w.lower == "quarters" {
			if r.word(i-1) == "each" || r.word(i-1) == "every" || r.word(i-1) == "the" {
				return 0, 0 // of a year
			}
		}
		return value, n + r.skip(i+1, "of", "a", "an", "the")
	case r.aFraction(i):
		return fractions[w.lower], 1 + r.skip(i+1, "of", "a", "an", "the")
	case (w.lower == "one" || w.lower == "two") && r.aFraction(i+1):
		return numberWords[w.lower] * fractions[r.word(i+1)], 2 + r.skip(i+2, "of", "a", "an", "the")
	case ordinals[w.lower] > 0 && r.word(i+1) == "-" && r.glued(i+1):
		return 0, 0 // "third-party"
	case ordinals[w.lower] > 0:
		return ordinals[w.lower], 1
	case w.lower == "one" && (r.word(i-1) == "the" || r.word(i-1) == "this" || r.word(i-1) == "that"):
		return 0, 0 // stands for a noun
	default:
		v, ok := numberWords[w.lower]
		if !ok {
			if v = scales[w.lower]; v == 0 || !article2[r.word(i-1)] {
				return r.dozen(i)
			}
		}
		value, n = v, 1
		if v >= 20 && v < 100 {
			j := i + 1
			if r.word(j) == "-" {
				j++
			}
			if ones := numberWords[r.word(j)]; ones > 0 && ones < 10 {
				value, n = value+ones, j+1-i
			}
		}
	}
	if s := scaleLetters[r.word(i+n)]; s > 0 && (r.glued(i+n) && currency[r.word(i-1)] || s == 1e3 && !r.glued(i+n) || len(r.word(i+n)) > 1) {
		value *= s
		n++
	}
	for s := scales[r.word(i+n)]; s > 0; s = scales[r.word(i+n)] {
		value *= s
		n++
	}
	if r.word(i+n) == "-" && r.glued(i+n) && strings.HasSuffix(r.word(i+n+1), "s") && fractions[r.word(i+n+1)] > 0 {
		n++ // "three-quarters"
	}
	if f := fractions[r.word(i+n)]; f > 0 && value < 10 && strings.HasSuffix(r.word(i+n), "s") {
		value *= f
		n++
		return value, n + r.skip(i+n, "of", "a", "an", "the")
	}
	if r.word(i+n) == "and" && (r.word(i+n+1) == "a" || r.word(i+n+1) == "one") && fractions[r.word(i+n+2)] > 0 {
		value += fractions[r.word(i+n+2)]
		n += 3
	}
	return value, n
}

// aFraction reports whether the word at i is a third or tenth of something, not the third
// of some.
func (r *quantityReader) aFraction(i int) bool {
	before, after := r.word(i-1), r.word(i+1)
	partly := after == "of" || after == "" || after == "or" || !r.isWord(i+1) || strings.HasSuffix(after, "er") || ofPart[r.word(i-2)]
	return fractions[r.word(i)] > 0 && (before == "a" || before == "one" || before == "two") && partly
}

var (
	// scaleLetters are short for thousands, millions and billions.
	scaleLetters = map[string]float64{"k": 1e3, "m": 1e6, "mn": 1e6, "bn": 1e9, "b": 1e9}
	currency     = wordSet("€ $ £")
)

// ofPart are words before "a third" behind which it is no "third one".
var ofPart = wordSet("than by almost nearly about around roughly over under only just")

func (r *quantityReader) dozen(i int) (float64, int) {
	switch r.word(i) {
	case "dozen":
		return 12, 1
	case "couple":
		return 2, 1
	}
	return 0, 0
}

// skip counts the words from i on that are among some.
func (r *quantityReader) skip(i int, some ...string) int {
	n := 0
	for slices.Contains(some, r.word(i+n)) && r.word(i+n) != "" {
		n++
	}
	if _, unit := measures[r.word(i+n)]; !unit {
		return 0
	}
	return n
}

func letterBefore(text string, at int) bool {
	if at <= 0 {
		return false
	}
	b := text[at-1]
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_'
}
