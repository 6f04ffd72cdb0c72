package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
)

// TestSessionKeys checks that a session makes no key that allows more than its grant, and knows none of
// another tenant.
func TestSessionKeys(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true, Now: func() time.Time { return now }}}, "acme", "globex")
	ann := assay.Principal{User: "ann", Groups: []string{"staff"}}
	whole := roleGrant("acme", ann, identity.Admin)
	narrow := grantOf("acme", ann, identity.Right{Scope: identity.ScopeAdmin}, identity.Right{Scope: identity.ScopeAsk, Collections: []string{"c", "d"}}, identity.Right{Scope: identity.ScopeSearch, Collections: []string{"c"}})
	roles := func(texts ...string) []identity.RoleIn {
		t.Helper()
		all, err := identity.ParseRoles(texts...)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for name, c := range map[string]struct {
		grant identity.Grant
		spec  identity.KeySpec
		want  error
	}{
		"one's own":              {whole, identity.KeySpec{Roles: roles("admin")}, nil},
		"one's own by name":      {whole, identity.KeySpec{User: "ann", Groups: []string{"staff"}, Roles: roles("reader")}, nil},
		"of another user":        {whole, identity.KeySpec{User: "bob", Roles: roles("reader")}, assay.ErrForbidden},
		"of the command line":    {whole, identity.KeySpec{User: assay.Local().User, Roles: roles("reader")}, assay.ErrForbidden},
		"of another group":       {whole, identity.KeySpec{Groups: []string{"board"}, Roles: roles("reader")}, assay.ErrForbidden},
		"of another tenant":      {whole, identity.KeySpec{Tenant: "globex", Roles: roles("reader")}, nil}, // it is of acme
		"without a role":         {whole, identity.KeySpec{}, assay.ErrInvalid},
		"expired":                {whole, identity.KeySpec{Roles: roles("reader"), Expires: now}, assay.ErrInvalid},
		"for a hundred years":    {whole, identity.KeySpec{Roles: roles("reader"), Expires: now.AddDate(100, 0, 0)}, assay.ErrInvalid},
		"in a collection":        {narrow, identity.KeySpec{Roles: roles("reader:c")}, nil},
		"in another collection":  {narrow, identity.KeySpec{Roles: roles("reader:c,d")}, assay.ErrForbidden},
		"in all collections":     {narrow, identity.KeySpec{Roles: roles("reader")}, assay.ErrForbidden},
		"with another scope":     {narrow, identity.KeySpec{Roles: roles("auditor")}, assay.ErrForbidden},
		"with the scopes of all": {narrow, identity.KeySpec{Roles: roles("admin")}, assay.ErrForbidden},
	} {
		s := mustSession(t, h, c.grant)
		key, text, err := s.CreateKey(t.Context(), c.spec)
		if !errors.Is(err, c.want) || err != nil && text != "" {
			t.Errorf("a key %s: %v, want %v", name, err, c.want)
		}
		if err == nil && (key.Tenant != "acme" || key.User != "ann" || text == "") {
			t.Errorf("a key %s is %+v", name, key)
		}
	}
	keyed := whole
	keyed.Principal.Key, keyed.Expires = mustKey(t, h, whole, now.Add(time.Hour)), now.Add(time.Hour)
	s := mustSession(t, h, keyed)
	for _, expires := range []time.Time{{}, now.Add(2 * time.Hour)} {
		if _, _, err := s.CreateKey(t.Context(), identity.KeySpec{Roles: roles("reader"), Expires: expires}); !errors.Is(err, assay.ErrForbidden) {
			t.Errorf("a key that outlives the key of its maker, %v: %v", expires, err)
		}
	}
	if _, _, err := s.CreateKey(t.Context(), identity.KeySpec{Roles: roles("reader"), Expires: now.Add(time.Hour)}); err != nil {
		t.Error(err)
	}

	zed := mustSession(t, h, roleGrant("globex", ann, identity.Admin))
	for _, id := range []string{keyed.Principal.Key, "no-key"} {
		if err := zed.RevokeKey(t.Context(), id, ""); !errors.Is(err, assay.ErrNotFound) {
			t.Errorf("RevokeKey of another tenant: %v", err)
		}
		if _, _, err := zed.RotateKey(t.Context(), id, 0, time.Time{}); !errors.Is(err, assay.ErrNotFound) {
			t.Errorf("RotateKey of another tenant: %v", err)
		}
	}
	if all, err := zed.Keys(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("Keys of another tenant: %v, %v", all, err)
	}
	bob, _, err := h.keys.Create(t.Context(), assay.Local(), identity.KeySpec{Tenant: "acme", User: "bob", Roles: roles("reader")})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.RotateKey(t.Context(), bob.ID, 0, now.Add(time.Hour)); !errors.Is(err, assay.ErrForbidden) {
		t.Errorf("RotateKey of another user: %v", err)
	}
	if err := s.RevokeKey(t.Context(), bob.ID, "a test"); err != nil {
		t.Error(err)
	}
	next, text, err := s.RotateKey(t.Context(), keyed.Principal.Key, time.Minute, now.Add(time.Hour))
	if err != nil || text == "" || next.Rotates != keyed.Principal.Key {
		t.Errorf("RotateKey = %+v, %v", next, err)
	}
	if err := s.RevokeKey(t.Context(), keyed.Principal.Key, "a test"); err != nil {
		t.Error(err)
	}
	if _, err := s.Keys(t.Context()); !errors.Is(err, assay.ErrUnauthenticated) {
		t.Errorf("Keys with a revoked key: %v", err)
	}
}

func mustKey(t *testing.T, h *Host, g identity.Grant, expires time.Time) string {
	t.Helper()
	key, _, err := mustSession(t, h, g).CreateKey(t.Context(), identity.KeySpec{Roles: []identity.RoleIn{{Role: identity.Admin}}, Expires: expires})
	if err != nil {
		t.Fatal(err)
	}
	return key.ID
}
