package index

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
)

// k1 and b are the default parameters of BM25; a query may have others. A chunk's score for a query
// is the sum over the query's distinct terms of
//
//	idf · tf / (tf + k1 · (1 - b + b · length / average length))
//
// where tf and length are weighted sums over the fields. This is the simple form of BM25F: a word
// in the title counts as much as titleWeight words in the body.
//
// Source: Robertson, Zaragoza and Taylor, "Simple BM25 Extension to Multiple
// Weighted Fields", CIKM 2004.
const (
	k1 = 0.9
	b  = 0.4
)

// scoreUnit is the integer that represents a score of 1. A term's contribution is a whole number of
// units, so that the sum does not depend on the order in which terms are added.
const scoreUnit = 1 << 32

// A saturation computes contributions from frequencies and lengths.
type saturation struct {
	perLength float64
	fixed     float64 // part of the norm that does not depend on the length
}

// newSaturation returns the saturation for an average length, with the defaults for zero fields of p.
func newSaturation(average float64, p assay.BM25) saturation {
	p = p.Over(assay.BM25{K1: k1, B: b})
	s := saturation{fixed: p.K1 * (1 - p.B)}
	if average > 0 {
		s.perLength = p.K1 * p.B / average
	}
	if p == (assay.BM25{K1: k1, B: b}) { // products of constants are exact
		s.fixed = k1 * (1 - b)
		if average > 0 {
			s.perLength = k1 * b / average
		}
	}
	return s
}

// contribution returns the number of units that a term adds to a chunk's score. It rounds down and
// adds one, so that a chunk that holds a term has a positive score. units is the term's idf times
// scoreUnit.
func (s saturation) contribution(units float64, tf, length uint32) uint64 {
	f := float64(tf)
	norm := float64(s.perLength*float64(length)) + s.fixed
	return uint64(int64(float64(units*f)/(f+norm))) + 1
}

// A scoredTerm is a term of the query with its postings in one view. Each form of a word is a
// scoredTerm of its own, with the same idf.
type scoredTerm struct {
	postings postings
	idf      float64 // at least 0
}

// A textView is the input from one segment for a text search.
type textView struct {
	terms   []scoredTerm
	ids     []byte // 16 bytes per chunk
	lengths []byte // weighted length, a uint32 per chunk
	kept    bitset // chunks that may be found; nil: all
}

func (v *textView) chunks() uint32 { return uint32(len(v.lengths) / 4) }

// A candidate is a scored chunk of a view.
type candidate struct {
	view  int
	chunk uint32
	score uint64 // in units
}

// bestByText returns the limit best chunks over all views, best first, ties by chunk ID. It also
// returns the number of kept chunks that hold at least one of the terms, at most MaxTotal. average
// is the average weighted length of the visible chunks, and p has the parameters of the score.
func bestByText(ctx context.Context, views []textView, average float64, p assay.BM25, limit int) ([]candidate, int, error) {
	s := scorers.Get().(*scorer)
	defer scorers.Put(s)
	s.saturation, s.total = newSaturation(average, p), 0
	s.best = bestCandidates{views: views, limit: limit, heap: s.best.heap[:0]}
	err := s.searchAll(ctx, views)
	best := s.best.sorted()
	s.best.views, s.view = nil, nil // they belong to the caller
	if err != nil {
		clear(s.scores[:])
		return nil, 0, err
	}
	return best, min(s.total, MaxTotal), nil
}

// scorers is a pool of search buffers.
var scorers = sync.Pool{New: func() any { return new(scorer) }}

// maxCursors is the largest number of terms whose postings are read in parallel. A cursor takes 1.2
// KB. Questions that people write do not have more words.
const maxCursors = 256

func (s *scorer) searchAll(ctx context.Context, views []textView) error {
	for i := range views {
		v := &views[i]
		for _, t := range v.terms {
			if t.postings.chunks > v.chunks() {
				return damaged("lengths of chunks")
			}
		}
		search := s.search
		if len(v.terms) > maxCursors {
			search = s.searchOneByOne
		}
		if err := search(ctx, i, v); err != nil {
			return err
		}
	}
	return nil
}

// searchOneByOne scores all chunks of a view, term by term.
func (s *scorer) searchOneByOne(ctx context.Context, view int, v *textView) error {
	scores := make([]uint64, v.chunks())
	var list blockList
	var block block
	for _, t := range v.terms {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if list, err = t.postings.open(); err != nil {
			return err
		}
		for i := range list.blocks() {
			if err := list.read(i, &block); err != nil {
				return err
			}
			for j, chunk := range block.chunks[:block.n] {
				scores[chunk] += s.saturation.contribution(t.idf*scoreUnit, block.tf(j), u32(v.lengths, int(chunk)))
			}
		}
	}
	for chunk, score := range scores {
		if score > 0 && (v.kept == nil || v.kept.has(uint32(chunk))) {
			s.total++
			s.best.offer(candidate{view: view, chunk: uint32(chunk), score: score})
		}
	}
	return nil
}

// bestCandidates keeps the best of the candidates offered to it, in a heap with the worst at the
// root.
type bestCandidates struct {
	views []textView
	limit int
	heap  []candidate
}

// threshold returns the minimum score that a candidate needs to be among the best. A candidate with
// exactly this score may still be rejected, because ties go to the smaller ID.
func (t *bestCandidates) threshold() uint64 {
	if len(t.heap) < t.limit {
		return 1
	}
	return t.heap[0].score
}

// compare orders candidates best first, ties by chunk ID.
func (t *bestCandidates) compare(x, y candidate) int {
	if n := cmp.Compare(y.score, x.score); n != 0 {
		return n
	}
	return bytes.Compare(t.id(x), t.id(y))
}

// better reports whether x comes before y.
func (t *bestCandidates) better(x, y *candidate) bool {
	if x.score != y.score {
		return x.score > y.score
	}
	return t.compare(*x, *y) < 0
}

func (t *bestCandidates) id(c candidate) []byte { return t.views[c.view].ids[16*int(c.chunk):][:16] }

func (t *bestCandidates) offer(c candidate) {
	if len(t.heap) < t.limit {
		t.heap = append(t.heap, c)
		t.up()
	} else if t.better(&c, &t.heap[0]) {
		t.heap[0] = c
		t.down()
	}
}

// up restores the heap after the last element was added.
func (t *bestCandidates) up() {
	for i := len(t.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if t.better(&t.heap[i], &t.heap[parent]) {
			return
		}
		t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
		i = parent
	}
}

// down restores the heap after the first element was replaced.
func (t *bestCandidates) down() {
	for i, child := 0, 1; child < len(t.heap); child = 2*i + 1 {
		if child+1 < len(t.heap) && t.better(&t.heap[child], &t.heap[child+1]) {
			child++ // the worse of the two
		}
		if t.better(&t.heap[child], &t.heap[i]) {
			return
		}
		t.heap[i], t.heap[child] = t.heap[child], t.heap[i]
		i = child
	}
}

// sorted returns a copy of the kept candidates, best first.
func (t *bestCandidates) sorted() []candidate {
	slices.SortFunc(t.heap, t.compare)
	return slices.Clone(t.heap)
}
