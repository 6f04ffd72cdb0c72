package sqlite

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// The entry of a tenant in the system's registry decides whether the tenant exists. A tenant's
// folder is complete before its entry is stored, and gets its name afterwards. To delete a tenant,
// its entry is set to store.TenantDeleting first; the folder is removed next and the entry last.
// Whatever a crash leaves undone is finished under the lock tenants.lock, by the next change of
// tenants and the next use of the tenant.

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

// InspectTenant implements store.Store.
func (s *Store) InspectTenant(ctx context.Context, name string) (store.Tenant, error) {
	t, err := s.open(ctx, name, true)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (s *Store) tenant(ctx context.Context, name string) (*Tenant, error) {
	return s.open(ctx, name, false)
}

// open opens a tenant. suspended allows one that is suspended.
func (s *Store) open(ctx context.Context, name string, suspended bool) (*Tenant, error) {
	if err := relational.CheckTenantName(name); err != nil {
		return nil, err
	}
	info, err := s.look(ctx, name)
	if errors.Is(err, assay.ErrNotFound) {
		info, err = s.settleTenant(ctx, name)
	}
	if err != nil {
		return nil, wrap(err, "open tenant %s", name)
	}
	if info.State == store.TenantSuspended && !suspended {
		return nil, fmt.Errorf("tenant %s is suspended: %w", name, assay.ErrStopped)
	}
	if _, err := os.Stat(s.folder(name)); errors.Is(err, fs.ErrNotExist) {
		if _, err := s.settleTenant(ctx, name); err != nil {
			return nil, wrap(err, "open tenant %s", name)
		}
	}
	t := &Tenant{name: name, dir: s.folder(name), opts: s.opts}
	err = t.open(ctx)
	if err == nil && t.identity != info.Identity {
		err = damaged("the folder of the tenant is not that of its entry in %s", systemName)
	}
	if err != nil {
		return nil, errors.Join(wrap(err, "open tenant %s", name), t.Close())
	}
	return t, nil
}

// folder returns the folder of a tenant's data.
func (s *Store) folder(name string) string { return filepath.Join(s.dir, tenantsName, name) }

// look returns a tenant's entry, or assay.ErrNotFound.
func (s *Store) look(ctx context.Context, name string) (info store.TenantInfo, err error) {
	if !s.hasSystem() {
		return info, assay.ErrNotFound
	}
	err = s.withSystem(ctx, func(sys store.System) error {
		info, err = store.LookTenant(ctx, sys.Registry(), name)
		return err
	})
	return info, err
}

// withSystem calls fn with a handle to the system.
func (s *Store) withSystem(ctx context.Context, fn func(store.System) error) error {
	sys, err := s.System(ctx)
	if err != nil {
		return err
	}
	return errors.Join(fn(sys), sys.Close())
}

// hasSystem reports whether the system's database was created. A store that is only read does not
// create it.
func (s *Store) hasSystem() bool {
	_, err := os.Stat(filepath.Join(s.dir, systemName))
	return !errors.Is(err, fs.ErrNotExist)
}

// Tenants implements store.Store. It includes folders that Tenant would adopt.
func (s *Store) Tenants(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	exists := map[string]bool{}
	folders, err := os.ReadDir(filepath.Join(s.dir, tenantsName))
	for _, f := range folders {
		if f.IsDir() && relational.CheckTenantName(f.Name()) == nil {
			exists[f.Name()] = true
		}
	}
	if err == nil && s.hasSystem() {
		err = s.withSystem(ctx, func(sys store.System) error {
			items, err := sys.Registry().Items(ctx, store.TenantKind)
			for _, item := range items {
				info, infoErr := store.TenantOf(item)
				err = errors.Join(err, infoErr)
				exists[info.Name] = info.State != store.TenantDeleting
			}
			return err
		})
	}
	maps.DeleteFunc(exists, func(_ string, there bool) bool { return !there })
	return slices.Sorted(maps.Keys(exists)), wrap(err, "list tenants")
}

// CreateTenant implements store.Store.
func (s *Store) CreateTenant(ctx context.Context, name string, act store.Act) error {
	if err := relational.CheckTenantName(name); err != nil {
		return err
	}
	err := s.changeTenants(ctx, name, func(sys store.System) error {
		return s.createTenant(ctx, sys, name, act)
	})
	return wrap(err, "create tenant %s", name)
}

// SuspendTenant implements store.Store.
func (s *Store) SuspendTenant(ctx context.Context, name string, act store.Act) error {
	act.Kind = "tenant.suspended"
	return wrap(s.setState(ctx, name, store.TenantSuspended, act), "suspend tenant %s", name)
}

// ResumeTenant implements store.Store.
func (s *Store) ResumeTenant(ctx context.Context, name string, act store.Act) error {
	act.Kind = "tenant.resumed"
	return wrap(s.setState(ctx, name, store.TenantActive, act), "resume tenant %s", name)
}

func (s *Store) setState(ctx context.Context, name string, state store.TenantState, act store.Act) error {
	return s.changeTenants(ctx, name, func(sys store.System) error {
		info, err := store.LookTenant(ctx, sys.Registry(), name)
		if err != nil {
			return err
		}
		if info.State == state {
			return invalid("it is %s already", state)
		}
		info.State = state
		return setTenant(ctx, sys.Registry().Set, info, act, map[string]any{"state": state})
	})
}

// setTenant stores a tenant's entry with an act that has the given detail.
func setTenant(ctx context.Context, set func(context.Context, store.RegistryItem, store.Act) error, info store.TenantInfo, act store.Act, detail map[string]any) error {
	value, err := json.Marshal(info)
	if err != nil {
		return err
	}
	if act.Detail, err = json.Marshal(detail); err != nil {
		return err
	}
	act.Subject = info.Identity // a name may be that of a person
	return set(ctx, store.RegistryItem{Kind: store.TenantKind, Name: info.Name, Value: value}, act)
}

// changeTenants calls fn while no other process changes tenants, after it has finished what others
// have left undone. Only what concerns the named tenant is an error.
func (s *Store) changeTenants(ctx context.Context, name string, fn func(store.System) error) (err error) {
	if !writable(s.dir) || !writable(filepath.Join(s.dir, tenantsName)) {
		return assay.ErrReadOnly
	}
	lock, err := s.lockTenants(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	return s.withSystem(ctx, func(sys store.System) error {
		if err := s.finishChanges(ctx, sys, name); err != nil {
			return err
		}
		return fn(sys)
	})
}

// lockTenants takes the lock that changes of tenants need.
func (s *Store) lockTenants(ctx context.Context) (*flock.Flock, error) {
	const retry = 20 * time.Millisecond
	lock := flock.New(filepath.Join(s.dir, tenantsLockName))
	if _, err := lock.TryLockContext(ctx, retry); err != nil {
		return nil, wrap(err, "lock %s", lock.Path())
	}
	return lock, nil
}

// finishChanges finishes interrupted changes. A failure to remove another tenant than the named one
// is not an error, because the next change tries again.
func (s *Store) finishChanges(ctx context.Context, sys store.System, name string) error {
	items, err := sys.Registry().Items(ctx, store.TenantKind)
	if err != nil {
		return err
	}
	for _, item := range items {
		info, err := store.TenantOf(item)
		switch {
		case err != nil:
		case info.State == store.TenantDeleting:
			err = s.removeTenant(ctx, sys, info)
		default:
			if err = s.placeTenant(info); errors.Is(err, assay.ErrDamaged) {
				err = nil // reported when the tenant is opened; it can still be deleted
			}
		}
		if err != nil && info.Name == name {
			return err
		}
	}
	return s.removeUnused(items)
}

// removeUnused removes the folders of creations that were interrupted before the entry was stored.
func (s *Store) removeUnused(items []store.RegistryItem) error {
	folders, err := os.ReadDir(filepath.Join(s.dir, tenantsName))
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, item := range items {
		if info, err := store.TenantOf(item); err == nil {
			used[unfinished+info.Name+"-"+info.Identity] = true
		}
	}
	for _, f := range folders {
		if strings.HasPrefix(f.Name(), unfinished) && !used[f.Name()] {
			if err := os.RemoveAll(filepath.Join(s.dir, tenantsName, f.Name())); err != nil {
				return err
			}
		}
	}
	return s.removeMoving()
}

// settleTenant finishes interrupted changes and returns the tenant's entry. It creates the default
// tenant, and adopts a folder without an entry, which was copied from another store.
func (s *Store) settleTenant(ctx context.Context, name string) (info store.TenantInfo, err error) {
	if _, statErr := os.Stat(s.folder(name)); name != store.DefaultTenant && errors.Is(statErr, fs.ErrNotExist) {
		err := error(assay.ErrNotFound)
		if s.hasSystem() {
			err = s.withSystem(ctx, func(sys store.System) error {
				_, err := sys.Registry().Item(ctx, store.TenantKind, name)
				return err
			})
		}
		if err != nil { // there is nothing to finish
			return info, err
		}
	}
	err = s.changeTenants(ctx, name, func(sys store.System) error {
		info, err = store.LookTenant(ctx, sys.Registry(), name)
		if !errors.Is(err, assay.ErrNotFound) {
			return err
		}
		if err = s.adoptTenant(ctx, sys, name); errors.Is(err, fs.ErrNotExist) && name == store.DefaultTenant {
			err = s.createTenant(ctx, sys, name, store.Act{})
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = assay.ErrNotFound
		}
		if err == nil {
			info, err = store.LookTenant(ctx, sys.Registry(), name)
		}
		return err
	})
	return info, err
}

// adoptTenant stores an entry for a folder that has none. The error is fs.ErrNotExist if there is no
// such folder.
func (s *Store) adoptTenant(ctx context.Context, sys store.System, name string) error {
	if _, err := os.Stat(s.folder(name)); err != nil {
		return err
	}
	t := &Tenant{name: name, dir: s.folder(name), opts: s.opts}
	if err := errors.Join(t.open(ctx), t.Close()); err != nil {
		return err
	}
	info := store.TenantInfo{Name: name, State: store.TenantActive, Identity: t.identity, Created: s.opts.Now().UTC()}
	return setTenant(ctx, sys.Registry().Create, info, store.Act{Kind: "tenant.adopted"}, map[string]any{"name": name})
}

// createTenant creates a tenant's folder under another name, stores its entry, and renames it.
func (s *Store) createTenant(ctx context.Context, sys store.System, name string, act store.Act) error {
	_, err := store.LookTenant(ctx, sys.Registry(), name)
	if err == nil {
		return invalid("it exists already")
	}
	if !errors.Is(err, assay.ErrNotFound) {
		return err
	}
	if _, err := os.Stat(s.folder(name)); err == nil {
		return invalid("its folder %s exists already", s.folder(name))
	}
	info := store.TenantInfo{Name: name, State: store.TenantActive, Identity: rand.Text(), Created: s.opts.Now().UTC()}
	temp := s.unplaced(info)
	err = os.Mkdir(temp, 0o700)
	if err == nil {
		err = errors.Join(
			createDatabase(ctx, filepath.Join(temp, contentName), contentSchema, info.Identity),
			createDatabase(ctx, filepath.Join(temp, runsName), runsSchema, info.Identity),
			os.Mkdir(filepath.Join(temp, leasesName), 0o700),
		)
	}
	if err == nil {
		err = syncDirectory(temp)
	}
	if err == nil {
		act.Kind = "tenant.created"
		err = setTenant(ctx, sys.Registry().Create, info, act, map[string]any{"name": name})
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return s.placeTenant(info)
}

// unplaced returns the folder of a tenant before it is renamed to its name.
func (s *Store) unplaced(info store.TenantInfo) string {
	return filepath.Join(s.dir, tenantsName, unfinished+info.Name+"-"+info.Identity)
}

// placeTenant gives the folder of a tenant its name unless it has it.
func (s *Store) placeTenant(info store.TenantInfo) error {
	_, err := os.Stat(s.folder(info.Name))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = os.Rename(s.unplaced(info), s.folder(info.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return damaged("the folder of tenant %s is missing", info.Name)
	}
	if err != nil {
		return err
	}
	return syncDirectory(filepath.Join(s.dir, tenantsName))
}

// DeleteTenant implements store.Store.
func (s *Store) DeleteTenant(ctx context.Context, name string, force bool, act store.Act) error {
	err := s.changeTenants(ctx, name, func(sys store.System) error {
		info, err := store.LookTenant(ctx, sys.Registry(), name)
		if err != nil {
			return err
		}
		last, err := s.lastState(ctx, name, force)
		if err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(name))
		last["name_sha256"] = hex.EncodeToString(sum[:])
		info.State, act.Kind = store.TenantDeleting, "tenant.deleted"
		if err := setTenant(ctx, sys.Registry().Set, info, act, last); err != nil {
			return err
		}
		return s.removeTenant(context.WithoutCancel(ctx), sys, info)
	})
	return wrap(err, "delete tenant %s", name)
}

// lastState checks that no hold covers a tenant and, unless force is set, that it is not in use. It
// returns the size and the root of its audit log. Damaged data can be deleted too; then the log's state is left out.
func (s *Store) lastState(ctx context.Context, name string, force bool) (last map[string]any, err error) {
	last = map[string]any{}
	t := &Tenant{name: name, dir: s.folder(name), opts: s.opts}
	err = t.open(ctx)
	defer func() { err = errors.Join(err, t.Close()) }()
	if err == nil {
		err = t.CheckNoHold(ctx)
	}
	if err == nil && !force {
		err = t.checkIdle(ctx)
	}
	var root tlog.Hash
	var size int64
	if err == nil {
		size, root, err = t.LogState(ctx)
	}
	if errors.Is(err, assay.ErrDamaged) {
		last["damaged"] = true
		return last, nil
	}
	last["log_size"], last["log_root"] = size, hex.EncodeToString(root[:])
	return last, err
}

// checkIdle returns assay.ErrLocked if a lock of the tenant is held, and assay.ErrLeased if a run is
// active.
func (t *Tenant) checkIdle(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(escapePattern(t.dir), "*"+lockSuffix))
	if err != nil {
		return err
	}
	for _, file := range files {
		lock := flock.New(file)
		free, err := lock.TryLock()
		if err == nil && !free {
			err = fmt.Errorf("%w: %s is held by %s", assay.ErrLocked, filepath.Base(file), lockHolder(file))
		}
		if err = errors.Join(err, lock.Unlock()); err != nil {
			return err
		}
	}
	return t.CheckIdle(ctx)
}

// escapePattern returns a pattern for filepath.Glob that matches the path only.
func escapePattern(path string) string {
	if os.PathSeparator == '\\' {
		return path // a backslash does not escape on Windows, and '*' and '?' are not in its paths
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// removeTenant removes everything of a tenant that is being deleted. It may be repeated.
func (s *Store) removeTenant(ctx context.Context, sys store.System, info store.TenantInfo) error {
	if err := removeKeys(ctx, sys.Registry(), info.Name); err != nil {
		return err
	}
	dir, gone := s.folder(info.Name), filepath.Join(s.dir, tenantsName, removed+info.Identity)
	_, err := os.Stat(dir)
	if err == nil {
		if err := hideTables(ctx, dir); err != nil {
			return err
		}
		if err = os.Rename(dir, gone); err != nil { // Windows: a file is open
			return errors.Join(openFiles(err), os.RemoveAll(dir))
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := errors.Join(os.RemoveAll(gone), os.RemoveAll(s.unplaced(info))); err != nil {
		return openFiles(err)
	}
	if err := syncDirectory(filepath.Join(s.dir, tenantsName)); err != nil {
		return err
	}
	return sys.Registry().Delete(ctx, store.TenantKind, info.Name, store.Act{Kind: "tenant.removed", Subject: info.Identity})
}

func openFiles(err error) error {
	return fmt.Errorf("%w: the tenant is deleted, and its files are removed once no process has them open: %v", assay.ErrLocked, err)
}

// removeKeys removes the API keys of a tenant.
func removeKeys(ctx context.Context, r store.Registry, tenant string) error {
	keys, err := r.Items(ctx, store.KeyKind)
	if err != nil {
		return err
	}
	for _, key := range keys {
		var of struct{ Tenant string }
		if err := json.Unmarshal(key.Value, &of); err != nil {
			return damaged("key %q: %v", key.Name, err)
		}
		if of.Tenant != tenant {
			continue
		}
		act := store.Act{Kind: "key.deleted", Subject: key.Name, Reason: "its tenant was deleted"}
		if err := r.Delete(ctx, store.KeyKind, key.Name, act); err != nil && !errors.Is(err, assay.ErrNotFound) {
			return err
		}
	}
	return nil
}

// hideTables renames the tables of a deleted tenant, so that every call on an open handle fails. It
// takes no longer for much data. Databases that cannot be read are left as
// they are.
func hideTables(ctx context.Context, dir string) error {
	for _, name := range []string{contentName, runsName} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := renameTables(ctx, path)
		if err != nil && !errors.Is(err, assay.ErrDamaged) {
			return wrap(err, "close %s", path)
		}
	}
	return nil
}

func renameTables(ctx context.Context, path string) error {
	const prefix = "deleted_"
	d := &database{path: path, mode: modeWrite}
	u, err := openUpdater(ctx, d)
	if err != nil {
		return err
	}
	err = u.Update(ctx, func(t relational.Tx) error {
		var names []string
		err := t.Each(ctx, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'`, nil, func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			names = append(names, name)
			return err
		})
		if err != nil {
			return err
		}
		for _, name := range names {
			if strings.HasPrefix(name, prefix) {
				continue
			}
			if _, err := t.Exec(ctx, fmt.Sprintf(`ALTER TABLE "%s" RENAME TO "%s"`, name, prefix+name)); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, u.Close())
}
