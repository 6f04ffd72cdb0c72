package engine

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/webhook"
)

const sessionAudience = "https://assay.example.com"

// A realIssuer is an OpenID provider in this process with one key.
type realIssuer struct {
	server *httptest.Server
	key    ed25519.PrivateKey
}

func newRealIssuer(t *testing.T) *realIssuer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &realIssuer{key: private}
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/keys" {
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k", Algorithm: "EdDSA", Use: "sig"}}})
			return
		}
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"authorization_endpoint":"x","token_endpoint":"x"}`, i.server.URL, i.server.URL+"/keys")
	}))
	t.Cleanup(i.server.Close)
	return i
}

// token signs an access token of ann, in the group staff, with changed claims.
func (i *realIssuer) token(t *testing.T, change map[string]any) string {
	t.Helper()
	now := time.Now().Unix()
	claims := map[string]any{
		"iss": i.server.URL, "aud": sessionAudience, "sub": "1", "name": staff.User, "exp": now + 3600, "iat": now, "client_id": "app",
		"groups": staff.Groups, "tenant": "acme", "roles": []string{"reader"},
	}
	maps.Copy(claims, change)
	data, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	options := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{"typ": "at+jwt", "kid": "k"}}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: i.key}, options)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// authenticator accepts the tokens of i and the API keys of a host.
func (i *realIssuer) authenticator(t *testing.T, h *Host) *identity.Authenticator {
	t.Helper()
	roles := map[string][]identity.RoleIn{}
	for _, r := range identity.Roles {
		roles[string(r.Role)] = []identity.RoleIn{{Role: r.Role}}
	}
	a, err := identity.New(identity.Options{
		Keys: identity.NewKeys(h.system, nil),
		Tokens: identity.Tokens{Audience: sessionAudience, Issuers: []identity.Issuer{{
			Name: "corp", URL: i.server.URL, TenantClaim: "tenant", Tenants: map[string]string{"acme": "acme", "globex": "globex"},
			UserClaim: "name", BareUser: true, GroupsClaim: "groups", RolesClaim: "roles", Roles: roles,
			Scopes: map[string]identity.Scope{"ask": identity.ScopeAsk, "search": identity.ScopeSearch, "ingest": identity.ScopeIngest, "review": identity.ScopeReview, "audit": identity.ScopeAudit, "admin": identity.ScopeAdmin},
		}}},
		Client: i.server.Client(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// everyScope is the claim of a token that leaves its roles as they are.
const everyScope = "ask search ingest review audit admin"

// newKey makes an API key for a principal.
func newKey(t *testing.T, h *Host, tenant string, p assay.Principal, roles ...string) (identity.Key, string) {
	t.Helper()
	parsed, err := identity.ParseRoles(roles...)
	if err != nil {
		t.Fatal(err)
	}
	key, text, err := identity.NewKeys(h.system, nil).Create(t.Context(), assay.Local(), identity.KeySpec{Tenant: tenant, User: p.User, Groups: p.Groups, Roles: parsed})
	if err != nil {
		t.Fatal(err)
	}
	return key, text
}

// realCredentials are those of the matrix as keys and tokens, by the name of the column.
func realCredentials(t *testing.T, x *trustWorld, i *realIssuer) map[string][]string {
	t.Helper()
	admin := map[string]any{"name": board.User, "groups": board.Groups, "roles": []string{"admin"}, "scope": everyScope}
	with := func(key string, value any) string {
		claims := maps.Clone(admin)
		claims[key] = value
		return i.token(t, claims)
	}
	key, revoked := newKey(t, x.host, "acme", board, "admin")
	if err := identity.NewKeys(x.host.system, nil).Revoke(t.Context(), assay.Local(), key.ID, "a test"); err != nil {
		t.Fatal(err)
	}
	_, suspended := newKey(t, x.host, "suspended", board, "admin")
	_, foreign := newKey(t, x.host, "globex", board, "admin")
	_, narrow := newKey(t, x.host, "acme", staff, "reader:open")
	_, former := newKey(t, x.host, "acme", assay.Principal{User: board.User, Groups: []string{"staff"}}, "reader")
	all := map[string][]string{
		"none":             {""},
		"expired":          {with("exp", time.Now().Unix()-600)},
		"foreign audience": {with("aud", "https://other.example.com")},
		"revoked":          {revoked},
		"suspended tenant": {suspended},
		"foreign tenant":   {foreign, with("tenant", "globex")},
		"one collection":   {narrow},
		"group removed":    {former},
	}
	for _, r := range identity.Roles {
		_, text := newKey(t, x.host, "acme", staff, string(r.Role))
		all[string(r.Role)] = []string{text, i.token(t, map[string]any{"roles": []string{string(r.Role)}, "scope": everyScope})}
	}
	return all
}

// TestRealCredentials presents API keys and tokens to an Authenticator for some methods of the matrix.
// Each is refused as the grant in its column is, and sees no more.
func TestRealCredentials(t *testing.T) {
	t.Parallel()
	x := openTrust(t, t.TempDir(), false)
	i := newRealIssuer(t)
	a := i.authenticator(t, x.host)
	sample := []string{"Answer", "Search", "Documents", "Run", "PlanIngest", "Reviews", "Review", "Policies", "Stops", "LimitUsage", "AuditRun", "AuditLog", "Prove", "AddSource"}
	real := realCredentials(t, x, i)
	calls := 0
	for _, c := range credentials() {
		texts, ok := real[c.name]
		if !ok {
			t.Errorf("%s: there is no such key or token", c.name)
		}
		for _, text := range texts {
			presented := c
			presented.grant = func() (identity.Grant, error) {
				credential, err := identity.FromString(text)
				if err != nil {
					return identity.Grant{}, err
				}
				return a.Authenticate(t.Context(), credential)
			}
			for _, p := range probes("no-run", "no-run", "no-document", "no-collection") {
				if !slices.Contains(sample, p.method) {
					continue
				}
				calls++
				_, want := x.try(t, c, p)
				got, err := x.try(t, presented, p)
				if refusal(err) != refusal(want) {
					t.Errorf("%s, %s: %v, want %v", c.name, p.method, err, want)
				}
				if leak := x.leak(presented, p, jsonOf(got)+fmt.Sprint(err)); leak != "" {
					t.Errorf("%s, %s: leaks %s", c.name, p.method, leak)
				}
			}
		}
	}
	t.Logf("%d calls", calls)
}

// TestRevokedKeyEndsSession revokes and deletes keys while sessions are open.
func TestRevokedKeyEndsSession(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme")
	a, err := identity.New(identity.Options{Keys: identity.NewKeys(h.system, nil)})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := identity.NewKeys(h.system, nil)
	for name, end := range map[string]func(id string) error{
		"revoked": func(id string) error { return elsewhere.Revoke(t.Context(), assay.Local(), id, "a test") },
		"deleted": func(string) error { return elsewhere.DeleteTenant(t.Context(), assay.Local(), "acme", "a test") },
	} {
		key, text := newKey(t, h, "acme", staff, "reader")
		credential, err := identity.FromString(text)
		if err != nil {
			t.Fatal(err)
		}
		grant, err := a.Authenticate(t.Context(), credential)
		if err != nil {
			t.Fatal(err)
		}
		s := mustSession(t, h, grant)
		if _, err := s.Runs(t.Context(), 0); err != nil {
			t.Errorf("%s, before: %v", name, err)
		}
		if err := end(key.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Runs(t.Context(), 0); !errors.Is(err, assay.ErrUnauthenticated) {
			t.Errorf("%s: %v, want ErrUnauthenticated", name, err)
		}
	}
	forged := roleGrant("acme", assay.Principal{User: "eve", Key: "no-key"}, identity.Admin)
	if _, err := h.Session(t.Context(), forged); !errors.Is(err, assay.ErrUnauthenticated) {
		t.Errorf("a key that does not exist: %v", err)
	}
}

// TestLocalUserHasNoCredential checks that no credential gives the user of the command line, and that the engine
// trusts the name alone in no case.
func TestLocalUserHasNoCredential(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme")
	for _, g := range []identity.Grant{identity.Local("acme"), roleGrant("acme", assay.Local(), identity.Reader), roleGrant("acme", assay.Local(), identity.Admin)} {
		if _, err := h.Session(t.Context(), g); !errors.Is(err, assay.ErrUnauthenticated) {
			t.Errorf("a session of %+v: %v", g.Principal, err)
		}
	}
	keys := identity.NewKeys(h.system, nil)
	spec := identity.KeySpec{Tenant: "acme", User: assay.Local().User, Roles: []identity.RoleIn{{Role: identity.Admin}}}
	if _, _, err := keys.Create(t.Context(), assay.Local(), spec); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a key of the local user: %v", err)
	}
	i := newRealIssuer(t)
	credential, err := identity.FromString(i.token(t, map[string]any{"name": assay.Local().User, "scope": everyScope}))
	if err != nil {
		t.Fatal(err)
	}
	if g, err := i.authenticator(t, h).Authenticate(t.Context(), credential); !errors.Is(err, assay.ErrUnauthenticated) {
		t.Errorf("a token of the local user: %+v, %v", g, err)
	}
	for _, p := range []assay.Principal{{User: "local", Key: "k"}, {User: "local", Roles: []string{"reader"}}, {User: "local", Groups: []string{"staff"}}, {Roles: []string{"admin", "auditor"}}} {
		if administers(p) || audits(p) || mayReview(p) {
			t.Errorf("%+v has the rights of the command line", p)
		}
	}
}

// TestRolesNeedScopes checks that a grant whose scopes were left out does not act by its roles.
func TestRolesNeedScopes(t *testing.T) {
	t.Parallel()
	x := openTrust(t, t.TempDir(), false)
	g := grantOf("acme", assay.Principal{User: "root", Groups: []string{"staff"}, Roles: []string{"admin", "auditor", "reviewer"}}, identity.Right{Scope: identity.ScopeAsk})
	s := mustSession(t, x.host, g)
	checkpoint, err := x.sign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, erased := s.EraseRuns(t.Context(), []string{x.boardRun}, "a test", true)
	_, proved := s.Prove(t.Context(), x.boardRun, checkpoint)
	_, skipped := s.Answer(t.Context(), Request{Question: "Who leads the Falcon project?", Review: ReviewNever})
	for what, err := range map[string]error{"EraseRuns": erased, "Prove": proved} {
		if !errors.Is(err, assay.ErrNotFound) {
			t.Errorf("%s of another's run: %v", what, err)
		}
	}
	if !errors.Is(skipped, assay.ErrForbidden) {
		t.Errorf("an answer without a review: %v", skipped)
	}
	admin := mustSession(t, x.host, roleGrant("acme", assay.Principal{User: "chief"}, identity.Admin))
	if err := admin.SetPolicy(t.Context(), review.Policy{Name: "all", Always: true}, "a test"); err != nil {
		t.Fatal(err)
	}
	measuring := Request{Question: "Who leads the Falcon project?", Measuring: true, NoCache: true}
	if a, err := s.Answer(t.Context(), measuring); !errors.Is(err, assay.ErrForbidden) {
		t.Errorf("a measuring question: %s, %v; want ErrForbidden", a.Status, err)
	}
	if id, err := s.Begin(t.Context(), measuring); !errors.Is(err, assay.ErrForbidden) {
		t.Errorf("a measuring run: %s, %v; want ErrForbidden", id, err)
	}
	if a, err := admin.Answer(t.Context(), measuring); err != nil || a.Status == assay.PendingReview {
		t.Errorf("a measuring question of an administrator: %s, %v; want one that does not wait", a.Status, err)
	}
}

// TestReviewsOfOneCollection checks that a reviewer in one collection learns nothing of reviews that
// rest on others.
func TestReviewsOfOneCollection(t *testing.T) {
	t.Parallel()
	x := openTrust(t, t.TempDir(), false)
	g := grantOf("acme", assay.Principal{User: "rita", Groups: []string{"board", "staff"}, Roles: []string{"reviewer"}}, identity.Right{Scope: identity.ScopeReview})
	if all, err := mustSession(t, x.host, g).Reviews(t.Context(), ReviewFilter{}); err != nil || len(all) != 1 {
		t.Errorf("%d reviews, %v; want one", len(all), err)
	}
	g.Rights[0].Collections = []string{"added"}
	narrow := mustSession(t, x.host, g)
	all, err := narrow.Reviews(t.Context(), ReviewFilter{})
	if err != nil || len(all) != 0 {
		t.Errorf("%+v, %v; want none", all, err)
	}
	for what, call := range map[string]func() error{
		"Review":  func() error { _, err := narrow.Review(t.Context(), x.waiting); return err },
		"Claim":   func() error { _, err := narrow.Claim(t.Context(), x.waiting, 0); return err },
		"Approve": func() error { _, err := narrow.Approve(t.Context(), x.waiting); return err },
		"Check":   func() error { _, err := narrow.CheckEdit(t.Context(), x.waiting, "no"); return err },
		"Reject":  func() error { _, err := narrow.Reject(t.Context(), x.waiting, "no"); return err },
	} {
		if err := call(); !errors.Is(err, assay.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", what, err)
		}
	}
}

// TestSessionOfMachine checks that an administrator of a tenant reaches neither files and programs of
// the machine nor other tenants.
func TestSessionOfMachine(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme", "globex")
	admin := mustSession(t, h, roleGrant("acme", assay.Principal{User: "root"}, identity.Admin))
	other := mustSession(t, h, roleGrant("globex", assay.Principal{User: "zed"}, identity.Admin))
	ctx := t.Context()
	for _, reference := range []string{"env:HOME", "file:/etc/passwd", "command:id"} {
		target := webhook.Target{URL: "https://hooks.example.com/", Events: []string{"*"}, Form: webhook.Standard, Secrets: []string{reference}, Active: true}
		if err := admin.SetWebhook(ctx, "w", target, ""); !errors.Is(err, assay.ErrForbidden) {
			t.Errorf("a webhook signed by %s: %v", reference, err)
		}
		target = webhook.Target{URL: reference, Events: []string{"*"}, Form: webhook.Slack, Active: true}
		if err := admin.SetWebhook(ctx, "w", target, ""); !errors.Is(err, assay.ErrForbidden) {
			t.Errorf("a webhook at %s: %v", reference, err)
		}
	}
	if err := admin.AddSource(ctx, NewSource{Name: "all", Kind: "folder", Target: "/"}); !errors.Is(err, assay.ErrForbidden) {
		t.Errorf("a source of the machine: %v", err)
	}
	if _, _, err := admin.AddCanary(ctx, NewCanary{Text: strings.Repeat("the usual words of a contract ", 4)}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a canary of chosen words: %v", err)
	}
	if _, _, err := admin.AddCanary(ctx, NewCanary{}); err != nil {
		t.Errorf("a canary: %v", err)
	}
	if all, err := other.Canaries(ctx); err != nil || len(all) != 0 {
		t.Errorf("the other tenant has %+v, %v", all, err)
	}
	if err := admin.Stop(ctx, "a secret reason"); err != nil {
		t.Fatal(err)
	}
	if stops, err := other.Stops(ctx); err != nil || len(stops) != 0 {
		t.Errorf("the other tenant is stopped: %+v, %v", stops, err)
	}
	operator := openConfig(t, Config{Store: h.store, Tenant: "acme"})
	if err := operator.Stop(ctx, assay.Local(), true, "a secret reason"); err != nil {
		t.Fatal(err)
	}
	stops, err := other.Stops(ctx)
	if err != nil || len(stops) != 1 || !stops[0].All || stops[0].By != "" || stops[0].Reason != "" {
		t.Errorf("the stop of all tenants: %+v, %v", stops, err)
	}
	if err := other.Start(ctx, ""); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("a tenant lifts the stop of all: %v", err)
	}
	if err := other.SetLimits(ctx, limit.Tenant, limit.Limits{limit.RequestsPerDay: 1}, ""); err != nil {
		t.Fatal(err)
	}
	if table, err := admin.Limits(ctx); err != nil || len(table) != 0 {
		t.Errorf("the limits of another tenant: %+v, %v", table, err)
	}
}

// TestSuspensionEndsRuns suspends a tenant while a question is answered.
func TestSuspensionEndsRuns(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme")
	s := mustSession(t, h, roleGrant("acme", staff, identity.Editor))
	if _, err := s.Ingest(t.Context(), IngestRequest{Paths: []string{"-"}, Stdin: strings.NewReader("# Travel\n\nTravel is approved by the head of the department.\n"), StdinName: "travel.md"}); err != nil {
		t.Fatal(err)
	}
	c, err := s.enter(t.Context(), "Answer")
	if err != nil {
		t.Fatal(err)
	}
	defer c.done()
	var once sync.Once
	watch(t, c.engine, func(ctx context.Context, _ assay.Query) error {
		once.Do(func() {
			if err := h.store.SuspendTenant(t.Context(), "acme", store.Act{}); err != nil {
				t.Error(err)
			}
		})
		<-ctx.Done()
		return ctx.Err()
	})
	a, err := s.Answer(t.Context(), Request{Question: "Who approves travel?", Strategy: "corrective"})
	if err != nil || a.Status != assay.Incomplete || a.Stop != assay.StopStopped {
		t.Errorf("%s (%s), %v; want a stopped run", a.Status, a.Stop, err)
	}
	if _, err := s.Runs(t.Context(), 0); !errors.Is(err, assay.ErrStopped) {
		t.Errorf("a call afterwards: %v, want ErrStopped", err)
	}
	if err := h.store.ResumeTenant(t.Context(), "acme", store.Act{}); err != nil {
		t.Fatal(err)
	}
	if err := c.engine.checkStopped(t.Context()); err != nil {
		t.Errorf("after it was resumed: %v", err)
	}
}
