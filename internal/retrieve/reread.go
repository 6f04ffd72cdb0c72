package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/llm"
)

// ReadHits is how many of the best hits the Reader reads. Reading more costs more time than it
// gains, see docs/evaluation.md.
const ReadHits = 10

// reread lets the Reader read the best hits, and recomputes their relevance and their order. The
// order stays if the Ranker is a Decider that decides. If the Reader fails, a note reports it.
// Code, which no Reader was trained on, and hits in a language that the Reader does not support
// keep their rank and relevance.
func (s *search) reread(ctx context.Context) error {
	var best []*candidate
	var at []int
	var passages []llm.Excerpt
	if s.Reader == nil || s.query.Unranked {
		return nil
	}
	for i, c := range s.found[:min(len(s.found), ReadHits)] {
		if !Readable(s.Reader, c.hit) {
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
		scores[c] = ReadScore(c.hit, readings[i].Relevance, ReadWeight)
	}
	if d, ok := s.Ranker.(Decider); ok && d.Decides() {
		return nil
	}
	slices.SortStableFunc(best, func(a, b *candidate) int { return cmp.Compare(scores[b], scores[a]) })
	for i, c := range best {
		s.found[at[i]] = c
	}
	return nil
}

// Readable reports whether a reader's rating of a hit counts. It does not for code and unsupported
// languages.
func Readable(r llm.Reader, h assay.Hit) bool {
	return supportsLanguage(r, h.Language) && (h.Chunk.Kind == assay.ChunkTable || !lexical.MostlyCode(h.Text))
}

// supportsLanguage reports whether a reader supports a language. A reader that does not list its
// languages supports all.
func supportsLanguage(r llm.Reader, language string) bool {
	l, ok := r.(llm.Linguist)
	return !ok || language == "" || len(l.Languages()) == 0 || slices.Contains(l.Languages(), language)
}

// ReadWeight is the weight of the Reader's relevance against the previous score when the hits that
// were read are reordered. `go run ./train/fit read` measures each weight. It is 0, which keeps the
// order, until another weight is measured to be better on sets that the Reader was not trained on.
const ReadWeight = 0.0

// ReadScore returns the score of a hit that was read: its previous score plus the weighted
// relevance from the Reader.
func ReadScore(h assay.Hit, relevance, weight float64) float64 {
	score := weight * relevance
	switch {
	case h.Scores.Rerank != nil:
		score += *h.Scores.Rerank
	case h.Scores.Fused != nil:
		score += *h.Scores.Fused
	}
	return score
}

// Weights of the Reader's relevance and of the relevance by words and vectors, in the log-odds of a
// hit's relevance.
const (
	readerWeight = 0.7
	ownWeight    = 0.3
)

// readRelevance combines the Reader's relevance and the hit's own.
func readRelevance(r llm.Reading, own float64) float64 {
	x := readerWeight*logOdds(r.Relevance) + ownWeight*logOdds(own)
	return 1 / (1 + math.Exp(-x))
}

// logOdds returns the log-odds of a probability, limited to ±6. NaN and values up to 0 give -6.
func logOdds(p float64) float64 {
	const most = 6
	if !(p > 0) {
		return -most
	}
	return max(-most, min(most, math.Log(p/(1-p))))
}
