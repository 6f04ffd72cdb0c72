package opensearch

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// levels are what an Index promises.
var levels = indextest.Levels{BitEqualScores: true, ExactNearest: true}

// connect returns a connection to the cluster that scripts/opensearch started. The test is skipped if
// there is none.
func connect(t testing.TB, change func(*Config)) *Cluster {
	t.Helper()
	addresses := os.Getenv("ASSAY_TEST_OPENSEARCH")
	if addresses == "" {
		t.Skip("ASSAY_TEST_OPENSEARCH is not set; run the test by scripts/opensearch")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	config := Config{Addresses: strings.Split(addresses, ","), Transport: transport, Prefix: "assay-test", Shards: 2}
	if change != nil {
		change(&config)
	}
	cluster, err := Connect(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// open opens the index of a tenant. It is removed when the test ends.
func (c *Cluster) open(t testing.TB, tenant string, source index.Source) *Index {
	t.Helper()
	x, err := c.Open(t.Context(), tenant, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		if err := x.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return x
}

// TestContract checks the contract. Indexes of tests that search beside a writer have replicas, which
// may be behind. The others have none, which halves what is written.
func TestContract(t *testing.T) {
	replicated := connect(t, nil)
	single := connect(t, func(c *Config) { c.Replicas = -1 })
	indextest.Run(t, func(t testing.TB, source index.Source, dir string) index.Index {
		for _, name := range []string{"Beside", "Follows", "Revoked", "Reopen", "/Random"} {
			if strings.Contains(t.Name(), name) {
				return replicated.open(t, dir, source)
			}
		}
		return single.open(t, dir, source)
	}, levels)
}
