package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/server"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/webhook"
)

// A planter fills a tenant with everything that it can have. Texts come from say, which is told the field.
type planter struct {
	x      *site
	t      testing.TB
	tenant string
	folder string // of a source
	admin  *engine.Session
	asker  *engine.Session // of the group board
	say    func(field string) string

	refused []string // fields whose text the engine does not take

	open, hidden string // IDs of documents; the board sees the hidden one
	run, waiting string // of asker
	key          string
	evaluation   string
}

// try calls f with a text of a field, and with a plain one if the engine refuses that.
func (p *planter) try(field string, f func(text string) error) {
	p.t.Helper()
	err := f(p.say(field))
	if errors.Is(err, assay.ErrInvalid) {
		p.refused = append(p.refused, field)
		err = f("plain-" + field)
	}
	if err != nil {
		p.t.Fatalf("plant %s of %s: %v", field, p.tenant, err)
	}
}

func (p *planter) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("plant %s: %v", p.tenant, err)
	}
}

// upload stores a document and returns its ID.
func (p *planter) upload(collection, text string, metadata map[string]any) (id string) {
	p.t.Helper()
	sidecar, err := json.Marshal(metadata)
	p.must(err)
	text = strings.ReplaceAll(text, "\x00", "") // which makes a file binary data
	p.try("file", func(name string) error {
		up, err := p.admin.Upload(p.t.Context(), engine.Upload{Collection: collection, Name: strings.Trim(strings.ReplaceAll(name, "/", "∕"), ". ") + ".md", Body: strings.NewReader(text), Type: "text/markdown", Sidecar: sidecar})
		if err == nil {
			id = up.Documents[0].ID
		}
		return err
	})
	return id
}

// plant fills the tenant.
func (p *planter) plant() {
	p.t.Helper()
	ctx := p.t.Context()
	collection := ""
	p.try("collection", func(name string) error {
		collection = name
		return p.admin.SetCollection(ctx, store.Collection{Name: name})
	})
	title := p.say("title")
	p.open = p.upload(collection, fmt.Sprintf("# %s\n\nThe Falcon project is led by Ada. Its budget is 7000 euros. %s\n\n## %s\n\n| %s | value |\n| --- | --- |\n| colour | blue |\n",
		title, p.say("text"), p.say("heading"), p.say("cell")), map[string]any{"title": title, "team": p.say("metadata"), "owner": p.say("metadata")})
	p.hidden = p.upload(collection, "# The plan of the board\n\nThe Falcon project moves to "+p.say("board")+" in May. The sponsor of the Falcon project is "+p.say("board")+".",
		map[string]any{"acl": []string{"group:board"}, "title": p.say("board")})
	p.upload(collection, "# Allowance, old\n\nThe daily allowance of the Falcon project is 40 euros. "+p.say("text"), map[string]any{})
	p.upload(collection, "# Allowance, new\n\nThe daily allowance of the Falcon project is 55 euros. "+p.say("text"), map[string]any{})
	p.ask(ctx)
	p.administer(ctx)
	p.evaluate(ctx)
	p.must(p.checkpoint(ctx))
}

// ask asks questions that have different outcomes.
func (p *planter) ask(ctx context.Context) {
	p.t.Helper()
	answer := func(question string) assay.Answer {
		a, err := p.asker.Answer(ctx, engine.Request{Question: question, NoCache: true})
		p.must(err)
		return a
	}
	p.run = answer("Who leads the Falcon project? " + p.say("question")).Run
	answer("Where does the Falcon project move in May?")
	answer("What is the daily allowance of the Falcon project?")
	answer("Which colour has the moon of " + p.say("question") + "?")
	p.try("policy", func(name string) error {
		return p.admin.SetPolicy(ctx, review.Policy{Name: name, Groups: []string{"board"}}, p.say("reason"))
	})
	a := answer("Who is the sponsor of the Falcon project?")
	if p.waiting = a.Run; a.Status != assay.PendingReview {
		p.t.Fatalf("the status is %s, want one that waits", a.Status)
	}
	rejected := answer("How large is the budget of the Falcon project? " + p.say("question"))
	if rejected.Status == assay.PendingReview {
		_, err := p.admin.Claim(ctx, rejected.Run, time.Hour)
		p.must(err)
		_, err = p.admin.Reject(ctx, rejected.Run, p.say("reason"))
		p.must(err)
	}
}

// administer sets everything that an administrator can.
func (p *planter) administer(ctx context.Context) {
	p.t.Helper()
	p.try("user", func(user string) error {
		return p.admin.SetLimits(ctx, limit.User(user), limit.Limits{limit.RequestsPerDay: 5}, p.say("reason"))
	})
	p.try("hold", func(name string) error {
		return p.admin.AddHold(ctx, store.Hold{Name: name, User: "somebody", Reason: p.say("reason")})
	})
	p.must(p.admin.SetRetention(ctx, store.RetainActs, 3000, p.say("reason")))
	p.try("webhook", func(name string) error {
		return p.admin.SetWebhook(ctx, name, webhook.Target{URL: "https://hook.example.com/hook", Events: []string{"*"}, Form: webhook.Standard, Secrets: []string{"env:HOOK_SECRET"}, Active: true}, p.say("reason"))
	})
	p.must(p.admin.RestrictEgress(ctx, engine.EgressRules{Allow: []string{"out.example.com"}}, p.say("reason")))
	_, _, err := p.admin.AddCanary(ctx, engine.NewCanary{Collection: "canaries"})
	p.must(err)
	p.try("source", func(name string) error {
		return p.admin.AddSource(ctx, engine.NewSource{Name: name, Kind: "folder", Target: p.folder, Collection: "sourced"})
	})
	p.try("key", func(user string) error { // sessions make keys for their own user only
		system, err := p.x.store.System(ctx)
		if err != nil {
			return err
		}
		key, _, err := identity.NewKeys(system, nil).Create(ctx, assay.Local(), identity.KeySpec{Tenant: p.tenant, User: user, Groups: []string{"staff"}, Roles: []identity.RoleIn{{Role: identity.Reader}}})
		p.key = key.ID
		return errors.Join(err, system.Close())
	})
	p.must(p.admin.Stop(ctx, p.say("reason")))
	p.must(p.admin.Start(ctx, p.say("reason")))
}

// evaluate runs an evaluation without questions.
func (p *planter) evaluate(ctx context.Context) {
	p.t.Helper()
	p.try("set", func(name string) error {
		e, err := p.admin.StartEvaluation(ctx, name, 1, func(context.Context, func(done, all int)) (json.RawMessage, error) {
			return json.Marshal(map[string]string{"set": p.say("evaluation")})
		})
		if err != nil {
			return err
		}
		for e.State == engine.EvaluationRunning {
			if e, err = p.admin.Evaluation(ctx, e.ID); err != nil {
				return err
			}
			time.Sleep(5 * time.Millisecond)
		}
		p.evaluation = e.ID
		return nil
	})
}

// checkpoint signs a checkpoint of the tenant's log.
func (p *planter) checkpoint(ctx context.Context) error {
	t, err := p.x.store.Tenant(ctx, p.tenant)
	if err != nil {
		return err
	}
	key, err := audit.NewKey()
	if err != nil {
		return err
	}
	authority := &audit.Authority{Audit: t.Audit(), Registry: t.Registry(), Key: key}
	_, err = authority.Checkpoint(ctx)
	return errors.Join(err, t.Close())
}

// newWorld opens a site in which root of acme and zed of globex have planted everything. say returns the
// texts of a tenant.
func newWorld(t testing.TB, say func(tenant string) func(field string) string, options ...option) (x *site, acme, globex *planter) {
	t.Helper()
	folder := t.TempDir()
	x = newSite(t, append(options, func(h *engine.HostConfig, _ *server.Config) {
		h.Folders = append(h.Folders, folder)
		h.AllowSource = func(string, engine.NewSource) bool { return true }
		h.AllowCredential = func(_, reference string) bool { return reference == "env:HOOK_SECRET" }
	})...)
	acme = &planter{x: x, t: t, tenant: "acme", folder: folder, admin: x.session("root"), asker: x.session("bob"), say: say("acme")}
	globex = &planter{x: x, t: t, tenant: "globex", folder: folder, admin: x.session("zed"), asker: x.sessionOf("globex", "zoe", "board"), say: say("globex")}
	acme.plant()
	globex.plant()
	return x, acme, globex
}

// sessionOf returns a session of a user who has no key and may ask.
func (x *site) sessionOf(tenant, user string, groups ...string) *engine.Session {
	x.t.Helper()
	grant := identity.Grant{Tenant: tenant, Principal: assay.Principal{User: user, Groups: groups, Roles: []string{string(identity.Editor)}}}
	for _, scope := range []identity.Scope{identity.ScopeAsk, identity.ScopeSearch} {
		grant.Rights = append(grant.Rights, identity.Right{Scope: scope})
	}
	s, err := x.host.Session(x.t.Context(), grant)
	if err != nil {
		x.t.Fatal(err)
	}
	return s
}

// plain are texts for people to read.
func plain(string) func(field string) string {
	n := map[string]int{}
	return func(field string) string {
		n[field]++
		return fmt.Sprintf("%s-%d", field, n[field])
	}
}

// A visit is a page that a crawl has found.
type visit struct {
	route  Route
	path   string // with the query
	status int
	header http.Header
	body   string
}

// perState is how many pages of one route with the same parameters a crawl visits, unless it visits all.
const perState = 2

// crawl follows all links from the first page as a user, and returns at most so many pages of each route
// with the same parameters. Downloads and assets have no links.
func (x *site) crawl(user string, most int) []visit {
	x.t.Helper()
	routes := http.NewServeMux()
	byPattern := map[string]Route{}
	for _, r := range Routes() {
		routes.Handle(r.Method+" "+r.Path, http.NotFoundHandler())
		byPattern[r.Method+" "+r.Path] = r
	}
	queue, seen, states := []string{"/", "/sign-in"}, map[string]bool{}, map[string]int{}
	var all []visit
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		req, err := http.NewRequest(http.MethodGet, at, nil)
		if err != nil || seen[at] {
			continue
		}
		seen[at] = true
		_, pattern := routes.Handler(req)
		route, ok := byPattern[pattern]
		state := pattern + "?" + strings.Join(slices.Sorted(keysOf(req.URL.Query())), "&")
		if !ok || route.Stream || states[state] == most {
			continue
		}
		states[state]++
		r := x.get(user, at)
		all = append(all, visit{route, at, r.StatusCode, r.Header, r.body})
		if strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
			queue = append(queue, links(x.t, at, r.body)...)
		}
		if to := r.Header.Get("Location"); strings.HasPrefix(to, "/") {
			queue = append(queue, to)
		}
	}
	return all
}

func keysOf(v url.Values) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range v {
			if !yield(name) {
				return
			}
		}
	}
}

// links returns the paths of this server that a page links to.
func links(t testing.TB, at, body string) []string {
	t.Helper()
	base, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for n := range elements(t, body) {
		if n.Data != "a" {
			continue
		}
		u, err := base.Parse(attribute(n, "href"))
		if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/") {
			continue
		}
		u.Fragment, u.Path = "", path.Clean(u.Path)
		found = append(found, u.String())
	}
	return found
}

// elements returns the elements of a page in their order.
func elements(t testing.TB, body string) func(func(*html.Node) bool) {
	t.Helper()
	document, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(*html.Node) bool) {
		for n := range document.Descendants() {
			if n.Type == html.ElementNode && !yield(n) {
				return
			}
		}
	}
}

// attribute returns an attribute of an element; empty if it has none.
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
