package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// systemName is the database of what the store keeps about itself. Its layout is that of runs.db, of
// which it uses the audit log and the registry.
const systemName = "system.db"

// System implements store.Store.
func (s *Store) System(ctx context.Context) (store.System, error) {
	path := filepath.Join(s.dir, systemName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := s.createSystem(ctx, path); err != nil {
			return nil, wrap(err, "create %s", path)
		}
	}
	m := modeWrite
	if !writable(s.dir) || !writable(path) {
		m = modeImmutable
		if hasLog(path) {
			m = modeRead
		}
	}
	db, err := openDatabase(ctx, path, runsSchema, m)
	if err != nil {
		return nil, wrap(err, "open %s", path)
	}
	return relational.NewSystem(relational.SystemConfig{Database: db, Options: s.opts, CheckTenants: s.checkFolders}), nil
}

// createSystem creates the database under a temporary name and links it, so that an existing one is
// always complete and never replaced.
func (s *Store) createSystem(ctx context.Context, path string) (err error) {
	if !writable(s.dir) {
		return fmt.Errorf("%w: %w", assay.ErrNotFound, assay.ErrReadOnly)
	}
	temp, err := os.MkdirTemp(s.dir, unfinished+"system-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	made := filepath.Join(temp, systemName)
	if err := createDatabase(ctx, made, runsSchema, rand.Text()); err != nil {
		return err
	}
	if err := os.Link(made, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDirectory(s.dir)
}
