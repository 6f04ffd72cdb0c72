package local

import (
	"unicode"
	"unicode/utf8"
)

// located contains the tokens of a text with their positions. The position of a token is the byte
// range [starts, ends) of the whole word that it is a piece of.
type located struct {
	ids          []int32
	starts, ends []int
}

// locate tokenizes a text like encode, with two differences: it returns the position of each token,
// and it treats names of special tokens as plain text, so that a document cannot contain a
// separator.
func (t *tokenizer) locate(text string) located {
	var normal []byte
	var starts, ends []int // of the original character of each byte of normal
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		before := len(normal)
		normal = t.normalizer.append(normal, text[i:i+size])
		if len(normal) == before && before > 0 && unicode.IsMark(r) {
			ends[before-1] = i + size // a removed accent belongs to its letter
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

// continues reports whether the token is part of the same word as the previous token.
func (l *located) continues(token int) bool {
	return 0 < token && token < len(l.ids) && l.starts[token] == l.starts[token-1]
}
