package relational

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// dropBatch is how many vectors DropModel removes at a time, so that the write-ahead log stays
// small and other changes do not wait long.
const dropBatch = 10_000

// A vectorRow is a vector in its stored form.
type vectorRow struct {
	hash, data []byte
}

// encodeVectors checks and encodes the vectors of one model. The error is assay.ErrInvalid.
func encodeVectors(vectors []store.Vector) ([]vectorRow, error) {
	rows := make([]vectorRow, len(vectors))
	for i, v := range vectors {
		rows[i] = vectorRow{hash: chunkKey(v.Hash), data: encodeVector(v.Values)}
		switch {
		case rows[i].hash == nil:
			return nil, invalid("vector %d: %q is not the hash of a passage", i, v.Hash)
		case len(v.Values) == 0 || len(v.Values) > assay.MaxDimensions:
			return nil, invalid("vector %d has %d dimensions, want 1 to %d", i, len(v.Values), assay.MaxDimensions)
		case len(v.Values) != len(vectors[0].Values):
			return nil, invalid("vector %d has %d dimensions, the first %d", i, len(v.Values), len(vectors[0].Values))
		}
		square := float64(0) // NaN and infinity propagate
		for _, x := range v.Values {
			square += float64(x) * float64(x)
		}
		if norm := math.Sqrt(square); !(norm <= assay.MaxNorm) {
			return nil, invalid("vector %d has the norm %g, want at most %g", i, norm, assay.MaxNorm)
		}
	}
	return rows, nil
}

// encodeVector packs values as little-endian IEEE 754 singles.
func encodeVector(values []float32) []byte {
	b := make([]byte, 0, 4*len(values))
	for _, x := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// decodeVector is the inverse of encodeVector. If values is not nil, its length is the required
// one.
func decodeVector(values []float32, b []byte) ([]float32, error) {
	if values == nil {
		values = make([]float32, len(b)/4)
	}
	if len(b) != 4*len(values) || len(b) == 0 {
		return nil, damaged("a vector of %d bytes, want %d", len(b), max(1, len(values))*4)
	}
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return values, nil
}

// PutVectors implements store.Writer.
func (w *writer) PutVectors(ctx context.Context, model string, vectors ...store.Vector) (int64, error) {
	doing := fmt.Sprintf("put vectors of %q", model)
	if err := checkName("model", model); err != nil {
		return 0, wrap(err, "%s", doing)
	}
	rows, err := encodeVectors(vectors)
	if err != nil {
		return 0, wrap(err, "%s", doing)
	}
	return w.change(ctx, doing, func(p *change) error {
		if len(rows) == 0 {
			return nil
		}
		number, err := p.model(ctx, model, len(vectors[0].Values))
		if err != nil {
			return err
		}
		return p.putVectors(ctx, number, rows)
	})
}

// model returns the number of a model with the given number of dimensions and creates the model if
// it does not exist.
func (p *change) model(ctx context.Context, name string, dimensions int) (int64, error) {
	var number int64
	err := p.t.Row(ctx, `SELECT number FROM models WHERE name = ?`, []any{name}, &number)
	if errors.Is(err, sql.ErrNoRows) {
		return p.t.Insert(ctx, `INSERT INTO models (name) VALUES (?)`, name)
	}
	if err != nil {
		return 0, err
	}
	var size int
	err = p.t.Row(ctx, `SELECT length(data) FROM vectors WHERE model = ? LIMIT 1`, []any{number}, &size)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return number, nil
	case err == nil && size != 4*dimensions:
		return 0, invalid("these have %d dimensions, those that are stored %d", dimensions, size/4)
	}
	return number, err
}

// putVectors stores those vectors of which some chunk has the passage.
func (p *change) putVectors(ctx context.Context, model int64, rows []vectorRow) error {
	args := make([][]any, len(rows))
	for i, r := range rows {
		args[i] = []any{model, r.hash, p.sequence, r.data}
	}
	n, err := p.t.ExecAll(ctx, `
INSERT INTO vectors (model, hash, sequence, data)
SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM chunks WHERE hash = ?2)
ON CONFLICT (hash, model) DO UPDATE SET sequence = excluded.sequence, data = excluded.data WHERE vectors.data <> excluded.data`, args)
	p.changed = p.changed || n > 0
	return err
}

// dropVectors drops the vectors of passages that only this version has. No current version uses
// them, so readers of Vectors need not be notified.
func dropVectors(ctx context.Context, t Tx, version int64) error {
	_, err := t.Exec(ctx, `
DELETE FROM vectors WHERE hash IN (SELECT hash FROM chunks WHERE version = ?1 AND hash IS NOT NULL)
AND NOT EXISTS (SELECT 1 FROM chunks h WHERE h.hash = vectors.hash AND h.version <> ?1)`, version)
	return err
}

// DropModel implements store.Writer.
func (w *writer) DropModel(ctx context.Context, model string) error {
	for more := true; more; {
		_, err := w.change(ctx, fmt.Sprintf("drop the vectors of %q", model), func(p *change) error {
			n, err := p.t.Exec(ctx, `
DELETE FROM vectors WHERE number IN (
	SELECT number FROM vectors WHERE model = (SELECT number FROM models WHERE name = ?) ORDER BY sequence LIMIT ?)`,
				model, dropBatch)
			p.changed, more = n > 0, n == dropBatch
			if err != nil || n == 0 {
				return err
			}
			_, err = p.t.Exec(ctx, `UPDATE models SET dropped = ? WHERE name = ?`, p.sequence, model)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const modelsQuery = `
SELECT name FROM models m WHERE EXISTS (SELECT 1 FROM vectors WHERE model = m.number) ORDER BY name`

// Models implements store.Content.
func (c content) Models(ctx context.Context) ([]string, error) {
	var names []string
	err := c.db.View(ctx, func(s Reader) error {
		return s.Each(ctx, modelsQuery, nil, func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			names = append(names, name)
			return err
		})
	})
	return names, wrap(err, "list models")
}

const (
	// changedVectors selects the vectors of documents that changed after ?2.
	changedVectors = `
SELECT h.id, x.data
FROM documents d
CROSS JOIN chunks h
CROSS JOIN vectors x
WHERE h.version = d.version AND x.hash = h.hash AND x.model = (SELECT number FROM models WHERE name = ?1) AND d.sequence > ?2
ORDER BY d.sequence, d.number, h.ordinal`

	// storedVectors selects the vectors stored after ?2, of other documents.
	storedVectors = `
SELECT h.id, x.data
FROM vectors x
CROSS JOIN chunks h
CROSS JOIN versions v
CROSS JOIN documents d
WHERE h.hash = x.hash AND v.number = h.version AND d.number = v.document AND d.version = v.number
AND x.model = (SELECT number FROM models WHERE name = ?1) AND x.sequence > ?2 AND d.sequence <= ?2
ORDER BY x.sequence`
)

// Vectors implements store.Content.
func (c content) Vectors(ctx context.Context, model string, after int64) iter.Seq2[assay.ChunkVector, error] {
	return func(yield func(assay.ChunkVector, error) bool) {
		var v assay.ChunkVector
		next := func(scan func(...any) error) error {
			var id, data sql.RawBytes
			err := scan(&id, &data)
			v.Chunk = hex.EncodeToString(id)
			if err == nil {
				v.Values, err = decodeVector(v.Values, data)
			}
			if err == nil && !yield(v, nil) {
				err = errStop
			}
			return err
		}
		err := c.db.View(ctx, func(s Reader) error {
			if err := checkDropped(ctx, s, model, after); err != nil {
				return err
			}
			if err := s.Each(ctx, changedVectors, []any{model, after}, next); err != nil || after <= 0 {
				return err
			}
			return s.Each(ctx, storedVectors, []any{model, after}, next)
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(assay.ChunkVector{}, wrap(err, "read the vectors of %q after %d", model, after))
		}
	}
}

// checkDropped returns an error if vectors of the model were dropped after the given sequence,
// unless the sequence is 0.
func checkDropped(ctx context.Context, s Reader, model string, after int64) error {
	var dropped int64
	err := s.Row(ctx, `SELECT coalesce(max(dropped), 0) FROM models WHERE name = ?`, []any{model}, &dropped)
	if err == nil && 0 < after && after < dropped {
		err = fmt.Errorf("some were dropped at %d, read them from 0: %w", dropped, assay.ErrNotFound)
	}
	return err
}
