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
	"github.com/assay-rag/assay/store/internal/relational"
)

// A schema is the layout of one of the two databases: its application ID and the migrations from an
// empty file to the current layout. A database's user_version counts the migrations applied.
type schema struct {
	applicationID int32
	migrations    []string
}

// version returns the layout version that this program writes.
func (s schema) version() int { return len(s.migrations) }

// A mode is the way in which a database file is opened.
type mode int

const (
	modeCreate    mode = iota // the file does not exist yet
	modeWrite                 // read and write
	modeRead                  // read only; other processes may write
	modeImmutable             // read only, and no process writes
)

const (
	// readerWait bounds how long a reader waits while another process recovers or removes a
	// write-ahead log. Readers do not wait for anything else.
	readerWait = 10 * time.Second
	// writerWait bounds how long a change waits for other processes that write the same database.
	// Each of their transactions takes milliseconds.
	writerWait = 30 * time.Second
	// turnWait is how long SQLite waits for the write lock before the context is checked again.
	turnWait = 100 * time.Millisecond

	// walLimit is the size in bytes to which a write-ahead log is truncated after a large change.
	walLimit = 64 << 20
	// idleReaders is how many open connections are kept for later reads.
	idleReaders = 8
)

// A database is one SQLite file. Reads use a pool of connections, each of which sees one committed
// state. Changes use an updater.
//
// A context does not interrupt a statement. It is checked between statements, all of which are
// short, and never after a commit has begun. So an error always means that nothing was changed.
type database struct {
	path   string
	schema schema
	mode   mode
	pool   *sql.DB

	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

// openDatabase opens the file and migrates it to the current layout.
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
	d := &database{path: path, schema: s, mode: m, pool: pool, stmts: make(map[string]*sql.Stmt)}
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

// createPrivate creates an empty file that only its owner may read, unless the file exists. SQLite
// would create it readable by everyone. Its log files get the mode of the database.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// openPool returns a pool of connections to the file at path. It does not open the file before a
// connection is used.
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

// create initializes a new file.
func (d *database) create(ctx context.Context, s schema) error {
	if _, err := d.pool.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	return migrate(ctx, d.pool, s)
}

// check rejects a file that is foreign or newer than this program, and migrates an older one.
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

// readHeader reads the application ID and the layout version from a database's header.
func readHeader(ctx context.Context, q queryer) (applicationID int32, version int, err error) {
	if err := q.QueryRowContext(ctx, "PRAGMA application_id").Scan(&applicationID); err != nil {
		return 0, 0, err
	}
	err = q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return applicationID, version, err
}

// migrate applies the missing migrations in one transaction. Another process may be doing the same.
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

// prepared returns the statement for query and keeps it prepared.
func (d *database) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.stmts[query]; ok {
		return s, nil
	}
	s, err := d.pool.PrepareContext(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, classify(err)
	}
	d.stmts[query] = s
	return s, nil
}

// Row implements relational.Database.
func (d *database) Row(ctx context.Context, query string, args []any, dest ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, err := d.prepared(ctx, query)
	if err != nil {
		return err
	}
	return classify(s.QueryRowContext(context.WithoutCancel(ctx), args...).Scan(dest...))
}

// View implements relational.Database.
func (d *database) View(ctx context.Context, fn func(relational.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	tx, err := d.pool.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return classify(err)
	}
	err = fn(snapshot{d: d, tx: tx})
	return errors.Join(err, tx.Rollback())
}

// Close implements relational.Database.
func (d *database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, s := range d.stmts {
		errs = append(errs, s.Close())
	}
	clear(d.stmts)
	return wrap(errors.Join(append(errs, d.pool.Close())...), "close %s", d.path)
}

// A snapshot is one committed state of a database.
type snapshot struct {
	d  *database
	tx *sql.Tx
}

// Row implements relational.Reader.
func (s snapshot) Row(ctx context.Context, query string, args []any, dest ...any) error {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return err
	}
	return classify(stmt.QueryRowContext(context.WithoutCancel(ctx), args...).Scan(dest...))
}

// Each implements relational.Reader.
func (s snapshot) Each(ctx context.Context, query string, args []any, fn func(scan func(...any) error) error) error {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return classify(err)
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
	return errors.Join(err, classify(rows.Err()), rows.Close())
}

// Updater implements relational.Database.
func (d *database) Updater(ctx context.Context) (relational.Updater, error) {
	if d.mode != modeWrite {
		return nil, wrap(assay.ErrReadOnly, "write %s", d.path)
	}
	u, err := openUpdater(ctx, d)
	if err != nil {
		return nil, err
	}
	return u, nil
}

// Dialect implements relational.Database.
func (d *database) Dialect() relational.Dialect { return dialect{} }

// Name implements relational.Database.
func (d *database) Name() string { return filepath.Base(d.path) }

// A dialect is that of SQLite.
type dialect struct{}

// List implements relational.Dialect.
func (dialect) List(parameter string) string { return "json_each(" + parameter + ")" }

// Member implements relational.Dialect.
func (dialect) Member(object, key string) string {
	return fmt.Sprintf("CASE WHEN json_type(%[1]s, '$.%[2]s') = 'text' THEN %[1]s ->> '$.%[2]s' ELSE '' END", object, key)
}

// Unhex implements relational.Dialect.
func (dialect) Unhex(text string) string { return "unhex(" + text + ")" }

// Least implements relational.Dialect.
func (dialect) Least(a, b string) string { return "MIN(" + a + ", " + b + ")" }

// Array implements relational.Dialect.
func (dialect) Array(query, column string) string {
	return "SELECT json_group_array(" + column + ") FROM (" + query + ")"
}

// Newest implements relational.Dialect. The table counts its rows by AUTOINCREMENT.
func (dialect) Newest(table string) string {
	return "COALESCE((SELECT seq FROM sqlite_sequence WHERE name = '" + table + "'), 0)"
}
