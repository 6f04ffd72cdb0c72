package local

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// Scorer scores hits by the relevance that the reader gives them, else by their own.
type Scorer struct{ Reader llm.Reader }

// Score implements role.Scorer. It returns an error only when ctx has ended.
func (s Scorer) Score(ctx context.Context, _ role.Caller, question string, hits []assay.Hit) (role.HitScores, error) {
	readings, err := ReadHits(ctx, s.Reader, question, hits)
	if ctx.Err() != nil {
		return role.HitScores{}, ctx.Err()
	}
	out := role.HitScores{Scores: make([]float64, len(hits))}
	for i, h := range hits {
		if out.Scores[i] = probability(h.Scores.Relevance); readings != nil {
			out.Scores[i] = readings[i].Relevance
		}
	}
	if err != nil {
		out.Notes = append(out.Notes, "scorer: "+err.Error()+"; the hits keep the relevance that they had")
	}
	return out, nil
}

// RetrievalGrader grades hits by the reader's probability that they answer the question or
// are relevant to it, else by their own relevance.
type RetrievalGrader struct{ Reader llm.Reader }

// A hit is relevant if its probability is at least likely, and not relevant if it is less than
// unlikely.
const (
	likely   = 0.5
	unlikely = 0.1
)

// GradeRetrieval implements role.RetrievalGrader. It returns an error only when ctx has
// ended.
func (g RetrievalGrader) GradeRetrieval(ctx context.Context, _ role.Caller, question string, hits []assay.Hit) (role.RetrievalGrades, error) {
	readings, err := ReadHits(ctx, g.Reader, question, hits)
	if ctx.Err() != nil {
		return role.RetrievalGrades{}, ctx.Err()
	}
	out := role.RetrievalGrades{Grades: make([]role.Relevance, len(hits))}
	for i, h := range hits {
		p := h.Scores.Relevance
		if readings != nil {
			p = max(readings[i].Relevance, readings[i].Answerable)
		}
		switch {
		case p >= likely:
			out.Grades[i] = role.Relevant
		case p < unlikely:
			out.Grades[i] = role.NotRelevant
		default:
			out.Grades[i] = role.PartlyRelevant
		}
	}
	if err != nil {
		out.Notes = append(out.Notes, "retrieval grader: "+err.Error()+"; the hits were graded by their relevance")
	}
	return out, nil
}
