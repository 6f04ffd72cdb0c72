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

// Weights of the fields, chosen on the sets of testdata/quality.txt, where a title
// that counts three times as much as the body is better on six of seven than one
// that counts as much (hotpotqa-train100 0.787 to 0.806, scifact-train 0.700 to
// 0.703), and 4 little better than 3. No set has headings; those of anthropic-docs
// stand in its titles. Counting a term that a query repeats more than once, or
// normalising lengths by field, is worse or no better there.
const (
	titleWeight    = 3
	headingsWeight = 3
	bodyWeight     = 1
)

// idf is ln(1 + (N - n + 0.5) / (n + 0.5)) for a term in n of N chunks.
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

func checkQuery(q assay.Query) error {
	if q.Limit < 1 {
		return fmt.Errorf("search limit is %d, want at least 1: %w", q.Limit, assay.ErrInvalid)
	}
	return nil
}

// A query is one search of a snapshot: what its access sees of each view, and
// what of that the search may find.
type query struct {
	views  []*view
	seen   []*sight
	kept   []bitset // rows; nil: all of the view
	chunks int      // that access sees
	total  uint64   // sum of their lengths
}

// prepare finds out what a search may see and find. What access does not see
// counts no more than what was deleted: so neither the counts and scores of what is
// found nor the keys that a filter may name tell of it.
func (s *snapshot) prepare(access assay.Access, q assay.Query) (*query, error) {
	p := &query{views: s.views}
	for _, v := range s.views {
		seen, err := v.seenBy(access)
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

// checkFilter returns the error that Index.Search names for a filter whose keys
// no document in sight has, or has with other kinds of values only.
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

// keep returns the rows of v that a search may find: in sight, in the query's
// collections, kept by its filter. It returns nil where that is all of them.
func (v *view) keep(q assay.Query, seen *sight) (bitset, error) {
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

// A queryTerm is a term of the query with its postings in each view, by form.
type queryTerm struct {
	text   string
	forms  []string     // the first is shown
	lists  [][]postings // of each view those of the forms that it holds
	chunks int          // in sight that hold any form
}

// search answers a query by text from one snapshot.
func (s *snapshot) search(ctx context.Context, access assay.Access, q assay.Query) (Result, error) {
	result := Result{Index: assay.IndexVersion{Sequence: s.sequence}}
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
			continue // whatever it has is out of sight
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
	found, total, err := bestByText(ctx, views, average, q.Limit)
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

// holdingAny returns how many chunks in sight are in any of some lists.
func (seen *sight) holdingAny(lists []postings, rows int) (int, error) {
	switch len(lists) {
	case 0:
		return 0, nil
	case 1:
		return seen.holding(lists[0])
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

// textHits completes candidates: their IDs and which terms they hold.
func (p *query) textHits(found []candidate, terms []queryTerm) ([]Hit, error) {
	hits := make([]Hit, len(found))
	held := make([]bool, len(found)*len(terms)) // for each hit, by term
	byView := make([][]int, len(p.views))       // the view's hits
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

// hit returns what the index knows of a chunk.
func (p *query) hit(view int, row uint32) (Hit, error) {
	s := p.views[view].segment
	n, err := s.documentOf(row)
	if err != nil {
		return Hit{}, err
	}
	const size = 2 * idBytes // in digits
	var digits [3 * size]byte
	hex.Encode(digits[:], id(s.ids, row))
	hex.Encode(digits[size:], s.document(n)[:2*idBytes]) // and its version
	all := string(digits[:])
	return Hit{Chunk: all[:size], Document: all[size : 2*size], Version: all[2*size:]}, nil
}

// nearest answers a query by vector from one snapshot.
func (s *snapshot) nearest(ctx context.Context, access assay.Access, q assay.Query, v Vector) (Result, error) {
	result := Result{Index: assay.IndexVersion{Sequence: s.sequence, Model: v.Model}}
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
	var from []int // whose view each is
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

// covered returns how many chunks in sight have a vector in c.
func (c *sidecar) covered(seen *sight) int {
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

// live returns those of the kept rows (nil: all) whose vector in c counts.
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
