package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store"
)

// current returns the configuration that holds now.
func (h *Host) current() *HostConfig { return h.reloaded.Load() }

// Keys returns the API keys of the store.
func (h *Host) Keys() *identity.Keys { return h.keys }

// Reload replaces the configuration. Calls that are in progress keep the engine that they have, with
// the old configuration; later calls have a new one. Recheck and AllowLocal hold for the next call of
// every session. Dir, Store, OpenStore, Now, NewID, Idle and Reader stay as they are.
func (h *Host) Reload(config HostConfig) error {
	if config.Tenant != "" {
		return fmt.Errorf("reload a host: a tenant is named, %s: %w", config.Tenant, assay.ErrInvalid)
	}
	config.Dir, config.Store, config.OpenStore, config.Reader = h.config.Dir, h.config.Store, h.config.OpenStore, h.config.Reader
	config.Now, config.NewID, config.Idle = h.config.Now, h.config.NewID, h.config.Idle
	var err error
	if config.Config, err = config.complete(); err != nil {
		return err
	}
	config.Config.Tenant = ""
	h.live.limit(config)
	h.mu.Lock()
	h.reloaded.Store(&config)
	var idle []*hostedEngine
	for identity, e := range h.engines {
		delete(h.engines, identity)
		if e.users == 0 {
			idle = append(idle, e)
		} else {
			e.replaced = true // the last call that uses it closes it
		}
	}
	h.mu.Unlock()
	return closeEngines(idle)
}

// Housekeep does for each active tenant the work that no request starts: it follows the deadlines of
// reviews that have passed, applies the retention policies once an hour, removes the shared indexes that
// deleted tenants have left, and leaves engines open that have vectors to make or messages to deliver. Engines that are not needed are closed. A server calls
// it every few minutes. One tenant's error does not keep the others from their turn.
func (h *Host) Housekeep(ctx context.Context) error {
	defer func() { h.closeIdle(h.config.Now()) }()
	tenants, err := store.ListTenants(ctx, h.system.Registry())
	if err != nil {
		return err
	}
	errs := []error{removeIndexes(ctx, h.system.Registry(), h.current().RemoveIndex)}
	for _, info := range tenants {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if info.State != store.TenantActive {
			continue
		}
		if err := h.housekeep(ctx, info); err != nil {
			errs = append(errs, fmt.Errorf("tenant %s: %w", info.Name, err))
		}
	}
	return errors.Join(errs...)
}

// settle is how long an engine stays open that housekeeping has opened, so that it can send messages.
const settle = time.Minute

func (h *Host) housekeep(ctx context.Context, info store.TenantInfo) error {
	h.mu.Lock()
	open := h.engines[info.Identity]
	used := h.config.Now().Add(settle - h.config.Idle)
	if open != nil {
		used = open.used
	}
	h.mu.Unlock()
	e, release, err := h.acquire(ctx, info)
	if err != nil {
		return err
	}
	missing, err := e.housekeep(ctx, h.retentionDue(info.Identity))
	release()
	if missing {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if open = h.engines[info.Identity]; open != nil && open.users == 0 {
		open.used = used // housekeeping is no use
	}
	return err
}

// retentionEvery is how often the retention policies of a tenant are applied.
const retentionEvery = time.Hour

// retentionDue reports whether a tenant's retention policies are to be applied, and notes that they
// are.
func (h *Host) retentionDue(identity string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.config.Now()
	maps.DeleteFunc(h.retained, func(_ string, at time.Time) bool { return now.Sub(at) >= retentionEvery })
	if _, done := h.retained[identity]; done {
		return false
	}
	h.retained[identity] = now
	return true
}

// housekeepingLock is the tenant's lock that the process holds which keeps house.
const housekeepingLock = "housekeeping"

// housekeep reports whether there are vectors to make.
func (e *Engine) housekeep(ctx context.Context, retain bool) (missing bool, err error) {
	if e.tenant.ReadOnly() {
		return false, nil
	}
	lock, err := e.tenant.Lock(ctx, housekeepingLock)
	if errors.Is(err, assay.ErrLocked) {
		return false, nil // another process does it
	}
	if err != nil {
		return false, err
	}
	e.tendIndex()
	_, err = e.EscalateReviews(ctx)
	if err == nil && retain {
		_, err = e.ApplyRetention(ctx, assay.Local(), false)
	}
	if err = errors.Join(err, lock.Close()); err != nil || e.config.NoBackground || e.config.Encoders == nil {
		return false, err
	}
	status, err := e.Vectors(ctx)
	return err == nil && status.Wanted != "" && status.Problem == "" && status.Coverage(status.Wanted) < 1, err
}

// A HostCheck is the result of one check of a host.
type HostCheck struct {
	Name string
	Err  error // nil: passed
}

// Check reports whether the host can serve: whether the store can be read ("store") and written
// ("writable"), and whether the default tenant can be searched ("index"), which Check prepares in the
// background. It takes a few milliseconds.
func (h *Host) Check(ctx context.Context) []HostCheck {
	_, err := h.system.Registry().Version(ctx)
	checks := []HostCheck{{Name: "store", Err: err}}
	if err != nil {
		return checks
	}
	info, err := h.tenant(ctx, store.DefaultTenant)
	if errors.Is(err, assay.ErrStopped) { // an administrator has suspended it: there is nothing to search
		return checks
	}
	var e *Engine
	release := func() {}
	if err == nil {
		e, release, err = h.acquire(ctx, info)
	}
	if err != nil {
		return append(checks, HostCheck{"index", err})
	}
	defer release()
	return append(checks, HostCheck{"writable", e.checkWritable(ctx)}, HostCheck{"index", h.warm(info, e)})
}

// checkWritable takes a lock, which needs a file.
func (e *Engine) checkWritable(ctx context.Context) error {
	if e.tenant.ReadOnly() {
		return assay.ErrReadOnly
	}
	lock, err := e.tenant.Lock(ctx, "readiness")
	switch {
	case errors.Is(err, assay.ErrLocked):
		return nil // by another process that checks
	case err != nil:
		return err
	}
	return lock.Close()
}

// A warming opens the index of the default tenant.
type warming struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	busy   bool  // guarded by Host.mu
	err    error // of the last attempt, guarded by Host.mu
}

// errOpening is the result of a check while the index is being opened.
var errOpening = fmt.Errorf("it is being opened: %w", assay.ErrBusy)

// warm returns nil if the index of e is open. Otherwise it opens the index in the background.
func (h *Host) warm(info store.TenantInfo, e *Engine) error {
	if e.mu.TryLock() {
		opened := e.index != nil
		e.mu.Unlock()
		if opened {
			return nil
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &h.warming
	if w.busy || h.closed || w.ctx.Err() != nil {
		return errOpening
	}
	last := w.err
	w.busy = true
	w.work.Go(func() {
		e, release, err := h.acquire(w.ctx, info)
		if err == nil {
			_, err = e.search(w.ctx)
			release()
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		w.busy, w.err = false, err
	})
	if last != nil && !errors.Is(last, fs.ErrClosed) {
		return last
	}
	return errOpening
}

// SourcesOf returns an AllowSource for sources of the named kinds, whose credentials are among the
// given references. The target of a folder must be in one of the folders.
func SourcesOf(kinds, credentials, folders []string) func(tenant string, n NewSource) bool {
	return func(_ string, n NewSource) bool {
		if !slices.Contains(kinds, n.Kind) {
			return false
		}
		for _, reference := range n.Credentials {
			if !slices.Contains(credentials, reference) {
				return false
			}
		}
		local := n.Kind == "folder" || filepath.IsAbs(n.Target)
		return !local || withinFolders(n.Target, folders)
	}
}
