package local

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/tensor"
	"github.com/assay-rag/assay/llm"
)

// A Reranker is a cross-encoder: it reads a query and a text together and returns one number, a
// logit. It implements llm.Reranker, is safe for concurrent use, and need not be closed.
type Reranker struct {
	name       string
	maxTokens  int
	tokenizer  *tokenizer
	bert       *bert
	pooler     dense // of [CLS], before tanh
	classifier dense // one row
}

var _ llm.Reranker = (*Reranker)(nil)

func newReranker(ctx context.Context, f *folder) (*Reranker, error) {
	a, err := readArchitecture(f, classifier)
	if err != nil {
		return nil, err
	}
	if len(a.Labels) > 1 {
		return nil, fmt.Errorf("%s: got a classifier with %d labels; a reranker has one: %w", configFile, len(a.Labels), assay.ErrInvalid)
	}
	if a.Types < 2 {
		return nil, fmt.Errorf("%s: a reranker needs two token types, got one: %w", configFile, assay.ErrInvalid)
	}
	s, err := readRerankerSettings(f, a.Positions)
	if err != nil {
		return nil, err
	}
	r := &Reranker{maxTokens: s.maxTokens}
	if r.tokenizer, err = readTokenizer(f, a.Vocabulary); err != nil {
		return nil, err
	}
	if r.bert, err = readBERT(ctx, &f.weights, a); err != nil {
		return nil, err
	}
	if err := r.tokenizer.covers(a.Vocabulary); err != nil {
		return nil, err
	}
	if r.pooler, err = f.weights.dense(a.Hidden, a.Hidden, "pooler.dense"); err != nil {
		return nil, err
	}
	f.weights.prefix = ""
	if r.classifier, err = f.weights.dense(1, a.Hidden, "classifier"); err != nil {
		return nil, err
	}
	r.name = cmp.Or(f.Model, f.Name+"@"+f.identity())
	return r, nil
}

// Model returns the name of the model: its folder's name and eight digits of a checksum of all its
// files.
func (r *Reranker) Model() string { return r.name }

// minWindow is the least number of a text's tokens in a window beside a query. A query that leaves
// less room is too long.
const minWindow = 32

// Rerank implements llm.Reranker. A text that does not fit beside the query is read in windows of
// equal size, and its score is that of the best window; nothing is truncated. A query that leaves
// too little room is an *llm.TooLongError of the text.
func (r *Reranker) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	question := r.tokenizer.encode(nil, query)
	var sequences []sequence
	var owners []int // the text of each sequence
	for i, text := range texts {
		ids := r.tokenizer.encode(nil, text)
		room := r.maxTokens - len(question) - 3
		if len(ids) > room && room < minWindow {
			return nil, &llm.TooLongError{Model: r.name, Text: i, Tokens: len(question) + len(ids) + 3, Limit: r.maxTokens}
		}
		for _, window := range windows(ids, room) {
			sequences = append(sequences, r.tokenizer.pair(question, window))
			owners = append(owners, i)
		}
	}
	scores := make([]float64, len(texts))
	for i := range scores {
		scores[i] = math.Inf(-1)
	}
	err := r.bert.run(ctx, sequences, firstRows, func(i int, cls []float32) error {
		score := r.score(cls)
		if math.IsNaN(score) || math.IsInf(score, 0) {
			return fmt.Errorf("%s: the weights produce no valid score: %w", weightsFile, assay.ErrDamaged)
		}
		scores[owners[i]] = max(scores[owners[i]], score)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("rerank with %s: %w", r.name, err)
	}
	return scores, nil
}

// score computes the head of the network for the row of [CLS].
func (r *Reranker) score(cls []float32) float64 {
	h := r.bert.Hidden
	pooled, score := make([]float32, h), make([]float32, 1)
	r.pooler.apply(pooled, cls, 1, tensor.None)
	for i, x := range pooled {
		pooled[i] = float32(math.Tanh(float64(x)))
	}
	r.classifier.apply(score, pooled, 1, tensor.None)
	return float64(score[0])
}

// pair returns the model's input for two texts: [CLS] query [SEP] text [SEP].
func (t *tokenizer) pair(query, text []int32) sequence {
	ids := make([]int32, 0, len(query)+len(text)+3)
	ids = append(append(append(ids, t.cls), query...), t.sep)
	second := len(ids)
	return sequence{append(append(ids, text...), t.sep), second}
}

// windows splits tokens into the fewest parts of at most room, of about equal size. For no tokens,
// it returns one empty part.
func windows(ids []int32, room int) [][]int32 {
	if len(ids) == 0 {
		return [][]int32{nil}
	}
	n := (len(ids) + room - 1) / room
	parts := make([][]int32, n)
	for i := range parts {
		parts[i] = ids[i*len(ids)/n : (i+1)*len(ids)/n]
	}
	return parts
}
