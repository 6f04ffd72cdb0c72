package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var reviewTests = []contractTest{
	{"a run waits and is decided", testReview},
	{"a change is stored once", testReviewOnce},
	{"a change that fails stores nothing", testReviewAtomic},
	{"erasure removes a decided review", testReviewErased},
}

// mustSuspend creates a run that waits for a review.
func mustSuspend(t *testing.T, tenant store.Tenant, id string) store.Review {
	t.Helper()
	l := mustCreate(t, tenant, id)
	mustAppend(t, l, "search")
	shown := assay.Answer{Status: assay.PendingReview}
	r := store.Review{Case: json.RawMessage(`{"needed":1}`), Draft: json.RawMessage(`{"text":"secret"}`)}
	if err := l.Suspend(t.Context(), shown, r, nil, store.Act{Kind: "review.needed"}); err != nil {
		t.Fatal(err)
	}
	closeLease(t, l)
	return mustReview(t, tenant, id)
}

func testReviewErased(t *testing.T, h Harness) {
	tenant, ctx := openTenant(t, h, "acme"), t.Context()
	r := mustSuspend(t, tenant, "run")
	message := func(a store.LoggedAct) ([]store.Message, error) {
		return []store.Message{{ID: fmt.Sprint(a.Sequence), Target: "a", Body: []byte("about " + a.Subject)}}, nil
	}
	if _, err := tenant.Outbox().Make(ctx, 0, message); err != nil {
		t.Fatal(err)
	}
	why := store.Act{Kind: store.KindRunErased, Reason: "asked for"}
	wantErr(t, "Erase of an open review", tenant.Runs().Erase(ctx, "run", why), assay.ErrSuspended)
	if err := tenant.Reviews().Change(ctx, r, store.ReviewChange{Acts: []store.Act{{Kind: "review.decided"}}, Answer: &assay.Answer{Text: "secret"}}); err != nil {
		t.Fatal(err)
	}
	wantSound(t, tenant)
	if err := tenant.Runs().Erase(ctx, "run", why); err != nil {
		t.Fatal(err)
	}
	_, err := tenant.Reviews().Review(ctx, "run")
	wantErr(t, "Review of an erased run", err, assay.ErrNotFound)
	if left, err := tenant.Outbox().Due(ctx, 100); err != nil || len(left) > 0 {
		t.Errorf("messages about an erased run: %v, %v", left, err)
	}
	wantSound(t, tenant)
}

// wantSound checks that what is stored is what the log says.
func wantSound(t *testing.T, tenant store.Tenant) {
	t.Helper()
	err := tenant.Audit().Check(t.Context(), func(f store.Finding) error {
		t.Error(f)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func mustReview(t *testing.T, tenant store.Tenant, run string) store.Review {
	t.Helper()
	r, err := tenant.Reviews().Review(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func testReview(t *testing.T, h Harness) {
	tenant, ctx := openTenant(t, h, "acme"), t.Context()
	r := mustSuspend(t, tenant, "run")
	if !r.Open || r.Version != 1 || r.Created.IsZero() || string(r.Draft) != `{"text":"secret"}` || string(r.Case) != `{"needed":1}` {
		t.Errorf("Review = %+v", r)
	}
	if run := mustRun(t, tenant, "run"); run.State != assay.RunSuspended || run.Live || run.Answer.Status != assay.PendingReview {
		t.Errorf("the run that waits: %+v", run)
	}
	_, err := tenant.Runs().Acquire(ctx, "run")
	wantErr(t, "Acquire", err, assay.ErrSuspended)
	wantErr(t, "Delete", tenant.Runs().Delete(ctx, "run", store.Act{Kind: "run.deleted"}), assay.ErrSuspended)

	r.Case, r.Draft = json.RawMessage(`{"claim":"ann"}`), nil
	if err := tenant.Reviews().Change(ctx, r, store.ReviewChange{Acts: []store.Act{{Kind: "review.claimed"}}}); err != nil {
		t.Fatal(err)
	}
	got := mustReview(t, openTenant(t, h, "acme"), "run")
	if got.Version != 2 || string(got.Draft) != `{"text":"secret"}` || string(got.Case) != `{"claim":"ann"}` {
		t.Errorf("after a change: %+v", got)
	}
	// A record without a decision leaves the run suspended.
	got.Draft = json.RawMessage(`{"text":"edited"}`)
	if err := tenant.Reviews().Change(ctx, got, store.ReviewChange{Records: []assay.Record{smallRecord("human[0]")}}); err != nil {
		t.Fatal(err)
	}
	if run := mustRun(t, tenant, "run"); run.State != assay.RunSuspended || run.Live || run.Steps != 2 {
		t.Errorf("after a record: %+v", run)
	}
	got = mustReview(t, tenant, "run")
	end := store.ReviewChange{
		Records: []assay.Record{smallRecord("human[1]")}, Acts: []store.Act{{Kind: "review.decided", Subject: "ignored"}},
		Answer: &assay.Answer{Status: assay.Answered, Text: "edited"},
	}
	if err := tenant.Reviews().Change(ctx, got, end); err != nil {
		t.Fatal(err)
	}
	run := mustRun(t, tenant, "run")
	if run.State != assay.RunDone || run.Live || run.Answer.Text != "edited" || run.Steps != 3 {
		t.Errorf("the decided run: %+v", run)
	}
	if n := len(mustRecords(t, tenant, "run")); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
	got = mustReview(t, tenant, "run")
	if got.Open || got.Version != 4 {
		t.Errorf("the decided review: %+v", got)
	}
	wantErr(t, "Change of a decided review", tenant.Reviews().Change(ctx, got, end), assay.ErrInvalid)
	for _, onlyOpen := range []bool{true, false} {
		all, err := tenant.Reviews().List(ctx, onlyOpen)
		if err != nil || onlyOpen != (len(all) == 0) {
			t.Errorf("List(%t) = %v, %v", onlyOpen, all, err)
		}
	}
	if err := tenant.Runs().Delete(ctx, "run", store.Act{Kind: "run.deleted"}); err != nil {
		t.Fatal(err)
	}
	_, err = tenant.Reviews().Review(ctx, "run")
	wantErr(t, "Review of a deleted run", err, assay.ErrNotFound)
}

// testReviewOnce lets several reviewers decide at the same time.
func testReviewOnce(t *testing.T, h Harness) {
	tenant, ctx := openTenant(t, h, "acme"), t.Context()
	r := mustSuspend(t, tenant, "run")
	var stored atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			err := tenant.Reviews().Change(ctx, r, store.ReviewChange{
				Records: []assay.Record{smallRecord("human[0]")}, Acts: []store.Act{{Kind: "review.decided"}},
				Answer: &assay.Answer{Status: assay.Answered, Text: fmt.Sprint(i)},
			})
			if err == nil {
				stored.Add(1)
			}
		})
	}
	all.Wait()
	if stored.Load() != 1 {
		t.Errorf("%d decisions are stored, want 1", stored.Load())
	}
	if n := len(mustRecords(t, tenant, "run")); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

func testReviewAtomic(t *testing.T, h Harness) {
	tenant, ctx := openTenant(t, h, "acme"), t.Context()
	r := mustSuspend(t, tenant, "run")
	before, size := mustRun(t, tenant, "run"), auditSize(t, tenant)
	err := tenant.Reviews().Change(ctx, r, store.ReviewChange{
		Records: []assay.Record{smallRecord("human[0]"), smallRecord("search")}, // the second path is taken
		Acts:    []store.Act{{Kind: "review.decided"}},
		Answer:  &assay.Answer{Status: assay.Answered},
	})
	wantErr(t, "Change with a path that is taken", err, assay.ErrInvalid)
	stale := r
	stale.Version++
	wantErr(t, "Change of another version", tenant.Reviews().Change(ctx, stale, store.ReviewChange{}), assay.ErrLocked)
	r.Case = json.RawMessage(`{`)
	wantErr(t, "Change to a case that is not JSON", tenant.Reviews().Change(ctx, r, store.ReviewChange{}), assay.ErrInvalid)
	wantErr(t, "Change of no review", tenant.Reviews().Change(ctx, store.Review{Run: "none", Version: 1, Case: json.RawMessage(`{}`)}, store.ReviewChange{}), assay.ErrNotFound)
	wantSame(t, "the run after that", mustRun(t, tenant, "run"), before)
	if got := auditSize(t, tenant); got != size {
		t.Errorf("the audit log has %d entries, want %d", got, size)
	}
}

func auditSize(t *testing.T, tenant store.Tenant) int64 {
	t.Helper()
	n, err := tenant.Audit().Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}
