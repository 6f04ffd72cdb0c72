package index_test

import (
	"testing"

	"github.com/assay-rag/assay/index"
	"github.com/assay-rag/assay/index/indextest"
)

func TestContract(t *testing.T) { indextest.Run(t, open) }

func open(t testing.TB, source index.Source, dir string) index.Index {
	t.Helper()
	ix, err := index.Open(t.Context(), dir, source)
	if err != nil {
		t.Fatal(err)
	}
	return ix
}
