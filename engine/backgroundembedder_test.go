package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// TestModelChangesWhileAPassWaits checks that the progress of the previous model is not
// attributed to a new model that is chosen while a pass waits for the embedding lock.
func TestModelChangesWhileAPassWaits(t *testing.T) {
	t.Parallel()
	e := openWith(t, t.TempDir(), someEncoders("old/64", "new/64"))
	ingestPaths(t, e, writeNotes(t, 0, 10))
	last, err := e.embedder.followOnce(t.Context(), passState{sequence: -1})
	if err != nil {
		t.Fatal(err)
	}
	ingestPaths(t, e, writeNotes(t, 10, 2))

	other, err := e.tenant.Lock(t.Context(), embeddingLock)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		var err error
		last, err = e.embedder.followOnce(t.Context(), last)
		waited <- err
	}()
	time.Sleep(100 * time.Millisecond) // the pass waits by now; if not, it uses the new model at once
	if err := e.UseEncoder(t.Context(), "new/64", ""); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	<-waited
	if _, err := e.embedder.followOnce(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	wantCoverage(t, e, "new/64", 12, 12)
}

// TestFillAfterASlowBatch checks that a vectorFiller makes vectors again after a slow batch.
func TestFillAfterASlowBatch(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("first/64")
	e := openWith(t, t.TempDir(), encoders)
	f := newVectorFiller(e)
	f.measured(1, time.Minute)
	fill := f.withBudget(encoders.byName["first/64"], nil)
	p := assay.Passage{Text: "The lantern burns brightly in the harbour at night."}
	for range 50 {
		made, err := fill(t.Context(), "first/64", []assay.Passage{p})
		if err != nil {
			t.Fatal(err)
		}
		if made[0] != nil {
			return
		}
	}
	t.Error("nothing was made in fifty searches")
}

// TestNewModelThatCannotBeOpened checks that results do not announce vectors that cannot be made.
func TestNewModelThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("old/64", "new/64")
	now := time.Now()
	e := openConfig(t, Config{Dir: t.TempDir(), Encoders: encoders, NoBackground: true, Now: func() time.Time { return now }})
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{writeNotes(t, 0, 5)}, Wait: true}); err != nil {
		t.Fatal(err)
	}
	encoders.broken["new/64"] = fmt.Errorf("weights.bin is torn: %w", assay.ErrDamaged)
	if err := writeEncoder(t.Context(), e.tenant, encoderChoice{Model: "new/64"}); err != nil {
		t.Fatal(err)
	}
	searchFor(t, e, "lantern3")
	if _, err := e.Embed(t.Context(), nil); !errors.Is(err, assay.ErrDamaged) {
		t.Fatalf("Embed: %v", err)
	}
	now = now.Add(time.Hour)
	r := searchFor(t, e, "lantern3")
	if notes := strings.Join(noteTexts(r.Notes), "; "); r.Index.Model != "old/64" || !strings.Contains(notes, "new/64 cannot be made") || !strings.Contains(notes, "weights.bin") {
		t.Errorf("index %+v, notes %q", r.Index, r.Notes)
	}
}

// TestFillOfACrowdedSearch checks that a search that must go deeper, because duplicates crowd out
// its hits, waits no longer for vectors than any other.
func TestFillOfACrowdedSearch(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("first/64")
	waits := &waitsOnPassages{Embedder: encoders.byName["first/64"]}
	encoders.byName["first/64"] = waits
	e := openWith(t, t.TempDir(), encoders)
	dir := t.TempDir()
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.md", i)), []byte("The lantern burns brightly in the harbour at night, and the keeper of it sleeps until the ships come home.\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ingestPaths(t, e, dir)
	searchFor(t, e, "lantern in the harbour")
	if waits.allowed == 0 || waits.allowed > fillAlone {
		t.Errorf("a search could wait for %v in %d batches", waits.allowed, waits.batches)
	}
}

// waitsOnPassages makes no vectors of passages and records how long it was allowed to take.
type waitsOnPassages struct {
	llm.Embedder
	allowed time.Duration
	batches int
}

func (w *waitsOnPassages) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	if p == llm.Query {
		return w.Embedder.Embed(ctx, p, texts)
	}
	until, _ := ctx.Deadline()
	w.allowed += time.Until(until)
	w.batches++
	<-ctx.Done()
	return nil, ctx.Err()
}
