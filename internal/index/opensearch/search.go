package opensearch

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/index"
)

// Search implements index.Index. The result has the changes up to Result.Sequence, without the
// documents that changed since then. If more than 10,000 eligible chunks match, and the Limit is at
// most 1,000, the hits are the best of candidates, see the package. A Limit over 100,000 counts as
// 100,000. Strings of startsWith and stringContains of over 8,000 and 4,000 bytes are assay.ErrInvalid.
func (x *Index) Search(ctx context.Context, access assay.Access, q assay.Query) (index.Result, error) {
	if err := checkQuery(q); err != nil {
		return index.Result{}, err
	}
	var result index.Result
	err := x.read(ctx, func(v *view) error {
		var err error
		result, err = x.search(ctx, v, access, q)
		return err
	})
	if err == nil && result.Sequence == 0 && !access.IsZero() {
		err = checkEmpty(q.Filter)
		result.Terms = shownTerms(analysis.QueryTerms(q.Text, nil), nil, 0)
	}
	if err != nil {
		return index.Result{}, fmt.Errorf("search: %w", err)
	}
	return result, nil
}

// checkEmpty checks a filter where there is no document.
func checkEmpty(f assay.Filter) error {
	return f.Check(func(string) []assay.ValueKind { return nil })
}

func checkQuery(q assay.Query) error {
	if q.Limit < 1 {
		return fmt.Errorf("search limit is %d, want at least 1: %w", q.Limit, assay.ErrInvalid)
	}
	return q.BM25.Check()
}

// search answers a text query from one view.
func (x *Index) search(ctx context.Context, v *view, access assay.Access, q assay.Query) (index.Result, error) {
	result := index.Result{Sequence: v.Sequence}
	if access.IsZero() {
		return result, nil
	}
	seen, err := x.look(ctx, v, access, q.Filter)
	if err != nil {
		return index.Result{}, err
	}
	result.Chunks = seen.chunks
	terms := analysis.QueryTerms(q.Text, seen.languages)
	holding, err := x.holding(ctx, v, seen, terms)
	if err != nil {
		return index.Result{}, err
	}
	result.Terms = shownTerms(terms, holding, seen.chunks)
	if !slices.ContainsFunc(holding, func(n int) bool { return n > 0 }) {
		return result, nil
	}
	filter, err := kept(seen.scope, q)
	if err != nil {
		return index.Result{}, err
	}
	if err := x.best(ctx, v, newTextQuery(seen, filter, q, terms, holding), &result); err != nil {
		return index.Result{}, err
	}
	return result, nil
}

// shownTerms returns the terms of a result. holding may be nil: no chunk has a term.
func shownTerms(terms []analysis.QueryTerm, holding []int, chunks int) []assay.Term {
	var shown []assay.Term
	for i, t := range terms {
		n := 0
		if holding != nil {
			n = holding[i]
		}
		s := assay.Term{Text: t.Text, Stem: t.Forms[0], Chunks: n, Weight: weight(chunks, n)}
		if len(t.Forms) > 1 {
			s.Forms = t.Forms[1:]
		}
		shown = append(shown, s)
	}
	return shown
}

// idf and weight are those of package index.
func idf(chunks, holding int) float64 {
	return math.Log(1 + (float64(chunks-holding)+0.5)/(float64(holding)+0.5))
}

func weight(chunks, holding int) float64 {
	const background = 100
	return idf(chunks+background, holding+1) / idf(chunks+background, 1)
}

// forms returns the forms of a term as they are stored.
func forms(t analysis.QueryTerm) []string {
	list := make([]string, len(t.Forms))
	for i, f := range t.Forms {
		list[i] = term(f)
	}
	return list
}
