package pgvector

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// largeUpdate is the number of new rows from which an update refreshes the planner's statistics.
const largeUpdate = 1000

// update reads what the source has committed since the index was last updated, and the vectors of
// a model (empty: none), in one transaction. Another process may have updated in the meantime.
func (x *Index) update(ctx context.Context, name string) error {
	select {
	case x.updating <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.updating }()
	var err error
	for range 3 { // the transaction may be the victim of a deadlock with a build
		err = pgx.BeginTxFunc(ctx, x.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			u := &updater{Index: x, tx: tx, classes: make(map[string]int32), counts: newCounts()}
			return u.run(ctx, name)
		})
		if !retried(err) {
			return err
		}
	}
	return err
}

// An updater reads the source into the tables, in one transaction under the writer's lock.
type updater struct {
	*Index
	tx      pgx.Tx
	version version
	models  []int32
	classes map[string]int32 // known so far, by key
	counts  *counts

	nextDocument, nextChunk int64 // numbers
	nextClass               int32
	rows                    int // written chunks and vectors
}

func (u *updater) run(ctx context.Context, name string) error {
	if _, err := u.tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockKey(u.schema, "writer")); err != nil {
		return err
	}
	for {
		if err := u.advance(ctx); err != nil {
			return err
		}
		vectors, ok := u.source.(index.VectorSource)
		if !ok || name == "" {
			break
		}
		if err := u.fetch(ctx, vectors, name); err != nil {
			return err
		}
		// A document that was replaced in between has neither its old nor its new vectors.
		sequence, err := u.source.Sequence(ctx)
		if err != nil {
			return err
		}
		if sequence == u.version.sequence {
			break
		}
	}
	if u.rows < largeUpdate {
		return nil
	}
	return u.analyze(ctx)
}

// analyze refreshes the planner's statistics.
func (u *updater) analyze(ctx context.Context) error {
	tables := "chunk, passage, document, term, count, class"
	for _, no := range u.models {
		tables += ", " + vectorTable(no)
	}
	_, err := u.tx.Exec(ctx, `ANALYZE `+tables)
	return err
}

// advance reads the source's changes.
func (u *updater) advance(ctx context.Context) error {
	sequence, err := u.source.Sequence(ctx)
	if err != nil {
		return err
	}
	if u.version, err = u.readVersion(ctx, u.tx, ""); err != nil {
		return err
	}
	if u.version.foreign || u.version.sequence > sequence {
		if err := reset(ctx, u.tx, u.identity); err != nil {
			return err
		}
		if u.version, err = u.readVersion(ctx, u.tx, ""); err != nil {
			return err
		}
		clear(u.classes)
	}
	if u.version.sequence == sequence {
		return nil
	}
	if err := u.startNumbers(ctx); err != nil {
		return err
	}
	first := u.version.sequence == 0
	if sequence, err = u.read(ctx, sequence); err != nil {
		return fmt.Errorf("read changes after %d: %w", u.version.sequence, err)
	}
	if err := u.counts.write(ctx, u.tx); err != nil {
		return err
	}
	if first {
		for _, statement := range inverted {
			if _, err := u.tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
	}
	// A class without documents would keep the names of its ACL.
	if _, err := u.tx.Exec(ctx, `DELETE FROM class c WHERE NOT EXISTS (SELECT FROM count n WHERE n.class = c.no)`); err != nil {
		return err
	}
	clear(u.classes)
	u.version.sequence = sequence
	_, err = u.tx.Exec(ctx, `UPDATE state SET sequence = $1`, sequence)
	return err
}

// startNumbers reads the first free numbers.
func (u *updater) startNumbers(ctx context.Context) error {
	const query = `SELECT (SELECT coalesce(max(no), 0) FROM document) + 1, (SELECT coalesce(max(no), 0) FROM chunk) + 1,
		(SELECT coalesce(max(no), 0) FROM class) + 1`
	if err := u.tx.QueryRow(ctx, query).Scan(&u.nextDocument, &u.nextChunk, &u.nextClass); err != nil {
		return err
	}
	var err error
	u.models, err = models(ctx, u.tx)
	return err
}

// read writes the rows of the source's changes in batches. It returns the sequence that they
// include, at least the given one.
func (u *updater) read(ctx context.Context, sequence int64) (int64, error) {
	changed := make(map[[16]byte]struct{})
	b := &batch{}
	for c, err := range u.source.Changes(ctx, u.version.sequence) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return 0, err
		}
		sequence = max(sequence, c.Sequence)
		id, err := checkChange(c)
		if err != nil {
			return 0, err
		}
		if id == ([16]byte{}) {
			continue // deleted, and never indexed
		}
		if _, twice := changed[id]; twice {
			return 0, fmt.Errorf("document %s comes twice among the changes: %w", c.ID, assay.ErrDamaged)
		}
		changed[id] = struct{}{}
		b.add(id, c)
		if b.bytes >= u.settings.batchBytes {
			if err := u.write(ctx, b); err != nil {
				return 0, err
			}
			b = &batch{}
		}
	}
	return sequence, cmp.Or(ctx.Err(), u.write(ctx, b))
}

// checkChange returns the ID of a change's document. The ID is zero for a deletion of what cannot
// have been indexed.
func checkChange(c assay.Change) (id [16]byte, err error) {
	if !c.Deleted && (c.Document == nil || c.Document.ID != c.ID) {
		return id, fmt.Errorf("change %d of document %s comes without it: %w", c.Sequence, c.ID, assay.ErrDamaged)
	}
	id, ok := index.ParseID(c.ID)
	if !ok && !c.Deleted {
		return id, fmt.Errorf("document %q: an ID is 32 hexadecimal digits: %w", c.ID, assay.ErrInvalid)
	}
	if !ok {
		return [16]byte{}, nil
	}
	return id, nil
}

// remove deletes the rows of documents.
func (u *updater) remove(ctx context.Context, ids [][16]byte) error {
	if len(ids) == 0 || u.nextDocument == 1 {
		return nil
	}
	rows, err := u.tx.Query(ctx, `DELETE FROM document WHERE id = ANY($1) RETURNING no, class, language, metadata, chunks, length`, ids)
	if err != nil {
		return err
	}
	var numbers []int64
	classes := make(map[int64]int32)
	for rows.Next() {
		var no int64
		var class int32
		var d documentCounts
		if err := rows.Scan(&no, &class, &d.language, &d.metadata, &d.chunks, &d.length); err != nil {
			return err
		}
		numbers = append(numbers, no)
		classes[no] = class
		if err := u.counts.document(class, d, -1); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil || len(numbers) == 0 {
		return err
	}
	for _, table := range []string{"chunk", "passage"} {
		if err := u.removeTerms(ctx, table, numbers); err != nil {
			return err
		}
	}
	for _, no := range u.models {
		if err := u.removeVectors(ctx, no, numbers, classes); err != nil {
			return err
		}
	}
	return nil
}

// removeTerms deletes the rows of documents from the table chunk or passage.
func (u *updater) removeTerms(ctx context.Context, table string, documents []int64) error {
	rows, err := u.tx.Query(ctx, `DELETE FROM `+table+` WHERE document = ANY($1) RETURNING class, terms`, documents)
	if err != nil {
		return err
	}
	for rows.Next() {
		var class int32
		var terms []int64
		if err := rows.Scan(&class, &terms); err != nil {
			return err
		}
		u.counts.terms(class, terms, -1)
	}
	return rows.Err()
}

// removeVectors deletes a model's vectors of documents, which were in the given classes.
func (u *updater) removeVectors(ctx context.Context, model int32, documents []int64, classes map[int64]int32) error {
	rows, err := u.tx.Query(ctx, `WITH gone AS (DELETE FROM `+vectorTable(model)+` WHERE document = ANY($1) RETURNING document)
		SELECT document, count(*) FROM gone GROUP BY document`, documents)
	if err != nil {
		return err
	}
	for rows.Next() {
		var document, n int64
		if err := rows.Scan(&document, &n); err != nil {
			return err
		}
		u.counts.add(countVectors, modelName(model), classes[document], -n)
	}
	return rows.Err()
}
