package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// grow measures assay alone on corpora of growing size.
func (b *bench) grow(ctx context.Context) error {
	p := b.report.part("Growth", "chunks", fmt.Sprintf("CPU per query of assay, top %d, with text and vectors in one index; recall@10 of unfiltered vectors against exact, over at most 100 queries.", top))
	for _, n := range b.options.sizes() {
		c, vectors, path := b.corpus.prefix(n), b.vectors, b.vectorsPath
		if n > b.corpus.chunks {
			var err error
			if c, err = openCorpus(ctx, b.options.cache, n, b.testdata, b.options.fresh); err != nil {
				return err
			}
			if vectors, path, _, err = chunkVectors(b.options.cache, b.options.vectors, b.options.dimensions, n); err != nil {
				return err
			}
		}
		if err := b.growTo(ctx, p, c, vectors, path); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) growTo(ctx context.Context, p *part, c *corpus, vectors *vectorSet, path string) error {
	row := thousands(float64(c.chunks))
	dir, built := "both", b.both
	if c.chunks != b.corpus.chunks {
		var err error
		dir = fmt.Sprintf("grown-%d", c.chunks)
		if built, err = b.buildAssay(ctx, &part{}, row+" chunks", c, dir, path); err != nil {
			return err
		}
	}
	e, err := openAssay(ctx, filepath.Join(b.dir, dir), newSource(c, vectors))
	if err != nil {
		return err
	}
	defer e.Close()
	text := func(queries []string, below float64) contender {
		return contender{assayName, func(ctx context.Context, i int) (answer, error) {
			return e.text(ctx, queries[i%len(queries)], below, top)
		}}
	}
	near := func(below float64) contender {
		return contender{assayName, func(ctx context.Context, i int) (answer, error) {
			return e.nearest(ctx, b.embedded[i%len(b.embedded)], below, top)
		}}
	}
	columns := []string{"short queries", "questions", "short, 1 %", "vectors", "vectors, 1 %"}
	contenders := []contender{text(b.short, 1), text(b.questions, 1), text(b.short, 0.01), near(1), near(0.01)}
	progress("growth: %s chunks", row)
	costs, err := b.protocol.with(b.options.queries).compare(ctx, contenders)
	if err != nil {
		return err
	}
	for i, column := range columns {
		p.addDuration(row, column, milliseconds, costs[i].cpu)
	}
	scan := newFloatScan(c, vectors)
	var exact [][]int
	for _, q := range b.embedded[:min(100, len(b.embedded))] {
		found, err := scan.nearest(q, 1, 10)
		if err != nil {
			return err
		}
		exact = append(exact, found())
	}
	p.add(row, "recall@10", shareOf, overlap(exact, costs[3].answers))
	p.add(row, "built", perSecond, float64(c.chunks)/built.Flush.Seconds())
	p.add(row, "on disk", megabytes, float64(built.Size)/1e6)
	p.add(row, "peak memory", megabytes, float64(built.PeakAnon)/1e6)
	first, err := b.firstAnswer(ctx, c, dir, path)
	if err != nil {
		return err
	}
	p.addDuration(row, "first answer after opening", milliseconds, first.Open+first.Search)
	return nil
}

// firstAnswer measures a fresh process that opens an index and answers a query. It returns the
// median of five.
func (b *bench) firstAnswer(ctx context.Context, c *corpus, dir, vectors string) (firstResult, error) {
	var start, open, search, next []time.Duration
	task := childTask{Do: "first", Corpus: c.path, Chunks: c.chunks, Vectors: vectors, Dimensions: b.options.dimensions, Dir: filepath.Join(b.dir, dir), Query: b.questions[0]}
	for range 5 {
		var r firstResult
		if err := runChild(ctx, task, &r); err != nil {
			return r, err
		}
		start, open, search, next = append(start, r.SinceStart), append(open, r.Open), append(search, r.Search), append(next, r.Next)
	}
	return firstResult{SinceStart: median(start), Open: median(open), Search: median(search), Next: median(next)}, nil
}

// change measures a fresh start, changes, and searches during merges, on the index of all chunks,
// with vectors.
func (b *bench) change(ctx context.Context) error {
	p := b.report.part("Opening, changing, merging", "", "Wall time of assay, with text and vectors; the files are in the page cache. Searches are for the short queries.")
	first, err := b.firstAnswer(ctx, b.corpus, "both", b.vectorsPath)
	if err != nil {
		return err
	}
	p.addDuration("fresh process, from its start to the first answer", assayName, milliseconds, first.SinceStart)
	p.addDuration("of which opening the index", assayName, milliseconds, first.Open)
	p.addDuration("of which the first search", assayName, milliseconds, first.Search)
	p.addDuration("the same search again", assayName, milliseconds, first.Next)
	e, err := openAssay(ctx, filepath.Join(b.dir, "both"), newSource(b.corpus, b.vectors))
	if err != nil {
		return err
	}
	defer e.Close()
	progress("searching beside merges")
	if err := b.searchBesideMerges(ctx, p, e); err != nil {
		return err
	}
	progress("changing documents")
	latencies, err := e.changeLatency(ctx, 20)
	if err != nil {
		return err
	}
	p.addDuration("a document changed, until a search finds it", assayName, milliseconds, latencies["update"])
	p.addDuration("a document changed, flushing it", assayName, milliseconds, latencies["update, flush"])
	p.addDuration("a document removed, until a search does not find it", assayName, milliseconds, latencies["delete"])
	p.addDuration("a document removed, flushing it", assayName, milliseconds, latencies["delete, flush"])
	return nil
}

// searchBesideMerges measures searches on an idle index, and again while another goroutine
// repeatedly changes 100 documents, flushes and merges.
func (b *bench) searchBesideMerges(ctx context.Context, p *part, e *assayEngine) error {
	idle, err := b.latencies(ctx, e, func() bool { return false })
	if err != nil {
		return err
	}
	stop, flushes := make(chan struct{}), 0
	var failed error
	var writer sync.WaitGroup
	writer.Go(func() {
		for ; ; flushes++ {
			select {
			case <-stop:
				return
			default:
			}
			var documents []int
			for i := range 100 {
				documents = append(documents, (flushes*100+i)%b.corpus.documents())
			}
			e.source.update(fmt.Sprintf("qzround%d", flushes), documents...)
			if failed = e.build(ctx); failed != nil {
				return
			}
		}
	})
	began := time.Now()
	busy, err := b.latencies(ctx, e, func() bool { return time.Since(began) < b.protocol.most })
	close(stop)
	writer.Wait()
	if err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	busyRow := fmt.Sprintf("while 100 documents change, %d times over, with flushes and merges", flushes)
	for _, l := range []struct {
		row string
		searchTimes
	}{{"a search, nothing else happening", idle}, {busyRow, busy}} {
		p.addDuration(l.row+": median", assayName, milliseconds, median(l.wall))
		p.addDuration(l.row+": 99th percentile", assayName, milliseconds, percentile(l.wall, 0.99))
		p.addDuration(l.row+": CPU of its thread, mean", assayName, milliseconds, l.cpu/time.Duration(len(l.wall)))
	}
	return nil
}

// searchTimes holds the times of single searches.
type searchTimes struct {
	wall []time.Duration
	cpu  time.Duration // of the searching thread, total
}

// latencies answers each of the short queries once, one by one, and goes on while more returns
// true.
func (b *bench) latencies(ctx context.Context, e *assayEngine, more func() bool) (t searchTimes, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := usage(syscall.RUSAGE_THREAD)
	for i := 0; i < len(b.short) || more(); i++ {
		began := time.Now()
		if _, err := e.text(ctx, b.short[i%len(b.short)], 1, top); err != nil {
			return t, err
		}
		t.wall = append(t.wall, time.Since(began))
	}
	t.cpu = usage(syscall.RUSAGE_THREAD) - before
	return t, nil
}
