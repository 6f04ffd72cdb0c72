package pgvector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
	"github.com/assay-rag/assay/internal/pgtest"
)

// TestManyTenants checks that the indexes of fifty tenants in a process share at most maxConnections
// connections, and that each search finds the documents of its own tenant, also by vectors of another
// size than those of the tenant before.
func TestManyTenants(t *testing.T) {
	t.Parallel()
	const tenants, rounds = 50, 6
	address := pgtest.Database(t)
	database := connect(t, address)
	watcher, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // it was only read

	var mu sync.Mutex
	open := make([]*Index, tenants)
	each := func(f func(i int) error) {
		t.Helper()
		var all sync.WaitGroup
		for i := range tenants {
			all.Go(func() {
				if err := f(i); err != nil {
					t.Errorf("tenant %d: %v", i, err)
				}
			})
		}
		ended := make(chan struct{})
		go func() { all.Wait(); close(ended) }()
		for most := 0; ; {
			var n int
			mu.Lock()
			err := watcher.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`).Scan(&n)
			mu.Unlock()
			if most = max(most, n); err != nil || most > maxConnections+2 { // the watcher, and the one that creates schemas
				t.Fatalf("%d connections, want at most %d: %v", most, maxConnections+2, err)
			}
			select {
			case <-ended:
				return
			default:
			}
		}
	}
	each(func(i int) (err error) {
		source := indextest.NewSource(fmt.Sprint("tenant", i))
		vectors := make(map[string][]float32)
		for n := range i%3 + 1 {
			e := indextest.NewEntry("c", fmt.Sprint(i, "-", n), "", fmt.Sprintf("needle %d of tenant%d", n, i))
			source.Put(e)
			vectors[e.Chunks[0].ID] = vectorOf(i)
		}
		source.PutVectors("m", vectors)
		open[i], err = database.Open(t.Context(), source)
		return err
	})
	if t.Failed() {
		return
	}
	each(func(i int) error {
		for range rounds {
			x := open[rand.IntN(tenants)]
			if err := checkTenant(t.Context(), x, tenantOf(open, x)); err != nil {
				return err
			}
		}
		return nil
	})
	for _, x := range open {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}

// vectorOf returns a vector of tenant i.
func vectorOf(i int) []float32 {
	v := make([]float32, 2+i%4)
	v[i%2] = 1
	return v
}

func tenantOf(all []*Index, x *Index) int {
	for i := range all {
		if all[i] == x {
			return i
		}
	}
	return -1
}

// checkTenant checks that a search finds the documents of tenant i and no other.
func checkTenant(ctx context.Context, x index.Index, i int) error {
	result, err := x.Search(ctx, everyone, assay.Query{Text: "needle", Limit: 10})
	if err != nil {
		return err
	}
	if want := i%3 + 1; result.Chunks != want || len(result.Hits) != want {
		return fmt.Errorf("%d chunks, %d hits, want %d", result.Chunks, len(result.Hits), want)
	}
	nearest, err := x.Nearest(ctx, everyone, assay.Query{Limit: 10}, index.Vector{Model: "m", Metric: index.Cosine, Values: vectorOf(i)})
	if err != nil {
		return err
	}
	if len(nearest.Hits) != len(result.Hits) {
		return fmt.Errorf("%d hits by vectors, want %d", len(nearest.Hits), len(result.Hits))
	}
	for n := range i%3 + 1 {
		found := false
		for _, h := range result.Hits {
			found = found || h.Document == assay.DocumentID("c", fmt.Sprint(i, "-", n))
		}
		if !found {
			return errors.New("a document is missing")
		}
	}
	return nil
}

// TestNoSchema checks that a connection is never used without a schema.
func TestNoSchema(t *testing.T) {
	t.Parallel()
	database := connect(t, pgtest.Database(t))
	x, err := database.Open(t.Context(), indextest.NewSource("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if _, err := database.pool.Exec(t.Context(), `SELECT 1`); err == nil {
		t.Error("a statement without a schema succeeds")
	}
}
