package pgvector

import (
	"fmt"
	"sync"
	"testing"

	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
	"github.com/assay-rag/assay/internal/pgtest"
)

// levels are the promises of the index: all but that of files.
var levels = indextest.Levels{BitEqualScores: true, ReadYourWrites: true, ExactNearest: true}

func TestContract(t *testing.T) { indextest.Run(t, opener(t, defaultSettings), levels) }

// TestContractSmall checks the contract with limits so small that a few documents make many
// batches, and a hundred vectors an HNSW index.
func TestContractSmall(t *testing.T) { indextest.Run(t, opener(t, smallSettings), levels) }

var smallSettings = settings{batchBytes: 6000, vectorBytes: 1000, counts: 200, exact: 100, scan: 100, few: 1}

// opener returns an Opener that keeps the index of a folder in a schema of one database.
func opener(t *testing.T, s settings) indextest.Opener {
	database := connect(t, pgtest.Database(t))
	var mu sync.Mutex
	schemas := make(map[string]string)
	return func(t testing.TB, source index.Source, dir string) index.Index {
		t.Helper()
		mu.Lock()
		if schemas[dir] == "" {
			schemas[dir] = fmt.Sprintf("test_%d", len(schemas))
		}
		schema := schemas[dir]
		mu.Unlock()
		identity := "" // a source without one has only texts
		if named, ok := source.(index.Identified); ok {
			var err error
			if identity, err = named.Identity(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		x, err := database.open(t.Context(), schema, identity, source, s)
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

// connect returns the indexes in a database. All of a test share its connections.
func connect(t testing.TB, url string) *Database {
	t.Helper()
	d, err := Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}
