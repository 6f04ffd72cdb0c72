package storetest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// lifeTests test how tenants are created, suspended and deleted.
var lifeTests = []contractTest{
	{"created", testCreate},
	{"the default tenant", testDefault},
	{"suspended", testSuspend},
	{"deleted", testDeleteTenant},
	{"created again", testCreateAgain},
	{"deleted with its keys", testDeleteKeys},
	{"deleted while in use", testDeleteInUse},
	{"acts on tenants", testTenantActs},
}

func testCreate(t *testing.T, h Harness) {
	ctx := t.Context()
	for _, open := range []func() (store.Tenant, error){
		func() (store.Tenant, error) { return h.Tenant(ctx, "acme") },
		func() (store.Tenant, error) { return h.InspectTenant(ctx, "acme") },
	} {
		_, err := open()
		wantErr(t, "opening an unknown tenant", err, assay.ErrNotFound)
	}
	if names, err := h.Tenants(ctx); err != nil || len(names) > 0 {
		t.Errorf("after opening an unknown tenant Tenants = %v, %v", names, err)
	}
	for what, err := range map[string]error{
		"suspending": h.SuspendTenant(ctx, "acme", store.Act{}),
		"resuming":   h.ResumeTenant(ctx, "acme", store.Act{}),
		"deleting":   h.DeleteTenant(ctx, "acme", true, store.Act{}),
	} {
		wantErr(t, what+" an unknown tenant", err, assay.ErrNotFound)
	}
	mustCreateTenant(t, h, "acme")
	wantErr(t, "creating it again", h.CreateTenant(ctx, "acme", store.Act{}), assay.ErrInvalid)
	tenant := openTenant(t, h, "acme")
	info := lookTenant(t, h, "acme")
	word, err := tenant.Content().Identity(ctx)
	if err != nil || info.Identity != word || info.State != store.TenantActive || info.Created.IsZero() {
		t.Errorf("its entry is %+v; its content's identity is %q, %v", info, word, err)
	}
}

func testDefault(t *testing.T, h Harness) {
	tenant, err := h.Tenant(t.Context(), store.DefaultTenant)
	if err != nil {
		t.Fatalf("the default tenant: %v", err)
	}
	if err := tenant.Close(); err != nil {
		t.Error(err)
	}
	if info := lookTenant(t, h, store.DefaultTenant); info.State != store.TenantActive {
		t.Errorf("its entry is %+v", info)
	}
}

func lookTenant(t *testing.T, h Harness, name string) (info store.TenantInfo) {
	t.Helper()
	withSystem(t, h, func(sys store.System) {
		var err error
		if info, err = store.LookTenant(t.Context(), sys.Registry(), name); err != nil {
			t.Fatalf("LookTenant(%s): %v", name, err)
		}
	})
	return info
}

func withSystem(t *testing.T, h Harness, fn func(store.System)) {
	t.Helper()
	sys, err := h.System(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sys.Close(); err != nil {
			t.Error(err)
		}
	}()
	fn(sys)
}

func testSuspend(t *testing.T, h Harness) {
	ctx := t.Context()
	mustPut(t, openWriter(t, openTenant(t, h, "acme")), Entry("c", "/a", "words\n"))
	wantErr(t, "resuming an active tenant", h.ResumeTenant(ctx, "acme", store.Act{}), assay.ErrInvalid)
	if err := h.SuspendTenant(ctx, "acme", store.Act{Reason: "unpaid"}); err != nil {
		t.Fatal(err)
	}
	_, err := h.Tenant(ctx, "acme")
	wantErr(t, "opening a suspended tenant", err, assay.ErrStopped)
	wantErr(t, "suspending it again", h.SuspendTenant(ctx, "acme", store.Act{}), assay.ErrInvalid)
	inspected, err := h.InspectTenant(ctx, "acme")
	if err != nil {
		t.Fatalf("inspecting a suspended tenant: %v", err)
	}
	wantSame(t, "documents of a suspended tenant", uris(t, inspected.Content()), []string{"c:/a"})
	if err := inspected.Close(); err != nil {
		t.Error(err)
	}
	if names, err := h.Tenants(ctx); err != nil || len(names) != 1 {
		t.Errorf("Tenants = %v, %v", names, err)
	}
	if err := h.ResumeTenant(ctx, "acme", store.Act{}); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "documents after resuming", uris(t, openTenant(t, h, "acme").Content()), []string{"c:/a"})
}

// testDeleteTenant checks that open handles of a deleted tenant return nothing, and that other tenants
// keep their data.
func testDeleteTenant(t *testing.T, h Harness) {
	ctx := t.Context()
	e := Entry("c", "/secret", "the words\n")
	for _, name := range []string{"acme", "other"} {
		tenant, err := h.Tenant(ctx, name)
		if err != nil {
			mustCreateTenant(t, h, name)
			if tenant, err = h.Tenant(ctx, name); err != nil {
				t.Fatal(err)
			}
		}
		w, err := tenant.Writer(ctx)
		if err != nil {
			t.Fatal(err)
		}
		mustPut(t, w, e)
		l := mustCreate(t, tenant, "run")
		mustAppend(t, l, "step")
		closeLease(t, l)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := tenant.SetSetting(ctx, "encoder", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := tenant.Close(); err != nil {
			t.Fatal(err)
		}
	}
	open := openTenant(t, h, "other")
	stale, err := h.Tenant(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stale.Content().Document(ctx, e.Document.ID); err != nil {
		t.Fatal(err)
	}
	// The handle may keep the system from removing files, which the next change does.
	if err := h.DeleteTenant(ctx, "acme", false, store.Act{}); err != nil {
		wantErr(t, "deleting a tenant with an open handle", err, assay.ErrLocked)
	}
	wantGone(t, stale, e)
	if err := stale.Close(); err != nil {
		t.Logf("closing a handle of a deleted tenant: %v", err)
	}
	_, err = h.Tenant(ctx, "acme")
	wantErr(t, "opening a deleted tenant", err, assay.ErrNotFound)
	_, err = h.InspectTenant(ctx, "acme")
	wantErr(t, "inspecting a deleted tenant", err, assay.ErrNotFound)
	names, err := h.Tenants(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "tenants", names, []string{"other"})
	wantSame(t, "documents of the other tenant", uris(t, open.Content()), []string{"c:/secret"})
	if _, err := open.Runs().Records(ctx, "run"); err != nil {
		t.Errorf("journal of the other tenant: %v", err)
	}
}

// wantGone checks that a handle of a deleted tenant returns no data.
func wantGone(t *testing.T, stale store.Tenant, e store.Entry) {
	t.Helper()
	ctx := t.Context()
	errs := map[string]error{}
	_, errs["Document"] = stale.Content().Document(ctx, e.Document.ID)
	_, errs["Passages"] = stale.Content().Passages(ctx, []string{e.Chunks[1].ID})
	_, errs["Sequence"] = stale.Content().Sequence(ctx)
	_, errs["ACL"] = stale.Content().ACL(ctx, e.Document.ID)
	_, errs["Collections"] = stale.Content().Collections(ctx)
	_, errs["Runs"] = stale.Runs().List(ctx, 0)
	_, errs["Records"] = stale.Runs().Records(ctx, "run")
	_, errs["Create"] = stale.Runs().Create(ctx, assay.Run{ID: "new", Principal: assay.Local(), Question: "q"})
	_, errs["Items"] = stale.Registry().Items(ctx, "policy")
	_, errs["Size of the log"] = stale.Audit().Size(ctx)
	for what, err := range errs {
		if err == nil {
			t.Errorf("%s of a deleted tenant succeeds", what)
		}
	}
}

func testCreateAgain(t *testing.T, h Harness) {
	ctx := t.Context()
	e := Entry("c", "/secret", "the words\n")
	fill := func() store.TenantInfo {
		mustCreateTenant(t, h, "acme")
		return lookTenant(t, h, "acme")
	}
	before := fill()
	tenant, err := h.Tenant(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	w, err := tenant.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, w, e)
	for _, c := range []interface{ Close() error }{w, tenant} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.DeleteTenant(ctx, "acme", false, store.Act{}); err != nil {
		t.Fatal(err)
	}
	after := fill()
	if after.Identity == before.Identity {
		t.Error("a tenant that was created again has the identity of the deleted one")
	}
	again := openTenant(t, h, "acme")
	_, err = again.Content().Document(ctx, e.Document.ID)
	wantErr(t, "reading a document of the deleted tenant", err, assay.ErrNotFound)
	if n, err := again.Audit().Size(ctx); err != nil || n != 0 {
		t.Errorf("the audit log has %d entries, %v", n, err)
	}
}

func testDeleteKeys(t *testing.T, h Harness) {
	ctx := t.Context()
	mustCreateTenant(t, h, "acme")
	mustCreateTenant(t, h, "other")
	withSystem(t, h, func(sys store.System) {
		for key, tenant := range map[string]string{"k1": "acme", "k2": "other", "k3": "acme"} {
			value, _ := json.Marshal(map[string]any{"tenant": tenant, "hash": "x"})
			if err := sys.Registry().Create(ctx, store.RegistryItem{Kind: store.KeyKind, Name: key, Value: value}, store.Act{Kind: "key.created"}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err := h.DeleteTenant(ctx, "acme", false, store.Act{}); err != nil {
		t.Fatal(err)
	}
	withSystem(t, h, func(sys store.System) {
		keys, err := sys.Registry().Items(ctx, store.KeyKind)
		if err != nil || len(keys) != 1 || keys[0].Name != "k2" {
			t.Errorf("keys = %v, %v; want k2, that of the other tenant", keys, err)
		}
	})
}

func testDeleteInUse(t *testing.T, h Harness) {
	ctx := t.Context()
	tenant := openTenant(t, h, "acme")
	refuses := func(what string, kind error) {
		t.Helper()
		wantErr(t, "deleting it with "+what, h.DeleteTenant(ctx, "acme", false, store.Act{}), kind)
		if _, err := tenant.Content().Sequence(ctx); err != nil {
			t.Errorf("after a refused deletion: %v", err)
		}
	}
	w, err := tenant.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	refuses("a writer", assay.ErrLocked)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lock, err := tenant.Lock(ctx, "embedding")
	if err != nil {
		t.Fatal(err)
	}
	refuses("a lock", assay.ErrLocked)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	lease := mustCreate(t, tenant, "run")
	refuses("a live run", assay.ErrLeased)
	if err := h.DeleteTenant(ctx, "acme", true, store.Act{}); err != nil {
		wantErr(t, "deleting it by force", err, assay.ErrLocked)
	}
	_, err = lease.Append(ctx, assay.Record{Path: "late", Kind: assay.StepPlan, Input: json.RawMessage(`{}`)})
	if err == nil {
		t.Error("a run of a deleted tenant goes on")
	}
	if err := lease.Close(); err != nil {
		t.Logf("closing the lease: %v", err)
	}
}

// testTenantActs checks that every change of a tenant is in the system's log, and that what cannot
// be erased from it names nobody.
func testTenantActs(t *testing.T, h Harness) {
	ctx := t.Context()
	by := assay.Principal{User: "root"}
	mustCreateTenant(t, h, "ann-lee")
	identity := lookTenant(t, h, "ann-lee").Identity
	tenant, err := h.Tenant(ctx, "ann-lee")
	if err != nil {
		t.Fatal(err)
	}
	if err := tenant.Audit().Append(ctx, store.Act{Kind: "policy.set"}); err != nil {
		t.Fatal(err)
	}
	if err := tenant.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		h.SuspendTenant(ctx, "ann-lee", store.Act{Actor: by, Reason: "unpaid"}),
		h.ResumeTenant(ctx, "ann-lee", store.Act{Actor: by}),
		h.DeleteTenant(ctx, "ann-lee", false, store.Act{Actor: by, Reason: "contract ended"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	withSystem(t, h, func(sys store.System) {
		size, err := sys.Audit().Size(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for e, err := range sys.Audit().Entries(ctx, 0, size) {
			if err != nil {
				t.Fatal(err)
			}
			var header struct{ Act, Subject string }
			if err := json.Unmarshal(e.Header, &header); err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, header.Act)
			if header.Subject != identity || strings.Contains(string(e.Header), "ann-lee") {
				t.Errorf("header %s: want the subject %s and no name", e.Header, identity)
			}
			if header.Act == "tenant.deleted" {
				for _, part := range []string{`"contract ended"`, `"root"`, `"log_size":1`, `"log_root":"`, `"name_sha256":"`} {
					if !bytes.Contains(e.Payload, []byte(part)) {
						t.Errorf("the tombstone %s lacks %s", e.Payload, part)
					}
				}
			}
		}
		wantSame(t, "acts", kinds, []string{"tenant.created", "tenant.suspended", "tenant.resumed", "tenant.deleted", "tenant.removed"})
	})
}
