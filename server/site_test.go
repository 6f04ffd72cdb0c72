package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// A site is a server with the tenant acme, in which ann (an editor, of the group staff), bob (an
// editor, of the group board), rob (a reader) and root (an administrator) have API keys, and the tenant
// globex, in which zed is an administrator.
type site struct {
	t       testing.TB
	host    *engine.Host
	store   store.Store
	auth    *identity.Authenticator
	handler *Server
	server  *httptest.Server
	keys    map[string]string // by user
	log     *lockedBuffer     // of the server
}

// newSite opens a site, and closes it when the test ends.
func newSite(t testing.TB, change ...func(*engine.HostConfig)) *site {
	t.Helper()
	ctx := t.Context()
	s, err := sqlite.Open(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeTest(t, s) })
	for _, tenant := range []string{"acme", "globex"} {
		if err := s.CreateTenant(ctx, tenant, store.Act{}); err != nil {
			t.Fatal(err)
		}
	}
	config := engine.HostConfig{Config: engine.Config{Store: s, NoBackground: true}}
	for _, fn := range change {
		fn(&config)
	}
	w := &site{t: t, store: s, keys: map[string]string{}, log: &lockedBuffer{}}
	if w.host, err = engine.OpenHost(ctx, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeTest(t, w.host) })
	system, err := s.System(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeTest(t, system) })
	keys := identity.NewKeys(system, nil)
	for _, spec := range []identity.KeySpec{
		{Tenant: "acme", User: "ann", Groups: []string{"staff"}, Roles: []identity.RoleIn{{Role: identity.Editor}}},
		{Tenant: "acme", User: "bob", Groups: []string{"board"}, Roles: []identity.RoleIn{{Role: identity.Editor}}},
		{Tenant: "acme", User: "rob", Roles: []identity.RoleIn{{Role: identity.Reader}}},
		{Tenant: "acme", User: "root", Roles: []identity.RoleIn{{Role: identity.Admin}}},
		{Tenant: "globex", User: "zed", Groups: []string{"staff", "board"}, Roles: []identity.RoleIn{{Role: identity.Admin}}},
	} {
		_, text, err := keys.Create(ctx, assay.Local(), spec)
		if err != nil {
			t.Fatal(err)
		}
		w.keys[spec.User] = text
	}
	w.auth, err = identity.New(identity.Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := New(Config{Host: w.host, Authenticate: w.auth.Authenticate, Log: slog.New(slog.NewTextHandler(w.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	handler.firstTime = time.Minute // so that each error of a stream has its status, however busy the machine is
	w.handler = handler
	w.server = httptest.NewServer(handler)
	t.Cleanup(w.server.Close)
	return w
}

func closeTest(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// A lockedBuffer is a buffer that several goroutines may use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A reply is a response that was read.
type reply struct {
	*http.Response
	body string
}

// A header is a field of a request.
type header [2]string

// do sends a request as a user; "": without a credential.
func (w *site) do(user, method, path, body string, headers ...header) reply {
	w.t.Helper()
	res, err := w.send(w.t.Context(), user, method, path, strings.NewReader(body), headers...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return reply{res, string(data)}
}

func (w *site) send(ctx context.Context, user, method, path string, body io.Reader, headers ...header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.server.URL+path, body)
	if err != nil {
		return nil, err
	}
	if user != "" {
		r.Header.Set("Authorization", "Bearer "+w.keys[user])
	}
	if b, ok := body.(*strings.Reader); ok && b.Len() > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept-Encoding", "identity")
	for _, h := range headers {
		if h[1] == "" {
			r.Header.Del(h[0])
		} else {
			r.Header.Set(h[0], h[1])
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// want sends a request that must have a status, and decodes the body of the response.
func want[T any](w *site, user, method, path, body string, status int, headers ...header) (out T) {
	w.t.Helper()
	r := w.do(user, method, path, body, headers...)
	if r.StatusCode != status {
		w.t.Fatalf("%s %s as %s: status %d, want %d: %s", method, path, user, r.StatusCode, status, r.body)
	}
	if r.body == "" {
		return out
	}
	checkBody(w.t, method+" "+path, r)
	if err := json.Unmarshal([]byte(r.body), &out); err != nil {
		w.t.Fatalf("%s %s: %v in %s", method, path, err, r.body)
	}
	return out
}

// checkBody checks what holds for each JSON body: its media type, and that problems have their kind.
func checkBody(t testing.TB, what string, r reply) {
	t.Helper()
	media := r.Header.Get("Content-Type")
	if r.StatusCode < 400 {
		if media != typeJSON {
			t.Errorf("%s: Content-Type %q", what, media)
		}
		return
	}
	var p Problem
	if err := json.Unmarshal([]byte(r.body), &p); err != nil || media != typeProblem {
		t.Errorf("%s: Content-Type %q, %v: %s", what, media, err, r.body)
	}
	known := false
	for _, k := range ProblemKinds() {
		known = known || p.Type == "/problems/"+k.Name && p.Title == k.Title
	}
	if !known || p.Status != r.StatusCode {
		t.Errorf("%s: status %d with the problem %s", what, r.StatusCode, r.body)
	}
}

// wantProblem sends a request that must fail with a kind of problem.
func (w *site) wantProblem(user, method, path, body string, kind string, headers ...header) Problem {
	w.t.Helper()
	r := w.do(user, method, path, body, headers...)
	if method == http.MethodHead {
		return Problem{}
	}
	checkBody(w.t, method+" "+path, r)
	var p Problem
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		w.t.Fatalf("%s %s: %v: %s", method, path, err, r.body)
	}
	if p.Type != "/problems/"+kind {
		w.t.Errorf("%s %s as %q: %d %s, want the problem %s", method, path, user, r.StatusCode, r.body, kind)
	}
	return p
}

const leaveText = "# Leave\n\nEmployees may carry over 5 days of leave. The manager approves travel.\n"

// put uploads a document and returns its outcome.
func (w *site) put(user, collection, name, text string, status int, headers ...header) FileOutcome {
	w.t.Helper()
	return want[FileOutcome](w, user, "PUT", "/api/v1/collections/"+collection+"/documents/"+name, text, status, append([]header{{"Content-Type", "text/markdown"}}, headers...)...)
}

// ask asks a question and returns the answer.
func (w *site) ask(user, question string) assay.Answer {
	w.t.Helper()
	return want[assay.Answer](w, user, "POST", "/api/v1/ask", mustJSON(w.t, engine.Request{Question: question}), http.StatusOK)
}

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// grant returns the grant of a user's key.
func (w *site) grant(user string) identity.Grant {
	w.t.Helper()
	credential, err := identity.FromString(w.keys[user])
	if err != nil {
		w.t.Fatal(err)
	}
	g, err := w.auth.Authenticate(w.t.Context(), credential)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}
