package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/internal/relational"
)

// A turn lets one goroutine at a time go on.
type turn chan struct{}

func newTurn() turn {
	t := make(turn, 1)
	t <- struct{}{}
	return t
}

// take waits for the turn.
func (t turn) take(ctx context.Context) error {
	select {
	case <-t:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) end() { t <- struct{}{} }

// An updater changes a schema, one transaction at a time. It implements relational.Updater.
//
// Transactions of one schema follow each other: each begins with an advisory lock. Goroutines of one
// process wait for each other before they take a connection.
type updater struct {
	d    *database
	turn turn
	held *heldLock // the lock whose connection it uses; nil: it takes one of the pool
}

var _ relational.Updater = (*updater)(nil)

// Update implements relational.Updater.
func (u *updater) Update(ctx context.Context, fn func(relational.Tx) error) error {
	if err := u.turn.take(ctx); err != nil {
		return err
	}
	defer u.turn.end()
	return u.update(ctx, fn)
}

// Turn implements relational.Updater.
func (u *updater) Turn(ctx context.Context, fn func(relational.Updater) error) error {
	if err := u.turn.take(ctx); err != nil {
		return err
	}
	defer u.turn.end()
	return fn(inTurn{u})
}

// An inTurn is an updater whose turn is taken.
type inTurn struct{ *updater }

// Update implements relational.Updater.
func (u inTurn) Update(ctx context.Context, fn func(relational.Tx) error) error {
	return u.update(ctx, fn)
}

// Close implements relational.Updater.
func (u *updater) Close() error { return nil }

// update is Update for a caller that has the turn.
func (u *updater) update(ctx context.Context, fn func(relational.Tx) error) error {
	queue := u.d.s.queue(u.d.schema(u.d.part))
	if err := queue.take(ctx); err != nil {
		return err
	}
	defer queue.end()
	t, release, err := u.begin(ctx)
	if err != nil {
		return classify(err)
	}
	defer release()
	err = fn(t)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		t.rollback()
		return classify(err)
	}
	return classify(t.commit(u.d.s))
}

// begin begins a transaction. It tries another connection if one was lost.
func (u *updater) begin(ctx context.Context) (*tx, func(), error) {
	for deadline := time.Now().Add(connectWait); ; {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		s, release, err := u.session(ctx)
		if err != nil {
			return nil, nil, err
		}
		t := &tx{s: s}
		err = t.begin(ctx, u)
		if err == nil {
			return t, release, nil
		}
		t.rollback()
		release()
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if !isLost(err) || time.Now().After(deadline) {
			return nil, nil, err
		}
	}
}

// session returns the connection to use and a function that gives it back.
func (u *updater) session(ctx context.Context) (*session, func(), error) {
	if u.held != nil {
		s, err := u.held.session(ctx)
		return s, func() {}, err
	}
	return u.d.s.acquire(ctx, u.d.s.writes)
}

// A tx is a transaction in progress. It implements relational.Tx.
type tx struct {
	s        *session
	xid      string // of the transaction
	timeline string // of the server's write-ahead log
}

const (
	lockQuery = `SELECT pg_advisory_xact_lock(CAST(? AS int), CAST(? AS int))`
	// xidQuery returns by what the outcome of the transaction can be asked for after the connection was
	// lost.
	xidQuery    = `SELECT CAST(pg_current_xact_id() AS text), left(pg_walfile_name(pg_current_wal_lsn()), 8)`
	statusQuery = `SELECT pg_xact_status(CAST(? AS xid8)), left(pg_walfile_name(pg_current_wal_lsn()), 8)`
)

// begin begins the transaction once no other one changes the schema, and checks that the updater's
// lock was not given to another process.
func (t *tx) begin(ctx context.Context, u *updater) error {
	t.s.ctx = ctx
	defer func() { t.s.ctx = context.Background() }()
	t.s.prefix = []call{{query: beginWrite}, {query: enterQuery, args: u.d.enter}, {query: lockQuery, args: u.d.lock}}
	var token int64
	query, dest := xidQuery, []any{&t.xid, &t.timeline}
	if u.held != nil {
		query, dest = xidQuery+`, (SELECT token FROM writer)`, append(dest, &token)
	}
	err := t.s.row(query, nil, dest)
	switch {
	case isLocked(err):
		return fmt.Errorf("other processes have been writing for %s: %w", lockWait, err)
	case err == nil && u.held != nil:
		return u.held.check(token)
	}
	return err
}

// rollback undoes the change. Its error is ignored: a lost connection ends the transaction too.
func (t *tx) rollback() {
	t.s.prefix = nil
	if t.s.broken == nil && t.s.conn.TxStatus() != 'I' {
		_, _ = t.s.do(call{query: `ROLLBACK`})
	}
}

// commit ends the transaction. If the connection is lost in it, another one asks for its outcome.
func (t *tx) commit(s *Store) error {
	_, err := t.s.do(call{query: `COMMIT`})
	if !isLost(err) {
		return err
	}
	committed, askErr := t.outcome(s)
	switch {
	case askErr != nil:
		return fmt.Errorf("%w: %v; it is not known whether the change was stored: %v", assay.ErrUnavailable, err, askErr)
	case committed:
		return nil
	}
	return final(err)
}

// outcome reports whether the transaction was committed.
func (t *tx) outcome(s *Store) (committed bool, err error) {
	const pause = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), connectWait+replyWait)
	defer cancel()
	for {
		var status, timeline string
		err := s.system.reading(ctx, func(x *session) error { return x.row(statusQuery, []any{t.xid}, []any{&status, &timeline}) })
		switch {
		case err != nil:
			return false, err
		case timeline != t.timeline:
			return false, errors.New("another server has taken over")
		case status != "in progress":
			return status == "committed", nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Exec implements relational.Tx.
func (t *tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	r, err := t.s.do(call{query: query, args: args})
	return r.affected, classify(err)
}

// ExecAll implements relational.Tx. The calls take a round trip for each batch.
func (t *tx) ExecAll(ctx context.Context, query string, args [][]any) (int64, error) {
	const batchCalls, batchBytes = 500, 4 << 20
	var all int64
	var calls []call
	bytes := 0
	for i, a := range args {
		calls = append(calls, call{query: query, args: a})
		for _, arg := range a {
			bytes += sizeOf(arg)
		}
		if len(calls) < batchCalls && bytes < batchBytes && i < len(args)-1 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		r, err := t.s.do(calls...)
		if err != nil {
			return 0, classify(err)
		}
		all, calls, bytes = all+r.all, nil, 0
	}
	return all, nil
}

// Insert implements relational.Tx.
func (t *tx) Insert(ctx context.Context, query string, args ...any) (int64, error) {
	var number int64
	err := t.Row(ctx, query+` RETURNING number`, args, &number)
	return number, err
}

// Row implements relational.Reader.
func (t *tx) Row(ctx context.Context, query string, args []any, dest ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return classify(t.s.row(query, args, dest))
}

// Each implements relational.Reader.
func (t *tx) Each(ctx context.Context, query string, args []any, fn func(scan func(...any) error) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return classify(t.s.each(ctx, query, args, fn))
}

func isLocked(err error) bool { return errors.Is(classify(err), assay.ErrLocked) }

// quote writes a word as an SQL string.
func quote(word string) string { return `'` + word + `'` }

func itoa(n int32) string { return strconv.Itoa(int(n)) }
