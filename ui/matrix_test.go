package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store"
)

// Words that occur in everything of a tenant. The third is in what only its group board may see.
const (
	acmeWord   = "quorrax"
	globexWord = "zephyrine"
	boardWord  = "obsidiant"
)

// wordsOf returns texts with the word of a tenant.
func wordsOf(tenant string) func(field string) string {
	word := acmeWord
	if tenant == "globex" {
		word = globexWord
	}
	n := 0
	return func(field string) string {
		n++
		if field == "board" {
			return fmt.Sprintf("%s%d", boardWord, n)
		}
		return fmt.Sprintf("%s-%s-%d", word, field, n)
	}
}

// A column is a credential of the matrix.
type column struct {
	name, user string
	refused    bool // it is not valid
	tenant     string
	board      bool // it may see what the board sees
}

var columns = []column{
	{name: "none", refused: true},
	{name: "revoked", user: "rev", refused: true},
	{name: "other tenant", user: "zed", tenant: "globex", board: true},
	{name: "reader", user: "rob", tenant: "acme"},
	{name: "reviewer", user: "rae", tenant: "acme"},
	{name: "auditor", user: "aud", tenant: "acme"},
	{name: "editor", user: "ann", tenant: "acme"},
	{name: "admin", user: "root", tenant: "acme", board: true},
}

var pathVariable = regexp.MustCompile(`\{([a-z_]+)(\.\.\.)?\}`)

// targetOf returns the path of a route about the objects of a tenant.
func targetOf(r Route, p *planter) string {
	at := strings.ReplaceAll(r.Path, "{$}", "")
	return pathVariable.ReplaceAllStringFunc(at, func(v string) string {
		name := pathVariable.FindStringSubmatch(v)[1]
		switch area := strings.Split(strings.TrimPrefix(r.Path, "/"), "/")[0]; {
		case area == "runs", area == "trace", name == "run":
			if area == "reviews" {
				return p.waiting
			}
			return p.run
		case area == "reviews":
			return p.waiting
		case area == "documents", name == "document":
			return p.hidden
		case area == "evaluations":
			return p.evaluation
		case name == "key" || strings.Contains(r.Path, "/keys/"):
			return p.key
		}
		return "none"
	})
}

// TestMatrix calls every route with every kind of credential, about objects of both tenants. Those without
// the right are refused, nothing fails, and no answer has a word of another tenant or of a document that its
// credential may not see. Pages and refused forms change nothing:
// the logs of the tenants grow by no act, except that who opens a draft is recorded.
func TestMatrix(t *testing.T) {
	t.Parallel()
	x, acme, globex := newWorld(t, wordsOf)
	x.revokedUser("rev")
	for _, c := range columns {
		x.client(c.user) // to sign in is an act
	}
	acts := x.acts(t)
	before, calls := acts(), 0
	for _, c := range columns {
		for _, p := range []*planter{acme, globex} {
			for _, r := range Routes() {
				if r.Name == "sign-out" || r.Name == "sign-in.begin" {
					continue // see the tests of signing in
				}
				calls++
				reply, refused := x.checkCell(t, c, r, targetOf(r, p))
				after := acts()
				reads := r.Method == http.MethodGet && r.Name != "review" // who reads a draft is recorded
				if after != before && (reads || refused) {
					t.Errorf("%s %s with the credential %q: status %d, but something has changed: %d acts, %d before", r.Method, r.Path, c.name, reply.StatusCode, after, before)
				}
				before = after
			}
		}
	}
	t.Logf("%d calls of %d routes with %d kinds of credential", calls, len(Routes()), len(columns))
}

// checkCell calls a route with a credential. refused means that the credential lacks the right.
func (x *site) checkCell(t *testing.T, c column, r Route, target string) (reply reply, refused bool) {
	t.Helper()
	reply = x.call(t, c.user, r, target)
	what := fmt.Sprintf("%s %s with the credential %q: status %d", r.Method, target, c.name, reply.StatusCode)
	toSignIn := reply.StatusCode == http.StatusSeeOther && strings.HasPrefix(reply.Header.Get("Location"), "/sign-in")
	switch {
	case reply.StatusCode >= http.StatusInternalServerError && reply.StatusCode != http.StatusServiceUnavailable:
		t.Errorf("%s: %s", what, notice(reply.body))
	case r.Call == "":
	case c.refused:
		refused = true
		if !toSignIn && reply.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s, want 401 or the page that signs in", what)
		}
	case !x.allows(c.user, r.Call) && r.Name == "ask":
		if to := reply.Header.Get("Location"); reply.StatusCode != http.StatusSeeOther || to == "" || toSignIn {
			t.Errorf("%s to %q, want the first page that the user may see", what, to)
		}
	case !x.allows(c.user, r.Call):
		refused = true
		if reply.StatusCode != http.StatusForbidden {
			t.Errorf("%s, want 403", what)
		}
	case toSignIn || reply.StatusCode == http.StatusUnauthorized:
		t.Errorf("%s, although the credential is valid", what)
	}
	text := strings.ReplaceAll(reply.body+fmt.Sprint(reply.Header), target, "")
	for word, may := range map[string]bool{acmeWord: c.tenant == "acme", globexWord: c.tenant == "globex", boardWord: c.board} {
		if !may && strings.Contains(text, word) {
			i := strings.Index(text, word)
			t.Errorf("%s: it shows %q: …%s…", what, word, text[max(0, i-150):min(len(text), i+50)])
		}
	}
	return reply, refused
}

// call sends a request to a route. A form is sent empty, so that the routes that change something refuse it
// for what it lacks, if not for its credential. A stream is read for a moment after its header.
func (x *site) call(t *testing.T, user string, r Route, target string) reply {
	t.Helper()
	if r.Method == http.MethodPost {
		return x.post(user, target, url.Values{})
	}
	if !r.Stream {
		return x.get(user, target)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, x.url+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := x.client(user).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	defer time.AfterFunc(300*time.Millisecond, cancel).Stop()
	data, err := io.ReadAll(res.Body)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return reply{res, string(data)}
}

// acts returns a function that returns how many acts the logs of the tenants have.
func (x *site) acts(t *testing.T) func() int {
	t.Helper()
	var logs []store.Audit
	for _, tenant := range []string{"acme", "globex"} {
		opened, err := x.store.Tenant(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeTest(t, opened) })
		logs = append(logs, opened.Audit())
	}
	return func() (n int) {
		t.Helper()
		for _, log := range logs {
			size, err := log.Size(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n += int(size)
		}
		return n
	}
}

// allows reports whether a user has the right to call a method.
func (x *site) allows(user, method string) bool {
	x.t.Helper()
	return engine.Allows(engine.SessionGrant(x.session(user)), method) == nil
}

// revokedUser signs a user in whose key is then revoked.
func (x *site) revokedUser(user string) {
	x.t.Helper()
	system, err := x.store.System(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	keys := identity.NewKeys(system, nil)
	key, text, err := keys.Create(x.t.Context(), assay.Local(), identity.KeySpec{Tenant: "acme", User: user, Roles: []identity.RoleIn{{Role: identity.Admin}}})
	if err != nil {
		x.t.Fatal(err)
	}
	x.keys[user] = text
	x.client(user)
	if err := keys.Revoke(x.t.Context(), assay.Local(), key.ID, "a test"); err != nil {
		x.t.Fatal(err)
	}
	closeTest(x.t, system)
}

// TestForeignOrigin sends every form as a page of another site would, and as a page without an origin would:
// none is accepted.
func TestForeignOrigin(t *testing.T) {
	t.Parallel()
	x, acme, _ := newWorld(t, wordsOf)
	x.client("root")
	acts := x.acts(t)
	before := acts()
	for _, r := range Routes() {
		if r.Method != http.MethodPost {
			continue
		}
		for _, origin := range []string{"https://evil.example", "null"} {
			for _, site := range []string{"cross-site", ""} {
				req, err := http.NewRequestWithContext(t.Context(), r.Method, x.url+targetOf(r, acme), strings.NewReader("reason=x&confirm=yes"))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				req.Header.Set("Origin", origin)
				if site != "" {
					req.Header.Set("Sec-Fetch-Site", site)
				}
				res, err := x.client("root").Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if !slices.Contains([]int{http.StatusForbidden, http.StatusUnauthorized}, res.StatusCode) {
					t.Errorf("%s %s from %s: status %d", r.Method, r.Path, origin, res.StatusCode)
				}
			}
		}
	}
	if after := acts(); after != before {
		t.Errorf("the forms of another site have changed something: %d acts, %d before", after, before)
	}
	if r := x.get("root", "/"); r.StatusCode != http.StatusOK {
		t.Errorf("the session has ended: status %d", r.StatusCode)
	}
}
