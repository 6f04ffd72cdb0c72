package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

// A preparedRun is a stored run that is about to be driven. It holds the run's lease and its admission
// until it was driven or abandoned.
type preparedRun struct {
	e        *Engine
	account  *admission
	lease    store.Lease // nil: not created yet
	run      assay.Run
	req      storedRequest
	records  []assay.Record     // its journal so far
	reported func(assay.Record) // of each record that is stored; nil: not called
	watch    *observedRun

	// failed returns the error to report in place of that of the run; nil: the same.
	failed func(context.Context, error) error

	// panicked returns the error to report after a panic; nil: the panic goes on.
	panicked func(ctx context.Context, v any) error
}

// admitted asks for the right to drive a run.
func (e *Engine) admitted(ctx context.Context, principal assay.Principal, id string) (*preparedRun, error) {
	account, err := e.admit(ctx, principal, id)
	if err != nil {
		return nil, err
	}
	return &preparedRun{e: e, account: account}, nil
}

// create stores a run whose journal begins with records.
func (p *preparedRun) create(ctx context.Context, principal assay.Principal, began storedRequest, records []assay.Record, promise *store.Promise) error {
	p.watch = p.e.observeRun(ctx, assay.Run{ID: began.ID, Question: began.Question}, began, false)
	began.Trace = p.watch.trace()
	request, err := json.Marshal(began)
	if err != nil {
		return fmt.Errorf("store the request: %w", err)
	}
	r := assay.Run{
		ID:        began.ID,
		Principal: principal,
		Question:  began.Question,
		Request:   request,
		State:     assay.RunActive,
		Created:   p.e.config.Now().UTC(),
	}
	if began.Guarded = p.e.reviewPossible(ctx, r, began.Request); began.Guarded {
		if r.Request, err = json.Marshal(began); err != nil {
			return fmt.Errorf("store the request: %w", err)
		}
	}
	if promise != nil {
		p.lease, err = p.e.runs.Accept(ctx, r, *promise, records...)
	} else {
		p.lease, err = p.e.runs.Create(ctx, r, records...)
	}
	if err != nil {
		p.lease = nil
		return err
	}
	for i := range records {
		records[i].Run = r.ID
	}
	p.run, p.req, p.records = r, began, records
	p.watch.stored(r)
	return nil
}

// acquire takes the lease of a run that was interrupted, and checks that the principal may go on with it.
func (p *preparedRun) acquire(ctx context.Context, principal assay.Principal, id string) error {
	lease, err := p.e.runs.Acquire(ctx, id)
	if err != nil {
		return err
	}
	p.lease = lease
	if p.run, p.records, err = p.e.journal(ctx, principal, id); err != nil { // read again under the lease
		return err
	}
	if p.run.State == assay.RunDone || p.run.State == assay.RunFailed {
		return fmt.Errorf("run %s has ended (%s): %w", id, p.run.State, assay.ErrInvalid)
	}
	if principal.Access().Key() != p.run.Principal.Access().Key() {
		return fmt.Errorf("run %s: the access of %s has changed since it began; ask again: %w", id, principal.User, assay.ErrInvalid)
	}
	if p.req, err = questionOf(p.run); err != nil {
		return err
	}
	if _, err := strategy.Lookup(p.req.Strategy, p.e.config.Strategies...); err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	if err := checkInterrupted(p.records, p.e.config.Models.unless(p.req.Local)); err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	if err := p.e.checkPrices(ctx, p.run.Principal, p.req.Request); err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	p.watch = p.e.observeRun(ctx, p.run, p.req, true)
	return nil
}

// drive runs a prepared run to its answer, and gives back its lease and its admission.
func (p *preparedRun) drive(ctx context.Context, emit func(Event)) (answer assay.Answer, err error) {
	defer func() {
		if p.panicked != nil {
			if v := recover(); v != nil {
				err = p.panicked(ctx, v)
			}
		}
		p.watch.end(answer, err)
	}()
	defer func() { err = errors.Join(err, p.account.close(context.WithoutCancel(ctx))) }()
	answer, err = p.driveLeased(ctx, emit)
	if err != nil && p.failed != nil {
		err = p.failed(ctx, err)
	}
	return answer, err
}

func (p *preparedRun) driveLeased(ctx context.Context, emit func(Event)) (answer assay.Answer, err error) {
	defer func() { err = errors.Join(err, p.lease.Close()) }() // also after a panic, so that the run can be resumed
	lease := p.lease
	if p.reported != nil {
		lease = observedLease{p.lease, p.reported}
	}
	return p.e.drive(p.watch.of(ctx), p.run, p.req, lease, p.records, p.watch, emit)
}

// abandon gives back what a run holds that is not driven, because of an error. A run that is stored can
// be resumed.
func (p *preparedRun) abandon(err error) error {
	err = p.release(err)
	outcome := err
	if p.lease != nil {
		outcome = &RunError{Run: p.run.ID, Resumable: true, Err: err}
	}
	p.watch.end(assay.Answer{}, outcome)
	return err
}

// fail ends a run that is not driven with an error that its owner reads.
func (p *preparedRun) fail(ctx context.Context, why error) error {
	err := p.release(p.lease.Finish(context.WithoutCancel(ctx), assay.RunFailed, nil, why.Error()))
	p.watch.end(assay.Answer{}, &RunError{Run: p.run.ID, Resumable: err != nil, Err: errors.Join(why, err)})
	return err
}

// release gives back the lease and the admission, and joins the errors to err.
func (p *preparedRun) release(err error) error {
	if p.lease != nil {
		err = errors.Join(err, p.lease.Close())
	}
	return errors.Join(err, p.account.close(context.Background()))
}

// An observedLease reports the records that it has stored.
type observedLease struct {
	store.Lease
	stored func(assay.Record)
}

// Append implements store.Lease.
func (l observedLease) Append(ctx context.Context, rec assay.Record) (assay.Record, error) {
	rec, err := l.Lease.Append(ctx, rec)
	if err == nil {
		l.stored(rec)
	}
	return rec, err
}
