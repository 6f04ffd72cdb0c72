package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// listenCheck is how often a connection without notices is checked.
const listenCheck = 30 * time.Second

// Listen calls fn with the ID of a run of the tenant each time a record is appended to its journal, its
// state changes or it is cancelled, on whichever server. It calls fn with the empty string when it begins, and
// again whenever notices may have been lost: the caller then reads anew what it follows. fn must not
// block for long.
//
// Listen has a connection of its own, which it makes anew when it is lost. It returns when ctx is done, with
// its error, or when the server refuses the connection.
func (t *Tenant) Listen(ctx context.Context, fn func(run string)) error {
	for {
		err := t.listen(ctx, fn)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !isLost(err) {
			return wrap(err, "listen to the runs of tenant %s", t.Name())
		}
	}
}

// listen is Listen until the connection is lost.
func (t *Tenant) listen(ctx context.Context, fn func(run string)) (err error) {
	config := t.s.url.ConnConfig.Copy().Config
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { fn(unescape(n.Payload)) }
	x, err := t.s.dialConfig(ctx, true, &config)
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }() // it has nothing to lose
	if err := x.script(ctx, `LISTEN assay_`+strings.ToLower(t.identity)); err != nil {
		return err
	}
	fn("")
	for {
		limited, cancel := context.WithTimeout(ctx, listenCheck)
		err := x.conn.WaitForNotification(limited)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) && !x.conn.IsClosed() {
			err = x.script(ctx, `SELECT 1`)
		}
		if err != nil {
			return &lostError{err}
		}
	}
}
