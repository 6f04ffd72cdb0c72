package retrieve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/sentence"
)

// An Excerpt is the part of a hit that goes into a prompt: the bytes of its document's text in
// Spans, which are ascending and disjoint.
type Excerpt struct {
	Hit   int // index into the hits
	Spans []Span
}

// A Span is the bytes [Start, End) of a document's text.
type Span struct{ Start, End int }

// Assemble selects the text of hits, best first, that goes into a prompt of at most the given
// number of tokens. If all hits fit, it returns all of their text. Otherwise it prefers the
// sentences that hold most of the terms' weight, those of better hits first, and then their
// neighbours. Left is the number of hits without an excerpt.
//
// The excerpts are in reading order. The best is first, the second best last, the third best
// second, and so on towards the middle, because models attend most to the beginning and the end.
//
// Tokens are counted by the chunker and apportioned by bytes; without a count, four bytes are one
// token. Equal input gives equal output.
//
// Source of the order: Liu et al., "Lost in the Middle: How Language Models Use Long Contexts",
// TACL 2024.
func Assemble(hits []assay.Hit, terms []assay.Term, tokens int) (excerpts []Excerpt, left int) {
	all := 0
	for _, h := range hits {
		all += tokensOf(h, 0, len(h.Text))
	}
	if all <= tokens {
		for i, h := range hits {
			excerpts = append(excerpts, Excerpt{i, []Span{{h.Chunk.Start, h.Chunk.Start + len(h.Text)}}})
		}
		return firstAndLast(excerpts), 0
	}
	a := assembly{hits: hits, left: tokens}
	for i, h := range hits {
		a.sentences = append(a.sentences, sentencesOf(i, h, terms)...)
	}
	a.takeBest()
	a.takeRest()
	for i := range hits {
		if spans := a.spans(i); len(spans) > 0 {
			excerpts = append(excerpts, Excerpt{i, spans})
		}
	}
	return firstAndLast(excerpts), len(hits) - len(excerpts)
}

// firstAndLast reorders a list sorted best first as 1, 3, 5, 4, 2.
func firstAndLast(list []Excerpt) []Excerpt {
	ordered := make([]Excerpt, len(list))
	first, last := 0, len(list)-1
	for i, e := range list {
		if i%2 == 0 {
			ordered[first] = e
			first++
		} else {
			ordered[last] = e
			last--
		}
	}
	return ordered
}

// tokensOf returns the number of tokens in Text[start:end] of a hit, rounded up.
func tokensOf(h assay.Hit, start, end int) int {
	if h.Chunk.Tokens == 0 || len(h.Text) == 0 {
		return (end - start + 3) / 4
	}
	return (h.Chunk.Tokens*(end-start) + len(h.Text) - 1) / len(h.Text)
}

// A contextSentence is a sentence that may be selected for a context.
type contextSentence struct {
	hit, at int // at is its index among the hit's sentences
	span    sentence.Span
	tokens  int
	score   float64 // share of the terms' weight that it holds, in [0, 1]
	taken   bool
}

// sentencesOf splits a hit into sentences. Each includes the bytes up to the next one, so that
// together they cover the whole hit.
func sentencesOf(n int, h assay.Hit, terms []assay.Term) []contextSentence {
	spans := sentence.Spans(h.Text)
	list := make([]contextSentence, len(spans))
	weight := 0.0
	for _, t := range terms {
		weight += t.Weight
	}
	for i, sp := range spans {
		held := map[string]bool{}
		for _, t := range analysis.Tokens(h.Text[sp.Start:sp.End], h.Language) {
			held[t.Term] = true
		}
		score := 0.0
		for _, t := range terms {
			if held[t.Stem] || slices.ContainsFunc(t.Forms, func(f string) bool { return held[f] }) {
				score += t.Weight / weight
			}
		}
		list[i] = contextSentence{hit: n, at: i, span: sp, tokens: tokensOf(h, sp.Start, sp.End), score: score}
	}
	return list
}

// An assembly is the state of Assemble.
type assembly struct {
	hits      []assay.Hit
	sentences []contextSentence // by hit, then place
	left      int               // tokens
}

func (a *assembly) take(s *contextSentence) bool {
	if s.taken || s.tokens > a.left {
		return false
	}
	s.taken = true
	a.left -= s.tokens
	return true
}

// of returns the sentences of a hit.
func (a *assembly) of(hit int) []contextSentence {
	first, _ := slices.BinarySearchFunc(a.sentences, hit, func(s contextSentence, hit int) int { return cmp.Compare(s.hit, hit) })
	end := first
	for end < len(a.sentences) && a.sentences[end].hit == hit {
		end++
	}
	return a.sentences[first:end]
}

// takeBest takes from each hit, better hits first, its best sentence that fits.
func (a *assembly) takeBest() {
	for i := range a.hits {
		list := a.of(i)
		order := make([]*contextSentence, len(list))
		for j := range list {
			order[j] = &list[j]
		}
		slices.SortStableFunc(order, func(x, y *contextSentence) int { return cmp.Compare(y.score, x.score) })
		for _, s := range order {
			if a.take(s) {
				break
			}
		}
	}
}

// besideShare is the score that a sentence gains if a neighbour is already taken.
const besideShare = 0.25

// takeRest fills the remaining budget, each time with the sentence of the highest gain. The gain is
// the sentence's own score, plus besideShare if a neighbour is taken, divided by the rank of its
// hit.
func (a *assembly) takeRest() {
	skipped := map[*contextSentence]bool{} // do not fit; the budget only shrinks
	for {
		var best *contextSentence
		most := 0.0
		for i := range a.sentences {
			s := &a.sentences[i]
			if s.taken || skipped[s] {
				continue
			}
			gain := s.score
			if i > 0 && a.sentences[i-1].taken && a.sentences[i-1].hit == s.hit || i+1 < len(a.sentences) && a.sentences[i+1].taken && a.sentences[i+1].hit == s.hit {
				gain += besideShare
			}
			if gain /= float64(1 + s.hit); gain > most {
				best, most = s, gain
			}
		}
		if best == nil {
			return
		}
		if !a.take(best) {
			skipped[best] = true
		}
	}
}

// spans returns the bytes of a hit's document that were taken. Neighbours separated only by white
// space become one span.
func (a *assembly) spans(hit int) []Span {
	h := a.hits[hit]
	var spans []Span
	last := -1
	for _, s := range a.of(hit) {
		if !s.taken {
			continue
		}
		start, end := h.Chunk.Start+s.span.Start, h.Chunk.Start+s.span.End
		if n := len(spans); n > 0 && last == s.at-1 && strings.TrimSpace(h.Text[spans[n-1].End-h.Chunk.Start:s.span.Start]) == "" {
			spans[n-1].End = end
		} else {
			spans = append(spans, Span{start, end})
		}
		last = s.at
	}
	return spans
}
