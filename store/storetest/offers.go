package storetest

import (
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// mustFinish creates a run and ends it with an answer.
func mustFinish(t *testing.T, tenant store.Tenant, id string) {
	t.Helper()
	l := mustCreate(t, tenant, id)
	if err := l.Finish(t.Context(), assay.RunDone, fullAnswer(), ""); err != nil {
		t.Fatal(err)
	}
	closeLease(t, l)
}

func testOffers(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	runs := tenant.Runs()
	for _, id := range []string{"a", "b", "c", "d"} {
		mustFinish(t, tenant, id)
	}
	l := mustCreate(t, tenant, "open")
	defer closeLease(t, l)
	failed := mustCreate(t, tenant, "failed")
	if err := failed.Finish(t.Context(), assay.RunFailed, nil, "no"); err != nil {
		t.Fatal(err)
	}
	closeLease(t, failed)

	offers := func(tenant store.Tenant, key string, limit int) []string {
		t.Helper()
		list, err := tenant.Runs().Offers(t.Context(), key, limit)
		if err != nil {
			t.Fatalf("Offers(%q): %v", key, err)
		}
		var ids []string
		for _, o := range list {
			if o.Question != "Why?" {
				t.Errorf("the offer of run %s has the question %q", o.Run, o.Question)
			}
			ids = append(ids, o.Run)
		}
		return ids
	}
	wantSame(t, "offers of an empty store", offers(tenant, "k", 0), []string(nil))
	for _, o := range [][2]string{{"c", "k"}, {"a", "k"}, {"b", "other"}, {"d", "k"}, {"a", "k"}} {
		if err := runs.Offer(t.Context(), o[0], o[1]); err != nil {
			t.Fatalf("Offer(%s): %v", o[0], err)
		}
	}
	wantSame(t, "offers", offers(tenant, "k", 0), []string{"d", "c", "a"})
	wantSame(t, "at most two offers", offers(tenant, "k", 2), []string{"d", "c"})
	wantSame(t, "offers of another key", offers(tenant, "other", 0), []string{"b"})
	wantSame(t, "offers of a key that begins like one", offers(tenant, "oth", 0), []string(nil))
	wantSame(t, "offers of another tenant", offers(openTenant(t, h, "globex"), "k", 0), []string(nil))
	wantSame(t, "offers of another handle", offers(openTenant(t, h, "acme"), "k", 1), []string{"d"})

	for what, o := range map[string][2]string{
		"of a run that is not done": {"open", "k"},
		"of a run that failed":      {"failed", "k"},
		"without a key":             {"a", ""},
		"under no UTF-8":            {"a", "\xff"},
	} {
		wantErr(t, "Offer "+what, runs.Offer(t.Context(), o[0], o[1]), assay.ErrInvalid)
	}
	wantErr(t, "Offer of no run", runs.Offer(t.Context(), "nobody", "k"), assay.ErrNotFound)

	if err := runs.Offer(t.Context(), "c", "other"); err != nil {
		t.Fatal(err)
	}
	if err := runs.Delete(t.Context(), "d", store.Act{Kind: "run.deleted"}); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "offers once one was moved and one deleted", offers(tenant, "k", 0), []string{"a"})
	wantSame(t, "offers of the key it was moved to", offers(tenant, "other", 0), []string{"c", "b"})
}
