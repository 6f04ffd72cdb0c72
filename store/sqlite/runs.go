package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// runs stores a tenant's runs in runs.db. It implements store.Runs.
type runs struct {
	t *Tenant
}

// Create implements store.Runs. It uses only r's ID, Principal, Question, Request and Created. A
// zero Created means now. The error is assay.ErrInvalid if the ID exists.
func (r runs) Create(ctx context.Context, run assay.Run, records ...assay.Record) (store.Lease, error) {
	l, err := r.create(ctx, run, records)
	if err != nil {
		return nil, wrap(err, "create run %s", run.ID)
	}
	return l, nil
}

func (r runs) create(ctx context.Context, run assay.Run, records []assay.Record) (*lease, error) {
	row, err := encodeRun(run)
	if err != nil {
		return nil, err
	}
	now := r.t.now()
	if run.Created.IsZero() {
		run.Created = now
	}
	return r.lease(ctx, run.ID, records, func(t tx) (int64, error) {
		var exists bool
		if err := t.row(ctx, `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?)`, []any{run.ID}, &exists); err != nil {
			return 0, err
		}
		if exists {
			return 0, invalid("there is such a run already")
		}
		number, err := t.insert(ctx, `
INSERT INTO runs (id, principal, question, request, created, error) VALUES (?, ?, ?, ?, ?, '')`,
			run.ID, row.principal, run.Question, row.request, run.Created.UnixNano())
		if err != nil {
			return 0, err
		}
		_, err = t.exec(ctx, `INSERT INTO progress (run, state, steps, updated) VALUES (?, ?, 0, ?)`,
			number, string(assay.RunActive), now.UnixNano())
		return number, err
	})
}

// A runRow holds the fields of a run whose stored form differs.
type runRow struct {
	principal string
	request   any // string; nil: none
}

func encodeRun(run assay.Run) (runRow, error) {
	if run.ID == "" || !utf8.ValidString(run.ID) || !utf8.ValidString(run.Question) {
		return runRow{}, invalid("its ID is empty, or its ID or question is not UTF-8")
	}
	principal, err := json.Marshal(run.Principal)
	if err != nil {
		return runRow{}, invalid("principal: %v", err)
	}
	row := runRow{principal: string(principal)}
	if run.Request != nil {
		if !json.Valid(run.Request) {
			return runRow{}, invalid("its request is not JSON")
		}
		row.request = string(run.Request)
	}
	return row, nil
}

const runColumns = `r.id, r.principal, r.question, r.request, r.created, r.answer, r.error,
	p.state, p.steps, p.updated, p.token, p.owner, p.pid, p.machine, p.boot, p.expires`

const (
	runQuery  = `SELECT ` + runColumns + ` FROM runs r JOIN progress p ON p.run = r.number WHERE r.id = ?`
	listQuery = `SELECT ` + runColumns + ` FROM runs r JOIN progress p ON p.run = r.number
ORDER BY r.created DESC, r.number DESC LIMIT ?`
)

// scanRun reads runColumns.
func scanRun(scan func(...any) error, run *assay.Run, h *leaseHolder) error {
	var principal, errText string
	var request, answer sql.NullString
	var created, updated int64
	dest := append([]any{
		&run.ID, &principal, &run.Question, &request, &created, &answer, &errText, &run.State, &run.Steps, &updated,
	}, h.columns()...)
	if err := scan(dest...); err != nil {
		return err
	}
	run.Created, run.Updated = time.Unix(0, created).UTC(), time.Unix(0, updated).UTC()
	if request.Valid {
		run.Request = json.RawMessage(request.String)
	}
	if run.State == assay.RunFailed {
		run.Error = errText
	}
	if answer.Valid {
		if err := decodeJSON("answer of run "+run.ID, answer.String, &run.Answer); err != nil {
			return err
		}
	}
	return decodeJSON("principal of run "+run.ID, principal, &run.Principal)
}

// Run implements store.Runs.
func (r runs) Run(ctx context.Context, id string) (assay.Run, error) {
	var run assay.Run
	var h leaseHolder
	err := scanRun(func(dest ...any) error { return r.t.runs.row(ctx, runQuery, []any{id}, dest...) }, &run, &h)
	if errors.Is(err, sql.ErrNoRows) {
		err = assay.ErrNotFound
	}
	if err != nil {
		return assay.Run{}, wrap(err, "run %s", id)
	}
	run.Live = r.t.live(h)
	return run, nil
}

// List implements store.Runs. Runs are sorted by Created, and by creation order among equal times.
func (r runs) List(ctx context.Context, limit int) ([]assay.Run, error) {
	if limit <= 0 {
		limit = -1 // no limit in SQLite
	}
	var all []assay.Run
	var holders []leaseHolder
	err := r.t.runs.view(ctx, func(s snapshot) error {
		return s.each(ctx, listQuery, []any{limit}, func(scan func(...any) error) error {
			var run assay.Run
			var h leaseHolder
			if err := scanRun(scan, &run, &h); err != nil {
				return err
			}
			all, holders = append(all, run), append(holders, h)
			return nil
		})
	})
	if err != nil {
		return nil, wrap(err, "list runs")
	}
	for i := range all {
		all[i].Live = r.t.live(holders[i])
	}
	return all, nil
}

// Acquire implements store.Runs. The error is assay.ErrInvalid if the run is done.
func (r runs) Acquire(ctx context.Context, id string) (store.Lease, error) {
	l, err := r.lease(ctx, id, nil, func(t tx) (int64, error) {
		number, state, err := r.free(ctx, t, id)
		if err == nil && state == assay.RunDone {
			err = invalid("it is done")
		}
		return number, err
	})
	if err != nil {
		return nil, wrap(err, "acquire run %s", id)
	}
	return l, nil
}

// free returns the run's number and state. The error is assay.ErrLeased while the run is live.
func (r runs) free(ctx context.Context, t tx, id string) (number int64, state assay.RunState, err error) {
	var h leaseHolder
	err = t.row(ctx, `
SELECT r.number, p.state, p.token, p.owner, p.pid, p.machine, p.boot, p.expires
FROM runs r JOIN progress p ON p.run = r.number WHERE r.id = ?`, []any{id},
		append([]any{&number, &state}, h.columns()...)...)
	if errors.Is(err, sql.ErrNoRows) {
		err = assay.ErrNotFound
	}
	if err == nil && r.t.live(h) {
		err = fmt.Errorf("%w: process %d on %s", assay.ErrLeased, h.pid.Int64, h.machine.String)
	}
	return number, state, err
}

// Delete implements store.Runs.
func (r runs) Delete(ctx context.Context, id string) error {
	u, err := r.t.runsUpdater(ctx)
	if err == nil {
		err = u.update(ctx, func(t tx) error { return r.delete(ctx, t, id) })
	}
	return wrap(err, "delete run %s", id)
}

func (r runs) delete(ctx context.Context, t tx, id string) error {
	number, _, err := r.free(ctx, t, id)
	if err != nil {
		return err
	}
	var own []int64 // values that no other run uses
	err = t.each(ctx, `
SELECT u.value FROM value_uses u WHERE u.run = ?1
AND NOT EXISTS (SELECT 1 FROM value_uses o WHERE o.value = u.value AND o.run <> ?1)`,
		[]any{number}, func(scan func(...any) error) error {
			var value int64
			err := scan(&value)
			own = append(own, value)
			return err
		})
	if err != nil {
		return err
	}
	if _, err := t.exec(ctx, `DELETE FROM runs WHERE number = ?`, number); err != nil {
		return err
	}
	for _, value := range own {
		if _, err := t.exec(ctx, `DELETE FROM long_values WHERE number = ?`, value); err != nil {
			return err
		}
	}
	return nil
}
