package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store/sqlite"
)

// stopAll stops all tenants, or one.
func stopAll(t *testing.T, e *Engine, all bool) {
	t.Helper()
	if err := e.Stop(t.Context(), assay.Local(), all, "a leak"); err != nil {
		t.Fatal(err)
	}
}

func startAll(t *testing.T, e *Engine, all bool) {
	t.Helper()
	if err := e.Start(t.Context(), assay.Local(), all, "fixed"); err != nil {
		t.Fatal(err)
	}
}

// TestStopEndsARunningRun stops a run during each of its model calls, from another engine on the same
// data. The run must end with an answer, which replays reproduce.
func TestStopEndsARunningRun(t *testing.T) {
	t.Parallel()
	names := []string{"auto", "corrective", "react", "self", "reflect", "multihop"}
	if testing.Short() {
		names = names[:1]
	}
	for _, strategy := range names {
		for call := 1; stopsAt(t, strategy, call%2 == 0, call); call++ {
		}
	}
}

// stopsAt stops a run during its n-th model call and reports whether it makes that many.
func stopsAt(t *testing.T, strategy string, all bool, n int) bool {
	t.Helper()
	name := fmt.Sprintf("%s, all %v, call %d", strategy, all, n)
	by := handbook.models()
	dir := t.TempDir()
	e := openConfig(t, Config{Dir: dir, Models: served(by)})
	ingestPaths(t, e, "testdata/handbook")
	admin := openDir(t, dir)
	var mu sync.Mutex
	calls := 0
	for _, m := range by {
		say := m.reply
		m.reply = func(ctx context.Context, k int, req llm.Request) (llm.Response, error) {
			mu.Lock()
			calls++
			now := calls
			mu.Unlock()
			switch {
			case now > n:
				t.Errorf("%s: call %d was made after the stop", name, now)
			case now == n:
				stopAll(t, admin, all)
				<-ctx.Done() // the engine notices
				return llm.Response{}, ctx.Err()
			}
			return say(ctx, k, req)
		}
	}
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: strategy})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if calls < n {
		return false
	}
	if a.Status != assay.Incomplete || a.Stop != assay.StopStopped {
		t.Errorf("%s: %s (%s): %s", name, a.Status, a.Stop, a.Justification)
	}
	for _, c := range a.Claims {
		if c.Verdict != assay.Supported {
			t.Errorf("%s: a claim is %s", name, c.Verdict)
		}
	}
	if len(a.Claims) == 0 && by["generator"].calls() == 0 { // a draft that is not verified is not shown
		t.Errorf("%s: nothing is quoted: %s", name, a.Justification)
	}
	replays(t, e, a.Run)
	if _, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion}); !errors.Is(err, assay.ErrStopped) {
		t.Errorf("%s: a new question: %v", name, err)
	}
	return true
}

// manyParts is a question whose parts are searched separately.
const manyParts = "Who approves travel to a customer, and how long is parental leave, and what must a password have, " +
	"and what is the boiling point of tungsten?"

// TestStopWithoutModels stops a run that only searches.
func TestStopWithoutModels(t *testing.T) {
	t.Parallel()
	e := open(t)
	var once sync.Once
	watch(t, e, func(ctx context.Context, _ assay.Query) error {
		once.Do(func() { stopAll(t, e, false) })
		<-ctx.Done()
		return ctx.Err()
	})
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: manyParts, Strategy: "corrective"})
	if err != nil || a.Status != assay.Incomplete || a.Stop != assay.StopStopped {
		t.Fatalf("%s (%s), %v", a.Status, a.Stop, err)
	}
	replays(t, e, a.Run)
}

// TestStopRefuses checks every exported method that begins work, and that the others go on.
func TestStopRefuses(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{false, true} {
		e := open(t)
		a := ask(t, e, someQuestion)
		ctx, local := t.Context(), assay.Local()
		stopAll(t, e, all)
		q := assay.Query{Text: someQuestion, Limit: 3}
		_, asked := e.Answer(ctx, local, Request{Question: someQuestion})
		_, forked := last(e.Fork(ctx, local, a.Run, "1", nil))
		_, searched := e.Search(ctx, local, q)
		_, explained := e.Explain(ctx, local, q)
		_, ingested := e.Ingest(ctx, IngestRequest{Paths: []string{"testdata/handbook"}})
		_, embedded := e.Embed(ctx, nil)
		_, synced := e.Sync(ctx, SyncRequest{Name: "none"})
		for name, err := range map[string]error{
			"Answer": asked, "Fork": forked, "Search": searched, "Explain": explained, "Ingest": ingested, "Sync": synced, "Put": e.Put(ctx, nil),
		} {
			if !errors.Is(err, assay.ErrStopped) || assay.StatusCode(err) != 503 {
				t.Errorf("all %v: %s = %v", all, name, err)
			}
		}
		if embedded == nil {
			t.Errorf("all %v: Embed began", all)
		}
		_, _, shown := e.Run(ctx, local, a.Run)
		_, replayed := e.Replay(ctx, local, a.Run)
		_, listed := e.Runs(ctx, local, 0)
		if err := errors.Join(shown, replayed, listed); err != nil {
			t.Errorf("all %v: reading: %v", all, err)
		}
		stops, err := e.Stops(ctx)
		if err != nil || len(stops) != 1 || stops[0].Reason != "a leak" || stops[0].By != "local" || stops[0].All != all || stops[0].Since.IsZero() {
			t.Errorf("all %v: stops %+v, %v", all, stops, err)
		}
		startAll(t, e, all)
		if err := e.Start(ctx, local, all, ""); !errors.Is(err, assay.ErrNotFound) {
			t.Errorf("all %v: Start without a stop: %v", all, err)
		}
		if _, err := e.Answer(ctx, local, Request{Question: someQuestion}); err != nil {
			t.Errorf("all %v: after the start: %v", all, err)
		}
	}
}

// TestStopOfOneTenant checks that the stop of a tenant leaves others alone, and that of all does not.
func TestStopOfOneTenant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tenants, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	createTenants(t, tenants, "one", "two")
	one, two := openConfig(t, Config{Dir: dir, Tenant: "one"}), openConfig(t, Config{Dir: dir, Tenant: "two"})
	asked := func(e *Engine) error {
		_, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion})
		return err
	}
	stopAll(t, one, false)
	if err := asked(one); !errors.Is(err, assay.ErrStopped) {
		t.Errorf("the stopped tenant: %v", err)
	}
	if err := asked(two); err != nil {
		t.Errorf("the other tenant: %v", err)
	}
	stopAll(t, two, true)
	startAll(t, one, false)
	for _, e := range []*Engine{one, two} {
		if err := asked(e); !errors.Is(err, assay.ErrStopped) {
			t.Errorf("all stopped: %v", err)
		}
	}
}

// TestStopDuringIngest checks that an ingest ends at a stop, keeps what it has stored and continues
// after the start.
func TestStopDuringIngest(t *testing.T) {
	t.Parallel()
	docs := t.TempDir()
	for i := range 40 {
		text := fmt.Sprintf("# Rule %d\n\nThe rule number %d says that something must be done.\n", i, i)
		if err := os.WriteFile(filepath.Join(docs, fmt.Sprintf("%02d.md", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := openDir(t, t.TempDir())
	ctx := t.Context()
	var once sync.Once
	req := IngestRequest{Paths: []string{docs}}
	stopped := make(chan struct{})
	req.Progress = func(IngestProgress) {
		once.Do(func() {
			stopAll(t, e, false)
			watched, end := e.untilStopped(ctx)
			<-watched.Done() // at least one interval, so that the ingest has noticed or is about to
			end()
			close(stopped)
		})
	}
	_, err := e.Ingest(ctx, req)
	<-stopped
	if err != nil && !errors.Is(err, assay.ErrStopped) {
		t.Fatalf("Ingest = %v", err)
	}
	if errors.Is(err, context.Canceled) {
		t.Errorf("Ingest = %v, which looks like an interruption", err)
	}
	startAll(t, e, false)
	req.Progress = nil
	if _, err := e.Ingest(ctx, req); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range e.Documents(ctx, assay.Local()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 40 {
		t.Errorf("%d documents, want 40", n)
	}
}
