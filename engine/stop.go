package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// stopKind is the kind of the registry's items with stops: one in the system's registry for all
// tenants, one in the tenant's own.
const (
	stopKind = "stop"
	stopName = "stop"
)

// stopEvery is how often running work looks for a stop.
const stopEvery = 250 * time.Millisecond

// A Stop is an administrator's decision that nothing runs.
type Stop struct {
	All    bool      `json:"all"` // of all tenants of the store
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// stopState are the stops as last read.
type stopState struct {
	mu sync.Mutex

	known    bool
	versions [2]int64 // of the registries of the tenant and the system
	stops    []Stop
	closed   string // state of the tenant if nothing may run in it: "suspended" or "deleted"
	identity string // of the tenant; empty: not read yet
}

// Stop ends what runs: of this tenant, or of all tenants of the store. Running questions end within a
// second, in every process, with the part of the answer that is verified. Ingests and syncs end at
// their next safe point and keep what they have stored. New questions and ingests are refused with
// assay.ErrStopped until Start. Documents and runs can still be read, and reviews decided. It is an
// administrator's right, which the caller of Stop checks. A second Stop replaces the first.
func (e *Engine) Stop(ctx context.Context, actor assay.Principal, all bool, reason string) error {
	value, err := json.Marshal(Stop{All: all, By: actor.User, Reason: reason})
	if err != nil {
		return err
	}
	registry, err := e.stopRegistry(ctx, all)
	if err != nil {
		return err
	}
	// The detail names no person: the act has its actor.
	act := store.Act{Kind: "stop.set", Subject: stopSubject(all), Actor: actor, Reason: reason, Detail: json.RawMessage(`{}`)}
	return registry.Set(ctx, store.RegistryItem{Kind: stopKind, Name: stopName, Value: value}, act)
}

// Start lifts a stop. The error is assay.ErrNotFound if there is none.
func (e *Engine) Start(ctx context.Context, actor assay.Principal, all bool, reason string) error {
	registry, err := e.stopRegistry(ctx, all)
	if err != nil {
		return err
	}
	return registry.Delete(ctx, stopKind, stopName, store.Act{Kind: "stop.lifted", Subject: stopSubject(all), Actor: actor, Reason: reason})
}

func stopSubject(all bool) string {
	if all {
		return "all"
	}
	return "tenant"
}

// stopRegistry returns the registry that holds a stop.
func (e *Engine) stopRegistry(ctx context.Context, all bool) (store.Registry, error) {
	if !all {
		return e.tenant.Registry(), nil
	}
	system, err := e.systemOrNone(ctx)
	if err != nil {
		return nil, err
	}
	if system == nil {
		return nil, fmt.Errorf("stop all tenants: %w", assay.ErrReadOnly)
	}
	return system.Registry(), nil
}

// systemOrNone returns what the store keeps about itself, or nil in a store that cannot be written and
// has nothing.
func (e *Engine) systemOrNone(ctx context.Context) (store.System, error) {
	system, err := e.system(ctx)
	if errors.Is(err, assay.ErrNotFound) {
		return nil, nil
	}
	return system, err
}

// Stops returns the stops that hold for the tenant: its own, that of all tenants, both or none.
// Unless they have changed, only the versions of the registries are read.
func (e *Engine) Stops(ctx context.Context) ([]Stop, error) {
	s := &e.stopState
	s.mu.Lock()
	defer s.mu.Unlock()
	system, err := e.systemOrNone(ctx)
	if err != nil {
		return nil, err
	}
	registries := []store.Registry{e.tenant.Registry()}
	if system != nil {
		registries = append(registries, system.Registry())
	}
	var versions [2]int64
	for i, r := range registries {
		if versions[i], err = r.Version(ctx); err != nil {
			return nil, err
		}
	}
	if s.known && s.versions == versions {
		return s.stops, nil
	}
	stops, err := stopsIn(ctx, registries...)
	if err != nil {
		return nil, err
	}
	if system != nil {
		if err := s.lookTenant(ctx, system.Registry(), e.config.Tenant); err != nil {
			return nil, err
		}
	}
	s.known, s.versions, s.stops = true, versions, stops
	return stops, nil
}

// lookTenant reads whether the tenant is suspended, or was deleted since it was first read.
func (s *stopState) lookTenant(ctx context.Context, system store.Registry, name string) error {
	info, err := store.LookTenant(ctx, system, name)
	missing := errors.Is(err, assay.ErrNotFound)
	if err != nil && !missing {
		return err
	}
	s.closed = ""
	switch {
	case s.identity != "" && info.Identity != s.identity:
		s.closed = "deleted"
	case !missing && info.State != store.TenantActive:
		s.closed = string(info.State)
	}
	if s.identity == "" {
		s.identity = info.Identity
	}
	return nil
}

// closedTenant returns the state of the tenant if nothing may run in it, as Stops last read it.
func (s *stopState) closedTenant() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// stopsIn returns the stops in registries.
func stopsIn(ctx context.Context, registries ...store.Registry) ([]Stop, error) {
	var stops []Stop
	for _, r := range registries {
		item, err := r.Item(ctx, stopKind, stopName)
		if errors.Is(err, assay.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var stop Stop
		if err := json.Unmarshal(item.Value, &stop); err != nil {
			return nil, fmt.Errorf("the stop cannot be read: %w: %w", assay.ErrDamaged, err)
		}
		stop.Since = item.Updated
		stops = append(stops, stop)
	}
	return stops, nil
}

// checkStopped returns an error that wraps assay.ErrStopped if a stop holds, or if the tenant was
// suspended or deleted. It does not say who stopped what and why, which is for administrators.
func (e *Engine) checkStopped(ctx context.Context) error {
	stops, err := e.Stops(ctx)
	if err != nil {
		return err
	}
	if state := e.stopState.closedTenant(); state != "" {
		return fmt.Errorf("this tenant is %s: %w", state, assay.ErrStopped)
	}
	if len(stops) == 0 {
		return nil
	}
	what := "this tenant is"
	if stops[0].All {
		what = "all tenants are"
	}
	return fmt.Errorf("%s %w, since %s", what, assay.ErrStopped, stops[0].Since.UTC().Format(time.RFC3339))
}

// untilStopped returns a context that ends when a stop holds or end is called. Its cause is then the
// error of checkStopped.
func (e *Engine) untilStopped(ctx context.Context) (stopped context.Context, end func()) {
	return e.until(ctx, e.checkStopped)
}

// untilEnded is untilStopped for a run. The context also ends, with assay.ErrCancelled as its cause, when
// the run is cancelled.
func (e *Engine) untilEnded(ctx context.Context, run string) (ended context.Context, end func()) {
	return e.until(ctx, func(ctx context.Context) error {
		if cancelled, err := e.runs.Cancelled(ctx, run); err == nil && cancelled {
			return assay.ErrCancelled
		}
		return e.checkStopped(ctx)
	})
}

// until returns a context that ends when check returns an error of a kind that ends runs.
func (e *Engine) until(ctx context.Context, check func(context.Context) error) (stopped context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	look := func() {
		err := check(ctx)
		if errors.Is(err, assay.ErrStopped) || errors.Is(err, assay.ErrCancelled) { // other errors may pass
			cancel(err)
		}
	}
	look()
	done := make(chan struct{})
	go func() {
		defer close(done)
		again := time.NewTicker(stopEvery)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
				look()
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// unlessStopped runs work that ends at its next safe point when its context does: an ingest, a sync
// or a pass of the embedder. If a stop ends it, the error is that of the stop alone.
func (e *Engine) unlessStopped(ctx context.Context, work func(context.Context) error) error {
	if err := e.checkStopped(ctx); err != nil {
		return err
	}
	watched, end := e.untilStopped(ctx)
	defer end()
	err := work(watched)
	if cause := context.Cause(watched); err != nil && ctx.Err() == nil && errors.Is(cause, assay.ErrStopped) {
		return fmt.Errorf("%w; what was stored stays", cause)
	}
	return err
}
