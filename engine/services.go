package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/rerank"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/llm"
)

// Limits for the services that a search uses. If a service fails or is too slow, the search
// continues without it.
const (
	embedLimit = 8 * time.Second // for embedding a question
	readLimit  = 8 * time.Second // for a reranker
	readBest   = 50              // hits that a reranker reads, as many as a search ranks
)

// isService reports whether an encoder or reranker is reached over a network. Only those
// implement llm.Described.
func isService(v any) bool {
	_, ok := v.(llm.Described)
	return ok
}

// SharedVectors are vectors of passages that several servers keep. Package provider/redis implements
// it. They are used where the vectors of documents are made, and nowhere else: a caller who could have any
// text looked up would learn by the time it takes whether a document has that passage.
type SharedVectors interface {
	// Vectors returns an encoder that takes the vectors of passages from there, and lets e make those
	// that are not there. Errors are those of e: vectors that cannot be read are missing. A vector is
	// found only for the tenant, by its name, for which it was made.
	Vectors(tenant string, e llm.Embedder) llm.Embedder
}

// shareVectors returns an encoder that shares the vectors of passages.
func (e *Engine) shareVectors(encoder llm.Embedder) llm.Embedder {
	if e.config.SharedVectors == nil {
		return encoder
	}
	return e.config.SharedVectors.Vectors(e.config.Tenant, encoder)
}

// timeoutEmbedder bounds the latency of a remote encoder for questions. If the encoder does not
// answer in time it fails, and the search uses words alone.
type timeoutEmbedder struct {
	llm.Embedder
	limit time.Duration
}

// Embed implements llm.Embedder.
func (h *timeoutEmbedder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	limited, cancel := context.WithTimeout(llm.WithPrice(ctx, llm.FactsOf(h.Embedder)), h.limit)
	defer cancel()
	vectors, err := h.Embedder.Embed(limited, p, texts)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = fmt.Errorf("%s did not answer within %v: %w", h.Model(), h.limit, assay.ErrUnavailable)
	}
	return vectors, err
}

// Languages implements llm.Linguist. It returns the languages of the encoder.
func (h *timeoutEmbedder) Languages() []string {
	if l, ok := h.Embedder.(llm.Linguist); ok {
		return l.Languages()
	}
	return nil
}

// modelRanker ranks the hits of one search with a reranker model, and with the local ranker if the
// model fails. The model reads each hit only once, even if Rank is called again.
type modelRanker struct {
	texts  rerank.Texts
	local  retrieve.Ranker
	scores map[string]float64 // by chunk; nil: not ranked yet
	failed string             // why the local ranker is used; empty: it is not
}

// Decides implements retrieve.Decider. It reports whether the order of the reranker model is
// final.
func (r *modelRanker) Decides() bool { return r.failed == "" }

// Rank implements retrieve.Ranker.
func (r *modelRanker) Rank(ctx context.Context, q assay.Query, found assay.Results) ([]float64, error) {
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
