package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-rag/assay"
)

// A schema is how one of the two databases is laid out: its mark in the file's
// header and the steps that lead from an empty file to the current layout. A
// database's user_version counts the steps it has taken.
type schema struct {
	applicationID int32
	migrations    []string
}

// version is the layout that this program writes.
func (s schema) version() int { return len(s.migrations) }

// A mode says how a database file is opened.
type mode int

const (
	modeCreate    mode = iota // the file does not exist yet
	modeWrite                 // read and write
	modeRead                  // read only; other processes may write
	modeImmutable             // read only, and nobody writes
)

const (
	// readerWait bounds how long a reader waits while another process recovers
	// or removes a write-ahead log; nothing else makes a reader wait.
	readerWait = 10 * time.Second
	// writerWait bounds how long a change waits for the other processes that
	// write the same database; each of their turns takes milliseconds.
	writerWait = 30 * time.Second
	// turnWait is how long SQLite waits for its turn before the context is
	// looked at again.
	turnWait = 100 * time.Millisecond

	// walLimit is what a write-ahead log may keep of the disk after a large
	// change, in bytes.
	walLimit = 64 << 20
	// idleReaders is how many open connections are kept for the next readers.
	idleReaders = 8
)

// A database is one SQLite file. Reads go through a pool of connections, each
// of which sees one committed state; changes through an updater.
//
// No statement is interrupted by a context: a context is looked at between
// statements, each of which is short, and never after a commit has begun, so
// that an error always means that nothing was changed.
type database struct {
	path string
	mode mode
	pool *sql.DB

	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

// openDatabase opens the file and brings its layout up to date.
func openDatabase(ctx context.Context, path string, s schema, m mode) (*database, error) {
	if m == modeCreate {
		if err := createPrivate(path); err != nil {
			return nil, wrap(err, "create %s", path)
		}
	}
	pool, err := openPool(path, m, m != modeCreate, readerWait)
	if err != nil {
		return nil, err
	}
	pool.SetMaxIdleConns(idleReaders)
	d := &database{path: path, mode: m, pool: pool, stmts: make(map[string]*sql.Stmt)}
	if m == modeCreate {
		err = d.create(ctx, s)
	} else {
		err = d.check(ctx, s)
	}
	if code, ok := resultCode(err); ok && code&0xff == sqlite3.SQLITE_CANTOPEN && m == modeRead {
		err = fmt.Errorf("its write-ahead log cannot be read without writing beside it: %w: %w", assay.ErrReadOnly, err)
	}
	if err != nil {
		return nil, errors.Join(wrap(err, "open %s", path), pool.Close())
	}
	return d, nil
}

// createPrivate creates an empty file that only its owner may read, unless the file exists.
// SQLite would create it for everybody; its log files get the mode of the database.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// openPool opens connections to the file at path. Nothing is read until one is
// used.
func openPool(path string, m mode, queryOnly bool, wait time.Duration) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	slashed := filepath.ToSlash(abs)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/data
	}
	q := url.Values{}
	q.Set("mode", map[mode]string{modeCreate: "rwc", modeWrite: "rw", modeRead: "ro", modeImmutable: "ro"}[m])
	if m == modeImmutable {
		q.Set("immutable", "1")
	}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()))
	q.Add("_pragma", "foreign_keys(1)")
	q.Add("_pragma", "synchronous(FULL)")
	q.Add("_pragma", "temp_store(MEMORY)")
	q.Add("_pragma", fmt.Sprintf("journal_size_limit(%d)", walLimit))
	if queryOnly {
		q.Add("_pragma", "query_only(1)")
	}
	u := url.URL{Scheme: "file", Path: slashed, RawQuery: q.Encode()}
	c, err := driver.NewConnector(u.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return sql.OpenDB(c), nil
}

// create lays out a new file.
func (d *database) create(ctx context.Context, s schema) error {
	if _, err := d.pool.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	return migrate(ctx, d.pool, s)
}

// check refuses a file that is not ours or newer than this program, and
// migrates an older one.
func (d *database) check(ctx context.Context, s schema) error {
	id, version, err := readHeader(ctx, d.pool)
	switch {
	case err != nil:
		return err
	case id == 0 && version == 0 && emptyFile(d.path):
		return damaged("the file is empty")
	case id != s.applicationID:
		return fmt.Errorf("application ID %#x, want %#x: %w", uint32(id), uint32(s.applicationID), assay.ErrForeign)
	case version > s.version():
		return fmt.Errorf("layout %d, this program knows up to %d: %w", version, s.version(), assay.ErrNewer)
	case version == s.version():
		return nil
	case d.mode != modeWrite:
		return fmt.Errorf("layout %d must be brought up to %d first: %w", version, s.version(), assay.ErrReadOnly)
	}
	pool, err := openPool(d.path, modeWrite, false, writerWait)
	if err != nil {
		return err
	}
	return errors.Join(migrate(ctx, pool, s), pool.Close())
}

func emptyFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() == 0
}

// A queryer is a pool, a connection or a transaction.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readHeader reads the marks that a database carries in its header.
func readHeader(ctx context.Context, q queryer) (applicationID int32, version int, err error) {
	if err := q.QueryRowContext(ctx, "PRAGMA application_id").Scan(&applicationID); err != nil {
		return 0, 0, err
	}
	err = q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return applicationID, version, err
}

// migrate takes the steps that a database lacks, in one transaction. Another
// process may be doing the same.
func migrate(ctx context.Context, pool *sql.DB, s schema) (err error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err = func() error {
		_, version, err := readHeader(ctx, conn)
		if err != nil {
			return err
		}
		for i := version; i < s.version(); i++ {
			if _, err := conn.ExecContext(ctx, s.migrations[i]); err != nil {
				return fmt.Errorf("migrate to layout %d: %w", i+1, err)
			}
		}
		marks := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", s.applicationID, max(version, s.version()))
		_, err = conn.ExecContext(ctx, marks)
		return err
	}()
	end := "COMMIT"
	if err != nil {
		end = "ROLLBACK"
	}
	_, endErr := conn.ExecContext(context.WithoutCancel(ctx), end)
	return errors.Join(err, endErr)
}

// prepared returns the statement for query, which stays prepared.
func (d *database) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.stmts[query]; ok {
		return s, nil
	}
	s, err := d.pool.PrepareContext(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	d.stmts[query] = s
	return s, nil
}

// row reads the one row of query into dest; sql.ErrNoRows when there is none.
func (d *database) row(ctx context.Context, query string, args []any, dest ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, err := d.prepared(ctx, query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(context.WithoutCancel(ctx), args...).Scan(dest...)
}

// view calls fn with one committed state of the database.
func (d *database) view(ctx context.Context, fn func(snapshot) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	tx, err := d.pool.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	err = fn(snapshot{d: d, tx: tx})
	return errors.Join(err, tx.Rollback())
}

// close releases the pool.
func (d *database) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, s := range d.stmts {
		errs = append(errs, s.Close())
	}
	clear(d.stmts)
	return wrap(errors.Join(append(errs, d.pool.Close())...), "close %s", d.path)
}

// A reader reads rows: a snapshot, a change under way, or a migration.
type reader interface {
	// each calls fn for each row of query, with what reads the row's columns.
	each(ctx context.Context, query string, args []any, fn func(scan func(...any) error) error) error
}

// A snapshot is one committed state of a database.
type snapshot struct {
	d  *database
	tx *sql.Tx
}

// row reads the one row of query into dest; sql.ErrNoRows when there is none.
func (s snapshot) row(ctx context.Context, query string, args []any, dest ...any) error {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(context.WithoutCancel(ctx), args...).Scan(dest...)
}

// each calls fn for each row of query, with what reads the row's columns.
func (s snapshot) each(ctx context.Context, query string, args []any, fn func(scan func(...any) error) error) error {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return err
	}
	return eachRow(ctx, rows, fn)
}

func (s snapshot) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	stmt, err := s.d.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.tx.StmtContext(context.WithoutCancel(ctx), stmt), nil
}

func eachRow(ctx context.Context, rows *sql.Rows, fn func(scan func(...any) error) error) error {
	var err error
	for err == nil && rows.Next() {
		if err = ctx.Err(); err == nil {
			err = fn(rows.Scan)
		}
	}
	return errors.Join(err, rows.Err(), rows.Close())
}
