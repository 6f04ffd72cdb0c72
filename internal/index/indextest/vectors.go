package indextest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// A storedVector is a vector with the sequence number of the change that stored it.
type storedVector struct {
	sequence int64
	values   []float32
}

var _ index.VectorSource = (*Source)(nil)

// says returns the text that the vector of a chunk is made from. Chunks with the same text have the
// same vector.
func says(d *assay.Document, c assay.Chunk) string {
	return d.Title + "\n" + strings.Join(c.Headings, "\n") + "\n" + d.Text[c.Start:c.End]
}

// PutVectors commits vectors of a model, by chunk ID, as one change and returns its sequence
// number. A vector belongs to the text of its chunk: every chunk with that text, now or later, has
// the vector. IDs without a current chunk are ignored.
func (s *Source) PutVectors(model string, vectors map[string][]float32) int64 {
	return s.commit(commit{Model: model, Vectors: vectors})
}

func (s *Source) applyVectors(model string, vectors map[string][]float32) {
	if len(vectors) == 0 {
		return
	}
	// Apply in a fixed order, so that of two chunks with the same text the same one always wins.
	for _, id := range slices.Sorted(maps.Keys(s.latest)) {
		change := s.latest[id]
		for _, c := range change.Chunks {
			values, ok := vectors[c.ID]
			if !ok {
				continue
			}
			if s.vectors[model] == nil {
				s.vectors[model] = make(map[string]storedVector)
			}
			s.vectors[model][says(change.Document, c)] = storedVector{s.sequence, slices.Clone(values)}
		}
	}
}

// DropModel commits the removal of a model with all its vectors as one change.
func (s *Source) DropModel(model string) int64 { return s.commit(commit{Drop: model}) }

// ReadVectors returns the number of vectors that have been yielded.
func (s *Source) ReadVectors() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readVectors
}

// Models implements index.VectorSource.
func (s *Source) Models(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.vectors)), ctx.Err()
}

// Vectors implements index.VectorSource. The vectors are yielded in the order of chunk IDs, which
// differs from all other orders. Their values are overwritten when the next vector is yielded.
func (s *Source) Vectors(ctx context.Context, model string, after int64) iter.Seq2[index.ChunkVector, error] {
	return func(yield func(index.ChunkVector, error) bool) {
		if err := s.checkDropped(model, after); err != nil {
			yield(index.ChunkVector{}, err)
			return
		}
		for i, v := range s.vectorsAfter(model, after) {
			if err := cmp.Or(ctx.Err(), s.handOutVector(i)); err != nil {
				yield(index.ChunkVector{}, err)
				return
			}
			if !yield(v, nil) {
				return
			}
			for i := range v.Values {
				v.Values[i] = float32(math.NaN())
			}
		}
	}
}

// checkDropped returns an error if vectors of a model have been dropped after a sequence number.
func (s *Source) checkDropped(model string, after int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dropped := s.dropped[model]; after > 0 && dropped > after {
		return fmt.Errorf("vectors of %s after %d: they were dropped at %d: %w", model, after, dropped, assay.ErrNotFound)
	}
	return nil
}

// handOutVector counts vector i of a call, or returns the failure.
func (s *Source) handOutVector(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failVectorsAt >= 0 && i >= s.failVectorsAt {
		return s.failure
	}
	s.readVectors++
	return nil
}

// vectorsAfter returns a snapshot of a model's vectors of current chunks whose document or vector
// was stored after a sequence number.
func (s *Source) vectorsAfter(model string, after int64) []index.ChunkVector {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []index.ChunkVector
	for _, change := range s.latest {
		for _, c := range change.Chunks {
			v, ok := s.vectors[model][says(change.Document, c)]
			if ok && max(change.Sequence, v.sequence) > after {
				list = append(list, index.ChunkVector{Chunk: c.ID, Values: slices.Clone(v.values)})
			}
		}
	}
	slices.SortFunc(list, func(a, b index.ChunkVector) int { return cmp.Compare(a.Chunk, b.Chunk) })
	return list
}

// vectorOf returns a model's vector of a chunk, or nil if there is none.
func (s *Source) vectorOf(model string, d *assay.Document, c assay.Chunk) []float32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vectors[model][says(d, c)].values
}
