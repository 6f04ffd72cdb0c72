package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/assay-rag/assay"
)

const (
	// ownerRole owns the tables. Only migrations and changes of tenants use it.
	ownerRole = "assay_owner"
	// appRole reads and writes rows. It owns nothing, so that it cannot go round the policies.
	appRole = "assay_app"

	// lockWait bounds how long a statement waits for a lock.
	lockWait = 30 * time.Second
	// idleWait bounds how long a transaction may be idle.
	idleWait = 10 * time.Minute
	// connectWait bounds how long a connection is tried again while the server starts or another one takes
	// over, and openWait that of Open.
	connectWait = 20 * time.Second
	openWait    = 5 * time.Second
)

// A connector makes connections.
type connector struct {
	url     *pgxpool.Config
	timeout time.Duration // of a statement
	wait    time.Duration // while the server does not accept connections
	reads   *pgxpool.Pool
	writes  *pgxpool.Pool
}

// parseURL reads the address of a database. Its errors do not contain the password.
func parseURL(url string, o options) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, invalid("the address of the PostgreSQL database cannot be read; want postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	if o.dial != nil {
		c.ConnConfig.DialFunc = o.dial
	}
	p := c.ConnConfig.RuntimeParams
	p["application_name"] = "assay"
	p["search_path"] = "pg_temp"
	p["statement_timeout"] = milliseconds(o.statementTimeout)
	p["lock_timeout"] = milliseconds(min(lockWait, o.statementTimeout))
	p["idle_in_transaction_session_timeout"] = milliseconds(idleWait)
	p["idle_session_timeout"] = "0" // locks and listeners wait
	p["tcp_keepalives_idle"] = "15"
	p["tcp_keepalives_interval"] = "5"
	p["tcp_keepalives_count"] = "3"
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = replyWait
	}
	return c, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// become makes a connection the application's: it gets the role without rights to define anything,
// and waits until its commits are on disk.
const become = `
SET ROLE ` + appRole + `;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')`

// becomeApp is a step of connecting, so that the end of the caller's time counts as such in it too.
func becomeApp(ctx context.Context, conn *pgconn.PgConn) error {
	_, err := conn.Exec(ctx, become).ReadAll()
	return err
}

// newConnector opens the pools. The roles must exist.
func newConnector(c *pgxpool.Config, o options) (*connector, error) {
	to := &connector{url: c, timeout: o.statementTimeout, wait: connectWait}
	var err error
	if to.reads, err = to.pool(o.readers); err == nil {
		to.writes, err = to.pool(o.writers)
	}
	if err != nil {
		to.close()
		return nil, err
	}
	return to, nil
}

func (c *connector) pool(most int32) (*pgxpool.Pool, error) {
	config := c.url.Copy()
	config.MaxConns, config.MinConns = most, 0
	config.ConnConfig.AfterConnect = becomeApp
	return pgxpool.NewWithConfig(context.Background(), config)
}

func (c *connector) close() {
	for _, pool := range []*pgxpool.Pool{c.reads, c.writes} {
		if pool != nil {
			pool.Close()
		}
	}
}

// acquire takes a connection of a pool. It waits while the server starts.
func (c *connector) acquire(ctx context.Context, pool *pgxpool.Pool) (*session, func(), error) {
	var conn *pgxpool.Conn
	err := c.retrying(ctx, func(ctx context.Context) (err error) {
		conn, err = pool.Acquire(ctx)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return sessionOf(conn.Conn().PgConn(), c.timeout), conn.Release, nil
}

// dial makes a connection outside the pools, with the role of the application or that of the address.
func (c *connector) dial(ctx context.Context, asApp bool) (*session, error) {
	return c.dialConfig(ctx, asApp, &c.url.ConnConfig.Copy().Config)
}

func (c *connector) dialConfig(ctx context.Context, asApp bool, config *pgconn.Config) (*session, error) {
	if asApp {
		config.AfterConnect = becomeApp
	}
	var conn *pgconn.PgConn
	err := c.retrying(ctx, func(ctx context.Context) (err error) {
		conn, err = pgconn.ConnectConfig(ctx, config)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sessionOf(conn, c.timeout), nil
}

// retrying calls connect until it succeeds, the server refuses the user, or time is up.
func (c *connector) retrying(ctx context.Context, connect func(context.Context) error) error {
	const pause = 100 * time.Millisecond
	deadline := time.Now().Add(c.wait)
	for {
		limited, cancel := context.WithTimeout(ctx, c.wait+replyWait)
		err := connect(limited)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case isOver(ctx): // the network noticed it before the context
			return context.DeadlineExceeded
		case !starting(err) || time.Now().After(deadline):
			return connectError(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// isOver reports whether the deadline of ctx has passed.
func isOver(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

// starting reports whether a server may soon accept the connection: it starts, is promoted, has no
// free place, or does not listen yet.
func starting(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "57P03" || pg.Code == "57P01" || pg.Code == "57P02" || pg.Code == "53300"
	}
	var op *net.OpError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.As(err, &op)
}

// connectError describes a failed connection without the password of the address, which pgconn
// leaves out too.
func connectError(err error) error {
	if err := roleError(err); errors.Is(err, errUnprepared) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: all connections to the database were in use, or the server did not answer", assay.ErrUnavailable)
	}
	var refused *pgconn.ConnectError
	if errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", assay.ErrUnavailable, err)
	}
	return err
}

// roleError adds errUnprepared to the error of a statement that sets a role which is not there.
func roleError(err error) error {
	switch codeOf(err) {
	case "22023", "42704", "42501":
		return fmt.Errorf("%w: %w", errUnprepared, err)
	}
	return err
}

// errUnprepared says that roles or schemas are missing and the user of the address cannot create them.
var errUnprepared = fmt.Errorf("%w: the database is not prepared: let a superuser or a role with CREATEROLE open it once, or create the roles %s and %s, grant them to the user, and grant CREATE on the database to %s",
	assay.ErrReadOnly, ownerRole, appRole, ownerRole)
