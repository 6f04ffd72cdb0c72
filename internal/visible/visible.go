// Package visible removes characters that people do not see but machines read: control and
// formatting characters, bidirectional controls, zero-width characters, variation selectors and
// fillers.
package visible

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Text returns s in NFC without control and invisible characters. Every kind of space except tabs
// and line ends becomes a plain one, and invalid UTF-8 becomes U+FFFD.
func Text(s string) string {
	if isClean(s) {
		return s
	}
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	var out strings.Builder
	out.Grow(len(s))
	from := 0 // s[from:i] is unchanged
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\f' || r == '\v' || r == '\u0085' || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Zs, r):
			out.WriteString(s[from:i])
			out.WriteByte(' ')
			from = i + n
		case !Rune(r):
			out.WriteString(s[from:i])
			from = i + n
		}
		i += n
	}
	out.WriteString(s[from:])
	return norm.NFC.String(out.String())
}

// Line returns Text(s) on one line, with single blanks.
func Line(s string) string { return strings.Join(strings.Fields(Text(s)), " ") }

// isClean quickly reports that Text would return s unchanged. It may return false for such an s
// too.
func isClean(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// Rune reports whether r is visible, or is a line end or a tab. Control and formatting characters
// (bidirectional controls, zero-width characters, soft hyphens, tags), variation selectors and
// fillers are not visible. They can hide text from people that machines read.
func Rune(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return true
	case r < 0x7f:
		return r >= ' '
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r):
		return false
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Noncharacter_Code_Point, r):
		return false
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return false
	}
	return r != '\ufffc'
}

// Steers reports whether r controls a terminal or the layout of text: a control character, a change of
// direction, or a break of a line.
func Steers(r rune) bool {
	return unicode.IsControl(r) || isDirection(r) || r == '\u2028' || r == '\u2029'
}

// isDirection reports whether r embeds, overrides or isolates a direction.
func isDirection(r rune) bool {
	embeds := '\u202a' <= r && r <= '\u202e'
	isolates := '\u2066' <= r && r <= '\u2069'
	return embeds || isolates
}
