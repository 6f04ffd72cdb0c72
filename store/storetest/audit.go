package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var auditTests = []contractTest{
	{"entries", testAuditEntries},
	{"erased act", testAuditErase},
	{"registry", testRegistry},
	{"uses", testUses},
	{"kinds of the store", testAuditKinds},
	{"check", testAuditCheck},
	{"system", testSystemAudit},
}

// testAuditEntries makes every kind of entry and checks the tree over them.
func testAuditEntries(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	ctx := t.Context()
	if err := tenant.Audit().Append(ctx, store.Act{Kind: "key.created", Subject: "k1", Actor: assay.Local(), Detail: json.RawMessage(`{"scopes":["ask"]}`)}); err != nil {
		t.Fatal(err)
	}
	lease, err := tenant.Runs().Create(ctx, assay.Run{ID: "run", Principal: assay.Local(), Question: "q"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lease.Append(ctx, assay.Record{Path: "plan", Kind: assay.StepPlan, Input: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	if err := lease.Finish(ctx, assay.RunDone, &assay.Answer{Text: "x"}, ""); err != nil {
		t.Fatal(err)
	}
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tenant.Runs().Delete(ctx, "run", store.Act{Kind: "run.deleted", Reason: "asked for"}); err != nil {
		t.Fatal(err)
	}
	size, err := tenant.Audit().Size(ctx)
	if err != nil || size != 5 { // act, begun, record, ended, deleted
		t.Fatalf("Size = %d, %v; want 5", size, err)
	}
	var leaves []tlog.Hash
	for e, err := range tenant.Audit().Entries(ctx, 0, size) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Leaf != tlog.RecordHash(e.Header) {
			t.Errorf("entry %d: its leaf is not the hash of its header", e.Sequence)
		}
		leaves = append(leaves, e.Leaf)
	}
	CheckTree(t, tenant.Audit(), leaves)
	wantErr(t, "Append of a bad kind", tenant.Audit().Append(ctx, store.Act{Kind: "Nothing"}), assay.ErrInvalid)
}

// CheckTree compares the root from the stored hashes with the root from the leaves.
func CheckTree(t testing.TB, a store.Audit, leaves []tlog.Hash) {
	t.Helper()
	var stored []tlog.Hash
	fromLeaves := tlog.HashReaderFunc(func(positions []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(positions))
		for i, p := range positions {
			hashes[i] = stored[p]
		}
		return hashes, nil
	})
	for i, leaf := range leaves {
		hashes, err := tlog.StoredHashesForRecordHash(int64(i), leaf, fromLeaves)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, hashes...)
	}
	want, err := tlog.TreeHash(int64(len(leaves)), fromLeaves)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tlog.TreeHash(int64(len(leaves)), tlog.HashReaderFunc(func(positions []int64) ([]tlog.Hash, error) {
		hashes, err := a.Hashes(t.Context(), positions)
		out := make([]tlog.Hash, len(hashes))
		for i, h := range hashes {
			out[i] = h
		}
		return out, err
	}))
	if err != nil || got != want {
		t.Errorf("root of the stored tree = %v, %v; want %v", got, err, want)
	}
}

func testAuditErase(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	ctx := t.Context()
	if err := tenant.Audit().Append(ctx, store.Act{Kind: "key.created", Subject: "k1", Reason: "for Bob"}); err != nil {
		t.Fatal(err)
	}
	if err := tenant.Audit().Erase(ctx, 1, store.Act{Kind: "act.erased", Subject: "1"}); err != nil {
		t.Fatal(err)
	}
	for e, err := range tenant.Audit().Entries(ctx, 0, 1) {
		if err != nil || e.Payload != nil || e.Salt != nil || e.Leaf != tlog.RecordHash(e.Header) {
			t.Errorf("erased entry = %+v, %v", e, err)
		}
	}
	if err := tenant.Audit().Erase(ctx, 1, store.Act{}); err != nil {
		t.Errorf("Erase again: %v", err)
	}
	if size, err := tenant.Audit().Size(ctx); err != nil || size != 2 {
		t.Errorf("Size after two Erases of one entry = %d, %v; want 2", size, err)
	}
	item := store.RegistryItem{Kind: "key", Name: "k", Value: json.RawMessage(`1`)}
	if err := tenant.Registry().Set(ctx, item, store.Act{Kind: "key.set"}); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Erase of the act of a stored item", tenant.Audit().Erase(ctx, 3, store.Act{}), assay.ErrInvalid)
	if err := tenant.Registry().Delete(ctx, "key", "k", store.Act{Kind: "key.deleted"}); err != nil {
		t.Fatal(err)
	}
	for _, sequence := range []int64{3, 4} {
		if err := tenant.Audit().Erase(ctx, sequence, store.Act{}); err != nil {
			t.Errorf("Erase of the acts of a deleted item: %v", err)
		}
	}
	wantErr(t, "Erase of no entry", tenant.Audit().Erase(ctx, 77, store.Act{Kind: "act.erased"}), assay.ErrNotFound)
}

func testRegistry(t *testing.T, h Harness) {
	sys, err := h.System(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sys.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, r := t.Context(), sys.Registry()
	act := store.Act{Kind: "policy.set"}
	item := store.RegistryItem{Kind: "policy", Name: "a", Value: json.RawMessage(`{"share":1}`)}
	if err := r.Create(ctx, item, act); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Create of what exists", r.Create(ctx, item, act), assay.ErrInvalid)
	item.Value = json.RawMessage(`{"share":2}`)
	if err := r.Set(ctx, item, act); err != nil {
		t.Fatal(err)
	}
	got, err := r.Item(ctx, "policy", "a")
	if err != nil || string(got.Value) != `{"share":2}` {
		t.Errorf("Item = %+v, %v", got, err)
	}
	if err := r.Delete(ctx, "policy", "a", act); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Delete of nothing", r.Delete(ctx, "policy", "a", act), assay.ErrNotFound)
	version, err := r.Version(ctx)
	if err != nil || version != 3 {
		t.Errorf("Version = %d, %v; want 3", version, err)
	}
	if size, err := sys.Audit().Size(ctx); err != nil || size != 3 {
		t.Errorf("the log has %d entries, %v; want 3, one per change", size, err)
	}
}

func testUses(t *testing.T, h Harness) {
	sys, err := h.System(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sys.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, u := t.Context(), sys.Uses()
	at := time.Unix(1_800_000_000, 0).UTC()
	for _, step := range []struct{ now, want time.Time }{
		{at, at},
		{at.Add(30 * time.Second), at},
		{at.Add(90 * time.Second), at.Add(90 * time.Second)},
		{at, at.Add(90 * time.Second)}, // a clock that went back
	} {
		if err := u.Touch(ctx, "a", step.now, time.Minute); err != nil {
			t.Fatal(err)
		}
		if last, err := u.Last(ctx); err != nil || !last["a"].Equal(step.want) || len(last) != 1 {
			t.Errorf("Last = %v, %v after Touch at %v; want %v", last, err, step.now, step.want)
		}
	}
	if err := u.Forget(ctx, "a", "b"); err != nil {
		t.Fatal(err)
	}
	if last, err := u.Last(ctx); err != nil || len(last) != 0 {
		t.Errorf("Last = %v, %v after Forget", last, err)
	}
}

// testAuditKinds appends acts of kinds that only the store appends.
func testAuditKinds(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	ctx := t.Context()
	item := store.RegistryItem{Kind: "key", Name: "k", Value: json.RawMessage(`1`)}
	for _, kind := range []string{
		store.KindRunBegun, store.KindRunEnded, store.KindRunSuspended, store.KindRunOffered, store.KindRunDeleted, store.KindRunExpired, store.KindRunErased,
		store.KindContentChanged, store.KindContentPruned, store.KindCollectionSet, store.KindSourceSet, store.KindSourceRemoved, store.KindErased,
	} {
		wantErr(t, "Append of "+kind, tenant.Audit().Append(ctx, store.Act{Kind: kind, Subject: "x"}), assay.ErrInvalid)
		wantErr(t, "Set with "+kind, tenant.Registry().Set(ctx, item, store.Act{Kind: kind, Subject: "x"}), assay.ErrInvalid)
	}
	wantErr(t, "Delete of a run by another act", tenant.Runs().Delete(ctx, "run", store.Act{Kind: "test.done"}), assay.ErrInvalid)
	if size, err := tenant.Audit().Size(ctx); err != nil || size != 0 {
		t.Errorf("Size = %d, %v; want 0", size, err)
	}
}

// testAuditCheck checks what is stored with the log, and that found can end it.
func testAuditCheck(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	mustPut(t, w, Entry("docs", "/a", "one\ntwo\n"))
	differences := 0
	err := tenant.Audit().Check(t.Context(), func(f store.Finding) error {
		differences++
		t.Errorf("found %v", f)
		return nil
	})
	if err != nil || differences > 0 {
		t.Errorf("Check = %v with %d differences", err, differences)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, "Check of a canceled context", tenant.Audit().Check(ctx, func(store.Finding) error { return nil }), context.Canceled)
}

// testSystemAudit checks that the log of the store and those of tenants have different identities,
// which stay.
func testSystemAudit(t *testing.T, h Harness) {
	seen := map[string]bool{}
	for range 2 {
		sys, err := h.System(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		word, err := sys.Audit().Identity(t.Context())
		if err != nil || len(word) < 16 {
			t.Errorf("Identity = %q, %v", word, err)
		}
		seen[word] = true
		if err := sys.Audit().Check(t.Context(), func(f store.Finding) error { return errors.New(f.String()) }); err != nil {
			t.Errorf("Check: %v", err)
		}
		if err := sys.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"a", "b", "a"} {
		word, err := openTenant(t, h, name).Audit().Identity(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen[word] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d identities, want 3", len(seen))
	}
}
