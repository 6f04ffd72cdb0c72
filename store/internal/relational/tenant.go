package relational

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Options are what all tenants of a store share.
type Options struct {
	Now       func() time.Time
	LeaseTime time.Duration // how long the lease of a process on another machine counts after its last renewal
	Host      Host
	MaxOffers int // store.MaxOffers, except in tests
}

// DefaultOptions returns the options of a store on this machine.
func DefaultOptions() Options {
	return Options{Now: time.Now, LeaseTime: 30 * time.Second, Host: ThisHost(), MaxOffers: store.MaxOffers}
}

// A Config describes a tenant whose databases are open.
type Config struct {
	Name     string
	Content  Database
	Runs     Database
	Place    Place
	ReadOnly bool
	Options  Options
}

// A Tenant is one tenant's data. It implements store.Tenant without locks, settings, folders and sizes.
type Tenant struct {
	name     string
	content  Database
	runs     Database
	place    Place
	readOnly bool
	opts     Options

	mu      sync.Mutex
	updater Updater // of runs; nil until the first write to a run
	owner   *owner  // nil until a lease is first taken
}

// NewTenant returns a tenant, which closes the databases.
func NewTenant(c Config) *Tenant {
	return &Tenant{name: c.Name, content: c.Content, runs: c.Runs, place: c.Place, readOnly: c.ReadOnly, opts: c.Options}
}

// Name implements store.Tenant.
func (t *Tenant) Name() string { return t.name }

// ReadOnly implements store.Tenant.
func (t *Tenant) ReadOnly() bool { return t.readOnly }

// Content implements store.Tenant.
func (t *Tenant) Content() store.Content { return content{t.content} }

// Runs implements store.Tenant.
func (t *Tenant) Runs() store.Runs { return runs{t} }

// Audit implements store.Tenant.
func (t *Tenant) Audit() store.Audit { return t.auditLog() }

// Registry implements store.Tenant.
func (t *Tenant) Registry() store.Registry { return registry{t.auditLog()} }

func (t *Tenant) auditLog() auditLog {
	return auditLog{d: t.runs, updater: t.RunsUpdater, now: t.now, collect: t.collectActs, content: t.content, maxOffers: t.opts.MaxOffers}
}

// Writer implements store.Tenant.
func (t *Tenant) Writer(ctx context.Context) (store.Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := t.CheckWritable(); err != nil {
		return nil, err
	}
	u, release, err := t.place.LockWriter(ctx)
	if err != nil {
		return nil, err
	}
	return &writer{content: content{t.content}, tenant: t, release: release, u: u}, nil
}

// Close implements store.Tenant. Closing twice is allowed.
func (t *Tenant) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	if t.updater != nil {
		errs = append(errs, t.updater.Close())
		t.updater = nil
	}
	if t.owner != nil {
		errs = append(errs, t.owner.close())
		t.owner = nil
	}
	errs = append(errs, t.content.Close(), t.runs.Close())
	return wrap(errors.Join(errs...), "close tenant %s", t.name)
}

func (t *Tenant) now() time.Time { return t.opts.Now() }

// CheckWritable returns assay.ErrReadOnly if the tenant cannot be changed.
func (t *Tenant) CheckWritable() error {
	if t.readOnly {
		return fmt.Errorf("write %s: %w", t.place.Name(), assay.ErrReadOnly)
	}
	return nil
}

// RunsUpdater returns the updater of the database of runs.
func (t *Tenant) RunsUpdater(ctx context.Context) (Updater, error) {
	if err := t.CheckWritable(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.updater == nil {
		u, err := t.runs.Updater(ctx)
		if err != nil {
			return nil, err
		}
		t.updater = u
	}
	return t.updater, nil
}

// CheckNoHold returns assay.ErrForbidden if there is a hold.
func (t *Tenant) CheckNoHold(ctx context.Context) error {
	return t.runs.View(ctx, func(s Reader) error {
		holds, err := activeHolds(ctx, s, t.now())
		if err != nil {
			return err
		}
		return holds.Anything()
	})
}

// LogState returns the size and the root of the audit log.
func (t *Tenant) LogState(ctx context.Context) (size int64, root tlog.Hash, err error) {
	log := t.auditLog()
	if size, err = log.Size(ctx); err != nil || size == 0 {
		return size, root, err
	}
	root, err = tlog.TreeHash(size, tlog.HashReaderFunc(func(positions []int64) ([]tlog.Hash, error) {
		hashes, err := log.Hashes(ctx, positions)
		list := make([]tlog.Hash, len(hashes))
		for i, h := range hashes {
			list[i] = h
		}
		return list, err
	}))
	return size, root, err
}

// CheckIdle returns assay.ErrLeased if a run is active.
func (t *Tenant) CheckIdle(ctx context.Context) error {
	return t.runs.View(ctx, func(s Reader) error {
		return s.Each(ctx, `
SELECT runs.id, token, owner, pid, machine, boot, expires FROM progress JOIN runs ON runs.number = run WHERE token IS NOT NULL`, nil,
			func(scan func(...any) error) error {
				var id string
				var holder leaseHolder
				if err := scan(append([]any{&id}, holder.columns()...)...); err != nil {
					return err
				}
				if t.live(holder) {
					return fmt.Errorf("run %s: %w", id, assay.ErrLeased)
				}
				return nil
			})
	})
}
