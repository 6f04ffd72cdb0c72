package sqlite

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// openBench opens a tenant in its own directory.
func openBench(b *testing.B) *Tenant {
	b.Helper()
	s, err := Open(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	t, err := created(s, b.Context(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := t.Close(); err != nil {
			b.Error(err)
		}
	})
	return t
}

// BenchmarkAppend measures appending one durable journal record with a payload of 1 KB.
func BenchmarkAppend(b *testing.B) {
	t := openBench(b)
	ctx := b.Context()
	l, err := t.Runs().Create(ctx, assay.Run{ID: "run", Question: "?"})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	var words []string
	for i := range 64 {
		words = append(words, fmt.Sprintf("word %04d", i))
	}
	payload, err := json.Marshal(words)
	if err != nil {
		b.Fatal(err)
	}
	started := time.Now()
	i := 0
	for b.Loop() {
		rec := assay.Record{
			Path: fmt.Sprintf("sub[%d]/search", i), Kind: assay.StepSearch, Started: started,
			Input: json.RawMessage(`{"text":"a question"}`), Output: payload,
		}
		if _, err := l.Append(ctx, rec); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkSequence measures Sequence, which every search calls first.
func BenchmarkSequence(b *testing.B) {
	t := openBench(b)
	c, ctx := t.Content(), b.Context()
	for b.Loop() {
		if _, err := c.Sequence(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// benchEntry returns a document of about 10 KB in 20 chunks.
func benchEntry(i int) store.Entry {
	text := strings.Repeat(fmt.Sprintf("The quick brown fox %d jumps. ", i), 340)
	d := assay.Document{Collection: "bench", URI: fmt.Sprintf("/%d", i), Title: "Bench", Text: text}
	d.ID = assay.DocumentID(d.Collection, d.URI)
	d.Version = assay.DocumentVersion(text, nil, "1")
	e := store.Entry{Document: d}
	const n = 20
	for j := range n {
		e.Chunks = append(e.Chunks, assay.Chunk{
			ID: assay.ChunkID(d.ID, d.Version, j), Document: d.ID, Version: d.Version, Ordinal: j, Kind: assay.ChunkProse,
			Start: j * len(text) / n, End: (j + 1) * len(text) / n, Headings: []string{"Bench", "Part"}, Tokens: 100,
		})
	}
	return e
}

// BenchmarkPut measures storing documents in transactions of 64.
func BenchmarkPut(b *testing.B) {
	t := openBench(b)
	ctx := b.Context()
	w, err := t.Writer(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	i := 0
	for b.Loop() {
		entries := make([]store.Entry, 64)
		for j := range entries {
			entries[j] = benchEntry(i)
			i++
			b.SetBytes(int64(64 * len(entries[j].Document.Text)))
		}
		if _, err := w.Put(ctx, entries...); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPutOne measures storing one document in its own transaction.
func BenchmarkPutOne(b *testing.B) {
	t := openBench(b)
	ctx := b.Context()
	w, err := t.Writer(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	i := 0
	for b.Loop() {
		if _, err := w.Put(ctx, benchEntry(i)); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkRead measures the reads of an answer: chunks, documents and all changes.
func BenchmarkRead(b *testing.B) {
	t := openBench(b)
	ctx := b.Context()
	w, err := t.Writer(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	var entries []store.Entry
	var ids []string
	for i := range 200 {
		e := benchEntry(i)
		entries = append(entries, e)
		if len(ids) < 50 {
			ids = append(ids, e.Chunks[i%20].ID)
		}
	}
	if _, err := w.Put(ctx, entries...); err != nil {
		b.Fatal(err)
	}
	c := t.Content()
	b.Run("passages=50", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Passages(ctx, ids); err != nil {
				b.Fatal(err)
			}
		}
	})
	long := benchEntry(1000) // of 10 MB
	long.Document.Text = strings.Repeat(long.Document.Text, 1000)
	if _, err := w.Put(ctx, long); err != nil {
		b.Fatal(err)
	}
	b.Run("passages=20 of 10MB", func(b *testing.B) {
		var ids []string
		for _, c := range long.Chunks {
			ids = append(ids, c.ID)
		}
		for b.Loop() {
			if _, err := c.Passages(ctx, ids); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("document", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Document(ctx, entries[7].Document.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("changes=200", func(b *testing.B) {
		for b.Loop() {
			for _, err := range c.Changes(ctx, 0) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// benchVectors returns vectors of 384 dimensions for the entry's passages.
func benchVectors(e store.Entry) []store.Vector {
	rng := rand.New(rand.NewPCG(1, 2))
	vectors := crashVectors(e)
	for i := range vectors {
		vectors[i].Values = make([]float32, 384)
		for j := range vectors[i].Values {
			vectors[i].Values[j] = float32(rng.NormFloat64())
		}
	}
	return vectors
}

// BenchmarkVectors measures storing 1,000 vectors of 384 dimensions in one transaction, and reading
// them.
func BenchmarkVectors(b *testing.B) {
	t := openBench(b)
	ctx := b.Context()
	w, err := t.Writer(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	var vectors []store.Vector
	for i := range 50 {
		e := benchEntry(i)
		if _, err := w.Put(ctx, e); err != nil {
			b.Fatal(err)
		}
		vectors = append(vectors, benchVectors(e)...)
	}
	b.Run("put=1000", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			if err := w.DropModel(ctx, "m"); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if _, err := w.PutVectors(ctx, "m", vectors...); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read=1000", func(b *testing.B) {
		for b.Loop() {
			for _, err := range w.Vectors(ctx, "m", 0) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkOpen measures opening an existing tenant, up to its first result.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	ctx := b.Context()
	for b.Loop() {
		s, err := Open(ctx, dir)
		if err != nil {
			b.Fatal(err)
		}
		t, err := created(s, ctx, "bench")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := t.Content().Sequence(ctx); err != nil {
			b.Fatal(err)
		}
		if err := t.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
