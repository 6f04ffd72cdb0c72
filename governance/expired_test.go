package governance_test

import (
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/governance"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// TestExpiredRuns checks that a run that its retention removed counts as deleted and not as lost.
func TestExpiredRuns(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.CreateTenant(t.Context(), "acme", store.Act{Actor: assay.Local()}); err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	for id, kind := range map[string]string{"kept": "", "expired": store.KindRunExpired, "deleted": store.KindRunDeleted} {
		addRun(t, tenant, id, 1)
		if kind == "" {
			continue
		}
		if err := tenant.Runs().Delete(t.Context(), id, store.Act{Kind: kind, Reason: "policy 7"}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := governance.Collect(t.Context(), tenant, governance.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Figure("complete_traces"); f.State != governance.Met || f.Of != 1 {
		t.Errorf("complete traces: %+v", f)
	}
	if f := r.Figure("deletions"); f.Count != 2 {
		t.Errorf("deletions: %+v", f)
	}
}
