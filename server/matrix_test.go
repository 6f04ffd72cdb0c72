package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store"
)

// A credential is a column of the matrix.
type credential struct {
	name   string
	text   string         // of the header; empty: there is none
	refuse int            // status of every route that needs a credential; 0: by scope
	grant  identity.Grant // of a credential that is valid
	tenant string         // whose data it may see
}

// allows reports whether a credential has the right to call a route.
func (c credential) allows(r Route) bool {
	m, _ := methodOf(r)
	names, all := c.grant.Collections(m.Scope)
	return all || m.PerCollection && len(names) > 0
}

// credentials makes a credential of each kind. Those that can change most come last, so that the
// others find something.
func (x *world) credentials(t *testing.T) []credential {
	t.Helper()
	year := func() time.Time { return time.Now().AddDate(-1, 0, 0) }
	ann := func(tenant string) identity.KeySpec {
		return identity.KeySpec{Tenant: tenant, User: "ann", Groups: []string{"staff"}}
	}
	expired := ann("acme")
	expired.Expires = year().Add(time.Hour)
	_, expiredText := x.key(t, year, expired, "admin")
	revoked, revokedText := x.key(t, nil, ann("acme"), "admin")
	if err := identity.NewKeys(x.system, nil).Revoke(t.Context(), assay.Local(), revoked, "a test"); err != nil {
		t.Fatal(err)
	}
	_, suspendedText := x.key(t, nil, ann("suspended"), "admin")
	if err := x.store.SuspendTenant(t.Context(), "suspended", store.Act{}); err != nil {
		t.Fatal(err)
	}
	list := []credential{
		{name: "none", refuse: 401},
		{name: "malformed", text: expiredText[:len(expiredText)-1], refuse: 401},
		{name: "expired", text: expiredText, refuse: 401},
		{name: "revoked", text: revokedText, refuse: 401},
		{name: "suspended tenant", text: suspendedText, refuse: 503},
	}
	for _, c := range []struct{ name, tenant, role string }{
		{"other tenant", "globex", "admin"}, {"reader", "acme", "reader"}, {"one collection", "acme", "reader:" + x.acme.collection},
		{"reviewer", "acme", "reviewer"}, {"auditor", "acme", "auditor"}, {"editor", "acme", "editor"}, {"admin", "acme", "admin"},
	} {
		_, text := x.key(t, nil, ann(c.tenant), c.role)
		list = append(list, credential{name: c.name, text: text, tenant: c.tenant, grant: x.grantOf(t, text)})
	}
	return list
}

// grantOf returns the grant of an API key.
func (x *world) grantOf(t *testing.T, text string) identity.Grant {
	t.Helper()
	auth, err := identity.New(identity.Options{Keys: identity.NewKeys(x.system, nil), Untracked: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := identity.FromString(text)
	if err != nil {
		t.Fatal(err)
	}
	grant, err := auth.Authenticate(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return grant
}

// forbiddenByContent are routes that answer 403 to some requests of callers with the right: ann may not
// decide on, open, judge or label what she does not see, nor make keys for others, the server reads no pages for callers, and
// an auditor who may not ask evaluates nothing.
var forbiddenByContent = []string{"reviews.claim", "reviews.release", "reviews.approve", "reviews.edit", "reviews.check", "reviews.reject", "keys.rotate", "documents.fetch", "evaluations.start",
	"shared.show", "shared.judge", "shared.feedback", "shared.unjudge", "feedback.label"}

// TestMatrix calls every route with every kind of credential, about objects of both tenants and about
// none. Whoever lacks the scope is refused, and no response has anything that its credential may not see.
// The table is in docs/api.md; -update writes it.
func TestMatrix(t *testing.T) {
	x := openWorld(t)
	columns := x.credentials(t)
	table := map[string]map[string]string{}
	calls, leaks, failed := 0, 0, 0
	for _, c := range columns {
		for _, target := range []objects{x.acme, x.globex, missingObjects()} {
			for _, r := range Routes() {
				request, err := callOf(r, target)
				if err != nil {
					t.Fatal(err)
				}
				calls++
				w := x.do(t, request, c.text)
				status := statusOf(w)
				if problem := verdict(r, c, status); problem != "" {
					failed++
					t.Errorf("%s with the credential %q about %s: status %d, %s: %.300s", r.Name, c.name, target.word, status, problem, w.Body)
				}
				if leak := x.leak(c, request, fmt.Sprint(w.Header(), w.Body)); leak != "" {
					leaks++
					t.Errorf("%s with the credential %q about %s: leaks %q: %.1000s", r.Name, c.name, target.word, leak, w.Body)
				}
				if table[r.Name] == nil {
					table[r.Name] = map[string]string{}
				}
				table[r.Name][c.name] = cellOf(r, c)
			}
		}
	}
	t.Logf("%d calls of %d routes with %d kinds of credential: %d leaks, %d wrong statuses", calls, len(Routes()), len(columns), leaks, failed)
	checkTable(t, "routes", tableOf(columns, table, calls))
}

// verdict returns what is wrong with a status.
func verdict(r Route, c credential, status int) string {
	switch {
	case status >= 500 && status != 503 && status != 502:
		return "a failure of the server"
	case r.Call == "" && (status == 401 || status == 403):
		return "it needs no credential"
	case r.Call == "":
		return ""
	case c.refuse != 0 && status != c.refuse:
		return fmt.Sprintf("want %d", c.refuse)
	case c.refuse != 0:
		return ""
	case !c.allows(r) && status != 403:
		return "want 403"
	case c.allows(r) && (status == 401 || status == 403 && !slices.Contains(forbiddenByContent, r.Name)):
		return "it has the right"
	}
	return ""
}

func cellOf(r Route, c credential) string {
	switch {
	case r.Call == "":
		return "yes"
	case c.refuse != 0:
		return fmt.Sprint(c.refuse)
	case !c.allows(r):
		return "403"
	}
	return "yes"
}

// leak returns what a response reveals to a credential that may not see it.
func (x *world) leak(c credential, request call, text string) string {
	for _, named := range request.named { // an error may repeat what the caller has named
		if named != "" {
			text = strings.ReplaceAll(text, named, "")
		}
	}
	text = strings.ToLower(text)
	var secrets []string
	for _, o := range []objects{x.acme, x.globex} {
		if c.tenant != o.tenant {
			secrets = append(secrets, o.secrets...)
		}
		secrets = append(secrets, o.boardSecrets...) // ann is not in the board
	}
	for _, s := range secrets {
		if strings.Contains(text, strings.ToLower(s)) {
			return s
		}
	}
	return ""
}

// tableOf writes the matrix as a table in Markdown.
func tableOf(columns []credential, table map[string]map[string]string, calls int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls, 0 leaks.\n\n| route | operation | scope |", calls)
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n| --- | --- | --- |" + strings.Repeat(" --- |", len(columns)) + "\n")
	for _, r := range Routes() {
		m, needs := methodOf(r)
		scope := string(m.Scope)
		if m.PerCollection {
			scope += ", by collection"
		}
		if !needs {
			scope = "–"
		}
		fmt.Fprintf(&b, "| `%s %s` | `%s` | %s |", r.Method, r.Path, r.Name, scope)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", table[r.Name][c.name])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// checkTable compares a generated part of docs/api.md with a new one, or writes it.
func checkTable(t *testing.T, name, want string) {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	file := filepath.Join("..", "docs", "api.md")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	got, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for %s", file, name)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs; run go test ./server -run %s -update (-want +got):\n%s", file, t.Name(), diff)
	}
}
