package pgvector

import (
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest/quality"
	"github.com/assay-rag/assay/provider/embedded"
)

// TestQuality compares searches on labelled sets with those of package index, also with an HNSW index
// for fewer vectors than usual.
func TestQuality(t *testing.T) {
	approximate := defaultSettings
	approximate.exact = 100
	quality.Run(t,
		quality.Engine{Name: "pgvector", Open: qualityOpener(defaultSettings), SameText: true, Overlap: 0.98},
		quality.Engine{Name: "pgvector, HNSW", Open: qualityOpener(approximate), SameText: true, Overlap: 0.98},
	)
}

// TestScan prints how many of the nearest passages of all sets together a search of their HNSW index
// finds, by ef_search.
func TestScan(t *testing.T) {
	set := quality.Together(t)
	approximate := defaultSettings
	approximate.exact = 100
	x := qualityOpener(approximate)(t, set.Source()).(*Index)
	for _, scan := range []int{40, 100, 200, 400, 800} {
		x.settings.scan = scan
		t.Logf("ef_search %d: overlap@10 %.4f", scan, set.Overlap(t, x))
	}
}

// qualityOpener returns a function that opens the index of a source and builds its HNSW index.
func qualityOpener(s settings) func(*testing.T, index.VectorSource) index.Index {
	return func(t *testing.T, source index.VectorSource) index.Index {
		x := opener(t, s)(t, source, "").(*Index)
		warm := index.Vector{Model: embedded.Model, Metric: index.Cosine, Values: make([]float32, embedded.Dimensions)}
		warm.Values[0] = 1
		if _, err := x.Nearest(t.Context(), everyone, assay.Query{Limit: 1}, warm); err != nil {
			t.Fatal(err)
		}
		if err := x.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		return x
	}
}
