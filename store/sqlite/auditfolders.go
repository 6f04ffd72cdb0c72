package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// checkFolders compares the folders of tenants with the entries in the system's registry, and reports
// entries without a folder, folders without an entry, and folders of another tenant. A difference that
// is gone when it is looked at again was a change in progress.
func (s *Store) checkFolders(ctx context.Context, r store.Registry, report func(sequence int64, object, format string, args ...any)) error {
	names, err := s.folders()
	if err != nil {
		return err
	}
	items, err := r.Items(ctx, store.TenantKind)
	if err != nil {
		return err
	}
	for _, item := range items {
		info, err := store.TenantOf(item)
		if err != nil {
			report(0, "tenant "+item.Name, "%v", err)
			continue
		}
		delete(names, item.Name)
		if info.State == store.TenantDeleting {
			continue
		}
		problem := s.folderProblem(ctx, info)
		if problem == "" {
			continue
		}
		again, err := store.LookTenant(ctx, r, item.Name)
		if errors.Is(err, assay.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if problem = s.folderProblem(ctx, again); problem != "" {
			report(0, "tenant "+item.Name, "%s", problem)
		}
	}
	for name := range names {
		_, err := r.Item(ctx, store.TenantKind, name)
		if err == nil {
			continue
		}
		if !errors.Is(err, assay.ErrNotFound) {
			return err
		}
		if _, err := os.Stat(s.folder(name)); err == nil {
			report(0, "tenant "+name, "it has a folder, but no entry in %s", systemName)
		}
	}
	return nil
}

// folders returns the names of the folders of tenants.
func (s *Store) folders() (map[string]bool, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, tenantsName))
	names := map[string]bool{}
	for _, e := range entries {
		if relational.CheckTenantName(e.Name()) == nil {
			names[e.Name()] = true
		}
	}
	return names, err
}

// folderProblem returns why the folder of a tenant is not that of its entry; empty: it is.
func (s *Store) folderProblem(ctx context.Context, info store.TenantInfo) string {
	dir := s.folder(info.Name)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		dir = s.unplaced(info) // its creation was interrupted
	}
	t := &Tenant{name: info.Name, dir: dir, opts: s.opts}
	err := errors.Join(t.open(ctx), t.Close())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "its folder is missing"
	case err != nil:
		return "its folder cannot be opened: " + err.Error()
	case t.identity != info.Identity:
		return "its folder is that of another tenant"
	}
	return ""
}
