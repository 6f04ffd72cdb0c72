// Package pgtest gives tests databases of their own on the PostgreSQL server that scripts/postgres
// starts.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Server returns the URL of the server, as its superuser. It skips the test if there is none.
func Server(t testing.TB) string {
	t.Helper()
	server := os.Getenv("ASSAY_TEST_POSTGRES")
	if server == "" {
		t.Skip("ASSAY_TEST_POSTGRES names no PostgreSQL server: run the test by scripts/postgres")
	}
	return server
}

// Database is DatabaseOn the server. It skips the test if there is none.
func Database(t testing.TB) string {
	t.Helper()
	return DatabaseOn(t, Server(t))
}

// DatabaseOn creates an empty database on a server, which is dropped when the test ends, and returns
// its URL.
func DatabaseOn(t testing.TB, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	if err := execute(server, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := execute(server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u.Path = "/" + name
	return u.String()
}

// execute runs a statement after the end of the test's context too.
func execute(server, statement string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}
