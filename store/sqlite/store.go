// Package sqlite stores documents and runs in a data directory on one machine, in two SQLite
// databases per tenant. A [Store] is the directory, and implements store.Store.
//
//	assay.json                marker with the program and the format
//	system.db                 the tenants, API keys and what else the store keeps about itself
//	tenants.lock              held while tenants are created, changed or deleted
//	tenants/NAME/content.db   documents, versions, chunks, vectors
//	tenants/NAME/runs.db      runs, their journals, the versions they cite
//	tenants/NAME/writer.lock  held by the content's writer
//	tenants/NAME/leases/      a locked file per process that drives runs
//	tenants/NAME/index/       the index that a caller derives from the content
//	tenants/NAME/LOCK.lock    another lock
//	tenants/NAME/SETTING.json a setting
package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

const (
	markerName  = "assay.json"
	tenantsName = "tenants"

	// tenantsLockName is locked by the process that changes the set of tenants.
	tenantsLockName = "tenants.lock"

	// program and format are the content of the marker.
	program = "assay"
	format  = 1

	// unfinished is the prefix of the names of files and folders under creation. They are renamed
	// when they are complete.
	unfinished = ".new-"

	// leasesName is the folder of the files of processes that hold leases.
	leasesName = "leases"

	lockSuffix = ".lock"

	// removed is the prefix of the names of the folders of deleted tenants, which are being removed.
	removed = ".gone-"
)

// A Store is a data directory. It keeps no files open; its tenants do. It is safe for concurrent
// use.
type Store struct {
	dir  string
	opts relational.Options
}

// An Option changes a default of Open.
type Option struct{ set func(*relational.Options) }

// WithClock sets the clock, which is time.Now by default. Leases, the times of runs and Prune use
// it.
func WithClock(now func() time.Time) Option {
	return Option{func(o *relational.Options) { o.Now = now }}
}

// WithLeaseTime sets how long the lease of a process on another machine counts after its last
// renewal; the default is 30 seconds. Leases are renewed three times as often.
func WithLeaseTime(d time.Duration) Option {
	return Option{func(o *relational.Options) { o.LeaseTime = d }}
}

// Open opens the data directory at dir. It creates one if dir is missing or empty. If the directory
// contains anything else, the error is assay.ErrForeign and nothing is written. The error is
// assay.ErrNewer for a later format and assay.ErrDamaged if parts are missing. A read-only
// directory is opened for reading.
func Open(ctx context.Context, dir string, opts ...Option) (*Store, error) {
	o := relational.DefaultOptions()
	for _, opt := range opts {
		opt.set(&o)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, invalid("open data directory: its path is empty")
	}
	if err := openDirectory(dir); err != nil {
		return nil, wrap(err, "open data directory %s", dir)
	}
	return &Store{dir: dir, opts: o}, nil
}

var _ store.Store = (*Store)(nil)

// Dir returns the data directory's path.
func (s *Store) Dir() string { return s.dir }

// Close implements store.Store. A Store keeps nothing open.
func (s *Store) Close() error { return nil }

// A marker is the content of assay.json.
type marker struct {
	Program string `json:"program"`
	Format  int    `json:"format"`
}

// openDirectory checks that dir is a data directory, or creates one.
func openDirectory(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, markerName))
	if err == nil {
		return checkMarked(dir, b)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
			return invalid("it is not a directory")
		}
		return err
	}
	if err := checkUnmarked(dir); err != nil {
		if b, readErr := os.ReadFile(filepath.Join(dir, markerName)); readErr == nil {
			return checkMarked(dir, b) // another process has just created it
		}
		return err
	}
	return createDirectory(dir)
}

// checkMarked checks a directory that has a marker.
func checkMarked(dir string, content []byte) error {
	var m marker
	if err := json.Unmarshal(content, &m); err != nil {
		return damaged("%s is not JSON", markerName)
	}
	switch {
	case m.Program != program:
		return fmt.Errorf("%s names the program %q: %w", markerName, m.Program, assay.ErrForeign)
	case m.Format > format:
		return fmt.Errorf("its format is %d, this program knows up to %d: %w", m.Format, format, assay.ErrNewer)
	case m.Format < 1:
		return damaged("%s names the format %d", markerName, m.Format)
	}
	info, err := os.Stat(filepath.Join(dir, tenantsName))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return damaged("its folder %s is missing", tenantsName)
	}
	return err
}

// checkUnmarked rejects a directory without a marker unless it is empty, missing, or left by an
// interrupted creation.
func checkUnmarked(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	inside, err := os.ReadDir(filepath.Join(dir, tenantsName))
	if err == nil && holdsTenants(dir, inside) {
		return damaged("its marker %s is missing", markerName)
	}
	system := false
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), systemName) { // or its log
			system = true
			continue
		}
		if e.Name() == tenantsName && err == nil && len(inside) == 0 {
			continue
		}
		if !strings.HasPrefix(e.Name(), unfinished) {
			return fmt.Errorf("it holds %s but no %s: %w", e.Name(), markerName, assay.ErrForeign)
		}
	}
	if system {
		return damaged("its marker %s is missing", markerName)
	}
	return nil
}

// holdsTenants reports whether one of the folders looks like a tenant.
func holdsTenants(dir string, folders []fs.DirEntry) bool {
	return slices.ContainsFunc(folders, func(e fs.DirEntry) bool {
		for _, name := range []string{contentName, runsName} {
			if _, err := os.Stat(filepath.Join(dir, tenantsName, e.Name(), name)); err == nil {
				return true
			}
		}
		return false
	})
}

// createDirectory makes dir a data directory that only its owner may read, even if the folder
// exists. It writes the marker last. Other processes may be doing the same.
func createDirectory(dir string) error {
	tenants := filepath.Join(dir, tenantsName)
	if err := os.MkdirAll(tenants, 0o700); err != nil {
		return err
	}
	for _, folder := range []string{dir, tenants} {
		if err := os.Chmod(folder, 0o700); err != nil {
			return err
		}
	}
	b, err := json.Marshal(marker{Program: program, Format: format})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, unfinished+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, markerName))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return errors.Join(syncDirectory(dir), syncDirectory(filepath.Dir(dir)))
}

// KeepReplaced is how long a replaced or deleted version is kept, whether it is cited or not.
const KeepReplaced = relational.KeepReplaced
