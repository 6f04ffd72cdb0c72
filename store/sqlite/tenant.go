package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

const (
	contentName = "content.db"
	runsName    = "runs.db"
	indexName   = "index"
)

// A Tenant is one tenant's data. It implements store.Tenant.
type Tenant struct {
	name     string
	dir      string
	opts     options
	readOnly bool
	content  *database
	runs     *database
	identity string // the random word in both databases

	mu      sync.Mutex
	updater *updater // of runs; nil until the first write to a run
	owner   *owner   // nil until a lease is first taken
}

var _ store.Tenant = (*Tenant)(nil)

// createDatabase creates a database for the tenant identified by this word.
func createDatabase(ctx context.Context, path string, s schema, word string) error {
	d, err := openDatabase(ctx, path, s, modeCreate)
	if err != nil {
		return err
	}
	_, err = d.pool.ExecContext(ctx, `INSERT INTO store (id, tenant, sequence) VALUES (1, ?, 0)`, word)
	return errors.Join(err, d.close())
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
		err := d.row(ctx, `SELECT tenant FROM store`, nil, &words[i])
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
	return nil
}

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

// Name implements store.Tenant.
func (t *Tenant) Name() string { return t.name }

// ReadOnly implements store.Tenant.
func (t *Tenant) ReadOnly() bool { return t.readOnly }

// IndexDir implements store.Tenant. The folder is beside the content.
func (t *Tenant) IndexDir() string { return filepath.Join(t.dir, indexName) }

// Content implements store.Tenant.
func (t *Tenant) Content() store.Content { return content{t.content} }

// Runs implements store.Tenant.
func (t *Tenant) Runs() store.Runs { return runs{t} }

// Audit implements store.Tenant.
func (t *Tenant) Audit() store.Audit { return t.auditLog() }

// Registry implements store.Tenant.
func (t *Tenant) Registry() store.Registry { return registry{t.auditLog()} }

func (t *Tenant) auditLog() auditLog {
	return auditLog{d: t.runs, updater: t.runsUpdater, now: t.now, collect: t.collectActs, content: t.content, maxOffers: t.opts.maxOffers}
}

// Writer implements store.Tenant.
func (t *Tenant) Writer(ctx context.Context) (store.Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := t.checkWritable(); err != nil {
		return nil, err
	}
	lock, err := lockWriter(t.dir)
	if err != nil {
		return nil, err
	}
	u, err := openUpdater(ctx, t.content)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	return &writer{content: content{t.content}, tenant: t, lock: lock, u: u}, nil
}

// Check implements store.Tenant.
func (t *Tenant) Check(ctx context.Context) error {
	for _, d := range []*database{t.content, t.runs} {
		var found string
		err := d.row(ctx, `PRAGMA quick_check(1)`, nil, &found)
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
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	if t.updater != nil {
		errs = append(errs, t.updater.close())
		t.updater = nil
	}
	if t.owner != nil {
		errs = append(errs, t.owner.close())
		t.owner = nil
	}
	for _, d := range []*database{t.content, t.runs} {
		if d != nil {
			errs = append(errs, d.close())
		}
	}
	return wrap(errors.Join(errs...), "close tenant %s", t.name)
}

func (t *Tenant) now() time.Time { return t.opts.now() }

func (t *Tenant) checkWritable() error {
	if t.readOnly {
		return fmt.Errorf("write %s: %w", t.dir, assay.ErrReadOnly)
	}
	return nil
}

// runsUpdater returns the updater of runs.db.
func (t *Tenant) runsUpdater(ctx context.Context) (*updater, error) {
	if err := t.checkWritable(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.updater == nil {
		u, err := openUpdater(ctx, t.runs)
		if err != nil {
			return nil, err
		}
		t.updater = u
	}
	return t.updater, nil
}
