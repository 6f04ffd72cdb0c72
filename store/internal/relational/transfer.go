package relational

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// A TableState identifies the rows of a table.
type TableState struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	// Hash is the sum of the SHA-256 of all rows modulo 2^256, in hexadecimal. It does not depend on
	// their order, because databases order texts differently.
	Hash   string `json:"hash"`
	Newest int64  `json:"newest,omitempty"` // number of the newest row that a counted table ever had
}

const (
	// pageRows is how many rows one query reads, so that none takes long.
	pageRows = 512
	// insertRows is how many rows one statement inserts if they are small.
	insertRows = 32
	// insertBytes is the size from which rows are inserted by themselves.
	insertBytes = 256 << 10
	// batchBytes is the size at which a transaction of the target ends.
	batchBytes = 8 << 20
)

// A row is the values of one row: nil, int64, string and []byte.
type row []any

// bytes returns about how much space the row takes.
func (r row) bytes() int64 {
	n := int64(8 * len(r))
	for _, v := range r {
		switch v := v.(type) {
		case string:
			n += int64(len(v))
		case []byte:
			n += int64(len(v))
		}
	}
	return n
}

// A cell scans one value of a row. It implements sql.Scanner.
type cell struct{ v any }

// Scan implements sql.Scanner.
func (c *cell) Scan(v any) error {
	switch v := v.(type) {
	case nil, int64, string:
		c.v = v
	case []byte:
		c.v = append([]byte{}, v...)
	default:
		return damaged("a column holds a %T", v)
	}
	return nil
}

// A rowSum adds the hashes of rows.
type rowSum struct {
	rows int64
	sum  [4]uint64 // little end first
}

func (s *rowSum) add(table string, r row) error {
	h := newRowHash(table)
	for _, v := range r {
		if err := h.Scan(v); err != nil {
			return err
		}
	}
	b := h.h.Sum(nil)
	var carry uint64
	for i := range s.sum {
		s.sum[i], carry = bits.Add64(s.sum[i], binary.LittleEndian.Uint64(b[8*i:]), carry)
	}
	s.rows++
	return nil
}

func (s *rowSum) state(table string, newest int64) TableState {
	var b [32]byte
	for i, v := range s.sum {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	return TableState{Table: table, Rows: s.rows, Hash: hex.EncodeToString(b[:]), Newest: newest}
}

// quoted lists columns, some of which are reserved words.
func quoted(columns []string) string { return `"` + strings.Join(columns, `", "`) + `"` }

// eachRow calls fn for each row of a table, by its key.
func (t Table) eachRow(ctx context.Context, from Reader, fn func(row) error) error {
	columns, key := quoted(t.Columns), quoted(t.Key)
	first := fmt.Sprintf("SELECT %s FROM %s ORDER BY %s LIMIT %d", columns, t.Name, key, pageRows)
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(t.Key)), ", ")
	next := fmt.Sprintf("SELECT %s FROM %s WHERE (%s) > (%s) ORDER BY %s LIMIT %d", columns, t.Name, key, marks, key, pageRows)
	query, args := first, []any(nil)
	for {
		n := 0
		var last []any
		err := from.Each(ctx, query, args, func(scan func(...any) error) error {
			cells := make([]cell, len(t.Columns))
			dest := make([]any, len(cells))
			for i := range cells {
				dest[i] = &cells[i]
			}
			if err := scan(dest...); err != nil {
				return err
			}
			r := make(row, len(cells))
			for i := range cells {
				r[i] = cells[i].v
			}
			n++
			last = r[:len(t.Key)]
			return fn(r)
		})
		if err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
		if n < pageRows {
			return nil
		}
		query, args = next, last
	}
}

// newest returns the number that a new row of a counted table exceeds, and 0 for other tables.
func (t Table) newest(ctx context.Context, from Reader, newest Newest) (int64, error) {
	if !t.Counted {
		return 0, nil
	}
	return newest(ctx, from, t.Name)
}

// A Newest returns the number of the newest row that a counted table ever had, 0 if none.
type Newest func(ctx context.Context, r Reader, table string) (int64, error)

// State reads all rows of a table and returns its state.
func (t Table) State(ctx context.Context, from Reader, newest Newest) (TableState, error) {
	var sum rowSum
	err := t.eachRow(ctx, from, func(r row) error { return sum.add(t.Name, r) })
	if err != nil {
		return TableState{}, err
	}
	n, err := t.newest(ctx, from, newest)
	return sum.state(t.Name, n), err
}

// A Numbering lets rows keep their numbers.
type Numbering interface {
	// Begin prepares a table for rows that have numbers, in the transaction.
	Begin(ctx context.Context, t Tx, table Table) error

	// End makes the next new row of the table exceed a number.
	End(ctx context.Context, t Tx, table Table, newest int64) error

	// Newest is of type Newest.
	Newest(ctx context.Context, r Reader, table string) (int64, error)
}

// Copy copies all rows of a table into an empty one of the same columns, in several transactions, and
// returns the state of what it read. Progress, which may be nil, is called with the number of bytes
// since the last call.
func (t Table) Copy(ctx context.Context, from GivenTables, to Updater, numbers Numbering, progress func(bytes int64)) (TableState, error) {
	newest, err := t.newest(ctx, from.Reader, from.Newest)
	if err != nil {
		return TableState{}, err
	}
	err = to.Update(ctx, func(x Tx) error {
		if t.Single {
			if _, err := x.Exec(ctx, "DELETE FROM "+t.Name); err != nil {
				return err
			}
		}
		if t.Numbered() {
			return numbers.Begin(ctx, x, t)
		}
		return nil
	})
	if err != nil {
		return TableState{}, fmt.Errorf("table %s: %w", t.Name, err)
	}
	var sum rowSum
	last := newest
	w := tableWriter{t: t, to: to, progress: progress}
	err = t.eachRow(ctx, from.Reader, func(r row) error {
		if n, ok := r[0].(int64); ok {
			last = max(last, n)
		}
		return errors.Join(sum.add(t.Name, r), w.add(ctx, r))
	})
	if err == nil {
		err = w.flush(ctx)
	}
	if err == nil && t.Numbered() {
		err = to.Update(ctx, func(x Tx) error { return numbers.End(ctx, x, t, last) })
	}
	return sum.state(t.Name, newest), err
}

// A tableWriter inserts rows in large transactions.
type tableWriter struct {
	t        Table
	to       Updater
	progress func(int64)

	rows  []row
	bytes int64
}

func (w *tableWriter) add(ctx context.Context, r row) error {
	w.rows, w.bytes = append(w.rows, r), w.bytes+r.bytes()
	if w.bytes < batchBytes {
		return nil
	}
	return w.flush(ctx)
}

// flush inserts the rows in one transaction.
func (w *tableWriter) flush(ctx context.Context) error {
	if len(w.rows) == 0 {
		return nil
	}
	err := w.to.Update(ctx, func(x Tx) error {
		for rest := w.rows; len(rest) > 0; {
			n := 1
			if len(rest) >= insertRows && small(rest[:insertRows]) {
				n = insertRows
			}
			if err := w.insert(ctx, x, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("table %s: %w", w.t.Name, err)
	}
	if w.progress != nil {
		w.progress(w.bytes)
	}
	w.rows, w.bytes = w.rows[:0], 0
	return nil
}

func small(rows []row) bool {
	var n int64
	for _, r := range rows {
		n += r.bytes()
	}
	return n < insertBytes
}

// insert inserts rows with one statement.
func (w *tableWriter) insert(ctx context.Context, x Tx, rows []row) error {
	one := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(w.t.Columns)), ", ") + ")"
	var args []any
	for _, r := range rows {
		args = append(args, r...)
	}
	query := fmt.Sprintf("INSERT INTO %s (%s) VALUES %s%s", w.t.Name, quoted(w.t.Columns), one, strings.Repeat(", "+one, len(rows)-1))
	n, err := x.Exec(ctx, query, args...)
	if err == nil && n != int64(len(rows)) {
		err = damaged("%d rows of %d were stored", n, len(rows))
	}
	return err
}
