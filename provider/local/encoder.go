package local

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/llm"
)

// An Encoder embeds texts. It implements llm.Embedder, llm.TokenCounter, llm.TokenEmbedder and
// llm.Linguist. It is safe for concurrent use, and need not be closed.
//
// It uses all cores available to Go, and about 6 MB of memory per core during a computation (for a
// hidden size of 384).
type Encoder struct {
	settings
	name      string
	tokenizer *tokenizer
	bert      *bert
}

var (
	_ llm.Embedder      = (*Encoder)(nil)
	_ llm.TokenCounter  = (*Encoder)(nil)
	_ llm.TokenEmbedder = (*Encoder)(nil)
	_ llm.Linguist      = (*Encoder)(nil)
)

func newEncoder(ctx context.Context, f *folder) (*Encoder, error) {
	a, err := readArchitecture(f, trunks...)
	if err != nil {
		return nil, err
	}
	e := &Encoder{}
	if e.settings, err = readSettings(f, a.Positions); err != nil {
		return nil, err
	}
	if e.tokenizer, err = readTokenizer(f, a.Vocabulary); err != nil {
		return nil, err
	}
	if e.bert, err = readBERT(ctx, &f.weights, a); err != nil {
		return nil, err
	}
	if err := e.tokenizer.covers(a.Vocabulary); err != nil {
		return nil, err
	}
	e.name = cmp.Or(f.Model, fmt.Sprintf("%s@%s/%d", f.Name, f.identity(), a.Hidden))
	return e, nil
}

// Model returns the name of the model: its folder's name, eight digits of a checksum of all its
// files, and the dimensions of its vectors, for example gte-small@8131c6f8/384.
func (e *Encoder) Model() string { return e.name }

// Languages returns the languages listed in the folder's assay.json.
func (e *Encoder) Languages() []string { return slices.Clone(e.languages) }

// MaxTokens returns the largest number of tokens that Embed accepts for one text.
func (e *Encoder) MaxTokens() int { return e.maxTokens }

// Tokens returns the number of tokens that Embed reads for a text. If the model has prompts, it is
// that for the purpose with more tokens.
func (e *Encoder) Tokens(text string) int {
	text = e.apart(text)
	n := len(e.tokenizer.single(nil, e.passage+text))
	if e.query != e.passage {
		n = max(n, len(e.tokenizer.single(nil, e.query+text)))
	}
	return n
}

// Embed implements llm.Embedder. Texts that are too long are detected before any is computed. On
// any other error it returns the vectors of the texts before.
func (e *Encoder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	read := make([]string, len(texts))
	for i, text := range texts {
		read[i] = e.apart(text)
	}
	return e.embed(ctx, p, read)
}

// embed returns the vectors of texts, without separating identifiers.
func (e *Encoder) embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	sequences, err := e.sequences(p, texts)
	if err != nil {
		return nil, err
	}
	vectors := make([]llm.Vector, 0, len(texts))
	err = e.bert.run(ctx, sequences, e.cls, func(i int, rows []float32) error {
		v := make([]float32, e.bert.Hidden)
		sum(v, rows) // one row if the vectors are those of [CLS]
		if err := normalize(v); err != nil {
			return err
		}
		vectors = append(vectors, v)
		return nil
	})
	if err != nil {
		return vectors, fmt.Errorf("embed with %s: %w", e.name, err)
	}
	return vectors, nil
}

// apart separates the words within identifiers if a text is mostly code. A lower-case vocabulary
// has no pieces for words like readheadertimeout. On functions of Go's source this raises nDCG@10
// of vector search from 0.309 to 0.413.
func (e *Encoder) apart(text string) string {
	if !e.tokenizer.normalizer.lowercase || !lexical.MostlyCode(text) {
		return text
	}
	return analysis.Apart(text)
}

// EmbedTokens implements llm.TokenEmbedder. It omits the tokens of a prompt, which is not part of
// the text, and [CLS] and [SEP].
func (e *Encoder) EmbedTokens(ctx context.Context, p llm.Purpose, texts []string) ([][]llm.Vector, error) {
	sequences, err := e.sequences(p, texts)
	if err != nil {
		return nil, err
	}
	first := 1 + len(e.tokenizer.encode(nil, e.prompt(p)))
	all := make([][]llm.Vector, 0, len(texts))
	err = e.bert.run(ctx, sequences, allRows, func(i int, rows []float32) error {
		h := e.bert.Hidden
		rows = slices.Clone(rows[min(len(rows)-h, first*h) : len(rows)-h])
		vectors := make([]llm.Vector, 0, len(rows)/h)
		for row := range slices.Chunk(rows, h) {
			if err := normalize(row); err != nil {
				return err
			}
			vectors = append(vectors, row)
		}
		all = append(all, vectors)
		return nil
	})
	if err != nil {
		return all, fmt.Errorf("embed tokens with %s: %w", e.name, err)
	}
	return all, nil
}

func (e *Encoder) prompt(p llm.Purpose) string {
	if p == llm.Query {
		return e.query
	}
	return e.passage
}

// sequences tokenizes the texts.
func (e *Encoder) sequences(p llm.Purpose, texts []string) ([]sequence, error) {
	prompt := e.prompt(p)
	sequences := make([]sequence, len(texts))
	for i, text := range texts {
		ids := e.tokenizer.single(nil, prompt+text)
		if len(ids) > e.maxTokens {
			return nil, &llm.TooLongError{Model: e.name, Text: i, Tokens: len(ids), Limit: e.maxTokens}
		}
		sequences[i] = sequence{ids, len(ids)}
	}
	return sequences, nil
}

// sum adds the rows to v, which must be zero. Since the result is normalised later, the sum is
// equivalent to the mean.
func sum(v, rows []float32) {
	for row := range slices.Chunk(rows, len(v)) {
		for i, x := range row {
			v[i] += x
		}
	}
}

// normalize scales v to unit length. It returns an error if the weights give a vector without
// direction.
func normalize(v []float32) error {
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if !(square > 0) || math.IsInf(square, 0) {
		return fmt.Errorf("%s: the weights produce a zero or non-finite vector: %w", weightsFile, assay.ErrDamaged)
	}
	scale := float32(1 / math.Sqrt(square))
	for i := range v {
		v[i] *= scale
	}
	return nil
}
