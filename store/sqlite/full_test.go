package sqlite

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/internal/relational"
)

// limitPages limits the growth of u's database to the given number of pages; 0 removes the limit.
func limitPages(t *testing.T, opened relational.Updater, more int) {
	u := opened.(*updater)
	t.Helper()
	if err := u.takeTurn(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer u.endTurn()
	limit := 1 << 30
	if more > 0 {
		if err := u.conn.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&limit); err != nil {
			t.Fatal(err)
		}
		limit += more
	}
	if _, err := u.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", limit)); err != nil {
		t.Fatal(err)
	}
}

// A spyPlace keeps the updater of the last writer.
type spyPlace struct {
	place
	u relational.Updater
}

func (p *spyPlace) LockWriter(ctx context.Context) (u relational.Updater, release func() error, err error) {
	p.u, release, err = p.place.LockWriter(ctx)
	return p.u, release, err
}

// TestFullContent repeatedly fills a database up to a limit. The change that reaches the limit is
// not stored, earlier changes stay, and once there is space the next change succeeds.
func TestFullContent(t *testing.T) {
	tenant, ctx := openTestTenant(t), t.Context()
	spy := &spyPlace{place: place{tenant}}
	w, err := relational.NewTenant(relational.Config{Name: tenant.name, Content: tenant.content, Runs: tenant.runs, Place: spy, Options: tenant.opts}).Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	next := 1
	for pages := 1; pages < 40; pages += 3 {
		limitPages(t, spy.u, pages)
		for {
			_, err := w.Put(ctx, crashEntry(next, 0), crashEntry(next+1, 0), crashEntry(0, next))
			if err != nil {
				wantKind(t, "Put", err, assay.ErrFull, "put documents")
				break
			}
			next += 2
		}
		checkFull(t, tenant, next)
		if _, err := w.Delete(ctx, crashEntry(1, 0).Document.ID); err != nil && !errors.Is(err, assay.ErrFull) {
			t.Errorf("Delete: %v", err)
		}
		limitPages(t, spy.u, 0)
		if _, err := w.Put(ctx, crashEntry(next, 0), crashEntry(next+1, 0), crashEntry(0, next), crashEntry(1, 0)); err != nil {
			t.Fatalf("Put with space again: %v", err)
		}
		next += 2
		checkFull(t, tenant, next)
	}
	checkIntegrity(t, tenant)
}

// checkFull checks that exactly the documents up to next are stored.
func checkFull(t *testing.T, tenant *Tenant, next int) {
	t.Helper()
	n := 0
	for d, err := range tenant.Content().Documents(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if d.URI >= fmt.Sprintf("/%06d", next) {
			t.Errorf("%s is there, the last acknowledged was %d", d.URI, next-1)
		}
		n++
	}
	if n != next && next > 1 {
		t.Errorf("%d documents are there, want %d", n, next)
	}
}

// TestFullRuns fills a journal up to a limit.
func TestFullRuns(t *testing.T) {
	tenant, ctx := openTestTenant(t), t.Context()
	l, err := tenant.Runs().Create(ctx, assay.Run{ID: "run", Question: "?"})
	if err != nil {
		t.Fatal(err)
	}
	u, err := tenant.RunsUpdater(ctx)
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for pages := 1; pages < 20; pages += 2 {
		limitPages(t, u, pages)
		for {
			rec, err := l.Append(ctx, crashRecord(next))
			if err != nil {
				wantKind(t, "Append", err, assay.ErrFull, crashRecord(next).Path)
				break
			}
			if rec.Ordinal != next {
				t.Fatalf("ordinal %d, want %d", rec.Ordinal, next)
			}
			next++
		}
		limitPages(t, u, 0)
	}
	long := &assay.Answer{Text: fmt.Sprintf("%020000d", 7), Citations: []assay.Citation{{Document: "d", Version: "v"}}}
	limitPages(t, u, 1)
	wantKind(t, "Finish", l.Finish(ctx, assay.RunDone, long, ""), assay.ErrFull)
	if run, err := tenant.Runs().Run(ctx, "run"); err != nil || run.State != assay.RunActive || run.Answer != nil || run.Steps != next {
		t.Errorf("Run = %+v, %v, want it active with %d steps", run, err, next)
	}
	limitPages(t, u, 0)
	if err := errors.Join(l.Finish(ctx, assay.RunDone, long, ""), l.Close()); err != nil {
		t.Fatal(err)
	}
	if records, err := tenant.Runs().Records(ctx, "run"); err != nil || len(records) != next {
		t.Errorf("%d records, %v, want %d", len(records), err, next)
	}
	checkIntegrity(t, tenant)
}

// TestPruneFailsClosed removes the pins and checks that nothing is pruned.
func TestPruneFailsClosed(t *testing.T) {
	h := newHarness(t)
	tenant, err := created(h.Store, t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	w, err := tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for generation := range 3 {
		if _, err := w.Put(t.Context(), crashEntry(1, generation)); err != nil {
			t.Fatal(err)
		}
	}
	h.Advance(2 * KeepReplaced)
	if _, err := h.edit("acme", runsName, "DROP TABLE pins"); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Prune(t.Context()); err == nil || n != 0 {
		t.Errorf("Prune without pins = %d, %v, want an error", n, err)
	}
	d := crashEntry(1, 0).Document
	if _, err := w.Version(t.Context(), d.ID, d.Version); err != nil {
		t.Errorf("a version after it: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := w.Prune(ctx); !errors.Is(err, context.Canceled) || n != 0 {
		t.Errorf("Prune with a cancelled context = %d, %v", n, err)
	}
}
