//go:build unix

package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ramdisk"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

// A child describes the work of a process that a test kills. It is passed as JSON in the
// environment variable childEnv.
type child struct {
	Dir, Run, Question string

	Slow time.Duration // delay of each search

	// Write is the number of the journal write, from 1, at which the process is killed; 0: never.
	Write int
	When  moment

	Models bool // use models

	Decide string // if set, decide the review of this run: "approve", "edit" or "reject"

	Fork, From string // if set, fork this run at this step instead of asking

	// Every, if set, is the strategy to run everyRequest with. At is the address of the web
	// pages, and Clerks makes models do the roles.
	Every  string
	At     string
	Clerks bool

	// Host, if set, makes a host resume what was interrupted and begin the questions, which are divided
	// by "|". See hostAsChild.
	Host bool

	Docs string // if set, ingest these and make vectors in the background; see embedAsChild
}

// A moment is a point in time relative to a journal write.
type moment string

const (
	before moment = "before"
	during moment = "during"
	after  moment = "after"
)

const childEnv = "ASSAY_TEST_CHILD"

// TestMain runs the child if a test started this process in order to kill it.
func TestMain(m *testing.M) {
	ramdisk.Use()
	if spec := os.Getenv(childEnv); spec != "" {
		if err := runChild(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func runChild(spec string) error {
	var c child
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		return err
	}
	if c.Docs != "" {
		return embedAsChild(c)
	}
	ctx := context.Background()
	if c.Host {
		return hostAsChild(ctx, c)
	}
	config, req := Config{Dir: c.Dir}, Request{Question: c.Question, Strategy: "corrective"}
	if c.Models {
		config.Models = served(handbook.models())
	}
	if c.Every != "" {
		config, req = everyConfig(c.Dir, c.At), everyRequest(c.Every)
		if c.Clerks {
			config.Models = served(clerks(nil))
		}
	}
	config.NewID = func() string { return c.Run }
	e, err := Open(ctx, config)
	if err != nil {
		return err
	}
	if c.Decide != "" {
		return errors.Join(decideAsChild(ctx, e, c), e.Close())
	}
	if _, err := e.search(ctx); err != nil { // opens the index, which is not what the tests are about
		return err
	}
	spyOn(e, &spy{before: func(context.Context, assay.Query) error {
		time.Sleep(c.Slow)
		return nil
	}})
	e.runs = killingRuns{e.runs, &c}
	fmt.Println("started")
	if c.Fork != "" {
		_, err = last(e.Fork(ctx, assay.Local(), c.Fork, c.From, nil))
	} else {
		_, err = e.Answer(ctx, assay.Local(), req)
	}
	return errors.Join(err, e.Close())
}

// killingRuns returns leases that kill the process.
type killingRuns struct {
	store.Runs
	child *child
}

func (k killingRuns) Create(ctx context.Context, r assay.Run, records ...assay.Record) (store.Lease, error) {
	l, err := k.Runs.Create(ctx, r, records...)
	return &killingLease{Lease: l, child: k.child}, err
}

// A killingLease counts the writes of a run: its records and its end.
type killingLease struct {
	store.Lease
	child  *child
	writes atomic.Int64 // parallel branches write concurrently
}

func (l *killingLease) Append(ctx context.Context, rec assay.Record) (assay.Record, error) {
	write := l.begin()
	rec, err := l.Lease.Append(ctx, rec)
	l.end(write)
	return rec, err
}

func (l *killingLease) Finish(ctx context.Context, state assay.RunState, answer *assay.Answer, errText string) error {
	write := l.begin()
	err := l.Lease.Finish(ctx, state, answer, errText)
	l.end(write)
	return err
}

func (l *killingLease) Suspend(ctx context.Context, shown assay.Answer, r store.Review, pins []store.Pin, acts ...store.Act) error {
	write := l.begin()
	err := l.Lease.Suspend(ctx, shown, r, pins, acts...)
	l.end(write)
	return err
}

// begin returns the number of the write that begins.
func (l *killingLease) begin() int {
	write := int(l.writes.Add(1))
	if write != l.child.Write {
		return write
	}
	switch l.child.When {
	case before:
		kill()
	case during:
		// A write takes about half a millisecond. The timer fires somewhere within it.
		time.AfterFunc(time.Duration(rand.N(500))*time.Microsecond, kill)
	}
	return write
}

func (l *killingLease) end(write int) {
	if write == l.child.Write && l.child.When != before {
		kill()
	}
}

// kill ends this process like kill -9.
func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// start starts a child and returns when it has begun its work.
func (c child) start(t *testing.T) *exec.Cmd {
	t.Helper()
	spec, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the child did not start: %v", err)
	}
	return cmd
}

// wasKilled waits for a child and reports whether it was killed. The test fails if the child
// failed in another way.
func wasKilled(t *testing.T, cmd *exec.Cmd) bool {
	t.Helper()
	err := cmd.Wait()
	if err == nil {
		return false
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v", err)
	}
	return true
}

// crashes opens a data directory for children and answers manyParts in it without interruption.
func crashes(t *testing.T) (e *Engine, dir string, want assay.Answer) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	e = openDir(t, dir)
	ingestPaths(t, e, "testdata/handbook")
	want, err := e.Answer(t.Context(), assay.Local(), Request{Question: manyParts, Strategy: "corrective"})
	if err != nil {
		t.Fatal(err)
	}
	return e, dir, want
}

// TestKillAtEveryJournalWrite checks that a run killed before, during or after any write of its
// journal reaches the same answer when resumed, and repeats no finished step.
func TestKillAtEveryJournalWrite(t *testing.T) {
	t.Parallel()
	e, dir, want := crashes(t)
	if want.Usage.Searches < 3 {
		t.Fatalf("the run has %d searches, too few to tell", want.Usage.Searches)
	}
	writes := 0
	for killed := true; killed; {
		writes++
		killed = false
		for _, when := range []moment{before, during, after} {
			c := child{Dir: dir, Run: fmt.Sprintf("write%d%s", writes, when), Question: manyParts, Write: writes, When: when}
			if !wasKilled(t, c.start(t)) {
				continue
			}
			killed = true
			if err := compare(want, resumed(t, e, c.Run)); err != nil {
				t.Errorf("killed %s write %d: %v", when, writes, err)
			}
			if _, err := e.Replay(t.Context(), assay.Local(), c.Run); err != nil {
				t.Errorf("killed %s write %d, then replayed: %v", when, writes, err)
			}
		}
	}
	r, err := e.run(t.Context(), assay.Local(), want.Run)
	if err != nil {
		t.Fatal(err)
	}
	if want := r.Steps + 2; writes != want { // the last write is never reached
		t.Errorf("killed at %d writes, want at each of %d steps and at the end", writes-1, r.Steps)
	}
}

// TestKillWithModels checks that a run killed at any journal write does not pay again for model
// replies that it has stored.
func TestKillWithModels(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	e, err := Open(t.Context(), Config{Dir: dir, Models: served(handbook.models())})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ingestPaths(t, e, "testdata/handbook")
	setLimits(t, e, limit.Users, limit.Limits{limit.CallsPerDay: limit.Most}) // so that each call is reserved
	defer ledgerEqualsJournals(t, e)
	const question = "Who approves travel to a customer, and what is the boiling point of tungsten?"
	want, err := e.Answer(t.Context(), assay.Local(), Request{Question: question, Strategy: "corrective"})
	if err != nil {
		t.Fatal(err)
	}
	if want.Usage.Calls < 4 {
		t.Fatalf("the run makes %d calls, too few to tell", want.Usage.Calls)
	}
	moments := []moment{before, during, after}
	if testing.Short() {
		moments = []moment{during}
	}
	for write, killed := 1, true; killed; write++ {
		killed = false
		for _, when := range moments {
			c := child{Dir: dir, Run: fmt.Sprintf("models%d%s", write, when), Question: question, Write: write, When: when, Models: true}
			if !wasKilled(t, c.start(t)) {
				continue
			}
			killed = true
			records, err := e.runs.Records(t.Context(), c.Run)
			if err != nil {
				t.Fatal(err)
			}
			paid := 0
			for _, rec := range records {
				paid += rec.Usage.Calls
			}
			by := handbook.models()
			e.config.Models = served(by)
			if err := compare(want, resumed(t, e, c.Run)); err != nil {
				t.Errorf("killed %s write %d: %v", when, write, err)
			}
			asked := 0
			for _, m := range by {
				asked += m.calls()
			}
			if paid+asked != want.Usage.Calls {
				t.Errorf("killed %s write %d: %d calls were paid for and %d were made then, want %d together", when, write, paid, asked, want.Usage.Calls)
			}
			replays(t, e, c.Run)
		}
	}
}

// ledgerEqualsJournals checks that the ledger has what the journals of the runs have, besides calls
// whose process died before they were recorded.
func ledgerEqualsJournals(t *testing.T, e *Engine) {
	t.Helper()
	all, err := e.tenant.Ledger().Spending(t.Context(), limit.User("local"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	runs, err := e.runs.List(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := store.Amount{Requests: int64(len(runs))}
	for _, r := range runs {
		records, err := e.runs.Records(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			u := rec.Usage
			want = want.Add(store.Amount{Calls: int64(u.Calls), Tokens: int64(u.InputTokens + u.OutputTokens), CostMicros: u.CostMicros})
		}
	}
	s := all[0]
	if got := want.Add(s.OtherMonth); got != s.Month || s.Held != (store.Amount{}) || s.Runs != 0 {
		t.Errorf("the journals and what has no record are %+v, the ledger is %+v", got, s)
	}
	t.Logf("%d runs, %d calls recorded, %d forfeited", len(runs), want.Calls, s.OtherMonth.Calls)
}

// TestKillFork checks that a fork killed at any journal write, or at a random moment, reaches the
// same answer when resumed, and that its journal is whole from the first moment on.
func TestKillFork(t *testing.T) {
	t.Parallel()
	e, dir, parent := crashes(t)
	records, err := e.runs.Records(t.Context(), parent.Run)
	if err != nil {
		t.Fatal(err)
	}
	at := len(records) / 2
	want := forked(t, e, parent.Run, fmt.Sprint(at), nil)
	if err := compare(parent, want); err != nil {
		t.Fatal(err)
	}
	check := func(id string) {
		r, err := e.run(t.Context(), assay.Local(), id)
		if errors.Is(err, assay.ErrNotFound) { // killed before the run was created
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if least := len(takenOver(records, records[at-1].Path)); r.Steps < least {
			t.Errorf("%s: the journal has %d steps, fewer than the %d taken over", id, r.Steps, least)
		}
		if err := compare(want, resumed(t, e, id)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		replays(t, e, id)
	}
	child := func(id string) child {
		return child{Dir: dir, Run: id, Question: manyParts, Fork: parent.Run, From: fmt.Sprint(at)}
	}
	step := 1
	if testing.Short() {
		step = 5
	}
	for write, killed := 1, true; killed; write += step {
		c := child(fmt.Sprintf("fork%d", write))
		c.Write, c.When = write, during
		if killed = wasKilled(t, c.start(t)); killed {
			check(c.Run)
		}
	}
	for i := range 6 {
		c := child(fmt.Sprintf("moment%d", i))
		c.Slow = 20 * time.Millisecond
		cmd := c.start(t)
		time.Sleep(rand.N(60 * time.Millisecond))
		if err := cmd.Process.Kill(); err != nil {
			t.Logf("%s: %v", c.Run, err)
		}
		wasKilled(t, cmd)
		check(c.Run)
	}
}

// TestKillAtRandomMoments is like TestKillAtEveryJournalWrite, but kills a longer run at random
// moments.
func TestKillAtRandomMoments(t *testing.T) {
	t.Parallel()
	e, dir, want := crashes(t)
	rounds := 25
	switch {
	case os.Getenv("ASSAY_LONG") != "":
		rounds = 200
	case testing.Short():
		rounds = 5
	}
	// The duration of a run varies by more than its own length, so the range of kill times is
	// adapted to the results of earlier kills.
	span := 100 * time.Millisecond
	interrupted := 0
	for i := 0; interrupted < rounds; i++ {
		if i == 100*rounds {
			t.Fatalf("of %d runs only %d were interrupted, want %d", i, interrupted, rounds)
		}
		c := child{Dir: dir, Run: fmt.Sprintf("round%d", i), Question: manyParts, Slow: 20 * time.Millisecond}
		cmd := c.start(t)
		time.Sleep(rand.N(span))
		if err := cmd.Process.Kill(); err != nil {
			t.Logf("round %d: %v", i, err)
		}
		wasKilled(t, cmd)
		r, err := e.run(t.Context(), assay.Local(), c.Run)
		switch {
		case errors.Is(err, assay.ErrNotFound): // killed before the run was created
			span += span / 8
			continue
		case err != nil:
			t.Fatalf("round %d: %v", i, err)
		case r.Answer != nil: // the run had finished
			span -= span / 8
		default:
			interrupted++
		}
		if err := compare(want, resumed(t, e, c.Run)); err != nil {
			t.Errorf("round %d: %v", i, err)
		}
	}
}

// TestKillEveryStrategy checks that a run of any strategy, killed at random moments and resumed
// by another process, reaches the answer of an uninterrupted run, and that a replay reaches the
// same one.
func TestKillEveryStrategy(t *testing.T) {
	t.Parallel()
	e, dir, at := openEvery(t)
	rounds := 1
	switch {
	case os.Getenv("ASSAY_LONG") != "":
		rounds = 10
	case testing.Short():
		t.Skip("each strategy takes a process of its own, or several")
	}
	interrupted := 0
	span := 50 * time.Millisecond // of the moments of the kills; it follows how fast the runs are
	for s, name := range strategy.Names() {
		way := everyWay[s%2]
		for i := range rounds {
			if rounds > 1 {
				way = everyWay[i%2]
			}
			everyModels(e, way)
			want, err := e.Answer(t.Context(), assay.Local(), everyRequest(name))
			if err != nil {
				t.Fatal(err)
			}
			for try := range 24 {
				c := child{Dir: dir, Run: fmt.Sprintf("%s%d_%d", name, i, try), Every: name, At: at, Clerks: way == "models", Slow: 20 * time.Millisecond}
				cmd := c.start(t)
				time.Sleep(rand.N(span))
				if err := cmd.Process.Kill(); err != nil {
					t.Logf("%s: %v", c.Run, err)
				}
				wasKilled(t, cmd)
				r, err := e.run(t.Context(), assay.Local(), c.Run)
				if errors.Is(err, assay.ErrNotFound) { // killed before the run was created
					span += span / 4
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				ended := r.Answer != nil
				checkResumed(t, e, c.Run+", killed, "+way, way, c.Run, want)
				if !ended {
					interrupted++
					break
				}
				span = max(span-span/4, time.Millisecond)
			}
		}
	}
	if t.Logf("%d runs were interrupted", interrupted); interrupted < rounds*len(strategy.Names())/2 {
		t.Errorf("%d runs were interrupted, too few to tell", interrupted)
	}
}
