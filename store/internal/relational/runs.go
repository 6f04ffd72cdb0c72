package relational

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/store"
)

// runs stores a tenant's runs in runs.db. It implements store.Runs.
type runs struct {
	t *Tenant
}

// Create implements store.Runs. It uses only r's ID, Principal, Question, Request and Created. A
// zero Created means now. The error is assay.ErrInvalid if the ID exists.
func (r runs) Create(ctx context.Context, run assay.Run, records ...assay.Record) (store.Lease, error) {
	l, err := r.create(ctx, run, records, func(Tx, int64) error { return nil })
	if err != nil {
		return nil, wrap(err, "create run %s", run.ID)
	}
	return l, nil
}

// create stores a run, and calls more in the same transaction with its number.
func (r runs) create(ctx context.Context, run assay.Run, records []assay.Record, more func(Tx, int64) error) (*lease, error) {
	row, err := encodeRun(run)
	if err != nil {
		return nil, err
	}
	now := r.t.now()
	if run.Created.IsZero() {
		run.Created = now
	}
	return r.lease(ctx, run.ID, records, func(t Tx) (int64, error) {
		var exists bool
		if err := t.Row(ctx, `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?)`, []any{run.ID}, &exists); err != nil {
			return 0, err
		}
		if exists {
			return 0, invalid("there is such a run already")
		}
		number, err := t.Insert(ctx, `
INSERT INTO runs (id, principal, question, request, created, error) VALUES (?, ?, ?, ?, ?, '')`,
			run.ID, row.principal, run.Question, row.request, run.Created.UnixNano())
		if err != nil {
			return 0, err
		}
		_, err = t.Exec(ctx, `INSERT INTO progress (run, state, steps, updated) VALUES (?, ?, 0, ?)`,
			number, string(assay.RunActive), now.UnixNano())
		if err != nil {
			return 0, err
		}
		if err := more(t, number); err != nil {
			return 0, err
		}
		if err := ledger(r).count(ctx, t, limit.SubjectsOf(run.Principal), dayOf(now), store.Amount{Requests: 1}, false); err != nil {
			return 0, err
		}
		begun := runBegun{
			Question: hashOf([]byte(run.Question)), Request: hashOf(run.Request), Principal: hashOf([]byte(row.principal)),
			Created: run.Created.UnixNano(),
		}
		return number, appendRunAct(ctx, t, now, store.KindRunBegun, run.ID, run.Principal, begun)
	})
}

// The details of the acts on runs. Hashes are the SHA-256 of what is in the run's row, in lower-case
// hexadecimal.
type (
	// runBegun is the detail of run.begun.
	runBegun struct {
		Question  string `json:"question"`
		Request   string `json:"request"`   // of no bytes if there is none
		Principal string `json:"principal"` // JSON
		Created   int64  `json:"created"`   // nanoseconds since 1970
	}
	// runEnded is the detail of run.ended and run.suspended.
	runEnded struct {
		State  assay.RunState `json:"state"`
		Answer string         `json:"answer,omitempty"` // empty: it keeps the answer that it has
		Error  string         `json:"error,omitempty"`
		Pins   []pin          `json:"pins,omitempty"` // further ones
	}
	// runOffered is the detail of run.offered.
	runOffered struct {
		Key string `json:"key"`
	}
)

// A pin is a version that a run's answer cites.
type pin struct {
	Document string `json:"document"`
	Version  string `json:"version"`
}

// hashOf returns the SHA-256 of data in hexadecimal.
func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// appendRunAct appends an act on a run to the audit log.
func appendRunAct(ctx context.Context, t Tx, now time.Time, kind, run string, actor assay.Principal, detail any) error {
	data, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	return appendAct(ctx, t, now, store.Act{Kind: kind, Subject: run, Actor: actor, Detail: data})
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

func citingQuery(d Dialect) string {
	return `SELECT ` + runColumns + ` FROM runs r JOIN progress p ON p.run = r.number
WHERE r.number IN (SELECT run FROM pins WHERE document = ?) AND ` + d.Member("r.principal", "user") + ` = ?
ORDER BY r.created DESC, r.number DESC LIMIT ?`
}

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
	err := scanRun(func(dest ...any) error { return r.t.runs.Row(ctx, runQuery, []any{id}, dest...) }, &run, &h)
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
	all, err := r.list(ctx, listQuery, limitOf(limit))
	return all, wrap(err, "list runs")
}

// Citing implements store.Runs.
func (r runs) Citing(ctx context.Context, document, user string, limit int) ([]assay.Run, error) {
	all, err := r.list(ctx, citingQuery(r.t.runs.Dialect()), document, user, limitOf(limit))
	return all, wrap(err, "list the runs that cite document %s", document)
}

// noLimit is a limit above all numbers of rows.
const noLimit = 1 << 60

// limitOf returns the limit of a query.
func limitOf(limit int) int {
	if limit <= 0 {
		return noLimit
	}
	return limit
}

// list returns the runs that a query selects.
func (r runs) list(ctx context.Context, query string, args ...any) ([]assay.Run, error) {
	var all []assay.Run
	var holders []leaseHolder
	err := r.t.runs.View(ctx, func(s Reader) error {
		return s.Each(ctx, query, args, func(scan func(...any) error) error {
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
		return nil, err
	}
	for i := range all {
		all[i].Live = r.t.live(holders[i])
	}
	return all, nil
}

// Acquire implements store.Runs. The error is assay.ErrInvalid if the run is done.
func (r runs) Acquire(ctx context.Context, id string) (store.Lease, error) {
	l, err := r.lease(ctx, id, nil, func(t Tx) (int64, error) {
		number, state, err := r.free(ctx, t, id)
		if err == nil && (state == assay.RunDone || state == assay.RunErased) {
			err = invalid("it is %s", state)
		}
		if err == nil {
			err = r.t.notInReview(ctx, t, number)
		}
		return number, err
	})
	if err != nil {
		return nil, wrap(err, "acquire run %s", id)
	}
	return l, nil
}

// free returns the run's number and state. The error is assay.ErrLeased while the run is live.
func (r runs) free(ctx context.Context, t Tx, id string) (number int64, state assay.RunState, err error) {
	var h leaseHolder
	err = t.Row(ctx, `
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
func (r runs) Delete(ctx context.Context, id string, why store.Act) error {
	why.Subject = id
	var u Updater
	var err error
	if why.Kind == store.KindRunDeleted || why.Kind == store.KindRunExpired {
		u, err = r.t.RunsUpdater(ctx)
	} else {
		err = invalid("%q is no act that deletes a run", why.Kind)
	}
	if err == nil {
		err = u.Update(ctx, func(t Tx) error {
			if err := r.delete(ctx, t, id); err != nil {
				return err
			}
			if why.Kind == store.KindRunDeleted {
				if _, err := t.Exec(ctx, `DELETE FROM questions WHERE run = ?`, id); err != nil {
					return err
				}
			}
			return eraseAbout(ctx, t, r.t.now(), id, why, runErased{})
		})
	}
	return wrap(err, "delete run %s", id)
}

func (r runs) delete(ctx context.Context, t Tx, id string) error {
	number, _, err := r.free(ctx, t, id)
	if err == nil {
		err = r.t.notInReview(ctx, t, number)
	}
	if err != nil {
		return err
	}
	if err := r.checkHeld(ctx, t, id); err != nil {
		return err
	}
	own, err := ownValues(ctx, t, number)
	if err != nil {
		return err
	}
	if _, err := t.Exec(ctx, `DELETE FROM runs WHERE number = ?`, number); err != nil {
		return err
	}
	return deleteValues(ctx, t, own)
}
