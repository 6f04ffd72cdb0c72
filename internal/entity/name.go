package entity

import (
	"strings"
	"unicode/utf8"
)

// names records the names in a text.
func (f *Finder) names(text string) {
	f.words.scan(text, false)
	f.quotes(text)
	for i := 0; i < len(f.words.words); {
		i = f.span(text, i)
	}
}

// closing maps opening quotation marks to their closing ones.
var closing = map[rune]string{'"': "\"", '`': "`", '“': "”", '„': "“", '«': "»", '‘': "’"}

// quotes records quoted text that begins like a name, and single words between backticks.
func (f *Finder) quotes(text string) {
	const maxBytes = 60
	after := 0
	for _, open := range f.words.quotes {
		if open < after {
			continue
		}
		mark, size := utf8.DecodeRuneInString(text[open:])
		rest := text[open+size : min(len(text), open+size+maxBytes)]
		inside, _, ok := strings.Cut(rest, closing[mark])
		if !ok || strings.Contains(inside, "\n") {
			continue
		}
		after = open + size + len(inside) + len(closing[mark])
		f.inside.scan(inside, true)
		words := f.inside.words
		if len(words) == 0 || len(words) > maxWords {
			continue
		}
		if mark == '`' && len(words) == 1 && len(inside) > 2 || mark != '`' && (words[0].form.has(upper) || words[0].form.identifier()) {
			f.add(f.keyOf(inside, words), false)
			f.at(open+size, open+size+len(inside))
		}
	}
}

// span records the name that begins with word i, if any, and returns the index of the word after
// it.
func (f *Finder) span(text string, i int) int {
	w := f.words.words[i]
	if !f.begins(text, i) {
		if w.form.identifier() {
			f.identifier(text, w)
		}
		return i + 1
	}
	end, last := i+1, i // the word after the name, and the start of its last part
	for end-i < maxWords && end < len(f.words.words) {
		if f.goesOn(text, end) {
			end++
		} else if n := f.linked(text, end); n > 0 {
			last = end + n
			end = last + 1
		} else {
			break
		}
	}
	if w.form.identifier() && (end == i+1 || w.form.has(joined)) { // not for the Mc of McDowell County
		f.identifier(text, w)
	}
	f.name(text, f.words.words[i:end])
	if last > i { // for "University of Cambridge", Cambridge too
		f.name(text, f.words.words[last:end])
	}
	return end
}

// begins reports whether word i can begin a name: it is capitalised, and neither an ordinary word
// nor a separate single letter.
func (f *Finder) begins(text string, i int) bool {
	w := f.words.words[i]
	if !w.form.has(upper) || f.ordinary(text, w) {
		return false
	}
	if w.form.has(initial) && !w.form.has(capitals) {
		return i+1 < len(f.words.words) && f.words.words[i+1].gap == gapBlank && f.words.words[i+1].form.has(upper)
	}
	return true
}

// goesOn reports whether word i continues the name before it.
func (f *Finder) goesOn(text string, i int) bool {
	w := f.words.words[i]
	switch {
	case w.gap == gapAnd:
		return w.form.has(upper)
	case w.gap != gapBlank:
		return false
	case w.form.has(digits):
		return w.end-w.start <= 4 // Super Bowl 50
	}
	return w.form.has(upper) && (w.form.has(initial) || !f.ordinary(text, w))
}

// links are words that join the parts of a name.
var links = set(`of the de la le du des der den von van del di da dos do y e al el bin ibn zu zum am für`)

// linked returns the number of links from word i on that join a name to the capitalised word after
// them, as in "Gone With the Wind", or 0.
func (f *Finder) linked(text string, i int) int {
	for n := 1; n <= 2 && i+n < len(f.words.words); n++ {
		w := f.words.words[i+n-1]
		if w.gap != gapBlank || !links[text[w.start:w.end]] && !f.inner(text, i+n-1) {
			return 0
		}
		if next := f.words.words[i+n]; next.gap == gapBlank && next.form.has(upper) && !f.ordinary(text, next) {
			return n
		}
	}
	return 0
}

// inner reports whether word i is an ordinary word that is capitalised as a part of a name. A
// capital after an initial's point may instead begin a sentence.
func (f *Finder) inner(text string, i int) bool {
	w := f.words.words[i]
	return w.form.has(upper) && f.ordinary(text, w) && !f.words.words[i-1].form.has(initial)
}

// ordinary reports whether a capitalised word is never a name by itself.
func (f *Finder) ordinary(text string, w word) bool {
	if w.end-w.start > longestOrdinary || !w.form.has(cased) && w.end-w.start > 1 {
		return false
	}
	var room [longestOrdinary]byte
	lower := room[:0]
	for i := w.start; i < w.end; i++ {
		c := text[i]
		if isUpper(c) {
			c += 'a' - 'A'
		}
		lower = append(lower, c)
	}
	if ordinary[string(lower)] {
		return true
	}
	return f.nouns && ordinaryGerman[string(lower)]
}

// name records a span of words as a name.
func (f *Finder) name(text string, span []word) {
	w := span[0]
	if len(span) == 1 && !f.asking && !w.form.has(capitals|inner) && (w.gap == gapSentence || f.nouns && articled(text, w)) {
		return // the position explains the capital
	}
	f.add(f.keyOf(text, span), false)
	f.at(w.start, span[len(span)-1].end)
	// "President Barack Obama" also yields Barack Obama.
	if len(span) > 2 && span[1].form.has(upper) && honorifics[strings.ToLower(text[w.start:w.end])] {
		f.add(f.keyOf(text, span[1:]), false)
	}
}

// articled reports whether an article, or a word that ends like a German adjective, precedes w.
func articled(text string, w word) bool {
	const longest = 40 // bytes before w that are examined
	start := max(0, w.start-longest)
	before := strings.TrimRight(text[start:w.start], " ")
	if len(before) == w.start-start || before == "" {
		return false
	}
	i := strings.LastIndexByte(before, ' ') + 1
	return determiners[before[i:]] || !isUpper(before[i]) && endsAsAdjective(before[i:])
}

func endsAsAdjective(s string) bool {
	const shortest = len("große") - 1
	if len(s) < shortest {
		return false
	}
	for _, ending := range []string{"e", "en", "er", "es", "em"} {
		if strings.HasSuffix(s, ending) {
			return true
		}
	}
	return false
}

// minPart is the least length of the last part of a qualified identifier that is recorded
// separately.
const minPart = 3

// identifier records an identifier and, for a qualified one, its last part. If the qualifier is a
// single small letter, only an exported last part is recorded: Fatalf of t.Fatalf, nothing of
// c.buf.
func (f *Finder) identifier(text string, w word) {
	s := text[w.start:w.end]
	at := strings.LastIndexAny(s, ".:") + 1
	variable := len(s) > 1 && s[1] == '.' && classes[s[0]] == small
	if !variable {
		f.inside.words = append(f.inside.words[:0], w)
		f.add(f.keyOf(text, f.inside.words), false)
		f.at(w.start, w.end)
	}
	if at == 0 || len(s)-at < minPart || variable && !isUpper(s[at]) {
		return
	}
	f.inside.scan(s[at:], true)
	if len(f.inside.words) == 1 {
		f.add(f.keyOf(s[at:], f.inside.words), false)
	}
}
