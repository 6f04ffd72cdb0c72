package identity

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/internal/ramdisk"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// childVariable makes the test binary the process that TestKillKeys kills. Its value is a data directory.
const childVariable = "ASSAY_IDENTITY_CHILD"

func TestMain(m *testing.M) {
	ramdisk.Use()
	if dir := os.Getenv(childVariable); dir != "" {
		fmt.Fprintln(os.Stderr, makeKeys(context.Background(), dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// openSystem opens the system of a data directory, as a process of its own would.
func openSystem(t testing.TB, dir string) store.System {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	sys, err := s.System(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sys.Close(); err != nil {
			t.Error(err)
		}
	})
	return sys
}

// A testClock is a clock that tests set.
type testClock struct{ now time.Time }

func (c *testClock) Now() time.Time { return c.now }

func newClock() *testClock { return &testClock{time.Unix(1_800_000_000, 0).UTC()} }

var admin = assay.Principal{User: "root"}

// spec is what keys of tests are for.
func spec() KeySpec {
	return KeySpec{Tenant: "acme", User: "ann", Groups: []string{"finance", "all", "all"}, Roles: []RoleIn{{Role: Reader}, {Role: Editor, Collections: []string{"handbook"}}}}
}

// TestKeys follows a key from its creation to its revocation, in two processes.
func TestKeys(t *testing.T) {
	dir, clock := t.TempDir(), newClock()
	keys, elsewhere := NewKeys(openSystem(t, dir), clock.Now), NewKeys(openSystem(t, dir), clock.Now)
	var seen []string
	a, err := New(Options{Keys: elsewhere, Now: clock.Now, Observe: func(_ context.Context, g Grant, r *Refusal, err error) {
		if r == nil {
			r = &Refusal{Reason: "granted", Key: g.Principal.Key}
		}
		seen = append(seen, fmt.Sprint(r.Reason, " ", r.Key, " ", err))
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := spec()
	s.Expires = clock.now.Add(24 * time.Hour)
	key, text, err := keys.Create(t.Context(), admin, s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := authenticate(t.Context(), a, text)
	want := Grant{
		Tenant: "acme", Principal: assay.Principal{User: "ann", Groups: []string{"all", "finance"}, Roles: []string{"editor", "reader"}, Key: key.ID},
		Rights: []Right{{Scope: ScopeAsk}, {Scope: ScopeSearch}, {Scope: ScopeIngest, Collections: []string{"handbook"}}}, Expires: s.Expires,
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	refused := func(name, text string, want Reason) {
		t.Helper()
		g, err := authenticate(t.Context(), a, text)
		if ReasonOf(err) != want || !errors.Is(err, assay.ErrUnauthenticated) || g.Tenant != "" {
			t.Errorf("%s: %+v, %v with the reason %q, want %q", name, g, err, ReasonOf(err), want)
		}
	}
	_, other := newKeyText()
	id, secret, _ := splitKey(other)
	mixed := keyPrefix + key.ID + "_" + secret
	refused("an unknown ID", other, UnknownKey)
	refused("a wrong secret", mixed+checksum(mixed), UnknownKey)

	clock.now = s.Expires
	refused("expired", text, Expired)
	clock.now = s.Expires.Add(-time.Hour)
	for range 2 {
		if err := keys.Revoke(t.Context(), admin, key.ID, "left in a repository"); err != nil {
			t.Fatal(err)
		}
		refused("revoked", text, Revoked)
	}
	clock.now = clock.now.Add(-48 * time.Hour)
	refused("revoked, with a clock that went back", text, Revoked)
	if err := keys.Revoke(t.Context(), admin, id, ""); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("Revoke of no key: %v", err)
	}
	want2 := []string{"granted " + key.ID, unknownLine(id), unknownLine(key.ID), "expired " + key.ID}
	for i, w := range want2 {
		if seen[i] != w+" <nil>" {
			t.Errorf("observed %q, want %q", seen[i], w)
		}
	}
	checkActs(t, keys.system, text, []string{"key.created " + key.ID + " root  ann", "key.revoked " + key.ID + " root left in a repository "})
}

// unknownLine is what TestKeys observes for an unknown key.
func unknownLine(id string) string { return string(UnknownKey) + " " + id }

// checkActs checks the acts of a log, "KIND SUBJECT ACTOR REASON USER" each, and that none has a part of
// the key or its hash.
func checkActs(t *testing.T, system store.System, text string, want []string) {
	t.Helper()
	var got []string
	id, secret, _ := splitKey(text)
	hash := hashKey(id, secret)
	for _, act := range actsOf(t, system) {
		var detail struct{ User string }
		if act.Detail != nil {
			if err := json.Unmarshal(act.Detail, &detail); err != nil {
				t.Fatal(err)
			}
		}
		got = append(got, strings.Join([]string{act.Kind, act.Subject, act.Actor.User, act.Reason, detail.User}, " "))
		if s := string(act.Detail); strings.Contains(s, secret) || strings.Contains(s, fmt.Sprintf("%x", hash)) || strings.Contains(s, "hash") {
			t.Errorf("the act %s has the secret or its hash: %s", act.Kind, s)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
}

// actsOf returns the acts in a log, each checked against its leaf.
func actsOf(t *testing.T, system store.System) []journal.Act {
	t.Helper()
	size, err := system.Audit().Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var acts []journal.Act
	for e, err := range system.Audit().Entries(t.Context(), 0, size) {
		if err != nil {
			t.Fatal(err)
		}
		act, err := journal.OpenAct(e.Header, e.Payload, e.Salt, e.Leaf)
		if err != nil {
			t.Fatal(err)
		}
		acts = append(acts, act)
	}
	return acts
}

// TestRotate replaces a key, with and without a time in which both are valid.
func TestRotate(t *testing.T) {
	clock := newClock()
	keys := NewKeys(openSystem(t, t.TempDir()), clock.Now)
	a, err := New(Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	reason := func(text string) Reason {
		_, err := authenticate(t.Context(), a, text)
		return ReasonOf(err)
	}
	first, text, err := keys.Create(t.Context(), admin, spec())
	if err != nil {
		t.Fatal(err)
	}
	second, text2, err := keys.Rotate(t.Context(), admin, first.ID, time.Hour, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if second.Rotates != first.ID || !cmp.Equal(second.Roles, first.Roles) || second.User != first.User || !cmp.Equal(second.Groups, first.Groups) {
		t.Errorf("the new key is %+v, the old one %+v", second, first)
	}
	if a, b := reason(text), reason(text2); a != "" || b != "" {
		t.Errorf("within the hour: %q and %q", a, b)
	}
	if _, _, err := keys.Rotate(t.Context(), admin, first.ID, 0, time.Time{}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a second Rotate of a key: %v", err)
	}
	clock.now = clock.now.Add(time.Hour)
	if a, b := reason(text), reason(text2); a != Revoked || b != "" {
		t.Errorf("after the hour: %q and %q", a, b)
	}
	_, text3, err := keys.Rotate(t.Context(), admin, second.ID, 0, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := reason(text2), reason(text3); a != Revoked || b != "" {
		t.Errorf("after Rotate at once: %q and %q", a, b)
	}
	// A key that ends soon can still be revoked at once.
	third, err := keys.List(t.Context(), "acme")
	if err != nil || len(third) != 3 {
		t.Fatalf("List = %+v, %v", third, err)
	}
	if _, _, err := keys.Rotate(t.Context(), admin, third[2].ID, time.Hour, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := keys.Revoke(t.Context(), admin, third[2].ID, "lost"); err != nil {
		t.Fatal(err)
	}
	if got := reason(text3); got != Revoked {
		t.Errorf("revoked while it ended: %q", got)
	}
}

// TestKeyUse checks that the last use is recorded at most once a minute, and listed.
func TestKeyUse(t *testing.T) {
	clock := newClock()
	keys := NewKeys(openSystem(t, t.TempDir()), clock.Now)
	a, err := New(Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	key, text, err := keys.Create(t.Context(), admin, spec())
	if err != nil {
		t.Fatal(err)
	}
	began := clock.now
	for _, step := range []struct{ after, want time.Duration }{{0, 0}, {59 * time.Second, 0}, {61 * time.Second, 61 * time.Second}, {70 * time.Second, 61 * time.Second}} {
		clock.now = began.Add(step.after)
		if _, err := authenticate(t.Context(), a, text); err != nil {
			t.Fatal(err)
		}
		if got, err := keys.Key(t.Context(), key.ID); err != nil || !got.Used.Equal(began.Add(step.want)) {
			t.Errorf("after %s the last use is %v, %v; want %s later", step.after, got.Used, err, step.want)
		}
	}
	version, err := keys.system.Registry().Version(t.Context())
	if err != nil || version != 1 {
		t.Errorf("Version = %d, %v; uses are counted", version, err)
	}
}

// TestKeySpecs creates keys that must be refused.
func TestKeySpecs(t *testing.T) {
	clock := newClock()
	keys := NewKeys(openSystem(t, t.TempDir()), clock.Now)
	for name, change := range map[string]func(*KeySpec){
		"no tenant":             func(s *KeySpec) { s.Tenant = "" },
		"tenant a path":         func(s *KeySpec) { s.Tenant = "../x" },
		"no user":               func(s *KeySpec) { s.User = "" },
		"the command line":      func(s *KeySpec) { s.User = "local" },
		"user with a newline":   func(s *KeySpec) { s.User = "a\nb" },
		"empty group":           func(s *KeySpec) { s.Groups = []string{""} },
		"no role":               func(s *KeySpec) { s.Roles = nil },
		"unknown role":          func(s *KeySpec) { s.Roles = []RoleIn{{Role: "root"}} },
		"role in no collection": func(s *KeySpec) { s.Roles = []RoleIn{{Role: Reader, Collections: []string{}}} },
		"admin of a collection": func(s *KeySpec) { s.Roles = []RoleIn{{Role: Admin, Collections: []string{"a"}}} },
		"expired":               func(s *KeySpec) { s.Expires = clock.now },
		"eleven years":          func(s *KeySpec) { s.Expires = clock.now.Add(MaxKeyAge + time.Second) },
	} {
		s := spec()
		change(&s)
		if _, text, err := keys.Create(t.Context(), admin, s); !errors.Is(err, assay.ErrInvalid) || text != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if acts := actsOf(t, keys.system); len(acts) != 0 {
		t.Errorf("%d acts of refused keys", len(acts))
	}
}

// TestDamagedKeys changes what is stored of a key. None of the changes may give access.
func TestDamagedKeys(t *testing.T) {
	keys := NewKeys(openSystem(t, t.TempDir()), nil)
	a, err := New(Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	key, text, err := keys.Create(t.Context(), admin, spec())
	if err != nil {
		t.Fatal(err)
	}
	item, err := keys.system.Registry().Item(t.Context(), kindKey, key.ID)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := keys.Create(t.Context(), admin, spec())
	if err != nil {
		t.Fatal(err)
	}
	value := string(item.Value)
	for name, changed := range map[string]string{
		"another ID":     strings.Replace(value, key.ID, other.ID, 1),
		"no hash":        strings.Replace(value, `"hash"`, `"rotates"`, 1),
		"short hash":     strings.Replace(value, `"hash":"`, `"hash":"00","x":"`, 1),
		"unknown member": strings.Replace(value, `{`, `{"admin":true,`, 1),
		"unknown role":   strings.Replace(value, `"reader"`, `"root"`, 1),
		"role of none":   strings.Replace(value, `editor:handbook`, `editor:`, 1),
		"command line":   strings.Replace(value, `"user":"ann"`, `"user":"local"`, 1),
		"null":           `null`,
		"a list":         `[]`,
	} {
		item.Value = json.RawMessage(changed)
		if err := keys.system.Registry().Set(t.Context(), item, store.Act{Kind: "key.tampered"}); err != nil {
			t.Fatal(err)
		}
		if g, err := authenticate(t.Context(), a, text); !errors.Is(err, assay.ErrUnavailable) || ReasonOf(err) != StoreFailed {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	// A revocation that cannot be read is no reason to accept the key.
	item.Value = json.RawMessage(value)
	if err := keys.system.Registry().Set(t.Context(), item, store.Act{Kind: "key.restored"}); err != nil {
		t.Fatal(err)
	}
	if err := keys.system.Registry().Set(t.Context(), store.RegistryItem{Kind: kindRevocation, Name: key.ID, Value: json.RawMessage(`7`)}, store.Act{Kind: "key.tampered"}); err != nil {
		t.Fatal(err)
	}
	if _, err := authenticate(t.Context(), a, text); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("a damaged revocation: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := authenticate(ctx, a, text); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request: %v", err)
	}
}

// TestDeleteTenant removes the keys of one of two tenants.
func TestDeleteTenant(t *testing.T) {
	keys := NewKeys(openSystem(t, t.TempDir()), nil)
	a, err := New(Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, tenant := range []string{"acme", "beta"} {
		s := spec()
		s.Tenant = tenant
		key, text, err := keys.Create(t.Context(), admin, s)
		if err != nil {
			t.Fatal(err)
		}
		texts[tenant] = text
		if _, err := authenticate(t.Context(), a, text); err != nil {
			t.Fatal(err)
		}
		if tenant == "acme" {
			if err := keys.Revoke(t.Context(), admin, key.ID, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		if err := keys.DeleteTenant(t.Context(), admin, "acme", "the contract ended"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := authenticate(t.Context(), a, texts["acme"]); ReasonOf(err) != UnknownKey {
		t.Errorf("a key of the deleted tenant: %v", err)
	}
	if _, err := authenticate(t.Context(), a, texts["beta"]); err != nil {
		t.Errorf("a key of the other tenant: %v", err)
	}
	if list, err := keys.List(t.Context(), ""); err != nil || len(list) != 1 || list[0].Tenant != "beta" || list[0].Used.IsZero() {
		t.Errorf("List = %+v, %v", list, err)
	}
}

// makeKeys creates keys and rotates or revokes most of them, until the process is killed. It prints each
// once it is acknowledged.
func makeKeys(ctx context.Context, dir string) error {
	s, err := sqlite.Open(ctx, dir)
	if err != nil {
		return err
	}
	sys, err := s.System(ctx)
	if err != nil {
		return err
	}
	keys := NewKeys(sys, nil)
	for n := 0; ; n++ {
		key, text, err := keys.Create(ctx, admin, spec())
		if err != nil {
			return err
		}
		fmt.Println("created", text)
		switch n % 3 {
		case 0:
			continue
		case 1:
			_, next, err := keys.Rotate(ctx, admin, key.ID, 0, time.Time{})
			if err != nil {
				return err
			}
			fmt.Printf("revoked %s\ncreated %s\n", text, next)
			continue
		}
		if err := keys.Revoke(ctx, admin, key.ID, "no longer needed"); err != nil {
			return err
		}
		fmt.Println("revoked", text)
	}
}

// TestKillKeys kills a process that creates, rotates and revokes keys, at random moments. Afterwards every
// key and every revocation is in the log, what was acknowledged holds, and nothing else works.
func TestKillKeys(t *testing.T) {
	rounds := 25
	switch {
	case os.Getenv("ASSAY_LONG") != "":
		rounds = 200
	case testing.Short():
		rounds = 3
	}
	dir := t.TempDir()
	state := map[string]string{} // last acknowledged, by key
	for range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), childVariable+"="+dir), os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for left := rand.IntN(30); lines.Scan(); left-- {
			what, text, _ := strings.Cut(lines.Text(), " ")
			state[text] = what
			if left == 0 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // "signal: killed"
	}
	checkKilled(t, openSystem(t, dir), state)
}

// checkKilled compares the keys and the log with what was acknowledged.
func checkKilled(t *testing.T, sys store.System, state map[string]string) {
	t.Helper()
	a, err := New(Options{Keys: NewKeys(sys, nil), Untracked: true})
	if err != nil {
		t.Fatal(err)
	}
	logged := map[string]int{}
	for _, act := range actsOf(t, sys) {
		logged[act.Kind+" "+act.Subject]++
	}
	stored := 0
	for kind, act := range map[string]string{kindKey: "key.created", kindRevocation: "key.revoked"} {
		items, err := sys.Registry().Items(t.Context(), kind)
		if err != nil {
			t.Fatal(err)
		}
		stored += len(items)
		for _, item := range items {
			if logged[act+" "+item.Name] != 1 {
				t.Errorf("%s %s is %d times in the log", act, item.Name, logged[act+" "+item.Name])
			}
		}
	}
	if stored != len(logged) {
		t.Errorf("%d keys and revocations, %d acts", stored, len(logged))
	}
	ids := map[string]bool{}
	for text, what := range state {
		id, _, _ := splitKey(text)
		ids[id] = true
		_, err := authenticate(t.Context(), a, text)
		revoked := logged["key.revoked "+id] > 0
		switch {
		case logged["key.created "+id] != 1:
			t.Errorf("key %s was acknowledged and is not in the log", id)
		case what == "revoked" && !revoked:
			t.Errorf("the revocation of %s was acknowledged and is not in the log", id)
		case revoked && ReasonOf(err) != Revoked, !revoked && err != nil:
			t.Errorf("key %s, revoked %t: %v", id, revoked, err)
		}
	}
	t.Logf("%d keys acknowledged, %d keys and revocations stored", len(ids), stored)
}

// BenchmarkKey measures the check of an API key. Its use is recorded once.
func BenchmarkKey(b *testing.B) {
	keys := NewKeys(openSystem(b, b.TempDir()), nil)
	a, err := New(Options{Keys: keys})
	if err != nil {
		b.Fatal(err)
	}
	_, text, err := keys.Create(b.Context(), admin, spec())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := authenticate(b.Context(), a, text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkToken measures the check of an access token, by the kind of its key.
func BenchmarkToken(b *testing.B) {
	i := newTestIssuer(b)
	a := i.authenticator(b, i.issuer())
	for _, key := range []string{"rsa", "ec", "ed"} {
		token := i.token(b, key, i.claims(nil), nil)
		b.Run(key, func(b *testing.B) {
			for b.Loop() {
				if _, err := authenticate(b.Context(), a, token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
