package engine

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/store"
)

// An admission is the right to run one question, within the limits of its principal, key and tenant.
type admission struct {
	account store.Account // nil: no limit of requests or concurrent runs applies
}

// admit asks for the right to drive a run. run is its ID, and the run counts as a request if it does
// not exist yet. An error that wraps a *limit.Error names the limit that is reached. The error is
// assay.ErrStopped while runs are stopped.
func (e *Engine) admit(ctx context.Context, principal assay.Principal, run string) (*admission, error) {
	bounds, err := e.mayBegin(ctx, principal)
	if err != nil {
		return nil, err
	}
	if bounds = limit.OfRequests(bounds); len(bounds) == 0 {
		return &admission{}, nil
	}
	account, err := e.tenant.Ledger().Admit(ctx, store.Admission{Principal: principal, Run: run, Bounds: bounds})
	if err != nil {
		return nil, bare(err)
	}
	return &admission{account}, nil
}

// close gives the right back.
func (a *admission) close(context.Context) error {
	if a.account == nil {
		return nil
	}
	return a.account.Close()
}

// mayBegin returns the bounds that hold for a principal, unless work is stopped or there were too many
// requests within a second or a minute.
func (e *Engine) mayBegin(ctx context.Context, principal assay.Principal) ([]limit.Bound, error) {
	if err := e.checkStopped(ctx); err != nil {
		return nil, err
	}
	bounds, err := e.bounds(ctx, principal)
	if err != nil {
		return nil, err
	}
	if e.config.SharedLimits != nil {
		return bounds, e.config.SharedLimits.Take(ctx, e.config.Tenant, bounds)
	}
	return bounds, e.bursts.Allow(e.config.Now(), bounds)
}

// bare returns the *limit.Error in err, without the words that a store added, or err.
func bare(err error) error {
	if e, ok := limit.AsError(err); ok {
		return e
	}
	return err
}

// A runLedger implements run.Ledger for one run. The store counts what the run spends whether there
// are limits or not.
type runLedger struct {
	e         *Engine
	principal assay.Principal
	store.Reserver
}

// Reserve implements run.Ledger.
func (l runLedger) Reserve(ctx context.Context, path string, most assay.Usage) error {
	bounds, err := l.e.bounds(ctx, l.principal)
	if err != nil {
		return err
	}
	return bare(l.Reserver.Reserve(ctx, path, most, bounds))
}
