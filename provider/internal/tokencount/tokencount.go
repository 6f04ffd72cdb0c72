// Package tokencount estimates how many tokens a text has for a model whose vocabulary
// is not here.
package tokencount

import "unicode"

// special are those that an encoder adds to a text itself.
const special = 2

// Estimate returns at least as many tokens as the vocabularies of embedding models
// commonly make of a text: byte-pair ones such as OpenAI's, WordPiece and
// SentencePiece. Prose comes out at about half more than it has.
//
// A word has a token for three letters, a long one (in English, a rare one) one
// more, one of small and capital letters or digits
// mixed (an identifier, a key) one for each letter, and each digit, sign and symbol
// is one. A letter beyond ASCII is one, from U+0800 on two, and outside of Han, kana
// and hangul three, the bytes that it has.
func Estimate(text string) int {
	n := special
	word := letters{}
	for _, r := range text {
		if r < 0x80 && unicode.IsLetter(r) {
			word.add(r)
			continue
		}
		n += word.tokens()
		word = letters{}
		switch {
		case r == ' ':
		case r < 0x800:
			n++
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			n += 2
		case r < 0x10000:
			n += 3
		default:
			n += 4
		}
	}
	return n + word.tokens()
}

// Letters are those of one word.
type letters struct {
	all, inner int // inner: capital letters after a small one
	small      bool
}

func (l *letters) add(r rune) {
	l.all++
	if r >= 'a' {
		l.small = true
	} else if l.small {
		l.inner++
	}
}

func (l *letters) tokens() int {
	if l.inner > 1 {
		return l.all
	}
	n := (l.all + 2) / 3
	if l.all > 8 {
		n++
	}
	return n
}
