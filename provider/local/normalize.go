package local

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A normalizer rewrites a text before it is split into words, like the reference's BertNormalizer.
type normalizer struct {
	cleanText    bool // drops invisible characters, converts white space to blanks
	chineseChars bool // separates ideographs
	stripAccents bool
	lowercase    bool
}

// append appends the normalised text to dst. Bytes that are not UTF-8 count as U+FFFD.
func (n normalizer) append(dst []byte, text string) []byte {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			dst = n.appendASCII(dst, c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		dst = n.appendRune(dst, r)
	}
	return dst
}

func (n normalizer) appendASCII(dst []byte, c byte) []byte {
	if n.cleanText {
		switch {
		case c == '\t' || c == '\n' || c == '\r':
			c = ' '
		case c < ' ' || c == 0x7f:
			return dst
		}
	}
	if n.lowercase && 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return append(dst, c)
}

func (n normalizer) appendRune(dst []byte, r rune) []byte {
	if n.cleanText {
		if unicode.Is(invisible, r) {
			return dst
		}
		if unicode.IsSpace(r) {
			return append(dst, ' ')
		}
	}
	apart := n.chineseChars && unicode.Is(chinese, r)
	if apart {
		dst = append(dst, ' ')
	}
	if n.stripAccents {
		dst = n.appendBare(dst, r)
	} else {
		dst = n.appendLower(dst, r)
	}
	if apart {
		dst = append(dst, ' ')
	}
	return dst
}

// appendBare appends the decomposed character without its accents. Marks are not put into canonical
// order: the relevant ones are removed, except for a few that no vocabulary contains.
func (n normalizer) appendBare(dst []byte, r rune) []byte {
	if unicode.Is(undecomposed, r) {
		return n.appendLower(dst, r)
	}
	if hangul := r - 0xac00; 0 <= hangul && hangul < 19*21*28 { // a syllable of two or three letters
		dst = utf8.AppendRune(utf8.AppendRune(dst, 0x1100+hangul/(21*28)), 0x1161+hangul/28%21)
		if last := hangul % 28; last > 0 {
			dst = utf8.AppendRune(dst, 0x11a7+last)
		}
		return dst
	}
	var whole [utf8.UTFMax]byte
	rest := norm.NFD.Properties(utf8.AppendRune(whole[:0], r)).Decomposition()
	if len(rest) == 0 && !unicode.Is(accents, r) {
		return n.appendLower(dst, r)
	}
	for len(rest) > 0 {
		part, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		if !unicode.Is(accents, part) {
			dst = n.appendLower(dst, part)
		}
	}
	return dst
}

func (n normalizer) appendLower(dst []byte, r rune) []byte {
	if !n.lowercase {
		return utf8.AppendRune(dst, r)
	}
	if r == 'İ' { // the only letter whose lower case has two characters
		return append(dst, "i̇"...)
	}
	for _, l := range lowered {
		if l.from <= r && r <= l.to {
			return utf8.AppendRune(dst, r+l.by)
		}
	}
	return utf8.AppendRune(dst, unicode.ToLower(r))
}

// words yields the byte range [start, end) of each word of a normalised text, like the reference's
// BertPreTokenizer: it splits at white space, and each punctuation character is a word.
func words(text []byte, yield func(start, end int)) {
	start := 0
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		space := unicode.IsSpace(r)
		if space || isPunctuation(r) {
			if start < i {
				yield(start, i)
			}
			if !space {
				yield(i, i+size)
			}
			start = i + size
		}
		i += size
	}
	if start < len(text) {
		yield(start, len(text))
	}
}

func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.Is(punctuation, r)
}
