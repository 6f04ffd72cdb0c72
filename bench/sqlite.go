package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"unicode"

	_ "modernc.org/sqlite"     // the driver "sqlite", with FTS5
	_ "modernc.org/sqlite/vec" // with sqlite-vec
)

// A sqliteEngine holds the corpus in SQLite, with its text in FTS5 and its vectors in sqlite-vec.
// With the build tag sqlite_fts5 there is a second one, in C.
type sqliteEngine struct {
	driver     string
	db         *sql.DB
	path       string
	statements map[string]*sql.Stmt
}

// openSQLite opens an empty database in dir with the driver "sqlite", which is in Go, or "sqlite3",
// which is in C.
func openSQLite(dir, driver string) (*sqliteEngine, error) {
	path := filepath.Join(dir, driver+".db")
	db, err := sql.Open(driver, path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", driver, err)
	}
	db.SetMaxOpenConns(1)
	e := &sqliteEngine{driver: driver, db: db, path: path, statements: make(map[string]*sql.Stmt)}
	for _, pragma := range []string{"journal_mode = WAL", "synchronous = NORMAL", "cache_size = -400000", "mmap_size = 4000000000"} {
		if _, err := db.Exec("PRAGMA " + pragma); err != nil {
			return nil, errors.Join(e.failed(err), db.Close())
		}
	}
	return e, nil
}

func (e *sqliteEngine) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("SQLite (driver %s): %w", e.driver, err)
}

// buildText fills a contentless FTS5 table, in one transaction, and merges it into one b-tree.
func (e *sqliteEngine) buildText(ctx context.Context, c *corpus) error {
	return e.failed(e.fill(ctx, c,
		[]string{
			"CREATE TABLE shares (chunk INTEGER PRIMARY KEY, share REAL)",
			"CREATE VIRTUAL TABLE texts USING fts5 (text, content='', tokenize='porter unicode61')",
		},
		[]string{"CREATE INDEX by_share ON shares (share)", "INSERT INTO texts (texts) VALUES ('optimize')", "ANALYZE"},
		"INSERT INTO shares VALUES (?, ?)", "INSERT INTO texts (rowid, text) VALUES (?, ?)",
		func(_ int, d corpusDocument, chunk corpusChunk) any { return oneField(d, chunk) }))
}

// buildVectors fills a vec0 table that has the share as a metadata column.
func (e *sqliteEngine) buildVectors(ctx context.Context, c *corpus, v *vectorSet) error {
	table := fmt.Sprintf("CREATE VIRTUAL TABLE vectors USING vec0 (chunk INTEGER PRIMARY KEY, embedding float[%d] distance_metric=cosine, share float)", v.dimensions)
	return e.failed(e.fill(ctx, c, []string{table}, nil, "", "INSERT INTO vectors (chunk, share, embedding) VALUES (?1, ?3, ?2)",
		func(i int, _ corpusDocument, _ corpusChunk) any { return vectorBlob(v.row(i)) }))
}

func (e *sqliteEngine) fill(ctx context.Context, c *corpus, before, after []string, insertShare, insertChunk string, value func(int, corpusDocument, corpusChunk) any) error {
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no effect after the commit
	for _, s := range before {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	chunks, err := tx.PrepareContext(ctx, insertChunk)
	if err != nil {
		return err
	}
	shares, err := tx.PrepareContext(ctx, cmp.Or(insertShare, "SELECT 1"))
	if err != nil {
		return err
	}
	for d := range c.documents() {
		document := c.document(d)
		for i, chunk := range document.Chunks {
			n := int(c.first[d]) + i
			args := []any{n, value(n, document, chunk)}
			if insertShare == "" {
				args = append(args, document.Share)
			} else if _, err := shares.ExecContext(ctx, n, document.Share); err != nil {
				return err
			}
			if _, err := chunks.ExecContext(ctx, args...); err != nil {
				return err
			}
		}
	}
	for _, s := range after {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// text finds chunks with any of the words. With a filter, the query is the fastest of five forms
// that were tried: the join comes before the scoring.
func (e *sqliteEngine) text(ctx context.Context, q string, below float64, limit int) (answer, error) {
	match := anyOf(q)
	if match == "" {
		return func() []int { return nil }, nil
	}
	if below < 1 {
		return e.rows(ctx, "SELECT texts.rowid FROM texts CROSS JOIN shares ON chunk = texts.rowid WHERE texts MATCH ? AND share < ? ORDER BY bm25(texts) LIMIT ?", match, below, limit)
	}
	return e.rows(ctx, "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", match, limit)
}

// anyOf returns the FTS5 query for chunks that hold any of the words.
func anyOf(q string) string {
	words := strings.FieldsFunc(q, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return ""
	}
	return `"` + strings.Join(words, `" OR "`) + `"`
}

func (e *sqliteEngine) nearest(ctx context.Context, q []float32, below float64, limit int) (answer, error) {
	if below < 1 {
		return e.rows(ctx, "SELECT chunk FROM vectors WHERE embedding MATCH ? AND k = ? AND share < ? ORDER BY distance", vectorBlob(q), limit, below)
	}
	return e.rows(ctx, "SELECT chunk FROM vectors WHERE embedding MATCH ? AND k = ? ORDER BY distance", vectorBlob(q), limit)
}

func (e *sqliteEngine) rows(ctx context.Context, statement string, args ...any) (answer, error) {
	prepared, ok := e.statements[statement]
	if !ok {
		var err error
		if prepared, err = e.db.PrepareContext(ctx, statement); err != nil {
			return nil, e.failed(err)
		}
		e.statements[statement] = prepared
	}
	rows, err := prepared.QueryContext(ctx, args...)
	if err != nil {
		return nil, e.failed(err)
	}
	defer rows.Close()
	var chunks []int
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			return nil, e.failed(err)
		}
		chunks = append(chunks, n)
	}
	return func() []int { return chunks }, e.failed(rows.Err())
}

func vectorBlob(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func (e *sqliteEngine) close() error {
	for _, s := range e.statements {
		if err := s.Close(); err != nil {
			return e.failed(err)
		}
	}
	return e.failed(e.db.Close())
}
