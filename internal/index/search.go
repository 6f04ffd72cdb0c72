package index

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// Weights of the fields. They were chosen on the sets of testdata/quality.txt. There a title weight
// of 3 is better than a weight of 1 on six of seven sets (hotpotqa-train100 0.787 to 0.806,
// scifact-train 0.700 to 0.703), and 4 is little better than 3. No set has headings, except that
// the titles of anthropic-docs contain them. Counting a term more than once if the query repeats
// it, or normalising lengths by field, is worse or no better on these sets.
const (
	titleWeight    = 3
	headingsWeight = 3
	bodyWeight     = 1
)

// idf returns ln(1 + (N - n + 0.5) / (n + 0.5)) for a term in n of N chunks.
func idf(chunks, holding int) float64 {
	return math.Log(1 + (float64(chunks-holding)+0.5)/(float64(holding)+0.5))
}

// weight scales idf to (0, 1]. It is 1 for a term that no chunk holds and decreases with the number
// of chunks that do. It adds a background of chunks, of which one holds the term, so that a term
// shared by a handful of documents in a small index does not count as common.
func weight(chunks, holding int) float64 {
	const background = 100
	return idf(chunks+background, holding+1) / idf(chunks+background, 1)
}

func checkQuery(q assay.Query) error {
	if q.Limit < 1 {
		return fmt.Errorf("search limit is %d, want at least 1: %w", q.Limit, assay.ErrInvalid)
	}
	return q.BM25.Check()
}

// A query is one search of a snapshot. It has the visible rows of each view and the rows that the
// search may find.
type query struct {
	views  []*view
	seen   []*visibility
	kept   []bitset // rows; nil: all of the view
	chunks int      // number of visible chunks
	total  uint64   // sum of their lengths
}

// prepare determines the rows that a search may see and find. Invisible rows count no more than
// deleted ones. So the counts and scores of the results, and the keys that a filter may name,
// reveal nothing about them.
func (s *snapshot) prepare(access assay.Access, q assay.Query) (*query, error) {
	p := &query{views: s.views}
	for _, v := range s.views {
		seen, err := v.visibleTo(access)
		if err != nil {
			return nil, err
		}
		p.seen = append(p.seen, seen)
		p.chunks += seen.chunks
		p.total += seen.total
	}
	if err := p.checkFilter(q.Filter); err != nil {
		return nil, err
	}
	for i, v := range s.views {
		kept, err := v.keep(q, p.seen[i])
		if err != nil {
			return nil, err
		}
		p.kept = append(p.kept, kept)
	}
	return p, nil
}

// checkFilter returns the error documented by Index.Search for a filter with a key that no visible
// document has, or that visible documents have only with other kinds of values.
func (p *query) checkFilter(f assay.Filter) error {
	var failed error
	err := f.Check(func(key string) []assay.ValueKind {
		all := kindSet(0)
		for i, v := range p.views {
			kinds, err := v.kindsOf(key, p.seen[i])
			failed = cmp.Or(failed, err)
			all |= kinds
		}
		return all.list()
	})
	return cmp.Or(failed, err)
}

// keep returns the rows of v that a search may find: those that are visible, in the query's
// collections and kept by its filter. It returns nil if these are all rows.
func (v *view) keep(q assay.Query, seen *visibility) (bitset, error) {
	kept, err := v.segment.filters.keep(q.Filter)
	if err != nil {
		return nil, err
	}
	collected, err := v.segment.filters.inCollections(q.Collections)
	if err != nil {
		return nil, err
	}
	for _, set := range []bitset{collected, seen.visible} {
		if kept == nil {
			kept = set
		} else if set != nil {
			kept.and(set)
		}
	}
	return kept, nil
}

// A queryTerm is a term of the query with the postings of its forms in each view.
type queryTerm struct {
	text   string
	forms  []string     // the first is shown
	lists  [][]postings // for each view, the postings of the forms that it holds
	chunks int          // visible chunks that hold any form
}

// search answers a text query from one snapshot.
func (s *snapshot) search(ctx context.Context, access assay.Access, q assay.Query) (Result, error) {
	result := Result{Sequence: s.sequence}
	if access.IsZero() {
		return result, nil
	}
	p, err := s.prepare(access, q)
	if err != nil {
		return Result{}, err
	}
	terms, err := p.terms(q.Text)
	if err != nil {
		return Result{}, err
	}
	result.Chunks = p.chunks
	views := make([]textView, len(p.views))
	for i, v := range p.views {
		views[i] = textView{ids: v.segment.ids, lengths: v.segment.lengths, kept: p.kept[i]}
	}
	for _, t := range terms {
		shown := assay.Term{Text: t.text, Stem: t.forms[0], Chunks: t.chunks, Weight: weight(p.chunks, t.chunks)}
		if len(t.forms) > 1 {
			shown.Forms = t.forms[1:]
		}
		result.Terms = append(result.Terms, shown)
		if t.chunks == 0 {
			continue // all its chunks are invisible
		}
		for i, lists := range t.lists {
			for _, list := range lists {
				views[i].terms = append(views[i].terms, scoredTerm{postings: list, idf: idf(p.chunks, t.chunks)})
			}
		}
	}
	average := 0.0
	if p.chunks > 0 {
		average = float64(p.total) / float64(p.chunks)
	}
	found, total, err := bestByText(ctx, views, average, q.BM25, q.Limit)
	if err != nil {
		return Result{}, err
	}
	result.Total = total
	result.Hits, err = p.textHits(found, terms)
	return result, err
}

// terms returns the query's distinct terms with their postings.
func (p *query) terms(text string) ([]queryTerm, error) {
	var languages [][]string
	for _, seen := range p.seen {
		languages = append(languages, seen.languages)
	}
	var terms []queryTerm
	for _, t := range analysis.QueryTerms(text, union(languages...)) {
		term := queryTerm{text: t.Text, forms: t.Forms, lists: make([][]postings, len(p.views))}
		for i, v := range p.views {
			for _, form := range t.Forms {
				list, err := v.segment.dictionary.lookup(form)
				if err != nil {
					return nil, err
				}
				if list.count > 0 {
					term.lists[i] = append(term.lists[i], list)
				}
			}
			n, err := p.seen[i].holdingAny(term.lists[i], v.segment.rows)
			if err != nil {
				return nil, err
			}
			term.chunks += n
		}
		terms = append(terms, term)
	}
	return terms, nil
}

// holdingAny returns the number of visible chunks that are in any of the lists.
func (seen *visibility) holdingAny(lists []postings, rows int) (int, error) {
	switch len(lists) {
	case 0:
		return 0, nil
	case 1:
		return seen.countVisible(lists[0])
	}
	any := newBitset(rows)
	for _, list := range lists {
		if err := list.addTo(any); err != nil {
			return 0, err
		}
	}
	if seen.visible != nil {
		any.and(seen.visible)
	}
	return any.count(), nil
}

// textHits converts candidates to hits, with their IDs and matched terms.
func (p *query) textHits(found []candidate, terms []queryTerm) ([]Hit, error) {
	hits := make([]Hit, len(found))
	held := make([]bool, len(found)*len(terms)) // by hit and term
	byView := make([][]int, len(p.views))       // indices of the view's hits
	for i, c := range found {
		var err error
		if hits[i], err = p.hit(c.view, c.chunk); err != nil {
			return nil, err
		}
		hits[i].BM25 = float64(c.score) / scoreUnit
		byView[c.view] = append(byView[c.view], i)
	}
	for view, list := range byView {
		if len(list) == 0 {
			continue
		}
		slices.SortFunc(list, func(i, j int) int { return cmp.Compare(found[i].chunk, found[j].chunk) })
		rows := make([]uint32, len(list))
		for i, hit := range list {
			rows[i] = found[hit].chunk
		}
		for n, t := range terms {
			for _, postings := range t.lists[view] {
				if err := postings.among(rows, func(i int) { held[list[i]*len(terms)+n] = true }); err != nil {
					return nil, err
				}
			}
		}
	}
	for i := range hits {
		for n, holds := range held[i*len(terms) : (i+1)*len(terms)] {
			if holds {
				hits[i].Matched = append(hits[i].Matched, terms[n].forms[0])
			}
		}
	}
	return hits, nil
}

// hit returns the hit for a row, without scores.
func (p *query) hit(view int, row uint32) (Hit, error) {
	s := p.views[view].segment
	n, err := s.documentOf(row)
	if err != nil {
		return Hit{}, err
	}
	const size = 2 * idBytes // hexadecimal digits of an ID
	var digits [3 * size]byte
	hex.Encode(digits[:], id(s.ids, row))
	hex.Encode(digits[size:], s.document(n)[:2*idBytes]) // document ID and version
	all := string(digits[:])
	return Hit{Chunk: all[:size], Document: all[size : 2*size], Version: all[2*size:]}, nil
}

// nearest answers a vector query from one snapshot.
func (s *snapshot) nearest(ctx context.Context, access assay.Access, q assay.Query, v Vector) (Result, error) {
	result := Result{Sequence: s.sequence, Index: assay.IndexVersion{Model: v.Model}}
	if access.IsZero() {
		_, _, err := nearest(ctx, nil, v, q.Limit) // checks v
		return result, err
	}
	p, err := s.prepare(access, q)
	if err != nil {
		return Result{}, err
	}
	result.Chunks = p.chunks
	var views []vectorView
	var from []int // index of each view in p.views
	covered := 0
	for i, view := range p.views {
		for _, c := range view.sidecars {
			if c.vectors.model() != v.Model {
				continue
			}
			covered += c.covered(p.seen[i])
			views = append(views, vectorView{vectors: c.vectors, ids: view.segment.ids, kept: c.live(p.kept[i])})
			from = append(from, i)
		}
	}
	if p.chunks > 0 {
		result.Index.Coverage = float64(covered) / float64(p.chunks)
	}
	found, total, err := nearest(ctx, views, v, q.Limit)
	if err != nil {
		return Result{}, err
	}
	result.Total = total
	for _, n := range found {
		hit, err := p.hit(from[n.view], n.chunk)
		if err != nil {
			return Result{}, err
		}
		hit.Similarity = n.similarity
		result.Hits = append(result.Hits, hit)
	}
	return result, nil
}

// covered returns the number of visible chunks that have a live vector in c.
func (c *sidecar) covered(seen *visibility) int {
	n := 0
	for i, word := range c.vectors.has() {
		if seen.visible != nil {
			word &= seen.visible[i]
		}
		if c.replaced != nil {
			word &^= c.replaced[i]
		}
		n += bits.OnesCount64(word)
	}
	return n
}

// live returns the kept rows (nil: all) whose vector in c is not replaced.
func (c *sidecar) live(kept bitset) bitset {
	if c.replaced == nil {
		return kept
	}
	live := newBitset(64 * len(c.replaced))
	if kept == nil {
		copy(live, c.vectors.has())
	} else {
		copy(live, kept)
	}
	live.andNot(c.replaced)
	return live
}
