package storetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var storeTests = []contractTest{
	{"tenants are listed", testTenants},
	{"names of tenants", testTenantNames},
	{"tenants are apart", testIsolation},
	{"vectors and collections of tenants are apart", testVectorIsolation},
	{"settings", testSettings},
	{"locks", testLocks},
	{"identity", testIdentity},
	{"index folders", testIndexDirs},
	{"size and check", testSize},
}

func testTenants(t *testing.T, h Harness) {
	list := func() []string {
		t.Helper()
		names, err := h.Tenants(t.Context())
		if err != nil {
			t.Fatalf("Tenants: %v", err)
		}
		return names
	}
	wantSame(t, "tenants of an empty store", list(), []string(nil))
	for _, name := range []string{"b", "a", "b"} {
		if got := openTenant(t, h, name).Name(); got != name {
			t.Errorf("Name = %q, want %q", got, name)
		}
	}
	wantSame(t, "tenants", list(), []string{"a", "b"})
}

func testTenantNames(t *testing.T, h Harness) {
	for _, name := range []string{"", ".", "..", ".a", "a.", "A", "a/b", "a b", "é", "a\x00", strings.Repeat("a", 65)} {
		_, err := h.Tenant(t.Context(), name)
		wantErr(t, "Tenant("+name+")", err, assay.ErrInvalid)
		wantErr(t, "CreateTenant("+name+")", h.CreateTenant(t.Context(), name, store.Act{}), assay.ErrInvalid)
	}
	for _, name := range []string{"0", "a-b_c.d", strings.Repeat("a", 64)} {
		openTenant(t, h, name)
	}
}

func testIsolation(t *testing.T, h Harness) {
	ctx := t.Context()
	a, b := openTenant(t, h, "a"), openTenant(t, h, "b")
	wa, wb := openWriter(t, a), openWriter(t, b)
	e := Entry("c", "/secret", "the words of a\n")
	mustPut(t, wa, e)
	l := mustCreate(t, a, "run-a")
	mustAppend(t, l, "step")
	closeLease(t, l)

	if n := sequence(t, wb); n != 0 {
		t.Errorf("b's sequence is %d after a change of a", n)
	}
	_, err := b.Content().Document(ctx, e.Document.ID)
	wantErr(t, "b reading a's document", err, assay.ErrNotFound)
	_, err = b.Content().Version(ctx, e.Document.ID, e.Document.Version)
	wantErr(t, "b reading a's version", err, assay.ErrNotFound)
	_, err = b.Content().ACL(ctx, e.Document.ID)
	wantErr(t, "b reading the ACL of a's document", err, assay.ErrNotFound)
	_, err = b.Content().Passages(ctx, []string{e.Chunks[0].ID})
	wantErr(t, "b reading a's chunk", err, assay.ErrNotFound)
	if len(changes(t, b.Content(), 0)) != 0 || len(uris(t, b.Content())) != 0 {
		t.Error("b lists documents of a")
	}
	_, err = b.Runs().Run(ctx, "run-a")
	wantErr(t, "b reading a's run", err, assay.ErrNotFound)
	_, err = b.Runs().Records(ctx, "run-a")
	wantErr(t, "b reading a's journal", err, assay.ErrNotFound)
	_, err = b.Runs().Acquire(ctx, "run-a")
	wantErr(t, "b acquiring a's run", err, assay.ErrNotFound)
	wantErr(t, "b deleting a's run", b.Runs().Delete(ctx, "run-a", store.Act{Kind: "run.deleted"}), assay.ErrNotFound)
	if list, err := b.Runs().List(ctx, 0); err != nil || len(list) != 0 {
		t.Errorf("b lists %v, %v", list, err)
	}
	if err := b.Runs().Offer(ctx, "run-a", "key"); !errors.Is(err, assay.ErrNotFound) && !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("b offering a's run: %v", err)
	}
	mustDelete(t, wb, e.Document.ID)
	if _, err := a.Content().Document(ctx, e.Document.ID); err != nil {
		t.Errorf("after b deleted the ID, a reads: %v", err)
	}

	e.Document.ACL = assay.ACL{Restricted: true}
	mustPut(t, wb, e)
	wantACL(t, a.Content(), e.Document.ID, assay.ACL{})
	mustDelete(t, wa, e.Document.ID)
	wantACL(t, b.Content(), e.Document.ID, e.Document.ACL)
}

func testVectorIsolation(t *testing.T, h Harness) {
	ctx := t.Context()
	a, b := openTenant(t, h, "a"), openTenant(t, h, "b")
	wa, wb := openWriter(t, a), openWriter(t, b)
	e := Entry("c", "/same", "the same words\n")
	mustPut(t, wa, e)
	mustPut(t, wb, e)
	if err := wa.SetCollection(ctx, store.Collection{Name: "of a", RequireACL: true}); err != nil {
		t.Fatal(err)
	}
	passages, err := a.Content().Passages(ctx, []string{e.Chunks[1].ID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wa.PutVectors(ctx, "model", store.Vector{Hash: passages[0].Hash(), Values: []float32{1}}); err != nil {
		t.Fatal(err)
	}
	if models, err := b.Content().Models(ctx); err != nil || len(models) > 0 {
		t.Errorf("b has vectors of %v, %v", models, err)
	}
	if n, err := b.Content().Coverage(ctx, "model"); err != nil || n.Embedded != 0 {
		t.Errorf("b's coverage is %+v, %v", n, err)
	}
	wantSame(t, "b's collections", collections(t, b.Content()), []string{"c"})
	if err := wb.DropModel(ctx, "model"); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Content().Coverage(ctx, "model"); err != nil || n.Embedded != 1 {
		t.Errorf("after b dropped the model, a's coverage is %+v, %v", n, err)
	}
}

func collections(t *testing.T, c store.Content) []string {
	t.Helper()
	all, err := c.Collections(t.Context())
	if err != nil {
		t.Fatalf("Collections: %v", err)
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	return names
}

func testSettings(t *testing.T, h Harness) {
	ctx := t.Context()
	a, again, b := openTenant(t, h, "a"), openTenant(t, h, "a"), openTenant(t, h, "b")
	want := func(tenant store.Tenant, value string) {
		t.Helper()
		if got, err := tenant.Setting(ctx, "encoder"); err != nil || string(got) != value {
			t.Errorf("setting of %s = %q, %v, want %q", tenant.Name(), got, err, value)
		}
	}
	set := func(value string) {
		t.Helper()
		if err := a.SetSetting(ctx, "encoder", []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	want(a, "")
	set("")
	for _, value := range []string{"one", "two\x00\n", ""} {
		set(value)
		want(a, value)
		want(again, value)
		want(b, "")
	}
	largest := bytes.Repeat([]byte("x"), store.MaxSetting)
	set(string(largest))
	wantErr(t, "a setting that is too large", a.SetSetting(ctx, "encoder", append(largest, 'x')), assay.ErrInvalid)
	want(a, string(largest))
	for _, name := range badNames {
		_, err := a.Setting(ctx, name)
		wantErr(t, "Setting("+name+")", err, assay.ErrInvalid)
		wantErr(t, "SetSetting("+name+")", a.SetSetting(ctx, name, []byte("x")), assay.ErrInvalid)
	}
}

// badNames are no names of settings and locks.
var badNames = []string{"", ".", "../runs", "a/b", "A", "a.b", "a1", strings.Repeat("a", 65)}

func testLocks(t *testing.T, h Harness) {
	ctx := t.Context()
	a, again, b := openTenant(t, h, "a"), openTenant(t, h, "a"), openTenant(t, h, "b")
	held, err := a.Lock(ctx, "embedding")
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []store.Tenant{a, again} {
		_, err := tenant.Lock(ctx, "embedding")
		wantErr(t, "a lock that is held", err, assay.ErrLocked)
	}
	for _, free := range []struct {
		tenant store.Tenant
		name   string
	}{{a, "other"}, {b, "embedding"}} {
		l, err := free.tenant.Lock(ctx, free.name)
		if err != nil {
			t.Errorf("lock %s of %s: %v", free.name, free.tenant.Name(), err)
			continue
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	openWriter(t, a)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := again.Lock(ctx, "embedding")
	if err != nil {
		t.Fatalf("a lock that was released: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	for _, name := range badNames {
		_, err := a.Lock(ctx, name)
		wantErr(t, "Lock("+name+")", err, assay.ErrInvalid)
	}
}

func testIdentity(t *testing.T, h Harness) {
	identity := func(name string) string {
		t.Helper()
		word, err := openTenant(t, h, name).Content().Identity(t.Context())
		if err != nil || word == "" {
			t.Fatalf("identity of %s = %q, %v", name, word, err)
		}
		return word
	}
	a := identity("a")
	if again := identity("a"); again != a {
		t.Errorf("the identity was %q and is %q", a, again)
	}
	if identity("b") == a {
		t.Error("two tenants have the same identity")
	}
}

func testIndexDirs(t *testing.T, h Harness) {
	a, again, b := openTenant(t, h, "a"), openTenant(t, h, "a"), openTenant(t, h, "b")
	if a.IndexDir() != again.IndexDir() {
		t.Errorf("handles of one tenant have the folders %s and %s", a.IndexDir(), again.IndexDir())
	}
	if dir := a.IndexDir(); dir != "" && dir == b.IndexDir() {
		t.Errorf("two tenants have the folder %s", dir)
	}
}

func testSize(t *testing.T, h Harness) {
	ctx := context.WithoutCancel(t.Context())
	a := openTenant(t, h, "a")
	before, err := a.Size(ctx)
	if err != nil || before.Content < 0 || before.Runs < 0 {
		t.Fatalf("Size = %+v, %v", before, err)
	}
	mustPut(t, openWriter(t, a), Entry("c", "/large", strings.Repeat("many different words\n", 50_000)))
	after, err := a.Size(ctx)
	if err != nil || after.Content <= before.Content {
		t.Errorf("after a large document Size = %+v, %v, before %+v", after, err, before)
	}
	if err := a.Check(ctx); err != nil {
		t.Errorf("Check: %v", err)
	}
}
