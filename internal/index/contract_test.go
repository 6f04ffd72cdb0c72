package index_test

import (
	"context"
	"testing"

	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

func TestContract(t *testing.T) { indextest.Run(t, open, indextest.Full) }

// TestContractSmall checks the contract with limits so small that a few documents make many
// segments, builders and merges.
func TestContractSmall(t *testing.T) { indextest.Run(t, openSmall, indextest.Full) }

func open(t testing.TB, source index.Source, dir string) index.Index {
	t.Helper()
	return opened(t, index.Open, source, dir)
}

func openSmall(t testing.TB, source index.Source, dir string) index.Index {
	t.Helper()
	return opened(t, index.OpenSmall, source, dir)
}

func opened(t testing.TB, open func(context.Context, string, index.Source) (*index.Searcher, error), source index.Source, dir string) *index.Searcher {
	t.Helper()
	ix, err := open(t.Context(), dir, source)
	if err != nil {
		t.Fatal(err)
	}
	// The index is closed here, because a test does not close its readers and crashed writers.
	t.Cleanup(func() {
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
	})
	return ix
}
