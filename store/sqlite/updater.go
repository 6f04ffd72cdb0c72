package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// An updater changes a database, one transaction at a time, over a connection
// of its own whose statements stay prepared.
type updater struct {
	path  string
	turn  chan struct{} // holds one element while nobody has the turn
	pool  *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt // guarded by turn
}

// openUpdater opens the connection over which d is changed.
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

// update runs fn in a transaction, which is durable when update returns nil. On
// any error nothing is changed. Once the commit has begun, ctx is not looked at
// any more.
func (u *updater) update(ctx context.Context, fn func(tx) error) error {
	if err := u.takeTurn(ctx); err != nil {
		return err
	}
	defer u.endTurn()
	return u.updateInTurn(ctx, fn)
}

// takeTurn waits until no one else in this process uses u.
func (u *updater) takeTurn(ctx context.Context) error {
	select {
	case <-u.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *updater) endTurn() { u.turn <- struct{}{} }

// updateInTurn is update for who has the turn.
func (u *updater) updateInTurn(ctx context.Context, fn func(tx) error) error {
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

// begin takes the write lock of the database. Other processes may hold it.
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

func (u *updater) close() error {
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

// A tx is a change under way.
type tx struct{ u *updater }

// exec runs a statement and returns how many rows it changed.
func (t tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := t.prepared(ctx, query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// insert runs an INSERT and returns the number of the new row.
func (t tx) insert(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := t.prepared(ctx, query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// row reads the one row of query into dest; sql.ErrNoRows when there is none.
func (t tx) row(ctx context.Context, query string, args []any, dest ...any) error {
	s, err := t.prepared(ctx, query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(context.WithoutCancel(ctx), args...).Scan(dest...)
}

// each calls fn for each row of query, with what reads the row's columns.
func (t tx) each(ctx context.Context, query string, args []any, fn func(scan func(...any) error) error) error {
	s, err := t.prepared(ctx, query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return err
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
		return nil, err
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
	return err
}

// rollback undoes the change. Its own error says that SQLite has rolled back
// already, as it does by itself when the disk is full.
func (t tx) rollback() { _ = t.end("ROLLBACK") }
