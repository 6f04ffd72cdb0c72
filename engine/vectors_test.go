package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/store"
)

// fakeEncoders provides encoders for tests.
type fakeEncoders struct {
	standard string

	mu     sync.Mutex
	byName map[string]llm.Embedder
	broken map[string]error
	opened []string
}

// someEncoders returns encoders with the given names. The first is the default.
func someEncoders(names ...string) *fakeEncoders {
	f := &fakeEncoders{standard: names[0], byName: map[string]llm.Embedder{}, broken: map[string]error{}}
	for _, name := range names {
		f.byName[name] = &llmtest.Hashing{Name: name, Dimensions: 64}
	}
	return f
}

func (f *fakeEncoders) Default() string { return f.standard }

func (f *fakeEncoders) Open(_ context.Context, name string) (llm.Embedder, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, name)
	if err := f.broken[name]; err != nil {
		return nil, err
	}
	e, ok := f.byName[name]
	if !ok {
		return nil, fmt.Errorf("%s is not installed: %w", name, assay.ErrNotFound)
	}
	return e, nil
}

func (f *fakeEncoders) hashing(name string) *llmtest.Hashing {
	return f.byName[name].(*llmtest.Hashing)
}

// openWith opens a data directory with encoders and without the background embedder.
func openWith(t *testing.T, dir string, encoders Encoders) *Engine {
	t.Helper()
	return openConfig(t, Config{Dir: dir, Encoders: encoders, NoBackground: true})
}

func openConfig(t *testing.T, config Config) *Engine {
	t.Helper()
	e, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

// writeNotes writes n documents, each with a unique word, to a new folder.
func writeNotes(t *testing.T, from, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := from; i < from+n; i++ {
		text := fmt.Sprintf("# Note %d\n\nThe lantern%d burns brightly in the harbour at night.\n", i, i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.md", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func wantCoverage(t *testing.T, e *Engine, model string, embedded, chunks int) {
	t.Helper()
	got, err := e.content.Coverage(t.Context(), model)
	if err != nil || got != (store.Coverage{Chunks: chunks, Embedded: embedded}) {
		t.Errorf("coverage of %s = %+v, %v; want %d of %d", model, got, err, embedded, chunks)
	}
}

func searchFor(t *testing.T, e *Engine, text string) assay.Results {
	t.Helper()
	r, err := e.Search(t.Context(), assay.Local(), assay.Query{Text: text, Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestIngestVectors checks that an ingest returns when the text is stored and, with Wait, when
// the vectors are stored.
func TestIngestVectors(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("first/64")
	e := openWith(t, t.TempDir(), encoders)
	docs := writeNotes(t, 0, 50)
	report, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{docs}})
	if err != nil || report.Added != 50 {
		t.Fatalf("%+v, %v", report, err)
	}
	if v := report.Vectors; v == nil || v.Model != "first/64" || v.Missing() != 50 || v.Stored != 0 {
		t.Errorf("vectors = %+v, want 50 missing", v)
	}
	if n := len(encoders.hashing("first/64").Texts()); n != 0 {
		t.Errorf("an ingest embedded %d texts", n)
	}

	var last ingest.EmbedProgress
	report, err = e.Ingest(t.Context(), IngestRequest{Paths: []string{docs}, Wait: true, Embedding: func(p ingest.EmbedProgress) { last = p }})
	if v := report.Vectors; err != nil || v.Stored != 50 || v.Missing() != 0 || len(v.Failed) > 0 {
		t.Errorf("with Wait: %+v, %v", v, err)
	}
	if last.Stored != 50 || last.Left != 0 || last.Rate <= 0 {
		t.Errorf("last progress %+v", last)
	}
	wantCoverage(t, e, "first/64", 50, 50)

	r := searchFor(t, e, "lantern7")
	if r.Index.Model != "first/64" || r.Index.Coverage != 1 || len(r.Notes) > 0 || r.Hits[0].Scores.Vector == nil {
		t.Errorf("index %+v, notes %v, scores %+v; want all covered", r.Index, r.Notes, r.Hits[0].Scores)
	}
}

// TestWaitWritesTheIndex checks that vectors made with Wait are in the index on disk, so that
// another process need not read them from the store.
func TestWaitWritesTheIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := openWith(t, dir, someEncoders("first/64"))
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{writeNotes(t, 0, 20)}, Wait: true}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "tenants/default/index/*.vectors"))
	if err != nil || len(files) == 0 {
		t.Errorf("no vectors in the index's folder: %v", err)
	}
}

// TestSearchFillsIn checks that a search makes the vectors that it needs and stores them.
func TestSearchFillsIn(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("first/64")
	e := openWith(t, t.TempDir(), encoders)
	ingestPaths(t, e, writeNotes(t, 0, 200))
	r := searchFor(t, e, "lantern7 in the harbour")
	if len(r.Notes) == 0 || !strings.Contains(strings.Join(noteTexts(r.Notes), "; "), "vector") {
		t.Errorf("notes %q, want them to say that vectors are missing", r.Notes)
	}
	if r.Index.Model != "first/64" || r.Index.Coverage >= 1 {
		t.Errorf("index %+v", r.Index)
	}
	if r.Hits[0].Scores.Vector == nil {
		t.Errorf("the best hit has no vector: %+v", r.Hits[0].Scores)
	}
	got, err := e.content.Coverage(t.Context(), "first/64")
	if err != nil || got.Embedded == 0 || got.Embedded == 200 {
		t.Errorf("coverage %+v, %v; want some", got, err)
	}
	embedded := len(encoders.hashing("first/64").Texts())
	searchFor(t, e, "lantern7 in the harbour")
	if n := len(encoders.hashing("first/64").Texts()) - embedded; n > 50 {
		t.Errorf("the same search again embedded %d texts", n)
	}
	report, err := e.Embed(t.Context(), nil)
	if err != nil || report.Stored != 200-got.Embedded && report.Missing() != 0 {
		t.Errorf("the rest: %+v, %v", report, err)
	}
	texts := encoders.hashing("first/64").Texts()
	seen := map[string]int{}
	for _, text := range texts {
		if seen[text]++; seen[text] > 1 && strings.HasPrefix(text, "Note") {
			t.Errorf("%q was embedded %d times", text, seen[text])
		}
	}
}

// TestFillKeepsWhatCannotBeStored checks that vectors that a search makes while another process
// ingests are kept for the next search, and stored once the writer lock is free.
func TestFillKeepsWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("first/64")
	dir := t.TempDir()
	e, err := Open(t.Context(), Config{Dir: dir, Encoders: encoders, NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	ingestPaths(t, e, writeNotes(t, 0, 30))
	w, err := e.tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := searchFor(t, e, "lantern7 in the harbour")
	if first.Hits[0].Scores.Vector == nil {
		t.Error("no vector was filled in")
	}
	wantCoverage(t, e, "first/64", 0, 30)
	before := len(encoders.hashing("first/64").Texts())
	if again := searchFor(t, e, "lantern7 in the harbour"); again.Hits[0].Scores.Vector == nil {
		t.Error("the next search has no vector")
	}
	if n := len(encoders.hashing("first/64").Texts()) - before; n > 1 { // the query
		t.Errorf("the next search embedded %d texts", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	wantCoverage(t, openWith(t, dir, encoders), "first/64", 30, 30)
}

// TestFillIsBounded checks that an encoder that hangs delays a search only up to the limit.
func TestFillIsBounded(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("first/64")
	encoders.byName["first/64"] = blocksOnPassages{encoders.byName["first/64"]}
	e := openWith(t, t.TempDir(), encoders)
	ingestPaths(t, e, writeNotes(t, 0, 30))
	answer, err := e.Answer(t.Context(), assay.Local(), Request{Question: "Where does lantern7 burn?", Budget: assay.Budget{Wall: time.Minute}})
	if err != nil || len(answer.Citations) == 0 {
		t.Errorf("%+v, %v; want an answer by text", answer, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := e.Search(ctx, assay.Local(), assay.Query{Text: "lantern7 in the harbour", Limit: 3})
	if err != nil || len(r.Hits) == 0 || ctx.Err() != nil {
		t.Errorf("%d hits, %v; want them before the deadline", len(r.Hits), err)
	}
}

// TestAllowance checks that the searches of a run share one waiting time.
func TestAllowance(t *testing.T) {
	t.Parallel()
	a := newFillBudget(12 * time.Second)
	first, second, third := a.take(), a.take(), a.take()
	if first != time.Second || second != time.Second || third != 0 {
		t.Errorf("12 s of wall time allow %v, %v, %v", first, second, third)
	}
	a.giveBack(300 * time.Millisecond)
	a.giveBack(-time.Second)
	if again := a.take(); again != 300*time.Millisecond {
		t.Errorf("what was given back is %v", again)
	}
	if short := newFillBudget(600 * time.Millisecond).take(); short != 100*time.Millisecond {
		t.Errorf("600 ms of wall time allow %v", short)
	}
}

type blocksOnPassages struct{ llm.Embedder }

func (b blocksOnPassages) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	if p == llm.Passage {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return b.Embedder.Embed(ctx, p, texts)
}

// TestModelChange checks that the old model serves while the vectors of a new model are made.
func TestModelChange(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("old/64", "new/64")
	e := openWith(t, t.TempDir(), encoders)
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{writeNotes(t, 0, 40)}, Wait: true}); err != nil {
		t.Fatal(err)
	}
	if err := e.UseEncoder(t.Context(), "new/64", "a test"); err != nil {
		t.Fatal(err)
	}
	r := searchFor(t, e, "lantern3")
	if r.Index.Model != "old/64" || r.Index.Coverage != 1 || !strings.Contains(strings.Join(noteTexts(r.Notes), "; "), "new/64 are not all made yet") || strings.Contains(strings.Join(noteTexts(r.Notes), "; "), "%") {
		t.Errorf("before: index %+v, notes %q", r.Index, r.Notes)
	}

	// Half of the vectors.
	ctx, cancel := context.WithCancel(t.Context())
	slow := 0
	_, err := e.embedder.pass(ctx, ingest.EmbedOptions{Batch: 5, Progress: func(p ingest.EmbedProgress) {
		if slow = p.Stored; slow >= 20 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	e.encoderSelector.forget()
	r = searchFor(t, e, "lantern3")
	if r.Index.Model != "old/64" || !strings.Contains(strings.Join(noteTexts(r.Notes), "; "), "new/64 are not all made yet") {
		t.Errorf("half way: index %+v, notes %q", r.Index, r.Notes)
	}
	status, err := e.Vectors(t.Context())
	if err != nil || status.Wanted != "new/64" || status.Serving != "old/64" || status.Coverage("new/64") != 0.5 || status.Coverage("old/64") != 1 {
		t.Errorf("status %+v, %v", status, err)
	}

	// All of the vectors.
	report, err := e.Embed(t.Context(), nil)
	if err != nil || report.Model != "new/64" || report.Stored != 20 || report.Missing() != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	r = searchFor(t, e, "lantern3")
	if r.Index.Model != "new/64" || r.Index.Coverage != 1 || len(r.Notes) > 0 {
		t.Errorf("after: index %+v, notes %q", r.Index, r.Notes)
	}
	models, err := e.content.Models(t.Context())
	if err != nil || !slices.Equal(models, []string{"new/64"}) {
		t.Errorf("models %v, %v; want the old one dropped", models, err)
	}

	// Back to the default encoder.
	if err := e.UseEncoder(t.Context(), "", ""); err != nil {
		t.Fatal(err)
	}
	if status, err := e.Vectors(t.Context()); err != nil || status.Wanted != "old/64" || status.Serving != "new/64" {
		t.Errorf("status %+v, %v", status, err)
	}
	if err := e.UseEncoder(t.Context(), "unknown/1", ""); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("an unknown encoder: %v", err)
	}
}

// TestModelChangeElsewhere checks that another engine, as in another process, notices a change of
// the model.
func TestModelChangeElsewhere(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("old/64", "new/64")
	dir := t.TempDir()
	e, other := openWith(t, dir, encoders), openWith(t, dir, encoders)
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{writeNotes(t, 0, 10)}, Wait: true}); err != nil {
		t.Fatal(err)
	}
	if r := searchFor(t, other, "lantern3"); r.Index.Model != "old/64" {
		t.Errorf("index %+v", r.Index)
	}
	if err := e.UseEncoder(t.Context(), "new/64", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if r := searchFor(t, other, "lantern3"); r.Index.Model != "new/64" || r.Index.Coverage != 1 {
		t.Errorf("index %+v, notes %q", r.Index, r.Notes)
	}
}

// TestEncoderProblems checks that a missing or damaged encoder leaves only text search, and that
// every result reports it.
func TestEncoderProblems(t *testing.T) {
	t.Parallel()
	torn := fmt.Errorf("/models/first/model.safetensors: it ends after 17 bytes: %w", assay.ErrDamaged)
	tests := []struct {
		name    string
		prepare func(t *testing.T, e *Engine, f *fakeEncoders)
		want    string // substring of the note
	}{
		{"torn", func(_ *testing.T, _ *Engine, f *fakeEncoders) { f.broken["first/64"] = torn }, "model.safetensors: it ends after 17 bytes"},
		{"gone", func(_ *testing.T, _ *Engine, f *fakeEncoders) { delete(f.byName, "first/64") }, "first/64 is not installed"},
		{"another name", func(_ *testing.T, _ *Engine, f *fakeEncoders) {
			f.byName["first/64"] = &llmtest.Hashing{Name: "second/64"}
		}, "calls itself second/64"},
		{"a damaged setting", func(t *testing.T, e *Engine, _ *fakeEncoders) {
			if err := e.tenant.SetSetting(t.Context(), encoderSetting, []byte("{")); err != nil {
				t.Fatal(err)
			}
		}, `the setting "encoder" does not name a model`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			encoders := someEncoders("first/64")
			e := openWith(t, t.TempDir(), encoders)
			test.prepare(t, e, encoders)
			ingestPaths(t, e, writeNotes(t, 0, 10))
			r := searchFor(t, e, "lantern3")
			if notes := strings.Join(noteTexts(r.Notes), "; "); len(r.Hits) == 0 || !strings.Contains(notes, "text alone") || !strings.Contains(notes, test.want) {
				t.Errorf("%d hits, notes %q, want %q", len(r.Hits), r.Notes, test.want)
			}
			if a := ask(t, e, "Where does lantern3 burn?"); !strings.Contains(strings.Join(noteTexts(a.Notes), "; "), test.want) {
				t.Errorf("the answer's notes are %q, want %q", a.Notes, test.want)
			}
			if _, err := e.Embed(t.Context(), nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Embed: %v, want %q", err, test.want)
			}
			report, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{writeNotes(t, 20, 2)}, Wait: true})
			if err == nil || report.Added != 2 {
				t.Errorf("Ingest with Wait: %+v, %v; want the text stored, and the error", report, err)
			}
			status, err := e.Vectors(t.Context())
			if err != nil || !strings.Contains(status.Problem, test.want) || status.Serving != "" {
				t.Errorf("status %+v, %v", status, err)
			}
			c := checkNamed(t, Doctor(t.Context(), Config{Dir: e.config.Dir, Encoders: encoders}), "vectors")
			if c.OK || !strings.Contains(c.Detail, test.want) {
				t.Errorf("doctor: %+v", c)
			}
		})
	}
}

// TestOldEncoderGone checks that an old model does not serve if its encoder is missing.
func TestOldEncoderGone(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("old/64", "new/64")
	dir := t.TempDir()
	e := openWith(t, dir, encoders)
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{writeNotes(t, 0, 40)}, Wait: true}); err != nil {
		t.Fatal(err)
	}
	if err := e.UseEncoder(t.Context(), "new/64", ""); err != nil {
		t.Fatal(err)
	}
	delete(encoders.byName, "old/64")
	e = openWith(t, dir, encoders)
	if r := searchFor(t, e, "lantern3"); r.Index.Model != "new/64" || r.Index.Coverage == 1 || len(r.Notes) == 0 {
		t.Errorf("index %+v, notes %q", r.Index, r.Notes)
	}
}

// TestBackground checks that an open engine makes vectors by itself: for its own ingests, for
// those of other processes, and for a new model.
func TestBackground(t *testing.T) {
	before := runtime.NumGoroutine()
	encoders := someEncoders("old/64", "new/64")
	dir := t.TempDir()
	e, err := Open(t.Context(), Config{Dir: dir, Encoders: encoders, NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	e.embedder.every = 50 * time.Millisecond
	e.embedder.start()
	ingestPaths(t, e, writeNotes(t, 0, 30))
	await(t, e, "old/64", 30)
	other := openWith(t, dir, encoders)
	other.patience = hangs
	ingestPaths(t, other, writeNotes(t, 100, 30))
	await(t, e, "old/64", 60)
	if err := e.UseEncoder(t.Context(), "new/64", ""); err != nil {
		t.Fatal(err)
	}
	await(t, e, "new/64", 60)
	for deadline := time.Now().Add(hangs); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) { // the old model is dropped a moment later
		if models, err := e.content.Models(t.Context()); err != nil || len(models) == 1 {
			break
		}
	}
	if r := searchFor(t, e, "lantern3"); r.Index.Model != "new/64" || r.Index.Coverage != 1 {
		t.Errorf("index %+v, notes %q", r.Index, r.Notes)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(hangs / 4); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { // goroutines of the database driver take a moment to end
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%d goroutines more than before:\n%s", runtime.NumGoroutine()-before, stacks[:runtime.Stack(stacks, true)])
}

// hangs is how long a test waits for what takes a moment before it considers it to hang.
const hangs = 2 * time.Minute

// await waits until a model has the given number of vectors.
func await(t *testing.T, e *Engine, model string, want int) {
	t.Helper()
	for deadline := time.Now().Add(hangs); ; {
		n, err := e.content.Coverage(t.Context(), model)
		if err != nil {
			t.Fatal(err)
		}
		if n.Embedded >= want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s has %d vectors, want %d", model, n.Embedded, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestBackgroundYields checks that a busy background embedder does not block others: they ingest,
// wait, ask and close meanwhile.
func TestBackgroundYields(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("slow/64")
	encoders.byName["slow/64"] = slow{encoders.byName["slow/64"], 2 * time.Millisecond}
	dir := t.TempDir()
	e, err := Open(t.Context(), Config{Dir: dir, Encoders: encoders, NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	other := openWith(t, dir, encoders)
	e.patience, other.patience = hangs, hangs
	e.embedder.start()
	ingestPaths(t, e, writeNotes(t, 0, 200))
	for i := range 5 {
		ingestPaths(t, e, writeNotes(t, 1000+10*i, 5))
		ingestPaths(t, other, writeNotes(t, 2000+10*i, 5))
		ask(t, e, "Where does lantern3 burn?")
	}
	report, err := e.Embed(t.Context(), nil)
	if err != nil || report.Missing() != 0 {
		t.Errorf("Embed: %+v, %v", report, err)
	}
	ingestPaths(t, e, writeNotes(t, 5000, 300))
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// slow is an encoder that sleeps for each text.
type slow struct {
	llm.Embedder
	each time.Duration
}

func (s slow) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	var made []llm.Vector
	for _, text := range texts {
		select {
		case <-ctx.Done():
			return made, ctx.Err()
		case <-time.After(s.each):
		}
		v, err := s.Embedder.Embed(ctx, p, []string{text})
		if err != nil {
			return made, err
		}
		made = append(made, v...)
	}
	return made, nil
}

// TestEmbedTogether checks that two engines that wait for vectors make each one only once.
func TestEmbedTogether(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("first/64")
	dir := t.TempDir()
	a, b := openWith(t, dir, encoders), openWith(t, dir, encoders)
	ingestPaths(t, a, writeNotes(t, 0, 150))
	var wait sync.WaitGroup
	stored := make([]int, 2)
	for i, e := range []*Engine{a, b} {
		wait.Go(func() {
			report, err := e.Embed(t.Context(), nil)
			if err != nil || report.Missing() != 0 {
				t.Errorf("%+v, %v", report, err)
			}
			stored[i] = report.Stored
		})
	}
	wait.Wait()
	if stored[0]+stored[1] != 150 || len(encoders.hashing("first/64").Texts()) != 150 {
		t.Errorf("%v stored, %d texts embedded, want 150", stored, len(encoders.hashing("first/64").Texts()))
	}
}

// TestReplayNeedsNoEncoder checks that a run that searched by vectors is replayed without an
// encoder.
func TestReplayNeedsNoEncoder(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("first/64")
	dir := t.TempDir()
	e := openWith(t, dir, encoders)
	ingestPaths(t, e, "testdata/handbook")
	a := ask(t, e, someQuestion)
	if len(a.Notes) == 0 {
		t.Errorf("no notes on an answer while vectors catch up")
	}
	if _, err := e.Embed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	full := ask(t, e, someQuestion)
	if len(full.Notes) > 0 || len(full.Citations) == 0 {
		t.Errorf("notes %q, %d citations, with all vectors there", full.Notes, len(full.Citations))
	}
	without := openDir(t, dir)
	for _, run := range []string{a.Run, full.Run} {
		if _, err := without.Replay(t.Context(), assay.Local(), run); err != nil {
			t.Error(err)
		}
	}
}

func TestDoctorVectors(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("first/64")
	e := openWith(t, t.TempDir(), encoders)
	ingestPaths(t, e, writeNotes(t, 0, 10))
	config := Config{Dir: e.config.Dir, Encoders: encoders}
	if c := checkNamed(t, Doctor(t.Context(), config), "vectors"); !c.OK || !strings.Contains(c.Detail, "first/64") || !strings.Contains(c.Detail, "0 of 10") {
		t.Errorf("%+v", c)
	}
	if _, err := e.Embed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if c := checkNamed(t, Doctor(t.Context(), config), "vectors"); !c.OK || !strings.Contains(c.Detail, "10 of 10") {
		t.Errorf("%+v", c)
	}
}

// TestModelChangesUnderway checks that a model chosen during a pass is the one whose vectors are
// made.
func TestModelChangesUnderway(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("old/64", "new/64")
	e := openWith(t, t.TempDir(), encoders)
	ingestPaths(t, e, writeNotes(t, 0, 100))
	changed := false
	report, err := e.Embed(t.Context(), func(p ingest.EmbedProgress) {
		if p.Stored > 0 && !changed {
			changed = true
			if err := e.UseEncoder(t.Context(), "new/64", ""); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || report.Model != "new/64" || report.Missing() != 0 || len(encoders.hashing("old/64").Texts()) == 100 {
		t.Errorf("%+v, %v, %d texts by the old one; want all by new/64", report, err, len(encoders.hashing("old/64").Texts()))
	}
	if models, err := e.content.Models(t.Context()); err != nil || !slices.Equal(models, []string{"new/64"}) {
		t.Errorf("models %v, %v", models, err)
	}
}

// TestBackgroundLeavesFailuresAlone checks that failed passages are retried only when something
// changes.
func TestBackgroundLeavesFailuresAlone(t *testing.T) {
	t.Parallel()
	encoders := someEncoders("first/64")
	counting := &countingTries{Embedder: llmtest.Plain(encoders.byName["first/64"])}
	encoders.byName["first/64"] = llmtest.Refusing(counting, "lantern3 ")
	e := openWith(t, t.TempDir(), encoders)
	e.embedder.every = 20 * time.Millisecond
	e.embedder.start()
	ingestPaths(t, e, writeNotes(t, 0, 10))
	await(t, e, "first/64", 9)
	// One more pass without new work may follow. Then nothing is tried during many looks.
	for deadline := time.Now().Add(hangs / 4); ; {
		tries := counting.n.Load()
		time.Sleep(time.Second)
		more := counting.n.Load() - tries
		if more == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it went on trying, %d times in the last second", more)
		}
	}
}

type countingTries struct {
	llm.Embedder
	n atomic.Int32
}

func (c *countingTries) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	c.n.Add(1)
	return c.Embedder.Embed(ctx, p, texts)
}

// TestWaitFew checks that the vectors of a small store are complete when its ingest ends, and
// that an ingest does not wait for those of a larger one.
func TestWaitFew(t *testing.T) {
	t.Parallel()
	e := openWith(t, t.TempDir(), someEncoders("old/64"))
	e.fewTime = hangs
	dir := writeNotes(t, 0, 5)
	report, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{dir}, WaitFew: 5})
	if err != nil || report.Vectors == nil || report.Vectors.Missing() != 0 {
		t.Errorf("%+v, %v", report.Vectors, err)
	}
	more := writeNotes(t, 5, 6)
	report, err = e.Ingest(t.Context(), IngestRequest{Paths: []string{more}, WaitFew: 5})
	if err != nil || report.Vectors == nil || report.Vectors.Missing() != 6 {
		t.Errorf("%+v, %v", report.Vectors, err)
	}
}
