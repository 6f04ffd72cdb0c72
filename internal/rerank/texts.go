package rerank

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// Texts ranks by a model that reads the query with each text: a cross-encoder in this process, or
// one behind an API.
type Texts struct {
	Model llm.Reranker
	Best  int           // number of hits that the model reads, at least 1; the others follow in their order
	Limit time.Duration // time limit; 0: that of the search
}

// Rank returns one score per hit of found, in their order; higher is better. Hits that the model
// did not read get scores below all others. It returns an error if the model returns too few or too
// many scores or one that is not a number, or exceeds the time limit.
func (t Texts) Rank(ctx context.Context, q assay.Query, found assay.Results) ([]float64, error) {
	if t.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.Limit, fmt.Errorf("%s did not answer within %s", t.Model.Model(), t.Limit))
		defer cancel()
	}
	n := min(max(t.Best, 1), len(found.Hits))
	if n == 0 {
		return []float64{}, nil
	}
	texts := make([]string, n)
	for i, h := range found.Hits[:n] {
		texts[i] = assay.Passage{Chunk: h.Chunk, Text: h.Text, Title: h.Title}.Words()
	}
	scores, err := t.Model.Rerank(ctx, q.Text, texts)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("rerank by %s: %w", t.Model.Model(), err)
	}
	if len(scores) != n {
		return nil, fmt.Errorf("rerank by %s: %d scores for %d texts", t.Model.Model(), len(scores), n)
	}
	least := scores[0]
	for _, x := range scores {
		if x-x != 0 {
			return nil, fmt.Errorf("rerank by %s: a score of %v", t.Model.Model(), x)
		}
		least = min(least, x)
	}
	out := append(make([]float64, 0, len(found.Hits)), scores...)
	for i := range found.Hits[n:] {
		out = append(out, least-float64(i+1))
	}
	return out, nil
}
