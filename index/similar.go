package index

import (
	"context"
	"math/bits"

	"github.com/assay-rag/assay"
)

// similarities returns how similar v is to the vectors of chunks; nil where access
// sees no such chunk, or it has no vector of the model.
func (s *snapshot) similarities(ctx context.Context, access assay.Access, v Vector, chunks []string) ([]*float64, error) {
	known, err := s.known(access, v.Model, chunks)
	if err != nil {
		return nil, err
	}
	search := searches.Get().(*vectorSearch)
	defer search.end()
	if err := search.prepare(known.views, v); err != nil {
		return nil, err
	}
	search.rows = append(search.rows[:0], known.rows...)
	if err := search.rescore(ctx); err != nil {
		return nil, err
	}
	list := make([]*float64, len(chunks))
	for i, r := range search.rows {
		similarity := scoreOf(r.key)
		list[known.of[i]] = &similarity
	}
	return list, nil
}

// vectorsOf returns the vectors of chunks; nil where similarities has none.
func (s *snapshot) vectorsOf(access assay.Access, model string, chunks []string) ([][]float32, error) {
	known, err := s.known(access, model, chunks)
	if err != nil {
		return nil, err
	}
	list := make([][]float32, len(chunks))
	for i, r := range known.rows {
		list[known.of[i]] = known.views[r.view].vectors.values(int(r.row), nil)
	}
	return list, nil
}

// knownVectors says where the vectors of some chunks are.
type knownVectors struct {
	views []vectorView // all of the model's
	rows  []scoredRow  // of those chunks that have one
	of    []int        // which chunk each row is of
}

// known finds the vectors of the chunks that access sees.
func (s *snapshot) known(access assay.Access, model string, chunks []string) (knownVectors, error) {
	var k knownVectors
	if access.IsZero() {
		return k, nil
	}
	first := make([]int, len(s.views)) // of the view's sidecars among k.views
	seen := make([]*sight, len(s.views))
	for i, view := range s.views {
		var err error
		if seen[i], err = view.seenBy(access); err != nil {
			return k, err
		}
		first[i] = len(k.views)
		for _, c := range view.of(model) {
			k.views = append(k.views, vectorView{vectors: c.vectors, ids: view.segment.ids})
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
		for n, c := range s.views[view].of(model) {
			if c.vectors.has().has(row) && !c.replaced.has(row) {
				k.rows = append(k.rows, scoredRow{view: uint32(first[view] + n), row: uint32(c.vectors.rowOf(row))})
				k.of = append(k.of, i)
			}
		}
	}
	return k, nil
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
