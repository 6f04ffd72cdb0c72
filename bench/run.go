package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// top is the number of chunks that each query requests.
const top = 50

// shares are the shares of documents that the filters keep.
var shares = []float64{0.0001, 0.01, 0.1, 0.5}

// A bench is one run, with its configuration, data and results.
type bench struct {
	options  options
	dir      string // of the indexes
	testdata string
	protocol protocol
	report   report

	corpus      *corpus
	vectors     *vectorSet
	vectorsPath string
	short       []string
	questions   []string
	embedded    [][]float32 // query vectors
	encoder     encoder     // of -search

	building *part
	both     buildResult // of all chunks, with vectors
}

func (b *bench) run(ctx context.Context) error {
	load := loadAverage()
	b.report = report{Command: b.options.command, Date: time.Now(), Machine: machine()}
	steps := []func(context.Context) error{b.prepare, b.compareText, b.compareVectors, b.grow, b.change}
	if b.options.search {
		steps = []func(context.Context) error{b.prepareSearch, b.searchStages, b.searchWhole}
	}
	if b.options.compare {
		steps = []func(context.Context) error{b.prepareSearch, b.compareServers}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	b.report.Load = fmt.Sprintf("load average before %s, after %s", load, loadAverage())
	return nil
}

// prepare loads texts, queries and vectors.
func (b *bench) prepare(ctx context.Context) (err error) {
	o := b.options
	if b.corpus, err = openCorpus(ctx, o.cache, o.chunks, b.testdata, o.fresh); err != nil {
		return err
	}
	b.report.Corpus = b.corpus.origin
	b.short = shortQueries(b.corpus, o.queries)
	if b.questions, err = questions(ctx, b.corpus, o.queries, b.testdata); err != nil {
		return err
	}
	var what string
	if b.vectors, b.vectorsPath, what, err = chunkVectors(o.cache, o.vectors, o.dimensions, o.chunks); err != nil {
		return err
	}
	if b.embedded, err = queryVectors(o.vectorQueries, o.dimensions, o.queries); err != nil {
		return err
	}
	size := b.corpus.textBytes()
	b.note("%s chunks in %s documents, %.0f MB of text, corpus %x", thousands(float64(b.corpus.chunks)), thousands(float64(b.corpus.documents())), float64(size)/1e6, b.corpus.hash)
	b.note("%s; a chunk's number is its vector's", what)
	b.note("%d short queries: a chunk by chance, 3 to 8 of its words by chance (no stop words); %d questions as people type them; %d query vectors", len(b.short), len(b.questions), len(b.embedded))
	b.note("CPU is the processor time of the whole process on one thread (GOMAXPROCS 1), per query, the median of %d rounds in which the engines take turns; (×n) is the ratio to assay", b.protocol.rounds)
	b.building = &part{Title: "Building", First: "", About: "All cores. A rate counts until all is on disk and can be searched; CPU and size after the merges. The peak is beside mapped files, of a process of its own."}
	return nil
}

func (b *bench) note(format string, args ...any) {
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(format, args...))
	progress("%s", b.report.Notes[len(b.report.Notes)-1])
}

// compareText compares engines for text search, side by side.
func (b *bench) compareText(ctx context.Context) error {
	engines, done, err := b.textEngines(ctx)
	defer done()
	if err != nil {
		return err
	}
	p := b.report.part(fmt.Sprintf("Text: CPU per query, top %d", top), "queries",
		"The accumulator is bare postings in memory with assay's terms and scores: no files, changes or filters. The others get title and heading three times before the "+
			"text, in one field, and BM25 with assay's k1 and b where they can be set. Their best ten differ from assay's by their analyzers (stems, stop words, parts of code), in "+
			"bleve also because it takes the root of a term's frequency and favours chunks with more of the terms, in FTS5 because k1 and b are fixed. FTS5 has no stop words.")
	short, err := b.textRow(ctx, p, fmt.Sprintf("%d short queries", len(b.short)), engines, b.short, 1)
	if err != nil {
		return err
	}
	typed, err := b.textRow(ctx, p, fmt.Sprintf("%d questions", len(b.questions)), engines, b.questions, 1)
	if err != nil {
		return err
	}
	var filtered []textEngine
	for _, e := range engines {
		if e.filters {
			filtered = append(filtered, e)
		}
	}
	for _, share := range shares {
		if _, err := b.textRow(ctx, p, fmt.Sprintf("short, a filter keeps %g %%", share*100), filtered, b.short, share); err != nil {
			return err
		}
	}
	for i, e := range engines {
		p.add("overlap of the best ten with assay's, short", e.name, shareOf, overlap(short[0].answers, short[i].answers))
		p.add("the same, questions", e.name, shareOf, overlap(typed[0].answers, typed[i].answers))
	}
	return nil
}

// A textEngine is a text search to compare; the first is assay.
type textEngine struct {
	name    string
	filters bool
	find    func(ctx context.Context, q string, below float64, limit int) (answer, error)
}

// textRow measures one set of queries and adds its row.
func (b *bench) textRow(ctx context.Context, p *part, row string, engines []textEngine, queries []string, below float64) ([]cost, error) {
	progress("text: %s", row)
	var contenders []contender
	for _, e := range engines {
		contenders = append(contenders, contender{e.name, func(ctx context.Context, i int) (answer, error) { return e.find(ctx, queries[i], below, top) }})
	}
	costs, err := b.protocol.with(len(queries)).compare(ctx, contenders)
	if err != nil {
		return nil, err
	}
	p.addCosts(row, contenders, costs, len(queries))
	return costs, nil
}

// textEngines builds the engines of the text comparison; done closes them.
func (b *bench) textEngines(ctx context.Context) (engines []textEngine, done func(), err error) {
	var closers []func() error
	done = func() {
		for _, c := range closers {
			if err := c(); err != nil {
				progress("closing: %v", err)
			}
		}
	}
	if _, err := b.buildAssay(ctx, b.building, "assay, text", b.corpus, "text", ""); err != nil {
		return nil, done, err
	}
	assay, err := openAssay(ctx, filepath.Join(b.dir, "text"), newSource(b.corpus, nil))
	if err != nil {
		return nil, done, err
	}
	closers = append(closers, assay.Close)
	engines = append(engines, textEngine{assayName, true, assay.text})
	progress("building the accumulator")
	bare, err := newAccumulator(ctx, b.corpus)
	if err != nil {
		return nil, done, err
	}
	engines = append(engines, textEngine{"accumulator", false, func(_ context.Context, q string, _ float64, limit int) (answer, error) { return bare.find(q, limit) }})
	if b.options.has("bleve") {
		var ix *bleveIndex
		err := b.timeBuild("bleve, text", filepath.Join(b.dir, "bleve"), func() (err error) { ix, err = buildBleve(ctx, b.dir, b.corpus); return err })
		if err != nil {
			return nil, done, err
		}
		closers = append(closers, ix.Close)
		engines = append(engines, textEngine{"bleve 2.6.1", true, ix.find})
	}
	if b.options.has("fts5") {
		for _, driver := range sqliteDrivers() {
			db, err := openSQLite(filepath.Join(b.dir, "fts5"), driver)
			if err != nil {
				return nil, done, err
			}
			closers = append(closers, db.close)
			if err := b.timeBuild(driverName("FTS5", driver)+", text", db.path, func() error { return db.buildText(ctx, b.corpus) }); err != nil {
				return nil, done, err
			}
			engines = append(engines, textEngine{driverName("SQLite FTS5", driver), true, db.text})
		}
	}
	waitIdle(ctx) // their merges
	return engines, done, ctx.Err()
}

func driverName(engine, driver string) string {
	if driver == "sqlite3" {
		return engine + " in C"
	}
	return engine
}

// compareVectors compares engines for vector search, side by side.
func (b *bench) compareVectors(ctx context.Context) error {
	p := b.report.part(fmt.Sprintf("Vectors: CPU per query, top %d", top), "queries",
		"The scan compares all float32 vectors with SIMD and is exact. Recall is of the exact best ten, in the queries that were answered.")
	b.report.Parts = append(b.report.Parts, b.building) // the text engines are in it, those for vectors follow
	engines, done, err := b.vectorEngines(ctx)
	defer done()
	if err != nil {
		return err
	}
	recalls := &part{}
	for _, below := range append([]float64{1}, shares...) {
		row := fmt.Sprintf("%d queries", len(b.embedded))
		if below < 1 {
			row = fmt.Sprintf("a filter keeps %g %%", below*100)
		}
		progress("vectors: %s", row)
		var contenders []contender
		for _, e := range engines {
			contenders = append(contenders, contender{e.name, func(ctx context.Context, i int) (answer, error) { return e.find(ctx, b.embedded[i], below, top) }})
		}
		costs, err := b.protocol.with(len(b.embedded)).compare(ctx, contenders)
		if err != nil {
			return err
		}
		p.addCosts(row, contenders, costs, len(b.embedded))
		for i, e := range engines {
			recalls.add("recall@10, "+row, e.name, shareOf, overlap(costs[1].answers, costs[i].answers))
		}
	}
	p.Values = append(p.Values, recalls.Values...)
	return nil
}

// A vectorEngine is a vector search to compare; the first is assay, the second the exact scan.
type vectorEngine struct {
	name string
	find func(ctx context.Context, q []float32, below float64, limit int) (answer, error)
}

func (b *bench) vectorEngines(ctx context.Context) (engines []vectorEngine, done func(), err error) {
	var closers []func() error
	done = func() {
		for _, c := range closers {
			if err := c(); err != nil {
				progress("closing: %v", err)
			}
		}
	}
	if b.both, err = b.buildAssay(ctx, b.building, "assay, text and vectors", b.corpus, "both", b.vectorsPath); err != nil {
		return nil, done, err
	}
	assay, err := openAssay(ctx, filepath.Join(b.dir, "both"), newSource(b.corpus, b.vectors))
	if err != nil {
		return nil, done, err
	}
	closers = append(closers, assay.Close)
	scan := newFloatScan(b.corpus, b.vectors)
	engines = append(engines, vectorEngine{assayName, assay.nearest},
		vectorEngine{"float32 scan", func(_ context.Context, q []float32, below float64, limit int) (answer, error) {
			return scan.nearest(q, below, limit)
		}})
	if b.options.has("chromem") {
		var ix *chromemIndex
		if err := b.timeBuild("chromem, in memory", "", func() (err error) { ix, err = buildChromem(ctx, b.corpus, b.vectors); return err }); err != nil {
			return nil, done, err
		}
		engines = append(engines, vectorEngine{"chromem-go 0.7.0", ix.nearest})
	}
	if b.options.has("sqlite-vec") {
		for _, driver := range sqliteDrivers() {
			db, err := openSQLite(filepath.Join(b.dir, "vec"), driver)
			if err != nil {
				return nil, done, err
			}
			closers = append(closers, db.close)
			if err := b.timeBuild(driverName("sqlite-vec", driver), db.path, func() error { return db.buildVectors(ctx, b.corpus, b.vectors) }); err != nil {
				return nil, done, err
			}
			engines = append(engines, vectorEngine{driverName("sqlite-vec", driver), db.nearest})
		}
	}
	return engines, done, ctx.Err()
}

// buildAssay builds an index of a corpus in a separate process and adds a column to p.
func (b *bench) buildAssay(ctx context.Context, p *part, column string, c *corpus, dir, vectors string) (buildResult, error) {
	progress("building %s", column)
	var r buildResult
	task := childTask{Do: "build", Corpus: c.path, Chunks: c.chunks, Vectors: vectors, Dimensions: b.options.dimensions, Dir: filepath.Join(b.dir, dir)}
	if err := runChild(ctx, task, &r); err != nil {
		return r, err
	}
	b.addBuild(p, column, r.Flush, r.CPU, r.Size)
	p.addDuration("of which reading the texts", column, seconds, r.ReadCPU)
	p.addDuration("merging after that, wall time", column, seconds, r.Settle)
	p.add("peak memory beside mapped files", column, megabytes, float64(r.PeakAnon)/1e6)
	p.add("of which Go objects, at most", column, megabytes, float64(r.PeakHeap)/1e6)
	return r, nil
}

// timeBuild builds a competitor and adds its column. path is that of its files, or "".
func (b *bench) timeBuild(column, path string, build func() error) error {
	progress("building %s", column)
	before, began := cpuTime(), time.Now()
	if err := build(); err != nil {
		return err
	}
	took, size := time.Since(began), int64(0)
	if path != "" {
		var err error
		if size, err = folderSize(path); err != nil {
			return err
		}
	}
	b.addBuild(b.building, column, took, cpuTime()-before, size)
	return nil
}

func (b *bench) addBuild(p *part, column string, took, cpu time.Duration, size int64) {
	p.add("chunks", column, perSecond, float64(b.corpus.chunks)/took.Seconds())
	p.addDuration("CPU in all", column, seconds, cpu)
	if size > 0 {
		p.add("size on disk", column, megabytes, float64(size)/1e6)
		p.add("size on disk to size of text", column, times, float64(size)/float64(b.corpus.textBytes()))
	}
}

// machine returns the names of the processor and the Go version.
func machine() string {
	name := runtime.GOARCH
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d cores, %s", name, runtime.NumCPU(), runtime.Version())
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}
