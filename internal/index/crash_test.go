//go:build unix

package index_test

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
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
	"github.com/assay-rag/assay/internal/ramdisk"
)

// A child describes a process to be killed, as JSON in the environment variable childEnv. The
// process repeatedly changes a source and writes its index.
type child struct {
	Dir  string
	Seed uint64
}

const childEnv = "ASSAY_TEST_CHILD"

// crashDocuments is the number of distinct documents in each collection of the child's source. It
// is so small that the child spends most of its time writing files.
const crashDocuments = 25

// TestMain runs the child in a process that a test has started in order to kill it. Otherwise it
// runs the tests, which must not leak goroutines.
func TestMain(m *testing.M) {
	ramdisk.Use()
	if spec := os.Getenv(childEnv); spec != "" {
		if err := runChild(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// States of a child. It writes its state to a file, which survives the kill.
const (
	committing byte = 'c'
	flushing   byte = 'f'
	settling   byte = 's'
)

func (c child) source() (*indextest.Source, error) {
	return indextest.OpenSource("crash", filepath.Join(c.Dir, "source"))
}

func (c child) index() string { return filepath.Join(c.Dir, "index") }
func (c child) state() string { return filepath.Join(c.Dir, "state") }

func runChild(spec string) error {
	var c child
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		return err
	}
	if err := os.WriteFile(c.state(), []byte{committing}, 0o600); err != nil {
		return err
	}
	state, err := os.OpenFile(c.state(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	ctx := context.Background()
	source, err := c.source()
	if err != nil {
		return err
	}
	ix, err := index.OpenEager(ctx, c.index(), source)
	if err != nil {
		return err
	}
	fmt.Println("started")
	random := rand.New(rand.NewPCG(c.Seed, 0))
	for step := 0; ; step++ {
		do := func(what byte, f func(context.Context) error) {
			_, stateErr := state.WriteAt([]byte{what}, 0)
			err = errors.Join(err, stateErr, f(ctx))
		}
		do(committing, func(context.Context) error {
			for range 1 + random.IntN(4) {
				indextest.Churn(source, random, crashDocuments)
			}
			return nil
		})
		do(flushing, ix.Flush)
		if step%4 != 0 { // otherwise merges continue in the background
			do(settling, ix.Settle)
		}
		if err != nil {
			return err
		}
	}
}

// start starts a child and returns when it is at work.
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

// kill kills a child, which must be at work, as kill -9 does.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended by itself: %v", cmd.ProcessState)
	}
}

// met describes the moment of a kill.
type met struct {
	state byte
	files bool // there were files that the manifest does not name
}

// TestKillAtRandomMoments checks that an index that is killed repeatedly, at random moments of
// flushes and merges, opens in its old or its new state and answers like a new index. Leftover
// files must be gone after the next Flush.
func TestKillAtRandomMoments(t *testing.T) {
	t.Parallel()
	kills := indextest.Rounds(4, 10, 200)
	dir := t.TempDir()
	span := 60 * time.Millisecond
	fell := make(map[met]int)
	inFlush, inMerge := 0, 0
	for round := 0; inFlush+inMerge < kills || min(inFlush, inMerge) < kills/5; round++ {
		if round == 50*kills {
			t.Fatalf("of %d kills %d fell into flushes and %d into merges, want %d, and of each a fifth", round, inFlush, inMerge, kills)
		}
		c := child{Dir: dir, Seed: uint64(round)}
		cmd := c.start(t)
		time.Sleep(rand.N(span))
		kill(t, cmd)
		at := c.check(t)
		fell[at]++
		switch at.state {
		case flushing:
			inFlush++
		case settling:
			inMerge++
		}
		// A child's first change and Flush take longer than later ones, on a busy machine by seconds.
		// If a kill comes before a Flush, or few fall into merges, let them come later.
		if at.state == committing || inMerge < inFlush/2 {
			span = min(span+span/4, time.Minute)
		} else {
			span -= span / 8
		}
		if t.Failed() {
			t.Fatalf("kill %d fell into %q", round, at.state)
		}
	}
	t.Logf("%d kills in flushes, %d in merges; %v", inFlush, inMerge, fell)
}

// check checks a copy of the index that a child left and returns the moment of the kill.
func (c child) check(t *testing.T) met {
	t.Helper()
	state, err := os.ReadFile(c.state())
	if err != nil || len(state) != 1 {
		t.Fatalf("state %q: %v", state, err)
	}
	at := met{state: state[0], files: len(unnamed(t, c.index())) > 0}
	source, err := c.source()
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	left := filepath.Join(t.TempDir(), "index")
	if _, err := os.Stat(c.index()); err == nil {
		if err := os.CopyFS(left, os.DirFS(c.index())); err != nil {
			t.Fatal(err)
		}
	}
	ix, err := index.OpenSmall(t.Context(), left, source)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	if lost := ix.Lost(); lost != nil {
		t.Errorf("the index was lost: %v", lost)
	}
	indextest.Check(t, ix, source, c.Seed, 10)
	fresh := open(t, source, t.TempDir())
	defer fresh.Close()
	q := assay.Query{Text: "alpha beta os.Open file", Limit: 1000}
	want, wantErr := fresh.Search(t.Context(), assay.Local().Access(), q)
	got, err := ix.Search(t.Context(), assay.Local().Access(), q)
	if diff := cmp.Diff(want, got); diff != "" || err != nil || wantErr != nil {
		t.Errorf("%v, %v: -fresh +reopened\n%s", wantErr, err, diff)
	}
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ix.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if leaked := unnamed(t, left); len(leaked) > 0 {
		t.Errorf("after Flush and Settle there are still %v", leaked)
	}
	indextest.Check(t, ix, source, c.Seed, 5)
	return at
}
