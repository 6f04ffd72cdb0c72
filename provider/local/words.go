package local

import (
	"context"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
)

var _ ground.Encoder = (*Encoder)(nil)

// Encode implements [ground.Encoder]: one token for each word of a text, a run of letters
// and digits or one sign, whose vector is the mean of those of its pieces, of unit length.
// What the model does not see at all (control characters) has no token.
func (e *Encoder) Encode(ctx context.Context, texts []string) ([][]ground.Token, error) {
	all, err := e.EmbedTokens(ctx, llm.Passage, texts)
	if err != nil {
		return nil, err
	}
	tokens := make([][]ground.Token, len(texts))
	for i, text := range texts {
		if tokens[i], err = e.words(text, all[i]); err != nil {
			return nil, fmt.Errorf("encode text %d with %s: %w", i, e.name, err)
		}
	}
	return tokens, nil
}

// words joins the vectors of the pieces of each word of a text. The tokenizer cuts at
// blanks and signs before it cuts words into pieces, so that the pieces of a text are
// those of its words, in order.
func (e *Encoder) words(text string, pieces []llm.Vector) ([]ground.Token, error) {
	var tokens []ground.Token
	var ids []int32
	at := 0
	for start := 0; start < len(text); {
		end := start + wordLength(text[start:])
		ids = e.tokenizer.encode(ids[:0], text[start:end])
		if n := len(ids); n > 0 {
			if at+n > len(pieces) {
				return e.whole(text, pieces)
			}
			vector, err := meanVector(pieces[at : at+n])
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, ground.Token{Start: start, End: end, Vector: vector})
			at += n
		}
		start = end
	}
	if at != len(pieces) {
		return e.whole(text, pieces)
	}
	return tokens, nil
}

// whole is one token for a text in which words and pieces do not come out even, as where
// the name of one of the model's own tokens ("[SEP]") stands.
func (e *Encoder) whole(text string, pieces []llm.Vector) ([]ground.Token, error) {
	if len(pieces) == 0 {
		return nil, nil
	}
	vector, err := meanVector(pieces)
	return []ground.Token{{Start: 0, End: len(text), Vector: vector}}, err
}

// wordLength returns the bytes of the run of letters, digits and marks that a text
// begins with, or of its first character.
func wordLength(text string) int {
	n := 0
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) || unicode.Is(chinese, r) {
			break
		}
		n += size
	}
	if n == 0 {
		_, n = utf8.DecodeRuneInString(text)
	}
	return n
}

// meanVector returns the mean of vectors, one or more, of unit length.
func meanVector(vectors []llm.Vector) ([]float32, error) {
	if len(vectors) == 1 {
		return vectors[0], nil
	}
	mean := make([]float32, len(vectors[0]))
	for _, v := range vectors {
		for i, x := range v {
			mean[i] += x
		}
	}
	return mean, normalize(mean)
}
