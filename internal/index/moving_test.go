package index_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// A movingSource replaces a document at each of the first left calls of Vectors.
type movingSource struct {
	*indextest.Source
	left int
}

func (s *movingSource) Vectors(ctx context.Context, model string, after int64) iter.Seq2[index.ChunkVector, error] {
	if s.left > 0 {
		s.left--
		s.Put(edition(s.left))
	}
	return s.Source.Vectors(ctx, model, after)
}

// edition returns a version of the document. All versions have the same first chunk and so the same
// vector.
func edition(n int) indextest.Entry {
	return indextest.NewEntry("c", "uri", "", "the same words", fmt.Sprint("edition ", n))
}

// TestNearestOfMovingSource checks that a document that is replaced between reading the text and
// reading the vectors is found by its vector.
func TestNearestOfMovingSource(t *testing.T) {
	t.Parallel()
	s := &movingSource{Source: indextest.NewSource("a"), left: 20}
	first := edition(s.left)
	s.Put(first)
	s.PutVectors("m", map[string][]float32{first.Chunks[0].ID: {1, 0}})
	ix := opened(t, index.OpenSmall, s, t.TempDir())
	got, err := ix.Nearest(t.Context(), assay.Local().Access(), assay.Query{Limit: 5}, index.Vector{Model: "m", Metric: index.Cosine, Values: []float32{1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	want := edition(0).Chunks[0].ID
	if len(got.Hits) != 1 || got.Hits[0].Chunk != want {
		t.Errorf("found %v, want %s", got.Hits, want)
	}
}
