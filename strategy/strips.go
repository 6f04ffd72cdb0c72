package strategy

import (
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
)

// refine cuts hits into strips, drops those that say nothing of what is asked, and
// returns what is left: of each hit the spans that are to be read, as hits of their own
// with the scores of the whole. A strip is a sentence; the ones before and after one that
// stays do so too, for it may lean on them.
//
// The paper has its evaluator score each strip; here the question's words do, since a
// model would have to read everything a second time. A hit that shares no word with the
// question stays whole, as do code and tables.
func refine(hits []assay.Hit, terms []assay.Term) []assay.Hit {
	var out []assay.Hit
	for _, h := range hits {
		spans := stripsOf(h, terms)
		for _, sp := range spans {
			if sp.Start == 0 && sp.End == len(h.Text) {
				out = append(out, h)
				continue
			}
			out = append(out, excerpt(h, sp.Start, sp.End))
		}
	}
	return out
}

// stripsOf returns the spans of a hit that are to be read, in their order and apart from
// one another.
func stripsOf(h assay.Hit, terms []assay.Term) []sentence.Span {
	whole := []sentence.Span{{Start: 0, End: len(h.Text)}}
	if h.Chunk.Kind == assay.ChunkCode || h.Chunk.Kind == assay.ChunkTable {
		return whole
	}
	strips := sentence.Spans(h.Text)
	weights := make([]float64, len(strips))
	for i, sp := range strips {
		weights[i] = weightIn(h.Text[sp.Start:sp.End], h.Language, terms)
	}
	if len(strips) == 0 || slices.Max(weights) == 0 {
		return whole
	}
	const share = 0.5 // of the best strip's weight that one needs to stay
	least := share * slices.Max(weights)
	var spans []sentence.Span
	last := -1 // strip that the last span ends with
	for i, w := range weights {
		if w < least {
			continue
		}
		from, to := max(i-1, last+1), min(i+1, len(strips)-1)
		if from > to {
			continue // it is there already, and so is what follows it
		}
		if len(spans) > 0 && from == last+1 {
			spans[len(spans)-1].End = strips[to].End
		} else {
			spans = append(spans, sentence.Span{Start: strips[from].Start, End: strips[to].End})
		}
		last = to
	}
	return spans
}

// excerpt returns the bytes [start, end) of a hit as one.
func excerpt(h assay.Hit, start, end int) assay.Hit {
	x := h
	c := &x.Chunk
	c.ID = assay.ChunkID(h.Chunk.ID, "excerpt", start)
	c.Parent, c.Start, c.End = h.Chunk.ID, h.Chunk.Start+start, h.Chunk.Start+end
	if len(h.Text) > 0 {
		c.Tokens = (h.Chunk.Tokens*(end-start) + len(h.Text) - 1) / len(h.Text)
	}
	x.Text, x.Children, x.Page = h.Text[start:end], nil, h.Page
	x.Matched = slices.Clone(h.Matched)
	return x
}
