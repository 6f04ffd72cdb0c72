package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/store"
)

// An embedWorld is a store with documents and no vectors.
type embedWorld struct {
	t *testing.T
	w store.Writer
}

func newEmbedWorld(t *testing.T, files map[string]string) *embedWorld {
	t.Helper()
	w, err := openTenant(t, t.TempDir()).Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	x := &embedWorld{t, w}
	x.ingest(files)
	return x
}

func (x *embedWorld) ingest(files map[string]string) {
	x.t.Helper()
	dir := x.t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			x.t.Fatal(err)
		}
	}
	if _, err := Run(x.t.Context(), x.w, Options{Roots: []string{dir}}); err != nil {
		x.t.Fatal(err)
	}
}

// passages returns the distinct passages without a vector of the model.
func (x *embedWorld) passages(model string) map[string]assay.Passage {
	x.t.Helper()
	lacking := map[string]assay.Passage{}
	for p, err := range x.w.Unembedded(x.t.Context(), model, 0) {
		if err != nil {
			x.t.Fatal(err)
		}
		lacking[p.Hash()] = p
	}
	return lacking
}

// check compares the stored vectors with those of the embedder and returns the coverage.
func (x *embedWorld) check(e *llmtest.Hashing) store.Coverage {
	x.t.Helper()
	stored := 0
	for v, err := range x.w.Vectors(x.t.Context(), e.Model(), 0) {
		if err != nil {
			x.t.Fatal(err)
		}
		stored++
		ps, err := x.w.Passages(x.t.Context(), []string{v.Chunk})
		if err != nil {
			x.t.Fatal(err)
		}
		if diff := cmp.Diff(e.Vector(ps[0].Words()), slices.Clone(v.Values)); diff != "" {
			x.t.Errorf("the vector of %q (-want +got):\n%s", ps[0].Words(), diff)
		}
	}
	c, err := x.w.Coverage(x.t.Context(), e.Model())
	if err != nil {
		x.t.Fatal(err)
	}
	if c.Embedded != stored {
		x.t.Errorf("%d vectors, but a coverage of %d", stored, c.Embedded)
	}
	return c
}

// notes returns n documents of two sections each. The second section has one of five texts.
func notes(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("%03d.md", i)] = fmt.Sprintf("# Notes\n\n## Own\n\nThe %d. thing to know is number%d.\n\n## Shared\n\nShared text of kind%d.\n", i, i, i%5)
	}
	return files
}

func TestEmbed(t *testing.T) {
	x := newEmbedWorld(t, notes(60))
	e := new(llmtest.Hashing)
	want := len(x.passages(e.Model()))
	var hashes []string
	var last EmbedProgress
	before := 0
	report, err := Embed(t.Context(), x.w, e, EmbedOptions{
		Batch:  7,
		Before: func(context.Context) error { before++; return nil },
		Progress: func(p EmbedProgress) {
			hashes = append(hashes, p.Hashes...)
			if p.Stored < last.Stored || p.Left > last.Left && last.Model != "" {
				t.Errorf("progress went from %+v to %+v", last, p)
			}
			last = p
		},
	})
	if err != nil || report.Stored != want || len(report.Failed) > 0 || report.Model != e.Model() {
		t.Fatalf("report %+v, %v; want %d stored", report, err, want)
	}
	slices.Sort(hashes)
	if n := len(slices.Compact(hashes)); n != want || last.Stored != want || last.Rate <= 0 || before < want/7 {
		t.Errorf("%d hashes acknowledged, last progress %+v, %d batches; want %d stored", n, last, before, want)
	}
	texts := e.Texts()
	slices.Sort(texts)
	if n := len(slices.Compact(slices.Clone(texts))); n != len(texts) {
		t.Errorf("%d of %d texts were embedded again", len(texts)-n, len(texts))
	}
	if c := x.check(e); c.Embedded != c.Chunks || c.Chunks <= want {
		t.Errorf("coverage %+v, want all, and more chunks than the %d passages", c, want)
	}

	// A second Embed has no work to do.
	again, err := Embed(t.Context(), x.w, e, EmbedOptions{})
	if err != nil || again.Stored != 0 || len(e.Texts()) != want {
		t.Errorf("a second Embed: %+v, %v, %d texts embedded", again, err, len(e.Texts())-want)
	}

	// Later documents are embedded; earlier ones are not embedded again.
	x.ingest(map[string]string{"later.md": "# Notes\n\n## Own\n\nLater than all others.\n\n## Shared\n\nShared text of kind3.\n"})
	if later, err := Embed(t.Context(), x.w, e, EmbedOptions{}); err != nil || later.Stored != 1 {
		t.Errorf("after another document: %+v, %v; want one vector", later, err)
	}

	// Another model has its own vectors.
	other := &llmtest.Hashing{Name: "other/16", Dimensions: 16}
	if r, err := Embed(t.Context(), x.w, other, EmbedOptions{}); err != nil || r.Stored != want+1 {
		t.Errorf("another model: %+v, %v; want %d", r, err, want+1)
	}
	x.check(other)
	x.check(e)
}

// TestEmbedNamesWhatFails checks that a passage which cannot be embedded is reported and that the
// others get their vectors.
func TestEmbedNamesWhatFails(t *testing.T) {
	files := notes(40)
	files["bad.md"] = "# Poison\n\nWhat no model can read.\n"
	for _, batch := range []int{1, 8, 64} {
		for _, prefix := range []bool{true, false} {
			x := newEmbedWorld(t, files)
			e := new(llmtest.Hashing)
			var broken llm.Embedder = llmtest.Refusing(e, "Poison")
			if !prefix {
				broken = noPrefix{broken}
			}
			report, err := Embed(t.Context(), x.w, broken, EmbedOptions{Batch: batch, Pause: time.Microsecond})
			if err != nil || len(report.Failed) != 1 || !strings.HasSuffix(report.Failed[0].URI, "/bad.md") ||
				!strings.Contains(report.Failed[0].Detail, llmtest.ErrBroken.Error()) {
				t.Errorf("batch %d, prefix %v: %+v, %v; want bad.md named", batch, prefix, report, err)
			}
			if c := x.check(e); c.Embedded != c.Chunks-1 {
				t.Errorf("batch %d, prefix %v: coverage %+v, want all but one", batch, prefix, c)
			}
		}
	}
}

// noPrefix is an embedder that returns no vectors along with an error.
type noPrefix struct{ llm.Embedder }

func (n noPrefix) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	made, err := n.Embedder.Embed(ctx, p, texts)
	if err != nil {
		return nil, err
	}
	return made, nil
}

// flaky fails on every other call.
type flaky struct {
	llm.Embedder
	calls int
}

func (f *flaky) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	if f.calls++; f.calls%2 == 1 {
		return nil, llmtest.ErrBroken
	}
	return f.Embedder.Embed(ctx, p, texts)
}

func TestEmbedTriesAgain(t *testing.T) {
	x := newEmbedWorld(t, notes(20))
	e := new(llmtest.Hashing)
	report, err := Embed(t.Context(), x.w, &flaky{Embedder: e}, EmbedOptions{Batch: 4, Pause: time.Microsecond})
	if c := x.check(e); err != nil || len(report.Failed) > 0 || c.Embedded != c.Chunks {
		t.Errorf("%+v, %v, coverage %+v; want all", report, err, c)
	}
}

// TestEmbedWithHostileEmbedders checks that results which break the contract are reported and not
// stored, and that Embed soon gives up on an embedder that only breaks it.
func TestEmbedWithHostileEmbedders(t *testing.T) {
	for _, fault := range llmtest.Faults {
		t.Run(string(fault), func(t *testing.T) {
			x := newEmbedWorld(t, notes(30))
			e := new(llmtest.Hashing)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if fault == llmtest.Blocks {
				time.AfterFunc(20*time.Millisecond, cancel)
			}
			report, err := Embed(ctx, x.w, llmtest.Hostile(e, fault), EmbedOptions{Batch: 8, Pause: time.Microsecond})
			x.check(e)
			if err == nil && len(report.Failed) == 0 {
				t.Errorf("%+v, %v; want it told", report, err)
			}
			if len(e.Texts()) > 500 {
				t.Errorf("%d texts were embedded", len(e.Texts()))
			}
		})
	}
}

// TestEmbedInterrupted checks that an interrupted Embed keeps the stored vectors and that the next
// one continues.
func TestEmbedInterrupted(t *testing.T) {
	x := newEmbedWorld(t, notes(50))
	e := new(llmtest.Hashing)
	want := len(x.passages(e.Model()))
	ctx, cancel := context.WithCancel(t.Context())
	acknowledged := 0
	report, err := Embed(ctx, x.w, e, EmbedOptions{Batch: 5, Progress: func(p EmbedProgress) {
		if acknowledged += len(p.Hashes); acknowledged >= 20 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || report.Stored != acknowledged || acknowledged == want {
		t.Fatalf("%+v, %v; want it interrupted after %d", report, err, acknowledged)
	}
	if left := len(x.passages(e.Model())); left != want-acknowledged {
		t.Errorf("%d passages are left, want %d", left, want-acknowledged)
	}
	if report, err := Embed(t.Context(), x.w, e, EmbedOptions{}); err != nil || report.Stored != want-acknowledged || len(e.Texts()) != want {
		t.Errorf("the next: %+v, %v, %d texts embedded, want %d", report, err, len(e.Texts()), want)
	}
	x.check(e)
}

// slowlyEnding cancels the context in the first call and returns the vectors of half of the texts
// with its error.
type slowlyEnding struct {
	*llmtest.Hashing
	cancel context.CancelFunc
}

func (s slowlyEnding) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	made, err := s.Hashing.Embed(ctx, p, texts[:(len(texts)+1)/2])
	if err != nil {
		return made, err
	}
	s.cancel()
	return made, ctx.Err()
}

// TestEmbedStoresWhatWasMadeWhenInterrupted checks that vectors finished when ctx ends are stored.
func TestEmbedStoresWhatWasMadeWhenInterrupted(t *testing.T) {
	x := newEmbedWorld(t, notes(20))
	ctx, cancel := context.WithCancel(t.Context())
	e := slowlyEnding{new(llmtest.Hashing), cancel}
	report, err := Embed(ctx, x.w, e, EmbedOptions{Batch: 10})
	if c := x.check(e.Hashing); !errors.Is(err, context.Canceled) || report.Stored != 5 || c.Embedded < 5 {
		t.Errorf("%+v, %v, coverage %+v; want the five that were made", report, err, c)
	}
}

// failingStore fails at the nth call of PutVectors.
type failingStore struct {
	store.Writer
	n   int
	err error
}

func (f *failingStore) PutVectors(ctx context.Context, model string, vectors ...store.Vector) (int64, error) {
	if f.n--; f.n == 0 {
		return 0, f.err
	}
	return f.Writer.PutVectors(ctx, model, vectors...)
}

func TestEmbedEndsWithTheStore(t *testing.T) {
	for _, kind := range []error{assay.ErrFull, assay.ErrLocked, assay.ErrReadOnly} {
		x := newEmbedWorld(t, notes(40))
		e := new(llmtest.Hashing)
		report, err := Embed(t.Context(), &failingStore{x.w, 3, fmt.Errorf("put: %w", kind)}, e, EmbedOptions{Batch: 6})
		if c := x.check(e); !errors.Is(err, kind) || report.Stored != 12 || c.Embedded < 12 {
			t.Errorf("%+v, %v, coverage %+v; want %v after two batches", report, err, c, kind)
		}
	}
}

func TestEmbedEndsWithBefore(t *testing.T) {
	x := newEmbedWorld(t, notes(5))
	stop := errors.New("stop")
	report, err := Embed(t.Context(), x.w, new(llmtest.Hashing), EmbedOptions{Before: func(context.Context) error { return stop }})
	if !errors.Is(err, stop) || report.Stored != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestEmbedGivesUpAfterManyFailures checks that scattered failures end Embed once there are
// embedMost of them.
func TestEmbedGivesUpAfterManyFailures(t *testing.T) {
	files := map[string]string{}
	for i := range 250 {
		word := "Poison"
		if i%2 == 0 {
			word = "Food"
		}
		files[fmt.Sprintf("%03d.md", i)] = fmt.Sprintf("%s number%d is here.\n", word, i)
	}
	x := newEmbedWorld(t, files)
	report, err := Embed(t.Context(), x.w, llmtest.Refusing(new(llmtest.Hashing), "Poison"), EmbedOptions{Pause: time.Microsecond})
	if !errors.Is(err, llmtest.ErrBroken) || len(report.Failed) != embedMost {
		t.Errorf("%d failed, %v; want it given up after %d", len(report.Failed), err, embedMost)
	}
}

// TestEmbedByAServiceThatIsDown checks which errors mean that a service is down.
func TestEmbedByAServiceThatIsDown(t *testing.T) {
	for kind, want := range map[llm.ErrorKind]bool{llm.Unreachable: true, llm.RateLimited: true, llm.BadKey: true, llm.NoQuota: true, llm.BadRequest: false, llm.BadReply: false} {
		if got := isUnavailable(fmt.Errorf("embed: %w", &llm.Error{Kind: kind})); got != want {
			t.Errorf("%s: down = %v, want %v", kind, got, want)
		}
	}
	if isUnavailable(errors.New("odd")) || isUnavailable(nil) {
		t.Error("an error of no service is taken for one")
	}
}
