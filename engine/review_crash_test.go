//go:build unix

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/review"
)

// decideAsChild decides a review, and is killed at a random moment of that.
func decideAsChild(ctx context.Context, e *Engine, c child) error {
	if _, err := e.search(ctx); err != nil { // opens the index, which is not what the test is about
		return err
	}
	bob := reviewer("bob")
	fmt.Println("started")
	time.AfterFunc(time.Duration(rand.Int64N(int64(c.Slow))), kill)
	if _, err := e.Claim(ctx, bob, c.Run, 0); err != nil {
		return err
	}
	view, err := e.Review(ctx, bob, c.Run)
	if err != nil {
		return err
	}
	switch c.Decide {
	case "approve":
		_, err = e.Approve(ctx, bob, c.Run)
	case "edit":
		_, err = e.Edit(ctx, bob, c.Run, view.Draft.Text+" Ask early.")
	default:
		_, err = e.Reject(ctx, bob, c.Run, "wrong")
	}
	return err
}

// TestKillReview kills reviewers at random moments, and once per run the process that asks. Every
// decision that is stored is whole: the run has ended, its journal has one ruling and the audit log one
// act. One that is not stored can be made afterwards, once.
func TestKillReview(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	e := openDir(t, dir)
	ingestPaths(t, e, "testdata/handbook")
	setPolicy(t, e, review.Policy{Name: "all", Always: true})
	kills := 24
	if os.Getenv("ASSAY_LONG") != "" {
		kills = 300
	}
	decided, open, killed := 0, 0, 0
	for i := 0; killed < kills; i++ {
		a, err := e.Answer(t.Context(), reader(), Request{Question: someQuestion, Strategy: "static", NoCache: true, ID: fmt.Sprint("kill", i)})
		if err != nil {
			t.Fatal(err)
		}
		how := []string{"approve", "edit", "reject"}[i%3]
		c := child{Dir: dir, Run: a.Run, Decide: how, Slow: 6 * time.Millisecond}
		if wasKilled(t, c.start(t)) {
			killed++
		}
		if wantDecidedOnce(t, e, a.Run) {
			decided++
			continue
		}
		open++
		// The reviewer goes on: the claim, if it was stored, is still theirs.
		claimed(t, e, reviewer("bob"), a.Run)
		if _, err := e.Approve(t.Context(), reviewer("bob"), a.Run); err != nil {
			t.Fatalf("%s, killed before its end: %v", a.Run, err)
		}
		if !wantDecidedOnce(t, e, a.Run) {
			t.Errorf("%s is not decided", a.Run)
		}
	}
	t.Logf("%d kills: %d decisions were stored before the process ended, %d were not", killed, decided, open)
}

// wantDecidedOnce checks that a run is not decided at all, or decided once in every place.
func wantDecidedOnce(t *testing.T, e *Engine, id string) bool {
	t.Helper()
	r, err := e.runs.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	records, err := e.runs.Records(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	rulings := 0
	for _, rec := range records {
		if rulingOf(rec) != nil {
			rulings++
		}
	}
	acts := 0
	for _, a := range actsByKind(t, e)["review.decided"] {
		if strings.Contains(a, fmt.Sprintf("%q", id)) {
			acts++
		}
	}
	row, err := e.tenant.Reviews().Review(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	if r.State == assay.RunDone {
		want = 1
		wantReplay(t, e, id)
	}
	if rulings != want || acts != want || row.Open != (want == 0) || r.State != assay.RunDone && r.State != assay.RunSuspended {
		t.Errorf("%s is %s: %d rulings, %d acts, review open %t", id, r.State, rulings, acts, row.Open)
	}
	return want == 1
}

// TestKillAtSuspension kills the process that asks around the end of its run. The run then waits, or is
// resumed until it waits, and its draft is never shown.
func TestKillAtSuspension(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	e := openDir(t, dir)
	ingestPaths(t, e, "testdata/handbook")
	setPolicy(t, e, review.Policy{Name: "all", Always: true})
	for write, killed := 1, true; killed; write++ {
		killed = false
		for _, when := range []moment{before, during, after} {
			c := child{Dir: dir, Run: fmt.Sprintf("write%d%s", write, when), Question: someQuestion, Write: write, When: when}
			if !wasKilled(t, c.start(t)) {
				continue
			}
			killed = true
			if _, steps, err := e.Run(t.Context(), assay.Local(), c.Run); err != nil {
				t.Fatal(err)
			} else if len(steps) > 0 && steps[0].Output != nil {
				t.Errorf("killed %s write %d: the steps are shown", when, write)
			}
			a, err := last(e.Resume(t.Context(), assay.Local(), c.Run))
			if err != nil || a.Status != assay.PendingReview {
				t.Errorf("killed %s write %d: %+v, %v", when, write, a, err)
			}
			if wantDecidedOnce(t, e, c.Run) {
				t.Errorf("killed %s write %d: it is decided", when, write)
			}
		}
	}
}
