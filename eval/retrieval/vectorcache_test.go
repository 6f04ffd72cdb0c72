package retrieval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// A counting embedder makes vectors from the lengths of texts and counts them. It fails after stop
// vectors.
type counting struct {
	mu   sync.Mutex
	made int
	stop int // 0: never
}

func (*counting) Model() string { return "counting/2" }

var errStopped = errors.New("stopped")

func (c *counting) Embed(_ context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var vectors []llm.Vector
	for _, text := range texts {
		if c.stop > 0 && c.made == c.stop {
			return vectors, errStopped
		}
		c.made++
		vectors = append(vectors, llm.Vector{float32(len(text)), float32(p)})
	}
	return vectors, nil
}

func openCache(t testing.TB, dir string) *vectorCache {
	t.Helper()
	c, err := openVectorCache(dir, "counting/2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.close() })
	return c
}

func TestCachedEmbedder(t *testing.T) {
	dir := t.TempDir()
	inner := &counting{}
	ask := func(p llm.Purpose, texts ...string) []llm.Vector {
		t.Helper()
		vectors, err := cached(inner, openCache(t, dir)).Embed(t.Context(), p, texts)
		if err != nil {
			t.Fatal(err)
		}
		return vectors
	}
	want := []llm.Vector{{1, 0}, {2, 0}, {1, 0}}
	for range 2 {
		if diff := cmp.Diff(want, ask(llm.Passage, "a", "bb", "a")); diff != "" {
			t.Errorf("Embed (-want +got):\n%s", diff)
		}
	}
	if inner.made != 2 {
		t.Errorf("%d texts were embedded, want 2", inner.made)
	}
	if diff := cmp.Diff([]llm.Vector{{1, 1}}, ask(llm.Query, "a")); diff != "" || inner.made != 3 {
		t.Errorf("a query like a passage: %d embedded (-want +got):\n%s", inner.made, diff)
	}
	// Vectors made before an error are returned and cached.
	inner.stop = 4
	vectors, err := cached(inner, openCache(t, dir)).Embed(t.Context(), llm.Passage, []string{"a", "ccc", "dddd", "bb"})
	if diff := cmp.Diff([]llm.Vector{{1, 0}, {3, 0}}, vectors); diff != "" || !errors.Is(err, errStopped) {
		t.Errorf("Embed: %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]llm.Vector{{3, 0}}, ask(llm.Passage, "ccc")); diff != "" {
		t.Errorf("Embed (-want +got):\n%s", diff)
	}
}

// TestCachedAbilities checks that the cached embedder has the optional interfaces of the one it
// wraps.
func TestCachedAbilities(t *testing.T) {
	type (
		counter  struct{ llm.TokenCounter }
		tokens   struct{ llm.TokenEmbedder }
		linguist struct{ llm.Linguist }
	)
	plain := &counting{}
	for _, e := range []llm.Embedder{
		plain,
		struct {
			llm.Embedder
			counter
		}{plain, counter{}},
		struct {
			llm.Embedder
			tokens
		}{plain, tokens{}},
		struct {
			llm.Embedder
			linguist
		}{plain, linguist{}},
		struct {
			llm.Embedder
			counter
			tokens
		}{plain, counter{}, tokens{}},
		struct {
			llm.Embedder
			counter
			linguist
		}{plain, counter{}, linguist{}},
		struct {
			llm.Embedder
			tokens
			linguist
		}{plain, tokens{}, linguist{}},
		struct {
			llm.Embedder
			counter
			tokens
			linguist
		}{plain, counter{}, tokens{}, linguist{}},
	} {
		if got, want := abilities(cached(e, nil)), abilities(e); got != want {
			t.Errorf("cached has %s, want %s", got, want)
		}
	}
}

func abilities(e llm.Embedder) string {
	_, counts := e.(llm.TokenCounter)
	_, tokens := e.(llm.TokenEmbedder)
	_, linguist := e.(llm.Linguist)
	return fmt.Sprint(counts, tokens, linguist)
}

// TestVectorCacheTorn truncates the last record at each byte and damages each byte of the first.
// The intact records must stay readable, and later ones must be kept.
func TestVectorCacheTorn(t *testing.T) {
	dir := t.TempDir()
	c := openCache(t, dir)
	keys := []vectorKey{keyOf(llm.Passage, "a"), keyOf(llm.Passage, "b"), keyOf(llm.Passage, "c")}
	if err := c.put(keys, []llm.Vector{{1, 2}, {3, 4}, {5, 6}}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(c.path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, data []byte, lost int) {
		t.Helper()
		if err := os.WriteFile(c.path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		again := openCache(t, dir)
		for i, key := range keys {
			if v, err := again.get(key); err != nil || (v == nil) != (i == lost) {
				t.Fatalf("%s: vector %d is %v, %v", what, i, v, err)
			}
		}
		if err := again.put(keys[lost:lost+1], []llm.Vector{{7, 8}}); err != nil {
			t.Fatal(err)
		}
		for _, opened := range []*vectorCache{again, openCache(t, dir)} {
			if v, err := opened.get(keys[lost]); err != nil || !cmp.Equal(v, llm.Vector{7, 8}) {
				t.Fatalf("%s: after putting it again vector %d is %v, %v", what, lost, v, err)
			}
		}
	}
	for cut := 1; cut <= c.recordSize(); cut++ {
		check(fmt.Sprintf("cut by %d bytes", cut), whole[:len(whole)-cut], 2)
	}
	for i := range c.recordSize() {
		data := bytes.Clone(whole)
		data[vectorHeaderSize+i] ^= 1
		check(fmt.Sprintf("byte %d of the first record damaged", i), data, 0)
	}
}

func TestVectorCacheForeign(t *testing.T) {
	dir := t.TempDir()
	c := openCache(t, dir)
	if err := c.put([]vectorKey{{1}}, []llm.Vector{{1, 2}}); err != nil {
		t.Fatal(err)
	}
	if err := c.put([]vectorKey{{2}}, []llm.Vector{{1, 2, 3}}); err == nil {
		t.Error("a vector of another number of dimensions was kept")
	}
	data, err := os.ReadFile(c.path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range vectorHeaderSize {
		other := bytes.Clone(data)
		other[i] ^= 1
		if err := os.WriteFile(c.path, other, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := openVectorCache(dir, "counting/2"); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("byte %d of the header changed: %v, want ErrDamaged", i, err)
		}
	}
	// An incomplete header is rewritten.
	if err := os.WriteFile(c.path, data[:vectorHeaderSize-1], 0o666); err != nil {
		t.Fatal(err)
	}
	again := openCache(t, dir)
	if err := again.put([]vectorKey{{3}}, []llm.Vector{{4, 5}}); err != nil {
		t.Fatal(err)
	}
	if v, err := openCache(t, dir).get(vectorKey{3}); err != nil || !cmp.Equal(v, llm.Vector{4, 5}) {
		t.Errorf("get = %v, %v", v, err)
	}
}

// TestVectorCacheShared checks concurrent writes through several handles of one file.
func TestVectorCacheShared(t *testing.T) {
	dir := t.TempDir()
	const writers, rounds = 4, 25
	var all sync.WaitGroup
	for w := range writers {
		c := openCache(t, dir)
		all.Go(func() {
			for i := range rounds {
				if err := c.put([]vectorKey{{byte(w), byte(i)}}, []llm.Vector{{float32(w), float32(i)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	c := openCache(t, dir)
	for w := range writers {
		for i := range rounds {
			if v, err := c.get(vectorKey{byte(w), byte(i)}); err != nil || !cmp.Equal(v, llm.Vector{float32(w), float32(i)}) {
				t.Errorf("vector %d of writer %d is %v, %v", i, w, v, err)
			}
		}
	}
}

// FuzzVectorCache opens arbitrary files and puts a vector into them.
func FuzzVectorCache(f *testing.F) {
	dir := f.TempDir()
	c := openCache(f, dir)
	f.Add([]byte(nil))
	f.Add(c.header(2))
	f.Add(append(c.header(2), make([]byte, 28)...))
	if err := c.put([]vectorKey{{1}, {2}}, []llm.Vector{{1, 2}, {3, 4}}); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(c.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, cacheName("counting/2"))
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := openVectorCache(dir, "counting/2")
		if err != nil {
			return
		}
		defer c.close()
		for key := range c.at {
			if v, err := c.get(key); err != nil || len(v) != c.dimensions {
				t.Fatalf("get = %d values, %v", len(v), err)
			}
		}
		v := make(llm.Vector, max(c.dimensions, 1))
		v[0] = float32(math.Inf(1))
		if err := c.put([]vectorKey{{9}}, []llm.Vector{v}); err != nil {
			t.Fatal(err)
		}
		again := openCache(t, dir)
		if got, err := again.get(vectorKey{9}); err != nil || !cmp.Equal(got, v) || len(again.at) != len(c.at) {
			t.Fatalf("get = %v, %v of %d, want %v of %d", got, err, len(again.at), v, len(c.at))
		}
	})
}
