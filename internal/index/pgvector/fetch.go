package pgvector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	vectors "github.com/pgvector/pgvector-go"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// maxDimensions is the limit of the type vector.
const maxDimensions = 16_000

// errOtherDimensions reports vectors of different dimensions. This is damage unless the earlier
// vectors were dropped from the source.
var errOtherDimensions = fmt.Errorf("vectors of different dimensions: %w", assay.ErrDamaged)

func hasModel(ctx context.Context, source index.VectorSource, name string) (bool, error) {
	list, err := source.Models(ctx)
	if err != nil {
		return false, fmt.Errorf("read the models of vectors: %w", err)
	}
	return slices.Contains(list, name), nil
}

// fetch reads the vectors of a model that the source has stored since the last fetch. If the source
// no longer has the model, its vectors are dropped.
func (u *updater) fetch(ctx context.Context, source index.VectorSource, name string) error {
	v, err := u.readVersion(ctx, u.tx, name)
	if err != nil {
		return err
	}
	m := v.model
	if m.no > 0 && m.sequence == v.sequence {
		return nil
	}
	known, err := hasModel(ctx, source, name)
	if err != nil {
		return err
	}
	if !known {
		return u.dropModel(ctx, m)
	}
	if m.no == 0 {
		const query = `INSERT INTO model (no, name, dimensions, sequence) VALUES (nextval('model_no'), $1, 0, 0) RETURNING no`
		if err := u.tx.QueryRow(ctx, query, encode(name)).Scan(&m.no); err != nil {
			return err
		}
	}
	after := m.sequence
	err = u.fetchAfter(ctx, source, name, &m)
	if after > 0 && (errors.Is(err, errOtherDimensions) || errors.Is(err, assay.ErrNotFound)) {
		// The model's vectors were dropped, and new ones may have been added since.
		if err := u.dropVectors(ctx, &m); err != nil {
			return err
		}
		err = u.fetchAfter(ctx, source, name, &m)
	}
	if err != nil {
		return fmt.Errorf("read vectors of %s after %d: %w", name, after, err)
	}
	if err := u.counts.write(ctx, u.tx); err != nil {
		return err
	}
	_, err = u.tx.Exec(ctx, `UPDATE model SET dimensions = $2, sequence = $3 WHERE no = $1`, m.no, m.dimensions, u.version.sequence)
	return err
}

// dropModel removes a model with its vectors.
func (u *updater) dropModel(ctx context.Context, m model) error {
	if m.no == 0 {
		return nil
	}
	if err := u.dropVectors(ctx, &m); err != nil {
		return err
	}
	_, err := u.tx.Exec(ctx, `DELETE FROM model WHERE no = $1`, m.no)
	return err
}

// dropVectors removes the vectors of a model and gives it another number.
func (u *updater) dropVectors(ctx context.Context, m *model) error {
	if m.dimensions > 0 {
		if _, err := u.tx.Exec(ctx, `DROP TABLE `+vectorTable(m.no)); err != nil {
			return err
		}
	}
	if _, err := u.tx.Exec(ctx, `DELETE FROM count WHERE what = $1 AND name = $2`, countVectors, modelName(m.no)); err != nil {
		return err
	}
	before := m.no
	u.models = slices.DeleteFunc(u.models, func(no int32) bool { return no == before })
	m.dimensions, m.sequence = 0, 0
	return u.tx.QueryRow(ctx, `UPDATE model SET no = nextval('model_no'), dimensions = 0 WHERE no = $1 RETURNING no`, before).Scan(&m.no)
}

// fetchAfter reads the vectors that the source has stored after m.sequence.
func (u *updater) fetchAfter(ctx context.Context, source index.VectorSource, name string, m *model) error {
	var ids [][16]byte
	values := make(map[[16]byte][]float32)
	bytes := 0
	for v, err := range source.Vectors(ctx, name, m.sequence) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if err := u.checkDimensions(ctx, m, v); err != nil {
			return err
		}
		if err := index.CheckStoredVector(v.Values); err != nil {
			return err
		}
		id, ok := index.ParseID(v.Chunk)
		if !ok {
			continue // never indexed
		}
		ids = append(ids, id)
		values[id] = slices.Clone(v.Values)
		if bytes += 4 * len(v.Values); bytes >= u.settings.vectorBytes {
			if err := u.insertVectors(ctx, *m, ids, values); err != nil {
				return err
			}
			ids, bytes = ids[:0], 0
			clear(values)
		}
	}
	return cmp.Or(ctx.Err(), u.insertVectors(ctx, *m, ids, values))
}

// checkDimensions checks the dimensions of a vector. The first vector of a model makes its table.
func (u *updater) checkDimensions(ctx context.Context, m *model, v index.ChunkVector) error {
	n := len(v.Values)
	switch {
	case n > maxDimensions:
		return fmt.Errorf("chunk %s has a vector of %d dimensions, PostgreSQL holds up to %d: %w", v.Chunk, n, maxDimensions, assay.ErrInvalid)
	case n == 0 || m.dimensions > 0 && n != m.dimensions:
		return fmt.Errorf("chunk %s has one of %d, others have %d: %w", v.Chunk, n, m.dimensions, errOtherDimensions)
	case m.dimensions > 0:
		return nil
	}
	m.dimensions = n
	table := vectorTable(m.no)
	for _, statement := range []string{
		fmt.Sprintf(`CREATE TABLE %s (chunk bigint PRIMARY KEY, document bigint NOT NULL, value vector(%d) NOT NULL)`, table, n),
		`CREATE INDEX ON ` + table + ` (document)`,
	} {
		if _, err := u.tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	u.models = append(u.models, m.no)
	return nil
}

// insertVectors writes the vectors of those chunks that the index has. Vectors that it has already
// are not written again, because each would be another entry in its HNSW indexes.
func (u *updater) insertVectors(ctx context.Context, m model, ids [][16]byte, values map[[16]byte][]float32) error {
	if len(ids) == 0 {
		return nil
	}
	table := vectorTable(m.no)
	rows, err := u.tx.Query(ctx, `SELECT c.id, c.no, c.document, c.class, v.value FROM chunk c LEFT JOIN `+table+` v ON v.chunk = c.no WHERE c.id = ANY($1)`, ids)
	if err != nil {
		return err
	}
	var fresh [][]any
	var replaced []int64
	for rows.Next() {
		var id [16]byte
		var no, document int64
		var class int32
		var held *vectors.Vector
		if err := rows.Scan(&id, &no, &document, &class, &held); err != nil {
			return err
		}
		switch {
		case held == nil:
			u.counts.add(countVectors, modelName(m.no), class, 1)
		case slices.Equal(held.Slice(), values[id]):
			continue
		default:
			replaced = append(replaced, no)
		}
		fresh = append(fresh, []any{no, document, vectors.NewVector(values[id])})
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(replaced) > 0 {
		if _, err := u.tx.Exec(ctx, `DELETE FROM `+table+` WHERE chunk = ANY($1)`, replaced); err != nil {
			return err
		}
	}
	u.rows += len(fresh)
	_, err = u.tx.CopyFrom(ctx, pgx.Identifier{table}, []string{"chunk", "document", "value"}, pgx.CopyFromRows(fresh))
	return err
}
