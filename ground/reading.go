package ground

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/surface"
)

// A term is a content word or a number of a sentence, with what the small words
// before it make of it.
type term struct {
	stem   string // of a number its plain digits; empty: only marks, at the end
	word   string // as it stands there
	marks  marking
	number bool
	edge   edge // what stands between the term before and this one
	be     bool // a form of "be" does, outside of a relative clause
	part   bool // has the form of a past participle
}

// An edge is the punctuation between two terms.
type edge int

const (
	none   edge = iota
	comma       // or a bracket, or a dash
	colon       // announces what follows
	strong      // a semicolon: what follows stands for itself
)

// A reading is a sentence as the verifier reads it.
type reading struct {
	terms []term
	again bool // its subject is a pronoun: something that was said before
	asks  bool // it is a question
}

// read reads a sentence. A word that is in no list is a content word: of languages
// other than English that is nearly every word, and they are compared strictly.
func read(text string) reading {
	r := reader{words: spansOf(text)}
	for i := 0; i < len(r.words); {
		i += r.step(i)
	}
	if r.marks&^faint != 0 {
		r.terms = append(r.terms, term{marks: r.marks, edge: r.edge})
	}
	for i := range r.terms {
		t := &r.terms[i]
		if t.marks&isNeed != 0 && t.marks&isNot == 0 {
			t.marks = t.marks&^isNeed | isMust
		}
	}
	return reading{terms: dated(r.terms), again: again(r.words), asks: asks(text)}
}

// asks reports whether a sentence is a question.
func asks(text string) bool {
	return strings.HasSuffix(strings.TrimRight(text, " \t\n\"'”’»)*_"), "?")
}

// A word is one word of a text in lower case, and what stands right before it.
type word struct {
	lower, raw, before string
}

// spansOf returns the words of a text, those with hyphens cut, and signs that are
// units as words of their own.
func spansOf(text string) []word {
	var words []word
	at := 0
	add := func(raw, before string) {
		lower := strings.ReplaceAll(strings.ToLower(raw), "’", "'")
		words = append(words, word{lower: lower, raw: raw, before: before})
	}
	gap := func(between string) (rest string) {
		for _, r := range between {
			if units[string(r)] != "" || phrases[string(r)] != 0 {
				add(string(r), rest)
				rest = ""
				continue
			}
			rest += string(r)
		}
		return rest
	}
	for _, w := range surface.Words(text) {
		i := at + strings.Index(text[at:], w)
		before := gap(text[at:i])
		at = i + len(w)
		for j, part := range strings.FieldsFunc(w, func(r rune) bool { return r == '-' || r == '‑' }) {
			if j > 0 {
				before = "-"
			}
			add(part, before)
		}
	}
	gap(text[at:])
	return words
}

type reader struct {
	words    []word
	terms    []term
	marks    marking
	edge     edge
	be       bool
	relative bool
	unit     string // a currency that stands before its number
}

// step reads the words at i and returns how many they are.
func (r *reader) step(i int) int {
	w := r.words[i]
	if e := edgeOf(w.before); e > r.edge {
		r.edge = e
	}
	if n, digits := r.number(i); n > 0 {
		if minus(w.before, i == 0) {
			digits = "-" + digits
		}
		r.push(digits, w, true)
		if r.unit != "" {
			r.push(r.unit, w, false)
			r.unit = ""
		}
		return n
	}
	if unit := units[w.lower]; unit != "" && (r.afterNumber(w) || !unicode.IsLetter(rune(w.lower[0]))) {
		r.measure(unit, w)
		return 1
	}
	if unit := units[w.lower]; currencies[unit] && i+1 < len(r.words) {
		if n, _ := r.number(i + 1); n > 0 && strings.TrimSpace(r.words[i+1].before) == "" {
			r.unit = unit
			return 1
		}
	}
	if m := months[w.lower]; m != "" && (len(m) > 3 && w.lower == m && m != "march" || r.besideNumber(i)) {
		r.push(m, w, false)
		return 1
	}
	if strings.HasSuffix(w.before, "`") { // code: whatever it is, it is no small word
		r.push(w.lower, w, false)
		return 1
	}
	if n, marks := r.behind(i); n > 0 {
		r.terms[r.lastNumber()].marks |= marks
		return n
	}
	for n := min(longestPhrase, len(r.words)-i); n > 0; n-- {
		phrase := r.phrase(i, n)
		if idlePhrases[phrase] {
			return n
		}
		if marks, ok := phrases[phrase]; ok {
			r.mark(marks, w)
			return n
		}
	}
	switch {
	case idle[w.lower]:
		r.mark(0, w)
	case having[w.lower] && r.perfect(i):
		if strings.HasPrefix(w.lower, "had") {
			r.marks |= isPast
		}
	case having[w.lower]:
		if w.lower == "had" {
			r.marks |= isPast
		}
		r.push("have", w, false)
	default:
		r.push(stemOf(w.lower), w, false)
	}
	return 1
}

// minus reports whether what stands before a number takes it below zero: not the dash
// between two.
func minus(before string, first bool) bool {
	sign := strings.HasSuffix(before, "-") || strings.HasSuffix(before, "−")
	return sign && (first || strings.HasSuffix(strings.TrimRight(before, "-−"), " "))
}

// phrase returns n words from i with a space between; empty where something else
// stands between them.
func (r *reader) phrase(i, n int) string {
	s := r.words[i].lower
	for _, w := range r.words[i+1 : i+n] {
		if strings.TrimSpace(w.before) != "" || w.before == "" {
			return ""
		}
		s += " " + w.lower
	}
	return s
}

// mark notes a small word for the content word that follows.
func (r *reader) mark(marks marking, w word) {
	if r.marks&marks&^structural != 0 {
		marks |= isTwice
	}
	r.marks |= marks
	if being[w.lower] {
		r.be = !r.relative
	}
	r.relative = relative[w.lower] && len(r.terms) > 0
}

func (r *reader) push(stem string, w word, number bool) {
	if stem == "" {
		return
	}
	r.terms = append(r.terms, term{
		stem: stem, word: w.raw, marks: r.marks, number: number, edge: r.edge, be: r.be, part: participle(w.lower),
	})
	r.marks, r.edge, r.be, r.relative = 0, none, false, false
}

// again reports whether the subject of a sentence of these words is a pronoun.
func again(words []word) bool {
	for len(words) > 0 && idle[words[0].lower] && !pronouns[words[0].lower] && !pointers[words[0].lower] {
		words = words[1:]
	}
	switch {
	case len(words) == 0:
		return false
	case pronouns[words[0].lower]:
		return true
	}
	return len(words) > 1 && pointers[words[0].lower] && (being[words[1].lower] || having[words[1].lower] || phrases[words[1].lower]&modal != 0)
}

// number reads the number at i, written in digits or words, and says how many words
// it has; 0 when there is none.
func (r *reader) number(i int) (n int, digits string) {
	w := r.words[i]
	value, ok := numberWords[w.lower]
	n = 1
	if ok && value >= 20 && i+1 < len(r.words) {
		if ones := numberWords[r.words[i+1].lower]; ones > 0 && ones < 10 && strings.Trim(r.words[i+1].before, " -") == "" {
			value, n = value+ones, 2
		}
	}
	if !ok {
		if scale := scales[w.lower]; scale > 0 {
			value, ok = scale, true
		} else if ns := surface.Numbers(w.raw); len(ns) == 1 {
			f, err := strconv.ParseFloat(ns[0], 64)
			if err != nil || f > 1e15 || len(ns[0]) > 15 {
				return 1, ns[0]
			}
			value, ok = f, true
		}
	}
	if !ok {
		return 0, ""
	}
	for i+n < len(r.words) && scales[r.words[i+n].lower] > 0 && strings.Trim(r.words[i+n].before, " -") == "" {
		value *= scales[r.words[i+n].lower]
		n++
	}
	return n, strconv.FormatFloat(value, 'f', -1, 64)
}

// afterNumber reports whether the term right before w is a number.
func (r *reader) afterNumber(w word) bool {
	n := len(r.terms)
	return n > 0 && r.terms[n-1].number && r.marks == 0 && strings.Trim(w.before, " -") == ""
}

// measure adds a unit: after the number that stands before it, or kept for the one
// that follows.
func (r *reader) measure(unit string, w word) {
	if !r.afterNumber(w) {
		r.unit = unit
		return
	}
	r.push(unit, w, false)
}

// besideNumber reports whether a number stands right before or after the word at i,
// as in "31 May" and "May 31".
func (r *reader) besideNumber(i int) bool {
	if !unicode.IsUpper(rune(r.words[i].raw[0])) {
		return false
	}
	before := r.afterNumber(r.words[i])
	if i+1 < len(r.words) {
		n, _ := r.number(i + 1)
		return before || n > 0 && r.words[i+1].before == " "
	}
	return before
}

// behind reads a phrase that marks the number before it: "5 days or more".
func (r *reader) behind(i int) (n int, marks marking) {
	if r.lastNumber() < 0 || r.marks != 0 {
		return 0, 0
	}
	for n := min(2, len(r.words)-i); n > 0; n-- {
		if marks, ok := after[r.phrase(i, n)]; ok {
			if next, _ := r.numberAt(i + n); next {
				return 0, 0
			}
			return n, marks
		}
	}
	return 0, 0
}

func (r *reader) numberAt(i int) (bool, string) {
	if i >= len(r.words) {
		return false, ""
	}
	n, digits := r.number(i)
	return n > 0, digits
}

// lastNumber returns the number among the last three terms; -1 when none is one.
func (r *reader) lastNumber() int {
	for i := len(r.terms) - 1; i >= max(0, len(r.terms)-3); i-- {
		if r.terms[i].number {
			return i
		}
	}
	return -1
}

// perfect reports whether the form of "have" at i only helps a participle.
func (r *reader) perfect(i int) bool {
	for _, w := range r.words[i+1 : min(len(r.words), i+3)] {
		if participle(w.lower) || w.lower == "been" {
			return true
		}
		if !idle[w.lower] && phrases[w.lower] == 0 {
			return false
		}
	}
	return false
}

func edgeOf(between string) edge {
	switch {
	case strings.ContainsRune(between, ';'):
		return strong
	case strings.ContainsRune(between, ':'):
		return colon
	case strings.ContainsAny(between, ",()[]—–") || strings.Contains(between, " - "):
		return comma
	}
	return none
}

// dated puts the day before the month: "March 31" is 31 March.
func dated(terms []term) []term {
	for i := 0; i+1 < len(terms); i++ {
		m, d := &terms[i], &terms[i+1]
		if months[m.stem] == m.stem && d.number && len(d.stem) <= 2 && d.marks == 0 && d.edge == none && (i == 0 || !terms[i-1].number) {
			m.stem, d.stem, m.word, d.word, m.number, d.number = d.stem, m.stem, d.word, m.word, true, false
		}
	}
	return terms
}

// stemOf returns the stem of a lower-case word without what English adds to say
// whose something is.
func stemOf(lower string) string {
	lower = strings.TrimSuffix(strings.TrimSuffix(lower, "'s"), "'")
	return analysis.Stem(lower, "en")
}
