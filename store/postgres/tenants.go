package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// The entry of a tenant in the system's registry decides whether the tenant exists. Its schemas are
// created in the transaction that stores the entry, and dropped in the one that sets it to
// store.TenantDeleting. Its keys and the entry itself are removed next. Whatever a crash leaves undone is
// finished by the next change of tenants and the next use of the tenant.

// Tenant implements store.Store. The returned store.Tenant is a *Tenant.
func (s *Store) Tenant(ctx context.Context, name string) (store.Tenant, error) {
	t, err := s.open(ctx, name, false)
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

// open opens a tenant. suspended allows one that is suspended.
func (s *Store) open(ctx context.Context, name string, suspended bool) (*Tenant, error) {
	if err := relational.CheckTenantName(name); err != nil {
		return nil, err
	}
	registry := s.systemWith(s.system).Registry()
	info, err := store.LookTenant(ctx, registry, name)
	if errors.Is(err, assay.ErrNotFound) {
		info, err = s.settleTenant(ctx, registry, name)
	}
	if err != nil {
		return nil, wrap(err, "open tenant %s", name)
	}
	if info.State == store.TenantSuspended && !suspended {
		return nil, fmt.Errorf("tenant %s is suspended: %w", name, assay.ErrStopped)
	}
	t, err := s.openTenant(ctx, name, info.Identity)
	return t, wrap(err, "open tenant %s", name)
}

// settleTenant finishes the deletion of a tenant and creates the default one. It returns the tenant's
// entry.
func (s *Store) settleTenant(ctx context.Context, registry store.Registry, name string) (info store.TenantInfo, err error) {
	if _, err := registry.Item(ctx, store.TenantKind, name); name != store.DefaultTenant && err != nil {
		return info, err // there is nothing to finish
	}
	err = s.changeTenants(ctx, name, func(registry store.Registry) error {
		info, err = store.LookTenant(ctx, registry, name)
		if errors.Is(err, assay.ErrNotFound) && name == store.DefaultTenant {
			if err = s.createTenant(ctx, registry, name, store.Act{}); err == nil {
				info, err = store.LookTenant(ctx, registry, name)
			}
		}
		return err
	})
	return info, err
}

// Tenants implements store.Store.
func (s *Store) Tenants(ctx context.Context) ([]string, error) {
	all, err := store.ListTenants(ctx, s.systemWith(s.system).Registry())
	var names []string
	for _, info := range all {
		names = append(names, info.Name)
	}
	slices.Sort(names)
	return names, wrap(err, "list tenants")
}

// CreateTenant implements store.Store.
func (s *Store) CreateTenant(ctx context.Context, name string, act store.Act) error {
	if err := relational.CheckTenantName(name); err != nil {
		return err
	}
	err := s.changeTenants(ctx, name, func(registry store.Registry) error {
		return s.createTenant(ctx, registry, name, act)
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
	return s.changeTenants(ctx, name, func(registry store.Registry) error {
		info, err := store.LookTenant(ctx, registry, name)
		if err != nil {
			return err
		}
		if info.State == state {
			return invalid("it is %s already", state)
		}
		info.State = state
		return setTenant(ctx, registry.Set, info, act, map[string]any{"state": state})
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

// changeTenants calls fn while no other process changes tenants, after it has finished what others have
// left undone. Only what concerns the named tenant is an error.
func (s *Store) changeTenants(ctx context.Context, name string, fn func(store.Registry) error) (err error) {
	if err := s.checkReadOnly(); err != nil {
		return err
	}
	lock, err := s.waitForTenants(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	registry := s.systemWith(s.system).Registry()
	items, err := registry.Items(ctx, store.TenantKind)
	if err != nil {
		return err
	}
	for _, item := range items {
		info, err := store.TenantOf(item)
		if err == nil && info.State == store.TenantDeleting {
			err = removeTenant(ctx, registry, info)
		}
		if err != nil && item.Name == name {
			return err
		}
	}
	return fn(registry)
}

// waitForTenants takes the lock of changes of tenants.
func (s *Store) waitForTenants(ctx context.Context) (*heldLock, error) {
	const pause = 20 * time.Millisecond
	for {
		l, err := s.take(ctx, s.system.tenancy, lockTenants, "the lock of changes of tenants")
		if !errors.Is(err, assay.ErrLocked) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// defining returns the system's registry, whose next change first calls fn in its transaction with the
// role that owns the tables.
func (s *Store) defining(fn func(context.Context, *session) error) store.Registry {
	return s.systemWith(definer{s.system, fn}).Registry()
}

// A definer is a database whose updaters call fn in each transaction with the role ownerRole.
type definer struct {
	*database
	fn func(context.Context, *session) error
}

// Updater implements relational.Database.
func (d definer) Updater(ctx context.Context) (relational.Updater, error) {
	u, err := d.database.Updater(ctx)
	return definingUpdater{u, d}, err
}

type definingUpdater struct {
	relational.Updater
	d definer
}

// Update implements relational.Updater.
func (u definingUpdater) Update(ctx context.Context, fn func(relational.Tx) error) error {
	return u.Updater.Update(ctx, func(t relational.Tx) error {
		x := t.(*tx).s
		err := x.script(ctx, `SET LOCAL ROLE `+ownerRole)
		if err != nil {
			return connectError(err)
		}
		if err = u.d.fn(ctx, x); err != nil {
			return err
		}
		if err = x.script(ctx, `SET LOCAL ROLE `+appRole); err != nil {
			return err
		}
		if _, err = x.do(call{query: enterQuery, args: u.d.enter}); err != nil {
			return err
		}
		return fn(t)
	})
}

// createTenant creates a tenant's schemas and its entry in one transaction.
func (s *Store) createTenant(ctx context.Context, registry store.Registry, name string, act store.Act) error {
	_, err := store.LookTenant(ctx, registry, name)
	if err == nil {
		return invalid("it exists already")
	}
	if !errors.Is(err, assay.ErrNotFound) {
		return err
	}
	info := store.TenantInfo{Name: name, State: store.TenantActive, Identity: rand.Text(), Created: s.opts.Now().UTC()}
	act.Kind = "tenant.created"
	define := s.defining(func(ctx context.Context, x *session) error {
		_, err := createSchemas(ctx, x, info.Identity)
		return err
	})
	return setTenant(ctx, define.Create, info, act, map[string]any{"name": name})
}

// DeleteTenant implements store.Store. A transaction that reads the tenant's data delays it; if that takes
// long, the error is assay.ErrLocked and nothing is deleted.
func (s *Store) DeleteTenant(ctx context.Context, name string, force bool, act store.Act) error {
	err := s.changeTenants(ctx, name, func(registry store.Registry) error {
		info, err := store.LookTenant(ctx, registry, name)
		if err != nil {
			return err
		}
		last, err := s.lastState(ctx, info, force)
		if err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(name))
		last["name_sha256"] = hex.EncodeToString(sum[:])
		info.State, act.Kind = store.TenantDeleting, "tenant.deleted"
		define := s.defining(func(ctx context.Context, x *session) error { return dropSchemas(ctx, x, info.Identity) })
		if err := setTenant(ctx, define.Set, info, act, last); err != nil {
			return err
		}
		if err := removeTenant(context.WithoutCancel(ctx), registry, info); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(s.dir, info.Identity)); err != nil {
			return fmt.Errorf("%w: the tenant is deleted, and its index is removed once no process has it open: %v", assay.ErrLocked, err)
		}
		return nil
	})
	return wrap(err, "delete tenant %s", name)
}

// removeFolders removes the local folders of tenants that were deleted, by another machine perhaps. A
// folder that cannot be removed yet is not an error.
func (s *Store) removeFolders(ctx context.Context) error {
	folders, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	infos, err := store.ListTenants(ctx, s.systemWith(s.system).Registry()) // after the folders: none of a new tenant is missing
	if err != nil {
		return err
	}
	for _, f := range folders {
		if f.IsDir() && !slices.ContainsFunc(infos, func(info store.TenantInfo) bool { return info.Identity == f.Name() }) {
			_ = os.RemoveAll(filepath.Join(s.dir, f.Name()))
		}
	}
	return nil
}

// dropSchemas drops the schemas of a tenant. The role is ownerRole.
func dropSchemas(ctx context.Context, x *session, identity string) error {
	t := tenancy{identity: identity}
	if err := checkIdentity(identity); err != nil {
		return err
	}
	for _, p := range []part{contentPart, runsPart} {
		if err := x.script(ctx, `DROP SCHEMA IF EXISTS `+t.schema(p)+` CASCADE`); err != nil {
			return err
		}
	}
	_, err := x.do(call{query: `DELETE FROM ` + systemSchema + `.schemas WHERE identity = ?`, args: []any{identity}})
	return err
}

// lastState checks that no hold covers a tenant and, unless force is set, that it is not in use. It
// returns the size and the root of its audit log. Damaged data can be deleted too; then the log's state
// is left out.
func (s *Store) lastState(ctx context.Context, info store.TenantInfo, force bool) (last map[string]any, err error) {
	last = map[string]any{}
	t, err := s.openTenant(ctx, info.Name, info.Identity)
	if err == nil {
		defer func() { err = errors.Join(err, t.Close()) }()
		err = t.CheckNoHold(ctx)
	}
	if err == nil && !force {
		err = t.checkUnlocked(ctx)
	}
	if err == nil && !force {
		err = t.CheckIdle(ctx)
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

// removeTenant removes the keys and the entry of a tenant that is being deleted. It may be repeated.
func removeTenant(ctx context.Context, registry store.Registry, info store.TenantInfo) error {
	if err := removeKeys(ctx, registry, info.Name); err != nil {
		return err
	}
	return registry.Delete(ctx, store.TenantKind, info.Name, store.Act{Kind: "tenant.removed", Subject: info.Identity})
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

// checkSchemas compares the schemas of tenants with the entries in the system's registry. A difference
// that is gone when it is looked at again was a change in progress.
func (s *Store) checkSchemas(ctx context.Context, r store.Registry, report func(sequence int64, object, format string, args ...any)) error {
	items, err := r.Items(ctx, store.TenantKind)
	if err != nil {
		return err
	}
	known := map[string]bool{s.identity: true}
	for _, item := range items {
		info, err := store.TenantOf(item)
		if err != nil {
			report(0, "tenant "+item.Name, "%v", err)
			continue
		}
		known[info.Identity] = true
		if info.State == store.TenantDeleting {
			continue
		}
		problem := s.schemaProblem(ctx, info)
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
		if problem = s.schemaProblem(ctx, again); problem != "" {
			report(0, "tenant "+item.Name, "%s", problem)
		}
	}
	return s.checkUnknown(ctx, r, known, report)
}

// schemaProblem returns why the schemas of a tenant are not those of its entry; empty: they are.
func (s *Store) schemaProblem(ctx context.Context, info store.TenantInfo) string {
	t, err := s.openTenant(ctx, info.Name, info.Identity)
	if err != nil {
		return "its schemas cannot be opened: " + err.Error()
	}
	if err := t.Close(); err != nil {
		return err.Error()
	}
	return ""
}

// checkUnknown reports schemas that no entry has.
func (s *Store) checkUnknown(ctx context.Context, r store.Registry, known map[string]bool, report func(sequence int64, object, format string, args ...any)) error {
	var found []string
	err := s.system.View(ctx, func(v relational.Reader) error {
		return v.Each(ctx, `SELECT identity FROM schemas WHERE moving = ''`, nil, func(scan func(...any) error) error {
			var identity string
			err := scan(&identity)
			if !known[identity] {
				found = append(found, identity)
			}
			return err
		})
	})
	if err != nil || len(found) == 0 {
		return err
	}
	now, err := store.ListTenants(ctx, r)
	if err != nil {
		return err
	}
	for _, identity := range found {
		if !slices.ContainsFunc(now, func(info store.TenantInfo) bool { return info.Identity == identity }) {
			report(0, "schemas of "+identity, "they have no entry in the registry")
		}
	}
	return nil
}
