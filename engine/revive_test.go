//go:build unix

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/store"
)

// A fatalRetriever ends the process at a search with the word "fatal".
type fatalRetriever struct{ assay.Retriever }

func (r fatalRetriever) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	if strings.Contains(q.Text, "fatal") {
		os.Exit(3)
	}
	return r.Retriever.Retrieve(ctx, access, q)
}

// hostAsChild serves acme as a process that dies.
func hostAsChild(ctx context.Context, c child) error {
	config := HostConfig{Config: Config{Dir: c.Dir, NoBackground: true}, MaxRuns: 4}
	config.Retriever = func(builtin assay.Retriever) assay.Retriever { return fatalRetriever{builtin} }
	h, err := OpenHost(ctx, config)
	if err != nil {
		return err
	}
	fmt.Println("started")
	if err := h.ResumeInterrupted(ctx); err != nil {
		return err
	}
	if c.Question == "" {
		h.live.work.Wait()
		return h.Close()
	}
	s, err := h.Session(ctx, roleGrant("acme", staff, identity.Reader))
	if err != nil {
		return err
	}
	for _, question := range strings.Split(c.Question, "|") {
		if _, err := s.Begin(ctx, Request{Question: question, Strategy: "corrective", NoCache: true}); err != nil {
			return err
		}
	}
	h.live.work.Wait()
	return h.Close()
}

// TestGiveUp checks that a run that ends the process is given up after three attempts, and that the runs
// beside it are not.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := liveHost(t, dir, nil, nil)
	c := child{Dir: dir, Host: true, Question: "What is the fatal limit?|" + manyParts + "|Who approves travel to a customer?"}
	deaths := 0
	for ; deaths <= 2*MaxAttempts; deaths++ {
		if err := c.start(t).Wait(); err == nil {
			break
		}
		c.Question = ""
	}
	if deaths != MaxAttempts {
		t.Errorf("the process died %d times, want %d", deaths, MaxAttempts)
	}
	s := annOf(t, h)
	runs, err := s.Runs(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) == 0 {
		t.Fatal("there is no run")
	}
	for _, r := range runs {
		a, err := last(s.Follow(t.Context(), r.ID, -1))
		if fatal := strings.Contains(r.Question, "fatal"); fatal == (err == nil) {
			t.Errorf("%q: %s, %v", r.Question, a.Status, err)
		} else if fatal && (r.State != assay.RunFailed || !strings.Contains(err.Error(), errGivenUp.Error())) {
			t.Errorf("the fatal run is %s: %v", r.State, err)
		}
	}
}

// TestResumeInterrupted interrupts runs, takes rights away, and resumes them in another host.
func TestResumeInterrupted(t *testing.T) {
	t.Parallel()
	nothing := func(*testing.T, *Host, *HostConfig, string) {}
	for name, tt := range map[string]struct {
		lose  func(t *testing.T, h *Host, next *HostConfig, key string)
		error string // of the run; empty: it has an answer
		stop  assay.Stop
	}{
		"as it was": {nothing, "", ""},
		"a revoked key": {func(t *testing.T, h *Host, _ *HostConfig, key string) {
			if err := h.keys.Revoke(t.Context(), assay.Local(), key, "lost"); err != nil {
				t.Fatal(err)
			}
		}, "not authenticated", ""},
		"a recheck that fails": {func(_ *testing.T, _ *Host, next *HostConfig, _ string) {
			next.Recheck = func(context.Context, identity.Grant) error { return assay.ErrUnauthenticated }
		}, "not authenticated", ""},
		"a suspended tenant": {func(t *testing.T, h *Host, _ *HostConfig, _ string) {
			if err := h.store.SuspendTenant(t.Context(), "acme", store.Act{}); err != nil {
				t.Fatal(err)
			}
		}, "suspended", ""},
		"lost documents": {func(t *testing.T, h *Host, _ *HostConfig, _ string) { restrictAll(t, h) }, "no longer see", ""},
		"a stop": {func(t *testing.T, h *Host, _ *HostConfig, _ string) {
			admin := mustSession(t, h, roleGrant("acme", assay.Principal{User: "root"}, identity.Admin))
			if err := admin.Stop(t.Context(), "a test"); err != nil {
				t.Fatal(err)
			}
		}, "", assay.StopStopped},
		"a limit of runs": {func(t *testing.T, h *Host, _ *HostConfig, _ string) {
			admin := mustSession(t, h, roleGrant("acme", assay.Principal{User: "root"}, identity.Admin))
			if err := admin.SetLimits(t.Context(), limit.Users, limit.Limits{limit.RequestsPerDay: 1, limit.Runs: 1}, "a test"); err != nil {
				t.Fatal(err)
			}
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, g := t.TempDir(), newGate()
			h := liveHost(t, dir, g, nil)
			key, _, err := h.keys.Create(t.Context(), assay.Local(), identity.KeySpec{Tenant: "acme", User: staff.User, Groups: staff.Groups, Roles: []identity.RoleIn{{Role: identity.Reader}}})
			if err != nil {
				t.Fatal(err)
			}
			who := staff
			who.Key = key.ID
			s := mustSession(t, h, roleGrant("acme", who, identity.Reader))
			id := mustBegin(t, s, manyRequest())
			letOneSearch(t, s, g, id)
			if err := h.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			var next HostConfig
			tt.lose(t, h, &next, key.ID)
			other := liveHost(t, dir, nil, func(c *HostConfig) { c.Recheck = next.Recheck })
			if err := other.ResumeInterrupted(t.Context()); err != nil {
				t.Fatal(err)
			}
			other.live.work.Wait()
			tenant, err := other.store.InspectTenant(t.Context(), "acme")
			if err != nil {
				t.Fatal(err)
			}
			defer tenant.Close()
			r, err := tenant.Runs().Run(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if tt.error != "" {
				if r.State != assay.RunFailed || !strings.Contains(r.Error, tt.error) {
					t.Errorf("the run is %s with the error %q, want %q", r.State, r.Error, tt.error)
				}
				return
			}
			if r.State != assay.RunDone || tt.stop != "" && r.Answer.Stop != tt.stop {
				t.Errorf("the run is %s: %s %+v", r.State, r.Error, r.Answer)
			}
		})
	}
}

// TestResumeOnlyPromised checks that a host resumes neither the interrupted runs of other programs nor
// those that are driven, and that BeginResume does.
func TestResumeOnlyPromised(t *testing.T) {
	t.Parallel()
	dir, g := t.TempDir(), newGate()
	h := liveHost(t, dir, g, nil)
	s := annOf(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Answer(ctx, manyRequest()) // as a program that waits for it
		done <- err
	}()
	<-g.arrived
	cancel()
	interrupted, ok := errors.AsType[*RunError](<-done)
	if !ok || !interrupted.Resumable {
		t.Fatal("the run was not interrupted")
	}
	driven := mustBegin(t, s, manyRequest())
	<-g.arrived
	other := liveHost(t, dir, nil, nil)
	if err := other.ResumeInterrupted(t.Context()); err != nil {
		t.Fatal(err)
	}
	other.live.work.Wait()
	for _, id := range []string{interrupted.Run, driven} {
		if r, _, err := s.Run(t.Context(), id); err != nil || r.State != assay.RunActive {
			t.Errorf("run %s is %s, %v", id, r.State, err)
		}
	}
	wantErr(t, "BeginResume of a driven run", annOf(t, other).BeginResume(t.Context(), driven), assay.ErrLeased)
	if err := s.BeginResume(t.Context(), driven); err != nil {
		t.Errorf("BeginResume by the host that drives it: %v", err)
	}
	if err := annOf(t, other).BeginResume(t.Context(), interrupted.Run); err != nil {
		t.Fatal(err)
	}
	if a, err := last(s.Follow(t.Context(), interrupted.Run, -1)); err != nil || len(a.Claims) == 0 {
		t.Errorf("%d claims, %v", len(a.Claims), err)
	}
	close(g.open)
	if _, err := last(s.Follow(t.Context(), driven, -1)); err != nil {
		t.Error(err)
	}
}

// TestBeginFork checks that a fork in the background is a run of its own.
func TestBeginFork(t *testing.T) {
	t.Parallel()
	s := annOf(t, liveHost(t, t.TempDir(), nil, nil))
	parent := mustBegin(t, s, manyRequest())
	want, err := last(s.Follow(t.Context(), parent, -1))
	if err != nil {
		t.Fatal(err)
	}
	again := func(r *Request) { r.IdempotencyKey = "fork" }
	id, err := s.BeginFork(t.Context(), parent, "2", again)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := s.BeginFork(t.Context(), parent, "2", again); err != nil || same != id {
		t.Errorf("the same fork is run %s, %v; want %s", same, err, id)
	}
	got, err := last(s.Follow(t.Context(), id, -1))
	if err != nil || got.Text != want.Text || id == parent {
		t.Errorf("the fork %s answers %q, %v; want %q", id, got.Text, err, want.Text)
	}
	_, err = s.BeginFork(t.Context(), parent, "2", func(r *Request) { r.IdempotencyKey, r.Mode = "fork", "quick" })
	wantErr(t, "another fork under the key", err, assay.ErrReused)
}
