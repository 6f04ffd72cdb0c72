package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/internal/relational"
)

// A part is one of the databases of a tenant, which is a schema here.
type part string

// The parts. The system has the tables of runs.
const (
	contentPart part = "content"
	runsPart    part = "runs"
)

// A tenancy identifies a tenant, or the system, in the database.
type tenancy struct {
	identity string // random word
	number   int32  // of its locks
	system   bool   // its tables are those of runs, in systemSchema
}

// schema returns the name of the schema of a part.
func (t tenancy) schema(p part) string {
	if t.system {
		return systemSchema
	}
	return "assay_" + string(p) + "_" + strings.ToLower(t.identity)
}

// checkIdentity returns assay.ErrDamaged if a tenant's word is not one that rand.Text makes, because it
// becomes part of the names of schemas.
func checkIdentity(word string) error {
	if len(word) < 26 || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return damaged("the word %q of a tenant is not one of this program", word)
	}
	return nil
}

// A database is a schema. It implements relational.Database.
type database struct {
	s *Store
	tenancy
	part  part
	enter []any // parameters of enterQuery
	lock  []any // parameters of lockQuery
}

func (s *Store) database(t tenancy, p part) *database {
	turn := lockContent
	if p == runsPart {
		turn = lockRuns
	}
	return &database{
		s: s, tenancy: t, part: p,
		enter: []any{t.schema(p) + ", pg_temp", t.identity}, lock: []any{int64(t.number), int64(turn)},
	}
}

var _ relational.Database = (*database)(nil)

const (
	// enterQuery opens a schema and its rows up to the end of the transaction.
	enterQuery = `SELECT set_config('search_path', ?, true), set_config('assay.tenant', ?, true)`
	beginRead  = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	beginWrite = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`
)

// Row implements relational.Database. It takes one round trip: the calls of an exchange are a
// transaction.
func (d *database) Row(ctx context.Context, query string, args []any, dest ...any) error {
	return d.reading(ctx, func(s *session) error {
		r, err := s.do(call{query: enterQuery, args: d.enter}, call{query: query, args: args, most: 1})
		if err != nil {
			return err
		}
		return r.scanFirst(dest)
	})
}

// reading calls fn with a connection, and again with another one if that was lost before fn got a
// reply.
func (d *database) reading(ctx context.Context, fn func(*session) error) error {
	for deadline := time.Now().Add(connectWait); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, release, err := d.s.acquire(ctx, d.s.reads)
		if err != nil {
			return err
		}
		err = fn(s)
		release()
		if !isLost(err) || time.Now().After(deadline) {
			return classify(err)
		}
	}
}

// View implements relational.Database.
func (d *database) View(ctx context.Context, fn func(relational.Reader) error) error {
	return d.reading(ctx, func(s *session) (err error) {
		v, limit := &snapshot{s: s}, s.limit
		s.prefix = []call{{query: beginRead}, {query: enterQuery, args: d.enter}}
		defer func() {
			s.limit = limit
			if len(s.prefix) > 0 { // fn read nothing
				s.prefix = nil
			} else if s.broken == nil {
				_, endErr := s.do(call{query: `ROLLBACK`})
				err = errors.Join(err, endErr)
			}
			if v.read { // fn cannot be called again
				err = final(err)
			}
		}()
		return fn(v)
	})
}

// final returns an error that is no lostError.
func final(err error) error {
	if !isLost(err) {
		return err
	}
	return fmt.Errorf("%w: %v", assay.ErrUnavailable, err)
}

// Updater implements relational.Database.
func (d *database) Updater(context.Context) (relational.Updater, error) {
	return &updater{d: d, turn: newTurn()}, nil
}

// Dialect implements relational.Database.
func (d *database) Dialect() relational.Dialect { return dialect{} }

// Name implements relational.Database.
func (d *database) Name() string { return string(d.part) }

// Close implements relational.Database. The connections are the store's.
func (d *database) Close() error { return nil }

// A snapshot is one committed state of a schema.
type snapshot struct {
	s    *session
	read bool // a query had a result
}

// Row implements relational.Reader.
func (v *snapshot) Row(ctx context.Context, query string, args []any, dest ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := v.s.row(query, args, dest)
	v.read = v.read || !isLost(err)
	return classify(err)
}

// Each implements relational.Reader.
func (v *snapshot) Each(ctx context.Context, query string, args []any, fn func(scan func(...any) error) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := v.s.each(ctx, query, args, func(scan func(...any) error) error {
		v.read = true
		return fn(scan)
	})
	v.read = v.read || !isLost(err)
	return classify(err)
}

// A dialect is that of PostgreSQL.
type dialect struct{}

// List implements relational.Dialect.
func (dialect) List(parameter string) string {
	return "(SELECT value, number - 1 AS key FROM json_array_elements_text(CAST(" + parameter + " AS json)) WITH ORDINALITY AS listed (value, number))"
}

// Member implements relational.Dialect. A text with a NUL, which PostgreSQL has not, counts as none.
func (dialect) Member(object, key string) string {
	member := "CAST(" + object + " AS json) -> '" + key + "'"
	return "CASE WHEN json_typeof(" + member + ") = 'string' AND position('\\u0000' IN CAST(" + member + " AS text)) = 0 " +
		"THEN CAST(" + object + " AS json) ->> '" + key + "' ELSE '' END"
}

// Unhex implements relational.Dialect.
func (dialect) Unhex(text string) string { return "decode(" + text + ", 'hex')" }

// Least implements relational.Dialect.
func (dialect) Least(a, b string) string { return "LEAST(" + a + ", " + b + ")" }

// Array implements relational.Dialect.
func (dialect) Array(query, column string) string {
	return "SELECT CAST(COALESCE(json_agg(listed." + column + "), '[]') AS text) FROM (" + query + ") listed"
}

// Newest implements relational.Dialect. A trigger counts the rows of waiting_acts.
func (dialect) Newest(table string) string { return "(SELECT " + table + " FROM store)" }

// wrap adds the operation that failed to err, and an error kind if it has none yet. It returns nil
// if err is nil.
func wrap(err error, format string, args ...any) error {
	return relational.Wrap(classify(err), format, args...)
}

// damaged returns an error of kind assay.ErrDamaged with a description.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), assay.ErrDamaged)
}

// invalid returns an error of kind assay.ErrInvalid with a description.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), assay.ErrInvalid)
}
