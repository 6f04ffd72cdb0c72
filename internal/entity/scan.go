package entity

import (
	"unicode"
	"unicode/utf8"
)

// A word is a run of letters, digits and marks with its inner joiners, as in os.Open, file_name,
// O'Brien, Coca-Cola and std::vector.
type word struct {
	start, end int
	form       form
	gap        gap // to the word before
}

// A form is a set of properties of a word's spelling.
type form uint8

const (
	upper    form = 1 << iota // begins with a capital
	inner                     // a capital after a small letter, or digits beside letters
	joined                    // a dot, an underscore or a double colon inside
	digits                    // digits only, perhaps with points between
	initial                   // one capital, or several with points between, as in "U.S."
	cased                     // has small letters
	capitals                  // has two capitals or more
)

func (f form) has(o form) bool { return f&o != 0 }

// identifier reports whether a word is a name by its form alone: readHeader, os.Open, E1042, but
// not 19th.
func (f form) identifier() bool {
	return f.has(joined) && f.has(upper|cased) && !f.has(initial) || f.has(inner) && f.has(upper|capitals)
}

// A gap is the kind of separation between a word and the one before.
type gap uint8

const (
	gapSentence gap = iota // a sentence begins
	gapMark                // some mark: a comma, a bracket
	gapQuote               // a quotation mark opens, or a bracket
	gapBlank               // blanks only, or the point of an initial before them
	gapAnd                 // an ampersand between blanks
)

// A scanner splits a text into words.
type scanner struct {
	text string
	all  bool // include words that cannot belong to a name
	pos  int
	gap  gap  // before the next word
	last form // of the last word
	size int  // of the last word in bytes

	words  []word
	quotes []int // positions of quotation marks and backticks
}

// scan reads the words of a text: all, or only those that may belong to a name. A word that is left
// out leaves a gap.
func (s *scanner) scan(text string, all bool) {
	*s = scanner{text: text, all: all, words: s.words[:0], quotes: s.quotes[:0]}
	for s.pos < len(text) {
		c := text[s.pos]
		switch class := classes[c]; class {
		case small:
			if all || !s.skip() {
				s.words = append(s.words, s.word())
			}
		case letterOrDigit:
			s.words = append(s.words, s.word())
		case blank:
			s.pos++
		case beyond:
			s.wide()
		default:
			s.between(c, class)
		}
	}
}

// longestLink is the largest size of a lower-case word that can link two parts of a name.
const longestLink = 3

// skip skips a word of small ASCII letters at the current position if it cannot belong to a name.
func (s *scanner) skip() bool {
	i := s.pos + 1
	for i < len(s.text) && classes[s.text[i]] == small {
		i++
	}
	if i < len(s.text) {
		switch classes[s.text[i]] {
		case letterOrDigit, beyond:
			return false
		case stop, opening:
			if c := s.text[i]; (c == '.' || c == '\'' || c == ':') && i+1 < len(s.text) && classes[s.text[i+1]] != blank {
				return false
			}
		}
	}
	if i-s.pos <= longestLink {
		s.words = append(s.words, word{start: s.pos, end: i, form: cased, gap: s.gap})
		s.gap = gapBlank
	} else {
		s.gap = gapMark
	}
	s.last, s.size = cased, i-s.pos
	s.pos = i
	return true
}

// wide reads one non-ASCII character, or the word that it begins.
func (s *scanner) wide() {
	r, size := utf8.DecodeRuneInString(s.text[s.pos:])
	switch {
	case unicode.IsLetter(r), unicode.IsDigit(r):
		s.words = append(s.words, s.word())
		return
	case unicode.IsSpace(r), unicode.IsMark(r):
	case r == '“' || r == '„' || r == '«' || r == '‘':
		s.quotes = append(s.quotes, s.pos)
		s.mark(gapQuote)
	case r == '。' || r == '！' || r == '？' || r == '•':
		s.gap = gapSentence
	default:
		s.mark(gapMark)
	}
	s.pos += size
}

type class uint8

const (
	otherMark class = iota
	small           // a small letter
	letterOrDigit
	beyond // ASCII
	blank
	lineEnd
	stop
	opening
)

var classes = func() (t [256]class) {
	for c := range t {
		switch {
		case c >= utf8.RuneSelf:
			t[c] = beyond
		case 'a' <= c && c <= 'z':
			t[c] = small
		case 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_':
			t[c] = letterOrDigit
		case c == ' ', c == '\t', c == '\r':
			t[c] = blank
		case c == '\n':
			t[c] = lineEnd
		case c == '.', c == '!', c == '?', c == ':':
			t[c] = stop
		case c == '"', c == '(', c == '[', c == '`', c == '\'':
			t[c] = opening
		}
	}
	return t
}()

// between reads one character outside words.
func (s *scanner) between(c byte, class class) {
	s.pos++
	switch class {
	case lineEnd:
		if s.pos < len(s.text) && (s.text[s.pos] == '\n' || s.text[s.pos] == '-' || s.text[s.pos] == '*' || s.text[s.pos] == '#') {
			s.gap = gapSentence
		}
	case stop:
		if c == '.' && (s.last.has(initial) || s.size <= longestAbbreviation && s.last.has(upper) && abbreviations[s.text[s.pos-1-s.size:s.pos-1]]) {
			return
		}
		s.gap = gapSentence
	case opening:
		if c == '"' || c == '`' {
			s.quotes = append(s.quotes, s.pos-1)
		}
		s.mark(gapQuote)
	default:
		if c == '&' && s.gap == gapBlank {
			s.gap = gapAnd
		} else {
			s.mark(gapMark)
		}
	}
}

// mark records a mark, which does not undo the end of a sentence.
func (s *scanner) mark(g gap) {
	if s.gap != gapSentence {
		s.gap = g
	}
}

// Abbreviations whose point neither ends a sentence nor separates a name.
var abbreviations = set(`Dr Mr Mrs Ms Prof St Mt Ft Sgt Lt Col Gen Rep Sen Gov Jr Sr No Vol Inc Ltd Co Corp`)

const longestAbbreviation = 4

// word reads the word at the current position.
func (s *scanner) word() word {
	w := word{start: s.pos, gap: s.gap}
	if isUpper(s.text[s.pos]) {
		i := s.pos + 1
		for i < len(s.text) && classes[s.text[i]] == small {
			i++
		}
		if i > s.pos+1 && (i == len(s.text) || classes[s.text[i]] == blank || s.text[i] == ',') { // the most frequent case
			w.end, w.form = i, upper|cased
			s.gap, s.last, s.size = gapBlank, w.form, i-s.pos
			s.pos = i
			return w
		}
	}
	var f formOf
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		if c < utf8.RuneSelf {
			if inWord(c) {
				f.ascii(c)
				s.pos++
				continue
			}
			if size := s.joint(c); size > 0 {
				f.join(c)
				s.pos += size
				continue
			}
			break
		}
		r, size := utf8.DecodeRuneInString(s.text[s.pos:])
		if r == '’' && s.startsWord(s.pos+size) {
			f.join('\'')
		} else if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) {
			f.rune(r)
		} else {
			break
		}
		s.pos += size
	}
	w.end = s.pos
	w.form = f.form(s.pos < len(s.text) && s.text[s.pos] == '.')
	s.gap, s.last, s.size = gapBlank, w.form, w.end-w.start
	return w
}

// joint returns the size of the joiner between the letters around it: a point, an apostrophe, a
// hyphen before a capital or a digit, or a double colon. It returns 0 if the word ends here.
func (s *scanner) joint(c byte) int {
	switch c {
	case '.', '\'':
		if s.startsWord(s.pos + 1) {
			return 1
		}
	case '-':
		if next := s.pos + 1; next < len(s.text) && (isUpper(s.text[next]) || isDigit(s.text[next])) {
			return 1
		}
	case ':':
		if s.pos+2 < len(s.text) && s.text[s.pos+1] == ':' && inWord(s.text[s.pos+2]) {
			return 2
		}
	}
	return 0
}

// inWord reports whether c is an ASCII letter, digit or underscore.
func inWord(c byte) bool { return classes[c] == small || classes[c] == letterOrDigit }

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// startsWord reports whether there is a letter or digit at i.
func (s *scanner) startsWord(i int) bool {
	if i >= len(s.text) {
		return false
	}
	if c := s.text[i]; c < utf8.RuneSelf {
		return inWord(c)
	}
	r, _ := utf8.DecodeRuneInString(s.text[i:])
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// A formOf computes a word's form from its characters.
type formOf struct {
	flags            form
	n, caps, figures int
	part             int  // characters since the last joint
	single           bool // parts between points are one character each
	points           int
	small            bool // the previous character is a small letter
}

func (f *formOf) ascii(c byte) {
	switch {
	case isUpper(c):
		f.capital()
	case isDigit(c):
		f.digit()
	case c == '_':
		f.flags |= joined
		f.part, f.small = 0, false
		f.n++
	default:
		f.letter()
	}
}

func (f *formOf) rune(r rune) {
	switch {
	case unicode.IsUpper(r) || unicode.IsTitle(r):
		f.capital()
	case unicode.IsDigit(r):
		f.digit()
	case unicode.IsMark(r):
	default:
		f.letter()
	}
}

func (f *formOf) capital() {
	if f.n == 0 {
		f.flags |= upper
	} else if f.small {
		f.flags |= inner
	}
	f.caps++
	f.next(false)
}

func (f *formOf) letter() {
	if f.n > 0 && f.figures > 0 {
		f.flags |= inner
	}
	f.flags |= cased
	f.next(true)
}

func (f *formOf) digit() {
	f.figures++
	if f.n+1 > f.figures {
		f.flags |= inner
	}
	f.next(false)
}

func (f *formOf) next(small bool) {
	f.n++
	f.part++
	f.small = small
}

// join records a joint.
func (f *formOf) join(c byte) {
	switch c {
	case '.':
		if f.points == 0 {
			f.single = true
		}
		f.single = f.single && f.part == 1
		f.points++
		f.flags |= joined
	case ':':
		f.flags |= joined
	}
	f.part, f.small = 0, false
}

// form returns the form of the characters read. point reports whether a point follows them.
func (f *formOf) form(point bool) form {
	if f.caps > 1 {
		f.flags |= capitals
	}
	if f.figures == f.n {
		f.flags = digits
	}
	if f.points > 0 && f.single && f.part == 1 || f.points == 0 && f.n == 1 && f.caps == 1 && point {
		f.flags = f.flags&^joined | initial
	}
	return f.flags
}
