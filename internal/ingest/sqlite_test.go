package ingest

import (
	"context"
	"testing"

	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// eachStore runs a test with the in-memory store and with the SQLite store.
func eachStore(t *testing.T, test func(*testing.T, store.Writer)) {
	t.Run("memory", func(t *testing.T) { test(t, newMemory()) })
	t.Run("sqlite", func(t *testing.T) {
		tenant := openTenant(t, t.TempDir())
		w, err := tenant.Writer(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		test(t, w)
	})
}

func openTenant(t testing.TB, dir string) store.Tenant {
	t.Helper()
	s, err := sqlite.Open(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(context.Background(), "default")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tenant.Close() })
	return tenant
}
