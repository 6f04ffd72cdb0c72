package sqlite

import (
	"context"
	"crypto/rand"
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

	mu      sync.Mutex
	updater *updater // of runs; nil until the first write to a run
	owner   *owner   // nil until a lease is first taken
}

var _ store.Tenant = (*Tenant)(nil)

// Tenant implements store.Store. The returned store.Tenant is a *Tenant. A name of a Windows device
// is assay.ErrInvalid too. In a read-only directory, existing tenants can be opened for reading;
// anything else is assay.ErrReadOnly.
func (s *Store) Tenant(ctx context.Context, name string) (store.Tenant, error) {
	t, err := s.tenant(ctx, name)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (s *Store) tenant(ctx context.Context, name string) (*Tenant, error) {
	if err := checkTenantName(name); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, tenantsName, name)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := s.createTenant(ctx, name, dir); err != nil {
			return nil, wrap(err, "create tenant %s", name)
		}
	}
	t := &Tenant{name: name, dir: dir, opts: s.opts}
	if err := t.open(ctx); err != nil {
		return nil, errors.Join(wrap(err, "open tenant %s", name), t.Close())
	}
	return t, nil
}

// createTenant creates a tenant under a temporary name and renames it, so that an existing tenant
// is always complete.
func (s *Store) createTenant(ctx context.Context, name, dir string) error {
	temp, err := os.MkdirTemp(filepath.Dir(dir), unfinished+name+"-*")
	if err != nil {
		return err
	}
	word := rand.Text()
	err = errors.Join(
		createDatabase(ctx, filepath.Join(temp, contentName), contentSchema, word),
		createDatabase(ctx, filepath.Join(temp, runsName), runsSchema, word),
		os.Mkdir(filepath.Join(temp, leasesName), 0o700),
	)
	if err == nil {
		err = syncDirectory(temp)
	}
	if err == nil {
		err = os.Rename(temp, dir)
	}
	if err == nil {
		return syncDirectory(filepath.Dir(dir))
	}
	err = errors.Join(err, os.RemoveAll(temp))
	if _, statErr := os.Stat(dir); statErr == nil {
		return nil // another process was faster
	}
	return err
}

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
