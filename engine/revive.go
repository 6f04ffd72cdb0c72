package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store"
)

// MaxAttempts is how often a host drives a run that ends with the death of the process each time before it
// gives the run up. An attempt in which the journal grew is counted as the first one.
const MaxAttempts = 3

// ResumeInterrupted resumes in the background the runs of all tenants that a host has accepted and no live
// process drives. It returns when they are known to followers. A program calls it when it starts to serve.
//
// A run is resumed with the rights that it was begun with as far as they hold: if its API key was revoked
// or has expired, its tenant is suspended, or it has read a document that the principal may no longer see,
// it ends as failed. The expiry of a token ends no run, because it says nothing about rights. While an
// administrator has stopped runs, a run ends with what it has verified.
//
// Runs are driven as those of Begin. One that was interrupted twice without a new step in its journal is
// driven apart from others of that kind, and given up after MaxAttempts. Runs that were not begun through a
// host are not resumed, and neither are those that failed to be resumed for a passing reason, until the
// next call.
func (h *Host) ResumeInterrupted(ctx context.Context) error {
	names, err := h.store.Tenants(ctx)
	if err != nil {
		return fmt.Errorf("resume interrupted runs: %w", err)
	}
	var errs []error
	for _, name := range names {
		if err := h.resumeTenant(ctx, name); err != nil {
			errs = append(errs, fmt.Errorf("resume interrupted runs of tenant %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// resumeTenant resumes the interrupted runs of one tenant.
func (h *Host) resumeTenant(ctx context.Context, name string) (err error) {
	tenant, err := h.store.InspectTenant(ctx, name)
	if errors.Is(err, assay.ErrNotFound) { // it was deleted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tenant.Close()) }()
	promised, err := tenant.Runs().Promised(ctx)
	if err != nil || len(promised) == 0 || tenant.ReadOnly() {
		return err
	}
	info, err := h.tenant(ctx, name)
	if errors.Is(err, assay.ErrStopped) {
		return failAll(ctx, tenant.Runs(), promised, err)
	}
	if err != nil {
		return err
	}
	for _, p := range promised {
		if err := h.resume(ctx, info, p); err != nil {
			return err
		}
	}
	return nil
}

// failAll ends interrupted runs with an error.
func failAll(ctx context.Context, runs store.Runs, promised []store.Promise, why error) error {
	var errs []error
	for _, p := range promised {
		lease, err := runs.Acquire(ctx, p.Run)
		if err != nil {
			errs = append(errs, passing(err))
			continue
		}
		errs = append(errs, lease.Finish(ctx, assay.RunFailed, nil, "it was not resumed: "+why.Error()), lease.Close())
	}
	return errors.Join(errs...)
}

// passing returns err unless it says that another process drives the run or has ended it.
func passing(err error) error {
	if errors.Is(err, assay.ErrLeased) || errors.Is(err, assay.ErrInvalid) || errors.Is(err, assay.ErrNotFound) {
		return nil
	}
	return err
}

// resume starts to drive an interrupted run.
func (h *Host) resume(ctx context.Context, info store.TenantInfo, promise store.Promise) error {
	key := liveKey{info.Identity, promise.Run}
	if h.live.find(key) != nil {
		return nil
	}
	e, done, err := h.acquire(ctx, info)
	if err != nil {
		return err
	}
	d := &drive{live: h.live, done: done, counted: true, prepare: func(ctx context.Context) (*preparedRun, error) {
		return h.prepareInterrupted(ctx, e, info.Name, promise.Run)
	}}
	if promise.Stuck && promise.Attempts >= MaxAttempts-1 {
		d.alone = &h.live.alone
	}
	d.force(ctx, newLiveRun(key))
	return nil
}

// prepareInterrupted takes the lease of an interrupted run and counts the attempt. A run that cannot go on
// is failed.
func (h *Host) prepareInterrupted(ctx context.Context, e *Engine, tenant, id string) (*preparedRun, error) {
	resumable := func(err error) error { return &RunError{Run: id, Resumable: true, Err: err} }
	if ctx.Err() != nil {
		return nil, resumable(fmt.Errorf("the server is being stopped: %w", assay.ErrUnavailable))
	}
	r, err := e.runs.Run(ctx, id)
	if err != nil {
		return nil, resumable(err)
	}
	account, err := e.tenant.Ledger().Admit(ctx, store.Admission{Principal: r.Principal, Run: id})
	if err != nil {
		return nil, resumable(err)
	}
	p := &preparedRun{e: e, account: &admission{account}}
	err = p.acquire(ctx, r.Principal, id)
	if p.lease == nil {
		return nil, p.abandon(resumable(err))
	}
	if err == nil {
		err = h.checkOwner(ctx, identity.Grant{Tenant: tenant, Principal: r.Principal})
	}
	if err == nil {
		err = countAttempt(ctx, e.runs, id)
	}
	switch {
	case err == nil:
		return p, nil
	case final(err):
		return nil, errors.Join(&RunError{Run: id, Err: err}, p.fail(ctx, fmt.Errorf("it was interrupted and cannot be resumed: %w", err)))
	}
	return nil, p.abandon(resumable(err))
}

// errGivenUp is the error of a run that was given up.
var errGivenUp = fmt.Errorf("the server stopped unexpectedly each of the %d times that it was driven", MaxAttempts)

// countAttempt counts an attempt to drive a run.
func countAttempt(ctx context.Context, runs store.Runs, id string) error {
	n, err := runs.Attempt(ctx, id)
	if err == nil && n > MaxAttempts {
		err = errGivenUp
	}
	return err
}

// final reports whether an error would be the same at the next attempt.
func final(err error) bool {
	for _, kind := range []error{
		errGivenUp, assay.ErrInvalid, assay.ErrNotFound, assay.ErrUnauthenticated, assay.ErrForbidden, assay.ErrDamaged, assay.ErrDiverged,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// checkOwner checks what can be known of the rights of a run's owner. The grant has no rights and no expiry.
func (h *Host) checkOwner(ctx context.Context, g identity.Grant) error {
	if g.Principal.User == assay.Local().User {
		if !h.current().AllowLocal {
			return assay.ErrUnauthenticated
		}
		return nil
	}
	if err := h.keys.Recheck(ctx, g); err != nil {
		return err
	}
	if h.current().Recheck == nil {
		return nil
	}
	return h.current().Recheck(ctx, g)
}
