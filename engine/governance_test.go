package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/governance"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// governed returns an engine of a new tenant.
func governed(t *testing.T, s *sqlite.Store, tenant string, now func() time.Time) *Engine {
	t.Helper()
	if err := s.CreateTenant(t.Context(), tenant, store.Act{}); err != nil {
		t.Fatal(err)
	}
	e, err := Open(t.Context(), Config{Store: s, Tenant: tenant, NoBackground: true, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func governedStore(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestGovernanceOfWhatWasDone does a little of everything and compares the report with it.
func TestGovernanceOfWhatWasDone(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Now()
	e := governed(t, governedStore(t), "a", func() time.Time { return now })
	ingestPaths(t, e, "testdata/handbook")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	bob := reviewer("bob-1") // the IDs of runs have neither hyphens nor ones, so the name is in none by chance
	decide := func(after time.Duration, by assay.Principal, id string, what func(string) error) {
		t.Helper()
		claimed(t, e, by, id)
		now = now.Add(after)
		must(what(id))
	}
	approve := func(by assay.Principal) func(string) error {
		return func(id string) error { _, err := e.Approve(ctx, by, id); return err }
	}
	edit := func(id string) error {
		_, err := e.Edit(ctx, bob, id, "Travel to a customer is approved by the head of the department. [1]")
		return err
	}
	reject := func(id string) error { _, err := e.Reject(ctx, bob, id, "out of date"); return err }

	setPolicy(t, e, review.Policy{Name: "all", Always: true})
	quick := askPending(t, e).Run
	decide(2*time.Second, bob, quick, approve(bob))
	slow := askPending(t, e).Run
	decide(time.Minute, bob, slow, approve(bob))
	edited := askPending(t, e).Run
	decide(time.Minute, bob, edited, edit)
	rejected := askPending(t, e).Run
	decide(time.Minute, bob, rejected, reject)
	// Two reviewers: one decision of the two ends the review.
	setPolicy(t, e, review.Policy{Name: "all", Always: true, Approvals: 2})
	twice := askPending(t, e).Run
	decide(time.Minute, bob, twice, edit)
	decide(time.Minute, reviewer("carol"), twice, approve(reviewer("carol")))
	waiting := askPending(t, e).Run
	must(e.RemovePolicy(ctx, assay.Local(), "all", ""))

	must(e.SetLimits(ctx, assay.Local(), limit.User("dan-1"), limit.Limits{limit.RequestsPerDay: 0}, ""))
	_, err := e.Answer(ctx, assay.Principal{User: "dan-1"}, Request{Question: someQuestion})
	wantErr(t, "a question over the limit", err, assay.ErrQuota)
	for _, all := range []bool{false, true} {
		must(e.Stop(ctx, assay.Local(), all, "a test"))
		_, err = e.Answer(ctx, reader(), Request{Question: someQuestion})
		wantErr(t, "a question while stopped", err, assay.ErrStopped)
		must(e.Start(ctx, assay.Local(), all, "a test"))
	}
	if _, _, err := e.AddCanary(ctx, asker, NewCanary{Text: canaryNote}); err != nil {
		t.Fatal(err)
	}
	alarm := ask(t, e, "What was the interim amount for depot KQX-4821 of the Klimousett allocation?").Run
	erased := ask(t, e, "How long is parental leave?").Run
	if _, err := e.EraseRuns(ctx, assay.Local(), []string{erased}, "asked for", false); err != nil {
		t.Fatal(err)
	}

	r, err := e.GovernanceReport(ctx, governance.Options{})
	must(err)
	for _, test := range []struct {
		figure    string
		count, of float64
		runs      []string
	}{
		{"complete_traces", 6, 6, nil},
		{"unfinished_runs", 1, 0, []string{waiting}},
		{"reviews_needed", 6, 0, nil},
		{"override_rate", 3, 5, []string{edited, rejected, twice}},
		{"quick_decisions", 1, 6, []string{quick}},
		{"canary_alarms", 1, 0, []string{alarm}},
		{"limits_hit", 0, 0, nil},
		{"limit_changes", 1, 0, nil},
		{"stops", 4, 0, nil},
		{"policy_changes", 3, 0, nil},
		{"tenant_changes", 1, 0, nil},
		{"deletions", 1, 0, []string{erased}},
		{"tool_errors", 0, r.Figure("tool_calls").Value, nil},
	} {
		slices.Sort(test.runs)
		f := r.Figure(test.figure)
		count := f.Count
		if f.Unit == "count" {
			count = f.Value
		}
		if count != test.count || f.Of != test.of && f.Unit == "share" || !slices.Equal(f.Runs, test.runs) {
			t.Errorf("%s = %v of %v, runs %v; want %v of %v, %v", f.Name, count, f.Of, f.Runs, test.count, test.of, test.runs)
		}
	}
	for _, name := range []string{"override_rate", "quick_decisions", "canary_alarms"} {
		if f := r.Figure(name); f.State != governance.Alert {
			t.Errorf("%s is %s", name, f.State)
		}
	}
	text, err := json.Marshal(r)
	must(err)
	for _, hidden := range []string{"Bradeikousten", "department", "out of date", "bob-1", "dan-1", "a test"} {
		if strings.Contains(string(text), hidden) {
			t.Errorf("the report shows %q", hidden)
		}
	}
}

// TestGovernanceOfOneTenant checks that a report has the acts of the store's own log about its tenant,
// and none about others.
func TestGovernanceOfOneTenant(t *testing.T) {
	t.Parallel()
	s := governedStore(t)
	a, b := governed(t, s, "a", nil), governed(t, s, "b", nil)
	c, _, err := a.AddCanary(t.Context(), asker, NewCanary{Text: canaryNote})
	if err != nil {
		t.Fatal(err)
	}
	putText(t, b, "leak.md", canaryNote)
	if _, err := b.Answer(t.Context(), assay.Local(), Request{Question: "What was the interim amount for depot KQX-4821?"}); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for _, e := range []*Engine{a, b} {
		r, err := e.GovernanceReport(t.Context(), governance.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := r.Figure("canary_alarms").Value; n == 0 {
			t.Errorf("%s: no alarm", r.Tenant)
		}
		if n := r.Figure("tenant_changes").Value; n != 1 {
			t.Errorf("%s: %v changes of the tenant, want its creation", r.Tenant, n)
		}
		for _, row := range r.Table("acts").Rows {
			if r.Tenant == "a" && row[1] == "store" && row[4] == "canary.alarm" && row[5] != c.Name {
				t.Errorf("%s: %v", r.Tenant, row)
			}
			if r.Tenant == "b" && row[1] == "store" && row[4] == "canary.alarm" {
				t.Errorf("%s: the alarm of another tenant: %v", r.Tenant, row)
			}
		}
		if runs := r.Figure("canary_alarms").Runs; r.Tenant == "a" && len(runs) > 0 {
			t.Errorf("%s: shows runs of another tenant: %v", r.Tenant, runs)
		}
	}
}
