// Package tokencount estimates the number of tokens of a text for models whose vocabulary is not
// available.
package tokencount

import "unicode"

// special is the number of tokens that an encoder adds to a text.
const special = 2

// Estimate returns an upper estimate of the number of tokens of a text for common vocabularies of
// embedding models: byte-pair ones such as OpenAI's, WordPiece and SentencePiece. For prose it is
// about half above the actual number.
//
// A word counts one token per three letters, and one more if it is long, which in English means
// rare. One that mixes small and capital letters (an identifier, a key) counts one per letter. Each
// digit, punctuation mark and symbol counts one. A letter beyond ASCII counts one, from U+0800 on
// two, and outside Han, kana and hangul three, its number of bytes.
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

// letters counts the letters of one word.
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
