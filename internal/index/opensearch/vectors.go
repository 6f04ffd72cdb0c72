package opensearch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// vectors writes the vectors of all models that the index lacks, and forgets models that the source
// no longer has.
func (w *writer) vectors(ctx context.Context) error {
	source, ok := w.x.source.(index.VectorSource)
	if !ok {
		return nil
	}
	models, err := source.Models(ctx)
	if err != nil {
		return err
	}
	for name, m := range w.st.Models {
		if !slices.Contains(models, name) {
			w.forget(name, m)
		}
	}
	for _, name := range models {
		if w.next.Models[name].Sequence == w.next.Sequence {
			continue
		}
		err := w.model(ctx, source, name)
		if errors.Is(err, assay.ErrNotFound) && w.next.Models[name].Sequence > 0 { // vectors were dropped
			w.forget(name, w.next.Models[name])
			err = w.model(ctx, source, name)
		}
		if err != nil {
			return fmt.Errorf("vectors of %s: %w", name, err)
		}
	}
	return nil
}

// forget removes a model with its rows.
func (w *writer) forget(name string, m modelState) {
	delete(w.next.Models, name)
	if m.Field != "" {
		w.replaced.Fields = append(w.replaced.Fields, m.Field)
	}
}

// equalNorms is how far norms may differ, relative to the first, to count as equal.
const equalNorms = 1e-5

// model writes the vectors of one model.
func (w *writer) model(ctx context.Context, source index.VectorSource, name string) error {
	m := w.next.Models[name]
	before := m.Field != "" // there may be vectors of chunks that get another one
	var batch []assay.ChunkVector
	for v, err := range source.Vectors(ctx, name, m.Sequence) {
		if err != nil {
			return err
		}
		if m.Field == "" {
			m = modelState{Dimensions: len(v.Values), Norm: norm(v.Values), Equal: true, Sequence: m.Sequence}
			if err := w.addField(ctx, &m); err != nil {
				return err
			}
		}
		if err := m.check(v); err != nil {
			return err
		}
		m.Equal = m.Equal && math.Abs(norm(v.Values)-m.Norm) <= equalNorms*m.Norm
		batch = append(batch, assay.ChunkVector{Chunk: v.Chunk, Values: slices.Clone(v.Values)})
		if len(batch) < maxLookup {
			continue
		}
		if err := w.add(ctx, m, batch, before); err != nil {
			return err
		}
		batch = batch[:0]
	}
	if err := w.add(ctx, m, batch, before); err != nil {
		return err
	}
	m.Sequence = w.next.Sequence
	w.next.Models[name] = m
	return nil
}

// check returns an error if the vector cannot be one of the model.
func (m *modelState) check(v assay.ChunkVector) error {
	if len(v.Values) != m.Dimensions {
		return fmt.Errorf("chunk %s has a vector of %d dimensions, others have %d: %w", v.Chunk, len(v.Values), m.Dimensions, assay.ErrDamaged)
	}
	for _, n := range v.Values {
		if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
			return fmt.Errorf("chunk %s has a vector with the value %v: %w", v.Chunk, n, assay.ErrDamaged)
		}
	}
	return nil
}

// addField adds a field for the vectors of a model to the index.
func (w *writer) addField(ctx context.Context, m *modelState) error {
	if m.Dimensions == 0 || m.Dimensions > assay.MaxDimensions {
		return fmt.Errorf("a vector has %d dimensions: %w", m.Dimensions, assay.ErrDamaged)
	}
	// The number of the claim is never used again, even if this claim is not committed.
	m.Field = fmt.Sprintf("%s%d_%d", fieldPrefix, w.next.Claim, w.next.Fields)
	w.next.Fields++
	err := w.x.cluster.do(ctx, http.MethodPut, "/"+w.st.index+"/_mapping", vectorMapping(m.Field, m.Dimensions), nil)
	if err != nil {
		return fmt.Errorf("add a field of vectors: %w", err)
	}
	return nil
}

// add adds the rows of vectors. The parts that filters need are those of the rows of their chunks.
// Vectors of chunks that are not searched are left out. If before is true, the chunks may have a
// vector already.
func (w *writer) add(ctx context.Context, m modelState, batch []assay.ChunkVector, before bool) error {
	if len(batch) == 0 {
		return nil
	}
	values := make(map[string][]float32, len(batch))
	chunks, owners := make([]string, len(batch)), make([]string, len(batch))
	for i, v := range batch {
		values[v.Chunk], chunks[i], owners[i] = v.Values, v.Chunk, owner(m.Field, v.Chunk)
	}
	query := all(termQuery("kind", kindText), termsQuery("chunk", chunks))
	if before {
		query = anyOf(query, termsQuery("owner", owners))
	}
	rows, err := w.x.rows(ctx, w.st, all(w.st.current(), query), 2*len(batch), "*")
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Kind == kindVector {
			w.replaced.Owners = append(w.replaced.Owners, r.Owner)
			continue
		}
		v := values[r.Chunk]
		r.Kind, r.Claim, r.Language, r.Length = kindVector, w.next.Claim, "", 0
		r.Entities, r.Titles = nil, nil
		r.Field, r.Owner, r.Norm, r.Raw = m.Field, owner(m.Field, r.Chunk), norm(v), pack(v)
		r.unit = unit(v, r.Norm)
		if err := w.bulk.add(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
