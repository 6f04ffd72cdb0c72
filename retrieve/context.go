package retrieve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/sentence"
)

// An Excerpt is what of a hit a generator is given to read: the bytes of its
// document's text that the spans name, ascending and apart from one another.
type Excerpt struct {
	Hit   int // index into the hits
	Spans []Span
}

// A Span is the bytes [Start, End) of a document's text.
type Span struct{ Start, End int }

// Assemble says what of the hits, best first, goes into a prompt, within so many
// tokens: all of each where that fits, else the sentences that hold most of the
// terms' weight, the better hits' first, and what stands beside them. Left is how
// many hits nothing is left of, from the last.
//
// The excerpts come in the order to be read in: the best first, the second last,
// the third second, and so on to the middle, for models heed the beginning and
// the end.
//
// Tokens are by the chunker's count, in proportion to bytes; four bytes are one
// where a chunk has no count. Equal input gives equal output.
//
// Source of the order: Liu et al., "Lost in the Middle: How Language Models Use
// Long Contexts", TACL 2024.
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

// firstAndLast orders what comes best first as 1, 3, 5, 4, 2.
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

// tokensOf is how many tokens Text[start:end] of a hit has, rounded up.
func tokensOf(h assay.Hit, start, end int) int {
	if h.Chunk.Tokens == 0 || len(h.Text) == 0 {
		return (end - start + 3) / 4
	}
	return (h.Chunk.Tokens*(end-start) + len(h.Text) - 1) / len(h.Text)
}

// A contextSentence is a sentence that may go into a context.
type contextSentence struct {
	hit, at int // its place among the hit's sentences
	span    sentence.Span
	tokens  int
	score   float64 // share of the terms' weight that it holds, in [0, 1]
	taken   bool
}

// sentencesOf cuts a hit into sentences, each with what follows it up to the next,
// so that together they are all of it.
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

// An assembly is a context that is being put together.
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

// takeBest takes the best sentence of each hit that fits, of the better hits first.
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

// besideShare is what a sentence counts for standing beside one that was taken.
const besideShare = 0.25

// takeRest fills what is left, the sentence with the most to it each time: what it
// holds itself and a share for standing beside what was taken, both the less the
// further down its hit is.
func (a *assembly) takeRest() {
	skipped := map[*contextSentence]bool{} // that do not fit, now and later
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

// spans returns the bytes of a hit's document that were taken. Neighbours with
// nothing but blanks between them become one span.
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
