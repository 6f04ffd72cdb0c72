package local

import (
	"unicode"
	"unicode/utf8"
)

// located are the tokens of a text with their places. The places of a token are the
// bytes [starts, ends) of the whole word that it is a piece of.
type located struct {
	ids          []int32
	starts, ends []int
}

// locate cuts a text into tokens as encode does, with two differences: it says where
// each token stands, and names of special tokens are plain text, so that a document
// cannot write a separator.
func (t *tokenizer) locate(text string) located {
	var normal []byte
	var starts, ends []int // of the character that each byte of normal is from
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		before := len(normal)
		normal = t.normalizer.append(normal, text[i:i+size])
		if len(normal) == before && before > 0 && unicode.IsMark(r) {
			ends[before-1] = i + size // an accent that is left out belongs to its letter
		}
		for range len(normal) - before {
			starts, ends = append(starts, i), append(ends, i+size)
		}
		i += size
	}
	var l located
	words(normal, func(start, end int) {
		l.ids = t.appendPieces(l.ids, normal[start:end])
		for len(l.starts) < len(l.ids) {
			l.starts, l.ends = append(l.starts, starts[start]), append(l.ends, ends[end-1])
		}
	})
	return l
}

// continues reports whether the token belongs to the word of the token before it.
func (l *located) continues(token int) bool {
	return 0 < token && token < len(l.ids) && l.starts[token] == l.starts[token-1]
}
