package ingest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// A transaction is committed at the first of these limits. Small transactions lose little in a
// crash; large ones wait less for the disk (about 2 ms each).
const (
	batchDocuments = 64
	batchBytes     = 4 << 20 // of text
	batchAge       = 300 * time.Millisecond
)

// A batch is the content of the next transaction.
type batch struct {
	entries []store.Entry
	deletes []string // document IDs
	uris    []string // of both
	bytes   int
	done    []outcome // counted once the transaction is durable
}

func (b *batch) full() bool {
	return len(b.entries)+len(b.deletes) >= batchDocuments || b.bytes >= batchBytes
}

// write puts outcomes into the store until the channel is closed. It is the only goroutine that
// changes the store. On an error of the store it returns immediately, and the caller must drain
// outcomes.
func (j *job) write(ctx context.Context, outcomes <-chan outcome) error {
	timer := time.NewTimer(batchAge)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case o, ok := <-outcomes:
			if !ok {
				return j.commit(ctx)
			}
			wasEmpty := len(j.batch.uris) == 0
			j.take(o)
			if wasEmpty && len(j.batch.uris) > 0 {
				timer.Reset(batchAge)
			}
			if j.batch.full() {
				if err := j.commit(ctx); err != nil {
					return err
				}
			}
		case <-timer.C:
			if err := j.commit(ctx); err != nil {
				return err
			}
		}
	}
}

// take adds an outcome to the batch. An outcome that does not change the store is counted
// immediately.
func (j *job) take(o outcome) {
	if o.root != nil {
		j.roots = append(j.roots, o.root)
		uri := cmp.Or(o.root.URI, o.root.Root)
		j.kept = append(j.kept, Skipped{URI: uri, Reason: BadRoot, Detail: o.root.Detail})
		return
	}
	b := &j.batch
	if o.skip != nil && o.skip.Kept == 0 {
		if isTransient(o.skip.Reason) {
			j.kept = append(j.kept, *o.skip)
		} else if known, ok := j.known[o.skip.URI]; ok && !j.dropped[known.URI] {
			o.skip.Removed = true
			j.dropped[known.URI] = true
			b.deletes = append(b.deletes, known.ID)
			b.uris = append(b.uris, known.URI)
		}
	}
	if o.entry != nil {
		b.entries = append(b.entries, *o.entry)
		b.uris = append(b.uris, o.entry.Document.URI)
		b.bytes += len(o.entry.Document.Text)
	}
	if o.entry == nil && (o.skip == nil || !o.skip.Removed) {
		j.count(o)
		j.progress.update(func(p *Progress) { tally(p, o) })
		return
	}
	b.done = append(b.done, o)
}

// isTransient reports whether a reason means that the source cannot be read now, which reveals
// nothing about its content.
func isTransient(r source.Reason) bool {
	switch r {
	case source.Unreadable, source.Changed, source.Vanished, source.BadIgnoreFile, source.BadStandardIn:
		return true
	}
	return false
}

// commit makes the batch durable and counts it. It ignores the end of ctx, so that parsed documents
// get one more transaction.
func (j *job) commit(ctx context.Context) error {
	b := j.batch
	j.batch = batch{}
	ctx = context.WithoutCancel(ctx)
	if len(b.deletes) > 0 {
		seq, err := j.w.Delete(ctx, b.deletes...)
		if err != nil {
			return fmt.Errorf("remove %d documents: %w", len(b.deletes), err)
		}
		j.report.Sequence = seq
	}
	if len(b.entries) > 0 {
		seq, err := j.w.Put(ctx, b.entries...)
		if err != nil {
			return fmt.Errorf("store %d documents: %w", len(b.entries), err)
		}
		j.report.Sequence = seq
	}
	for _, o := range b.done {
		j.count(o)
	}
	if len(b.uris) > 0 {
		j.progress.update(func(p *Progress) {
			for _, o := range b.done {
				tally(p, o)
			}
			p.Committed = b.uris
		})
	}
	return nil
}

// count adds an outcome to the report.
func (j *job) count(o outcome) {
	switch o.what {
	case added:
		j.report.Added++
	case updated:
		j.report.Updated++
	case unchanged:
		j.report.Unchanged++
	case skipped:
		if o.skip.Removed {
			j.report.Removed++
		}
		if isTransient(o.skip.Reason) {
			return // reported with the number of documents that it hides
		}
		j.report.Skipped = append(j.report.Skipped, *o.skip)
		return
	}
	j.report.Bytes += o.bytes()
}

// tally adds an outcome to the progress.
func tally(p *Progress, o outcome) {
	p.Done++
	if o.what == skipped {
		p.Skipped++
		return
	}
	p.Bytes += o.bytes()
}
