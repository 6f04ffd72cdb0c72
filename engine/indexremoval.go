package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// indexKind is the kind of the items of the system's registry that name indexes to be removed. Such an
// item has the identity of the content, and stays until the index is removed.
const indexKind = "index-removal"

// DeleteTenant deletes a tenant, as store.Store.DeleteTenant does, with its shared index, which remove
// deletes by the identity of its content (see Config.RemoveIndex); nil: it has none. That the index is to
// be removed is stored before the tenant is deleted. So if remove fails, or the process ends, a later
// RemoveIndexes or Host.Housekeep removes it; the error then wraps ErrIndexRemains.
func DeleteTenant(ctx context.Context, s store.Store, remove func(ctx context.Context, identity string) error, name string, force bool, act store.Act) (err error) {
	if remove == nil {
		return s.DeleteTenant(ctx, name, force, act)
	}
	system, err := s.System(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, system.Close()) }()
	registry := system.Registry()
	info, err := store.LookTenant(ctx, registry, name)
	if err != nil {
		return fmt.Errorf("delete tenant %s: %w", name, err)
	}
	item := store.RegistryItem{Kind: indexKind, Name: info.Identity, Value: json.RawMessage(`{}`)}
	if err := registry.Set(ctx, item, store.Act{Kind: "index.released", Subject: info.Identity, Actor: act.Actor}); err != nil {
		return fmt.Errorf("delete tenant %s: %w", name, err)
	}
	if err := s.DeleteTenant(ctx, name, force, act); err != nil {
		return errors.Join(err, keepIndex(context.WithoutCancel(ctx), registry, info.Identity))
	}
	return removeIndexes(ctx, registry, remove)
}

// keepIndex takes back that an index is to be removed, unless its tenant is gone.
func keepIndex(ctx context.Context, registry store.Registry, identity string) error {
	tenants, err := store.ListTenants(ctx, registry)
	if err != nil || !slices.ContainsFunc(tenants, func(t store.TenantInfo) bool { return t.Identity == identity }) {
		return err
	}
	return registry.Delete(ctx, indexKind, identity, store.Act{Kind: "index.kept", Subject: identity})
}

// ErrIndexRemains is wrapped by errors of tenants that are deleted and whose index is not removed yet. It
// is an assay.ErrUnavailable.
var ErrIndexRemains = fmt.Errorf("its index is not removed yet: %w", assay.ErrUnavailable)

// RemoveIndexes removes the shared indexes that deleted tenants have left. The errors are those of remove,
// and wrap ErrIndexRemains.
func RemoveIndexes(ctx context.Context, s store.Store, remove func(ctx context.Context, identity string) error) error {
	if remove == nil {
		return nil
	}
	system, err := s.System(ctx)
	if err != nil {
		return err
	}
	return errors.Join(removeIndexes(ctx, system.Registry(), remove), system.Close())
}

func removeIndexes(ctx context.Context, registry store.Registry, remove func(ctx context.Context, identity string) error) error {
	if remove == nil {
		return nil
	}
	items, err := registry.Items(ctx, indexKind)
	if err != nil || len(items) == 0 {
		return err
	}
	tenants, err := store.ListTenants(ctx, registry) // after the items, whose tenants were there before
	if err != nil {
		return err
	}
	var errs []error
	for _, item := range items {
		if slices.ContainsFunc(tenants, func(t store.TenantInfo) bool { return t.Identity == item.Name }) {
			continue // it is being deleted
		}
		if err := remove(ctx, item.Name); err != nil {
			errs = append(errs, fmt.Errorf("a tenant is deleted, and %w: %w", ErrIndexRemains, err))
			continue
		}
		err := registry.Delete(ctx, indexKind, item.Name, store.Act{Kind: "index.removed", Subject: item.Name})
		if !errors.Is(err, assay.ErrNotFound) { // another process has removed it too
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
