package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
)

// DefaultTenant is the tenant that is created when it is first opened.
const DefaultTenant = "default"

// TenantKind is the kind of the items of the system's registry that list the tenants. The name of
// an item is the tenant's, and its value is a TenantInfo.
const TenantKind = "tenant"

// KeyKind is the kind of the items of the system's registry that hold API keys. The member "tenant"
// of such a value names the tenant that the key belongs to.
const KeyKind = "key"

// RevocationKind is the kind of the items that end API keys. Such an item has the name of the key.
const RevocationKind = "key-revocation"

// A TenantState says whether a tenant can be opened.
type TenantState string

// The states of a tenant.
const (
	TenantActive    TenantState = "active"
	TenantSuspended TenantState = "suspended" // only InspectTenant opens it
	TenantDeleting  TenantState = "deleting"  // it cannot be opened, and its data is being removed
)

// A TenantInfo describes a tenant.
type TenantInfo struct {
	Name     string      `json:"-"`
	State    TenantState `json:"state"`
	Identity string      `json:"identity"` // random; a tenant that is created again has another one
	Created  time.Time   `json:"created"`
}

// LookTenant returns what the system's registry says about a tenant. The error is assay.ErrNotFound
// if there is no such tenant or it is being deleted. It is cheap enough to call before every
// request.
func LookTenant(ctx context.Context, r Registry, name string) (TenantInfo, error) {
	item, err := r.Item(ctx, TenantKind, name)
	if err != nil {
		return TenantInfo{}, err
	}
	info, err := TenantOf(item)
	if err == nil && info.State == TenantDeleting {
		err = fmt.Errorf("tenant %q: %w", name, assay.ErrNotFound)
	}
	return info, err
}

// ListTenants returns the tenants by name, without those that are being deleted.
func ListTenants(ctx context.Context, r Registry) ([]TenantInfo, error) {
	items, err := r.Items(ctx, TenantKind)
	if err != nil {
		return nil, err
	}
	var list []TenantInfo
	for _, item := range items {
		info, err := TenantOf(item)
		if err != nil {
			return nil, err
		}
		if info.State != TenantDeleting {
			list = append(list, info)
		}
	}
	return list, nil
}

// TenantOf decodes an item of kind TenantKind. The error is assay.ErrDamaged.
func TenantOf(item RegistryItem) (TenantInfo, error) {
	info := TenantInfo{Name: item.Name}
	err := json.Unmarshal(item.Value, &info)
	if err == nil && (info.State == "" || info.Identity == "") {
		err = fmt.Errorf("it lacks a state or an identity")
	}
	if err != nil {
		return TenantInfo{}, fmt.Errorf("entry of tenant %q: %w: %w", item.Name, assay.ErrDamaged, err)
	}
	return info, nil
}
