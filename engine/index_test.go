package engine

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/shared"
	"github.com/assay-rag/assay/internal/pgtest"
	"github.com/assay-rag/assay/store"
)

// plainIndex is an Index without a graph and without files of its own.
type plainIndex struct{ Index }

// TestOpenIndex checks an engine on another index: it searches, answers, flushes, is examined, and
// leaves the tenant's folder for indexes alone.
func TestOpenIndex(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) func(context.Context, store.Tenant) (Index, error){
		"without a graph": func(t *testing.T) func(context.Context, store.Tenant) (Index, error) {
			dir := t.TempDir()
			return func(ctx context.Context, tenant store.Tenant) (Index, error) {
				ix, err := index.Open(ctx, dir, tenant.Content())
				return plainIndex{ix}, err
			}
		},
		"pgvector": func(t *testing.T) func(context.Context, store.Tenant) (Index, error) {
			indexes, err := shared.Postgres(pgtest.Database(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := indexes.Close(); err != nil {
					t.Error(err)
				}
			})
			return func(ctx context.Context, tenant store.Tenant) (Index, error) {
				return indexes.Open(ctx, tenant.Content())
			}
		},
		"opensearch": func(t *testing.T) func(context.Context, store.Tenant) (Index, error) {
			indexes := opensearchIndexes(t)
			return func(ctx context.Context, tenant store.Tenant) (Index, error) {
				identity, err := tenant.Content().Identity(ctx)
				if err != nil {
					return nil, err
				}
				t.Cleanup(func() {
					if err := indexes.Remove(context.WithoutCancel(ctx), identity); err != nil {
						t.Error(err)
					}
				})
				return indexes.Open(ctx, tenant.Content())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testOpenIndex(t, open(t), name != "without a graph")
		})
	}
}

// opensearchIndexes returns the indexes in the cluster that scripts/opensearch started. The test is skipped
// if there is none.
func opensearchIndexes(t *testing.T) shared.Indexes {
	addresses := os.Getenv("ASSAY_TEST_OPENSEARCH")
	if addresses == "" {
		t.Skip("ASSAY_TEST_OPENSEARCH is not set; run the test by scripts/opensearch")
	}
	indexes, err := shared.OpenSearch(t.Context(), shared.Cluster{Addresses: strings.Split(addresses, ","), Prefix: "assay-engine", Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := indexes.Close(); err != nil {
			t.Error(err)
		}
	})
	return indexes
}

func testOpenIndex(t *testing.T, open func(context.Context, store.Tenant) (Index, error), same bool) {
	ctx, dir := t.Context(), t.TempDir()
	config := Config{Dir: dir, OpenIndex: open, Encoders: someEncoders("first/64"), NoBackground: true}
	e := openConfig(t, config)
	if _, err := e.Ingest(ctx, IngestRequest{Paths: []string{"testdata/handbook"}, Wait: true}); err != nil {
		t.Fatal(err)
	}
	if answer := ask(t, e, someQuestion); answer.Status != assay.Answered {
		t.Errorf("answer %s %q, want one", answer.Status, answer.Text)
	}
	if _, err := os.Stat(e.tenant.IndexDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the own index exists: %v", err)
	}
	if err := e.flush(ctx); err != nil {
		t.Fatal(err)
	}
	checks := Doctor(ctx, config)
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == "index" })
	if i < 0 || checks[i].Err != nil || !strings.Contains(checks[i].Detail, "holds all changes") {
		t.Errorf("checks %+v, want an index that holds all changes", checks)
	}
	if !same {
		return
	}
	own := openConfig(t, Config{Dir: dir, Encoders: someEncoders("first/64"), NoBackground: true})
	for _, text := range []string{someQuestion, "annual leave", "expenses of a customer visit"} {
		q := assay.Query{Text: text, Limit: 10}
		want, err := own.Search(ctx, assay.Local(), q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Search(ctx, assay.Local(), q)
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 2e-3), cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%q (%v): -own index +shared\n%s", text, err, diff)
		}
	}
}
