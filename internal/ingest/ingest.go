package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/chunk"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// DefaultCollection is the collection of documents if Options name none.
const DefaultCollection = "default"

// DefaultMaxBytesInFlight bounds the source bytes that are read and not yet passed to the writer. A
// parser needs several times the size of its input.
const DefaultMaxBytesInFlight = 64 << 20

// Options configures Run.
type Options struct {
	Roots      []string // files, folders, "-" for standard input
	Collection string   // empty: DefaultCollection
	Source     source.Options
	Chunk      chunk.Options

	// Verify reads every source, even if its size and time are unchanged, and stores documents
	// again whose stored text was altered on disk.
	Verify bool

	Workers          int   // goroutines that read and parse; 0: one per CPU
	MaxBytesInFlight int64 // 0: DefaultMaxBytesInFlight

	// Progress is called at every step, by one goroutine at a time. The work waits until it
	// returns.
	Progress func(Progress)

	// Parse converts bytes to text; nil means parse.Parse.
	Parse func(context.Context, parse.Input) (parse.Document, error)

	// Now returns the current time; nil means time.Now.
	Now func() time.Time
}

// Run ingests the roots into the writer's store and reports the result.
//
// Problems with single files are in the report and are not errors. The report is accurate and the
// documents it counts are stored whatever the error, which is one of:
//
//   - ctx's error, with Report.Interrupted set: the last transaction was finished, no disappeared
//     documents were removed, and another Run continues.
//   - One or more *source.RootError (assay.ErrInvalid), joined: these roots were not ingested, the
//     others were.
//   - The writer's error (assay.ErrFull, ...), which ends the Run.
func Run(ctx context.Context, w store.Writer, opts Options) (Report, error) {
	now := opts.Now
	if now == nil {
		now = time.Now
	}
	began := now()
	j, err := newJob(ctx, w, opts)
	if err == nil {
		err = j.run(ctx)
	}
	j.report.Skipped = append(j.report.Skipped, j.kept...)
	j.report.sort()
	j.report.ElapsedMS = now().Sub(began).Milliseconds()
	j.report.Interrupted = ctx.Err() != nil && errors.Is(err, ctx.Err())
	return j.report, err
}

// A job is the state of one Run.
type job struct {
	w          store.Writer
	opts       Options
	collection string
	requireACL bool
	pipeline   string
	known      map[string]assay.Document // documents stored before, by URI, without text
	inFlight   *semaphore.Weighted
	maxBytes   int64
	progress   tracker

	// Used by the walk; others may read it only after the walk has ended.
	found map[string]bool // URIs

	// Used by the writer only.
	report  Report
	batch   batch
	dropped map[string]bool // URIs of stored documents removed with a skip
	kept    []Skipped       // roots and entries that hide what is at and below them
	roots   []error         // *source.RootError
}

func newJob(ctx context.Context, w store.Writer, opts Options) (*job, error) {
	j := &job{
		w: w, opts: opts,
		collection: cmp.Or(opts.Collection, DefaultCollection),
		pipeline:   pipelineVersion(opts.Chunk),
		known:      map[string]assay.Document{},
		maxBytes:   cmp.Or(opts.MaxBytesInFlight, DefaultMaxBytesInFlight),
		progress:   tracker{report: opts.Progress},
		found:      map[string]bool{},
		dropped:    map[string]bool{},
	}
	j.inFlight = semaphore.NewWeighted(j.maxBytes)
	if j.opts.Parse == nil {
		j.opts.Parse = parse.Parse
	}
	if j.opts.Source.MaxFileBytes == 0 {
		j.opts.Source.MaxFileBytes = source.DefaultMaxFileBytes
	}
	if len(opts.Roots) == 0 {
		return j, fmt.Errorf("ingest: no file or folder named: %w", assay.ErrInvalid)
	}
	collections, err := w.Collections(ctx)
	if err != nil {
		return j, fmt.Errorf("list collections: %w", err)
	}
	for _, c := range collections {
		if c.Name == j.collection {
			j.requireACL = c.RequireACL
		}
	}
	for d, err := range w.Documents(ctx, j.collection) {
		if err != nil {
			return j, fmt.Errorf("list documents of %s: %w", j.collection, err)
		}
		j.known[d.URI] = d
	}
	j.report.Sequence, err = w.Sequence(ctx)
	if err != nil {
		return j, fmt.Errorf("read the store's sequence: %w", err)
	}
	return j, nil
}

// An outcome is the result for one file, or the reason for a skip.
type outcome struct {
	file  source.File  // zero if the walk skipped it
	entry *store.Entry // to put; nil: no change
	what  outcomeKind
	skip  *Skipped
	root  *source.RootError
}

// bytes returns the size of the source. The size of standard input is known only after reading it.
func (o outcome) bytes() int64 {
	if o.entry != nil {
		return o.entry.Document.Source.SizeBytes
	}
	return o.file.SizeBytes
}

type outcomeKind int

const (
	unchanged outcomeKind = iota
	added
	updated
	skipped
)

// run runs the walk, the workers and the writer, and returns when all have ended.
func (j *job) run(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	g, working := errgroup.WithContext(working)
	files := make(chan source.File)
	outcomes := make(chan outcome)
	g.Go(func() error {
		defer close(files)
		return j.walk(working, files, outcomes)
	})
	for range cmp.Or(j.opts.Workers, runtime.GOMAXPROCS(0)) {
		g.Go(func() error { return j.work(working, files, outcomes) })
	}
	ended := make(chan error, 1)
	go func() {
		ended <- g.Wait()
		close(outcomes)
	}()
	err := j.write(ctx, outcomes)
	if err != nil {
		stop()
		for range outcomes { // drain, so that the senders see the cancellation
		}
	}
	if werr := <-ended; err == nil {
		err = werr
	}
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	if err := j.removeDisappeared(ctx); err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	if _, err := j.w.Prune(ctx); err != nil {
		return fmt.Errorf("ingest: drop replaced versions: %w", err)
	}
	return errors.Join(j.roots...)
}

// walk sends the files and skips that the source yields.
func (j *job) walk(ctx context.Context, files chan<- source.File, outcomes chan<- outcome) error {
	for f, err := range source.Walk(ctx, j.opts.Roots, j.opts.Source) {
		var skip *source.Skip
		var root *source.RootError
		switch {
		case errors.As(err, &root):
			if !send(ctx, outcomes, outcome{root: root}) {
				return ctx.Err()
			}
		case errors.As(err, &skip):
			j.progress.update(func(p *Progress) { p.Found++ })
			if !send(ctx, outcomes, outcome{what: skipped, skip: skippedBy(skip)}) {
				return ctx.Err()
			}
		case err != nil:
			return err
		default:
			j.found[f.URI] = true
			j.progress.update(func(p *Progress) { p.Found++ })
			if !send(ctx, files, f) {
				return ctx.Err()
			}
		}
	}
	j.progress.update(func(p *Progress) { p.Walked = true })
	return nil
}

func skippedBy(s *source.Skip) *Skipped {
	return &Skipped{URI: s.URI, Reason: s.Reason, Detail: s.Detail}
}

// work handles files until the channel is closed.
func (j *job) work(ctx context.Context, files <-chan source.File, outcomes chan<- outcome) error {
	for f := range files {
		j.progress.update(func(p *Progress) { p.Current = f.URI })
		o, err := j.handle(ctx, f)
		if err != nil {
			return err
		}
		if !send(ctx, outcomes, o) {
			return ctx.Err()
		}
	}
	return nil
}

func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}
