package pdfium

import (
	"slices"
	"unicode"
	"unicode/utf16"
)

// mendChars corrects the characters of a page where PDFium's order or codes differ from the text:
// surrogates, the letters of right-to-left ligatures, and marks that precede their base.
func mendChars(chars []Char) []Char {
	chars = joinSurrogates(chars)
	for i := 0; i < len(chars); i++ {
		if isRightToLeft(chars[i].Rune) {
			i += mendLigature(chars[i:])
		}
	}
	return mendMarks(chars)
}

// joinSurrogates replaces pairs of surrogates by their character.
func joinSurrogates(chars []Char) []Char {
	isSurrogate := func(c Char) bool { return utf16.IsSurrogate(c.Rune) }
	if !slices.ContainsFunc(chars, isSurrogate) {
		return chars
	}
	out := chars[:0]
	for i := 0; i < len(chars); i++ {
		c := chars[i]
		if isSurrogate(c) {
			c.Rune = unicode.ReplacementChar
			if i+1 < len(chars) {
				if r := utf16.DecodeRune(chars[i].Rune, chars[i+1].Rune); r != unicode.ReplacementChar {
					c.Rune = r
					i++
				}
			}
		}
		out = append(out, c)
	}
	return out
}

// mendLigature puts the letters of the glyph at the start of chars into logical order, if it is a
// right-to-left ligature. PDFium reverses the characters of right-to-left lines, those of one glyph
// too. It returns the number of letters after the first.
func mendLigature(chars []Char) int {
	n := 1
	for n < len(chars) && isRightToLeft(chars[n].Rune) && sameGlyph(chars[n], chars[0]) {
		n++
	}
	if n == 1 || n == 2 && isLam(chars[0].Rune) && isAlef(chars[1].Rune) {
		return n - 1
	}
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		chars[i].Rune, chars[j].Rune = chars[j].Rune, chars[i].Rune
	}
	return n - 1
}

func sameGlyph(c, d Char) bool {
	return c.X == d.X && c.Y == d.Y && c.Box == d.Box && !c.Generated && c.Box != Box{}
}

func isLam(r rune) bool  { return r == 'ل' }
func isAlef(r rune) bool { return r == 'ا' || r == 'أ' || r == 'إ' || r == 'آ' }

func isRightToLeft(r rune) bool {
	return r >= 0x590 && (unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko))
}

// mendMarks moves a mark that PDFium gives before its base, because it is drawn to the right of the
// base's origin, behind it. A blank without width before such a mark is removed.
func mendMarks(chars []Char) []Char {
	for i := 1; i < len(chars); i++ {
		base, mark := chars[i], chars[i-1]
		if !isRightToLeft(base.Rune) || unicode.Is(unicode.Mn, base.Rune) || !unicode.Is(unicode.Mn, mark.Rune) || !over(mark, base) {
			continue
		}
		if i > 1 && over(mark, chars[i-2]) && chars[i-2].Box.X1 > chars[i-2].Box.X0 {
			continue // it may belong to the character before it
		}
		chars[i-1], chars[i] = base, mark
		if i > 1 && chars[i-2].Rune == ' ' && chars[i-2].Box.X0 == chars[i-2].Box.X1 {
			chars = slices.Delete(chars, i-2, i-1)
			i--
		}
	}
	return chars
}

// over reports whether the middle of the mark is above or below the base.
func over(mark, base Char) bool {
	middle := (mark.Box.X0 + mark.Box.X1) / 2
	return base.Box.X0 <= middle && middle <= base.Box.X1 && abs(mark.Y-base.Y) < base.Box.Y1-base.Box.Y0
}
