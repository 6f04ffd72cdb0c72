package relational

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/store"
)

// A lease is the right to write one run's journal. It implements store.Lease. Every write checks
// the token in the run's row in its own transaction, so a lost lease cannot write.
type lease struct {
	t      *Tenant
	u      Updater
	owner  *owner
	run    string
	number int64 // of the run's row
	token  string

	cancel  context.CancelFunc // ends the renewal
	renewed chan struct{}      // closed when the renewal has ended
	once    sync.Once
	closed  error

	mu     sync.Mutex
	stored map[string]bool // hashes of values stored and recorded for the run

	spent holder // counts what the run spends
}

// A leaseHolder is the holder of a run's lease as stored in the run's row.
type leaseHolder struct {
	token, owner, machine, boot sql.NullString
	pid, expires                sql.NullInt64
}

// columns returns the destinations for token, owner, pid, machine, boot and expires.
func (h *leaseHolder) columns() []any {
	return []any{&h.token, &h.owner, &h.pid, &h.machine, &h.boot, &h.expires}
}

// live reports whether the process that holds the lease is alive. On the same machine the process's
// file lock decides. A lease from another machine counts until it expires.
func (t *Tenant) live(h leaseHolder) bool {
	if !h.token.Valid {
		return false
	}
	t.mu.Lock()
	o := t.owner
	t.mu.Unlock()
	if o != nil && o.word == h.owner.String {
		return o.holds(h.token.String)
	}
	alive, err := ownerAlive(t.place.Leases(), h.owner.String)
	if alive {
		return true
	}
	if err == nil && t.opts.Host.same(Host{Machine: h.machine.String, Boot: h.boot.String}) {
		return false
	}
	return t.now().UnixNano() < h.expires.Int64
}

// leaseOwner returns the owner that represents this process.
func (t *Tenant) leaseOwner() (*owner, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owner == nil {
		o, err := newOwner(t.place.Leases())
		if err != nil {
			return nil, err
		}
		t.owner = o
	}
	return t.owner, nil
}

// lease takes the lease of the run whose number find returns, and appends the records to its journal
// in the same transaction.
func (r runs) lease(ctx context.Context, id string, records []assay.Record, find func(Tx) (int64, error)) (*lease, error) {
	u, err := r.t.RunsUpdater(ctx)
	if err != nil {
		return nil, err
	}
	o, err := r.t.leaseOwner()
	if err != nil {
		return nil, err
	}
	l := &lease{t: r.t, u: u, owner: o, run: id, token: rand.Text(), renewed: make(chan struct{}), stored: make(map[string]bool)}
	l.spent.l, l.spent.u, l.spent.token = ledger(r), u, l.token
	o.hold(l.token)
	err = u.Update(ctx, func(t Tx) error {
		number, err := find(t)
		if err != nil {
			return err
		}
		l.number = number
		if err := l.payFor(ctx, t); err != nil {
			return err
		}
		_, err = t.Exec(ctx, `
UPDATE progress SET token = ?, owner = ?, pid = ?, machine = ?, boot = ?, expires = ? WHERE run = ?`,
			l.token, o.word, os.Getpid(), r.t.opts.Host.Machine, r.t.opts.Host.Boot, l.expiry(), number)
		if err != nil {
			return err
		}
		return l.copy(ctx, t, records)
	})
	if err != nil {
		o.drop(l.token)
		return nil, err
	}
	renewCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	go l.renew(renewCtx)
	return l, nil
}

// payFor sets the subjects for which the run's spending is counted.
func (l *lease) payFor(ctx context.Context, t Tx) error {
	var text string
	if err := t.Row(ctx, `SELECT principal FROM runs WHERE number = ?`, []any{l.number}, &text); err != nil {
		return err
	}
	var p assay.Principal
	if err := decodeJSON("principal of run "+l.run, text, &p); err != nil {
		return err
	}
	l.spent.run, l.spent.subjects = l.number, limit.SubjectsOf(p)
	return nil
}

func (l *lease) expiry() int64 { return l.t.now().Add(l.t.opts.LeaseTime).UnixNano() }

// renew extends the lease until ctx is done or the lease is lost. A failed renewal (for example on
// a full disk) is retried at the next tick; writes check the lease themselves.
func (l *lease) renew(ctx context.Context) {
	defer close(l.renewed)
	tick := time.NewTicker(max(l.t.opts.LeaseTime/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var held int64
		err := l.u.Update(ctx, func(t Tx) (err error) {
			held, err = t.Exec(ctx, `UPDATE progress SET expires = ? WHERE run = ? AND token = ?`, l.expiry(), l.number, l.token)
			return err
		})
		if err == nil && held == 0 {
			return
		}
	}
}

// Append implements store.Lease. Appending a record makes the run active again.
func (l *lease) Append(ctx context.Context, rec assay.Record) (assay.Record, error) {
	if rec.Path == "" || rec.Run != "" && rec.Run != l.run {
		return assay.Record{}, invalid("append to run %s: a record of run %q with path %q", l.run, rec.Run, rec.Path)
	}
	rec.Run = l.run
	l.mu.Lock()
	defer l.mu.Unlock()
	var fresh []string
	err := l.u.Update(ctx, func(t Tx) (err error) {
		if fresh, err = l.append(ctx, t, &rec); err != nil {
			return err
		}
		return l.spent.settle(ctx, t, rec.Path, rec.Usage, false)
	})
	if err != nil {
		return assay.Record{}, wrap(err, "append %s to run %s", rec.Path, l.run)
	}
	for _, hash := range fresh {
		l.stored[hash] = true
	}
	return rec, nil
}

// Reserve implements store.Lease.
func (l *lease) Reserve(ctx context.Context, path string, most assay.Usage, bounds []limit.Bound) error {
	return wrap(l.spent.Reserve(ctx, path, most, bounds), "reserve for %s of run %s", path, l.run)
}

// Settle implements store.Lease.
func (l *lease) Settle(ctx context.Context, path string, used assay.Usage) error {
	return wrap(l.spent.Settle(ctx, path, used), "settle %s of run %s", path, l.run)
}

// copy appends records of another run, whose usage is counted already.
func (l *lease) copy(ctx context.Context, t Tx, records []assay.Record) error {
	for _, rec := range records {
		rec.Run = l.run
		if _, err := l.append(ctx, t, &rec); err != nil {
			return fmt.Errorf("copy the record %s: %w", rec.Path, err)
		}
	}
	return nil
}

// append stores the record and returns the hashes of the values that were not yet recorded for the
// run.
func (l *lease) append(ctx context.Context, t Tx, rec *assay.Record) (fresh []string, err error) {
	err = t.Row(ctx, `
UPDATE progress SET steps = steps + 1, state = 'active', updated = ?, expires = ?
WHERE run = ? AND token = ? AND state <> 'done' RETURNING steps - 1`,
		[]any{l.t.now().UnixNano(), l.expiry(), l.number, l.token}, &rec.Ordinal)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, l.refusal(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	if rec.Sequence, err = NextSequence(ctx, t); err != nil {
		return nil, err
	}
	salt := journal.NewSalt()
	sealed, err := journal.Seal(*rec, salt)
	if err != nil {
		return nil, err
	}
	for _, v := range sealed.Values {
		if l.stored[v.Hash] {
			continue
		}
		if err := l.storeValue(ctx, t, v); err != nil {
			return nil, err
		}
		fresh = append(fresh, v.Hash)
	}
	if err := AppendLeaf(ctx, t, rec.Sequence, sealed.Header, sealed.Leaf); err != nil {
		return nil, err
	}
	n, err := t.Exec(ctx, `INSERT INTO records (sequence, run, ordinal, path, salt, payload) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		rec.Sequence, l.number, rec.Ordinal, rec.Path, salt, string(sealed.Payload))
	if err == nil && n == 0 {
		err = l.conflict(ctx, t, rec)
	}
	if err != nil {
		return nil, err
	}
	rec.Bytes, rec.Leaf = sealed.Header, sealed.Leaf
	return fresh, nil
}

// storeValue stores a value if it is new and records that the run uses it.
func (l *lease) storeValue(ctx context.Context, t Tx, v journal.Value) error {
	hash, err := hex.DecodeString(v.Hash)
	if err != nil {
		return fmt.Errorf("hash of a value: %w", err)
	}
	var number int64
	err = t.Row(ctx, `SELECT number FROM long_values WHERE hash = ?`, []any{hash}, &number)
	if errors.Is(err, sql.ErrNoRows) {
		number, err = t.Insert(ctx, `INSERT INTO long_values (hash, data) VALUES (?, ?)`, hash, string(v.Data))
	}
	if err != nil {
		return err
	}
	_, err = t.Exec(ctx, `INSERT INTO value_uses (value, run) VALUES (?, ?) ON CONFLICT DO NOTHING`, number, l.number)
	return err
}

// conflict returns the reason why a record could not be inserted.
func (l *lease) conflict(ctx context.Context, t Tx, rec *assay.Record) error {
	var there bool
	q := `SELECT EXISTS (SELECT 1 FROM records WHERE run = ? AND path = ?)`
	if err := t.Row(ctx, q, []any{l.number, rec.Path}, &there); err != nil {
		return err
	}
	if there {
		return invalid("the journal holds this path already")
	}
	return damaged("the journal holds a record %d that its run does not count, or sequence %d", rec.Ordinal, rec.Sequence)
}

// refusal returns the reason why the run's row rejected a write.
func (l *lease) refusal(ctx context.Context, t Tx) error {
	var state assay.RunState
	var token sql.NullString
	err := t.Row(ctx, `SELECT state, token FROM progress WHERE run = ?`, []any{l.number}, &state, &token)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: this lease was lost and the run deleted", assay.ErrLeased)
	case err != nil:
		return err
	case token.String != l.token:
		return fmt.Errorf("%w: this lease was lost or closed", assay.ErrLeased)
	}
	return invalid("the run is %s", state)
}

// Finish implements store.Lease. state is RunSuspended, RunDone or RunFailed. A done run needs an
// answer. A nil answer keeps the one stored before.
func (l *lease) Finish(ctx context.Context, state assay.RunState, answer *assay.Answer, errText string) error {
	err := checkEnd(state, answer)
	if err == nil {
		err = l.u.Update(ctx, func(t Tx) error { return l.finish(ctx, t, state, answer, errText) })
	}
	return wrap(err, "finish run %s", l.run)
}

func checkEnd(state assay.RunState, answer *assay.Answer) error {
	switch state {
	case assay.RunDone:
		if answer == nil {
			return invalid("it would be done without an answer")
		}
		return nil
	case assay.RunSuspended, assay.RunFailed:
		return nil
	}
	return invalid("%q is no end", state)
}

// finish ends the run or suspends it, and pins the versions that the answer cites and those in pins.
func (l *lease) finish(ctx context.Context, t Tx, state assay.RunState, answer *assay.Answer, errText string, pins ...store.Pin) error {
	n, err := t.Exec(ctx, `UPDATE progress SET state = ?, updated = ? WHERE run = ? AND token = ? AND state <> 'done'`,
		string(state), l.t.now().UnixNano(), l.number, l.token)
	if err != nil {
		return err
	}
	if n == 0 {
		return l.refusal(ctx, t)
	}
	if _, err := t.Exec(ctx, `UPDATE runs SET error = ? WHERE number = ?`, errText, l.number); err != nil {
		return err
	}
	ended := runEnded{State: state, Error: errText}
	if answer != nil {
		b, err := json.Marshal(answer)
		if err != nil {
			return invalid("answer: %v", err)
		}
		if _, err := t.Exec(ctx, `UPDATE runs SET answer = ? WHERE number = ?`, string(b), l.number); err != nil {
			return err
		}
		ended.Answer = hashOf(b)
		for _, c := range answer.Citations {
			if c.Origin == assay.FromDocuments {
				pins = append(pins, store.Pin{Document: c.Document, Version: c.Version})
			}
		}
		if ended.Pins, err = l.pin(ctx, t, pins); err != nil {
			return err
		}
	}
	kind := store.KindRunEnded
	if state == assay.RunSuspended {
		kind = store.KindRunSuspended
	}
	return appendRunAct(ctx, t, l.t.now(), kind, l.run, assay.Principal{}, ended)
}

// pin keeps versions of documents as long as the run. It returns those that it did not keep before.
func (l *lease) pin(ctx context.Context, t Tx, pins []store.Pin) ([]pin, error) {
	var added []pin
	for _, p := range pins {
		n, err := t.Exec(ctx, `INSERT INTO pins (document, version, run) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, p.Document, p.Version, l.number)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			added = append(added, pin{p.Document, p.Version})
		}
	}
	return added, nil
}

// Close implements store.Lease. It succeeds if the lease was lost or is already closed. If it
// fails, the run is free once this process has ended.
func (l *lease) Close() error {
	l.once.Do(func() {
		l.cancel()
		<-l.renewed
		l.owner.drop(l.token)
		l.closed = wrap(l.u.Update(context.Background(), func(t Tx) error {
			if err := l.spent.settleRest(context.Background(), t); err != nil {
				return err
			}
			_, err := t.Exec(context.Background(), `
UPDATE progress SET token = NULL, owner = NULL, pid = NULL, machine = NULL, boot = NULL, expires = NULL
WHERE run = ? AND token = ?`, l.number, l.token)
			return err
		}), "close the lease on run %s", l.run)
	})
	return l.closed
}
