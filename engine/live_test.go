package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/store"
)

// A gate holds back the searches of runs until it is opened.
type gate struct {
	assay.Retriever
	arrived chan struct{} // receives when a search begins to wait
	open    chan struct{}
}

func newGate() *gate { return &gate{arrived: make(chan struct{}, 1000), open: make(chan struct{})} }

func (g *gate) wrap(builtin assay.Retriever) assay.Retriever {
	return &gate{builtin, g.arrived, g.open}
}

func (g *gate) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	g.arrived <- struct{}{}
	select {
	case <-g.open:
	case <-ctx.Done():
		return assay.Results{}, ctx.Err()
	}
	return g.Retriever.Retrieve(ctx, access, q)
}

// liveHost opens a host with the handbook in the tenant acme. A nil gate is none.
func liveHost(t *testing.T, dir string, g *gate, change func(*HostConfig)) *Host {
	t.Helper()
	handbook, err := filepath.Abs("testdata/handbook")
	if err != nil {
		t.Fatal(err)
	}
	config := HostConfig{Config: Config{Dir: dir, NoBackground: true}, Folders: []string{handbook}}
	if g != nil {
		config.Retriever = g.wrap
	}
	if change != nil {
		change(&config)
	}
	h, err := OpenHost(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Host.Close: %v", err)
		}
	})
	if err := h.store.CreateTenant(t.Context(), "acme", store.Act{}); errors.Is(err, assay.ErrInvalid) {
		return h // it is there from an earlier host
	} else if err != nil {
		t.Fatal(err)
	}
	if _, err := mustSession(t, h, roleGrant("acme", staff, identity.Editor)).Ingest(t.Context(), IngestRequest{Paths: []string{handbook}}); err != nil {
		t.Fatal(err)
	}
	return h
}

// annOf returns a session of ann.
func annOf(t *testing.T, h *Host) *Session {
	t.Helper()
	return mustSession(t, h, roleGrant("acme", staff, identity.Reader))
}

// letOneSearch lets one search of a run through a gate, and returns when its results are in the journal.
func letOneSearch(t *testing.T, s *Session, g *gate, id string) {
	t.Helper()
	g.open <- struct{}{}
	for ev, err := range s.Follow(t.Context(), id, -1) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Results != nil && len(ev.Results.Hits) > 0 {
			return
		}
	}
	t.Fatal("no search found anything")
}

func manyRequest() Request {
	return Request{Question: manyParts, Strategy: "corrective", NoCache: true, Budget: assay.Budget{Wall: 10 * time.Minute}}
}

func mustBegin(t *testing.T, s *Session, req Request) string {
	t.Helper()
	id, err := s.Begin(t.Context(), req)
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	return id
}

// stepsOf returns the ended steps among events and the answer, each as JSON.
func stepsOf(events []Event) (steps []string) {
	for _, ev := range events {
		if ev.Kind == StepEnded || ev.Kind == RunEnded {
			steps = append(steps, jsonOf(ev))
		}
	}
	return steps
}

// cutting follows a run and begins again after some events, in the way that cut decides: it returns
// after how many further events. It returns the steps that it has seen.
func cutting(ctx context.Context, s *Session, id string, cut func() int) (steps []string, err error) {
	after := -1
	for {
		left, ended := cut(), false
		for ev, evErr := range s.Follow(ctx, id, after) {
			if evErr != nil {
				return steps, evErr
			}
			if ev.Kind == StepEnded {
				if ev.Step.Ordinal != after+1 {
					return steps, fmt.Errorf("step %d comes after %d", ev.Step.Ordinal, after)
				}
				after = ev.Step.Ordinal
			}
			steps = append(steps, stepsOf([]Event{ev})...)
			ended = ended || ev.Kind == RunEnded
			if left--; left == 0 && !ended {
				break
			}
		}
		if ended {
			return steps, nil
		}
	}
}

// TestFollowCut checks that followers who begin again at random points see what an uninterrupted one
// sees, with the same content as in the journal, also if the window of the live run is small.
func TestFollowCut(t *testing.T) {
	t.Parallel()
	h := liveHost(t, t.TempDir(), nil, nil)
	s := annOf(t, h)
	runs, followers := 6, 12
	if testing.Short() {
		runs = 2
	}
	var cuts atomic.Int64
	for range runs {
		id := mustBegin(t, s, manyRequest())
		seen := make([][]string, followers)
		var group sync.WaitGroup
		for i := range followers {
			group.Go(func() {
				random := rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))
				var err error
				seen[i], err = cutting(t.Context(), s, id, func() int {
					cuts.Add(1)
					if i == 0 {
						return -1
					}
					return 1 + random.IntN(6)
				})
				if err != nil {
					t.Errorf("follower %d of run %s: %v", i, id, err)
				}
			})
		}
		group.Wait()
		stored, err := collect(s.Follow(t.Context(), id, -1))
		if err != nil {
			t.Fatal(err)
		}
		want := stepsOf(stored)
		if _, steps, err := s.Run(t.Context(), id); err != nil || len(want) != len(steps)+1 {
			t.Errorf("%d steps were followed, %d are stored, %v", len(want)-1, len(steps), err)
		}
		for i, got := range seen {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("follower %d (-journal +seen):\n%s", i, diff)
			}
		}
	}
	t.Logf("%d connections to %d runs", cuts.Load(), runs)
}

// TestFollowWindow checks that a follower who falls behind the window of a live run misses no step.
func TestFollowWindow(t *testing.T) {
	t.Parallel()
	r := newLiveRun(liveKey{})
	r.starts(3)
	for _, ordinal := range []int{4, 3, 6, 5} { // parallel branches
		r.emit(Event{Kind: StepStarted, Step: &Step{Ordinal: -1}})
		r.stored(assay.Record{Ordinal: ordinal, Output: make(json.RawMessage, windowBytes/2)})
	}
	view := r.from(0)
	if view.next != 7 || view.first == 0 || view.journal() != 5 {
		t.Errorf("the log begins at %d with step %d, the next step is %d", view.first, view.journal(), view.next)
	}
	if n := len(view.log); n == 0 || view.log[n-1].record.Ordinal != 6 {
		t.Errorf("the log does not end with the last step: %d events", n)
	}
	for range 10 * windowEvents {
		r.emit(Event{Kind: Draft, Draft: "a"})
	}
	if view = r.from(0); len(view.log) > windowEvents || view.journal() != 7 {
		t.Errorf("%d events are kept, and step %d", len(view.log), view.journal())
	}
}

// TestFollowOtherProcess follows a run that another host on the same data drives.
func TestFollowOtherProcess(t *testing.T) {
	t.Parallel()
	dir, g := t.TempDir(), newGate()
	h := liveHost(t, dir, g, nil)
	other := annOf(t, liveHost(t, dir, nil, nil))
	id := mustBegin(t, annOf(t, h), manyRequest())
	<-g.arrived
	type result struct {
		events []Event
		err    error
	}
	done := make(chan result)
	go func() {
		events, err := collect(other.Follow(t.Context(), id, -1))
		done <- result{events, err}
	}()
	close(g.open)
	got := <-done
	want, err := collect(other.Follow(t.Context(), id, -1))
	if err != nil || got.err != nil {
		t.Fatal(err, got.err)
	}
	if diff := cmp.Diff(stepsOf(want), stepsOf(got.events)); diff != "" {
		t.Errorf("(-journal +seen):\n%s", diff)
	}
}

// TestBeginOnce checks that an idempotency key begins one run, from many callers at once and after a
// restart, for one principal.
func TestBeginOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := liveHost(t, dir, nil, nil)
	s, bob := annOf(t, h), mustSession(t, h, roleGrant("acme", board, identity.Reader))
	req := manyRequest()
	req.IdempotencyKey = "key"
	ids := make([]string, 20)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			var err error
			if ids[i], err = s.Begin(t.Context(), req); err != nil {
				t.Errorf("Begin: %v", err)
			}
		})
	}
	group.Wait()
	if ids = slices.Compact(ids); len(ids) != 1 {
		t.Fatalf("the runs %q were begun", ids)
	}
	other := req
	other.Question = "Who approves travel?"
	_, err := s.Begin(t.Context(), other)
	wantErr(t, "Begin of another request", err, assay.ErrReused)
	_, err = s.BeginFork(t.Context(), ids[0], "1", func(r *Request) { r.IdempotencyKey = "key" })
	wantErr(t, "BeginFork with the key", err, assay.ErrReused)
	if id := mustBegin(t, bob, req); id == ids[0] {
		t.Error("bob got the run of ann")
	}
	if _, err := last(s.Follow(t.Context(), ids[0], -1)); err != nil {
		t.Fatal(err)
	}
	again := annOf(t, liveHost(t, dir, nil, nil))
	if id := mustBegin(t, again, req); id != ids[0] {
		t.Errorf("another host began %s, want %s", id, ids[0])
	}
	if err := again.DeleteRun(t.Context(), ids[0], ""); err != nil {
		t.Fatal(err)
	}
	if id := mustBegin(t, again, req); id == ids[0] {
		t.Error("the key names a deleted run")
	}
	runs, err := again.Runs(t.Context(), 0)
	if err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v; want 1", len(runs), err)
	}
}

// TestBeginBusy checks that a host refuses what it cannot hold, and loses nothing that it has accepted.
func TestBeginBusy(t *testing.T) {
	t.Parallel()
	dir, g := t.TempDir(), newGate()
	h := liveHost(t, dir, g, func(c *HostConfig) { c.MaxRuns, c.MaxWaiting = 2, 3 })
	s := annOf(t, h)
	var ids []string
	for range 5 {
		ids = append(ids, mustBegin(t, s, manyRequest()))
	}
	_, err := s.Begin(t.Context(), manyRequest())
	busy, ok := errors.AsType[*BusyError](err)
	if !ok || !errors.Is(err, assay.ErrBusy) || busy.RetryAfter < time.Second {
		t.Errorf("the sixth: %v, want a BusyError", err)
	}
	if runs, err := s.Runs(t.Context(), 0); err != nil || len(runs) != 5 {
		t.Errorf("%d runs are stored, %v", len(runs), err)
	}
	<-g.arrived
	if err := h.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = s.Begin(t.Context(), manyRequest())
	wantErr(t, "Begin while draining", err, assay.ErrBusy)
	var interrupted *RunError
	if _, err := last(s.Follow(t.Context(), ids[4], 1000)); !errors.As(err, &interrupted) || !interrupted.Resumable {
		t.Errorf("a run that was not begun: %v", err)
	}
	next := liveHost(t, dir, nil, func(c *HostConfig) { c.MaxRuns = 2 })
	if err := next.ResumeInterrupted(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = annOf(t, next)
	for _, id := range ids {
		if a, err := last(s.Follow(t.Context(), id, -1)); err != nil || len(a.Claims) == 0 {
			t.Errorf("run %s: %d claims, %v", id, len(a.Claims), err)
		}
	}
	if promised, err := promisedOf(t, next); err != nil || len(promised) > 0 {
		t.Errorf("%v are left, %v", promised, err)
	}
}

func promisedOf(t *testing.T, h *Host) ([]store.Promise, error) {
	t.Helper()
	tenant, err := h.store.Tenant(t.Context(), "acme")
	if err != nil {
		return nil, err
	}
	defer tenant.Close()
	return tenant.Runs().Promised(t.Context())
}

// TestCancelRuns cancels runs that are driven, wait for their turn, are driven by another host or were
// interrupted. Each must end for good.
func TestCancelRuns(t *testing.T) {
	t.Parallel()
	dir, g := t.TempDir(), newGate()
	h := liveHost(t, dir, g, func(c *HostConfig) { c.MaxRuns = 1 })
	s := annOf(t, h)
	ended := func(s *Session, id, what string) {
		t.Helper()
		a, err := last(s.Follow(t.Context(), id, -1))
		if err != nil || a.Stop != assay.StopCancelled || a.Status == assay.Answered {
			t.Errorf("%s: status %s, stop %s, %v", what, a.Status, a.Stop, err)
		}
		if _, err := s.Replay(t.Context(), id); err != nil {
			t.Errorf("%s: Replay: %v", what, err)
		}
		wantErr(t, what+": Cancel again", s.Cancel(t.Context(), id), assay.ErrInvalid)
		wantErr(t, what+": BeginResume", s.BeginResume(t.Context(), id), assay.ErrInvalid)
	}
	driven, waits := mustBegin(t, s, manyRequest()), mustBegin(t, s, manyRequest())
	<-g.arrived
	wantErr(t, "Cancel of another's", mustSession(t, h, roleGrant("acme", board, identity.Reader)).Cancel(t.Context(), driven), assay.ErrNotFound)
	for what, id := range map[string]string{"waits": waits, "driven": driven} {
		if err := s.Cancel(t.Context(), id); err != nil {
			t.Fatalf("%s: Cancel: %v", what, err)
		}
	}
	ended(s, waits, "waits")
	ended(s, driven, "driven")

	elsewhere := mustBegin(t, s, manyRequest())
	<-g.arrived
	other := liveHost(t, dir, nil, nil)
	if err := annOf(t, other).Cancel(t.Context(), elsewhere); err != nil {
		t.Fatal(err)
	}
	ended(annOf(t, other), elsewhere, "driven elsewhere")

	interrupted := mustBegin(t, s, manyRequest())
	<-g.arrived
	if err := h.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := annOf(t, other).Cancel(t.Context(), interrupted); err != nil {
		t.Fatal(err)
	}
	ended(annOf(t, other), interrupted, "interrupted")
}

// TestFollowEnds checks that a stream ends when its reader loses the right to it.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]struct {
		do   func(t *testing.T, h *Host, revoked *atomic.Bool)
		kind error
	}{
		"revoked credential": {func(t *testing.T, _ *Host, revoked *atomic.Bool) { revoked.Store(true) }, assay.ErrUnauthenticated},
		"suspended tenant": {func(t *testing.T, h *Host, _ *atomic.Bool) {
			if err := h.store.SuspendTenant(t.Context(), "acme", store.Act{}); err != nil {
				t.Fatal(err)
			}
		}, assay.ErrStopped},
		"lost access": {func(t *testing.T, h *Host, _ *atomic.Bool) {
			restrictAll(t, h)
		}, assay.ErrNotFound},
	} {
		for _, open := range []bool{false, true} { // the run ends before the reader is checked again
			t.Run(fmt.Sprintf("%s, ended %v", name, open), func(t *testing.T) {
				t.Parallel()
				g := newGate()
				var revoked atomic.Bool
				h := liveHost(t, t.TempDir(), g, func(c *HostConfig) {
					c.Recheck = func(context.Context, identity.Grant) error {
						if revoked.Load() {
							return assay.ErrUnauthenticated
						}
						return nil
					}
				})
				h.recheck = 20 * time.Millisecond
				if open {
					h.recheck = time.Hour
				}
				s := annOf(t, h)
				id := mustBegin(t, s, manyRequest())
				letOneSearch(t, s, g, id)
				began := make(chan struct{})
				done := make(chan error)
				go func() {
					var err error
					for ev, evErr := range s.Follow(t.Context(), id, -1) {
						if err = evErr; ev.Kind == RunStarted {
							close(began)
						}
						if ev.Kind == RunEnded {
							err = fmt.Errorf("the answer was shown: %s", ev.Answer.Text)
						}
					}
					done <- err
				}()
				<-began
				if lose.do(t, h, &revoked); open {
					close(g.open)
				}
				wantErr(t, "Follow", <-done, lose.kind)
			})
		}
	}
}

// restrictAll changes the ACL of all documents of acme, so that ann sees none.
func restrictAll(t *testing.T, h *Host) {
	t.Helper()
	tenant, err := h.store.Tenant(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	w, err := tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for d, err := range tenant.Content().Documents(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		d.ACL = assay.ACL{Restricted: true, Allow: []string{"user:zed"}}
		if _, err := w.Put(t.Context(), store.Entry{Document: d}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFollowReview checks that a run under review shows no content, and ends with the answer that waits.
func TestFollowReview(t *testing.T) {
	t.Parallel()
	h := liveHost(t, t.TempDir(), nil, nil)
	admin := mustSession(t, h, roleGrant("acme", assay.Principal{User: "root"}, identity.Admin))
	if err := admin.SetPolicy(t.Context(), review.Policy{Name: "all", Groups: staff.Groups}, "a test"); err != nil {
		t.Fatal(err)
	}
	s := annOf(t, h)
	events, err := collect(s.Follow(t.Context(), mustBegin(t, s, manyRequest()), -1))
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		shows := ev.Results != nil || ev.Plan != nil || ev.Grade != nil || ev.Verdicts != nil || ev.Query != nil || ev.Draft != ""
		if shows || ev.Kind == StepEnded && ev.Step.Summary != withheldText {
			t.Errorf("an event shows %s", jsonOf(ev))
		}
	}
	if a := events[len(events)-1].Answer; a == nil || a.Status != assay.PendingReview {
		t.Errorf("the last event is %s", jsonOf(events[len(events)-1]))
	}
}

// TestBeginSurvivesCaller checks that a run goes on after the request that began it.
func TestBeginSurvivesCaller(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := annOf(t, liveHost(t, t.TempDir(), g, nil))
	ctx, cancel := context.WithCancel(t.Context())
	id, err := s.Begin(ctx, manyRequest())
	if err != nil {
		t.Fatal(err)
	}
	<-g.arrived
	cancel()
	close(g.open)
	if a, err := last(s.Follow(t.Context(), id, -1)); err != nil || len(a.Claims) == 0 {
		t.Errorf("%d claims, %v", len(a.Claims), err)
	}
}

// TestBeginLimit checks that the requests of a user are limited as those of Ask.
func TestBeginLimit(t *testing.T) {
	t.Parallel()
	h := liveHost(t, t.TempDir(), nil, nil)
	admin := mustSession(t, h, roleGrant("acme", assay.Principal{User: "root"}, identity.Admin))
	if err := admin.SetLimits(t.Context(), limit.Users, limit.Limits{limit.RequestsPerDay: 1}, "a test"); err != nil {
		t.Fatal(err)
	}
	s := annOf(t, h)
	req := manyRequest()
	req.IdempotencyKey = "key"
	id := mustBegin(t, s, req)
	if again := mustBegin(t, s, req); again != id {
		t.Errorf("a repeated request is run %s, want %s", again, id)
	}
	_, err := s.Begin(t.Context(), manyRequest())
	wantErr(t, "a second request", err, assay.ErrQuota)
	if _, err := last(s.Follow(t.Context(), id, -1)); err != nil {
		t.Fatal(err)
	}
}

// TestBeginPanics checks that a strategy that panics fails its run and nothing else.
func TestBeginPanics(t *testing.T) {
	t.Parallel()
	s := annOf(t, liveHost(t, t.TempDir(), nil, func(c *HostConfig) {
		c.Retriever = func(assay.Retriever) assay.Retriever { panic("a secret") }
	}))
	id := mustBegin(t, s, manyRequest())
	for range 2 { // as it ends, and from the store
		_, err := last(s.Follow(t.Context(), id, -1))
		failed, ok := errors.AsType[*RunError](err)
		if !ok || failed.Resumable {
			t.Errorf("Follow: %v, want a RunError", err)
		}
	}
	if r, _, err := s.Run(t.Context(), id); err != nil || r.State != assay.RunFailed {
		t.Errorf("the run is %s, %v", r.State, err)
	}
}
