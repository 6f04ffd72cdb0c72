package postgres

import (
	"fmt"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pgtest"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/storetest"
)

// BenchmarkStore measures what a question and an ingest do most.
func BenchmarkStore(b *testing.B) {
	address := pgtest.Database(b)
	ctx := b.Context()
	s, err := Open(ctx, address, WithFolder(b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.CreateTenant(ctx, "acme", store.Act{}); err != nil {
		b.Fatal(err)
	}
	tenant, err := s.Tenant(ctx, "acme")
	if err != nil {
		b.Fatal(err)
	}
	defer tenant.Close()
	w, err := tenant.Writer(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	text := ""
	for i := range 20 {
		text += fmt.Sprintf("line %d of a document\n", i)
	}
	first := storetest.Entry("c", "/first", text)
	if _, err := w.Put(ctx, first); err != nil {
		b.Fatal(err)
	}
	l, err := tenant.Runs().Create(ctx, assay.Run{ID: "run", Question: "?"})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	steps, documents := 0, 0
	for _, bench := range []struct {
		name string
		do   func() error
	}{
		{"sequence", func() error { _, err := tenant.Content().Sequence(ctx); return err }},
		{"passages of 10", func() error {
			var ids []string
			for _, c := range first.Chunks[1:11] {
				ids = append(ids, c.ID)
			}
			_, err := tenant.Content().Passages(ctx, ids)
			return err
		}},
		{"append a record", func() error {
			_, err := l.Append(ctx, crashRecord(steps))
			steps++
			return err
		}},
		{"put 10 documents of 20 chunks", func() error {
			var entries []store.Entry
			for range 10 {
				entries = append(entries, storetest.Entry("c", fmt.Sprintf("/%d", documents), text))
				documents++
			}
			_, err := w.Put(ctx, entries...)
			return err
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				if err := bench.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
