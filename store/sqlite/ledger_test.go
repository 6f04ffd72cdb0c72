package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// spendBounds never refuse a child of TestKillSpender.
var spendBounds = []limit.Bound{{Subject: limit.Tenant, Measure: limit.TokensPerMonth, Most: limit.Most}, {Subject: limit.Tenant, Measure: limit.Runs, Most: 1000}}

// childSpend drives several runs at once, each with admissions, reservations, records, steps without a
// record and calls outside runs. It prints a number for each step that is acknowledged.
func childSpend(ctx context.Context, dir, round string) error {
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	t, err := created(s, ctx, "crash")
	if err != nil {
		return err
	}
	errs := make(chan error)
	for i := range 3 {
		go func() { errs <- spendOn(ctx, t, fmt.Sprintf("run-%s-%d", round, i), i) }()
	}
	return <-errs // none of them ends
}

func spendOn(ctx context.Context, t *Tenant, id string, i int) error {
	p := assay.Principal{User: fmt.Sprint("user", i), Key: "key"}
	rng := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(i)))
	for k := 0; ; k++ {
		run := fmt.Sprintf("%s-%d", id, k)
		acc, err := t.Ledger().Admit(ctx, store.Admission{Principal: p, Run: run, Bounds: spendBounds})
		if err != nil {
			return err
		}
		l, err := t.Runs().Create(ctx, assay.Run{ID: run, Principal: p, Question: "?"})
		if err != nil {
			return err
		}
		for n := range 1 + rng.IntN(6) {
			path, most := fmt.Sprintf("step[%d]", n), assay.Usage{Calls: 1, InputTokens: 50 + rng.IntN(50), CostMicros: 1000}
			if err := l.Reserve(ctx, path, most, spendBounds); err != nil {
				return err
			}
			used := assay.Usage{Calls: 1, InputTokens: rng.IntN(most.InputTokens), CostMicros: rng.Int64N(1000), Searches: 1}
			switch rng.IntN(8) {
			case 0: // a step that was cancelled
				err = l.Settle(ctx, path, most)
			case 1: // one that reports more than was reserved
				used.InputTokens += 1000
				fallthrough
			default:
				_, err = l.Append(ctx, assay.Record{Path: path, Kind: assay.StepModel, Input: json.RawMessage(strconv.Itoa(n)), Usage: used})
			}
			if err != nil {
				return err
			}
			fmt.Println(n)
		}
		if err := errors.Join(l.Close(), acc.Close()); err != nil {
			return err
		}
	}
}

// ledgerRounds returns how often TestKillSpender kills a child.
func ledgerRounds() int {
	switch {
	case os.Getenv("ASSAY_LONG") != "":
		return 350
	case testing.Short():
		return 15
	}
	return 40
}

// TestKillSpender kills a spending process at random moments. Afterwards the ledger equals the sum of
// the journals plus, for each step that had a reservation and no record when its process died, the
// reservation.
func TestKillSpender(t *testing.T) {
	c := newCrasher(t, 11)
	other := map[string]store.Amount{} // settled without a record, before and by kills
	forfeited := 0
	for round := range ledgerRounds() {
		cmd, lines := c.start("spend", strconv.Itoa(round))
		c.kill(cmd, lines)
		tenant := openCrash(t, c.dir)
		held := leftReserved(t, tenant)
		forfeited += len(held)
		checkLedger(t, tenant, other, held)
		if err := tenant.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d kills, %d rows of reservations were left by dead processes, spent without a record: %+v", ledgerRounds(), forfeited, other["tenant"])
}

// leftReserved returns the reservations in the database, a row for each subject.
func leftReserved(t *testing.T, tenant *Tenant) map[string]store.Amount {
	t.Helper()
	held := map[string]store.Amount{}
	err := tenant.runs.View(t.Context(), func(s relational.Reader) error {
		return s.Each(t.Context(), `SELECT subject, calls, tokens, micros FROM reservations`, nil, func(scan func(...any) error) error {
			var subject string
			var a store.Amount
			err := scan(&subject, &a.Calls, &a.Tokens, &a.CostMicros)
			held[subject] = held[subject].Add(a)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// checkLedger compares the ledger with the journals. Held is forfeited now; what was settled without
// a record besides it since the last round is a multiple of whole steps.
func checkLedger(t *testing.T, tenant *Tenant, other, held map[string]store.Amount) {
	t.Helper()
	ctx := t.Context()
	recorded := map[string]store.Amount{}
	runs, err := tenant.Runs().List(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	cancelled := otherIn(t, tenant) // before the dead are settled
	for _, r := range runs {
		sum := store.Amount{Requests: 1}
		records, err := tenant.Runs().Records(ctx, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			u := rec.Usage
			sum = sum.Add(store.Amount{Calls: int64(u.Calls), Tokens: int64(u.InputTokens) + int64(u.OutputTokens), CostMicros: u.CostMicros})
		}
		for _, subject := range limit.SubjectsOf(r.Principal) {
			recorded[subject] = recorded[subject].Add(sum)
		}
	}
	all, err := tenant.Ledger().Spending(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		want := cancelled[s.Subject].Add(held[s.Subject])
		if diff := cmp.Diff(want, s.OtherMonth); diff != "" {
			t.Errorf("%s: spent without a record (-want +got):\n%s", s.Subject, diff)
		}
		if diff := cmp.Diff(recorded[s.Subject].Add(s.OtherMonth), s.Month); diff != "" {
			t.Errorf("%s: spent (-want: the journals and what has no record; +got):\n%s", s.Subject, diff)
		}
		if s.Held != (store.Amount{}) || s.Runs != 0 {
			t.Errorf("%s: a dead process still holds %+v and %d runs", s.Subject, s.Held, s.Runs)
		}
		before := other[s.Subject]
		if s.OtherMonth.Calls < before.Calls || s.OtherMonth.Tokens < before.Tokens {
			t.Errorf("%s: spent without a record fell from %+v to %+v", s.Subject, before, s.OtherMonth)
		}
		other[s.Subject] = s.OtherMonth
	}
	again, err := tenant.Ledger().Spending(ctx)
	if diff := cmp.Diff(all, again); err != nil || diff != "" {
		t.Errorf("read again, %v (-first +second):\n%s", err, diff)
	}
}

// otherIn reads what was counted without a record, of the newest month, from the database.
func otherIn(t *testing.T, tenant *Tenant) map[string]store.Amount {
	t.Helper()
	sums := map[string]store.Amount{}
	err := tenant.runs.View(t.Context(), func(s relational.Reader) error {
		return s.Each(t.Context(), `SELECT subject, other_calls, other_tokens, other_micros FROM spending WHERE length(period) = 7`, nil, func(scan func(...any) error) error {
			var subject string
			var a store.Amount
			err := scan(&subject, &a.Calls, &a.Tokens, &a.CostMicros)
			sums[subject] = a
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// competeBounds are shared by the children of TestLimitsHoldAcrossProcesses.
var competeBounds = []limit.Bound{{Subject: limit.Tenant, Measure: limit.TokensPerMonth, Most: 5000}, {Subject: limit.Tenant, Measure: limit.CallsPerMonth, Most: 120}}

// childCompete spends until it is refused ten times in a row, and prints how many tokens and calls it
// has spent.
func childCompete(ctx context.Context, dir, name string) error {
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	t, err := created(s, ctx, "crash")
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var tokens, calls int
	var failed error
	for i := range 4 {
		wg.Go(func() {
			n, c, err := compete(ctx, t, fmt.Sprintf("%s-%d", name, i))
			mu.Lock()
			defer mu.Unlock()
			tokens, calls, failed = tokens+n, calls+c, errors.Join(failed, err)
		})
	}
	wg.Wait()
	fmt.Println(tokens, calls)
	return errors.Join(failed, t.Close())
}

func compete(ctx context.Context, t *Tenant, run string) (tokens, calls int, err error) {
	l, err := t.Runs().Create(ctx, assay.Run{ID: run, Principal: assay.Local(), Question: "?"})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for n, refused := 0, 0; refused < 10; n++ {
		path, most := fmt.Sprintf("step[%d]", n), 1+rand.IntN(100)
		err := l.Reserve(ctx, path, assay.Usage{Calls: 1, InputTokens: most}, competeBounds)
		if errors.Is(err, assay.ErrQuota) {
			refused++
			continue
		}
		if err != nil {
			return tokens, calls, err
		}
		used, made := rand.IntN(most+1), 1
		if _, err := l.Append(ctx, assay.Record{Path: path, Kind: assay.StepModel, Input: json.RawMessage(`0`), Usage: assay.Usage{Calls: made, InputTokens: used}}); err != nil {
			return tokens, calls, err
		}
		tokens, calls, refused = tokens+used, calls+made, 0
	}
	return tokens, calls, nil
}

// TestLimitsHoldAcrossProcesses checks that several processes together never exceed a limit, and that
// the ledger has exactly what they spent.
func TestLimitsHoldAcrossProcesses(t *testing.T) {
	c := newCrasher(t, 3)
	tenant := openCrash(t, c.dir)
	defer tenant.Close()
	var tokens, calls int64
	results := make(chan string)
	const processes = 4
	for i := range processes {
		cmd, lines := c.start("compete", strconv.Itoa(i))
		go func() {
			text := ""
			for lines.Scan() {
				text = lines.Text()
			}
			if err := cmd.Wait(); err != nil {
				text = err.Error()
			}
			results <- text
		}()
	}
	for range processes {
		var n, m int64
		text := <-results
		if _, err := fmt.Sscan(text, &n, &m); err != nil {
			t.Fatalf("a child said %q", text)
		}
		tokens, calls = tokens+n, calls+m
	}
	all, err := tenant.Ledger().Spending(t.Context(), limit.Tenant)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	want := store.Amount{Requests: 4 * processes, Tokens: tokens, Calls: calls}
	if diff := cmp.Diff(want, all[0].Month); diff != "" {
		t.Errorf("the ledger differs from what was spent (-want +got):\n%s", diff)
	}
	if tokens > 5000 || calls > 120 || calls < 100 {
		t.Errorf("%d tokens and %d calls were spent, want at most 5000 and 120, and nearly that", tokens, calls)
	}
}

// TestDeadAdmissionIsFree checks that the admission of a dead process is free at once.
func TestDeadAdmissionIsFree(t *testing.T) {
	c := newCrasher(t, 4)
	cmd, lines := c.start("spend", "0")
	for range 3 {
		lines.Scan()
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	tenant := openCrash(t, c.dir)
	defer tenant.Close()
	acc, err := tenant.Ledger().Admit(t.Context(), store.Admission{
		Principal: assay.Local(), Run: "new", Bounds: []limit.Bound{{Subject: limit.Tenant, Measure: limit.Runs, Most: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := acc.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkAppendUsage measures what counting adds to the record of a paid step.
func BenchmarkAppendUsage(b *testing.B) {
	for _, test := range []struct {
		name    string
		usage   assay.Usage
		reserve bool
	}{
		{"free", assay.Usage{Searches: 1}, false},
		{"counted", assay.Usage{Calls: 1, InputTokens: 100, CostMicros: 5}, false},
		{"reserved", assay.Usage{Calls: 1, InputTokens: 100, CostMicros: 5}, true},
	} {
		b.Run(test.name, func(b *testing.B) {
			s, err := Open(b.Context(), b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			t, err := s.tenant(b.Context(), "crash")
			if err != nil {
				b.Fatal(err)
			}
			defer t.Close()
			l, err := t.Runs().Create(b.Context(), assay.Run{ID: "run", Principal: assay.Principal{User: "u", Key: "k"}, Question: "?"})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			n := 0
			for b.Loop() {
				path := fmt.Sprint("step", n)
				n++
				if test.reserve {
					if err := l.Reserve(b.Context(), path, test.usage, spendBounds); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := l.Append(b.Context(), assay.Record{Path: path, Kind: assay.StepModel, Input: json.RawMessage(`0`), Usage: test.usage}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestForgetSpending checks that sums of ended periods go, and that those of today and this month stay.
func TestForgetSpending(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	s, err := Open(t.Context(), t.TempDir(), WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := s.Tenant(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	tenant := opened.(*Tenant)
	defer tenant.Close()
	for i := range 3 { // 31 January, 1 and 2 February
		l, err := tenant.Runs().Create(t.Context(), assay.Run{ID: strconv.Itoa(i), Principal: assay.Principal{User: "ann"}, Question: "?"})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		now = now.AddDate(0, 0, 1)
	}
	now = now.AddDate(0, 0, -1)
	for _, test := range []struct {
		before time.Time
		want   string
	}{
		{now.AddDate(0, -1, 0), "2026-01 2026-01-31 2026-02 2026-02-01 2026-02-02"},
		{now.AddDate(0, 0, -1), "2026-02 2026-02-01 2026-02-02"},
		{now.AddDate(1, 0, 0), "2026-02 2026-02-02"},
	} {
		if _, err := tenant.Ledger().Forget(t.Context(), test.before); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := tenant.runs.Row(t.Context(), `SELECT group_concat(DISTINCT period) FROM (SELECT period FROM spending ORDER BY period)`, nil, &got); err != nil {
			t.Fatal(err)
		}
		if got = strings.ReplaceAll(got, ",", " "); got != test.want {
			t.Errorf("before %s: left %s, want %s", test.before.Format(time.DateOnly), got, test.want)
		}
	}
}
