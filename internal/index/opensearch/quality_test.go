package opensearch

import (
	"testing"

	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest/quality"
)

// TestQuality compares searches on labelled sets with those of package index.
func TestQuality(t *testing.T) {
	cluster := connect(t, nil)
	open := func(t *testing.T, source index.VectorSource) index.Index {
		x := cluster.open(t, t.Name(), source)
		flush(t, x)
		return x
	}
	quality.Run(t, quality.Engine{Name: "OpenSearch", Open: open, Overlap: 0.98})
}
