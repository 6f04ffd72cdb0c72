package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/assay-rag/assay/store/internal/relational"
)

// An updater changes a database, one transaction at a time, over its own connection with prepared
// statements.
type updater struct {
	path  string
	turn  chan struct{} // holds one element while no goroutine has the turn
	pool  *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt // guarded by turn
}

// openUpdater opens a connection for changes to d.
func openUpdater(ctx context.Context, d *database) (*updater, error) {
	pool, err := openPool(d.path, modeWrite, false, turnWait)
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(context.WithoutCancel(ctx))
	if err != nil {
		return nil, errors.Join(wrap(err, "open %s", d.path), pool.Close())
	}
	u := &updater{path: d.path, turn: make(chan struct{}, 1), pool: pool, conn: conn, stmts: make(map[string]*sql.Stmt)}
	u.turn <- struct{}{}
	return u, nil
}

// Update implements relational.Updater.
func (u *updater) Update(ctx context.Context, fn func(relational.Tx) error) error {
	if err := u.takeTurn(ctx); err != nil {
		return err
	}
	defer u.endTurn()
	return u.updateInTurn(ctx, fn)
}

// takeTurn waits until no other goroutine of this process uses u.
func (u *updater) takeTurn(ctx context.Context) error {
	select {
	case <-u.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *updater) endTurn() { u.turn <- struct{}{} }

// Turn implements relational.Updater.
func (u *updater) Turn(ctx context.Context, fn func(relational.Updater) error) error {
	if err := u.takeTurn(ctx); err != nil {
		return err
	}
	defer u.endTurn()
	return fn(inTurn{u})
}

// An inTurn is an updater whose turn is taken.
type inTurn struct{ *updater }

// Update implements relational.Updater.
func (u inTurn) Update(ctx context.Context, fn func(relational.Tx) error) error {
	return u.updateInTurn(ctx, fn)
}

// updateInTurn is Update for a caller that has the turn.
func (u *updater) updateInTurn(ctx context.Context, fn func(relational.Tx) error) error {
	if err := u.begin(ctx); err != nil {
		return err
	}
	t := tx{u}
	err := fn(t)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = t.end("COMMIT")
	}
	if err != nil {
		t.rollback()
	}
	return err
}

// begin takes the write lock of the database, which other processes may hold.
func (u *updater) begin(ctx context.Context) error {
	deadline := time.Now().Add(writerWait)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := tx{u}.end("BEGIN IMMEDIATE")
		if !isBusy(err) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("other processes have been writing for %s: %w", writerWait, err)
		}
	}
}

// Close implements relational.Updater.
func (u *updater) Close() error {
	<-u.turn
	defer u.endTurn()
	var errs []error
	for _, s := range u.stmts {
		errs = append(errs, s.Close())
	}
	clear(u.stmts)
	errs = append(errs, u.conn.Close(), u.pool.Close())
	return wrap(errors.Join(errs...), "close %s", u.path)
}

// A tx is a transaction in progress.
type tx struct{ u *updater }

// Exec implements relational.Tx.
func (t tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := t.prepared(ctx, query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return 0, classify(err)
	}
	return r.RowsAffected()
}

// ExecAll implements relational.Tx.
func (t tx) ExecAll(ctx context.Context, query string, args [][]any) (int64, error) {
	var all int64
	for _, a := range args {
		n, err := t.Exec(ctx, query, a...)
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}

// Insert implements relational.Tx.
func (t tx) Insert(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := t.prepared(ctx, query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return 0, classify(err)
	}
	return r.LastInsertId()
}

// Row implements relational.Reader.
func (t tx) Row(ctx context.Context, query string, args []any, dest ...any) error {
	s, err := t.prepared(ctx, query)
	if err != nil {
		return err
	}
	return classify(s.QueryRowContext(context.WithoutCancel(ctx), args...).Scan(dest...))
}

// Each implements relational.Reader.
func (t tx) Each(ctx context.Context, query string, args []any, fn func(scan func(...any) error) error) error {
	s, err := t.prepared(ctx, query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return classify(err)
	}
	return eachRow(ctx, rows, fn)
}

func (t tx) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return t.statement(query)
}

func (t tx) statement(query string) (*sql.Stmt, error) {
	if s, ok := t.u.stmts[query]; ok {
		return s, nil
	}
	s, err := t.u.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, classify(err)
	}
	t.u.stmts[query] = s
	return s, nil
}

// end runs a statement that begins or ends a transaction.
func (t tx) end(query string) error {
	s, err := t.statement(query)
	if err != nil {
		return err
	}
	_, err = s.ExecContext(context.Background())
	return classify(err)
}

// rollback undoes the change. Its error is ignored: it means that SQLite has already rolled back,
// as it does when the disk is full.
func (t tx) rollback() { _ = t.end("ROLLBACK") }
