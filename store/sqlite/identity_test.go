package sqlite_test

import (
	"context"
	"testing"

	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// TestIdentity checks that two tenants' contents have different, stable identities.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	identity := func(name string) string {
		t.Helper()
		s, err := sqlite.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		tenant, err := s.Tenant(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer tenant.Close()
		var content store.Content = tenant.Content()
		word, err := content.(interface {
			Identity(ctx context.Context) (string, error)
		}).Identity(t.Context())
		if err != nil || word == "" {
			t.Fatalf("identity %q, %v", word, err)
		}
		return word
	}
	a := identity("a")
	if again := identity("a"); again != a {
		t.Errorf("identity was %q and is %q", a, again)
	}
	if b := identity("b"); b == a {
		t.Errorf("two tenants have the identity %q", a)
	}
}
