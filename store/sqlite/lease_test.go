package sqlite

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/internal/relational"
)

// wantKind reports an error unless err is of the kind and its message contains all parts.
func wantKind(t *testing.T, what string, err, kind error, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s = %v, want an error of kind %q", what, err, kind)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: error %q does not name %s", what, err, p)
		}
	}
}

func openTestTenant(t *testing.T, opts ...Option) *Tenant {
	t.Helper()
	s, err := Open(t.Context(), t.TempDir(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := created(s, t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tenant.Close(); err != nil {
			t.Error(err)
		}
	})
	return tenant
}

// TestLeaseFencing takes over a lease, as another machine may once it has expired, and checks that
// its previous holder can no longer write.
func TestLeaseFencing(t *testing.T) {
	tenant, ctx := openTestTenant(t), t.Context()
	l, err := tenant.Runs().Create(ctx, assay.Run{ID: "run", Question: "?"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(ctx, crashRecord(0)); err != nil {
		t.Fatal(err)
	}
	u, err := tenant.RunsUpdater(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = u.Update(ctx, func(x relational.Tx) error {
		_, err := x.Exec(ctx, `UPDATE progress SET token = 'other', owner = 'other', machine = 'other', boot = 'other'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(ctx, crashRecord(1))
	wantKind(t, "Append", err, assay.ErrLeased)
	wantKind(t, "Finish", l.Finish(ctx, assay.RunFailed, nil, "x"), assay.ErrLeased)
	if err := l.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	run, err := tenant.Runs().Run(ctx, "run")
	if err != nil || !run.Live || run.Steps != 1 || run.State != assay.RunActive {
		t.Errorf("Run = %+v, %v, want it live, active, with one step", run, err)
	}
}

// TestLeaseRenewal checks that the stored expiry, which other machines use, is extended.
func TestLeaseRenewal(t *testing.T) {
	tenant, ctx := openTestTenant(t, WithLeaseTime(30*time.Millisecond)), t.Context()
	l, err := tenant.Runs().Create(ctx, assay.Run{ID: "run", Question: "?"})
	if err != nil {
		t.Fatal(err)
	}
	expires := func() (n int64) {
		if err := tenant.runs.Row(ctx, `SELECT expires FROM progress`, nil, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := expires()
	for deadline := time.Now().Add(5 * time.Minute); expires() == first; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the lease was not renewed")
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
