package neptune

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/index"
)

// Limits of one request and of one batch.
const (
	maxRows        = 1000
	maxRowBytes    = 1 << 20
	batchDocuments = 200
)

// A writer brings a graph up to date. It has the claim of the state.
type writer struct {
	*Index
	was    state // when the claim was made
	claim  string
	step   int64
	finder entity.Finder
}

// begin makes a claim. The caller must call end.
func (x *Index) begin(ctx context.Context) (*writer, error) {
	select {
	case x.writing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w := &writer{Index: x, claim: strings.ToLower(rand.Text())}
	if err := w.begin(ctx); err != nil {
		w.end()
		return nil, err
	}
	return w, nil
}

// begin replaces the claim of the state, which it makes if there is none.
func (w *writer) begin(ctx context.Context) (err error) {
	if w.was, err = w.state(ctx); err != nil {
		return err
	}
	if w.was == (state{}) {
		if err := w.one(ctx, createState, parameters{"state": w.tenant.state()}); err != nil {
			return err
		}
		if w.was, err = w.state(ctx); err != nil {
			return err
		}
	}
	w.step = w.was.Step
	return w.one(ctx, claimState, parameters{"state": w.tenant.state(), "before": w.was.Claim, "claim": w.claim})
}

func (w *writer) end() { <-w.writing }

// write brings the graph up to date with the source.
func (x *Index) write(ctx context.Context) error {
	sequence, err := x.source.Sequence(ctx)
	if err != nil {
		return err
	}
	st, err := x.state(ctx)
	if err != nil || x.usable(st, sequence) == nil && st.Sequence == sequence {
		return err
	}
	w, err := x.begin(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	after := w.was.Sequence
	if w.was.Sequence == 0 || x.usable(w.was, sequence) != nil {
		// What an interrupted writer left may have been deleted from the source since.
		if err := w.clear(ctx); err != nil {
			return err
		}
		after = 0
	}
	return w.changes(ctx, after, sequence)
}

// changes writes what changed after a sequence number. to is one that the source has reached.
func (w *writer) changes(ctx context.Context, after, to int64) error {
	last := after
	var batch []assay.Change
	for c, err := range w.source.Changes(ctx, after) {
		if err != nil {
			return fmt.Errorf("read changes after %d: %w", after, err)
		}
		if len(batch) >= batchDocuments && c.Sequence > last {
			if err := w.batch(ctx, batch, last); err != nil {
				return err
			}
			batch = nil
		}
		batch, last = append(batch, c), max(last, c.Sequence)
	}
	return w.batch(ctx, batch, max(last, to))
}

// batch writes changes, and then the sequence number up to which the graph is complete.
func (w *writer) batch(ctx context.Context, changes []assay.Change, sequence int64) error {
	var ids []string
	for _, c := range changes {
		ids = append(ids, w.tenant.document(c.ID))
	}
	for _, statement := range []string{removePassages, removeDocuments} {
		if len(ids) > 0 {
			if err := w.send(ctx, statement, parameters{"documents": ids}); err != nil {
				return err
			}
		}
	}
	documents, readers, passages, names := w.rows(writeDocuments), w.rows(writeReaders), w.rows(writePassages), w.rows(writeNames)
	for _, c := range changes {
		if c.Deleted {
			continue
		}
		if err := w.document(c, documents, readers, passages, names); err != nil {
			return err
		}
	}
	for _, r := range []*rows{documents, readers, passages, names} {
		if err := r.send(ctx); err != nil {
			return err
		}
	}
	return w.written(ctx, 1, commitState, parameters{"version": layout, "sequence": sequence})
}

// document adds the rows of a document.
func (w *writer) document(c assay.Change, documents, readers, passages, names *rows) error {
	d := c.Document
	metadata, err := json.Marshal(d.Metadata)
	if err != nil {
		return fmt.Errorf("document %s: %w", d.URI, err)
	}
	id, count := w.tenant.document(c.ID), 0
	for i := range c.Chunks {
		chunk := &c.Chunks[i]
		if _, err := index.CheckChunk(d, chunk); err != nil {
			return fmt.Errorf("document %s: %w", d.URI, err)
		}
		if chunk.Kind == assay.ChunkSection {
			continue
		}
		count++
		passage := w.tenant.passage(chunk.ID)
		passages.add(parameters{"id": passage, "document": id, "chunk": chunk.ID})
		for _, e := range w.finder.Passage(d.Title, chunk.Headings, d.Text[chunk.Start:chunk.End], index.Language(d)) {
			names.add(parameters{"passage": passage, "entity": w.tenant.entity(e.Key), "key": e.Key, "title": e.Title})
		}
	}
	documents.add(parameters{"id": id, "document": c.ID, "collection": d.Collection, "sequence": c.Sequence, "passages": count, "metadata": string(metadata)})
	for _, r := range readersOf(d.ACL) {
		readers.add(parameters{"document": id, "id": w.tenant.reader(r), "name": r})
	}
	return nil
}

// rows are the rows of one statement.
type rows struct {
	w         *writer
	statement string
	list      []parameters
}

func (w *writer) rows(statement string) *rows { return &rows{w: w, statement: statement} }

func (r *rows) add(row parameters) { r.list = append(r.list, row) }

// send writes the rows in requests of limited size.
func (r *rows) send(ctx context.Context) error {
	for from := 0; from < len(r.list); {
		to, bytes := from, 0
		for to < len(r.list) && to-from < maxRows && (to == from || bytes+sizeOf(r.list[to]) <= maxRowBytes) {
			bytes += sizeOf(r.list[to])
			to++
		}
		if err := r.w.written(ctx, int64(to-from), r.statement, parameters{"rows": r.list[from:to]}); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// sizeOf returns about the number of bytes of a row in a request.
func sizeOf(row parameters) int {
	n := 0
	for name, v := range row {
		n += len(name) + 16
		if s, ok := v.(string); ok {
			n += len(s)
		}
	}
	return n
}

// clear deletes the nodes of the tenant without the state.
func (w *writer) clear(ctx context.Context) error {
	for before := int64(-1); ; {
		left, err := run[struct {
			Left *int64 `json:"left"`
		}](ctx, w.graph, countLeft, parameters{"tenant": string(w.tenant)})
		switch {
		case err != nil:
			return err
		case len(left) != 1 || left[0].Left == nil || *left[0].Left < 0:
			return fmt.Errorf("count the nodes of a graph in Neptune: the reply is not valid: %w", assay.ErrUnavailable)
		case *left[0].Left == 0:
			return nil
		case *left[0].Left == before:
			return errLocked // the claim does not hold
		}
		before = *left[0].Left
		if err := w.send(ctx, clearTenant, parameters{"tenant": string(w.tenant)}); err != nil {
			return err
		}
	}
}

// guarded adds the parameters of a statement that begins with guard. Each statement is a step.
func (w *writer) guarded(statement string, p parameters) parameters {
	w.step++
	p["state"], p["claim"], p["step"] = w.tenant.state(), w.claim, w.step
	if strings.Contains(statement, "$tenant") {
		p["tenant"] = string(w.tenant)
	}
	return p
}

// send sends a guarded statement that returns nothing. If the claim does not hold, a later statement
// reports it.
func (w *writer) send(ctx context.Context, statement string, p parameters) error {
	_, err := run[any](ctx, w.graph, statement, w.guarded(statement, p))
	return err
}

// written sends a guarded statement that must write as many rows.
func (w *writer) written(ctx context.Context, rows int64, statement string, p parameters) error {
	return w.expect(ctx, rows, statement, w.guarded(statement, p))
}

// one sends a statement that must write one row.
func (w *writer) one(ctx context.Context, statement string, p parameters) error {
	return w.expect(ctx, 1, statement, p)
}

func (w *writer) expect(ctx context.Context, rows int64, statement string, p parameters) error {
	answer, err := run[struct {
		Written *int64 `json:"written"`
	}](ctx, w.graph, statement, p)
	switch {
	case err != nil:
		return err
	case len(answer) != 1 || answer[0].Written == nil:
		return fmt.Errorf("write to Neptune: the reply is not valid: %w", assay.ErrUnavailable)
	case *answer[0].Written == 0:
		return errLocked
	case *answer[0].Written != rows:
		return fmt.Errorf("write to Neptune: %d of %d rows were written: %w", *answer[0].Written, rows, assay.ErrUnavailable)
	}
	return nil
}
