package strategy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// names returns the possible answers to a sub-question, the likeliest first, at most
// maxSubstitutions. They are those that the grader read in the hits, a model or the reader. There
// are none without either.
func (sq *subQuestion) names() []candidate {
	var list []candidate
	for _, x := range sq.grade.Answers[:min(maxSubstitutions, len(sq.grade.Answers))] {
		if name := strings.TrimRight(x.Text, ".,;: "); name != "" { // a reader may read on to the end of the sentence
			list = append(list, candidate{name: name, chunk: x.Chunk, score: x.Score})
		}
	}
	return list
}

// within returns the share of a text's stems that are known.
func within(known map[string]bool, text string) float64 {
	stems := stemsOf("", text)
	n := 0
	for stem := range stems {
		if known[stem] {
			n++
		}
	}
	return float64(n) / float64(max(1, len(stems)))
}

// ranked returns the hits in the order in which searches ranked them.
func (sq *subQuestion) ranked() []assay.Hit {
	hits := slices.Clone(sq.hits)
	slices.SortStableFunc(hits, func(a, b assay.Hit) int {
		return cmp.Compare(sq.bestRank[a.Chunk.ID], sq.bestRank[b.Chunk.ID])
	})
	return hits
}

// containsAll reports whether a hit contains all words of the names.
func containsAll(h assay.Hit, names []string) bool {
	held := stemsOf(h.Language, append(slices.Clone(h.Chunk.Headings), h.Title, h.Text)...)
	return !slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(analysis.Tokens(name, ""), func(t analysis.Token) bool { return !t.Part && !held[t.Term] })
	})
}
