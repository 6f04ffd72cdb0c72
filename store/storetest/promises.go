package storetest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// promised returns the IDs of the runs that wait to be resumed.
func promised(t *testing.T, tenant store.Tenant) map[string]store.Promise {
	t.Helper()
	all, err := tenant.Runs().Promised(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byRun := map[string]store.Promise{}
	for _, p := range all {
		byRun[p.Run] = p
	}
	return byRun
}

func testPromises(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	runs := tenant.Runs()
	p := store.Promise{Slot: "slot", Request: "hash", Attempts: 1}
	accept := func(id string, p store.Promise) (store.Lease, error) {
		return runs.Accept(t.Context(), assay.Run{ID: id, Principal: assay.Local(), Question: "Why?"}, p)
	}
	l, err := accept("a", p)
	if err != nil {
		t.Fatal(err)
	}
	p.Run, p.Stuck = "a", true
	_, err = accept("b", p)
	taken, ok := errors.AsType[*store.SlotError](err)
	if !ok || !errors.Is(err, assay.ErrLocked) {
		t.Fatalf("Accept with a slot that is taken: %v", err)
	}
	wantSame(t, "the promise with the slot", taken.Promise, p)
	if _, err := runs.Run(t.Context(), "b"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("the refused run: %v, want ErrNotFound", err)
	}
	got, err := runs.Promise(t.Context(), "slot")
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "Promise", got, p)
	if _, err := openTenant(t, h, "globex").Runs().Promise(t.Context(), "slot"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("Promise of another tenant: %v", err)
	}
	wantSame(t, "promised while it is driven", promised(t, tenant), map[string]store.Promise{})
	mustAppend(t, l, "one")
	closeLease(t, l)
	p.Stuck = false
	wantSame(t, "promised", promised(t, tenant), map[string]store.Promise{"a": p})
	for i, want := range []int{2, 3, 4} { // the attempt in which the journal grew is the first
		if n, err := runs.Attempt(t.Context(), "a"); err != nil || n != want {
			t.Errorf("attempt %d: %d, %v, want %d", i, n, err, want)
		}
	}
	if err := runs.Calm(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if n, err := runs.Attempt(t.Context(), "a"); err != nil || n != 1 {
		t.Errorf("after Calm: attempt %d, %v", n, err)
	}
	mustFinish(t, tenant, "c")
	if _, err := runs.Attempt(t.Context(), "c"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("Attempt without a promise: %v", err)
	}
	if err := runs.Erase(t.Context(), "a", store.Act{Kind: store.KindRunErased}); err != nil {
		t.Fatal(err)
	}
	if _, err := runs.Promise(t.Context(), "slot"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("Promise of an erased run: %v", err)
	}
	testAdopt(t, tenant)
}

// testAdopt checks promises for runs that exist.
func testAdopt(t *testing.T, tenant store.Tenant) {
	runs := tenant.Runs()
	closeLease(t, mustCreate(t, tenant, "own"))
	wantSame(t, "promised without a promise", promised(t, tenant), map[string]store.Promise{})
	if err := runs.Adopt(t.Context(), "own"); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "promised", promised(t, tenant), map[string]store.Promise{"own": {Run: "own", Stuck: true}})
	if err := runs.Adopt(t.Context(), "none"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("Adopt of a run that does not exist: %v", err)
	}
	if err := runs.Delete(t.Context(), "own", store.Act{Kind: store.KindRunDeleted}); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "promised after it was deleted", promised(t, tenant), map[string]store.Promise{})
}

func testCancel(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	runs, ann := tenant.Runs(), assay.Principal{User: "ann"}
	l := mustCreate(t, tenant, "a")
	cancelled := func() bool {
		t.Helper()
		is, err := runs.Cancelled(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if cancelled() {
		t.Error("a new run is cancelled")
	}
	for range 2 {
		if err := runs.Cancel(t.Context(), "a", ann); err != nil {
			t.Fatal(err)
		}
	}
	if !cancelled() {
		t.Error("the run is not cancelled")
	}
	acts := 0
	file, err := tenant.Audit().About(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range file.Entries {
		if bytes.Contains(entry.Header, []byte(store.KindRunCancelled)) {
			acts++
		}
	}
	if acts != 1 {
		t.Errorf("%d acts say that it was cancelled, want 1", acts)
	}
	if err := l.Finish(t.Context(), assay.RunDone, fullAnswer(), ""); err != nil {
		t.Fatal(err)
	}
	closeLease(t, l)
	if err := runs.Cancel(t.Context(), "a", ann); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("Cancel of a run that is done: %v", err)
	}
	if err := runs.Cancel(t.Context(), "none", ann); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("Cancel of a run that does not exist: %v", err)
	}
}
