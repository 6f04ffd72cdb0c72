package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	. "github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// A keeping is a tenant whose runs are stored directly, with an engine on it and a clock.
type keeping struct {
	t      *testing.T
	tenant store.Tenant
	engine *Engine
	now    time.Time
}

func newKeeping(t *testing.T) *keeping {
	t.Helper()
	k := &keeping{t: t, now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
	s, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.WithClock(func() time.Time { return k.now }))
	if err != nil {
		t.Fatal(err)
	}
	if k.engine, err = Open(t.Context(), Config{Store: s, NoBackground: true, Now: func() time.Time { return k.now }}); err != nil {
		t.Fatal(err)
	}
	if k.tenant, err = s.Tenant(t.Context(), DefaultTenant); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(k.engine.Close(), k.tenant.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return k
}

// run stores an ended run that is so many days old.
func (k *keeping) run(id, user, request string, days int, state assay.RunState) {
	k.t.Helper()
	lease, err := k.tenant.Runs().Create(k.t.Context(), assay.Run{
		ID: id, Principal: assay.Principal{User: user}, Question: "What of " + id + "?", Request: json.RawMessage(request),
		Created: k.now.AddDate(0, 0, -days),
	})
	if err != nil {
		k.t.Fatal(err)
	}
	_, err = lease.Append(k.t.Context(), assay.Record{Path: "note", Kind: assay.StepRole, Input: []byte(`{}`), Output: []byte(`{}`)})
	var answer *assay.Answer
	if state == assay.RunDone {
		answer = &assay.Answer{Run: id, Status: assay.NotFound}
	}
	if err := errors.Join(err, lease.Finish(k.t.Context(), state, answer, "it broke"), lease.Close()); err != nil {
		k.t.Fatal(err)
	}
}

// states returns the runs with their states, sorted.
func (k *keeping) states() string {
	k.t.Helper()
	all, err := k.tenant.Runs().List(k.t.Context(), 0)
	if err != nil {
		k.t.Fatal(err)
	}
	var list []string
	for _, r := range all {
		list = append(list, r.ID+" "+string(r.State))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func (k *keeping) wantStates(want string) {
	k.t.Helper()
	if got := k.states(); got != want {
		k.t.Errorf("runs: %s\nwant: %s", got, want)
	}
	err := k.tenant.Audit().Check(k.t.Context(), func(f store.Finding) error { k.t.Error(f); return nil })
	if err != nil {
		k.t.Error(err)
	}
}

var admin = assay.Principal{User: "root", Roles: []string{"admin"}}

func TestEraseRuns(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.run("first", "ann", `{}`, 0, assay.RunDone)
	k.run("second", "ann", `{"follows":"first"}`, 0, assay.RunDone)
	k.run("third", "ann", `{"forked_from":{"run":"second","step":"x"}}`, 0, assay.RunDone)
	k.run("other", "ann", `{}`, 0, assay.RunDone)
	k.run("bobs", "bob", `{}`, 0, assay.RunDone)
	ann, ctx := assay.Principal{User: "ann"}, t.Context()
	for _, test := range []struct {
		who  assay.Principal
		ids  []string
		why  string
		want error
	}{
		{ann, []string{"first"}, " ", assay.ErrInvalid},
		{ann, []string{"nosuch"}, "x", assay.ErrNotFound},
		{ann, []string{"first", "bobs"}, "x", assay.ErrNotFound},
		{assay.Principal{User: "carl", Roles: []string{"auditor"}}, []string{"first"}, "x", assay.ErrNotFound},
		{assay.Principal{}, []string{"first"}, "x", assay.ErrNotFound},
	} {
		if _, err := k.engine.EraseRuns(ctx, test.who, test.ids, test.why, false); !errors.Is(err, test.want) {
			t.Errorf("%s erases %v: %v, want %v", test.who.User, test.ids, err, test.want)
		}
	}
	k.wantStates("bobs done, first done, other done, second done, third done")
	if err := k.engine.AddHold(ctx, ann, store.Hold{Name: "h", Run: "third", Reason: "x"}); !errors.Is(err, assay.ErrForbidden) {
		t.Error(err)
	}
	if err := k.engine.AddHold(ctx, admin, store.Hold{Name: "h", Run: "third", Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.engine.EraseRuns(ctx, ann, []string{"first"}, "x", true); !errors.Is(err, assay.ErrForbidden) {
		t.Errorf("with a held run: %v", err)
	}
	if err := k.engine.DeleteRun(ctx, ann, "third", "x"); !errors.Is(err, assay.ErrForbidden) || !strings.Contains(err.Error(), `hold "h"`) {
		t.Errorf("delete a held run: %v", err)
	}
	k.wantStates("bobs done, first done, other done, second done, third done") // all or nothing
	done, err := k.engine.EraseRuns(ctx, ann, []string{"first"}, "request", false)
	if err != nil || fmt.Sprint(done.Related) != "[third second]" || done.Residue != "" {
		t.Errorf("%+v, %v", done, err)
	}
	if err := k.engine.RemoveHold(ctx, admin, "h", "over"); err != nil {
		t.Fatal(err)
	}
	if _, err := k.engine.EraseRuns(ctx, admin, []string{"second", "third", "bobs"}, "request", false); err != nil {
		t.Error(err)
	}
	k.wantStates("bobs erased, first erased, other done, second erased, third erased")
	runs, err := k.engine.Runs(ctx, ann, 0)
	if err != nil || len(runs) != 4 {
		t.Errorf("%+v, %v", runs, err)
	}
	if _, err := k.engine.Replay(ctx, ann, "first"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("replay: %v", err)
	}
	r, steps, err := k.engine.Run(ctx, ann, "first")
	if err != nil || r.Question != "" || len(steps) != 1 || steps[0].Input != nil {
		t.Errorf("%+v %+v, %v", r, steps, err)
	}
	observed, err := k.engine.Observations(ctx, ann, time.Time{}, nil)
	if err != nil || len(observed) != 1 {
		t.Errorf("%+v, %v", observed, err)
	}
}

// TestRetention applies policies to runs of all ages and states, under a hold and without.
func TestRetention(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	ctx := t.Context()
	k.run("old", "ann", `{}`, 100, assay.RunDone)
	k.run("held", "bob", `{}`, 100, assay.RunDone)
	k.run("young", "ann", `{}`, 10, assay.RunDone)
	k.run("broken", "ann", `{}`, 40, assay.RunFailed)
	k.run("new", "ann", `{}`, 1, assay.RunFailed)
	if err := k.tenant.Audit().Append(ctx, store.Act{Kind: "review.decided", Subject: "old", Reason: "because"}, store.Act{Kind: "note.made", Subject: "x"}); err != nil {
		t.Fatal(err)
	}
	for kind, days := range map[string]int{store.RetainRuns: 90, store.RetainJournals: 30, store.RetainReviews: 5, store.RetainActs: 20, store.RetainVersions: 2} {
		if err := k.engine.SetRetention(ctx, assay.Principal{User: "ann"}, kind, days, ""); !errors.Is(err, assay.ErrForbidden) {
			t.Error(err)
		}
		if err := k.engine.SetRetention(ctx, admin, kind, days, "policy"); err != nil {
			t.Fatal(err)
		}
	}
	for _, days := range []int{0, -1, store.MaxRetentionDays + 1} {
		if err := k.engine.SetRetention(ctx, admin, store.RetainRuns, days, ""); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%d days: %v", days, err)
		}
	}
	if err := k.engine.AddHold(ctx, admin, store.Hold{Name: "case", User: "bob", Reason: "litigation"}); err != nil {
		t.Fatal(err)
	}
	apply := func(dry bool, want string) {
		t.Helper()
		done, err := k.engine.ApplyRetention(ctx, admin, dry)
		got := fmt.Sprintf("runs %d, held %d, journals %d, acts %d", done.Runs.Runs, done.Runs.Held, done.Journals.Runs, done.Acts)
		if err != nil || got != want {
			t.Errorf("dry %v: %s, want %s, %v", dry, got, want, err)
		}
	}
	if _, err := k.engine.ApplyRetention(ctx, assay.Principal{User: "ann"}, false); !errors.Is(err, assay.ErrForbidden) {
		t.Error(err)
	}
	apply(true, "runs 1, held 1, journals 1, acts 0")
	apply(false, "runs 1, held 1, journals 1, acts 0")
	k.wantStates("broken erased, held done, new failed, young done")
	k.now = k.now.AddDate(0, 0, 6)
	apply(false, "runs 0, held 1, journals 0, acts 0") // the review's act was erased with its run
	k.now = k.now.AddDate(0, 0, 20)
	apply(false, "runs 0, held 1, journals 0, acts 1")
	k.now = k.now.AddDate(1, 0, 0)
	apply(false, "runs 3, held 1, journals 1, acts 0")
	k.wantStates("held done")
	if err := k.engine.RemoveHold(ctx, admin, "case", "settled"); err != nil {
		t.Fatal(err)
	}
	apply(false, "runs 1, held 0, journals 0, acts 0")
	k.wantStates("")
}

// TestProve checks who gets a proof of a run, and with what in it.
func TestProve(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.run("run", "ann", `{"rests":["hidden"]}`, 0, assay.RunDone) // it depends on a document that nobody may see any more
	k.run("open", "ann", `{}`, 0, assay.RunDone)
	k.run("deleted", "ann", `{}`, 0, assay.RunDone)
	ann, ctx := assay.Principal{User: "ann"}, t.Context()
	if err := k.engine.DeleteRun(ctx, ann, "deleted", "x"); err != nil {
		t.Fatal(err)
	}
	key, err := audit.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	authority := audit.Authority{Audit: k.tenant.Audit(), Registry: k.tenant.Registry(), Actor: admin, Key: key}
	signed, err := authority.Checkpoint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	v, err := audit.NewVerifier(signed.Keys...)
	if err != nil {
		t.Fatal(err)
	}
	auditor := assay.Principal{User: "aud", Roles: []string{"auditor"}}
	for _, test := range []struct {
		who      assay.Principal
		run      string
		want     error
		withheld bool
	}{
		{ann, "open", nil, false},
		{ann, "run", nil, true},
		{auditor, "open", nil, false},
		{auditor, "run", nil, true},
		{auditor, "deleted", nil, true},
		{ann, "deleted", assay.ErrNotFound, false},
		{assay.Principal{User: "bob"}, "open", assay.ErrNotFound, false},
		{assay.Principal{}, "open", assay.ErrNotFound, false},
	} {
		p, err := k.engine.Prove(ctx, test.who, test.run, signed)
		if !errors.Is(err, test.want) || p.Withheld != test.withheld {
			t.Errorf("%s, %s: withheld %v, %v", test.who.User, test.run, p.Withheld, err)
		}
		if err != nil {
			continue
		}
		data, err := p.Bytes()
		if err == nil {
			_, err = audit.CheckProof(data, v)
		}
		if err != nil {
			t.Errorf("%s, %s: %v", test.who.User, test.run, err)
		}
	}
}
