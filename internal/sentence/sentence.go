// Package sentence splits prose into sentences by byte offsets. It handles the conventions of
// technical documentation: abbreviations, versions, file names, qualified identifiers, initials,
// list items, hard-wrapped lines and CJK stops. It has no model and no language setting. The
// abbreviations are English, with the most common German and French ones.
package sentence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Span is the byte range [Start, End) of a text. It neither starts nor ends with a blank.
type Span struct {
	Start int
	End   int
}

// Spans returns the sentences of text in order. They do not overlap and together hold every byte of
// text that is not white space.
//
// A blank line always ends a sentence, and so does a line that starts a list item. Any other line
// break counts as a blank. Otherwise a sentence ends at a stop, with the closing quotes and
// brackets after it, that a blank follows, or at a CJK stop. It does not end if the stop belongs to
// an abbreviation, an initial or a list number, or if the text continues in lower case after a
// short word.
//
// The rules of Unicode (UAX #29) are not used because they end a sentence at each line break, after
// "Fig.", "Dr." and "G.", and never before "os.Open". They get half of the cases in this package's
// test right.
func Spans(text string) []Span {
	s := scanner{text: text}
	for s.pos < len(text) {
		s.step()
	}
	s.end(len(text))
	return s.spans
}

// A scanner reads text once. start is the first byte of the current sentence, if open is set.
type scanner struct {
	text    string
	pos     int
	start   int
	open    bool // start is valid
	inItems bool // the current sentence started as a numbered list item
	spans   []Span
}

// step reads one rune, or one stop with its closing marks.
func (s *scanner) step() {
	c := s.text[s.pos]
	switch {
	case c == '\n':
		s.lineBreak()
	case c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f':
		s.pos++
	case c == '.' || c == '!' || c == '?':
		s.begin()
		s.stop()
	case c == '`':
		s.begin()
		s.pos += codeSpan(s.text[s.pos:])
	case c < utf8.RuneSelf:
		s.begin()
		s.pos++
	default:
		s.wide()
	}
}

// wide reads a non-ASCII rune.
func (s *scanner) wide() {
	r, n := utf8.DecodeRuneInString(s.text[s.pos:])
	switch {
	case r == '\u2029' || r == '\u2028':
		s.end(s.pos)
		s.pos += n
	case unicode.IsSpace(r):
		s.pos += n
	case r == '…':
		s.begin()
		s.stop()
	case isWideStop(r):
		s.begin()
		s.pos += n
		s.closeWide()
		s.end(s.pos)
	default:
		s.begin()
		s.pos += n
	}
}

func (s *scanner) begin() {
	if !s.open {
		s.open, s.start = true, s.pos
	}
}

// end ends the current sentence, if any, before at.
func (s *scanner) end(at int) {
	if !s.open {
		return
	}
	s.open = false
	trimmed := strings.TrimRightFunc(s.text[s.start:at], unicode.IsSpace)
	s.spans = append(s.spans, Span{s.start, s.start + len(trimmed)})
}

// lineBreak reads a "\n". It ends the sentence if the next line is blank or starts a list item.
func (s *scanner) lineBreak() {
	next := s.pos + 1
	for next < len(s.text) && (s.text[next] == ' ' || s.text[next] == '\t' || s.text[next] == '\r') {
		next++
	}
	if next < len(s.text) && s.text[next] == '\n' {
		s.end(s.pos)
		s.inItems = false
		s.pos = next
		return
	}
	switch kind := marker(s.text[next:]); {
	case kind == bullet, kind == number && (s.inItems || s.complete()):
		s.end(s.pos)
		s.inItems = kind == number
	}
	s.pos = next
}

// complete reports whether a list may start after the text read so far: no sentence is open, or the
// text ends like a sentence or an introduction to a list.
func (s *scanner) complete() bool {
	if !s.open {
		return true
	}
	before := strings.TrimRight(s.text[s.start:s.pos], " \t\r")
	return before == "" || strings.IndexByte(".!?:;)", before[len(before)-1]) >= 0
}

// closeWide reads the closing quotes and brackets after a CJK stop, and further stops.
func (s *scanner) closeWide() {
	for s.pos < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[s.pos:])
		if !isCloser(r) && !isWideStop(r) {
			return
		}
		s.pos += n
	}
}

// stop reads a run of stops with its closing marks, and ends the sentence there if appropriate.
func (s *scanner) stop() {
	from := s.pos
	dots, marks := 0, 0
	for s.pos < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[s.pos:])
		switch r {
		case '.':
			dots++
		case '…':
			dots += 3
		case '!', '?':
			marks++
		default:
			n = 0
		}
		if n == 0 {
			break
		}
		s.pos += n
	}
	closed := s.closers()
	if s.pos < len(s.text) && !blankAt(s.text, s.pos) {
		return
	}
	next := strings.TrimLeftFunc(s.text[s.pos:], unicode.IsSpace)
	if next == "" || s.breaks(from, dots, marks, closed, next) {
		s.end(s.pos)
	}
}

// closers reads quotes, brackets and note marks ("[12]") after a stop and reports whether there was
// one.
func (s *scanner) closers() bool {
	from := s.pos
	for s.pos < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[s.pos:])
		if r == '[' {
			n = noteMark(s.text[s.pos:])
		} else if !isCloser(r) {
			n = 0
		}
		if n == 0 {
			break
		}
		s.pos += n
	}
	return s.pos > from
}

// breaks reports whether the stop at from ends its sentence, given its numbers of dots and marks,
// whether a closing mark follows it, and the text after that.
func (s *scanner) breaks(from, dots, marks int, closed bool, next string) bool {
	f := follow(next)
	if f.kind == joins {
		return false
	}
	if marks > 0 {
		return f.kind != lower || f.name
	}
	if r, _ := utf8.DecodeLastRuneInString(s.text[s.start:from]); isCloser(r) {
		return f.kind != lower || f.name
	}
	word := lastWord(s.text[s.start:from])
	if word == "" { // a single stop: a path, a pattern, a spaced ellipsis
		return dots == 1 && closed && f.kind == upper
	}
	if dots > 1 { // an ellipsis, or leader dots before a number
		return f.kind == upper || f.kind == digit && dots == 3
	}
	if s.start+len(word) == from && isEnumerator(word) {
		return false
	}
	if f.kind == upper && ordinal(s.text[s.start:from-len(word)], word, next) {
		return false
	}
	switch a := abbreviationOf(word); a {
	case never:
		return false
	case beforeNumber:
		return f.kind != digit && !f.label && (f.kind != lower || f.name)
	case maybe:
		return f.kind == upper && f.starter
	case seldom:
		return f.kind == upper || f.name
	}
	if f.kind == lower && !f.name {
		return !closed && len(word) > shortWord && isPlain(word)
	}
	return true
}

// shortWord is the largest length in bytes of a word that is treated as an unknown abbreviation if
// a stop and a plain lower-case word follow it.
const shortWord = 4

// blankAt reports whether there is a blank at text[at:].
func blankAt(text string, at int) bool {
	r, _ := utf8.DecodeRuneInString(text[at:])
	return unicode.IsSpace(r)
}

func isWideStop(r rune) bool {
	switch r {
	case '。', '！', '？', '｡', '．', '।', '۔', '؟':
		return true
	}
	return false
}

func isCloser(r rune) bool {
	switch r {
	case ')', ']', '}', '"', '\'', '`', '*', '_', '»', '”', '’', '›', '」', '』', '）', '】', '》', '〉':
		return true
	}
	return false
}

func isOpener(r rune) bool {
	switch r {
	case '(', '[', '{', '"', '\'', '`', '*', '_', '«', '“', '‘', '‹', '„', '「', '『', '（', '【', '¿', '¡':
		return true
	}
	return false
}

// codeSpan returns the length of the code in backticks at the start of text, or of the backticks
// alone if they are not closed nearby.
func codeSpan(text string) int {
	ticks := 0
	for ticks < len(text) && text[ticks] == '`' {
		ticks++
	}
	const longest = 200
	body := text[ticks:min(len(text), ticks+longest)]
	if end := strings.Index(body, text[:ticks]); end >= 0 && !strings.Contains(body[:end], "\n\n") {
		return ticks + end + ticks
	}
	return ticks
}

// noteMark returns the length of the note mark "[12]" at the start of text, or 0.
func noteMark(text string) int {
	i := 1
	for i < len(text) && i < 5 && '0' <= text[i] && text[i] <= '9' {
		i++
	}
	if i > 1 && i < len(text) && text[i] == ']' {
		return i + 1
	}
	return 0
}
