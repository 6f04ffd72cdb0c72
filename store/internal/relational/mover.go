package relational

import (
	"context"
	"encoding/json"
	"time"

	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
)

// A Mover gives and takes whole tenants, row by row. Each kind of store has one; package move copies
// between two of them.
type Mover interface {
	// Give calls fn with a tenant, which may be suspended, and lets no process change it until fn
	// returns. The error is assay.ErrLocked while a process writes its content or holds a lock of it,
	// and assay.ErrLeased while one drives a run. A tenant that this process can only read is given
	// as one committed state of each database.
	Give(ctx context.Context, name string, fn func(Given) error) error

	// GiveSystem does the same with what the store keeps about itself.
	GiveSystem(ctx context.Context, fn func(GivenTables) error) error

	// Stage creates an empty tenant that no other call sees, with the word that identifies it, after it
	// has removed what an interrupted move of the tenant left. The error is assay.ErrInvalid if there is
	// a tenant of the name, and assay.ErrLocked while another process moves one of that name.
	Stage(ctx context.Context, info store.TenantInfo) (*Staged, error)

	// StageSystem does the same for what the store keeps about itself. The error is assay.ErrInvalid
	// unless the store is new.
	StageSystem(ctx context.Context) (*Staged, error)

	// Adopt makes tenants visible, and the belongings, in one step. If system is not nil it becomes the
	// store's; it has the entries of the tenants and the belongings already. The tenants are closed,
	// whether there is an error or not.
	Adopt(ctx context.Context, tenants []*Staged, system *Staged, b Belongings) error
}

// Movable is a store with a mover.
type Movable interface {
	store.Store
	Mover() Mover
}

// GivenTables is a database that is copied from.
type GivenTables struct {
	Reader Reader
	Newest Newest
}

// A Given is a tenant that is copied from.
type Given struct {
	Info     store.TenantInfo
	Tenant   store.Tenant // for reading
	Content  GivenTables
	Runs     GivenTables
	Settings map[string][]byte
}

// StagedTables is a database that is copied to.
type StagedTables struct {
	Database Database
	Numbers  Numbering
}

// A Staged is a tenant or a system that is copied to.
type Staged struct {
	Info    store.TenantInfo // zero: of a system
	Content StagedTables     // zero: of a system
	Runs    StagedTables

	// OpenTenant and OpenSystem open what was copied. The databases are closed then.
	OpenTenant func(ctx context.Context) (store.Tenant, error)
	OpenSystem func(ctx context.Context) (store.System, error)

	// Discard closes everything and removes it, unless it was adopted.
	Discard func() error

	Place any // of the Mover that made it
}

// Belongings are what a store keeps about tenants outside of them.
type Belongings struct {
	Act   store.Act            // of each tenant and item, whose Kind, Subject and Detail are ignored
	Log   map[string]any       // detail of the act on each tenant, by name
	Items []store.RegistryItem // keys and their revocations
	Uses  map[string]time.Time // when the keys were last used
}

// Take stores the entries of tenants, and their belongings, in one transaction. The error is
// assay.ErrInvalid if there is an entry or a key of the name.
func (s *System) Take(ctx context.Context, infos []store.TenantInfo, b Belongings) error {
	u, err := s.writer(ctx)
	if err != nil {
		return err
	}
	err = u.Update(ctx, func(t Tx) error {
		for _, info := range infos {
			value, err := json.Marshal(info)
			if err != nil {
				return err
			}
			act := b.Act
			act.Kind, act.Subject = "tenant.moved", info.Identity
			if act.Detail, err = json.Marshal(b.Log[info.Name]); err != nil {
				return err
			}
			if err := s.create(ctx, t, store.RegistryItem{Kind: store.TenantKind, Name: info.Name, Value: value}, act); err != nil {
				return err
			}
		}
		for _, item := range b.Items {
			act := b.Act
			act.Kind, act.Subject, act.Detail = "key.moved", item.Name, json.RawMessage("{}") // the value has a secret's hash
			if item.Kind == store.RevocationKind {
				act.Kind = "key.revocation_moved"
			}
			if err := s.create(ctx, t, item, act); err != nil {
				return err
			}
		}
		for name, at := range b.Uses {
			if _, err := t.Exec(ctx, `INSERT INTO uses (name, used) VALUES (?, ?) ON CONFLICT DO NOTHING`, name, at.Unix()); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap(err, "take over tenants")
}

// create stores an item that must not exist, with its act.
func (s *System) create(ctx context.Context, t Tx, item store.RegistryItem, act store.Act) error {
	if err := checkItem(item); err != nil {
		return err
	}
	logged := &journal.Item{Kind: item.Kind, Name: item.Name, Value: hashOf(item.Value), Updated: s.log.now().UnixNano()}
	n, err := t.Exec(ctx, `INSERT INTO registry (kind, name, value, updated) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		item.Kind, item.Name, string(item.Value), logged.Updated)
	if err != nil {
		return err
	}
	if n == 0 {
		return invalid("%s %q exists already", item.Kind, item.Name)
	}
	if _, err := t.Exec(ctx, `UPDATE store SET registry = registry + 1`); err != nil {
		return err
	}
	return appendItemAct(ctx, t, s.log.now(), act, logged)
}
