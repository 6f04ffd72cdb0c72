package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var outboxTests = []contractTest{
	{"one message per act and target", testOutboxMake},
	{"delivery", testOutboxDelivery},
	{"postponed target", testOutboxPostpone},
	{"dead messages", testOutboxDead},
	{"removed messages", testOutboxRemoved},
	{"content and skipped acts", testOutboxContent},
}

// toEach makes a message to each target of each act whose kind begins with "review.".
func toEach(targets ...string) func(store.LoggedAct) ([]store.Message, error) {
	return func(a store.LoggedAct) ([]store.Message, error) {
		var all []store.Message
		for _, target := range targets {
			if strings.HasPrefix(a.Kind, "review.") {
				all = append(all, store.Message{ID: fmt.Sprintf("%s-%d", target, a.Sequence), Target: target, Body: []byte(a.Subject)})
			}
		}
		return all, nil
	}
}

func appendActs(t *testing.T, tenant store.Tenant, acts ...store.Act) {
	t.Helper()
	if err := tenant.Audit().Append(t.Context(), acts...); err != nil {
		t.Fatal(err)
	}
}

// mustMake makes messages and checks their number.
func mustMake(t *testing.T, o store.Outbox, want int, fn func(store.LoggedAct) ([]store.Message, error)) {
	t.Helper()
	if n, err := o.Make(t.Context(), 0, fn); err != nil || n != want {
		t.Fatalf("Make = %d, %v; want %d", n, err, want)
	}
}

// due returns the IDs of the messages that are due.
func due(t *testing.T, o store.Outbox) string {
	t.Helper()
	all, err := o.Due(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range all {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}

func testOutboxMake(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	o := tenant.Outbox()
	mustMake(t, o, 0, toEach("a"))
	appendActs(t, tenant, store.Act{Kind: "review.needed", Subject: "r1"}, store.Act{Kind: "key.created"}, store.Act{Kind: "review.decided", Subject: "r1"})

	broken := errors.New("broken")
	calls := 0
	_, err := o.Make(t.Context(), 0, func(a store.LoggedAct) ([]store.Message, error) {
		if calls++; calls == 3 {
			return nil, broken
		}
		return toEach("a", "b")(a)
	})
	wantErr(t, "Make with an error", err, broken)
	wantSame(t, "due after an error", due(t, o), "")

	mustMake(t, o, 4, toEach("a", "b"))
	mustMake(t, o, 0, toEach("a", "b"))
	mustMake(t, o, 0, toEach("c"))
	wantSame(t, "due", due(t, o), "a-1 b-1 a-3 b-3")
	got, err := o.Due(t.Context(), 1)
	if err != nil || len(got) != 1 {
		t.Fatalf("Due(1) = %d messages, %v", len(got), err)
	}
	got[0].Made, got[0].Due = time.Time{}, time.Time{}
	wantSame(t, "message", got[0], store.Message{ID: "a-1", Act: 1, Kind: "review.needed", Target: "a", Body: []byte("r1")})
	appendActs(t, tenant, store.Act{Kind: "review.needed"})
	_, err = o.Make(t.Context(), 0, func(store.LoggedAct) ([]store.Message, error) {
		return []store.Message{{ID: "x", Target: "\xff"}}, nil
	})
	wantErr(t, "Make of an invalid message", err, assay.ErrInvalid)
	wantSame(t, "another tenant's messages", due(t, openTenant(t, h, "other").Outbox()), "")
}

func testOutboxDelivery(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	o, ctx := tenant.Outbox(), t.Context()
	appendActs(t, tenant, store.Act{Kind: "review.needed"}, store.Act{Kind: "review.needed"})
	mustMake(t, o, 2, toEach("a"))
	first, err := o.Due(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Failed(ctx, "a-1", "HTTP 500", first[0].Made.Add(time.Minute), 0); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "due after a failure", due(t, o), "a-2")
	if err := errors.Join(o.Delivered(ctx, "a-2"), o.Delivered(ctx, "a-2"), o.Delivered(ctx, "none")); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "due after a delivery", due(t, o), "")
	next, err := o.Next(ctx)
	if err != nil || !next.Equal(first[0].Made.Add(time.Minute)) {
		t.Errorf("Next = %s, %v; want a minute after %s", next, err, first[0].Made)
	}
	counts, err := o.Targets(ctx)
	if err != nil || len(counts) != 1 || counts[0].Waiting != 1 || counts[0].Delivered != 1 || counts[0].Dead != 0 {
		t.Errorf("Targets = %+v, %v", counts, err)
	}
	h.Advance(2 * time.Minute)
	again, err := o.Due(ctx, 10)
	if err != nil || len(again) != 1 || again[0].Attempts != 1 || again[0].Error != "HTTP 500" {
		t.Errorf("Due later = %+v, %v", again, err)
	}
	if err := o.Forget(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if counts, err := o.Targets(ctx); err != nil || len(counts) != 0 {
		t.Errorf("Targets after Forget = %+v, %v", counts, err)
	}
	next, err = o.Next(ctx)
	if err != nil || !next.IsZero() {
		t.Errorf("Next of nothing = %s, %v", next, err)
	}
}

func testOutboxPostpone(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	o, ctx := tenant.Outbox(), t.Context()
	appendActs(t, tenant, store.Act{Kind: "review.needed"}, store.Act{Kind: "review.needed"})
	mustMake(t, o, 4, toEach("a", "b"))
	first, err := o.Due(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Failed(ctx, "a-1", "no connection", first[0].Due.Add(time.Minute), time.Minute); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "due", due(t, o), "b-1 b-2")
	wantFailures(t, o, 1)
	h.Advance(2 * time.Minute)
	wantSame(t, "due later", due(t, o), "b-1 a-2 b-2 a-1")
	if err := o.Delivered(ctx, "a-2"); err != nil {
		t.Fatal(err)
	}
	wantFailures(t, o, 0)
}

// wantFailures checks the failures of the first target.
func wantFailures(t *testing.T, o store.Outbox, want int) {
	t.Helper()
	counts, err := o.Targets(t.Context())
	if err != nil || len(counts) == 0 || counts[0].Failures != want {
		t.Errorf("Targets = %+v, %v; want %d failures of the first", counts, err, want)
	}
}

func testOutboxDead(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	o, ctx := tenant.Outbox(), t.Context()
	appendActs(t, tenant, store.Act{Kind: "review.needed"}, store.Act{Kind: "review.needed"}, store.Act{Kind: "review.needed"})
	mustMake(t, o, 3, toEach("a"))
	if err := o.Failed(ctx, "a-1", "gone", time.Time{}, 0); err != nil {
		t.Fatal(err)
	}
	if n, err := o.Drop(ctx, "a", "disabled"); err != nil || n != 2 {
		t.Fatalf("Drop = %d, %v", n, err)
	}
	dead, err := o.Dead(ctx)
	if err != nil || len(dead) != 3 || dead[0].Error != "gone" || dead[1].Error != "disabled" || !dead[0].Due.IsZero() {
		t.Errorf("Dead = %+v, %v", dead, err)
	}
	_, err = o.Retry(ctx, "a-1", "none")
	wantErr(t, "Retry of no message", err, assay.ErrNotFound)
	wantSame(t, "due", due(t, o), "")
	if n, err := o.Retry(ctx, "a-2"); err != nil || n != 1 {
		t.Errorf("Retry = %d, %v", n, err)
	}
	wantSame(t, "due after a retry", due(t, o), "a-2")
	if n, err := o.Retry(ctx); err != nil || n != 2 {
		t.Errorf("Retry of all = %d, %v", n, err)
	}
	wantSame(t, "due after all", due(t, o), "a-1 a-2 a-3")
}

// testOutboxRemoved checks that messages go with their acts, when they are old, and when they are many.
func testOutboxRemoved(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	o, ctx := tenant.Outbox(), t.Context()
	wantRemoved := func(want int) {
		t.Helper()
		counts, err := o.Targets(ctx)
		if err != nil || len(counts) != 1 || counts[0].Removed != want {
			t.Errorf("Targets = %+v, %v; want %d removed", counts, err, want)
		}
	}
	expire := func(before time.Time, most, want int) {
		t.Helper()
		if n, err := o.Expire(ctx, before, most); err != nil || n != want {
			t.Errorf("Expire = %d, %v; want %d", n, err, want)
		}
	}
	for range 6 {
		appendActs(t, tenant, store.Act{Kind: "review.needed"})
	}
	mustMake(t, o, 6, toEach("a"))
	if err := tenant.Audit().Erase(ctx, 2, store.Act{}); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "due after an erasure", due(t, o), "a-1 a-3 a-4 a-5 a-6")
	wantRemoved(1)
	first, err := o.Due(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	made := first[0].Made
	if err := o.Failed(ctx, "a-6", "no connection", time.Time{}, 0); err != nil {
		t.Fatal(err)
	}
	expire(made, 5, 0)
	expire(made.Add(time.Hour), 5, 1) // dead ones only
	wantSame(t, "due after expiry", due(t, o), "a-1 a-3 a-4 a-5")
	expire(made, 3, 1)
	wantSame(t, "due beyond the number", due(t, o), "a-3 a-4 a-5")
	wantRemoved(3)
}

// testOutboxContent makes messages of acts on content, and of more acts than a transaction takes.
func testOutboxContent(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	if err := w.SetCollection(t.Context(), store.Collection{Name: "legal"}); err != nil {
		t.Fatal(err)
	}
	var acts []store.Act
	for range 600 {
		acts = append(acts, store.Act{Kind: "review.needed"})
	}
	var kinds []string
	note := func(a store.LoggedAct) ([]store.Message, error) {
		kinds = append(kinds, a.Kind)
		return nil, nil
	}
	mustMake(t, tenant.Outbox(), 0, note)
	wantSame(t, "kinds", kinds, []string{"collection.set"})
	appendActs(t, tenant, acts...)
	if n, err := tenant.Outbox().Make(t.Context(), 101, toEach("a")); err != nil || n != 500 {
		t.Errorf("Make after 101 = %d, %v; want 500", n, err)
	}
}
