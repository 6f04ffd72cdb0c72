package sqlite

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// foundBy returns what the audit log finds.
func foundBy(t *testing.T, log store.Audit) string {
	t.Helper()
	var all []string
	err := log.Check(t.Context(), func(f store.Finding) error {
		all = append(all, f.String())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "; ")
}

// TestTamperedReview alters the row of a review without the log.
func TestTamperedReview(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	tenant, err := created(h.Store, t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	l, err := tenant.Runs().Create(t.Context(), assay.Run{ID: "waits", Question: "?"})
	if err != nil {
		t.Fatal(err)
	}
	r := store.Review{Case: json.RawMessage(`{"needed":2}`), Draft: json.RawMessage(`{"text":"ten days"}`)}
	if err := l.Suspend(t.Context(), assay.Answer{Status: assay.PendingReview}, r, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if found := foundBy(t, tenant.Audit()); found != "" {
		t.Fatal(found)
	}
	u, err := tenant.RunsUpdater(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	do := func(query string) {
		t.Helper()
		if err := u.Update(t.Context(), func(x relational.Tx) error { _, err := x.Exec(t.Context(), query); return err }); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ alter, back, want string }{
		{`UPDATE reviews SET draft = '{"text":"ten weeks"}'`, `UPDATE reviews SET draft = '{"text":"ten days"}'`, "its draft was altered"},
		{`UPDATE reviews SET state = '{"needed":1}'`, `UPDATE reviews SET state = '{"needed":2}'`, "its case was altered"},
		{`UPDATE reviews SET open = 0`, `UPDATE reviews SET open = 1`, "its state was altered"},
		{`UPDATE reviews SET open = 2`, `UPDATE reviews SET open = 1`, "its state was altered"},
		{`UPDATE reviews SET version = 2`, `UPDATE reviews SET version = 1`, "its version was altered"},
		{`UPDATE reviews SET created = created - 1`, `UPDATE reviews SET created = created + 1`, "its time was altered"},
		{`DELETE FROM reviews`, `SELECT 1`, "it is missing"},
	} {
		do(test.alter)
		if found := foundBy(t, tenant.Audit()); !strings.Contains(found, "review of run waits: "+test.want) {
			t.Errorf("%s: found %q", test.alter, found)
		}
		do(test.back)
	}
	if err := tenant.Runs().Delete(t.Context(), "waits", store.Act{Kind: store.KindRunDeleted}); err != nil { // the harness checks the store too
		t.Fatal(err)
	}
}

// TestTamperedSystem alters the entries and folders of tenants without the log of the store.
func TestTamperedSystem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		alter string // a statement on system.db
		do    func(h *harness) error
		want  string
	}{
		{want: ""},
		{alter: `UPDATE registry SET value = replace(value, '"suspended"', '"active"') WHERE name = 'b'`, want: "its value was altered"},
		{alter: `DELETE FROM registry WHERE name = 'b'`, want: "it is not in the registry"},
		{alter: `UPDATE registry SET value = replace(value, '"a"', '"b"') WHERE kind = 'key'`, want: `key "k": its value was altered`},
		{do: func(h *harness) error { return os.RemoveAll(h.folder("b")) }, want: "tenant b: its folder"},
		{do: func(h *harness) error { return os.CopyFS(h.folder("c"), os.DirFS(h.folder("a"))) }, want: "tenant c: it has a folder, but no entry"},
		{do: func(h *harness) error {
			if err := os.RemoveAll(h.folder("b")); err != nil {
				return err
			}
			return os.CopyFS(h.folder("b"), os.DirFS(h.folder("a")))
		}, want: "tenant b: its folder is that of another tenant"},
	} {
		h := newHarness(t)
		for _, name := range []string{"a", "b"} {
			if err := h.CreateTenant(t.Context(), name, store.Act{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.SuspendTenant(t.Context(), "b", store.Act{}); err != nil {
			t.Fatal(err)
		}
		opened, err := h.System(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sys := opened.(*relational.System)
		err = sys.Registry().Set(t.Context(), store.RegistryItem{Kind: store.KeyKind, Name: "k", Value: json.RawMessage(`{"tenant":"a"}`)}, store.Act{Kind: "key.created"})
		if err == nil && test.do != nil {
			err = test.do(h)
		}
		if err == nil && test.alter != "" {
			alter(t, &database{path: filepath.Join(h.dir, systemName), mode: modeWrite}, test.alter)
		}
		if err != nil {
			t.Fatal(err)
		}
		if found := foundBy(t, sys.Audit()); !strings.Contains(found, test.want) || (test.want == "") != (found == "") {
			t.Errorf("%s: found %q, want %q", test.alter, found, test.want)
		}
		if err := sys.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeleteHeldTenant checks that a tenant with a hold stays, even by force.
func TestDeleteHeldTenant(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	tenant, err := created(h.Store, t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	hold := store.RegistryItem{Kind: store.HoldKind, Name: "case", Value: json.RawMessage(`{"all":true,"reason":"a suit"}`)}
	if err := tenant.Registry().Set(t.Context(), hold, store.Act{Kind: "hold.added"}); err != nil {
		t.Fatal(err)
	}
	for _, force := range []bool{false, true} {
		err := h.DeleteTenant(t.Context(), "acme", force, store.Act{})
		if !errors.Is(err, assay.ErrForbidden) || !strings.Contains(err.Error(), `hold "case"`) {
			t.Errorf("force %t: %v", force, err)
		}
	}
	if _, err := os.Stat(filepath.Join(h.folder("acme"), runsName)); err != nil {
		t.Error(err)
	}
	if err := tenant.Registry().Delete(t.Context(), store.HoldKind, "case", store.Act{Kind: "hold.removed"}); err != nil {
		t.Fatal(err)
	}
	if err := h.DeleteTenant(t.Context(), "acme", true, store.Act{}); err != nil {
		t.Error(err)
	}
}
