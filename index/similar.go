package index

import (
	"context"
	"math/bits"

	"github.com/assay-rag/assay"
)

// similarities returns how similar v is to the vectors of chunks; nil where access
// sees no such chunk, or it has no vector of the model.
func (s *snapshot) similarities(ctx context.Context, access assay.Access, v Vector, chunks []string) ([]*float64, error) {
	var views []vectorView
	var rows []scoredRow
	var of []int // whose chunk each row is
	if !access.IsZero() {
		first := make([]int, len(s.views)) // of the view's sidecars among views
		seen := make([]*sight, len(s.views))
		for i, view := range s.views {
			var err error
			if seen[i], err = view.seenBy(access); err != nil {
				return nil, err
			}
			first[i] = len(views)
			for _, c := range view.of(v.Model) {
				views = append(views, vectorView{vectors: c.vectors, ids: view.segment.ids})
			}
		}
		for i, chunk := range chunks {
			raw, ok := parseID(chunk)
			if !ok {
				continue
			}
			view, row, ok := s.findChunk(raw)
			if !ok || seen[view].visible != nil && !seen[view].visible.has(row) {
				continue
			}
			for n, c := range s.views[view].of(v.Model) {
				if c.vectors.has().has(row) && !c.replaced.has(row) {
					rows = append(rows, scoredRow{view: uint32(first[view] + n), row: uint32(c.vectors.rowOf(row))})
					of = append(of, i)
				}
			}
		}
	}
	search := searches.Get().(*vectorSearch)
	defer search.end()
	if err := search.prepare(views, v); err != nil {
		return nil, err
	}
	search.rows = append(search.rows[:0], rows...)
	if err := search.rescore(ctx); err != nil {
		return nil, err
	}
	list := make([]*float64, len(chunks))
	for i, r := range search.rows {
		similarity := scoreOf(r.key)
		list[of[i]] = &similarity
	}
	return list, nil
}

// of returns the sidecars of a model.
func (v *view) of(model string) []*sidecar {
	var list []*sidecar
	for _, c := range v.sidecars {
		if c.vectors.model() == model {
			list = append(list, c)
		}
	}
	return list
}

// rowOf returns which row is that of a chunk, which has one.
func (v *vectors) rowOf(chunk uint32) int {
	word := chunk / 64
	below := v.held[word] & (1<<(chunk%64) - 1)
	return int(v.rowsBefore[word]) + bits.OnesCount64(below)
}
