package local

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// Scorer scores hits by their calibrated relevance, lowered where a hit does not speak
// of what the question names: of names, identifiers and numbers, those in its title and
// headings included. One that speaks of none of them keeps half of its relevance.
type Scorer struct{}

// Score implements role.Scorer. It returns an error only when ctx has ended.
func (Scorer) Score(ctx context.Context, _ role.Caller, question string, hits []assay.Hit) (role.HitScores, error) {
	if err := ctx.Err(); err != nil {
		return role.HitScores{}, err
	}
	q := read(question, nil)
	out := role.HitScores{Scores: make([]float64, len(hits))}
	for i, h := range hits {
		if relevance := h.Scores.Relevance; relevance > 0 { // not a number, too, is none
			out.Scores[i] = min(relevance, 1) * (1 + q.named(h)) / 2
		}
	}
	return out, nil
}

// named is the share of what the question names that a hit speaks of, in [0, 1]; 1 for
// a question that names nothing.
func (q question) named(h assay.Hit) float64 {
	if len(q.names) == 0 {
		return 1
	}
	held := stems(h.Language, around(h)...)
	spoken := 0
	for _, n := range q.names {
		if q.speaksOf(held, n) {
			spoken++
		}
	}
	return float64(spoken) / float64(len(q.names))
}
