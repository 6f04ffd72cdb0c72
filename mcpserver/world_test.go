package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// The documents of the tests by tenant. Those of a tenant have a word that no other has.
var papers = map[string]map[string]string{
	"acme": {
		"handbook/leave.md":  "# Leave\n\nEmployees may carry over five days of leave into the next year.\n",
		"handbook/travel.md": "# Travel\n\nThe head of the department approves travel to a customer.\n",
		"board/plan.md":      "# Zanzibar plan\n\nThe secret project Zanzibar costs nine million.\n",
	},
	"globex": {
		"quokka/leave.md": "# Quokka leave\n\nEmployees of Quokka may carry over nineteen days of leave.\n",
	},
}

// The principals of the tests. Only bob may see the board's documents.
var (
	ann = assay.Principal{User: "ann", Groups: []string{"staff"}}
	bob = assay.Principal{User: "bob", Groups: []string{"staff", "board"}}
	zed = assay.Principal{User: "zed", Groups: []string{"staff"}}
)

// A world is a host with two tenants and a handler for it.
type world struct {
	host    *engine.Host
	shared  store.Store
	handler *Handler
	url     string // of the handler

	grants map[string]identity.Grant // by token
}

// openWorld opens a world. change may change the configurations; it may be nil.
func openWorld(t testing.TB, change func(*engine.HostConfig, *Config)) *world {
	t.Helper()
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for tenant, files := range papers {
		if err := s.CreateTenant(t.Context(), tenant, store.Act{}); err != nil {
			t.Fatal(err)
		}
		fill(t, s, tenant, files)
	}
	hc := engine.HostConfig{Config: engine.Config{Store: s, NoBackground: true, NoCache: true}}
	x := &world{shared: s, grants: map[string]identity.Grant{
		"ann": grant("acme", ann, identity.Reader), "bob": grant("acme", bob, identity.Reader), "zed": grant("globex", zed, identity.Reader),
		"auditor": grant("acme", assay.Principal{User: "eve"}, identity.Auditor), "admin": grant("acme", assay.Principal{User: "root"}, identity.Admin),
		"searcher": {Tenant: "acme", Principal: ann, Rights: []identity.Right{{Scope: identity.ScopeSearch}}},
	}}
	mc := Config{Session: x.session, Version: "test", Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&hc, &mc)
	}
	if mc.Session == nil {
		mc.Session = func(r *http.Request) (*engine.Session, error) { return x.host.Session(r.Context(), x.grants["ann"]) }
	}
	if x.host, err = engine.OpenHost(t.Context(), hc); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.host.Close() })
	x.serve(t, mc)
	return x
}

// serve serves the host with another handler from now on.
func (x *world) serve(t testing.TB, c Config) {
	t.Helper()
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	mux.Handle(metadataPath, h.Metadata())
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(h.Close) // first
	x.handler, x.url = h, server.URL+"/mcp"
}

func grant(tenant string, p assay.Principal, r identity.Role) identity.Grant {
	for _, row := range identity.Roles {
		if row.Role == r {
			p.Roles = []string{string(r)}
			g := identity.Grant{Tenant: tenant, Principal: p}
			for _, scope := range row.Scopes {
				g.Rights = append(g.Rights, identity.Right{Scope: scope})
			}
			return g
		}
	}
	panic(r)
}

// fill ingests files. Each folder is a collection; that of the board is for its members.
func fill(t testing.TB, s store.Store, tenant string, files map[string]string) {
	t.Helper()
	folder := t.TempDir()
	e, err := engine.Open(t.Context(), engine.Config{Store: s, Tenant: tenant, NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for name, text := range files {
		path := filepath.Join(folder, name)
		write(t, path, text)
		if strings.HasPrefix(name, "board/") {
			write(t, path+".metadata.json", `{"acl": ["group:board"]}`)
		}
		collection, _, _ := strings.Cut(name, "/")
		if _, err := e.Ingest(t.Context(), engine.IngestRequest{Paths: []string{path}, Collection: collection}); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// session returns the session of a token in the world.
func (x *world) session(r *http.Request) (*engine.Session, error) {
	if _, err := identity.FromRequest(r); err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	name, _, _ = strings.Cut(name, ".") // "ann.2" is another token of ann
	g, ok := x.grants[name]
	if !ok {
		return nil, assay.ErrUnauthenticated
	}
	return x.host.Session(r.Context(), g)
}

func (x *world) of(t testing.TB, token string) *engine.Session {
	t.Helper()
	s, err := x.host.Session(t.Context(), x.grants[token])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// connect connects the SDK's client. revision is the newest that it speaks; options may be nil.
func (x *world) connect(t testing.TB, token, revision string, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	if options == nil {
		options = &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	transport := &mcp.StreamableClientTransport{Endpoint: x.url, HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1}
	cs, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatalf("connect with %s: %v", revision, err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// call calls a tool and decodes its structured result, which must be that of its text too.
func call[Out any](t testing.TB, cs *mcp.ClientSession, name string, arguments any) (out Out) {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if r.IsError || len(r.Content) != 1 {
		t.Fatalf("%s: error %v: %s", name, r.IsError, encode(t, r))
	}
	text := []byte(r.Content[0].(*mcp.TextContent).Text)
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if structured := encode(t, r.StructuredContent); !sameJSON(t, structured, text) {
		t.Errorf("%s: structured content %s, text %s", name, structured, text)
	}
	return out
}

func sameJSON(t testing.TB, a, b []byte) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		t.Fatalf("not JSON: %s, %s", a, b)
	}
	return bytes.Equal(encode(t, x), encode(t, y))
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// failed calls a tool that must return an error, and returns its text.
func failed(t testing.TB, cs *mcp.ClientSession, name string, arguments any) string {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !r.IsError || len(r.Content) != 1 {
		t.Fatalf("%s %v: want an error: %s", name, arguments, encode(t, r))
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// post sends a message and returns the status, the header and the body of the response.
func (x *world) post(t testing.TB, token, body string, header map[string]string) (int, http.Header, string) {
	t.Helper()
	return x.send(t, http.MethodPost, token, strings.NewReader(body), header)
}

func (x *world) send(t testing.TB, method, token string, body io.Reader, header map[string]string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, x.url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range header {
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(data)
}

// initialize begins a session and returns its ID.
func (x *world) initialize(t testing.TB, token string) string {
	t.Helper()
	status, header, body := x.post(t, token, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil)
	id := header.Get(sessionHeader)
	if status != http.StatusOK || id == "" {
		t.Fatalf("initialize: %d, session %q: %s", status, id, body)
	}
	return id
}

// modern returns a message of the newest revision with its header.
func modern(method, name, params string) (string, map[string]string) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + revisionStateless + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
	if params != "" {
		meta += ","
	}
	header := map[string]string{revisionHeader: revisionStateless, "Mcp-Method": method}
	if name != "" {
		header["Mcp-Name"] = name
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{%s%s}}`, method, meta, params), header
}

// A gate is a model that writes nothing until it is opened.
type gate struct {
	entered chan struct{} // gets a value at each call
	open    chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 100), open: make(chan struct{})} }

func (g *gate) Model() string { return "test/gate" }

func (g *gate) Generate(ctx context.Context, _ llm.Request, _ func(llm.Delta)) (llm.Response, error) {
	g.entered <- struct{}{}
	select {
	case <-g.open:
		return llm.Response{}, &llm.Error{Model: g.Model(), Kind: llm.NoQuota, Message: "no words"}
	case <-ctx.Done():
		return llm.Response{}, ctx.Err()
	}
}

// gated lets a gate write the answers.
func gated(g *gate) func(*engine.HostConfig, *Config) {
	return func(c *engine.HostConfig, _ *Config) {
		c.Models.Roles = map[string]llm.Model{role.GeneratorRole: g}
	}
}

// store returns the store of the world.
func (x *world) store(testing.TB) store.Store { return x.shared }
