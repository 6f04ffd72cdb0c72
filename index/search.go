package index

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// A chunk's score for a query is the sum over the query's distinct terms of
//
//	idf · tf / (tf + k1 · (1 - b + b · length / average length))
//
// where tf and length are sums over the fields, weighted by fieldWeights, and
// idf = ln(1 + (N - n + 0.5) / (n + 0.5)) for a term in n of N chunks. This is
// BM25F in its simple form: a word in the title counts as so many in the body.
//
// Source: Robertson, Zaragoza and Taylor, "Simple BM25 Extension to Multiple
// Weighted Fields", CIKM 2004.
const (
	k1 = 0.9
	b  = 0.4
)

// fieldWeights are chosen on the sets of testdata/quality.txt, where a title
// that counts three times as much as the body is better on six of seven than
// one that counts as much (hotpotqa-train100 0.787 to 0.806, scifact-train 0.700
// to 0.703), and 4 little better than 3. No set has headings; those of
// anthropic-docs stand in its titles. Counting a term that a query repeats more
// than once, or normalising lengths by field, is worse or no better there.
var fieldWeights = [fields]float64{titleField: 3, headingsField: 3, bodyField: 1}

func idf(chunks, holding int) float64 {
	return math.Log(1 + (float64(chunks-holding)+0.5)/(float64(holding)+0.5))
}

// weight scales idf to (0, 1]: 1 for a term that no chunk holds, less the more
// do. It counts in a background of some chunks that hold none of the index's
// words but one each: what a handful of documents share is no commonplace yet.
func weight(chunks, holding int) float64 {
	const background = 100
	return idf(chunks+background, holding+1) / idf(chunks+background, 1)
}

// A queryTerm is a term of the query with its postings in each view.
type queryTerm struct {
	text, stem string
	postings   []postings
	chunks     int // live chunks that hold it
}

// search answers a query from one snapshot.
func (s *snapshot) search(ctx context.Context, access assay.Access, q assay.Query) (Result, error) {
	if access.IsZero() {
		return Result{Index: assay.IndexVersion{Sequence: s.sequence}}, nil
	}
	s = s.seenBy(access)
	result := Result{Chunks: s.chunks, Index: assay.IndexVersion{Sequence: s.sequence}}
	if err := s.checkFilter(q.Filter); err != nil {
		return Result{}, err
	}
	terms, err := s.terms(q.Text)
	if err != nil {
		return Result{}, err
	}
	for _, t := range terms {
		result.Terms = append(result.Terms, assay.Term{Text: t.text, Stem: t.stem, Chunks: t.chunks, Weight: weight(s.chunks, t.chunks)})
	}
	best := topHits{limit: q.Limit}
	for i, v := range s.views {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		kept, err := v.kept(q)
		if err != nil {
			return Result{}, err
		}
		total, err := s.score(i, terms, kept, &best)
		if err != nil {
			return Result{}, err
		}
		result.Total += total
	}
	result.Hits, err = s.hits(best.sorted(), terms)
	return result, err
}

// terms returns the query's distinct terms with their postings.
func (s *snapshot) terms(query string) ([]queryTerm, error) {
	var terms []queryTerm
	known := make(map[string]struct{})
	for _, t := range analysis.Tokens(query, "") {
		if _, ok := known[t.Term]; ok {
			continue
		}
		known[t.Term] = struct{}{}
		term := queryTerm{text: query[t.Start:t.End], stem: t.Term, postings: make([]postings, len(s.views))}
		for i, v := range s.views {
			p := v.segment.lookup(t.Term)
			term.postings[i] = p
			live, err := v.live(p)
			if err != nil {
				return nil, err
			}
			term.chunks += live
		}
		terms = append(terms, term)
	}
	return terms, nil
}

// live counts the postings whose document is not deleted.
func (v view) live(p postings) (int, error) {
	if v.deleted == nil {
		return p.count, nil
	}
	n := 0
	ok := p.each(func(x posting) {
		if !v.deleted.has(v.segment.chunkDocument(x.chunk)) {
			n++
		}
	})
	if !ok {
		return 0, damaged("postings")
	}
	return n, nil
}

// score scores the kept chunks (nil: all) of the i-th view and offers them to
// best. It returns how many there were with at least one term.
func (s *snapshot) score(i int, terms []queryTerm, kept bitset, best *topHits) (int, error) {
	segment := s.views[i].segment
	scores := make([]float64, segment.chunkCount)
	var found []uint32
	perLength := 0.0 // k1·b / average length
	if average := s.averageLength(); average > 0 {
		perLength = k1 * b / average
	}
	for _, t := range terms {
		if t.chunks == 0 {
			continue
		}
		idf := idf(s.chunks, t.chunks)
		ok := t.postings[i].each(func(p posting) {
			if kept != nil && !kept.has(p.chunk) {
				return
			}
			if scores[p.chunk] == 0 {
				found = append(found, p.chunk)
			}
			tf := 0.0
			for f, n := range p.tf {
				tf += fieldWeights[f] * float64(n)
			}
			scores[p.chunk] += idf * tf / (tf + k1*(1-b) + perLength*float64(segment.lengths[p.chunk]))
		})
		if !ok {
			return 0, damaged("postings of " + t.stem)
		}
	}
	for _, chunk := range found {
		best.offer(candidate{segment: segment, view: i, chunk: chunk, score: scores[chunk]})
	}
	return len(found), nil
}

func (s *snapshot) averageLength() float64 {
	if s.chunks == 0 {
		return 0
	}
	sum := 0.0
	for f, n := range s.total {
		sum += fieldWeights[f] * float64(n)
	}
	return sum / float64(s.chunks)
}

// hits completes the candidates: their IDs and which terms they hold.
func (s *snapshot) hits(found []candidate, terms []queryTerm) ([]Hit, error) {
	hits := make([]Hit, len(found))
	byView := make([][]int, len(s.views)) // the view's hits
	for i, c := range found {
		document := c.segment.chunkDocument(c.chunk)
		hits[i] = Hit{
			Chunk:    c.id(),
			Document: c.segment.documentID(document),
			Version:  c.segment.documentVersion(document),
			BM25:     c.score,
		}
		byView[c.view] = append(byView[c.view], i)
	}
	for view, list := range byView {
		if len(list) == 0 {
			continue
		}
		slices.SortFunc(list, func(i, j int) int { return cmp.Compare(found[i].chunk, found[j].chunk) })
		for _, t := range terms {
			rest := list // those whose chunk is still to come
			ok := t.postings[view].each(func(p posting) {
				for len(rest) > 0 && found[rest[0]].chunk < p.chunk {
					rest = rest[1:]
				}
				if len(rest) > 0 && found[rest[0]].chunk == p.chunk {
					hits[rest[0]].Matched = append(hits[rest[0]].Matched, t.stem)
				}
			})
			if !ok {
				return nil, damaged("postings of " + t.stem)
			}
		}
	}
	return hits, nil
}

// A candidate is a scored chunk.
type candidate struct {
	segment *segment
	view    int
	chunk   uint32
	score   float64
}

func (c candidate) id() string { return c.segment.chunkID(c.chunk) }

// compare orders candidates best first, ties by chunk ID.
func (c candidate) compare(o candidate) int {
	if n := cmp.Compare(o.score, c.score); n != 0 {
		return n
	}
	return cmp.Compare(c.id(), o.id())
}

// topHits keeps the best candidates; the worst of them is first in the heap.
type topHits struct {
	limit int
	heap  []candidate
}

func (t *topHits) Len() int           { return len(t.heap) }
func (t *topHits) Less(i, j int) bool { return t.heap[i].compare(t.heap[j]) > 0 }
func (t *topHits) Swap(i, j int)      { t.heap[i], t.heap[j] = t.heap[j], t.heap[i] }
func (t *topHits) Push(x any)         { t.heap = append(t.heap, x.(candidate)) }
func (t *topHits) Pop() any {
	last := t.heap[len(t.heap)-1]
	t.heap = t.heap[:len(t.heap)-1]
	return last
}

func (t *topHits) offer(c candidate) {
	switch {
	case len(t.heap) < t.limit:
		heap.Push(t, c)
	case c.compare(t.heap[0]) < 0:
		t.heap[0] = c
		heap.Fix(t, 0)
	}
}

// sorted returns what was kept, best first.
func (t *topHits) sorted() []candidate {
	slices.SortFunc(t.heap, candidate.compare)
	return t.heap
}

func checkQuery(q assay.Query) error {
	if q.Limit < 1 {
		return fmt.Errorf("search limit is %d, want at least 1: %w", q.Limit, assay.ErrInvalid)
	}
	return nil
}
