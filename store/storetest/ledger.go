package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/store"
)

var ledgerTests = []contractTest{
	{"spending of runs", testSpending},
	{"reservations", testReservations},
	{"reservations over midnight", testReservationsOverMidnight},
	{"forfeited reservations", testForfeited},
	{"calls outside runs", testAccount},
	{"admissions", testAdmissions},
	{"concurrent reservations", testConcurrentReservations},
	{"concurrent admissions", testConcurrentAdmissions},
	{"hostile usage", testHostileUsage},
}

var ann = assay.Principal{User: "ann", Key: "k1"}

// createFor creates a run of a principal.
func createFor(t *testing.T, tenant store.Tenant, id string, p assay.Principal, records ...assay.Record) store.Lease {
	t.Helper()
	l, err := tenant.Runs().Create(t.Context(), assay.Run{ID: id, Principal: p, Question: "Why?"}, records...)
	if err != nil {
		t.Fatalf("Create(%s): %v", id, err)
	}
	return l
}

// pay appends a record with a usage.
func pay(t *testing.T, l store.Lease, path string, u assay.Usage) {
	t.Helper()
	rec := assay.Record{Path: path, Kind: assay.StepModel, Input: json.RawMessage(`{}`), Usage: u}
	if _, err := l.Append(t.Context(), rec); err != nil {
		t.Fatalf("Append(%s): %v", path, err)
	}
}

// spendingOf returns what a subject has spent.
func spendingOf(t *testing.T, tenant store.Tenant, subject string) store.Spending {
	t.Helper()
	all, err := tenant.Ledger().Spending(t.Context(), subject)
	if err != nil || len(all) > 1 {
		t.Fatalf("Spending(%s) = %v, %v", subject, all, err)
	}
	if len(all) == 0 {
		return store.Spending{Subject: subject}
	}
	return all[0]
}

// wantSpending reports a difference between what a subject has spent and want, whose Subject is set.
func wantSpending(t *testing.T, tenant store.Tenant, want store.Spending) {
	t.Helper()
	if diff := cmp.Diff(want, spendingOf(t, tenant, want.Subject)); diff != "" {
		t.Errorf("spending of %s differs (-want +got):\n%s", want.Subject, diff)
	}
}

func usage(calls, in, out int, micros int64) assay.Usage {
	return assay.Usage{Calls: calls, InputTokens: in, OutputTokens: out, CostMicros: micros, Searches: 1}
}

func testSpending(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	l := createFor(t, tenant, "a", ann)
	pay(t, l, "one", usage(1, 10, 5, 300))
	pay(t, l, "two", assay.Usage{Searches: 1})
	closeLease(t, l)
	closeLease(t, createFor(t, tenant, "b", assay.Principal{User: "bob"}, mustRecords(t, tenant, "a")...))
	if err := tenant.Runs().Delete(t.Context(), "a", store.Act{Kind: "run.deleted"}); err != nil {
		t.Fatal(err)
	}
	a := store.Amount{Requests: 1, Calls: 1, Tokens: 15, CostMicros: 300}
	all := store.Amount{Requests: 2, Calls: 1, Tokens: 15, CostMicros: 300}
	for subject, want := range map[string]store.Amount{"user:ann": a, "key:k1": a, "tenant": all, "user:bob": {Requests: 1}} {
		wantSpending(t, tenant, store.Spending{Subject: subject, Day: want, Month: want})
	}
	other := openTenant(t, h, "other")
	if all, err := other.Ledger().Spending(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("another tenant has spent %v, %v", all, err)
	}
	h.Advance(24 * time.Hour)
	if s := spendingOf(t, tenant, "user:ann"); s.Day != (store.Amount{}) {
		t.Errorf("spent on the next day: %+v", s.Day)
	}
	h.Advance(31 * 24 * time.Hour)
	wantSpending(t, tenant, store.Spending{Subject: "tenant"})
}

func testReservations(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	ctx := t.Context()
	l := createFor(t, tenant, "a", ann)
	bounds := []limit.Bound{{Subject: "user:ann", Measure: limit.TokensPerDay, Most: 100}, {Subject: "tenant", Measure: limit.CostPerMonth, Most: 1000}}
	if err := l.Reserve(ctx, "one", usage(1, 60, 0, 900), bounds); err != nil {
		t.Fatal(err)
	}
	held := store.Amount{Calls: 1, Tokens: 60, CostMicros: 900}
	wantSpending(t, tenant, store.Spending{Subject: "key:k1", Day: store.Amount{Requests: 1}, Month: store.Amount{Requests: 1}, Held: held})
	for _, test := range []struct {
		most    assay.Usage
		measure limit.Measure
		left    int64
	}{
		{usage(1, 30, 11, 0), limit.TokensPerDay, 40},
		{usage(1, 1, 0, 101), limit.CostPerMonth, 100},
	} {
		err := l.Reserve(ctx, "two", test.most, bounds)
		wantErr(t, "Reserve over the limit", err, assay.ErrQuota)
		if e, ok := limit.AsError(err); !ok || e.Measure != test.measure || e.Left != test.left || e.Renews.IsZero() || e.RetryAfter <= 0 {
			t.Errorf("Reserve(%+v) = %+v", test.most, e)
		}
	}
	if err := l.Reserve(ctx, "one", usage(0, 40, 0, 0), bounds); err != nil { // more for the same step
		t.Errorf("Reserve more: %v", err)
	}
	pay(t, l, "one", usage(1, 70, 0, 2000)) // more money than was reserved
	spent := store.Amount{Requests: 1, Calls: 1, Tokens: 70, CostMicros: 2000}
	wantSpending(t, tenant, store.Spending{Subject: "tenant", Day: spent, Month: spent})
	if err := l.Reserve(ctx, "two", usage(1, 30, 0, 0), bounds); err != nil {
		t.Errorf("Reserve what was left over: %v", err)
	}
	wantErr(t, "Reserve money after an overshoot", l.Reserve(ctx, "three", usage(0, 0, 0, 1), bounds), assay.ErrQuota)
	if err := l.Reserve(ctx, "three", usage(1, 0, 0, 0), bounds); err != nil { // no bound on calls
		t.Errorf("Reserve a call: %v", err)
	}
	if err := l.Settle(ctx, "two", assay.Usage{}); err != nil {
		t.Fatal(err)
	}
	if err := l.Settle(ctx, "three", assay.Usage{}); err != nil {
		t.Fatal(err)
	}
	closeLease(t, l)
	wantSpending(t, tenant, store.Spending{Subject: "tenant", Day: spent, Month: spent})
}

// testReservationsOverMidnight checks that a step counts in the day in which it was reserved.
func testReservationsOverMidnight(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	l := createFor(t, tenant, "a", ann)
	bounds := []limit.Bound{{Subject: "tenant", Measure: limit.TokensPerDay, Most: 100}}
	if err := l.Reserve(t.Context(), "one", usage(0, 60, 0, 0), bounds); err != nil {
		t.Fatal(err)
	}
	h.Advance(24 * time.Hour)
	wantErr(t, "Reserve more than the first day has", l.Reserve(t.Context(), "one", usage(0, 41, 0, 0), bounds), assay.ErrQuota)
	if err := l.Reserve(t.Context(), "two", usage(0, 100, 0, 0), bounds); err != nil {
		t.Errorf("Reserve on the next day: %v", err)
	}
	pay(t, l, "one", usage(0, 50, 0, 0))
	if s := spendingOf(t, tenant, "tenant"); s.Day != (store.Amount{}) {
		t.Errorf("counted on the next day: %+v", s.Day)
	}
	closeLease(t, l)
}

// testForfeited checks that what is still reserved when a lease is closed counts in full, once.
func testForfeited(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	l := createFor(t, tenant, "a", ann)
	bounds := []limit.Bound{{Subject: "tenant", Measure: limit.TokensPerDay, Most: 100}}
	if err := l.Reserve(t.Context(), "one", usage(1, 60, 0, 7), bounds); err != nil {
		t.Fatal(err)
	}
	closeLease(t, l)
	other := store.Amount{Calls: 1, Tokens: 60, CostMicros: 7}
	spent := store.Amount{Requests: 1, Calls: 1, Tokens: 60, CostMicros: 7}
	want := store.Spending{Subject: "user:ann", Day: spent, Month: spent, OtherDay: other, OtherMonth: other}
	wantSpending(t, tenant, want)
	l, err := tenant.Runs().Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Reserve in a resumed run", l.Reserve(t.Context(), "one", usage(1, 41, 0, 7), bounds), assay.ErrQuota)
	pay(t, l, "one", usage(1, 40, 0, 3))
	closeLease(t, l)
	want.Day = store.Amount{Requests: 1, Calls: 2, Tokens: 100, CostMicros: 10}
	want.Month = want.Day
	wantSpending(t, tenant, want)
}

func testAccount(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	ctx := t.Context()
	bounds := []limit.Bound{{Subject: "user:ann", Measure: limit.CallsPerDay, Most: 3}}
	acc, err := tenant.Ledger().Admit(ctx, store.Admission{Principal: ann, Bounds: bounds})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := acc.Reserve(ctx, fmt.Sprint("search", i), usage(1, 0, 0, 5), bounds); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, "the fourth call", acc.Reserve(ctx, "search3", usage(1, 0, 0, 5), bounds), assay.ErrQuota)
	if err := acc.Settle(ctx, "search0", usage(1, 0, 0, 4)); err != nil {
		t.Fatal(err)
	}
	if err := acc.Settle(ctx, "search1", assay.Usage{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := acc.Close(); err != nil {
			t.Fatal(err)
		}
	}
	spent := store.Amount{Calls: 2, CostMicros: 9}
	wantSpending(t, tenant, store.Spending{Subject: "key:k1", Day: spent, Month: spent, OtherDay: spent, OtherMonth: spent})
}

func testAdmissions(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	ledger, ctx := tenant.Ledger(), t.Context()
	bounds := []limit.Bound{{Subject: "user:ann", Measure: limit.RequestsPerDay, Most: 2}, {Subject: "tenant", Measure: limit.Runs, Most: 2}}
	admit := func(run string) (store.Account, error) {
		return ledger.Admit(ctx, store.Admission{Principal: ann, Run: run, Bounds: bounds})
	}
	first, err := admit("a")
	if err != nil {
		t.Fatal(err)
	}
	second, err := admit("b")
	if err != nil {
		t.Fatal(err)
	}
	_, err = admit("c")
	if e, ok := limit.AsError(err); !ok || e.Measure != limit.RequestsPerDay {
		t.Errorf("the third request: %v", err)
	}
	if err := second.Close(); err != nil { // it has created no run
		t.Fatal(err)
	}
	closeLease(t, createFor(t, tenant, "a", ann))
	wantSpending(t, tenant, store.Spending{Subject: "user:ann", Day: store.Amount{Requests: 1}, Month: store.Amount{Requests: 1}, Runs: 1})
	if second, err = admit("b"); err != nil {
		t.Fatalf("the second request again: %v", err)
	}
	resumed, err := admit("a")
	if e, ok := limit.AsError(err); !ok || e.Measure != limit.Runs || !e.Renews.IsZero() {
		t.Errorf("a resumed run beside two: %v, %v", resumed, err)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Fatal(err)
	}
	if resumed, err = admit("a"); err != nil {
		t.Fatalf("a resumed run: %v", err)
	}
	if err := resumed.Close(); err != nil {
		t.Fatal(err)
	}
	wantSpending(t, tenant, store.Spending{Subject: "user:ann", Day: store.Amount{Requests: 1}, Month: store.Amount{Requests: 1}})
}

// testConcurrentReservations makes random reservations from several handles at once. No bound may be
// exceeded at any moment, and in the end the ledger is the sum of what was reported.
func testConcurrentReservations(t *testing.T, h Harness) {
	const handles, workers, steps, most = 2, 4, 12, 400
	reader := openTenant(t, h, "acme")
	bounds := []limit.Bound{{Subject: "tenant", Measure: limit.TokensPerDay, Most: most}, {Subject: "tenant", Measure: limit.CallsPerMonth, Most: 30}}
	var tokens, calls, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range handles {
		tenant := openTenant(t, h, "acme")
		for j := range workers {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				l := createFor(t, tenant, fmt.Sprintf("run-%d-%d", i, j), assay.Principal{User: fmt.Sprint("u", j)})
				defer closeLease(t, l)
				for k := range steps {
					path, reserve := fmt.Sprintf("step[%d]", k), 1+rng.IntN(40)
					err := l.Reserve(t.Context(), path, usage(1, reserve, 0, 0), bounds)
					if errors.Is(err, assay.ErrQuota) {
						refused.Add(1)
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					used := rng.IntN(reserve + 1)
					tokens.Add(int64(used))
					calls.Add(1)
					pay(t, l, path, usage(1, used, 0, 0))
				}
			})
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for ctx.Err() == nil {
			all, err := reader.Ledger().Spending(ctx, "tenant")
			if err != nil || len(all) == 0 {
				continue
			}
			if s := all[0]; s.Day.Tokens+s.Held.Tokens > most || s.Month.Calls+s.Held.Calls > 30 {
				t.Errorf("over the limit: %+v", s)
				return
			}
		}
	}()
	wg.Wait()
	stop()
	<-watched
	spent := store.Amount{Requests: handles * workers, Calls: calls.Load(), Tokens: tokens.Load()}
	wantSpending(t, reader, store.Spending{Subject: "tenant", Day: spent, Month: spent})
	if refused.Load() == 0 {
		t.Error("no reservation was refused")
	}
}

func testConcurrentAdmissions(t *testing.T, h Harness) {
	const most = 3
	tenant := openTenant(t, h, "acme")
	bounds := []limit.Bound{{Subject: "tenant", Measure: limit.Runs, Most: most}, {Subject: "tenant", Measure: limit.RequestsPerMonth, Most: 20}}
	var running, admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 6 {
				id := fmt.Sprintf("run-%d-%d", i, k)
				acc, err := tenant.Ledger().Admit(t.Context(), store.Admission{Principal: ann, Run: id, Bounds: bounds})
				if errors.Is(err, assay.ErrQuota) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := running.Add(1); n > most {
					t.Errorf("%d runs at once", n)
				}
				admitted.Add(1)
				closeLease(t, createFor(t, tenant, id, ann))
				running.Add(-1)
				if err := acc.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := spendingOf(t, tenant, "tenant")
	if s.Runs != 0 || s.Day.Requests != admitted.Load() || s.Day.Requests > 20 || s.Day.Requests == 0 {
		t.Errorf("%d were admitted: %+v", admitted.Load(), s)
	}
}

// testHostileUsage checks that absurd reports of a provider neither overflow nor refill the ledger.
func testHostileUsage(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	l := createFor(t, tenant, "a", ann)
	const huge = 1 << 62
	for i := range 5 {
		pay(t, l, fmt.Sprint("step", i), assay.Usage{Calls: huge, InputTokens: huge, OutputTokens: huge, CostMicros: huge})
	}
	pay(t, l, "negative", assay.Usage{Calls: -huge, InputTokens: -huge, CostMicros: -huge})
	s := spendingOf(t, tenant, "tenant")
	if s.Day.Calls != 5*limit.Most || s.Day.Tokens != 5*limit.Most || s.Day.CostMicros != 5*limit.Most {
		t.Errorf("spent %+v", s.Day)
	}
	err := l.Reserve(t.Context(), "next", assay.Usage{Calls: huge}, []limit.Bound{{Subject: "tenant", Measure: limit.CallsPerDay, Most: limit.Most}})
	wantErr(t, "Reserve", err, assay.ErrQuota)
	closeLease(t, l)
}
