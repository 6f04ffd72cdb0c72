package entity

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// keyOf returns the key of a sequence of words. It is valid until the next call.
func (f *Finder) keyOf(text string, span []word) []byte {
	f.key = f.key[:0]
	for len(span) > 1 && articles[strings.ToLower(text[span[0].start:span[0].end])] {
		span = span[1:]
	}
	for i, w := range span {
		if i > 0 {
			f.key = append(f.key, ' ')
		}
		s := text[w.start:w.end]
		for _, possessive := range []string{"'s", "’s", "'S"} {
			s = strings.TrimSuffix(s, possessive)
		}
		code := w.form.has(joined) && !w.form.has(initial)
		f.key = appendFolded(f.key, s, code)
	}
	return f.key
}

// appendFolded appends a word in lower case and without accents. The marks that join its parts are
// kept in code; otherwise hyphens become blanks and other marks are dropped.
func appendFolded(b []byte, s string, code bool) []byte {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return appendFoldedRunes(b, s, code)
		}
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case isUpper(c):
			c += 'a' - 'A'
		case c == '-':
			c = ' '
		case (c == '.' || c == ':' || c == '_') && code:
		case !inWord(c):
			continue
		}
		b = append(b, c)
	}
	return b
}

func appendFoldedRunes(b []byte, s string, code bool) []byte {
	for _, r := range norm.NFKD.String(s) {
		switch {
		case unicode.IsMark(r):
		case r == 'ß':
			b = append(b, "ss"...)
		case r == 'ø' || r == 'Ø':
			b = append(b, 'o')
		case r == 'æ' || r == 'Æ':
			b = append(b, "ae"...)
		case r == 'ł' || r == 'Ł':
			b = append(b, 'l')
		case r == '-':
			b = append(b, ' ')
		case (r == '.' || r == ':' || r == '_') && code, unicode.IsLetter(r), unicode.IsDigit(r):
			b = utf8.AppendRune(b, unicode.ToLower(r))
		}
	}
	return b
}
