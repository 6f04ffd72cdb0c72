package local

import (
	"unicode/utf8"
)

// A tokenizer splits texts into the pieces of a vocabulary by WordPiece, identically to the
// reference (Hugging Face tokenizers). It is immutable after reading, so it is safe for concurrent
// use.
type tokenizer struct {
	normalizer normalizer
	raw        addedTokens // matched in the original text
	normal     addedTokens // matched in the normalised text

	first    map[string]int32 // pieces that begin a word
	rest     map[string]int32 // pieces that continue a word, without the prefix
	longest  int              // length of the longest piece in bytes
	maxRunes int              // of a word; longer ones are unknown
	unknown  int32
	cls, sep int32
}

// encode appends the tokens of a text to dst, without [CLS] and [SEP] around it. Names of special
// tokens in the text become those tokens.
func (t *tokenizer) encode(dst []int32, text string) []int32 {
	var buffer []byte
	t.raw.split(text, func(part string, token int32) {
		if token >= 0 {
			dst = append(dst, token)
			return
		}
		buffer = t.normalizer.append(buffer[:0], part)
		if t.normal.none() {
			dst = t.appendWords(dst, buffer)
			return
		}
		t.normal.split(string(buffer), func(part string, token int32) {
			if token >= 0 {
				dst = append(dst, token)
			} else {
				dst = t.appendWords(dst, []byte(part))
			}
		})
	})
	return dst
}

func (t *tokenizer) appendWords(dst []int32, text []byte) []int32 {
	words(text, func(start, end int) { dst = t.appendPieces(dst, text[start:end]) })
	return dst
}

// appendPieces splits a word greedily: the longest piece that begins it, then the longest that
// continues it, and so on. A word that cannot be split completely becomes the unknown token.
func (t *tokenizer) appendPieces(dst []int32, word []byte) []int32 {
	if len(word) > t.maxRunes && utf8.RuneCount(word) > t.maxRunes {
		return append(dst, t.unknown)
	}
	begin, pieces := len(dst), t.first
	for len(word) > 0 {
		end := min(len(word), t.longest)
		for end > 0 {
			if token, known := pieces[string(word[:end])]; known {
				dst = append(dst, token)
				break
			}
			_, size := utf8.DecodeLastRune(word[:end])
			end -= size
		}
		if end == 0 {
			return append(dst[:begin], t.unknown)
		}
		word, pieces = word[end:], t.rest
	}
	return dst
}

// single appends the model's input for one text: [CLS] text [SEP].
func (t *tokenizer) single(dst []int32, text string) []int32 {
	return append(t.encode(append(dst, t.cls), text), t.sep)
}
