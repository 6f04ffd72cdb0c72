package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// assayName is assay's name in the tables.
const assayName = "assay"

// An assayEngine is an open index of a corpus.
type assayEngine struct {
	*index.Searcher
	source *source
	access assay.Access
	number map[string]int // of a chunk, by its ID; nil until needed
}

func openAssay(ctx context.Context, dir string, s *source) (*assayEngine, error) {
	searcher, err := index.Open(ctx, dir, s)
	if err != nil {
		return nil, err
	}
	if err := searcher.Lost(); err != nil {
		return nil, err
	}
	return &assayEngine{Searcher: searcher, source: s, access: assay.Local().Access()}, nil
}

// build indexes the whole source and waits until all merges are done.
func (e *assayEngine) build(ctx context.Context) error {
	if err := e.Flush(ctx); err != nil {
		return err
	}
	return e.Settle(ctx)
}

// under returns the filter that keeps the documents with a share under x; 1 keeps all.
func under(x float64) assay.Filter {
	if x >= 1 {
		return assay.Filter{}
	}
	return assay.Filter{Op: assay.OpLessThan, Key: "share", Value: assay.NumberValue(x)}
}

func (e *assayEngine) text(ctx context.Context, q string, below float64, limit int) (answer, error) {
	r, err := e.Search(ctx, e.access, assay.Query{Text: q, Filter: under(below), Limit: limit})
	return e.answer(r), err
}

func (e *assayEngine) nearest(ctx context.Context, q []float32, below float64, limit int) (answer, error) {
	r, err := e.Nearest(ctx, e.access, assay.Query{Filter: under(below), Limit: limit}, index.Vector{Model: benchModel, Metric: index.Cosine, Values: q})
	return e.answer(r), err
}

func (e *assayEngine) answer(r index.Result) answer {
	return func() []int {
		if e.number == nil {
			e.number = chunkNumbers(e.source.corpus)
		}
		chunks := make([]int, len(r.Hits))
		for i, h := range r.Hits {
			chunks[i] = e.number[h.Chunk]
		}
		return chunks
	}
}

// chunkNumbers returns the numbers of a corpus's chunks by their IDs.
func chunkNumbers(c *corpus) map[string]int {
	numbers := make(map[string]int, c.chunks)
	for d := range c.documents() {
		id, version := documentID(d), documentVersion(d, changedDocument{})
		for i := range int(c.first[d+1] - c.first[d]) {
			numbers[assay.ChunkID(id, version, i)] = int(c.first[d]) + i
		}
	}
	return numbers
}

// changeLatency measures, in wall time, how long it takes until a search finds a changed document
// in its new state and until it no longer finds a removed one, and how long the Flush after each
// takes. It leaves n documents removed.
func (e *assayEngine) changeLatency(ctx context.Context, n int) (latencies map[string]time.Duration, err error) {
	times := make(map[string][]time.Duration)
	seen := func(what, word string, want bool) error {
		began := time.Now()
		r, err := e.Search(ctx, e.access, assay.Query{Text: word, Limit: 1})
		if err != nil {
			return err
		}
		times[what] = append(times[what], time.Since(began))
		if (len(r.Hits) > 0) != want {
			return fmt.Errorf("after %s, a search for its own word finds %d chunks", what, len(r.Hits))
		}
		began = time.Now()
		if err := e.Flush(ctx); err != nil {
			return err
		}
		times[what+", flush"] = append(times[what+", flush"], time.Since(began))
		return nil
	}
	for i := range n {
		document := (i*7919 + 1) % e.source.corpus.documents()
		word := fmt.Sprintf("qzupdated%d", i)
		e.source.update(word, document)
		if err := seen("update", word, true); err != nil {
			return nil, err
		}
		e.source.remove(document)
		if err := seen("delete", word, false); err != nil {
			return nil, err
		}
	}
	latencies = make(map[string]time.Duration)
	for what, all := range times {
		latencies[what] = median(all)
	}
	return latencies, nil
}

// folderSize returns the total size of the files in a folder, in bytes.
func folderSize(dir string) (int64, error) {
	total := int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
