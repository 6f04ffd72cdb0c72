// Command bench compares assay's index with bleve, SQLite (FTS5 and sqlite-vec), chromem-go, a bare
// accumulator and an exact scan. It measures the cost of queries, their results, growth, building,
// changing and opening. It prints a table in Markdown, or JSON.
//
//	go run .                      200,000 chunks; a quarter of an hour on two cores
//	go run . -quick               20,000 chunks; a minute
//	go run . -growth 1000000      and growth to a million chunks
//	go run . -compare             the servers that the environment names instead (docs/scale.md)
//	go run . -search              the whole of assay search instead, process by process
//	go run -tags sqlite_fts5 .    with SQLite in C too (needs a C compiler)
//
// The texts come from files on the machine and from the folder in ASSAY_TESTDATA. The command needs
// a Unix system. It is a separate module, so that the engines it compares with never become
// dependencies of assay.
//
// Where to look:
//
//	main.go      flags
//	run.go       the comparisons, from start to end
//	whole.go     assay search as a process, on a data directory of the corpus
//	compare.go   pgvector, OpenSearch and Weaviate: ingest, search, ask
//	systems.go   assay's own and shared indexes, as compare.go measures them
//	weaviate.go  Weaviate, over gRPC
//	shared.go    the documents of the comparison, with ACLs
//	processes.go processor time and memory of the servers
//	grow.go      growth, opening, changing, searching beside merges
//	measure.go   how a cost is measured
//	table.go     the output formats
//	find.go      texts of the machine
//	corpus.go    texts to chunks, and the file that keeps them
//	queries.go   queries and questions
//	vectors.go   vectors from a file or synthetic, and the exact scan
//	source.go    the corpus as assay's source
//	child.go     tasks that run in a separate process
//	assay.go, baseline.go, bleve.go, sqlite.go, chromem.go   the engines
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options holds the values of the flags.
type options struct {
	json, quick, fresh     bool
	search, compare        bool
	model                  string // folder of the encoder
	chunks, queries        int
	rounds, growth         int
	slow, period           time.Duration
	asks                   int
	vectors, vectorQueries string
	dimensions             int
	engines                []string
	cache, dir             string
	command                string
}

var competitors = []string{"bleve", "fts5", "chromem", "sqlite-vec"}

func (o options) has(engine string) bool { return slices.Contains(o.engines, engine) }

// sizes returns the corpus sizes at which growth is measured.
func (o options) sizes() []int {
	var sizes []int
	for _, n := range []int{10_000, 50_000, 200_000, 1_000_000} {
		if n < o.chunks || n <= o.growth {
			sizes = append(sizes, n)
		}
	}
	sizes = append(sizes, o.chunks, max(o.chunks, o.growth))
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == childCommand {
		return beChild(ctx, args[1])
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	report, err := measure(ctx, o, os.Getenv("ASSAY_TESTDATA"))
	if len(report.Parts) == 0 {
		return err
	}
	if o.json {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		return errors.Join(err, out.Encode(report))
	}
	return errors.Join(err, report.markdown(os.Stdout))
}

// measure runs the whole benchmark in a folder that is removed afterwards. After an error the report
// has the measurements that were complete.
func measure(ctx context.Context, o options, testdata string) (*report, error) {
	dir, err := os.MkdirTemp(o.dir, "assay-bench-")
	if err != nil {
		return &report{}, err
	}
	defer os.RemoveAll(dir)
	for _, sub := range []string{"fts5", "vec"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			return &report{}, err
		}
	}
	b := bench{options: o, dir: dir, testdata: testdata, protocol: protocol{rounds: o.rounds, least: 200 * time.Millisecond, most: o.slow}}
	if o.quick {
		b.protocol.least = 50 * time.Millisecond
	}
	err = b.run(ctx)
	return &b.report, err
}

func parse(args []string) (options, error) {
	o := options{command: strings.TrimSpace("go run " + buildFlags + ". " + strings.Join(args, " "))}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.BoolVar(&o.json, "json", false, "print JSON instead of Markdown")
	f.BoolVar(&o.quick, "quick", false, "20,000 chunks and short rounds: a minute on two cores, for a first look; the figures are noisier")
	f.IntVar(&o.chunks, "chunks", 200_000, "chunks in the corpus (100 to 200 words each), at least 500")
	f.IntVar(&o.queries, "queries", 400, "queries of each kind")
	f.IntVar(&o.rounds, "rounds", 3, "rounds; the median of them counts, after one to warm up")
	f.DurationVar(&o.slow, "slow", 2*time.Second, "an engine that is slower answers fewer queries in a round, at least 5; how many is said")
	f.IntVar(&o.growth, "growth", 0, "measure growth up to so many chunks, for example 1000000 (6 GB of disk, some minutes); 0: up to -chunks")
	f.StringVar(&o.vectors, "vectors", "", "file of chunk vectors: float32, little-endian, row by row, no header; default: synthetic clusters")
	f.StringVar(&o.vectorQueries, "vector-queries", "", "file of query vectors by the same model, in the same form")
	f.IntVar(&o.dimensions, "dimensions", 384, "dimensions of the vectors")
	f.BoolVar(&o.search, "search", false, "measure the whole of assay search on the corpus instead, as processes from start to end")
	f.BoolVar(&o.compare, "compare", false, "compare with the servers that ASSAY_TEST_POSTGRES, _OPENSEARCH and _WEAVIATE name instead (see scripts/): ingest, search and ask")
	f.IntVar(&o.asks, "asks", 100, "with -compare: questions to be answered; 0: none, and no data directory is made")
	f.DurationVar(&o.period, "period", 5*time.Second, "with -compare: how long the clients search for each figure of throughput")
	f.StringVar(&o.model, "model", "", "with -search: the folder of an encoder; default: the one in the binary. Processes are measured with that only")
	engines := f.String("engines", strings.Join(competitors, ","), "whom to compare with, separated by commas; \"none\": the baselines only")
	f.StringVar(&o.cache, "cache", "", "folder that keeps corpora and synthetic vectors (default: assay-bench in the user's cache folder)")
	f.StringVar(&o.dir, "dir", "", "folder for the indexes while it runs; a real disk, for durability costs (default: the system's temporary folder)")
	f.BoolVar(&o.fresh, "fresh", false, "make the corpus again instead of taking the one in the cache")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "Bench measures assay's index beside bleve, SQLite FTS5 and sqlite-vec, chromem-go and two bare baselines.\n"+
			"Progress goes to standard error, the table to standard output.\n\nusage: go run . [flags]")
		f.PrintDefaults()
		fmt.Fprintln(f.Output(), "\nASSAY_TESTDATA may name a folder with data/corpora/*.jsonl and data/retrieval/*/{corpus,queries}.jsonl;\n"+
			"its texts and questions are taken first.")
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	given := make(map[string]bool)
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if o.quick && !given["chunks"] {
		o.chunks = 20_000
	}
	if o.quick && !given["slow"] {
		o.slow = 200 * time.Millisecond
	}
	if o.cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("%w; -cache names a folder", err)
		}
		o.cache = filepath.Join(base, "assay-bench")
	}
	if *engines != "none" {
		o.engines = strings.Split(*engines, ",")
	}
	return o, o.check(f.Args())
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q; -h lists the flags", rest[0])
	case o.chunks < 500:
		return fmt.Errorf("-chunks %d: want at least 500", o.chunks)
	case o.queries < 1 || o.rounds < 1 || o.dimensions < 2:
		return errors.New("-queries and -rounds must be at least 1, -dimensions at least 2")
	case (o.vectors == "") != (o.vectorQueries == "") && !o.search:
		return errors.New("-vectors and -vector-queries belong together: vectors of one model are compared with each other only")
	case o.compare && (o.search || o.asks < 0 || o.period <= 0):
		return errors.New("-compare goes with neither -search nor a negative -asks or -period")
	}
	for _, e := range o.engines {
		if !slices.Contains(competitors, e) {
			return fmt.Errorf("-engines: there is no %q; there are %s", e, strings.Join(competitors, ", "))
		}
	}
	return nil
}

var started = time.Now()

// progress reports the current activity on standard error.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
}
