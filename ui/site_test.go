package ui

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/server"
	sourcekinds "github.com/assay-rag/assay/source/kinds"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// A site is a server with its pages and the tenant acme, in which ann (an editor, of the group staff),
// bob (an editor, of the group board), rob (a reader), rae (a reviewer, of the group staff), aud (an
// auditor) and root (an administrator) have API keys, and the tenant globex, in which zed is an
// administrator. The collection handbook of acme has the documents of engine/testdata/handbook.
type site struct {
	t       testing.TB
	host    *engine.Host
	store   *sqlite.Store
	server  *server.Server
	pages   *Pages
	url     string
	keys    map[string]string // by user
	log     *lockedBuffer
	clients map[string]*http.Client // signed in, by user

	hostConfig   engine.HostConfig
	serverConfig server.Config
	listener     *httptest.Server
	serving      atomic.Pointer[server.Server] // nil: connections break off
}

// An option changes how a site is opened.
type option func(*engine.HostConfig, *server.Config)

// newSite opens a site, and closes it when the test ends.
func newSite(t testing.TB, options ...option) *site {
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
	x := &site{t: t, store: s, keys: map[string]string{}, log: &lockedBuffer{}, clients: map[string]*http.Client{}}
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
		{Tenant: "acme", User: "rae", Groups: []string{"staff"}, Roles: []identity.RoleIn{{Role: identity.Reviewer}}},
		{Tenant: "acme", User: "aud", Roles: []identity.RoleIn{{Role: identity.Auditor}}},
		{Tenant: "acme", User: "root", Groups: []string{"staff", "board"}, Roles: []identity.RoleIn{{Role: identity.Admin}}},
		{Tenant: "globex", User: "zed", Groups: []string{"staff", "board"}, Roles: []identity.RoleIn{{Role: identity.Admin}}},
	} {
		_, text, err := keys.Create(ctx, assay.Local(), spec)
		if err != nil {
			t.Fatal(err)
		}
		x.keys[spec.User] = text
	}
	auth, err := identity.New(identity.Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	handbook, err := filepath.Abs("../engine/testdata/handbook")
	if err != nil {
		t.Fatal(err)
	}
	hostConfig := engine.HostConfig{Folders: []string{handbook}, Config: engine.Config{Store: s, NoBackground: true, Sources: sourcekinds.All()}}
	serverConfig := server.Config{Authenticate: auth.Authenticate, Log: slog.New(slog.NewTextHandler(x.log, nil)), Version: "test"}
	for _, change := range options {
		change(&hostConfig, &serverConfig)
	}
	x.hostConfig, x.serverConfig = hostConfig, serverConfig
	x.listener = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving := x.serving.Load()
		if serving == nil {
			panic(http.ErrAbortHandler)
		}
		serving.ServeHTTP(w, r)
	}))
	x.url = x.listener.URL
	x.serve()
	t.Cleanup(func() { closeTest(t, x.host) })
	t.Cleanup(x.listener.Close)
	if _, err := x.session("root").Ingest(ctx, engine.IngestRequest{Paths: []string{handbook}, Collection: "handbook"}); err != nil {
		t.Fatal(err)
	}
	return x
}

// serve opens a host and a server and serves its pages.
func (x *site) serve() {
	x.t.Helper()
	var err error
	if x.host, err = engine.OpenHost(x.t.Context(), x.hostConfig); err != nil {
		x.t.Fatal(err)
	}
	config := x.serverConfig
	config.Host = x.host
	if x.server, err = server.New(config); err != nil {
		x.t.Fatal(err)
	}
	if x.pages, err = Mount(Config{Server: x.server, Log: config.Log, Version: "test"}); err != nil {
		x.t.Fatal(err)
	}
	x.serving.Store(x.server)
}

// stop ends the server as a restart does: connections break off, and nobody is signed in any more.
func (x *site) stop() {
	x.t.Helper()
	x.serving.Store(nil)
	x.listener.CloseClientConnections()
	closeTest(x.t, x.host)
	x.clients = map[string]*http.Client{}
}

func closeTest(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// session returns a session of a user.
func (x *site) session(user string) *engine.Session {
	x.t.Helper()
	c, err := identity.FromString(x.keys[user])
	if err != nil {
		x.t.Fatal(err)
	}
	s, err := x.server.SessionOf(x.t.Context(), c)
	if err != nil {
		x.t.Fatal(err)
	}
	return s
}

// client returns a client with the cookie of a user who has signed in on the page. It follows no
// redirects.
func (x *site) client(user string) *http.Client {
	x.t.Helper()
	if c := x.clients[user]; c != nil {
		return c
	}
	c := newClient()
	x.clients[user] = c
	if user == "" {
		return c
	}
	r := x.post(user, "/sign-in", url.Values{"key": {x.keys[user]}})
	if r.StatusCode != http.StatusSeeOther {
		x.t.Fatalf("sign in as %s: status %d: %s", user, r.StatusCode, r.body)
	}
	return c
}

func newClient() *http.Client {
	return &http.Client{
		Jar:           newJar(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A reply is a response that was read.
type reply struct {
	*http.Response
	body string
}

// get loads a page as a user; "": one who is not signed in.
func (x *site) get(user, path string) reply {
	x.t.Helper()
	return x.do(user, http.MethodGet, path, nil, "")
}

// page is get for a page that must be there, and returns its body.
func (x *site) page(user, path string) string {
	x.t.Helper()
	r := x.get(user, path)
	if r.StatusCode != http.StatusOK {
		x.t.Fatalf("GET %s as %s: status %d: %s", path, user, r.StatusCode, r.body)
	}
	return r.body
}

// post sends a form as a user.
func (x *site) post(user, path string, form url.Values) reply {
	x.t.Helper()
	return x.do(user, http.MethodPost, path, strings.NewReader(form.Encode()), "application/x-www-form-urlencoded")
}

func (x *site) do(user, method, path string, body io.Reader, media string) reply {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), method, x.url+path, body)
	if err != nil {
		x.t.Fatal(err)
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
		r.Header.Set("Origin", x.url)
	}
	r.Header.Set("Accept", "text/html, */*;q=0.8")
	res, err := x.client(user).Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		x.t.Fatalf("%s %s: %v", method, path, err)
	}
	return reply{res, string(data)}
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
