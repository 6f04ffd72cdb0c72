package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/review"
	sourcekinds "github.com/assay-rag/assay/source/kinds"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
	"github.com/assay-rag/assay/webhook"
)

// Words that occur in everything of a tenant: texts, names, users, metadata and questions.
const (
	acmeWord   = "quorrax"
	globexWord = "zephyrine"
	boardWord  = "obsidiant" // in what only the group board of each tenant may see
)

// A world is a server with two tenants that have all kinds of objects.
type world struct {
	server  *Server
	handler http.Handler // checks requests and responses
	host    *engine.Host
	store   *sqlite.Store
	system  store.System
	acme    objects
	globex  objects
}

// objects are the names of what a tenant has.
type objects struct {
	tenant, word string
	run, waiting string // of the user bob, who is in the group board
	document     string // that everyone sees
	hidden       string // that the board sees
	key          string // ID
	policy, hold string
	webhook      string
	canary       string
	source       string
	collection   string
	user         string // subject of limits
	secrets      []string
	boardSecrets []string
	evaluation   string
	share, link  string // ID and token of a link to run, of which bob has said that it is right
	questions    string // a set with a question from run
}

// openWorld opens a server with credentials for two tenants.
func openWorld(t testing.TB) *world {
	t.Helper()
	ctx := t.Context()
	s, err := sqlite.Open(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := &world{store: s}
	if x.system, err = s.System(ctx); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	x.host, err = engine.OpenHost(ctx, engine.HostConfig{
		Config:          engine.Config{Store: s, NoBackground: true, Sources: sourcekinds.All()},
		Folders:         []string{folder},
		AllowSource:     func(string, engine.NewSource) bool { return true },
		AllowCredential: func(_, reference string) bool { return reference == "env:HOOK_SECRET" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(x.host.Close(), x.system.Close(), s.Close()); err != nil {
			t.Errorf("close the world: %v", err)
		}
	})
	for _, name := range []string{"acme", "globex", "suspended"} {
		if err := s.CreateTenant(ctx, name, store.Act{}); err != nil {
			t.Fatal(err)
		}
	}
	x.acme = x.plant(t, "acme", acmeWord, folder)
	x.globex = x.plant(t, "globex", globexWord, folder)
	auth, err := identity.New(identity.Options{Keys: identity.NewKeys(x.system, nil)})
	if err != nil {
		t.Fatal(err)
	}
	server, err := New(Config{Host: x.host, Authenticate: auth.Authenticate, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	x.server, x.handler = server, checked(t, server)
	return x
}

// session returns a session of a user with all rights.
func (x *world) session(t testing.TB, tenant, user string, groups ...string) *engine.Session {
	t.Helper()
	grant := identity.Grant{Tenant: tenant, Principal: assay.Principal{User: user, Groups: groups, Roles: []string{string(identity.Admin)}}}
	for _, r := range identity.Roles {
		for _, scope := range r.Scopes {
			if r.Role == identity.Admin {
				grant.Rights = append(grant.Rights, identity.Right{Scope: scope})
			}
		}
	}
	s, err := x.host.Session(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plant fills a tenant with everything that it can have, and a word in all of it.
func (x *world) plant(t testing.TB, tenant, word, folder string) objects {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("plant %s: %v", tenant, err)
		}
	}
	o := objects{
		tenant: tenant, word: word, policy: word + "-policy", hold: word + "-hold", webhook: word + "-hook", source: word + "-source",
		collection: word + "-papers", user: limit.User(word + "-user"),
	}
	dir := filepath.Join(folder, tenant, word)
	files := map[string]string{
		"open-" + word + ".md":                     "# The Falcon project of " + word + "\n\nThe Falcon project of " + word + " is led by Ada " + word + ". Its budget is 7000 euros of " + word + ".",
		"open-" + word + ".md.metadata.json":       `{"team": "` + word + `"}`,
		"board-" + boardWord + ".md":               "# The plan of the board " + boardWord + "\n\nThe Falcon project moves to " + boardWord + " in May. The sponsor of the Falcon project is " + boardWord + ".",
		"board-" + boardWord + ".md.metadata.json": `{"acl": ["group:board"], "team": "` + word + `"}`,
	}
	for name, text := range files {
		must(os.MkdirAll(dir, 0o700))
		must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	admin, bob := x.session(t, tenant, word+"-root", "board", "staff"), x.session(t, tenant, word+"-bob", "board", "staff")
	_, err := admin.Ingest(ctx, engine.IngestRequest{Paths: []string{dir}, Collection: o.collection})
	must(err)
	for d, err := range bob.Documents(ctx) {
		must(err)
		if strings.Contains(d.URI, boardWord) {
			o.hidden = d.ID
		} else {
			o.document = d.ID
		}
	}
	answer, err := bob.Answer(ctx, engine.Request{Question: "Where does the Falcon project move in May, and who leads it at " + word + "?"})
	must(err)
	o.run = answer.Run
	must(admin.SetPolicy(ctx, review.Policy{Name: o.policy, Groups: []string{"board"}}, word))
	answer, err = bob.Answer(ctx, engine.Request{Question: "Who is the sponsor of the Falcon project of " + word + "?", NoCache: true})
	must(err)
	if o.waiting = answer.Run; answer.Status != assay.PendingReview {
		t.Fatalf("the status is %s, want one that waits", answer.Status)
	}
	must(admin.SetPolicy(ctx, review.Policy{Name: o.policy, Groups: []string{word + "-group"}}, word))
	must(admin.SetLimits(ctx, o.user, limit.Limits{limit.RequestsPerDay: 5}, word))
	must(admin.AddHold(ctx, store.Hold{Name: o.hold, User: word + "-nobody", Reason: word}))
	must(admin.SetRetention(ctx, store.RetainActs, 3000, word))
	must(admin.SetWebhook(ctx, o.webhook, webhook.Target{URL: "https://" + word + ".example.com/hook", Events: []string{"*"}, Form: webhook.Standard, Secrets: []string{"env:HOOK_SECRET"}, Active: true}, word))
	must(admin.RestrictEgress(ctx, engine.EgressRules{Allow: []string{word + ".example.com"}}, word))
	canary, _, err := admin.AddCanary(ctx, engine.NewCanary{Collection: word + "-canaries"})
	must(err)
	o.canary = canary.Name
	must(admin.AddSource(ctx, engine.NewSource{Name: o.source, Kind: "folder", Target: filepath.Join(folder, tenant), Collection: o.collection}))
	key, _, err := admin.CreateKey(ctx, identity.KeySpec{Roles: []identity.RoleIn{{Role: identity.Reader}}})
	must(err)
	o.key = key.ID
	evaluation, err := admin.StartEvaluation(ctx, word+"-set", 1, func(context.Context, func(done, all int)) (json.RawMessage, error) {
		return json.RawMessage(`{"set": "` + word + `"}`), nil
	})
	must(err)
	for evaluation.State == engine.EvaluationRunning {
		evaluation, err = admin.Evaluation(ctx, evaluation.ID)
		must(err)
	}
	o.evaluation = evaluation.ID
	must(x.publish(ctx, tenant))
	share, err := bob.Share(ctx, o.run, 0)
	must(err)
	o.share, o.link, o.questions = share.ID, share.Token, word+"-questions"
	_, err = bob.SetFeedback(ctx, engine.RunRef{Run: o.run}, engine.NewFeedback{Verdict: engine.FeedbackRight, Note: boardWord})
	must(err)
	_, err = admin.LabelFeedback(ctx, o.run, word+"-bob", o.questions, nil)
	must(err)
	o.secrets = []string{word, o.run, o.waiting, o.document, o.hidden, o.key, o.canary, o.evaluation, o.share, o.link}
	o.boardSecrets = []string{boardWord, o.hidden}
	return o
}

// publish signs a checkpoint of a tenant's log.
func (x *world) publish(ctx context.Context, tenant string) error {
	t, err := x.store.Tenant(ctx, tenant)
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

// key makes an API key.
func (x *world) key(t testing.TB, now func() time.Time, spec identity.KeySpec, roles ...string) (id, text string) {
	t.Helper()
	var err error
	if spec.Roles, err = identity.ParseRoles(roles...); err != nil {
		t.Fatal(err)
	}
	key, text, err := identity.NewKeys(x.system, now).Create(t.Context(), assay.Local(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return key.ID, text
}

// A call is a request to a route.
type call struct {
	route Route
	path  string // with the query
	body  string
	media string
	named []string // what the request names, which the response may repeat
}

// callOf returns a request to a route about objects. The error says which case of the route is missing.
func callOf(r Route, o objects) (call, error) {
	c := call{route: r, path: r.Path, named: []string{o.collection, o.word + "-probe"}}
	for i := range r.In.NumField() {
		f := r.In.Field(i)
		if name := f.Tag.Get("path"); name != "" {
			value, ok := o.parameter(r, name)
			if !ok {
				return c, fmt.Errorf("parameter %s of %s has no value: see objects.parameter", name, r.Name)
			}
			c.path = strings.ReplaceAll(plainPath(c.path), "{"+name+"}", value)
			c.named = append(c.named, value, runOf(value))
		}
		if c.media = f.Tag.Get("body"); c.media == "" {
			continue
		}
		body, ok := bodies[r.Name]
		if !ok {
			return c, fmt.Errorf("the body of %s has no case: see bodies", r.Name)
		}
		c.body = o.expand(body)
	}
	if query := queries[r.Name]; query != "" {
		c.path += "?" + o.expand(query)
	}
	return c, nil
}

// parameter returns the value of a variable in the path of a route.
func (o objects) parameter(r Route, name string) (string, bool) {
	value, ok := map[string]string{
		"reviews run": o.waiting, "runs id": o.run, "audit id": o.run, "documents id": o.hidden, "keys id": o.key, "evaluations id": o.evaluation,
		"sources name": o.source, "policies name": o.policy, "holds name": o.hold, "webhooks name": o.webhook, "canaries name": o.canary,
		"runs other": o.run, "jobs job": "1", "runs share": o.share, "shared token": o.link, "feedback run": o.run, "questions set": o.questions, "questions run": o.run, "collections collection": o.collection, "documents collection": o.collection, "documents name": "probe.md", "documents page": "1", "limits subject": o.user, "retention kind": store.RetainActs, "problems kind": "not_found",
	}[groupOf(r)+" "+name]
	keeps := []string{"retention.set", "runs.judge", "shared.judge", "questions.label"} // they do not create what the path names
	writes := r.Method == "PUT" && !slices.Contains(keeps, r.Name) || r.Method == "POST" && name == "collection"
	if ok && writes { // so that the caller's things have no names of others
		value = "probe"
	}
	if groupOf(r) == "shared" {
		value = o.link
	}
	if r.Name == "limits.set" {
		value = "user:probe"
	}
	if groupOf(r) == "openai" {
		value, ok = "resp_"+o.run, true
	}
	if r.Name == "openai.model" {
		value = "assay/" + o.collection
	}
	return value, ok
}

// expand replaces the names of objects in a text.
func (o objects) expand(text string) string {
	return strings.NewReplacer("WORD", o.word, "RUN", o.run, "COLLECTION", o.collection, "DOCUMENT", o.hidden).Replace(text)
}

// queries are the parameters of routes in tests, which leave what other tests need.
var queries = map[string]string{
	"retention.apply": "dry_run=true", "sources.sync": "dry_run=true", "audit.log": "limit=1000", "reviews.list": "decided=true",
	"limits.set": "reason=probe", "search.get": "q=Falcon", "policies.set": "reason=probe", "sources.remove": "keep_documents=true",
	"feedback.label": "user=WORD-bob&set=probe",
}

// bodies are the bodies of requests in tests. A route that takes one needs a row.
var bodies = map[string]string{
	"ask":               `{"question": "Who leads the Falcon project?", "no_cache": true}`,
	"openai.chat":       `{"model": "assay", "messages": [{"role": "user", "content": "Who leads the Falcon project?"}]}`,
	"openai.respond":    `{"model": "assay/COLLECTION", "input": "Who leads the Falcon project?", "previous_response_id": "resp_RUN"}`,
	"openai.cancel":     `{}`,
	"openai.embed":      `{"model": "assay-embedding", "input": "WORD"}`,
	"sources.add":       `{"name": "probe", "kind": "no-kind"}`,
	"collections.set":   `{"require_acl": false}`,
	"documents.put":     "# A probe\n\nIts text is short.",
	"documents.upload":  "--probe\r\nContent-Disposition: form-data; name=\"file\"; filename=\"probe-2.md\"\r\n\r\n# Another probe\r\n--probe--\r\n",
	"documents.fetch":   `{"url": "https://probe.example.com/page"}`,
	"search":            `{"text": "Falcon project"}`,
	"explain":           `{"text": "Falcon project"}`,
	"runs.fork":         `{"step": "1"}`,
	"vectors.use":       `{"name": ""}`,
	"reviews.check":     `{"text": "The Falcon project has a sponsor."}`,
	"reviews.edit":      `{"text": "The Falcon project has a sponsor."}`,
	"reviews.reject":    `{"reason": "a probe"}`,
	"policies.set":      `{"name": "", "groups": ["no-group"]}`,
	"policies.test":     `{"question": "Who leads the Falcon project?"}`,
	"audit.prove":       `{}`,
	"limits.set":        `{"requests/day": 7}`,
	"stops.stop":        `{"reason": "a probe"}`,
	"stops.start":       `{"reason": "a probe"}`,
	"holds.add":         `{"user": "no-user", "reason": "a probe"}`,
	"retention.set":     `{"days": 3000}`,
	"canaries.add":      `{"collection": "probes"}`,
	"egress.set":        `{"allow": ["probe.example.com"]}`,
	"webhooks.set":      `{"url": "https://probe.example.com/hook", "events": ["*"], "form": "standard", "secrets": ["env:HOOK_SECRET"], "active": true}`,
	"webhooks.retry":    `{}`,
	"keys.create":       `{"roles": ["reader"]}`,
	"keys.rotate":       `{"grace_seconds": 3600}`,
	"runs.judge":        `{"verdict": "right", "note": "as in the plan"}`,
	"shared.judge":      `{"verdict": "not_asked"}`,
	"feedback.label":    `{"answers": ["In Bergen"]}`,
	"questions.label":   `{"answers": ["In Bergen"]}`,
	"evaluations.start": `{"name": "probe", "questions": [{"question": "Who leads the Falcon project?"}]}`,
}

// do sends a call and returns the response.
func (x *world) do(t testing.TB, c call, credential string, accept ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), c.route.Method, c.path, strings.NewReader(c.body))
	if credential != "" {
		r.Header.Set("Authorization", "Bearer "+credential)
	}
	if c.body != "" {
		r.Header.Set("Content-Type", map[string]string{"*/*": "text/markdown", "multipart/form-data": "multipart/form-data; boundary=probe"}[c.media])
		if c.media == typeJSON {
			r.Header.Set("Content-Type", typeJSON)
		}
	}
	for _, media := range accept {
		r.Header.Add("Accept", media)
	}
	w := httptest.NewRecorder()
	x.handler.ServeHTTP(w, r)
	return w
}

// statusOf returns the status of a response. A stream that ends with an error before anything else has
// that of the error.
func statusOf(w *httptest.ResponseRecorder) int {
	_, data, isError := strings.Cut(w.Body.String(), "event: error\ndata: ")
	if !isError || !strings.HasPrefix(w.Header().Get("Content-Type"), typeEvents) {
		return w.Code
	}
	var p Problem
	if json.Unmarshal([]byte(strings.SplitN(data, "\n", 2)[0]), &p) != nil {
		return w.Code
	}
	return p.Status
}

// missingObjects are objects that no tenant has.
func missingObjects() objects {
	o := objects{word: "nothing", run: "aaaaaaaaaaaaaaaa"}
	o.waiting, o.document, o.hidden, o.key, o.canary, o.evaluation = o.run, "no-document", "no-document", "no-key", "no-canary", o.run
	o.policy, o.hold, o.webhook, o.source, o.collection, o.user = "no-policy", "no-hold", "no-webhook", "no-source", "no-collection", "user:no-user"
	o.share, o.link, o.questions = "no-share", "no-link", "no-questions"
	return o
}
