package governance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
)

// storeActs adds the acts of the store's own log that are about the tenant or about all tenants.
func storeActs(ctx context.Context, o Options, b *Builder) error {
	if o.System == nil {
		return nil
	}
	identity, err := tenantIdentity(ctx, o.System.Registry(), o.Tenant)
	if err != nil {
		return err
	}
	log := o.System.Audit()
	size, err := log.Size(ctx)
	if err != nil {
		return err
	}
	about := storeActFilter{tenant: o.Tenant, identity: identity, keys: map[string]bool{}}
	for e, err := range log.Entries(ctx, 0, size) {
		if err != nil {
			return err
		}
		if !journal.IsAct(e.Header) {
			continue
		}
		a, err := journal.OpenAct(e.Header, e.Payload, e.Salt, e.Leaf)
		if err != nil {
			return fmt.Errorf("entry %d of the store's audit log: %w", e.Sequence, err)
		}
		if about.has(a) {
			b.storeAct(store.LoggedAct{Sequence: a.Sequence, Time: a.Time, Act: store.Act{Kind: a.Kind, Subject: a.Subject}})
		}
	}
	return nil
}

// tenantIdentity returns the word that acts name a tenant by, or "" if the store does not list it.
func tenantIdentity(ctx context.Context, r store.Registry, tenant string) (string, error) {
	item, err := r.Item(ctx, store.TenantKind, tenant)
	if errors.Is(err, assay.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var info store.TenantInfo
	if err := json.Unmarshal(item.Value, &info); err != nil {
		return "", fmt.Errorf("tenant %q: %w: %w", tenant, assay.ErrDamaged, err)
	}
	return info.Identity, nil
}

// A storeActFilter selects the acts about one tenant. It gets the acts in the order of the log.
type storeActFilter struct {
	tenant, identity string
	keys             map[string]bool // IDs of the tenant's API keys
}

func (f storeActFilter) has(a journal.Act) bool {
	object, _, _ := strings.Cut(a.Kind, ".")
	switch object {
	case "stop":
		return true // the store's log has only stops of all tenants
	case "tenant":
		return a.Subject == f.identity && f.identity != ""
	case "key":
		var key struct {
			Tenant string `json:"tenant"`
		}
		decode(a.Detail, &key)
		if a.Kind == "key.created" && key.Tenant == f.tenant {
			f.keys[a.Subject] = true
		}
		return f.keys[a.Subject]
	case "canary":
		// The tenant in which a canary is found has the alarm in its own log.
		var alarm struct {
			Owner string `json:"owner"`
		}
		decode(a.Detail, &alarm)
		return alarm.Owner == f.tenant
	}
	return false
}
