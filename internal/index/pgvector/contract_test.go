package pgvector

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

func TestContract(t *testing.T) { indextest.Run(t, opener(t, defaultSettings)) }

// TestContractSmall checks the contract with limits so small that a few documents make many
// batches, and a hundred vectors an HNSW index.
func TestContractSmall(t *testing.T) {
	indextest.Run(t, opener(t, settings{batchBytes: 1500, vectorBytes: 1000, counts: 50, exact: 100}))
}

// opener returns an Opener that keeps the index of a folder in a schema.
func opener(t *testing.T, s settings) indextest.Opener {
	url := os.Getenv("ASSAY_TEST_POSTGRES")
	if url == "" {
		t.Skip("no PostgreSQL: run the test by scripts/postgres")
	}
	var mu sync.Mutex
	schemas := make(map[string]string)
	return func(t testing.TB, source index.Source, dir string) index.Index {
		t.Helper()
		mu.Lock()
		if schemas[dir] == "" {
			schemas[dir] = fmt.Sprintf("test_%d_%s", len(schemas), SchemaOf(t.Name())[12:30])
		}
		schema := schemas[dir]
		mu.Unlock()
		identity := ""
		if named, ok := source.(index.Identified); ok {
			identity, _ = named.Identity(t.Context())
		}
		x, err := open(t.Context(), url, schema, identity, source, s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
		return x
	}
}
