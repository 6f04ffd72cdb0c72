package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pgtest"
	"github.com/assay-rag/assay/store"
)

// TestListen follows a run that another server drives, also after the connection was lost, and hears nothing of
// another tenant's runs.
func TestListen(t *testing.T) {
	address := pgtest.Database(t)
	driver, viewer := mustOpen(t, address, WithFolder(t.TempDir())), mustOpen(t, address, WithFolder(t.TempDir()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tenants := map[string]*Tenant{}
	for _, name := range []string{"acme", "other"} {
		if err := driver.CreateTenant(ctx, name, store.Act{}); err != nil {
			t.Fatal(err)
		}
		var err error
		if tenants[name], err = driver.open(ctx, name, false); err != nil {
			t.Fatal(err)
		}
		defer tenants[name].Close()
	}
	viewed, err := viewer.open(ctx, "acme", false)
	if err != nil {
		t.Fatal(err)
	}
	defer viewed.Close()
	heard, ended := make(chan string, 1000), make(chan error, 1)
	go func() { ended <- viewed.Listen(ctx, func(run string) { heard <- run }) }()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-heard:
			if got != want {
				t.Errorf("heard %q, want %q", got, want)
			}
		case err := <-ended:
			t.Fatalf("Listen: %v", err)
		}
	}
	next("") // it listens
	begin := func(tenant *Tenant, run string) store.Lease {
		t.Helper()
		l, err := tenant.Runs().Create(ctx, assay.Run{ID: run, Question: "?"})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	secret := begin(tenants["other"], "secret")
	l := begin(tenants["acme"], "run \x00 ü")
	next("run \x00 ü")
	if _, err := l.Append(ctx, crashRecord(0)); err != nil {
		t.Fatal(err)
	}
	next("run \x00 ü")
	endConnections(t, address)
	next("")
	if err := l.Finish(ctx, assay.RunFailed, nil, "no more"); err != nil {
		t.Fatal(err)
	}
	next("run \x00 ü")
	if err := errors.Join(l.Close(), secret.Close()); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Listen ends with %v", err)
	}
	if len(heard) > 0 {
		t.Errorf("then heard %q", <-heard)
	}
}
