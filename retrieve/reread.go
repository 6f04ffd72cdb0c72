package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/assay-rag/assay/llm"
)

// reread is how many of the best hits are read: more than that takes longer than it is
// worth, see docs/evaluation.md.
const reread = 10

// reread has the best hits read, which gives them another relevance and another order. A
// reader that fails has read nothing, and a note says so. Hits in a language that it was
// not made for keep what they have.
func (s *search) reread(ctx context.Context) error {
	var best []*candidate
	var at []int
	var passages []llm.Excerpt
	if s.Reader == nil || s.query.Unranked {
		return nil
	}
	for i, c := range s.found[:min(len(s.found), reread)] {
		if !made(s.Reader, c.hit.Language) {
			continue
		}
		best, at = append(best, c), append(at, i)
		passages = append(passages, llm.Excerpt{Heading: c.hit.Under(), Text: c.hit.Text})
	}
	if len(best) == 0 {
		return nil
	}
	readings, err := s.Reader.Read(ctx, s.query.Text, passages)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && len(readings) != len(best) {
		err = fmt.Errorf("%d readings for %d hits", len(readings), len(best))
	}
	if err != nil {
		s.note("the hits are not read: " + trimmed(err))
		return nil
	}
	scores := map[*candidate]float64{}
	for i, c := range best {
		c.hit.Scores.Relevance = readRelevance(readings[i], c.hit.Scores.Relevance)
		scores[c] = c.hit.Scores.Relevance - placeWeight*float64(at[i])/reread
	}
	slices.SortStableFunc(best, func(a, b *candidate) int { return cmp.Compare(scores[b], scores[a]) })
	for i, c := range best {
		s.found[at[i]] = c
	}
	return nil
}

// made reports whether a reader was made for a language, as far as it says for which.
func made(r llm.Reader, language string) bool {
	l, ok := r.(llm.Linguist)
	return !ok || language == "" || len(l.Languages()) == 0 || slices.Contains(l.Languages(), language)
}

// The weights of what the reader says and of what words and vectors say in a hit's
// relevance, and of its place before it was read in its order.
const (
	readWeight  = 0.7
	ownWeight   = 0.3
	placeWeight = 0.2
)

// readRelevance is the relevance of a hit that was read, from the reader's and its own.
func readRelevance(r llm.Reading, own float64) float64 {
	x := readWeight*logOdds(r.Relevance) + ownWeight*logOdds(own)
	return 1 / (1 + math.Exp(-x))
}

// logOdds are the log odds of a probability, within ±6; those of what is none are -6.
func logOdds(p float64) float64 {
	const most = 6
	if !(p > 0) {
		return -most
	}
	return max(-most, min(most, math.Log(p/(1-p))))
}
