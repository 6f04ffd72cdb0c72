package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

const (
	contentName = "content.db"
	runsName    = "runs.db"
	indexName   = "index"
)

// A Tenant is one tenant's data. It implements store.Tenant.
type Tenant struct {
	*rows // nil until open has succeeded

	name     string
	dir      string
	opts     relational.Options
	readOnly bool
	content  *database
	runs     *database
	identity string // the random word in both databases
}

// rows is what a tenant has in its tables.
type rows = relational.Tenant

var _ store.Tenant = (*Tenant)(nil)

// createDatabase creates a database for the tenant identified by this word.
func createDatabase(ctx context.Context, path string, s schema, word string) error {
	d, err := openDatabase(ctx, path, s, modeCreate)
	if err != nil {
		return err
	}
	_, err = d.pool.ExecContext(ctx, `INSERT INTO store (id, tenant, sequence) VALUES (1, ?, 0)`, word)
	return errors.Join(err, d.Close())
}

// open opens the two databases and checks that they belong together.
func (t *Tenant) open(ctx context.Context) error {
	for _, name := range []string{contentName, runsName} {
		if _, err := os.Stat(filepath.Join(t.dir, name)); errors.Is(err, fs.ErrNotExist) {
			return damaged("%s is missing", filepath.Join(t.dir, name))
		} else if err != nil {
			return err
		}
	}
	var err error
	if t.content, err = t.openDatabase(ctx, contentName, contentSchema); err != nil {
		return err
	}
	if t.runs, err = t.openDatabase(ctx, runsName, runsSchema); err != nil {
		return err
	}
	words := make([]string, 2)
	for i, d := range []*database{t.content, t.runs} {
		err := d.Row(ctx, `SELECT tenant FROM store`, nil, &words[i])
		if errors.Is(err, sql.ErrNoRows) {
			return damaged("%s has lost its first row", d.path)
		}
		if err != nil {
			return wrap(err, "open %s", d.path)
		}
	}
	if words[0] != words[1] {
		return damaged("%s and %s do not belong together", contentName, runsName)
	}
	t.identity = words[0]
	t.rows = relational.NewTenant(relational.Config{
		Name: t.name, Content: t.content, Runs: t.runs, Place: place{t}, ReadOnly: t.readOnly, Options: t.opts,
	})
	return nil
}

// A place is a tenant's folder. It implements relational.Place.
type place struct{ t *Tenant }

// Name implements relational.Place.
func (p place) Name() string { return p.t.dir }

// LockWriter implements relational.Place.
func (p place) LockWriter(ctx context.Context) (relational.Updater, func() error, error) {
	lock, err := lockWriter(p.t.dir)
	if err != nil {
		return nil, nil, err
	}
	u, err := openUpdater(ctx, p.t.content)
	if err != nil {
		return nil, nil, errors.Join(err, lock.release())
	}
	return u, lock.release, nil
}

// LockKept implements relational.Place.
func (p place) LockKept(context.Context) (unlock func() error, ok bool, err error) {
	return lockKept(p.t.dir)
}

// Leases implements relational.Place.
func (p place) Leases() string { return filepath.Join(p.t.dir, leasesName) }

// openDatabase opens one of the databases in the best mode that file permissions allow.
func (t *Tenant) openDatabase(ctx context.Context, name string, s schema) (*database, error) {
	path := filepath.Join(t.dir, name)
	m := modeWrite
	if !writable(t.dir) || !writable(path) {
		t.readOnly = true
		m = modeImmutable
		if hasLog(path) {
			m = modeRead
		}
	}
	return openDatabase(ctx, path, s, m)
}

// hasLog reports whether a write-ahead log or its index exists beside the database. If not, the
// file alone is the whole database, and no process has it open.
func hasLog(path string) bool {
	wal, err := os.Stat(path + "-wal")
	if err == nil && wal.Size() > 0 {
		return true
	}
	_, err = os.Stat(path + "-shm")
	return err == nil
}

// IndexDir implements store.Tenant. The folder is beside the content.
func (t *Tenant) IndexDir() string { return filepath.Join(t.dir, indexName) }

// Check implements store.Tenant.
func (t *Tenant) Check(ctx context.Context) error {
	for _, d := range []*database{t.content, t.runs} {
		var found string
		err := d.Row(ctx, `PRAGMA quick_check(1)`, nil, &found)
		if err == nil && found != "ok" {
			err = damaged("%s", found)
		}
		if err != nil {
			return wrap(err, "check %s", d.path)
		}
	}
	return nil
}

// Size implements store.Tenant. It counts the files of the databases with their write-ahead logs.
func (t *Tenant) Size(ctx context.Context) (store.Size, error) {
	if err := ctx.Err(); err != nil {
		return store.Size{}, err
	}
	content, err := databaseSize(filepath.Join(t.dir, contentName))
	if err != nil {
		return store.Size{}, wrap(err, "size of tenant %s", t.name)
	}
	runs, err := databaseSize(filepath.Join(t.dir, runsName))
	return store.Size{Content: content, Runs: runs}, wrap(err, "size of tenant %s", t.name)
}

// databaseSize adds up the sizes of a database and of its log, which may not exist.
func databaseSize(path string) (int64, error) {
	var sum int64
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if errors.Is(err, fs.ErrNotExist) && suffix != "" {
			continue
		}
		if err != nil {
			return 0, err
		}
		sum += info.Size()
	}
	return sum, nil
}

// Close implements store.Tenant. Closing twice is allowed.
func (t *Tenant) Close() error {
	if t.rows != nil {
		return t.rows.Close()
	}
	var errs []error
	for _, d := range []*database{t.content, t.runs} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	return wrap(errors.Join(errs...), "close tenant %s", t.name)
}

// Scrub implements store.Tenant. It rewrites the databases without the pages that were freed, and
// empties the write-ahead logs.
func (t *Tenant) Scrub(ctx context.Context, content bool) error {
	if err := t.CheckWritable(); err != nil {
		return err
	}
	names := []string{runsName}
	if content {
		names = append(names, contentName)
	}
	for _, name := range names {
		if err := scrubDatabase(ctx, filepath.Join(t.dir, name)); err != nil {
			return wrap(err, "remove erased bytes from %s", name)
		}
	}
	return nil
}

// scrubDatabase vacuums a database and truncates its write-ahead log. Readers of an older state keep
// the log; then the error is assay.ErrLocked.
func scrubDatabase(ctx context.Context, path string) error {
	pool, err := openPool(path, modeWrite, false, writerWait)
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, `VACUUM`)
	var busy, frames, moved int
	if err == nil {
		err = pool.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved)
	}
	if err == nil && busy != 0 {
		err = fmt.Errorf("another process still reads its log: %w", assay.ErrLocked)
	}
	if isBusy(err) {
		err = fmt.Errorf("%w: %w", assay.ErrLocked, err)
	}
	return errors.Join(err, pool.Close())
}
