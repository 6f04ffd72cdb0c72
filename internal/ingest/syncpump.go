package ingest

import (
	"cmp"
	"context"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// maxSyncDone is the number of items after which a batch is committed although few documents
// changed, so that the cursor advances.
const maxSyncDone = 1000

// A syncBatch is the next transaction.
type syncBatch struct {
	store.SyncBatch
	bytes int
	done  []syncOutcome
}

func (b *syncBatch) full() bool {
	return len(b.Put)+len(b.Delete) >= batchDocuments || b.bytes >= batchBytes || len(b.done) >= maxSyncDone
}

// A syncKind is what became of an item.
type syncKind int

const (
	syncUnchanged syncKind = iota
	syncAdded
	syncUpdated
	syncSkipped
)

// A syncOutcome is the result for one item.
type syncOutcome struct {
	uri     string
	cursor  string
	put     []store.Entry
	remove  []assay.Document
	record  *store.SyncItem // to store; nil: it stays
	gone    bool            // the record is to be removed
	what    syncKind
	nothing bool // the task was only a cursor, or the deletion of an unknown item
	// sweepDue means that the next sync must list all items.
	sweepDue bool
	skip     *Skipped
	parsed   outcome // what the parser reported on the item
	bytes    int64
	failed   error         // the reason why the item could not be fetched, if the service is to blame
	err      error         // ends the sync
	flushed  chan struct{} // if set, there is nothing but a commit to do, and then to close it
}

// pump runs produce, which emits tasks, handles several of them at a time and stores their outcomes
// in the order of emission. So the cursor of a task is stored only after all tasks before it.
func (s *syncJob) pump(ctx context.Context, produce func(context.Context, func(syncTask) error) error) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	queue := make(chan chan syncOutcome, cmp.Or(s.opts.Workers, defaultSyncWorkers))
	produced := make(chan error, 1)
	go func() {
		defer close(queue)
		produced <- produce(working, s.emitter(working, queue))
	}()
	var err error
	for future := range queue {
		if err != nil {
			<-future // so that no goroutine outlives the sync
			continue
		}
		if err = s.takeNext(ctx, future); err != nil {
			stop()
		}
	}
	producedErr := <-produced
	if commitErr := s.commit(ctx); commitErr != nil {
		return cmp.Or(err, commitErr)
	}
	return cmp.Or(err, producedErr)
}

// emitter returns the function that hands over a task. It waits until there is room in the queue.
// Before an item that came up since the last commit it waits for that commit, so that each task
// sees the outcome of the one before.
func (s *syncJob) emitter(ctx context.Context, queue chan<- chan syncOutcome) func(syncTask) error {
	open := map[string]bool{}
	return func(t syncTask) error {
		uri := t.uri()
		if open[uri] && uri != "" || len(open) > maxSyncDone {
			flushed := make(chan struct{})
			future := make(chan syncOutcome, 1)
			future <- syncOutcome{flushed: flushed}
			if !send(ctx, queue, future) {
				return ctx.Err()
			}
			select {
			case <-flushed:
			case <-ctx.Done():
				return ctx.Err()
			}
			clear(open)
		}
		if uri != "" {
			open[uri] = true
			t.again = s.handled[uri]
			s.handled[uri] = true
			s.progress.update(func(p *Progress) { p.Found++; p.Current = uri })
		}
		future := make(chan syncOutcome, 1)
		if !send(ctx, queue, future) {
			return ctx.Err()
		}
		go func() { future <- s.handle(ctx, t) }()
		return nil
	}
}

// takeNext waits for an outcome and takes it. After batchAge it first commits the current batch.
func (s *syncJob) takeNext(ctx context.Context, future <-chan syncOutcome) error {
	timer := time.NewTimer(batchAge)
	defer timer.Stop()
	select {
	case o := <-future:
		return s.take(ctx, o)
	case <-timer.C:
	}
	if err := s.commit(ctx); err != nil {
		<-future
		return err
	}
	return s.take(ctx, <-future)
}

// take adds an outcome to the batch.
func (s *syncJob) take(ctx context.Context, o syncOutcome) error {
	if o.flushed != nil {
		defer close(o.flushed)
		return s.commit(ctx)
	}
	if o.err != nil {
		return o.err
	}
	b := &s.batch
	for _, e := range o.put {
		b.Put = append(b.Put, e)
		b.bytes += bytesOf(e)
	}
	for _, d := range o.remove {
		b.Delete = append(b.Delete, d.ID)
	}
	switch {
	case o.gone:
		b.Gone = append(b.Gone, o.uri)
	case o.record != nil:
		b.Items = append(b.Items, *o.record)
	}
	b.Cursor = cmp.Or(o.cursor, b.Cursor)
	if o.sweepDue && !s.state.SweepDue {
		if err := s.makeSweepDue(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	s.due = s.due || o.sweepDue
	b.done = append(b.done, o)
	if b.full() {
		if err := s.commit(ctx); err != nil {
			return err
		}
	}
	return s.countFailure(o)
}

// countFailure returns an error if many consecutive items could not be fetched.
func (s *syncJob) countFailure(o syncOutcome) error {
	switch {
	case o.failed != nil:
		s.failures++
	case !o.nothing:
		s.failures = 0
	}
	if s.failures >= maxFailures {
		return o.failed
	}
	return nil
}

// commit stores the batch, and then applies it to the records in memory and the report. It ignores
// the end of ctx, so that parsed documents get one more transaction.
func (s *syncJob) commit(ctx context.Context) error {
	b := s.batch
	s.batch = syncBatch{}
	if len(b.done) == 0 {
		return nil
	}
	b.Source = s.opts.Name // the remaining fields are those of the outcomes
	if !s.opts.DryRun {
		sequence, err := s.w.ApplySync(context.WithoutCancel(ctx), b.SyncBatch)
		if err != nil {
			return err
		}
		s.report.Sequence = sequence
		s.state.Cursor = cmp.Or(b.Cursor, s.state.Cursor)
		s.remember(b)
	}
	var uris []string
	for _, o := range b.done {
		s.count(o)
		if len(o.put)+len(o.remove) > 0 {
			uris = append(uris, o.uri)
		}
	}
	s.progress.update(func(p *Progress) {
		for _, o := range b.done {
			if !o.nothing {
				p.Done++
				p.Bytes += o.bytes
			}
			if o.skip != nil {
				p.Skipped++
			}
		}
		p.Committed = uris
	})
	return nil
}

// remember applies a committed batch to the records and documents in memory.
func (s *syncJob) remember(b syncBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range b.done {
		if o.record != nil {
			s.records[o.uri] = *o.record
		}
		changed := map[string]bool{}
		for _, d := range o.remove {
			changed[d.ID] = true
		}
		for _, e := range o.put {
			changed[e.Document.ID] = true
		}
		var left []assay.Document
		for _, d := range s.documents[o.uri] {
			if !changed[d.ID] {
				left = append(left, d)
			}
		}
		for _, e := range o.put {
			e.Document.Text, e.Document.Anchors, e.Document.Structure = "", nil, assay.Structure{}
			left = append(left, e.Document)
		}
		s.documents[o.uri] = left
		if o.gone {
			delete(s.records, o.uri)
		}
		if len(left) == 0 {
			delete(s.documents, o.uri)
		}
	}
}

// count adds an outcome to the report.
func (s *syncJob) count(o syncOutcome) {
	s.report.Removed += len(o.remove)
	switch {
	case o.nothing:
		return
	case o.skip != nil:
		o.skip.Detail = s.scrub(o.skip.Detail)
		s.report.Skipped = append(s.report.Skipped, *o.skip)
	case o.gone:
	case o.what == syncAdded:
		s.report.Added++
	case o.what == syncUpdated:
		s.report.Updated++
	default:
		s.report.Unchanged++
	}
	s.report.Bytes += o.bytes
	if o.skip == nil { // else it has the reason
		for _, skip := range o.parsed.skips {
			skip.Detail = s.scrub(skip.Detail)
			s.report.Skipped = append(s.report.Skipped, skip)
		}
	}
	s.report.Pages = append(s.report.Pages, o.parsed.pages...)
	s.report.Notes = append(s.report.Notes, o.parsed.notes...)
}
