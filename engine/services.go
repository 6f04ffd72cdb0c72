package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/rerank"
	"github.com/assay-rag/assay/retrieve"
)

// What a search grants the services that it asks. It goes on without them.
const (
	embedLimit = 8 * time.Second // for the vectors of a question
	readLimit  = 8 * time.Second // for a reranker
	readBest   = 50              // hits that a reranker reads: as many as a search has ranked
)

// isService reports whether an encoder or reranker is reached over a network: those
// are described, see llm.Described.
func isService(v any) bool {
	_, ok := v.(llm.Described)
	return ok
}

// A hasty is an encoder that is a service, for questions: one that does not answer in
// time has failed, and the search goes by words alone.
type hasty struct {
	llm.Embedder
	limit time.Duration
}

// Embed implements llm.Embedder.
func (h *hasty) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	limited, cancel := context.WithTimeout(llm.WithPrice(ctx, llm.FactsOf(h.Embedder)), h.limit)
	defer cancel()
	vectors, err := h.Embedder.Embed(limited, p, texts)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = fmt.Errorf("%s did not answer within %v: %w", h.Model(), h.limit, assay.ErrUnavailable)
	}
	return vectors, err
}

// Languages implements llm.Linguist: those of the encoder.
func (h *hasty) Languages() []string {
	if l, ok := h.Embedder.(llm.Linguist); ok {
		return l.Languages()
	}
	return nil
}

// A reader ranks the hits of one search by a model that reads them, and by the local
// ranker where that fails. It reads each hit once, however often it is asked.
type reader struct {
	texts  rerank.Texts
	local  retrieve.Ranker
	scores map[string]float64 // by chunk; nil: not read yet
	failed string             // why the local ranker stood in; empty: it did not
}

// Decides implements retrieve.Decider: the order of a configured reranker stands.
func (r *reader) Decides() bool { return r.failed == "" }

// Rank implements retrieve.Ranker.
func (r *reader) Rank(ctx context.Context, q assay.Query, found assay.Results) ([]float64, error) {
	if r.failed == "" && r.scores == nil {
		scores, err := r.texts.Rank(llm.WithPrice(ctx, llm.FactsOf(r.texts.Model)), q, found)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			r.failed = err.Error() + "; the local reranker stood in"
		default:
			r.scores = make(map[string]float64, len(scores))
			for i, h := range found.Hits {
				r.scores[h.Chunk.ID] = scores[i]
			}
		}
	}
	if !r.Decides() {
		return r.local.Rank(ctx, q, found)
	}
	scores := make([]float64, len(found.Hits))
	for i, h := range found.Hits {
		scores[i] = r.scores[h.Chunk.ID]
	}
	return scores, nil
}
