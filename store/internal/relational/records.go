package relational

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
)

const recordsQuery = `
SELECT r.sequence, r.ordinal, r.path, l.leaf, r.salt, l.header, r.payload
FROM records r LEFT JOIN log l ON l.sequence = r.sequence WHERE r.run = ? AND r.ordinal >= ? ORDER BY r.ordinal`

// Records implements store.Runs.
func (r runs) Records(ctx context.Context, id string) ([]assay.Record, error) {
	return r.RecordsFrom(ctx, id, 0)
}

// RecordsFrom implements store.Runs.
func (r runs) RecordsFrom(ctx context.Context, id string, ordinal int) ([]assay.Record, error) {
	var records []assay.Record
	err := r.t.runs.View(ctx, func(s Reader) error {
		var number int64
		var steps int
		var state assay.RunState
		err := s.Row(ctx, `SELECT r.number, p.steps, p.state FROM runs r JOIN progress p ON p.run = r.number WHERE r.id = ?`,
			[]any{id}, &number, &steps, &state)
		if errors.Is(err, sql.ErrNoRows) {
			return assay.ErrNotFound
		}
		if err != nil {
			return err
		}
		j := journalReader{s: s, run: id, erased: state == assay.RunErased, values: make(map[string][]byte)}
		records, err = j.read(ctx, number, max(ordinal, 0), steps)
		return err
	})
	if err != nil {
		return nil, wrap(err, "journal of run %s", id)
	}
	return records, nil
}

// A journalReader reads and checks one run's records.
type journalReader struct {
	s      Reader
	run    string
	erased bool
	values map[string][]byte // by hash
}

// read returns the run's records from an ordinal on and checks their number against the run's row.
func (j *journalReader) read(ctx context.Context, number int64, from, steps int) ([]assay.Record, error) {
	records := make([]assay.Record, 0, max(steps-from, 0))
	err := j.s.Each(ctx, recordsQuery, []any{number, from}, func(scan func(...any) error) error {
		var row recordRow
		if err := scan(&row.sequence, &row.ordinal, &row.path, &row.leaf, &row.salt, &row.header, &row.payload); err != nil {
			return err
		}
		if next := from + len(records); row.ordinal != next {
			return damaged("record %d is missing, record %d (%s) comes instead", next, row.ordinal, row.path)
		}
		rec, err := j.open(ctx, row)
		if err != nil {
			return fmt.Errorf("record %d (%s): %w", row.ordinal, row.path, err)
		}
		if n := len(records); n > 0 && records[n-1].Sequence >= rec.Sequence {
			return damaged("record %d (%s): its sequence %d is not after the one before", row.ordinal, row.path, rec.Sequence)
		}
		records = append(records, rec)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(records) != max(steps-from, 0) {
		last := "none"
		if n := len(records); n > 0 {
			last = fmt.Sprintf("%d (%s)", from+n-1, records[n-1].Path)
		}
		return nil, damaged("record %d is missing: the run counts %d records, the last one found is %s", len(records), steps, last)
	}
	return records, nil
}

// A recordRow is a row of records.
type recordRow struct {
	sequence        int64
	ordinal         int
	path            string
	leaf, salt      []byte
	header, payload []byte
}

// open checks a row's hashes and that its columns match its header.
func (j *journalReader) open(ctx context.Context, row recordRow) (assay.Record, error) {
	if len(row.leaf) != len(assay.Record{}.Leaf) {
		return assay.Record{}, damaged("its leaf hash has %d bytes", len(row.leaf))
	}
	rec, err := j.openRow(ctx, row)
	if err != nil {
		return assay.Record{}, err
	}
	switch {
	case rec.Run != j.run:
		return assay.Record{}, damaged("its header is of run %s", rec.Run)
	case rec.Path != row.path:
		return assay.Record{}, damaged("its header has the path %s", rec.Path)
	case rec.Ordinal != row.ordinal:
		return assay.Record{}, damaged("its header has the ordinal %d", rec.Ordinal)
	case rec.Sequence != row.sequence:
		return assay.Record{}, damaged("its header has the sequence %d, its row %d", rec.Sequence, row.sequence)
	}
	return rec, nil
}

func (j *journalReader) openRow(ctx context.Context, row recordRow) (assay.Record, error) {
	if j.erased {
		return j.openErased(row)
	}
	return journal.Open(row.header, row.payload, row.salt, [32]byte(row.leaf), func(hash string) ([]byte, error) {
		return j.value(ctx, hash)
	})
}

// value returns the text with this hash, or assay.ErrNotFound if there is none.
func (j *journalReader) value(ctx context.Context, hash string) ([]byte, error) {
	if v, ok := j.values[hash]; ok {
		return v, nil
	}
	key, err := hex.DecodeString(hash)
	if err != nil {
		return nil, damaged("%q is no hash", hash)
	}
	var v []byte
	err = j.s.Row(ctx, `SELECT data FROM long_values WHERE hash = ?`, []any{key}, &v)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, assay.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	j.values[hash] = v
	return v, nil
}
