package postgres

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/assay-rag/assay"
)

// A lateContext has passed its deadline, and its timer has not run yet.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// TestConnectLate checks that the end of the caller's time is not taken for that of the server's.
func TestConnectLate(t *testing.T) {
	t.Parallel()
	c := &connector{wait: time.Minute}
	timeout := func(context.Context) error { return context.DeadlineExceeded } // as package net returns it
	err := c.retrying(lateContext{t.Context()}, timeout)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("the caller's time is over: %v", err)
	}
	if err := c.retrying(t.Context(), timeout); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("the server does not answer: %v", err)
	}
}

// TestDialLate checks the same with a server that accepts the connection and does not answer the first
// statement on it, which sets the role.
func TestDialLate(t *testing.T) {
	t.Parallel()
	url, err := parseURL("postgres://user@"+silentServer(t)+"/db?sslmode=disable", options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConnector(url, options{readers: 1, writers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	for _, test := range []struct {
		name string
		call func(context.Context) error
	}{
		{"a connection of its own", func(ctx context.Context) error {
			_, err := c.dial(ctx, true)
			return err
		}},
		{"one of a pool", func(ctx context.Context) error {
			_, _, err := c.acquire(ctx, c.writes)
			return err
		}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := test.call(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// silentServer returns the address of a server that logs anyone in and answers no statement.
func silentServer(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			go func() {
				defer func() { _ = conn.Close() }()
				b := pgproto3.NewBackend(conn, conn)
				if _, err := b.ReceiveStartupMessage(); err != nil {
					return
				}
				b.Send(&pgproto3.AuthenticationOk{})
				b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
				for err := b.Flush(); err == nil; {
					_, err = b.Receive()
				}
			}()
		}
	}()
	return l.Addr().String()
}
