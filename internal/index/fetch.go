package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/assay-rag/assay"
)

// catchUpModel returns the snapshot with all vectors that src has of a model. If src no longer has
// the model, the snapshot has none of its vectors. New sidecars are written to the fileSink.
func (s *snapshot) catchUpModel(ctx context.Context, src VectorSource, model string, batchBytes int, to *fileSink) (*snapshot, error) {
	if complete, known := s.models[model]; known && complete == s.sequence {
		return s.use(), nil
	}
	models, err := src.Models(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the models of vectors: %w", err)
	}
	if slices.Contains(models, model) {
		return s.fetchVectors(ctx, src, model, batchBytes, to)
	}
	without := s.withoutModels(func(name string) bool { return name == model })
	without.models[model] = s.sequence
	return without, nil
}

// fetchVectors returns the snapshot with all vectors of a model that src had committed up to the
// snapshot's sequence number. New sidecars are written to the fileSink.
func (s *snapshot) fetchVectors(ctx context.Context, src VectorSource, model string, batchBytes int, to *fileSink) (*snapshot, error) {
	f := &fetching{batchBytes: batchBytes, views: slices.Clone(s.views), snapshot: s, model: model, to: to}
	most := wellCentred - 1
	for _, v := range f.views {
		for _, c := range v.moved(model, nil) {
			f.dimensions = c.vectors.dimensions()
			if n := c.vectors.rows(); n > most {
				most, f.known = n, c.vectors.centre()
			}
		}
	}
	after := s.models[model]
	err := f.fetch(ctx, src, after)
	if after > 0 && (errors.Is(err, errOtherDimensions) || errors.Is(err, assay.ErrNotFound)) {
		// The model's vectors were dropped, and new ones may have been added since.
		s = s.withoutModels(func(name string) bool { return name == model })
		defer s.release()
		return s.fetchVectors(ctx, src, model, batchBytes, to)
	}
	if err != nil {
		return nil, fmt.Errorf("read vectors of %s after %d: %w", model, after, err)
	}
	models := cloneModels(s.models)
	models[model] = s.sequence
	return newSnapshot(s.sequence, models, f.views), nil
}

// A fetching is one pass over a source's vectors of a model.
type fetching struct {
	snapshot *snapshot
	views    []*view // updated as vectors arrive
	model    string
	to       *fileSink

	// batchBytes is how many bytes of vectors are collected before sidecars are made of them.
	batchBytes int

	dimensions int       // 0: not known yet
	known      []float32 // centre; nil: not known yet

	rows   []fetchedRow // collected so far
	values []float32
}

// A fetchedRow is the row whose vector begins at start in the collected values.
type fetchedRow struct {
	view  int
	row   uint32
	start int
}

// errOtherDimensions reports vectors of different dimensions. This is damage unless the earlier
// vectors were dropped from the source.
var errOtherDimensions = fmt.Errorf("vectors of different dimensions: %w", assay.ErrDamaged)

func (f *fetching) fetch(ctx context.Context, src VectorSource, after int64) error {
	for v, err := range src.Vectors(ctx, f.model, after) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		f.dimensions = cmp.Or(f.dimensions, len(v.Values))
		if len(v.Values) == 0 || len(v.Values) != f.dimensions {
			return fmt.Errorf("chunk %s has one of %d, others have %d: %w", v.Chunk, len(v.Values), f.dimensions, errOtherDimensions)
		}
		id, ok := parseID(v.Chunk)
		if !ok {
			continue // never indexed
		}
		view, row, ok := f.snapshot.findChunk(id)
		if !ok {
			continue // not searched, not indexed yet, or deleted
		}
		f.rows = append(f.rows, fetchedRow{view, row, len(f.values)})
		f.values = append(f.values, v.Values...)
		if 4*len(f.values) >= f.batchBytes {
			if err := f.cut(ctx); err != nil {
				return err
			}
		}
	}
	return f.cut(ctx)
}

// cut makes sidecars of the collected vectors.
func (f *fetching) cut(ctx context.Context) error {
	if len(f.rows) == 0 {
		return nil
	}
	if f.known == nil {
		var m centroid
		for _, r := range f.rows {
			m.add(f.values[r.start : r.start+f.dimensions])
		}
		f.known = m.centre(f.dimensions)
	}
	for rows := range f.byView() {
		v := f.views[rows[0].view]
		c, err := makeSidecar(f.to, v.segment, f.model, f.dimensions, f.known, func(w *vectorsWriter) error {
			for _, r := range rows {
				if err := w.add(r.row, f.values[r.start:r.start+f.dimensions]); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		if v, err = v.addSidecar(c).joinSmall(ctx, f.model, f.to); err != nil {
			return err
		}
		f.views[rows[0].view] = v
	}
	f.rows, f.values = f.rows[:0], f.values[:0]
	return nil
}

// byView yields the collected rows grouped by view, in ascending order. If a row occurs more than
// once, the last one wins.
func (f *fetching) byView() iter.Seq[[]fetchedRow] {
	return func(yield func([]fetchedRow) bool) {
		slices.SortStableFunc(f.rows, func(a, b fetchedRow) int {
			return cmp.Or(cmp.Compare(a.view, b.view), cmp.Compare(a.row, b.row))
		})
		for i := 0; i < len(f.rows); {
			var rows []fetchedRow
			for view := f.rows[i].view; i < len(f.rows) && f.rows[i].view == view; i++ {
				if n := len(rows); n > 0 && rows[n-1].row == f.rows[i].row {
					rows[n-1] = f.rows[i]
				} else {
					rows = append(rows, f.rows[i])
				}
			}
			if !yield(rows) {
				return
			}
		}
	}
}

// joinSmall joins the last two sidecars of a model until the one before the last is more than twice
// as large as the last. Vectors that arrive in small batches are then rewritten about log₃ n times
// each and are stored in about as many sidecars.
func (v *view) joinSmall(ctx context.Context, model string, to *fileSink) (*view, error) {
	for {
		parts := v.moved(model, nil)
		n := len(parts)
		if n < 2 || parts[n-2].vectors.rows() > 2*parts[n-1].vectors.rows() {
			return v, nil
		}
		joined, err := joinSidecars(ctx, parts[n-2:], v.segment, to)
		if err != nil {
			return nil, err
		}
		rest := slices.DeleteFunc(slices.Clone(v.sidecars), func(c *sidecar) bool { return c == parts[n-2].sidecar || c == parts[n-1].sidecar })
		if v = v.withSidecars(rest); joined != nil {
			v = v.withSidecars(append(rest, joined))
		}
	}
}

// withoutModels returns the snapshot without the vectors of the models for which drop returns true.
func (s *snapshot) withoutModels(drop func(model string) bool) *snapshot {
	models := cloneModels(s.models)
	maps.DeleteFunc(models, func(name string, _ int64) bool { return drop(name) })
	views := slices.Clone(s.views)
	for i, v := range views {
		views[i] = v.withoutModels(drop)
	}
	return newSnapshot(s.sequence, models, views)
}

func cloneModels(models map[string]int64) map[string]int64 {
	clone := make(map[string]int64, len(models)+1)
	maps.Copy(clone, models)
	return clone
}
