package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
)

// A HostConfig configures a Host.
type HostConfig struct {
	// Config is that of every tenant's engine. Its Tenant must be empty.
	Config

	// Idle is how long an engine that is not used stays open; 0: 10 minutes.
	Idle time.Duration

	// MaxRuns is how many runs that sessions begin in the background are driven at once, and MaxWaiting
	// how many others may wait; 0: DefaultMaxRuns and DefaultMaxWaiting.
	MaxRuns, MaxWaiting int

	// Recheck is called before each call of a session, after the host has checked the grant's expiry
	// and that its API key is not revoked. An error says that the credential behind the grant is not
	// valid any more, and ends the call. It may be nil.
	Recheck func(context.Context, identity.Grant) error

	// AllowLocal lets sessions have the grant of identity.Local, which needs no credential: for a
	// server that only this machine's user reaches.
	AllowLocal bool

	// Folders are the folders of this machine from which sessions may ingest files; nil: none, so
	// that sessions can ingest only what they upload.
	Folders []string

	// AllowSource decides whether sessions of a tenant may add a source, and AllowCredential whether
	// their webhooks may name a credential of this machine ("env:NAME", "file:PATH" or
	// "command:PROGRAM ARGUMENTS"). Both could be another tenant's data. nil: none.
	AllowSource     func(tenant string, n NewSource) bool
	AllowCredential func(tenant, reference string) bool

	// Queue keeps the uploads of sessions until a worker stores them; nil: they are stored at once.
	Queue UploadQueue

	// AllowURL decides whether sessions of a tenant may have a web page read into their documents.
	// The address must also be public and within Config.Egress. nil: none.
	AllowURL func(tenant, address string) bool
}

// A Host serves many tenants from one store. It opens the engine of a tenant when it is first
// needed, and closes those that are idle. Sessions are the only way to a tenant's data. A Host is
// safe for concurrent use.
type Host struct {
	config HostConfig
	store  store.Store
	own    bool // the store was opened by the host
	system store.System
	keys   *identity.Keys

	mu      sync.Mutex
	engines map[string]*hostedEngine // by the tenant's identity
	timer   *time.Timer              // closes idle engines
	closed  bool
	// retained is when the retention policies of a tenant were applied, by the tenant's identity.
	retained map[string]time.Time

	reloaded atomic.Pointer[HostConfig] // see Reload
	warming  warming

	live        *liveRuns
	recheck     time.Duration // recheckEvery, except in tests
	evaluations evaluations
	uploads     uploadQueue
}

// A hostedEngine is the engine of a tenant with the number of calls that use it.
type hostedEngine struct {
	tenant string
	opened chan struct{} // closed when engine and err are set
	engine *Engine
	err    error

	users    int       // guarded by Host.mu, as are the following
	used     time.Time // when users became 0
	replaced bool      // it is not in Host.engines any more, and is closed when users becomes 0
}

// OpenHost opens a store for many tenants. Its errors are those of Open. The host must be closed.
func OpenHost(ctx context.Context, config HostConfig) (*Host, error) {
	if config.Tenant != "" {
		return nil, fmt.Errorf("open a host: a tenant is named, %s: %w", config.Tenant, assay.ErrInvalid)
	}
	var err error
	if config.Config, err = config.complete(); err != nil {
		return nil, err
	}
	config.Config.Tenant = ""
	config.Idle = cmp.Or(config.Idle, 10*time.Minute)
	if config.MaxRuns < 0 || config.MaxWaiting < 0 {
		return nil, fmt.Errorf("open a host: %d runs at once and %d that wait: %w", config.MaxRuns, config.MaxWaiting, assay.ErrInvalid)
	}
	if open := config.Reader; open != nil {
		config.Reader = sync.OnceValues(func() (llm.Reader, error) { return open() })
	}
	h := &Host{config: config, engines: make(map[string]*hostedEngine), retained: make(map[string]time.Time), live: newLiveRuns(config), recheck: recheckEvery}
	h.reloaded.Store(&config)
	h.warming.ctx, h.warming.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s, own, err := config.open(ctx)
	if err != nil {
		return nil, err
	}
	h.store, h.own = s, own != nil
	if h.system, err = s.System(ctx); err != nil {
		return nil, errors.Join(err, h.closeStore())
	}
	h.keys = identity.NewKeys(h.system, config.Now)
	h.timer = time.AfterFunc(config.Idle, func() { h.closeIdle(config.Now()) })
	return h, nil
}

// Drain interrupts the runs that are driven in the background, each after its present step, and waits
// for them until ctx ends. They can be resumed; see ResumeInterrupted. No other run is accepted.
func (h *Host) Drain(ctx context.Context) error { return h.live.close(ctx) }

// Close is Drain, and closes the engines and the store. No method of a session may be running.
func (h *Host) Close() error {
	h.timer.Stop()
	h.mu.Lock()
	h.warming.cancel()
	h.mu.Unlock()
	h.warming.work.Wait()
	_ = h.live.close(context.Background()) // which does not end
	h.evaluations.close()
	h.mu.Lock()
	h.closed = true
	var idle []*hostedEngine
	for identity, e := range h.engines {
		delete(h.engines, identity)
		idle = append(idle, e)
	}
	h.mu.Unlock()
	return errors.Join(closeEngines(idle), h.system.Close(), h.closeStore())
}

func (h *Host) closeStore() error {
	if !h.own {
		return nil
	}
	return h.store.Close()
}

func closeEngines(list []*hostedEngine) error {
	var errs []error
	for _, e := range list {
		if <-e.opened; e.engine != nil {
			errs = append(errs, e.engine.Close())
		}
	}
	return errors.Join(errs...)
}

// Session returns a session for a grant. The errors are those of a call without scope: see Session.
func (h *Host) Session(ctx context.Context, grant identity.Grant) (*Session, error) {
	s := &Session{host: h, grant: grant}
	if err := s.checkGrant(ctx); err != nil {
		return nil, err
	}
	info, err := h.tenant(ctx, grant.Tenant)
	if err != nil {
		return nil, err
	}
	s.identity = info.Identity
	return s, nil
}

// tenant returns an existing tenant that is not suspended. It creates the default one.
func (h *Host) tenant(ctx context.Context, name string) (store.TenantInfo, error) {
	info, err := store.LookTenant(ctx, h.system.Registry(), name)
	if errors.Is(err, assay.ErrNotFound) && name == store.DefaultTenant {
		t, openErr := h.store.Tenant(ctx, name)
		if openErr != nil {
			return info, openErr
		}
		if err := t.Close(); err != nil {
			return info, err
		}
		info, err = store.LookTenant(ctx, h.system.Registry(), name)
	}
	if errors.Is(err, assay.ErrNotFound) {
		h.closeTenant(name)
		return info, fmt.Errorf("tenant %q: %w", name, assay.ErrNotFound)
	}
	if err == nil && info.State != store.TenantActive {
		err = fmt.Errorf("tenant %q is %s: %w", name, info.State, assay.ErrStopped)
	}
	return info, err
}

// acquire returns the engine of a tenant, and a function that gives it back.
func (h *Host) acquire(ctx context.Context, info store.TenantInfo) (*Engine, func(), error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, nil, fmt.Errorf("host: %w", fs.ErrClosed)
	}
	e := h.engines[info.Identity]
	mine := e == nil
	if mine {
		e = &hostedEngine{tenant: info.Name, opened: make(chan struct{})}
		h.engines[info.Identity] = e
	}
	e.users++
	h.mu.Unlock()
	if mine {
		config := h.current().Config
		config.Store, config.Dir, config.OpenStore, config.Tenant = h.store, "", nil, info.Name
		e.engine, e.err = Open(context.WithoutCancel(ctx), config)
		close(e.opened)
	}
	release := func() { h.release(info.Identity, e) }
	select {
	case <-e.opened:
	case <-ctx.Done():
		release()
		return nil, nil, ctx.Err()
	}
	if e.err != nil {
		release()
		return nil, nil, e.err
	}
	return e.engine, release, nil
}

// release ends one use of an engine.
func (h *Host) release(identity string, e *hostedEngine) {
	h.mu.Lock()
	e.users--
	if e.users == 0 && e.replaced {
		h.mu.Unlock()
		_ = closeEngines([]*hostedEngine{e}) // all that was acknowledged is stored
		return
	}
	defer h.mu.Unlock()
	e.used = h.config.Now()
	select {
	case <-e.opened:
		if e.err != nil && h.engines[identity] == e { // the next call tries again
			delete(h.engines, identity)
		}
	default:
	}
	if !h.closed {
		h.timer.Reset(h.config.Idle)
	}
}

// closeIdle closes the engines that have not been used since Idle before now.
func (h *Host) closeIdle(now time.Time) {
	h.closeWhere(func(e *hostedEngine) bool { return now.Sub(e.used) >= h.config.Idle })
}

// closeTenant closes the engines of a tenant that was deleted.
func (h *Host) closeTenant(name string) {
	h.closeWhere(func(e *hostedEngine) bool { return e.tenant == name })
}

// closeWhere closes the unused engines for which fn returns true. Their errors are ignored: all that
// was acknowledged is stored.
func (h *Host) closeWhere(fn func(*hostedEngine) bool) {
	var list []*hostedEngine
	h.mu.Lock()
	for identity, e := range h.engines {
		if e.users == 0 && fn(e) {
			delete(h.engines, identity)
			list = append(list, e)
		}
	}
	h.mu.Unlock()
	_ = closeEngines(list)
}
