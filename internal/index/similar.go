package index

import (
	"context"
	"math/bits"

	"github.com/assay-rag/assay"
)

// similarities returns the similarity of v to the vectors of chunks. An element is nil if access
// cannot see the chunk or the chunk has no vector of the model.
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

// vectorsOf returns the vectors of chunks. An element is nil if that of similarities is nil.
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

// knownVectors locates the vectors of a list of chunks.
type knownVectors struct {
	views []vectorView // all views of the model
	rows  []scoredRow  // rows of the chunks that have a vector
	of    []int        // index of each row's chunk in the list
}

// known finds the vectors of the chunks that are visible to access.
func (s *snapshot) known(access assay.Access, model string, chunks []string) (knownVectors, error) {
	var k knownVectors
	if access.IsZero() {
		return k, nil
	}
	first := make([]int, len(s.views)) // index of the view's first sidecar in k.views
	seen := make([]*visibility, len(s.views))
	for i, view := range s.views {
		var err error
		if seen[i], err = view.visibleTo(access); err != nil {
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

// rowOf returns the row of a chunk. The chunk must have a row.
func (v *vectors) rowOf(chunk uint32) int {
	word := chunk / 64
	below := v.held[word] & (1<<(chunk%64) - 1)
	return int(v.rowsBefore[word]) + bits.OnesCount64(below)
}
