package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var concurrencyTests = []contractTest{
	{"readers beside a writer see whole changes", testReadersBesideWriter},
	{"runs beside a writer", testRunsBesideWriter},
	{"readers of vectors beside a writer", testVectorsBesideWriter},
	{"one lease used by many", testLeaseShared},
	{"put cancelled at any moment", testPutCancelled},
	{"append cancelled at any moment", testAppendCancelled},
}

// testReadersBesideWriter puts generations of two documents, of which readers must always see the
// same generation.
func testReadersBesideWriter(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	pair := func(generation int) []store.Entry {
		text := fmt.Sprintf("generation %d\n", generation)
		return []store.Entry{Entry("c", "/a", text), Entry("c", "/b", text)}
	}
	mustPut(t, w, pair(0)...)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, c := range []store.Content{tenant.Content(), openTenant(t, h, "acme").Content(), w} {
		wg.Go(func() {
			for last := int64(0); ctx.Err() == nil; {
				n, err := readPair(ctx, c)
				if errors.Is(err, context.Canceled) {
					return
				}
				if err != nil || n < last {
					t.Errorf("a reader saw sequence %d after %d, %v", n, last, err)
					return
				}
				last = n
			}
		})
	}
	for i := 1; i <= 60; i++ {
		mustPut(t, w, pair(i)...)
	}
	stop()
	wg.Wait()
}

// readPair checks that a snapshot contains one generation.
func readPair(ctx context.Context, c store.Content) (sequence int64, err error) {
	asked, err := c.Sequence(ctx)
	if err != nil {
		return 0, err
	}
	var texts []string
	for change, err := range c.Changes(ctx, 0) {
		if err != nil {
			return 0, err
		}
		texts, sequence = append(texts, change.Document.Text), change.Sequence
		if len(change.Chunks) != 2 || change.Chunks[1].End != len(change.Document.Text) {
			return 0, fmt.Errorf("the chunks of %q are %v", change.Document.Text, change.Chunks)
		}
	}
	if len(texts) != 2 || texts[0] != texts[1] {
		return 0, fmt.Errorf("one snapshot holds %q", texts)
	}
	if sequence < asked {
		return 0, fmt.Errorf("a snapshot of %d after the sequence was %d", sequence, asked)
	}
	return sequence, nil
}

// testVectorsBesideWriter puts generations of the vectors of two documents, one of which changes
// with them. Readers must always see them in the same generation.
func testVectorsBesideWriter(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	a, b := Entry("c", "/a", "one\ntwo\n"), Entry("c", "/b", "three\n")
	mustPut(t, w, a, b)
	mustPutVectors(t, w, "m", embed(0, searched(a, b)...)...)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, c := range []store.Content{tenant.Content(), openTenant(t, h, "acme").Content(), w} {
		wg.Go(func() {
			for last := float32(0); ctx.Err() == nil; {
				generation, err := readGeneration(ctx, c)
				if errors.Is(err, context.Canceled) {
					return
				}
				if err != nil || generation < last {
					t.Errorf("a reader saw generation %g after %g, %v", generation, last, err)
					return
				}
				last = generation
			}
		})
	}
	for i := 1; i <= 60; i++ {
		mustPutVectors(t, w, "m", embed(i, searched(a, b)...)...)
		a.Document.ACL.Restricted = !a.Document.ACL.Restricted
		mustPut(t, w, a)
	}
	stop()
	wg.Wait()
}

// readGeneration checks that a snapshot contains one generation of the vectors of three chunks.
func readGeneration(ctx context.Context, c store.Content) (float32, error) {
	var seen []float32
	for v, err := range c.Vectors(ctx, "m", 0) {
		if err != nil {
			return 0, err
		}
		seen = append(seen, v.Values[0])
	}
	if len(seen) != 3 || seen[0] != seen[1] || seen[0] != seen[2] {
		return 0, fmt.Errorf("one snapshot holds vectors of the generations %v", seen)
	}
	return seen[0], nil
}

func testRunsBesideWriter(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	const runs, steps = 6, 20
	var wg sync.WaitGroup
	for i := range runs {
		tenant := openTenant(t, h, "acme")
		wg.Go(func() {
			id := fmt.Sprintf("run-%d", i)
			l, err := tenant.Runs().Create(t.Context(), assay.Run{ID: id, Question: "?"})
			if err != nil {
				t.Errorf("Create: %v", err)
				return
			}
			for j := range steps {
				if rec, err := l.Append(t.Context(), smallRecord(fmt.Sprint(j))); err != nil || rec.Ordinal != j {
					t.Errorf("Append(%d) = ordinal %d, %v", j, rec.Ordinal, err)
				}
			}
			if err := errors.Join(l.Finish(t.Context(), assay.RunDone, fullAnswer(), ""), l.Close()); err != nil {
				t.Errorf("Finish, Close: %v", err)
			}
		})
	}
	for i := range 30 {
		mustPut(t, w, Entry("c", fmt.Sprint("/", i), "text\n"))
	}
	wg.Wait()
	tenant := openTenant(t, h, "acme")
	sequences := map[int64]bool{}
	for i := range runs {
		for _, rec := range mustRecords(t, tenant, fmt.Sprintf("run-%d", i)) {
			sequences[rec.Sequence] = true
		}
	}
	if len(sequences) != runs*steps {
		t.Errorf("%d different sequences, want %d", len(sequences), runs*steps)
	}
}

func testLeaseShared(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	l := mustCreate(t, tenant, "run")
	defer closeLease(t, l)
	const workers, steps = 8, 10
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for j := range steps {
				rec := smallRecord(fmt.Sprintf("sub[%d]/%d", i, j))
				rec.Output = json.RawMessage(fmt.Sprintf("%q", fmt.Sprintf("%0300d", j))) // a text that other goroutines store too
				if _, err := l.Append(t.Context(), rec); err != nil {
					t.Errorf("Append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(mustRecords(t, tenant, "run")); n != workers*steps {
		t.Errorf("%d records, want %d", n, workers*steps)
	}
}

// usually returns the number of repetitions of a test: with -short, and otherwise.
func usually(short, n int) int {
	if testing.Short() {
		return short
	}
	return n
}

// cancelRounds returns how many moments of cancellation the tests try.
func cancelRounds() int { return usually(15, 60) }

func testPutCancelled(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	rng := rand.New(rand.NewPCG(1, 2))
	want := []string(nil)
	for i := range cancelRounds() {
		var batch []store.Entry
		var names []string
		for j := range 20 {
			uri := fmt.Sprintf("/%03d/%02d", i, j)
			batch, names = append(batch, Entry("c", uri, "one\ntwo\nthree\n")), append(names, "c:"+uri)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(4000))*time.Microsecond)
		before := sequence(t, w)
		n, err := w.Put(ctx, batch...)
		cancel()
		switch {
		case err == nil:
			want = append(want, names...)
		case !errors.Is(err, context.DeadlineExceeded):
			t.Fatalf("Put: %v", err)
		default:
			n = before
		}
		if got := sequence(t, w); got != n {
			t.Fatalf("round %d: Sequence = %d, want %d after Put returned %v", i, got, n, err)
		}
	}
	wantSame(t, "Documents", uris(t, w), want)
}

func testAppendCancelled(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	l := mustCreate(t, tenant, "run")
	defer closeLease(t, l)
	rng := rand.New(rand.NewPCG(3, 4))
	var want []string
	for i := range cancelRounds() {
		path := fmt.Sprintf("step[%d]", i)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(600))*time.Microsecond)
		rec, err := l.Append(ctx, smallRecord(path))
		cancel()
		switch {
		case err == nil:
			if rec.Ordinal != len(want) {
				t.Fatalf("ordinal %d, want %d", rec.Ordinal, len(want))
			}
			want = append(want, path)
		case !errors.Is(err, context.DeadlineExceeded):
			t.Fatalf("Append: %v", err)
		}
	}
	var got []string
	for _, rec := range mustRecords(t, tenant, "run") {
		got = append(got, rec.Path)
	}
	wantSame(t, "Records", got, want)
}
