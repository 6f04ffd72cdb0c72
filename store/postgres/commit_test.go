package postgres

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pgtest"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
	"github.com/assay-rag/assay/store/storetest"
)

// A cutter makes connections that break at the next commit: before the server gets it, or after the server
// has answered it.
type cutter struct{ before, after atomic.Bool }

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	return &cutConn{Conn: conn, c: c}, err
}

type cutConn struct {
	net.Conn
	c   *cutter
	cut atomic.Bool
}

// Write implements net.Conn. The first commit of a connection has its text.
func (c *cutConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("COMMIT\x00")) {
		if c.c.before.Swap(false) {
			return 0, errors.Join(io.ErrClosedPipe, c.Conn.Close())
		}
		c.cut.Store(c.c.after.Swap(false))
	}
	return c.Conn.Write(b)
}

// Read implements net.Conn.
func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.cut.Load() && err == nil {
		return 0, errors.Join(io.EOF, c.Conn.Close())
	}
	return n, err
}

// TestLostCommit breaks the connection in a commit. A change that the server has committed is reported as
// stored, and one that it has not as failed.
func TestLostCommit(t *testing.T) {
	var c cutter
	address := pgtest.Database(t)
	mustOpen(t, address, WithFolder(t.TempDir())) // migrations are scripts
	s := mustOpen(t, address, WithFolder(t.TempDir()), WithDial(c.dial), WithConnections(2, 2))
	ctx := t.Context()
	if err := s.CreateTenant(ctx, "acme", store.Act{}); err != nil {
		t.Fatal(err)
	}
	tenant, err := s.open(ctx, "acme", false)
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	fresh := func() { // connections that have not committed yet
		s.reads.Reset()
		s.writes.Reset()
	}
	fresh()
	c.after.Store(true)
	if err := tenant.Audit().Append(ctx, store.Act{Kind: "test.done"}); err != nil {
		t.Errorf("a commit whose answer was lost: %v", err)
	}
	if c.after.Load() {
		t.Error("no commit was cut")
	}
	fresh()
	c.before.Store(true)
	err = tenant.Audit().Append(ctx, store.Act{Kind: "test.lost"})
	if !errors.Is(err, assay.ErrUnavailable) || c.before.Load() {
		t.Errorf("a commit that did not reach the server: %v", err)
	}
	if n, err := tenant.Audit().Size(ctx); err != nil || n != 1 {
		t.Errorf("the log has %d entries, %v; want the one that was committed", n, err)
	}
}

// TestManyNested lets more goroutines than there are connections read while they change something, and
// change while others wait.
func TestManyNested(t *testing.T) {
	s := mustOpen(t, pgtest.Database(t), WithFolder(t.TempDir()), WithConnections(2, 2))
	ctx := t.Context()
	var updaters []relational.Updater
	var tenants []*Tenant
	for _, name := range []string{"a", "b", "c"} {
		tenant := filled(t, s, name)
		u, err := tenant.runs.Updater(ctx)
		if err != nil {
			t.Fatal(err)
		}
		updaters, tenants = append(updaters, u), append(tenants, tenant)
	}
	const each = 8
	ended := make(chan error, each*len(updaters))
	for i, u := range updaters {
		for range each {
			go func() {
				ended <- u.Update(ctx, func(relational.Tx) error {
					_, err := tenants[i].Content().Document(ctx, storetest.Entry("c", "/secret", "").Document.ID)
					return err
				})
			}()
		}
	}
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestIdentities(t *testing.T) {
	s := mustOpen(t, pgtest.Database(t), WithFolder(t.TempDir()))
	for _, word := range []string{"", "x", `A"; DROP SCHEMA assay_system CASCADE; --`, "abcdefghijklmnopqrstuvwxyz"} {
		if _, err := s.openTenant(t.Context(), "acme", word); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("a tenant with the word %q: %v", word, err)
		}
	}
}
