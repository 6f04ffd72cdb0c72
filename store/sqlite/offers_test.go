package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// TestOffersAreBounded keeps the offers of the latest runs.
func TestOffersAreBounded(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, t.TempDir(), func(o *options) { o.maxOffers = 3 })
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	for i := range 6 {
		id := fmt.Sprint("run", i)
		l, err := tenant.Runs().Create(ctx, assay.Run{ID: id, Question: "?"})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Finish(ctx, assay.RunDone, &assay.Answer{}, ""); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{0, 1, 2, 3, 5, 4} {
		if err := tenant.Runs().Offer(ctx, fmt.Sprint("run", i), fmt.Sprint("key", i%2)); err != nil {
			t.Fatal(err)
		}
	}
	var kept []string
	for _, key := range []string{"key0", "key1"} {
		offers, err := tenant.Runs().Offers(ctx, key, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range offers {
			kept = append(kept, o.Run)
		}
	}
	if diff := cmp.Diff([]string{"run4", "run5", "run3"}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// TestOffersComeToAnOldStore offers a run that layout 1 holds.
func TestOffersComeToAnOldStore(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "runs.db")
	before := runsSchema
	before.migrations = before.migrations[:1]
	d, err := openDatabase(ctx, path, before, modeCreate)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := openPool(path, modeWrite, false, writerWait)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`INSERT INTO runs VALUES (1, 'old', '{"user":"local"}', 'Why?', '{}', 0, '{}', '')`,
		`INSERT INTO progress (run, state, steps, updated) VALUES (1, 'done', 0, 0)`,
	} {
		if _, err := pool.ExecContext(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	if d, err = openDatabase(ctx, path, runsSchema, modeWrite); err != nil {
		t.Fatal(err)
	}
	tenant := &Tenant{runs: d, opts: options{maxOffers: 1}}
	defer func() {
		if tenant.updater != nil {
			_ = tenant.updater.close()
		}
		_ = d.close()
	}()
	if err := tenant.Runs().Offer(context.WithoutCancel(ctx), "old", "k"); err != nil {
		t.Fatal(err)
	}
	offers, err := tenant.Runs().Offers(ctx, "k", 0)
	if diff := cmp.Diff([]store.Offer{{Run: "old", Question: "Why?"}}, offers); diff != "" || err != nil {
		t.Errorf("offers: %v (-want +got):\n%s", err, diff)
	}
}
