package relational

import (
	"context"
	"database/sql"
	"errors"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Accept implements store.Runs.
func (r runs) Accept(ctx context.Context, run assay.Run, p store.Promise, records ...assay.Record) (store.Lease, error) {
	l, err := r.create(ctx, run, records, func(t Tx, number int64) error { return r.promise(ctx, t, number, p) })
	if err != nil {
		return nil, wrap(err, "accept run %s", run.ID)
	}
	return l, nil
}

// promise stores a promise, unless another run has its slot.
func (r runs) promise(ctx context.Context, t Tx, number int64, p store.Promise) error {
	if p.Slot != "" {
		taken, err := promiseOf(func(dest ...any) error { return t.Row(ctx, promiseBySlot, []any{p.Slot}, dest...) })
		if err == nil {
			return &store.SlotError{Promise: taken}
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	_, err := t.Exec(ctx, `
INSERT INTO promises (run, slot, request, attempts, steps) VALUES (?1, NULLIF(?2, ''), ?3, ?4, (SELECT steps FROM progress WHERE run = ?1))
ON CONFLICT (run) DO UPDATE SET attempts = ?4`, number, p.Slot, p.Request, p.Attempts)
	return err
}

const (
	promiseColumns = `r.id, COALESCE(m.slot, ''), m.request, m.attempts, m.steps >= p.steps`
	promiseJoin    = ` FROM promises m JOIN runs r ON r.number = m.run JOIN progress p ON p.run = m.run `
	promiseBySlot  = `SELECT ` + promiseColumns + promiseJoin + `WHERE m.slot = ?`
)

// promiseOf scans promiseColumns.
func promiseOf(scan func(...any) error, more ...any) (store.Promise, error) {
	var p store.Promise
	err := scan(append([]any{&p.Run, &p.Slot, &p.Request, &p.Attempts, &p.Stuck}, more...)...)
	return p, err
}

// Promise implements store.Runs.
func (r runs) Promise(ctx context.Context, slot string) (store.Promise, error) {
	p, err := promiseOf(func(dest ...any) error { return r.t.runs.Row(ctx, promiseBySlot, []any{slot}, dest...) })
	if errors.Is(err, sql.ErrNoRows) {
		err = assay.ErrNotFound
	}
	if err != nil {
		return store.Promise{}, wrap(err, "run of an idempotency key")
	}
	return p, nil
}

const promisedQuery = `SELECT ` + promiseColumns + `, p.token, p.owner, p.pid, p.machine, p.boot, p.expires` + promiseJoin + `
WHERE p.state = 'active' ORDER BY m.run`

// Promised implements store.Runs.
func (r runs) Promised(ctx context.Context) ([]store.Promise, error) {
	var free []store.Promise
	err := r.t.runs.View(ctx, func(s Reader) error {
		return s.Each(ctx, promisedQuery, nil, func(scan func(...any) error) error {
			var h leaseHolder
			p, err := promiseOf(scan, h.columns()...)
			if err == nil && !r.t.live(h) {
				free = append(free, p)
			}
			return err
		})
	})
	return free, wrap(err, "list runs to resume")
}

// Adopt implements store.Runs.
func (r runs) Adopt(ctx context.Context, id string) error {
	err := r.updateRun(ctx, id, func(t Tx, number int64) error { return r.promise(ctx, t, number, store.Promise{}) })
	return wrap(err, "adopt run %s", id)
}

// Attempt implements store.Runs.
func (r runs) Attempt(ctx context.Context, id string) (attempts int, err error) {
	err = r.updateRun(ctx, id, func(t Tx, number int64) error {
		err := t.Row(ctx, `
UPDATE promises SET attempts = CASE WHEN steps < (SELECT steps FROM progress WHERE run = ?1) AND attempts > 0 THEN 2 ELSE attempts + 1 END,
	steps = (SELECT steps FROM progress WHERE run = ?1) WHERE run = ?1 RETURNING attempts`, []any{number}, &attempts)
		if errors.Is(err, sql.ErrNoRows) {
			err = assay.ErrNotFound
		}
		return err
	})
	return attempts, wrap(err, "count an attempt of run %s", id)
}

// Calm implements store.Runs.
func (r runs) Calm(ctx context.Context, id string) error {
	err := r.updateRun(ctx, id, func(t Tx, number int64) error {
		_, err := t.Exec(ctx, `UPDATE promises SET attempts = 0 WHERE run = ?`, number)
		return err
	})
	return wrap(err, "reset the attempts of run %s", id)
}

// Cancel implements store.Runs.
func (r runs) Cancel(ctx context.Context, id string, actor assay.Principal) error {
	err := r.updateRun(ctx, id, func(t Tx, number int64) error {
		var state assay.RunState
		var cancelled bool
		err := t.Row(ctx, `SELECT state, cancelled FROM progress WHERE run = ?`, []any{number}, &state, &cancelled)
		if err != nil || cancelled && state == assay.RunActive {
			return err
		}
		if state != assay.RunActive {
			return invalid("it is %s", state)
		}
		if _, err := t.Exec(ctx, `UPDATE progress SET cancelled = 1 WHERE run = ?`, number); err != nil {
			return err
		}
		return appendAct(ctx, t, r.t.now(), store.Act{Kind: store.KindRunCancelled, Subject: id, Actor: actor})
	})
	return wrap(err, "cancel run %s", id)
}

// Cancelled implements store.Runs.
func (r runs) Cancelled(ctx context.Context, id string) (cancelled bool, err error) {
	err = r.t.runs.Row(ctx, `SELECT p.cancelled FROM progress p JOIN runs r ON r.number = p.run WHERE r.id = ?`, []any{id}, &cancelled)
	if errors.Is(err, sql.ErrNoRows) {
		err = assay.ErrNotFound
	}
	return cancelled, wrap(err, "run %s", id)
}

// updateRun runs fn in a transaction with the number of a run.
func (r runs) updateRun(ctx context.Context, id string, fn func(t Tx, number int64) error) error {
	u, err := r.t.RunsUpdater(ctx)
	if err != nil {
		return err
	}
	return u.Update(ctx, func(t Tx) error {
		var number int64
		err := t.Row(ctx, `SELECT number FROM runs WHERE id = ?`, []any{id}, &number)
		if errors.Is(err, sql.ErrNoRows) {
			err = assay.ErrNotFound
		}
		if err != nil {
			return err
		}
		return fn(t, number)
	})
}
