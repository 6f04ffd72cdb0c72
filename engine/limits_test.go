package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/llm"
)

// setLimits sets limits of a subject.
func setLimits(t *testing.T, e *Engine, subject string, limits limit.Limits) {
	t.Helper()
	if err := e.SetLimits(t.Context(), assay.Local(), subject, limits, "a test"); err != nil {
		t.Fatal(err)
	}
}

// spent returns what a subject has spent today of a measure.
func spent(t *testing.T, e *Engine, subject string, m limit.Measure) LimitUse {
	t.Helper()
	uses, err := e.LimitUsage(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range uses {
		if u.Measure == m {
			return u
		}
	}
	return LimitUse{Subject: subject, Measure: m}
}

// TestQuotaOfRequests checks limits of requests by user and key, and that a refused request stores
// nothing.
func TestQuotaOfRequests(t *testing.T) {
	t.Parallel()
	e := open(t)
	setLimits(t, e, limit.Users, limit.Limits{limit.RequestsPerDay: 2})
	setLimits(t, e, limit.Key("k1"), limit.Limits{limit.RequestsPerMonth: 1})
	ann, annByKey := assay.Principal{User: "ann"}, assay.Principal{User: "ann", Key: "k1"}
	asked := func(p assay.Principal) error {
		_, err := e.Answer(t.Context(), p, Request{Question: someQuestion})
		return err
	}
	if err := asked(annByKey); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		p       assay.Principal
		measure limit.Measure
	}{{annByKey, limit.RequestsPerMonth}, {ann, ""}, {ann, limit.RequestsPerDay}, {assay.Principal{User: "bob"}, ""}} {
		err := asked(test.p)
		if test.measure == "" {
			if err != nil {
				t.Errorf("%+v: %v", test.p, err)
			}
			continue
		}
		refused, ok := limit.AsError(err)
		if !ok || refused.Measure != test.measure || refused.Left != 0 || refused.Renews.IsZero() || !errors.Is(err, assay.ErrQuota) {
			t.Errorf("%+v: %v, want a refusal by %s", test.p, err, test.measure)
		}
	}
	runs, err := e.Runs(t.Context(), ann, 0)
	if err != nil || len(runs) != 2 {
		t.Errorf("%d runs, %v; want 2", len(runs), err)
	}
	if u := spent(t, e, limit.User("ann"), limit.RequestsPerDay); u.Spent != 2 || u.Left != 0 || u.Limit != 2 {
		t.Errorf("usage %+v", u)
	}
	for _, bad := range []error{
		e.SetLimits(t.Context(), ann, "group:x", limit.Limits{limit.Runs: 1}, ""),
		e.SetLimits(t.Context(), ann, "tenant", limit.Limits{"runs/day": 1}, ""),
		e.SetLimits(t.Context(), ann, "tenant", limit.Limits{limit.Runs: limit.Most + 1}, ""),
	} {
		if !errors.Is(bad, assay.ErrInvalid) {
			t.Errorf("a wrong limit: %v", bad)
		}
	}
	setLimits(t, e, limit.Users, limit.Limits{limit.RequestsPerDay: -1})
	if err := asked(ann); err != nil {
		t.Errorf("after the limit was removed: %v", err)
	}
	if err := e.RemoveLimits(t.Context(), ann, limit.Users, ""); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("remove limits that are not there: %v", err)
	}
}

// TestQuotaOfConcurrentRuns checks that a run holds its place until it has ended.
func TestQuotaOfConcurrentRuns(t *testing.T) {
	t.Parallel()
	by := handbook.models()
	e := openModels(t, served(by))
	setLimits(t, e, limit.Tenant, limit.Limits{limit.Runs: 1})
	grade := by["grader"].reply
	var once sync.Once
	by["grader"].reply = func(ctx context.Context, n int, req llm.Request) (llm.Response, error) {
		once.Do(func() {
			_, err := e.Answer(ctx, assay.Principal{User: "bob"}, Request{Question: someQuestion})
			if refused, ok := limit.AsError(err); !ok || refused.Measure != limit.Runs {
				t.Errorf("a second run at the same time: %v", err)
			}
		})
		return grade(ctx, n, req)
	}
	for range 2 {
		if a := ask(t, e, someQuestion); a.Status != assay.Answered {
			t.Fatalf("%s: %s", a.Status, a.Justification)
		}
	}
}

// TestQuotaEndsARun checks that a run that reaches a limit ends with its best verified part, that no
// limit is exceeded, that replays reproduce it, and that the ledger equals the journals.
func TestQuotaEndsARun(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"corrective", "auto", "react", "self"} {
		for _, most := range []int64{0, 1, 2, 3} {
			by := handbook.models()
			e := openModels(t, served(by))
			setLimits(t, e, limit.User("local"), limit.Limits{limit.CallsPerDay: most})
			a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: strategy})
			if err != nil {
				t.Fatal(err)
			}
			made := 0
			for _, m := range by {
				made += m.calls()
			}
			complete := a.Status == assay.Answered && int64(made) == most // it needs no more
			if !complete && (a.Status != assay.Incomplete || a.Stop != assay.StopQuota) || int64(made) > most || int64(a.Usage.Calls) != int64(made) {
				t.Errorf("%s, %d calls at most: %s (%s), %d made: %s", strategy, most, a.Status, a.Stop, made, a.Justification)
			}
			if len(a.Claims) == 0 && !strings.Contains(a.Justification, fmt.Sprintf("the limit of %d model calls a day", most)) {
				t.Errorf("%s, %d calls at most: the justification does not name the limit: %s", strategy, most, a.Justification)
			}
			replays(t, e, a.Run)
			if u := spent(t, e, limit.User("local"), limit.CallsPerDay); u.Spent != int64(made) || u.Reserved != 0 || u.Other != 0 {
				t.Errorf("%s, %d calls at most: usage %+v after %d calls", strategy, most, u, made)
			}
		}
	}
}

// TestQuotaOfMoney checks limits of tokens and money, and that a limit of money needs prices.
func TestQuotaOfMoney(t *testing.T) {
	t.Parallel()
	by := handbook.models()
	e := openModels(t, served(by))
	setLimits(t, e, limit.Tenant, limit.Limits{limit.CostPerMonth: 20_000})
	req := Request{Question: someQuestion, NoCache: true}
	if _, err := e.Answer(t.Context(), assay.Local(), req); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "fake/planner") {
		t.Errorf("unpriced: %v, want ErrInvalid that names the model", err)
	}
	for _, m := range by {
		m.facts = llm.Facts{Priced: true, Input: 1_000_000, Output: 1_000_000}
		say := m.reply
		m.reply = func(ctx context.Context, n int, req llm.Request) (llm.Response, error) {
			r, err := say(ctx, n, req)
			r.Usage.CostMicros = m.facts.Cost(r.Usage)
			return r, err
		}
	}
	var sum int64
	for i := 0; ; i++ {
		a, err := e.Answer(t.Context(), assay.Local(), req)
		if err != nil {
			t.Fatal(err)
		}
		sum += a.Usage.CostMicros
		replays(t, e, a.Run)
		if a.Stop == assay.StopQuota {
			break
		}
		if i == 50 {
			t.Fatal("the limit was never reached")
		}
	}
	if u := spent(t, e, limit.Tenant, limit.CostPerMonth); u.Spent != sum || sum > 20_000 || u.Reserved != 0 {
		t.Errorf("%d were spent, usage %+v", sum, u)
	}
}

// TestQuotaOfSearches checks that a search without a run counts its remote calls, and works without
// them once a limit is reached.
func TestQuotaOfSearches(t *testing.T) {
	t.Parallel()
	best := &reading{name: "far/rerank"}
	e, encoder := openRemote(t, Models{Reranker: best})
	if _, err := e.Embed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if u := spent(t, e, limit.Tenant, limit.CallsPerDay); u.Spent != encoder.calls.Load() || u.Other != u.Spent || u.Spent == 0 {
		t.Errorf("usage of the embedder %+v, %d calls were made", u, encoder.calls.Load())
	}
	ann := assay.Principal{User: "ann"}
	setLimits(t, e, limit.User("ann"), limit.Limits{limit.CallsPerDay: 3})
	encoder.calls.Store(0)
	q := assay.Query{Text: someQuestion, Limit: 3}
	for i := range 3 {
		found, err := e.Search(t.Context(), ann, q)
		if err != nil || len(found.Hits) == 0 {
			t.Fatalf("search %d: %d hits, %v", i, len(found.Hits), err)
		}
		if limited := strings.Contains(fmt.Sprint(found.Notes), "model calls a day"); limited != (i > 0) {
			t.Errorf("search %d: notes %v", i, found.Notes)
		}
	}
	if made := encoder.calls.Load() + best.calls.Load(); made != 3 {
		t.Errorf("%d calls were made, want 3", made)
	}
	if u := spent(t, e, limit.User("ann"), limit.CallsPerDay); u.Spent != 3 || u.Other != 3 || u.Reserved != 0 {
		t.Errorf("usage %+v", u)
	}
	a, err := e.Answer(t.Context(), ann, Request{Question: someQuestion})
	if err != nil || a.Status != assay.Answered || a.Usage.Calls != 0 {
		t.Errorf("a question without calls: %s, %d calls, %v", a.Status, a.Usage.Calls, err)
	}
	replaysFor(t, e, ann, a.Run)
	setLimits(t, e, limit.User("ann"), limit.Limits{limit.RequestsPerMinute: 1})
	if _, err := e.Search(t.Context(), ann, q); err != nil {
		t.Error(err)
	}
	if _, err := e.Search(t.Context(), ann, q); !errors.Is(err, assay.ErrQuota) {
		t.Errorf("a burst of searches: %v", err)
	}
}

func replaysFor(t *testing.T, e *Engine, p assay.Principal, id string) {
	t.Helper()
	if _, err := e.Replay(t.Context(), p, id); err != nil {
		t.Errorf("replay: %v", err)
	}
}

// TestQuotaOfEmbed checks that an embedder stops at a limit and continues when there is room.
func TestQuotaOfEmbed(t *testing.T) {
	t.Parallel()
	e, encoder := openRemote(t, Models{})
	setLimits(t, e, limit.Tenant, limit.Limits{limit.CallsPerDay: 0})
	report, err := e.Embed(t.Context(), nil)
	if !errors.Is(err, assay.ErrQuota) || report.Stored > 0 || len(report.Failed) > 0 || encoder.calls.Load() > 0 {
		t.Errorf("Embed over the limit: %+v, %v, %d calls", report, err, encoder.calls.Load())
	}
	setLimits(t, e, limit.Tenant, limit.Limits{limit.CallsPerDay: -1})
	if report, err = e.Embed(t.Context(), nil); err != nil || report.Missing() > 0 {
		t.Errorf("Embed: %+v, %v", report, err)
	}
}

// TestForkIsNotPaidTwice checks that the steps that a fork takes over are not counted again.
func TestForkIsNotPaidTwice(t *testing.T) {
	t.Parallel()
	e := openModels(t, served(handbook.models()))
	a := ask(t, e, someQuestion)
	records, err := e.runs.Records(t.Context(), a.Run)
	if err != nil {
		t.Fatal(err)
	}
	b := forked(t, e, a.Run, fmt.Sprint(len(records)), nil)
	u := spent(t, e, limit.User("local"), limit.CallsPerDay)
	if u.Spent < int64(a.Usage.Calls) || u.Spent >= int64(a.Usage.Calls+b.Usage.Calls) {
		t.Errorf("%d calls are counted; the run made %d and the fork reports %d", u.Spent, a.Usage.Calls, b.Usage.Calls)
	}
	if u := spent(t, e, limit.User("local"), limit.RequestsPerDay); u.Spent != 2 {
		t.Errorf("%d requests, want 2", u.Spent)
	}
}

// TestLimitsOfOtherProcesses checks that another engine on the same data sees a limit at once.
func TestLimitsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	e, other := openDir(t, dir), openDir(t, dir)
	ask(t, e, someQuestion)
	setLimits(t, other, limit.Users, limit.Limits{limit.RequestsPerDay: 1})
	if _, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion}); !errors.Is(err, assay.ErrQuota) {
		t.Errorf("the second request: %v", err)
	}
	table, err := e.Limits(t.Context())
	if diff := cmp.Diff(limit.Table{limit.Users: {limit.RequestsPerDay: 1}}, table); err != nil || diff != "" {
		t.Errorf("limits, %v (-want +got):\n%s", err, diff)
	}
}

// TestLimitActsNameNoPerson checks the subjects of the acts on limits, which are never erased.
func TestLimitActsNameNoPerson(t *testing.T) {
	t.Parallel()
	e := open(t)
	setLimits(t, e, limit.User("canary-person"), limit.Limits{limit.Runs: 1})
	if err := e.RemoveLimits(t.Context(), assay.Local(), limit.User("canary-person"), ""); err != nil {
		t.Fatal(err)
	}
	size, err := e.tenant.Audit().Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for entry, err := range e.tenant.Audit().Entries(t.Context(), 0, size) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(entry.Header), "canary-person") {
			t.Errorf("a leaf names the person: %s", entry.Header)
		}
		for _, kind := range []string{"limit.set", "limit.removed"} {
			if strings.Contains(string(entry.Header), kind) {
				seen = append(seen, kind)
			}
		}
	}
	if !slices.Equal(seen, []string{"limit.set", "limit.removed"}) {
		t.Errorf("acts %v", seen)
	}
}
