package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// keepName is the file whose lock keeps everything that a copy of the tenant may need. Copies share
// it. What drops a version or an act that waits holds it alone.
const keepName = "keep.lock"

// copyWait is the time between two attempts to take a lock that is held for one transaction.
const copyWait = 10 * time.Millisecond

// lockKept takes the lock that dropping needs. ok is false while the tenant is copied.
func lockKept(dir string) (unlock func() error, ok bool, err error) {
	f := flock.New(filepath.Join(dir, keepName), flock.SetPermissions(0o600))
	ok, err = f.TryLock()
	if err != nil || !ok {
		return nil, false, errors.Join(wrap(err, "lock %s", f.Path()), f.Close())
	}
	return f.Unlock, true, nil
}

// CopyProgress is called during a copy with the number of bytes that were written since the last call.
// It may be nil.
type CopyProgress func(bytes int64)

// CopyTenant copies a tenant's data to a folder, which must exist: content.db, runs.db and the
// settings, without the index, the locks and the leases. Other processes may ask and ingest
// meanwhile. It returns the word that identifies the tenant, and the names of the files.
//
// Each database is copied as one committed state, runs.db first. Two facts make the pair whole:
//
//   - content.db is the later one, so it has every version that a run of the copy read or cites, and
//     every act that had reached the log of the copy was made to it before.
//   - While the tenant is copied, no version is dropped from content.db, and no act that waits there.
//     So a version whose last run is deleted meanwhile is in the copy, and an act that reaches the
//     log meanwhile still waits in the copy. Its number is above that in runs.db, so the copy moves
//     it to its log, once.
func (s *Store) CopyTenant(ctx context.Context, name, dir string, progress CopyProgress) (word string, files []string, err error) {
	word, files, err = s.copyTenant(ctx, name, dir, progress)
	return word, files, wrap(err, "copy tenant %s", name)
}

func (s *Store) copyTenant(ctx context.Context, name, dir string, progress CopyProgress) (string, []string, error) {
	if err := relational.CheckTenantName(name); err != nil {
		return "", nil, err
	}
	from := filepath.Join(s.dir, tenantsName, name)
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return "", nil, assay.ErrNotFound
	}
	if writable(from) {
		keep := flock.New(filepath.Join(from, keepName), flock.SetPermissions(0o600))
		if _, err := keep.TryRLockContext(ctx, copyWait); err != nil {
			return "", nil, errors.Join(err, keep.Close())
		}
		defer keep.Unlock()
	}
	for _, db := range []string{runsName, contentName} {
		if err := copyDatabase(ctx, filepath.Join(from, db), filepath.Join(dir, db), progress); err != nil {
			return "", nil, err
		}
	}
	settings, err := copySettings(from, dir)
	if err != nil {
		return "", nil, err
	}
	word, err := wordOf(ctx, filepath.Join(dir, contentName), contentSchema)
	return word, append([]string{contentName, runsName}, settings...), err
}

// CopySystem copies the database of what the store keeps about itself to a folder. copied is false
// if there is none yet.
func (s *Store) CopySystem(ctx context.Context, dir string, progress CopyProgress) (copied bool, err error) {
	from := filepath.Join(s.dir, systemName)
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	err = copyDatabase(ctx, from, filepath.Join(dir, systemName), progress)
	return err == nil, wrap(err, "copy %s", systemName)
}

// copyDatabase copies one committed state of a database without its free pages, durably. If ctx ends,
// the statement is interrupted.
func copyDatabase(ctx context.Context, from, to string, progress CopyProgress) (err error) {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := createPrivate(to); err != nil {
		return err
	}
	m := modeRead
	if !writable(filepath.Dir(from)) && !hasLog(from) {
		m = modeImmutable
	}
	pool, err := openPool(from, m, false, readerWait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() { defer close(stopped); reportGrowth(to, done, progress) }()
	_, err = pool.ExecContext(ctx, `VACUUM INTO ?`, to)
	close(done)
	<-stopped
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	return syncFile(to)
}

// reportGrowth calls progress with the growth of a file until done is closed.
func reportGrowth(path string, done <-chan struct{}, progress CopyProgress) {
	if progress == nil {
		return
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	var last int64
	report := func() {
		if info, err := os.Stat(path); err == nil && info.Size() > last {
			progress(info.Size() - last)
			last = info.Size()
		}
	}
	for {
		select {
		case <-done:
			report()
			return
		case <-ticker.C:
			report()
		}
	}
}

// copySettings copies the tenant's settings and returns the names of the files.
func copySettings(from, to string) ([]string, error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !isSetting(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if errors.Is(err, fs.ErrNotExist) { // removed just now
			continue
		}
		if err == nil {
			err = writePrivate(filepath.Join(to, e.Name()), data)
		}
		if err != nil {
			return nil, err
		}
		names = append(names, e.Name())
	}
	return names, nil
}

func isSetting(file string) bool {
	name, ok := strings.CutSuffix(file, ".json")
	return ok && relational.CheckFileName(name) == nil
}

// writePrivate durably writes a new file that only its owner may read.
func writePrivate(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// wordOf returns the word that identifies the tenant of a database which no process writes.
func wordOf(ctx context.Context, path string, s schema) (word string, err error) {
	d, err := openDatabase(ctx, path, s, modeImmutable)
	if err != nil {
		return "", err
	}
	err = d.Row(ctx, `SELECT tenant FROM store`, nil, &word)
	if errors.Is(err, sql.ErrNoRows) {
		err = damaged("%s has lost its first row", path)
	}
	return word, errors.Join(err, d.Close())
}

// CheckCopyName checks the path of a file in a copy of a data directory, with slashes: system.db, or
// a file of CopyTenant under tenants/NAME. It returns the tenant's name, which is empty for
// system.db.
func CheckCopyName(path string) (tenant string, err error) {
	if path == systemName {
		return "", nil
	}
	parts := strings.Split(path, "/")
	if len(parts) != 3 || parts[0] != tenantsName {
		return "", invalid("%q is no file of a data directory", path)
	}
	if err := relational.CheckTenantName(parts[1]); err != nil {
		return "", err
	}
	if !slices.Contains([]string{contentName, runsName}, parts[2]) && !isSetting(parts[2]) {
		return "", invalid("%q is no file of a tenant", path)
	}
	return parts[1], nil
}

// A CopiedTenant is a tenant in a copy of a data directory.
type CopiedTenant struct{ Name, Word string }

// AdoptCopy makes a folder with the files of CopyTenant, under tenants/NAME, and CopySystem a data
// directory. It checks every page of the databases (PRAGMA integrity_check) and that they are those
// of the tenants. It removes the leases, and appends act to each log. The error is assay.ErrDamaged,
// assay.ErrForeign or assay.ErrNewer if a file is not the right one.
func AdoptCopy(ctx context.Context, dir string, tenants []CopiedTenant, act store.Act) error {
	for _, t := range tenants {
		folder := filepath.Join(dir, tenantsName, t.Name)
		for _, db := range []struct {
			name   string
			schema schema
		}{{contentName, contentSchema}, {runsName, runsSchema}} {
			path := filepath.Join(folder, db.name)
			if err := adoptDatabase(ctx, path, db.schema, t.Word); err != nil {
				return wrap(err, "tenant %s: %s", t.Name, db.name)
			}
		}
		if err := errors.Join(os.Mkdir(filepath.Join(folder, leasesName), 0o700), syncDirectory(folder)); err != nil {
			return wrap(err, "tenant %s", t.Name)
		}
	}
	if path := filepath.Join(dir, systemName); fileExists(path) {
		if err := adoptDatabase(ctx, path, runsSchema, ""); err != nil {
			return wrap(err, "%s", systemName)
		}
	}
	if err := createDirectory(dir); err != nil {
		return err
	}
	return appendEverywhere(ctx, dir, tenants, act)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// adoptDatabase checks a copied database and brings it into write-ahead mode. An empty word is not
// compared.
func adoptDatabase(ctx context.Context, path string, s schema, word string) error {
	got, err := wordOf(ctx, path, s)
	if err != nil {
		return err
	}
	if word != "" && got != word {
		return damaged("it is of another tenant")
	}
	pool, err := openPool(path, modeWrite, false, writerWait)
	if err != nil {
		return err
	}
	err = checkPages(ctx, pool)
	if err == nil {
		_, err = pool.ExecContext(ctx, "PRAGMA journal_mode = WAL")
	}
	if err == nil && s.applicationID == runsSchema.applicationID {
		_, err = pool.ExecContext(ctx, `
UPDATE progress SET token = NULL, owner = NULL, pid = NULL, machine = NULL, boot = NULL, expires = NULL WHERE token IS NOT NULL`)
	}
	return errors.Join(err, pool.Close())
}

// checkPages checks every page, index and constraint of a database.
func checkPages(ctx context.Context, pool *sql.DB) error {
	var found string
	if err := pool.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return damaged("%s", found)
	}
	var table string
	err := pool.QueryRowContext(ctx, `SELECT "table" FROM pragma_foreign_key_check LIMIT 1`).Scan(&table)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return damaged("a row of %s has no parent", table)
}

// appendEverywhere appends an act to the logs of the tenants and of the system.
func appendEverywhere(ctx context.Context, dir string, tenants []CopiedTenant, act store.Act) error {
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	appendTo := func(log store.Audit, c io.Closer) error { return errors.Join(log.Append(ctx, act), c.Close()) }
	for _, t := range tenants {
		opened, err := s.Tenant(ctx, t.Name)
		if err == nil {
			err = appendTo(opened.Audit(), opened)
		}
		if err != nil {
			return fmt.Errorf("tenant %s: %w", t.Name, err)
		}
	}
	system, err := s.System(ctx)
	if err != nil {
		return err
	}
	return appendTo(system.Audit(), system)
}
