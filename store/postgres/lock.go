package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/internal/relational"
)

// Locks are advisory locks with two keys: lockBase plus the number of the tenant, 0 for the system, and
// one of those below. Named locks have negative keys.
const (
	lockBase int32 = 0x61730000

	lockContent    int32 = 1 // a transaction that changes content
	lockRuns       int32 = 2 // a transaction that changes runs
	lockWriter     int32 = 3 // the right to write content
	lockTenants    int32 = 4 // of the system: a change of tenants
	lockMigrations int32 = 5 // of the system: a migration

	lockDefinitions int32 = 6 // of the system: a schema for comparison
)

// namedLock returns the key of a named lock.
func namedLock(name string) int32 {
	sum := sha256.Sum256([]byte(name))
	return int32(binary.BigEndian.Uint32(sum[:]) | 1<<31)
}

// A heldLock is an advisory lock of a connection of its own. The server releases it when the connection
// ends, and with it when the process dies.
//
// The lock of a writer also has a token, which each new writer changes. A writer whose connection was
// lost takes the lock again and goes on if the token is still its own; otherwise another one has written
// meanwhile.
type heldLock struct {
	s     *Store
	key   int32
	owner tenancy
	what  string
	token int64 // of a writer; 0: none
	conn  *session
}

// take takes a lock. The error is assay.ErrLocked if it is held.
func (s *Store) take(ctx context.Context, owner tenancy, key int32, what string) (*heldLock, error) {
	l := &heldLock{s: s, key: key, owner: owner, what: what}
	if err := l.connect(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// connect takes the lock on a connection that another lock has left, or a new one.
func (l *heldLock) connect(ctx context.Context) error {
	for {
		conn, used := l.s.unlocked.take()
		if !used {
			var err error
			if conn, err = l.s.dial(ctx, true); err != nil {
				return err
			}
		}
		var ok bool
		err := conn.row(`SELECT pg_try_advisory_lock(CAST(? AS int), CAST(? AS int))`, l.keys(), []any{&ok})
		switch {
		case isLost(err) && used: // while nobody used it
			_ = conn.Close()
			continue
		case err != nil:
			return errors.Join(err, conn.Close())
		case !ok:
			return errors.Join(fmt.Errorf("%w: %s is held", assay.ErrLocked, l.what), l.s.unlocked.put(conn))
		}
		l.conn = conn
		return nil
	}
}

// maxUnlocked is how many connections without a lock are kept. A new one costs the server a process, and would
// cost more than the change that most locks are for.
const maxUnlocked = 4

// unlocked are connections that hold no lock now. It is safe for concurrent use.
type unlocked struct {
	mu     sync.Mutex
	idle   []*session
	closed bool
}

// take returns a connection, if there is one.
func (u *unlocked) take() (*session, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.idle) == 0 {
		return nil, false
	}
	last := u.idle[len(u.idle)-1]
	u.idle = u.idle[:len(u.idle)-1]
	return last, true
}

// put keeps a connection, or closes it.
func (u *unlocked) put(s *session) error {
	u.mu.Lock()
	usable := s.broken == nil && !s.conn.IsClosed() && s.conn.TxStatus() == 'I'
	if usable && !u.closed && len(u.idle) < maxUnlocked {
		u.idle = append(u.idle, s)
		u.mu.Unlock()
		return nil
	}
	u.mu.Unlock()
	return s.Close()
}

// close closes the connections, and those that are put later.
func (u *unlocked) close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var errs []error
	for _, s := range u.idle {
		errs = append(errs, s.Close())
	}
	u.idle, u.closed = nil, true
	return errors.Join(errs...)
}

// session returns the connection with the lock.
func (l *heldLock) session(ctx context.Context) (*session, error) {
	if l.conn.broken != nil || l.conn.conn.IsClosed() {
		if err := l.connect(ctx); err != nil {
			return nil, fmt.Errorf("%s was lost with its connection: %w", l.what, err)
		}
	}
	return l.conn, nil
}

// check returns assay.ErrLocked if the token is that of another writer, who has had the lock since.
func (l *heldLock) check(token int64) error {
	if l.token == 0 || token == l.token {
		return nil
	}
	return fmt.Errorf("%s was lost, and another process has written since: %w", l.what, assay.ErrLocked)
}

// Close releases the lock. A lock whose connection was lost is free already.
func (l *heldLock) Close() error {
	var held bool
	err := l.conn.row(`SELECT pg_advisory_unlock(CAST(? AS int), CAST(? AS int))`, l.keys(), []any{&held})
	switch {
	case isLost(err):
		return nil
	case err == nil && held:
		err = l.s.unlocked.put(l.conn)
	default:
		err = errors.Join(err, l.conn.Close())
	}
	return wrap(err, "release %s", l.what)
}

// keys returns the parameters of queries about the lock.
func (l *heldLock) keys() []any { return []any{int64(lockBase + l.owner.number), int64(l.key)} }

// Lock implements store.Tenant. The lock ends with the connection that holds it.
func (t *Tenant) Lock(ctx context.Context, name string) (io.Closer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := relational.CheckFileName(name); err != nil {
		return nil, err
	}
	if err := t.CheckWritable(); err != nil {
		return nil, err
	}
	l, err := t.s.take(ctx, t.tenancy, namedLock(name), "the lock "+name)
	if err != nil {
		return nil, wrap(err, "lock %s of tenant %s", name, t.Name())
	}
	return l, nil
}

// writerHolder names this process.
func writerHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// lockWriter makes this process the writer of a tenant's content.
func (t *Tenant) lockWriter(ctx context.Context) (*updater, func() error, error) {
	l, err := t.s.take(ctx, t.tenancy, lockWriter, "the writer's lock")
	if errors.Is(err, assay.ErrLocked) {
		return nil, nil, fmt.Errorf("%w: it is held by %s", assay.ErrLocked, t.writerName(ctx))
	}
	if err != nil {
		return nil, nil, err
	}
	u := &updater{d: t.content, turn: newTurn(), held: l}
	var token int64
	err = u.Update(ctx, func(x relational.Tx) error {
		return x.Row(ctx, `UPDATE writer SET token = token + 1, holder = ? RETURNING token`, []any{writerHolder()}, &token)
	})
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	l.token = token
	release := func() error {
		ctx := context.Background()
		err := u.Update(ctx, func(x relational.Tx) error {
			_, err := x.Exec(ctx, `UPDATE writer SET holder = ''`)
			return err
		})
		if errors.Is(err, assay.ErrLocked) || errors.Is(err, assay.ErrNotFound) || isLost(err) {
			err = nil // the right is another's already, or the tenant is gone
		}
		return errors.Join(err, l.Close())
	}
	return u, release, nil
}

// writerName returns the name of the last writer.
func (t *Tenant) writerName(ctx context.Context) string {
	var holder string
	if err := t.content.Row(ctx, `SELECT holder FROM writer`, nil, &holder); err != nil || holder == "" {
		return "another process"
	}
	return holder
}

// checkUnlocked returns assay.ErrLocked if a process writes the content or holds a lock of the tenant.
func (t *Tenant) checkUnlocked(ctx context.Context) error {
	var held []string
	err := t.runs.View(ctx, func(r relational.Reader) error {
		return r.Each(ctx, `
SELECT CAST(objid AS bigint), pid FROM pg_locks
WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND CAST(classid AS bigint) = ? AND objsubid = 2 AND granted`, []any{int64(uint32(lockBase + t.number))}, func(scan func(...any) error) error {
			var key, pid int64
			if err := scan(&key, &pid); err != nil {
				return err
			}
			switch int32(uint32(key)) {
			case lockContent, lockRuns:
			case lockWriter:
				held = append(held, "the writer's lock is held by "+t.writerName(ctx))
			default:
				held = append(held, fmt.Sprintf("a lock is held on the connection %d", pid))
			}
			return nil
		})
	})
	if err == nil && len(held) > 0 {
		err = fmt.Errorf("%w: %s", assay.ErrLocked, strings.Join(held, ", "))
	}
	return err
}
