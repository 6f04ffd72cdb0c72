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

// DefaultMaxBytesInFlight bounds the source bytes that are read and not yet passed to the writer,
// weighted by format. A parser needs several times the size of its input.
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

	// Retry parses the files that failed earlier, even if they are unchanged. RetryOnly leaves all
	// other files alone and removes nothing.
	Retry     bool
	RetryOnly bool

	Workers          int   // goroutines that read and parse; 0: one per CPU
	MaxBytesInFlight int64 // weighted by format, see weightOf; 0: DefaultMaxBytesInFlight

	// Progress is called at every step, by one goroutine at a time. The work waits until it
	// returns.
	Progress func(Progress)

	// Walk parses a source and the documents inside it; nil means parse.Walk. Parser identifies its
	// behaviour, and changes whenever it would give other documents; empty means parse.Version.
	Walk   WalkFunc
	Parser string

	// OCR is the program that recognises text in images; nil: none.
	OCR *parse.OCR

	// Describe returns a document with descriptions of its images. nil: images are not described.
	// Describer is the DescriberID of the model and its prompt.
	Describe  DescribeFunc
	Describer string

	// Redescribe describes the images of a file that was described before and is parsed again
	// although Describe is nil, with the descriptions that the same describer made of them before.
	// nil: such a file loses its descriptions.
	Redescribe func(describer string) DescribeFunc

	// Passwords are tried in order on encrypted sources. They are not stored.
	Passwords []string

	// Now returns the current time; nil means time.Now.
	Now func() time.Time
}

// A DescribeFunc returns a document with descriptions of its images, and without the images. Complete
// is false if it left images that may be described at another time.
type DescribeFunc func(ctx context.Context, uri string, doc parse.Document) (described parse.Document, complete bool, err error)

// DescriberID identifies a model and the prompt with which it describes images.
func DescriberID(model, prompt string) string { return hash([]byte(model + " " + prompt)) }

// A WalkFunc parses a source and the documents inside it; see parse.Walk.
type WalkFunc func(ctx context.Context, in parse.Input, yield func(parse.Parsed) error) error

// Store is the part of a store.Writer that Run uses.
type Store interface {
	store.Content
	Apply(ctx context.Context, b store.Batch) (int64, error)
	Prune(ctx context.Context) (int, error)
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
func Run(ctx context.Context, w Store, opts Options) (Report, error) {
	now := opts.Now
	if now == nil {
		now = time.Now
	}
	began := now()
	j, err := newJob(ctx, w, opts)
	if err == nil {
		j.w, j.began = w, began
		err = j.run(ctx)
	}
	if opts.OCR != nil {
		j.report.OCR = opts.OCR.String()
	}
	j.report.Skipped = append(j.report.Skipped, j.kept...)
	j.report.sort()
	j.report.ElapsedMS = now().Sub(began).Milliseconds()
	j.report.Interrupted = ctx.Err() != nil && errors.Is(err, ctx.Err())
	return j.report, err
}

// A job is the state of one Run or Plan.
type job struct {
	content    store.Content
	w          Store // nil in a Plan
	opts       Options
	began      time.Time
	collection string
	requireACL bool
	pipeline   string
	known      map[string]known // sources stored before, by URI; not changed while the job runs
	inFlight   *semaphore.Weighted
	maxBytes   int64
	progress   tracker
	claims     claims

	// Used by the walk; others may read it only after the walk has ended.
	found map[string]source.File // by URI

	// Used by the writer only.
	stored  map[string]*stored         // sources as they are stored with the batch, by URI
	same    map[string]map[string]bool // URI → those of the sources that are the same as it
	heirs   map[string]bool            // URIs of those that were given the documents of another
	report  Report
	batch   batch
	dropped map[string]bool // URIs of stored sources removed with a skip
	kept    []Skipped       // roots and entries that hide what is at and below them
	roots   []error         // *source.RootError
}

// known is a source as it was stored when the job began.
type known struct {
	source store.Source
	row    bool             // source is stored; otherwise only a document with its URI is
	docs   []assay.Document // without text, by URI
}

func newJob(ctx context.Context, content store.Content, opts Options) (*job, error) {
	j := &job{
		content: content, opts: opts,
		collection: cmp.Or(opts.Collection, DefaultCollection),
		pipeline:   pipelineVersion(opts.Chunk, cmp.Or(opts.Parser, parse.Version)),
		known:      map[string]known{},
		maxBytes:   cmp.Or(opts.MaxBytesInFlight, DefaultMaxBytesInFlight),
		progress:   tracker{report: opts.Progress},
		found:      map[string]source.File{},
		stored:     map[string]*stored{},
		same:       map[string]map[string]bool{},
		heirs:      map[string]bool{},
		dropped:    map[string]bool{},
	}
	j.inFlight = semaphore.NewWeighted(j.maxBytes)
	if j.opts.Walk == nil {
		j.opts.Walk = parse.Walk
	}
	if j.opts.Source.MaxFileBytes == 0 {
		j.opts.Source.MaxFileBytes = source.DefaultMaxFileBytes
	}
	if len(opts.Roots) == 0 {
		return j, fmt.Errorf("ingest: no file or folder named: %w", assay.ErrInvalid)
	}
	if err := j.load(ctx); err != nil {
		return j, err
	}
	var err error
	if j.report.Sequence, err = content.Sequence(ctx); err != nil {
		return j, fmt.Errorf("read the store's sequence: %w", err)
	}
	return j, nil
}

// load reads the sources and documents of the collection.
func (j *job) load(ctx context.Context) error {
	c, err := j.content.Collection(ctx, j.collection)
	if err != nil && !errors.Is(err, assay.ErrNotFound) {
		return fmt.Errorf("read the collection: %w", err)
	}
	j.requireACL = c.RequireACL
	if u := j.opts.Source.Upload; u != nil {
		return j.loadUpload(ctx, u.URI)
	}
	for s, err := range j.content.Sources(ctx, j.collection) {
		if err != nil {
			return fmt.Errorf("list sources of %s: %w", j.collection, err)
		}
		j.known[s.URI] = known{source: s, row: true}
	}
	for d, err := range j.content.Documents(ctx, j.collection) {
		if err != nil {
			return fmt.Errorf("list documents of %s: %w", j.collection, err)
		}
		uri := d.SourceURI()
		k := j.known[uri]
		k.docs = append(k.docs, d)
		j.known[uri] = k
	}
	for uri, k := range j.known {
		j.stored[uri] = newStored(k)
		j.shares(k.source)
	}
	j.claims.load(j.stored)
	return nil
}

// loadUpload reads the source and documents of an upload. It shares its documents with no other source
// (see isFile), so that the others do not matter.
func (j *job) loadUpload(ctx context.Context, uri string) error {
	s, docs, err := j.content.Source(ctx, j.collection, uri)
	if err != nil {
		return fmt.Errorf("read what is stored of %s: %w", uri, err)
	}
	k := known{source: s, row: s.URI != "", docs: docs}
	if k.row || len(docs) > 0 {
		j.known[uri], j.stored[uri] = k, newStored(k)
	}
	j.claims.load(j.stored)
	return nil
}

// An outcome is what became of one file, or a part of it: the changes to make and the counts to
// add. A large container has several outcomes, of which the last has its source.
type outcome struct {
	file    source.File // zero if the walk skipped it
	bytes   int64       // of the source
	partial bool        // more outcomes of this file follow
	refused bool        // the file is not ingested, for the only one of skips

	entries []store.Entry   // to put
	source  *store.Source   // to store; nil: no change
	docs    map[string]bool // with source, unless partial: URIs of all its documents. Others are deleted

	added, updated, unchanged int // documents

	recognized, recognizedPages int // documents of entries with recognised text, and their pages with no other
	skips                       []Skipped
	pages                       []PageReport
	notes                       []Note
	root                        *source.RootError
}

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
	if err := j.settle(ctx); err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	if err := j.removeDisappeared(ctx); err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	j.countShared()
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
			if j.leavesAlone(skip.URI) {
				continue
			}
			j.progress.update(func(p *Progress) { p.Found++ })
			if !send(ctx, outcomes, outcome{refused: true, skips: []Skipped{skippedBy(skip)}}) {
				return ctx.Err()
			}
		case err != nil:
			return err
		default:
			if j.leavesAlone(f.URI) {
				continue
			}
			j.found[f.URI] = f
			j.progress.update(func(p *Progress) { p.Found, p.FoundBytes = p.Found+1, p.FoundBytes+f.SizeBytes })
			if !send(ctx, files, f) {
				return ctx.Err()
			}
		}
	}
	j.progress.update(func(p *Progress) { p.Walked = true })
	return nil
}

// leavesAlone reports whether a run that only retries has nothing to do for a file.
func (j *job) leavesAlone(uri string) bool {
	return j.opts.RetryOnly && len(j.known[uri].source.Failures) == 0
}

func skippedBy(s *source.Skip) Skipped {
	return Skipped{URI: s.URI, Reason: s.Reason, Detail: s.Detail}
}

// work handles files until the channel is closed.
func (j *job) work(ctx context.Context, files <-chan source.File, outcomes chan<- outcome) error {
	for f := range files {
		j.progress.update(func(p *Progress) { p.Current = f.URI })
		err := j.handle(ctx, f, true, func(o outcome) error {
			if !send(ctx, outcomes, o) {
				return ctx.Err()
			}
			return nil
		})
		if err != nil {
			return err
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
