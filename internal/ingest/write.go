package ingest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
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
	entries []store.Entry // with no ID where a later change removed it
	at      map[string]int
	deletes map[string]bool // document IDs
	sources map[string]store.Source
	forgot  map[string]store.Source
	uris    []string // of documents put or removed
	bytes   int
	removed int       // documents, counted once the transaction is durable
	done    []outcome // the same
}

func (b *batch) full() bool {
	return len(b.entries)+len(b.deletes) >= batchDocuments || b.bytes >= batchBytes
}

func (b *batch) empty() bool {
	return len(b.entries)+len(b.deletes)+len(b.sources)+len(b.forgot)+len(b.done)+b.removed == 0
}

// add puts an entry. It replaces an earlier one of the document, unless it only amends that.
func (b *batch) add(e store.Entry) {
	id := e.Document.ID
	b.bytes += bytesOf(e)
	delete(b.deletes, id)
	i, ok := b.at[id]
	switch {
	case ok && e.Document.Text == "" && b.entries[i].Document.Version == e.Document.Version:
		b.entries[i].Document.ACL, b.entries[i].Document.Source = e.Document.ACL, e.Document.Source
	case ok:
		b.entries[i] = e
	default:
		if b.at == nil {
			b.at = map[string]int{}
		}
		b.at[id] = len(b.entries)
		b.entries = append(b.entries, e)
	}
	b.uris = append(b.uris, e.Document.URI)
}

// remove deletes a document.
func (b *batch) remove(id, uri string) {
	if i, ok := b.at[id]; ok {
		b.entries[i] = store.Entry{}
		delete(b.at, id)
	}
	if b.deletes == nil {
		b.deletes = map[string]bool{}
	}
	b.deletes[id] = true
	b.uris = append(b.uris, uri)
}

func (b *batch) setSource(s store.Source) {
	if b.sources == nil {
		b.sources = map[string]store.Source{}
	}
	b.sources[s.URI] = s
	delete(b.forgot, s.URI)
}

func (b *batch) forget(s store.Source) {
	if b.forgot == nil {
		b.forgot = map[string]store.Source{}
	}
	b.forgot[s.URI] = s
	delete(b.sources, s.URI)
}

// changes returns the changes in the form of the store.
func (b *batch) changes() store.Batch {
	c := store.Batch{Delete: sortedKeys(b.deletes)}
	for _, e := range b.entries {
		if e.Document.ID != "" {
			c.Put = append(c.Put, e)
		}
	}
	for _, uri := range sortedKeys(b.forgot) {
		c.Forget = append(c.Forget, b.forgot[uri])
	}
	for _, uri := range sortedKeys(b.sources) {
		c.Sources = append(c.Sources, b.sources[uri])
	}
	return c
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
			wasEmpty := j.batch.empty()
			if err := j.take(ctx, o); err != nil {
				return err
			}
			if wasEmpty && !j.batch.empty() {
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
func (j *job) take(ctx context.Context, o outcome) error {
	changes := len(o.entries) > 0 || o.source != nil
	switch {
	case o.root != nil:
		j.roots = append(j.roots, o.root)
		uri := cmp.Or(o.root.URI, o.root.Root)
		j.kept = append(j.kept, Skipped{URI: uri, Reason: BadRoot, Detail: o.root.Detail})
		return nil
	case o.refused && isTransient(o.skips[0].Reason):
		j.kept = append(j.kept, o.skips[0])
	case o.refused && j.opts.RetryOnly && o.skips[0].Reason == source.TooLarge:
		o.skips[0].Kept = j.stored[o.skips[0].URI].shown() // the limit may be another than that of the ingest
	case o.refused:
		removed, err := j.refuse(ctx, &o.skips[0])
		if err != nil {
			return err
		}
		changes = removed
	}
	if o.source != nil {
		if err := j.takeSource(ctx, &o); err != nil {
			return err
		}
	}
	for _, e := range o.entries {
		j.batch.add(e)
		j.stored[o.file.URI].docs[e.Document.URI] = e.Document.Version
	}
	if !changes {
		j.count(o)
		j.progress.update(func(p *Progress) { tally(p, o) })
		return nil
	}
	o.entries = nil // the batch has them
	j.batch.done = append(j.batch.done, o)
	return nil
}

// refuse removes the source that a skip is for, if it is stored.
func (j *job) refuse(ctx context.Context, s *Skipped) (removed bool, err error) {
	if stored := j.stored[s.URI]; stored == nil || j.dropped[s.URI] {
		return false, nil
	}
	n, err := j.forget(ctx, s.URI)
	if err != nil {
		return false, err
	}
	j.dropped[s.URI] = true
	j.batch.removed += n
	s.Removed = n > 0
	return true, nil
}

// takeSource adds the source of an outcome to the batch, and the deletion of those of its documents
// that are gone.
func (j *job) takeSource(ctx context.Context, o *outcome) error {
	row := *o.source
	now := j.stored[row.URI]
	if now == nil {
		j.setSource(row)
		return nil
	}
	if row.SameAs != "" && keyOf(row) != "" && keyOf(row) == keyOf(now.source) {
		// The writer knows better than the worker whose documents these are now.
		if now.source.SameAs != "" || now.holds(keyOf(row)) {
			row.SameAs = now.source.SameAs
		}
		if row.SameAs == "" {
			j.setSource(row)
			return nil
		}
	}
	if keyOf(row) != keyOf(now.source) || row.SameAs != "" {
		if _, err := j.release(ctx, row.URI); err != nil {
			return err
		}
		delete(j.heirs, row.URI) // counted by its own outcome
	}
	if !o.partial {
		for _, doc := range sortedKeys(now.docs) {
			if o.docs[doc] {
				continue
			}
			j.batch.remove(assay.DocumentID(j.collection, doc), doc)
			delete(now.docs, doc)
			if row.SameAs == "" {
				j.batch.removed++
			}
			for i := range o.skips {
				o.skips[i].Removed = o.skips[i].Removed || o.skips[i].URI == doc
			}
		}
	}
	j.setSource(row)
	return nil
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
	if b.empty() {
		return nil
	}
	j.batch = batch{}
	changes := b.changes()
	seq, err := j.w.Apply(context.WithoutCancel(ctx), changes)
	if err != nil {
		return fmt.Errorf("store %d documents and remove %d: %w", len(changes.Put), len(changes.Delete), err)
	}
	j.report.Sequence = seq
	j.report.Removed += b.removed
	for _, o := range b.done {
		j.count(o)
	}
	j.progress.update(func(p *Progress) {
		for _, o := range b.done {
			tally(p, o)
		}
		p.Committed = b.uris
	})
	return nil
}

// count adds an outcome to the report.
func (j *job) count(o outcome) {
	j.report.Added += o.added
	j.report.Updated += o.updated
	j.report.Unchanged += o.unchanged
	j.report.RecognizedDocuments += o.recognized
	j.report.RecognizedPages += o.recognizedPages
	j.report.Pages = append(j.report.Pages, o.pages...)
	j.report.Notes = append(j.report.Notes, o.notes...)
	if o.refused && isTransient(o.skips[0].Reason) {
		return // reported with the number of documents that it hides
	}
	j.report.Skipped = append(j.report.Skipped, o.skips...)
	if o.ingested() {
		j.report.Bytes += o.bytes
	}
}

// ingested reports whether the file of an outcome is in the store, with documents of its own or
// those of another file.
func (o *outcome) ingested() bool {
	if o.partial {
		return false
	}
	shares := o.source != nil && o.source.SameAs != ""
	stays := o.source == nil && !o.refused && len(o.skips) == 0
	return shares || stays || len(o.docs) > 0
}

// tally adds an outcome to the progress.
func tally(p *Progress, o outcome) {
	if o.partial {
		return
	}
	p.Done++
	p.DoneBytes += o.file.SizeBytes
	if !o.ingested() {
		p.Skipped++
		return
	}
	p.Bytes += o.bytes
}
