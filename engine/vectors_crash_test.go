//go:build unix

package engine

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// embedAsChild ingests documents and asks questions while vectors are made in the background,
// until it is killed.
func embedAsChild(c child) error {
	ctx := context.Background()
	encoders := someEncoders("old/64", "new/64")
	for name, e := range encoders.byName {
		encoders.byName[name] = slow{e, time.Millisecond}
	}
	e, err := Open(ctx, Config{Dir: c.Dir, Encoders: encoders})
	if err != nil {
		return err
	}
	if _, err := e.Ingest(ctx, IngestRequest{Paths: []string{c.Docs}}); err != nil {
		return err
	}
	for {
		if _, err := e.Answer(ctx, assay.Local(), Request{Question: "Where does lantern7 burn?"}); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestKillWhileVectorsCatchUp kills a process that makes vectors in the background, at random
// moments, while documents are added and the model changes. It checks that the stored vectors are
// correct and that the next process continues.
func TestKillWhileVectorsCatchUp(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	if os.Getenv("ASSAY_LONG") != "" {
		rounds = 100
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	encoders := someEncoders("old/64", "new/64")
	models := []string{"old/64", "new/64"}
	partial := 0
	for round := range rounds {
		wanted := models[round/2%2]
		check := openWith(t, dir, encoders)
		if err := check.UseEncoder(t.Context(), wanted, ""); err != nil {
			t.Fatal(err)
		}
		spec, err := json.Marshal(child{Dir: dir, Docs: writeNotes(t, 100*round, 60)})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100*time.Millisecond + time.Duration(rng.Int64N(int64(time.Second))))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		if n := checkVectors(t, check, encoders); n {
			partial++
		}
		for _, c := range Doctor(t.Context(), Config{Dir: dir, Encoders: encoders}) {
			if !c.OK {
				t.Errorf("round %d: doctor: %s: %s", round, c.Name, c.Detail)
			}
		}
		if rng.IntN(2) == 0 {
			continue // the next round starts from this state
		}
		report, err := check.Embed(t.Context(), nil)
		if err != nil || report.Missing() > 0 {
			t.Errorf("round %d: %+v, %v", round, report, err)
		}
		checkVectors(t, check, encoders)
		if left, err := check.content.Models(t.Context()); err != nil || report.Chunks > 0 && !slices.Equal(left, []string{wanted}) {
			t.Errorf("round %d: models %v, %v; want %s alone", round, left, err, wanted)
		}
		if r := searchFor(t, check, "lantern7"); report.Chunks > 0 && (r.Index.Model != wanted || r.Index.Coverage != 1 || len(r.Notes) > 0) {
			t.Errorf("round %d: index %+v, notes %q; want %s and all", round, r.Index, r.Notes, wanted)
		}
	}
	t.Logf("%d of %d were killed while vectors were missing", partial, rounds)
}

// checkVectors checks every stored vector against its model's output for the passage, and reports
// whether some are missing.
func checkVectors(t *testing.T, e *Engine, encoders *fakeEncoders) (missing bool) {
	t.Helper()
	models, err := e.content.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range models {
		n := 0
		for v, err := range e.content.Vectors(t.Context(), m, 0) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			ps, err := e.content.Passages(t.Context(), []string{v.Chunk})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(encoders.hashing(m).Vector(ps[0].Words()), slices.Clone(v.Values)); diff != "" {
				t.Errorf("%s of %q (-want +got):\n%s", m, ps[0].Words(), diff)
			}
		}
		c, err := e.content.Coverage(t.Context(), m)
		if err != nil || c.Embedded != n {
			t.Errorf("%s: %d vectors, coverage %+v, %v", m, n, c, err)
		}
		missing = missing || c.Embedded < c.Chunks
	}
	return missing
}
