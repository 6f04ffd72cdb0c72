package local

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/role"
)

// Score implements role.Scorer. It scores hits by the relevance that the reader gives them, else
// by their own. It returns an error only when ctx has ended.
func (s Judge) Score(ctx context.Context, _ role.Caller, question string, hits []assay.Hit) (role.HitScores, error) {
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
		out.Notes = append(out.Notes, "scorer: "+err.Error()+"; the hits keep their previous relevance")
	}
	return out, nil
}

// leastOfBest is the least share of the best score in a passage with which a span or sentence
// of it bears on a question.
const leastOfBest = 0.3

// Refine implements role.Scorer. It keeps the sentences that the reader finds an answer in,
// and the ones beside them, which they may refer to. Without a reader it keeps those with most
// of the question's words. Code and tables stay whole. Refine returns an error only when ctx
// has ended.
func (s Judge) Refine(ctx context.Context, _ role.Caller, text string, hits []assay.Hit) (role.Refinement, error) {
	readings, err := ReadHits(ctx, s.Reader, text, hits)
	if ctx.Err() != nil {
		return role.Refinement{}, ctx.Err()
	}
	q := read(text, nil)
	out := role.Refinement{Parts: make([][]role.Span, len(hits))}
	for i, h := range hits {
		sentences := sentence.Spans(h.Text)
		scores := make([]float64, len(sentences))
		for j, sp := range sentences {
			if readings == nil {
				scores[j] = q.coverage(stems(h.Language, h.Text[sp.Start:sp.End]))
				continue
			}
			for _, x := range readings[i].Spans {
				if x.Start < sp.End && sp.Start < x.End {
					scores[j] = max(scores[j], x.Score)
				}
			}
		}
		isWhole := h.Chunk.Kind == assay.ChunkCode || h.Chunk.Kind == assay.ChunkTable
		switch {
		case len(sentences) == 0 || slices.Max(scores) <= 0:
		case isWhole:
			out.Parts[i] = []role.Span{{End: len(h.Text)}}
		default:
			out.Parts[i] = withNeighbours(sentences, scores)
		}
	}
	if err != nil {
		out.Notes = append(out.Notes, "scorer: "+err.Error()+"; the hits were trimmed by word overlap only")
	}
	return out, nil
}

// withNeighbours returns the sentences with a good score and those beside them, joined where
// they touch.
func withNeighbours(sentences []sentence.Span, scores []float64) []role.Span {
	var parts []role.Span
	last := -1 // the sentence that the last part ends with
	for i, score := range scores {
		if score < leastOfBest*slices.Max(scores) {
			continue
		}
		from, to := max(i-1, last+1), min(i+1, len(sentences)-1)
		switch {
		case from > to: // is in the last part, and so is what follows it
		case len(parts) > 0 && from == last+1:
			parts[len(parts)-1].End = sentences[to].End
		default:
			parts = append(parts, role.Span{Start: sentences[from].Start, End: sentences[to].End})
		}
		last = max(last, to)
	}
	return parts
}

// A hit is relevant if its probability is at least likely, and not relevant if it is less than
// unlikely.
const (
	likely   = 0.5
	unlikely = 0.1
)

// GradeRetrieval implements role.RetrievalGrader. It grades hits by the reader's probability
// that they answer the question or are relevant to it, else by their own relevance. It returns
// an error only when ctx has ended.
func (g Judge) GradeRetrieval(ctx context.Context, _ role.Caller, question string, hits []assay.Hit) (role.RetrievalGrades, error) {
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
		out.Notes = append(out.Notes, "retrieval grader: "+err.Error()+"; the hits were graded by relevance only")
	}
	return out, nil
}
