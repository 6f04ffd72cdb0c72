package analysis

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A compound holds the tokens of one run of letters and digits with its joiners.
type compound struct {
	pieces []piece
	width  int // positions it takes
}

// A piece is a token with offsets and position relative to its compound.
type piece struct {
	term       string
	start, end int
	position   int
	part       bool
}

// compoundEnd returns the end of the compound that starts at text[start]. It is the end of the
// longest run of letters, digits, marks, underscores and joiners. A run longer than about
// maxCompound bytes is cut, after a whole segment if possible.
func (ru rules) compoundEnd(text string, start int) int {
	segment, whole := start, 0 // start of the current segment, end of the one before
	for i := start; ; {
		for i < len(text) {
			kind, size := classAt(text, i)
			if kind == separator || kind == ideograph {
				break
			}
			if i+size-start > maxCompound {
				if whole > 0 {
					return whole
				}
				return i
			}
			i += size
		}
		if i >= len(text) {
			return i
		}
		switch n, how := ru.joiner(text, segment, i); how {
		case apart:
			return i
		case suffix:
			return i + n
		case within:
			if i+n+utf8.UTFMax-start > maxCompound { // the joined part might not fit
				return cmp.Or(whole, i)
			}
			i += n
		case between:
			whole = i
			i += n
			segment = i
		}
	}
}

// A join is the effect of a separator at its position.
type join int

const (
	apart   join = iota // it ends the compound
	within              // it belongs to the segment: don't, 1.5
	between             // it stands between two segments: os.Open
	suffix              // it belongs to the segment and ends the compound: C++
)

// joiner returns the effect of text[i:], which starts with a separator, after the segment
// text[segment:i], and its size in bytes.
func (ru rules) joiner(text string, segment, i int) (size int, how join) {
	before := text[segment:i]
	if before == "" {
		return 0, apart
	}
	switch rest := text[i:]; {
	case rest[0] == '.':
		if !startsWord(text, i+1) {
			return 0, apart
		}
		if isDigit(text[i-1]) && isDigit(text[i+1]) {
			return 1, within
		}
		return 1, between
	case apostrophe(rest) > 0:
		size := apostrophe(rest)
		if ru.elisions != nil || !startsWord(text, i+size) {
			return 0, apart
		}
		return size, within
	case rest[0] == '/':
		if startsWord(text, i+1) && (short(before) || short(segmentAt(text, i+1))) {
			return 1, between
		}
	case rest[0] == ',':
		after := segmentAt(text, i+1)
		if len(before) <= 3 && allDigits(before) && len(after) == 3 && allDigits(after) {
			return 1, between
		}
	case strings.HasPrefix(rest, "::"):
		if startsWord(text, i+2) {
			return 2, between
		}
	case strings.HasPrefix(rest, "++"):
		if isASCIILetter(text[i-1]) {
			return 2, suffix
		}
	case rest[0] == '#':
		if len(before) == 1 && isASCIILetter(before[0]) && !startsWord(text, i+1) {
			return 1, suffix
		}
	}
	return 0, apart
}

// short reports whether a segment is one character or a number. A slash joins such segments
// (HTTP/2, km/h), but not the parts of a path.
func short(segment string) bool {
	return len(segment) == 1 || allDigits(segment)
}

// segmentAt returns the run of letters, digits and underscores at text[i:], or the first bytes of a
// long one.
func segmentAt(text string, i int) string {
	const enough = 32
	end := i
	for end < len(text) && end < i+enough {
		kind, size := classAt(text, end)
		if kind == separator || kind == ideograph {
			break
		}
		end += size
	}
	return text[min(i, len(text)):end]
}

// split returns the pieces of a compound: itself, its segments, and their words.
func (a *Analyzer) split(raw string) compound {
	raw = strings.TrimRight(raw, "_")
	segments := segmentsOf(raw)
	if isAcronym(raw, segments) {
		return a.plain(strings.ReplaceAll(raw, ".", ""), raw)
	}
	var words [][]span
	n := 0
	for _, s := range segments {
		w := wordsOf(raw, s)
		words = append(words, w)
		n += len(w)
	}
	if n == 1 && words[0][0] == (span{0, len(raw)}) {
		return a.plain(raw, raw)
	}
	pieces := []piece{{term: a.wholeTerm(raw, len(segments) > 1), end: len(raw)}}
	position := 0
	for i, s := range segments {
		if len(segments) > 1 && len(words[i]) > 1 {
			term := a.wholeTerm(raw[s.start:s.end], false)
			pieces = append(pieces, piece{term, s.start, s.end, position, true})
		}
		for _, w := range words[i] {
			if term := a.wordTerm(raw[w.start:w.end]); term != "" {
				pieces = append(pieces, piece{term, w.start, w.end, position, true})
			}
			position++
		}
	}
	return compound{pieces, position}
}

// plain returns the compound of one word, which the text writes as raw.
func (a *Analyzer) plain(word, raw string) compound {
	term := a.wordTerm(word)
	if term == "" {
		return compound{width: 1}
	}
	return compound{pieces: []piece{{term: term, end: len(raw)}}, width: 1}
}

// wordTerm returns the term of one word, or "" for a stop word.
func (a *Analyzer) wordTerm(word string) string {
	word = a.rules.fold(withoutApostrophes(word))
	if a.rules.isStop(word) {
		return ""
	}
	return a.stem(word)
}

// wholeTerm returns the term of a compound or segment of several words. It is stemmed like a word
// if it has only letters, so that JavaScript is javascript.
func (a *Analyzer) wholeTerm(raw string, joined bool) string {
	if number := strings.ReplaceAll(raw, ",", ""); joined && isNumber(number) {
		return number
	}
	return a.stem(a.rules.fold(withoutApostrophes(raw)))
}

// withoutApostrophes removes the possessive 's and all other apostrophes.
func withoutApostrophes(word string) string {
	if !strings.ContainsAny(word, "'’") {
		return word
	}
	word = strings.ReplaceAll(word, "’", "'")
	if n := len(word) - len("'s"); n > 0 && strings.EqualFold(word[n:], "'s") {
		word = word[:n]
	}
	return strings.ReplaceAll(word, "'", "")
}

// A span is a byte range of a compound.
type span struct{ start, end int }

// segmentsOf splits a compound at the joiners between segments.
func segmentsOf(raw string) []span {
	var spans []span
	start := 0
	for i := 0; i < len(raw); i++ {
		size := 0
		switch raw[i] {
		case '/', ',':
			size = 1
		case ':':
			size = 2
		case '.':
			if !isDigit(raw[i-1]) || !isDigit(raw[i+1]) {
				size = 1
			}
		}
		if size > 0 {
			spans = append(spans, span{start, i})
			start = i + size
			i = start
		}
	}
	return append(spans, span{start, len(raw)})
}

// isAcronym reports whether raw consists of letters separated by dots.
func isAcronym(raw string, segments []span) bool {
	for _, s := range segments {
		if s.end-s.start != 1 || !isASCIILetter(raw[s.start]) {
			return false
		}
	}
	return len(segments) > 1 && strings.Count(raw, ".") == len(segments)-1
}

// wordsOf splits a segment at underscores, between a small letter and a capital, between capitals
// and a capitalised word, and before the signs of C++. If the segment has a decimal point, it is
// also split between letters and digits.
func wordsOf(raw string, s span) []span {
	segment := raw[s.start:s.end]
	decimal := strings.Contains(segment, ".")
	var words []span
	start := 0
	cut := func(end, next int) {
		if end > start {
			words = append(words, span{s.start + start, s.start + end})
		}
		start = next
	}
	var before rune
	for i, r := range segment {
		switch {
		case r == '_':
			cut(i, i+1)
		case r == '+' || r == '#':
			cut(i, len(segment))
			return words
		case boundary(before, r, segment[i:], decimal):
			cut(i, i)
		}
		if !unicode.IsMark(r) {
			before = r
		}
	}
	cut(len(segment), len(segment))
	return words
}

// boundary reports whether a word starts with r, the first rune of rest, after the rune before.
func boundary(before, r rune, rest string, decimal bool) bool {
	if decimal && (unicode.IsLetter(before) && unicode.IsDigit(r) || unicode.IsDigit(before) && unicode.IsLetter(r)) {
		return true
	}
	if !unicode.IsUpper(r) {
		return false
	}
	if unicode.IsLower(before) {
		return true
	}
	if !unicode.IsUpper(before) && !unicode.IsDigit(before) {
		return false
	}
	// HTTPServer and sha256Sum, but not URLs, H2O or IDs_.
	rest = rest[utf8.RuneLen(r):]
	following, size := utf8.DecodeRuneInString(rest)
	if !unicode.IsLower(following) {
		return false
	}
	after, _ := utf8.DecodeRuneInString(rest[size:])
	plural := following == 's' && !unicode.IsLower(after)
	return !plural
}

// startsWord reports whether text[i:] starts with a letter or a digit.
func startsWord(text string, i int) bool {
	if i >= len(text) {
		return false
	}
	kind, _ := classAt(text, i)
	return kind == letter || kind == digit
}

// isNumber reports whether s has only digits and decimal points.
func isNumber(s string) bool { return strings.Trim(s, "0123456789.") == "" }

func allDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isASCIILetter(c byte) bool { return c < utf8.RuneSelf && asciiClass[c] == letter }
