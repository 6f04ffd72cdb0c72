package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// SyncStore is the part of a store.Writer that a sync uses.
type SyncStore interface {
	store.Content
	ApplySync(ctx context.Context, b store.SyncBatch) (int64, error)
	SetSyncSource(ctx context.Context, s store.SyncSource) error
}

// SyncOptions configures Sync.
type SyncOptions struct {
	Name   string // of a source in the store
	Kind   source.Kind
	Source source.Source

	// Parsing are the options of an ingest that Sync uses: Chunk, Walk, Parser, OCR, Describe,
	// Describer and Passwords.
	Parsing Options

	Full   bool // list and fetch everything again
	Yes    bool // delete the documents that a sweep misses, however many
	DryRun bool // change nothing and fetch nothing

	MaxBytes int64               // larger items are skipped; 0: source.DefaultMaxFileBytes
	Workers  int                 // items that are fetched and parsed at a time; 0: 4
	Scrub    func(string) string // removes credentials from foreign text; nil: none to remove
	Progress func(Progress)      // as in Options
	Now      func() time.Time
}

// sweepEvery is the number of syncs after which a sweep is due even if the source reports all
// deletions. maxSweepDeletes and maxSweepShare bound the documents that a sweep may delete without
// SyncOptions.Yes: the larger of a number and a share of the source's documents.
const (
	sweepEvery      = 10
	maxSweepDeletes = 5
	maxSweepShare   = 0.1
)

const defaultSyncWorkers = 4

// maxFailures is the number of consecutive items that cannot be fetched after which a sync gives up.
const maxFailures = 10

// ErrManyDeletes means that a sweep missed so many documents that nothing was deleted. It is an
// assay.ErrSuspended, because it waits for a person.
var ErrManyDeletes = fmt.Errorf("%w: nothing was deleted", assay.ErrSuspended)

// A SyncReport is the result of a Sync. The counts of Report are of items, and those of Removed of
// documents.
type SyncReport struct {
	Source     string `json:"source"`
	Collection string `json:"collection"`
	Report
	Documents int  `json:"documents"`         // of the source, now stored
	Retry     int  `json:"retry"`             // items that the next sync fetches again
	Swept     bool `json:"swept"`             // all items were listed, and missing ones deleted
	Missing   int  `json:"missing,omitempty"` // documents that a sweep missed and that were kept
	DryRun    bool `json:"dry_run,omitempty"`
}

// Sync brings the documents of one source up to date.
//
// It reads the changes since the stored cursor, fetches the items whose version is unknown, and
// stores their documents with the cursor after them in one transaction. A change of ACL applies
// without fetching. It then sweeps if the source does not report all deletions, if deletions may
// have been missed, or if the last sweep was ten syncs ago. Items that could not be fetched are in
// the report and are fetched again in the next sync. A document whose ACL is not known is removed.
//
// The report is accurate whatever the error, which is one of: ctx's; the source's, such as
// source.ErrCredentials; ErrManyDeletes; the store's; assay.ErrNotFound if there is no such source.
// All documents and cursors stored before the error stay, and the next Sync continues from there.
func Sync(ctx context.Context, w SyncStore, opts SyncOptions) (SyncReport, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	began := opts.Now()
	s, err := newSync(ctx, w, opts)
	if err != nil {
		return s.report, fmt.Errorf("source %s: %w", opts.Name, err)
	}
	err = s.run(ctx)
	s.finish(ctx, began, err)
	if err == nil && !opts.DryRun {
		s.state.LastSync, s.state.LastError = opts.Now(), ""
	} else if err != nil {
		s.state.LastError = s.scrub(err.Error())
	}
	if s.report.Interrupted {
		s.state.LastError = "interrupted"
	}
	if !opts.DryRun {
		err = errors.Join(err, s.saveState(context.WithoutCancel(ctx)))
	}
	if err != nil {
		err = fmt.Errorf("source %s: %w", opts.Name, err)
	}
	return s.report, err
}

// finish completes the report.
func (s *syncJob) finish(ctx context.Context, began time.Time, err error) {
	s.report.ElapsedMS = s.opts.Now().Sub(began).Milliseconds()
	s.report.Interrupted = ctx.Err() != nil && errors.Is(err, ctx.Err())
	for _, record := range s.records {
		if record.Retry != nil {
			s.report.Retry++
		}
	}
	for _, documents := range s.documents {
		s.report.Documents += len(documents)
	}
	s.report.sort()
}

// saveState stores the state of the source with the report.
func (s *syncJob) saveState(ctx context.Context) error {
	s.state.LastTry = s.opts.Now()
	report := s.report
	const most = 100
	report.Skipped = report.Skipped[:min(len(report.Skipped), most)]
	var err error
	if s.state.Report, err = json.Marshal(report); err != nil {
		return err
	}
	return s.w.SetSyncSource(ctx, s.state)
}

// A syncJob is the state of one Sync.
type syncJob struct {
	w        SyncStore
	opts     SyncOptions
	builder  *job // parses and chunks
	inFlight *semaphore.Weighted
	progress tracker

	// Used by the writer only.
	state    store.SyncSource
	report   SyncReport
	batch    syncBatch
	failures int  // consecutive items that could not be fetched
	due      bool // the last listing yielded an item that only a sweep can find again

	// Used by the producer only.
	handled map[string]bool // URIs of items in this sync

	mu        sync.Mutex
	records   map[string]store.SyncItem
	documents map[string][]assay.Document // by URI of their item, without text
	foreign   map[string]bool             // URIs of documents of the collection from elsewhere
}

func newSync(ctx context.Context, w SyncStore, opts SyncOptions) (*syncJob, error) {
	s := &syncJob{
		w: w, opts: opts,
		progress:  tracker{report: opts.Progress},
		inFlight:  semaphore.NewWeighted(DefaultMaxBytesInFlight),
		handled:   map[string]bool{},
		records:   map[string]store.SyncItem{},
		documents: map[string][]assay.Document{},
		foreign:   map[string]bool{},
	}
	s.opts.MaxBytes = cmp.Or(opts.MaxBytes, source.DefaultMaxFileBytes)
	s.report = SyncReport{Source: opts.Name, DryRun: opts.DryRun, Report: Report{Skipped: []Skipped{}}}
	sources, err := w.SyncSources(ctx)
	if err != nil {
		return s, err
	}
	i := slices.IndexFunc(sources, func(c store.SyncSource) bool { return c.Name == opts.Name })
	if i < 0 {
		return s, fmt.Errorf("no such source: %w", assay.ErrNotFound)
	}
	s.state = sources[i]
	s.report.Collection = s.state.Collection
	parsing := opts.Parsing
	s.builder = &job{
		opts:       parsing,
		collection: s.state.Collection,
		pipeline:   pipelineVersion(parsing.Chunk, cmp.Or(parsing.Parser, parse.Version)),
	}
	if s.builder.opts.Walk == nil {
		s.builder.opts.Walk = parse.Walk
	}
	if err := s.load(ctx); err != nil {
		return s, err
	}
	s.report.Sequence, err = w.Sequence(ctx)
	return s, err
}

// load reads the records of the source's items and its documents.
func (s *syncJob) load(ctx context.Context) error {
	collections, err := s.w.Collections(ctx)
	if err != nil {
		return err
	}
	for _, c := range collections {
		if c.Name == s.state.Collection {
			s.builder.requireACL = c.RequireACL
		}
	}
	for record, err := range s.w.SyncItems(ctx, s.opts.Name) {
		if err != nil {
			return err
		}
		s.records[record.URI] = record
	}
	for d, err := range s.w.Documents(ctx, s.state.Collection) {
		if err != nil {
			return err
		}
		if d.Metadata[assay.MetaSource].String != s.opts.Name {
			s.foreign[d.URI] = true
			continue
		}
		uri := s.itemOf(d.URI)
		s.documents[uri] = append(s.documents[uri], d)
	}
	return nil
}

// partSeparator separates the URI of an item from the place of a document inside it.
const partSeparator = "!/"

// itemOf returns the URI of the item that a document is from: the document's own or, if it is a
// document inside another, that of the outermost one with a record.
func (s *syncJob) itemOf(uri string) string {
	if _, ok := s.records[uri]; ok {
		return uri
	}
	for at := 0; ; {
		i := strings.Index(uri[at:], partSeparator)
		if i < 0 {
			return uri
		}
		if _, ok := s.records[uri[:at+i]]; ok {
			return uri[:at+i]
		}
		at += i + len(partSeparator)
	}
}

func (s *syncJob) scrub(text string) string {
	if s.opts.Scrub != nil {
		return s.opts.Scrub(text)
	}
	return text
}

// run syncs: changes, sweep, items to be retried.
func (s *syncJob) run(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if !s.opts.Kind.SweepOnly {
		err := s.readChanges(ctx)
		if errors.Is(err, source.ErrCursor) && s.state.Cursor != "" {
			if err := s.restart(ctx); err != nil {
				return err
			}
			err = s.readChanges(ctx)
		}
		if err != nil {
			return err
		}
	}
	if s.mustSweep() {
		if err := s.sweep(ctx); err != nil {
			return err
		}
	} else if !s.opts.DryRun {
		s.state.SinceSweep++
	}
	if s.opts.DryRun {
		return nil
	}
	return s.retry(ctx)
}

// begin marks a sweep as due before a listing from the beginning. Such a listing does not report
// items that were deleted after an earlier, interrupted listing had stored them.
func (s *syncJob) begin(ctx context.Context) error {
	if s.opts.Full {
		return s.restart(ctx)
	}
	if s.state.Cursor == "" && len(s.records)+len(s.documents) > 0 && !s.state.SweepDue {
		return s.makeSweepDue(ctx)
	}
	return nil
}

// restart forgets the cursor.
func (s *syncJob) restart(ctx context.Context) error {
	s.state.Cursor = ""
	return s.makeSweepDue(ctx)
}

func (s *syncJob) makeSweepDue(ctx context.Context) error {
	s.state.SweepDue = true
	if s.opts.DryRun {
		return nil
	}
	return s.w.SetSyncSource(ctx, s.state)
}

// mustSweep reports whether this sync sweeps.
func (s *syncJob) mustSweep() bool {
	kind := s.opts.Kind
	switch {
	case kind.SweepOnly:
		return true
	case kind.KeepsMissing:
		return false
	}
	return !kind.DeletesInChanges || s.state.SweepDue || s.state.SinceSweep+1 >= sweepEvery
}

// A syncTask is one item to bring up to date.
type syncTask struct {
	item    source.Item
	deleted bool
	skip    *source.Skip
	cursor  string // after the item
	swept   bool   // by a sweep
	again   bool   // it was listed before in this sync
	retried bool   // it could not be fetched in an earlier sync
}

func (t syncTask) uri() string {
	if t.skip != nil {
		return t.skip.URI
	}
	return t.item.URI
}

// readChanges brings the items up to date that changed since the cursor.
func (s *syncJob) readChanges(ctx context.Context) error {
	cursor := s.state.Cursor
	return s.pump(ctx, func(ctx context.Context, emit func(syncTask) error) error {
		for change, err := range s.opts.Source.Changes(ctx, cursor) {
			skip, skipped := source.AsSkip(err)
			if err != nil && !skipped {
				return err
			}
			if err := emit(syncTask{item: change.Item, deleted: change.Deleted, skip: skip, cursor: change.Cursor}); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// sweep brings all items up to date and deletes the documents of those that are gone.
func (s *syncJob) sweep(ctx context.Context) error {
	seen := map[string]bool{}
	partial := false
	s.due = false
	err := s.pump(ctx, func(ctx context.Context, emit func(syncTask) error) error {
		for item, err := range s.opts.Source.Sweep(ctx) {
			skip, skipped := source.AsSkip(err)
			if err != nil && !skipped {
				return err
			}
			t := syncTask{item: item, skip: skip, swept: true}
			partial = partial || skipped && skip.Folder
			seen[t.uri()] = true
			if err := emit(t); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	s.progress.update(func(p *Progress) { p.Walked = true })
	if partial || s.opts.Kind.KeepsMissing {
		return nil
	}
	return s.removeMissing(ctx, seen)
}

// removeMissing deletes the documents of the items that a complete sweep did not see.
func (s *syncJob) removeMissing(ctx context.Context, seen map[string]bool) error {
	all := maps.Clone(s.documents)
	for uri := range s.records {
		if _, ok := all[uri]; !ok {
			all[uri] = nil
		}
	}
	var gone []string
	missing, total := 0, 0
	for uri, documents := range all {
		total += len(documents)
		if !seen[uri] {
			missing += len(documents)
			gone = append(gone, uri)
		}
	}
	slices.Sort(gone)
	if missing > max(maxSweepDeletes, int(maxSweepShare*float64(total))) && !s.opts.Yes {
		s.report.Missing = missing
		if s.opts.DryRun {
			return nil
		}
		s.state.SweepDue = true
		return fmt.Errorf("the source no longer lists %d of %d documents, more than a tenth: %w; if they are really gone, sync with --yes", missing, total, ErrManyDeletes)
	}
	for _, uri := range gone {
		if err := s.take(ctx, s.removed(uri)); err != nil {
			return err
		}
	}
	if err := s.commit(ctx); err != nil {
		return err
	}
	s.report.Swept = true
	s.state.SweepDue, s.state.SinceSweep = s.due, 0
	return nil
}

// retry fetches the items that an earlier sync could not fetch and this one did not list.
func (s *syncJob) retry(ctx context.Context) error {
	var again []store.SyncItem
	for uri, record := range s.records {
		if record.Retry != nil && !s.handled[uri] {
			again = append(again, record)
		}
	}
	slices.SortFunc(again, func(a, b store.SyncItem) int { return cmp.Compare(a.URI, b.URI) })
	return s.pump(ctx, func(ctx context.Context, emit func(syncTask) error) error {
		for _, record := range again {
			var item source.Item
			if err := json.Unmarshal(record.Retry, &item); err != nil {
				return fmt.Errorf("the record of %s: %w: %w", record.URI, err, assay.ErrDamaged)
			}
			if err := emit(syncTask{item: item, retried: true}); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// known returns the record and documents of an item.
func (s *syncJob) known(uri string) (record store.SyncItem, isKnown bool, documents []assay.Document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record, isKnown = s.records[uri]
	return record, isKnown, slices.Clone(s.documents[uri])
}
