package engine

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/governance"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/source"
	sourcekinds "github.com/assay-rag/assay/source/kinds"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/webhook"
)

var update = flag.Bool("update", false, "write the matrix to docs/security.md")

// TestSessionMethods checks that each method of Session is in the table, takes no tenant and no
// principal, and refuses a grant that lacks its scope.
func TestSessionMethods(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme")
	methods := reflect.TypeFor[*Session]()
	var names []string
	for i := range methods.NumMethod() {
		m := methods.Method(i)
		names = append(names, m.Name)
		for p := range m.Type.NumIn() {
			switch in := m.Type.In(p); {
			case in == reflect.TypeFor[assay.Principal](), in == reflect.TypeFor[assay.Access](), in == reflect.TypeFor[identity.Grant]():
				t.Errorf("%s takes a %s", m.Name, in)
			}
		}
	}
	var listed []string
	for _, m := range SessionMethods {
		listed = append(listed, m.Name)
		for _, scope := range []identity.Scope{"", identity.ScopeAsk, identity.ScopeSearch, identity.ScopeIngest, identity.ScopeReview, identity.ScopeAudit, identity.ScopeAdmin} {
			if scope == m.Scope {
				continue
			}
			s := mustSession(t, h, grantOf("acme", staff, identity.Right{Scope: scope}))
			if err := callMethod(t, s, m.Name); !errors.Is(err, assay.ErrForbidden) {
				t.Errorf("%s with the scope %q: %v, want ErrForbidden", m.Name, scope, err)
			}
		}
		narrow := mustSession(t, h, grantOf("acme", staff, identity.Right{Scope: m.Scope, Collections: []string{"c"}}))
		if err := callMethod(t, narrow, m.Name); !m.PerCollection && !errors.Is(err, assay.ErrForbidden) {
			t.Errorf("%s with its scope in one collection: %v, want ErrForbidden", m.Name, err)
		}
		none := mustSession(t, h, grantOf("acme", staff, identity.Right{Scope: m.Scope, Collections: []string{}}))
		if err := callMethod(t, none, m.Name); !errors.Is(err, assay.ErrForbidden) {
			t.Errorf("%s with its scope in no collection: %v, want ErrForbidden", m.Name, err)
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(names, listed); diff != "" {
		t.Errorf("SessionMethods differs from the methods (-methods +table):\n%s", diff)
	}
}

// callMethod calls a method with zero arguments and returns its error.
func callMethod(t *testing.T, s *Session, name string) error {
	t.Helper()
	m := reflect.ValueOf(s).MethodByName(name)
	in := []reflect.Value{reflect.ValueOf(t.Context())}
	for i := 1; i < m.Type().NumIn() && !(m.Type().IsVariadic() && i == m.Type().NumIn()-1); i++ {
		in = append(in, reflect.Zero(m.Type().In(i)))
	}
	out := m.Call(in)
	last := out[len(out)-1]
	if last.Kind() != reflect.Func {
		err, _ := last.Interface().(error)
		return err
	}
	var err error // an iterator
	last.Call([]reflect.Value{reflect.MakeFunc(last.Type().In(0), func(args []reflect.Value) []reflect.Value {
		err, _ = args[1].Interface().(error)
		return []reflect.Value{reflect.ValueOf(false)}
	})})
	return err
}

// openHost opens a host with tenants.
func openHost(t *testing.T, config HostConfig, tenants ...string) *Host {
	t.Helper()
	h, err := OpenHost(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Host.Close: %v", err)
		}
	})
	createTenants(t, h.store, tenants...)
	return h
}

func grantOf(tenant string, p assay.Principal, rights ...identity.Right) identity.Grant {
	return identity.Grant{Tenant: tenant, Principal: p, Rights: rights}
}

func roleGrant(tenant string, p assay.Principal, role identity.Role) identity.Grant {
	g := grantOf(tenant, p)
	g.Principal.Roles = []string{string(role)}
	for _, r := range identity.Roles {
		if r.Role == role {
			for _, scope := range r.Scopes {
				g.Rights = append(g.Rights, identity.Right{Scope: scope})
			}
		}
	}
	return g
}

func mustSession(t *testing.T, h *Host, g identity.Grant) *Session {
	t.Helper()
	s, err := h.Session(t.Context(), g)
	if err != nil {
		t.Fatalf("Session: %v", err)
	}
	return s
}

// TestSessionEnds checks that each call looks at the grant and the tenant again.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	revoked := false
	h := openHost(t, HostConfig{
		Config: Config{Dir: t.TempDir(), NoBackground: true, Now: func() time.Time { return now }},
		Recheck: func(context.Context, identity.Grant) error {
			return map[bool]error{true: assay.ErrUnauthenticated}[revoked]
		},
	}, "acme")
	g := roleGrant("acme", staff, identity.Reader)
	g.Expires = now.Add(time.Hour)
	s := mustSession(t, h, g)
	want := func(what string, kind error) {
		t.Helper()
		if _, err := s.Runs(t.Context(), 0); !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", what, err, kind)
		}
	}
	want("a valid grant", nil)
	revoked = true
	want("a revoked grant", assay.ErrUnauthenticated)
	revoked = false
	if err := h.store.SuspendTenant(t.Context(), "acme", store.Act{}); err != nil {
		t.Fatal(err)
	}
	want("a suspended tenant", assay.ErrStopped)
	if err := h.store.ResumeTenant(t.Context(), "acme", store.Act{}); err != nil {
		t.Fatal(err)
	}
	want("a resumed tenant", nil)
	h.closeIdle(now.Add(24 * time.Hour))
	want("after its engine was closed", nil)
	if err := h.store.DeleteTenant(t.Context(), "acme", true, store.Act{}); err != nil {
		t.Fatal(err)
	}
	want("a deleted tenant", assay.ErrNotFound)
	createTenants(t, h.store, "acme")
	want("another tenant of the name", assay.ErrNotFound)
	s = mustSession(t, h, g)
	want("a session with it", nil)
	now = now.Add(time.Hour)
	want("an expired grant", assay.ErrUnauthenticated)
	if _, err := h.Session(t.Context(), g); !errors.Is(err, assay.ErrUnauthenticated) {
		t.Errorf("Session with an expired grant: %v", err)
	}
}

// TestHostIdle checks that a host opens an engine once and closes it when it is idle.
func TestHostIdle(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme", "globex")
	count := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.engines)
	}
	for _, tenant := range []string{"acme", "globex", "acme"} {
		if _, err := mustSession(t, h, roleGrant(tenant, staff, identity.Reader)).Runs(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(); n != 2 {
		t.Errorf("%d engines are open, want 2", n)
	}
	c, err := mustSession(t, h, roleGrant("acme", staff, identity.Reader)).enter(t.Context(), "Runs")
	if err != nil {
		t.Fatal(err)
	}
	h.closeIdle(time.Now().Add(time.Hour))
	if n := count(); n != 1 {
		t.Errorf("%d engines are open while one is used, want that one", n)
	}
	c.done()
	h.closeIdle(time.Now().Add(time.Hour))
	if n := count(); n != 0 {
		t.Errorf("%d idle engines are open", n)
	}
}

// TestHostDefault checks that the default tenant needs no creation, and that another does.
func TestHostDefault(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}})
	if _, err := mustSession(t, h, roleGrant(DefaultTenant, staff, identity.Reader)).Runs(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if _, err := h.Session(t.Context(), roleGrant("acme", staff, identity.Reader)); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("a tenant that was not created: %v, want ErrNotFound", err)
	}
}

// TestSessionPaths checks that a session reads no file of the machine outside the host's folders.
func TestSessionPaths(t *testing.T) {
	t.Parallel()
	open, secret := t.TempDir(), t.TempDir()
	for _, dir := range []string{open, secret} {
		if err := os.WriteFile(filepath.Join(dir, "note.md"), []byte("# A note\n\nIt is short.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(open, "link")); err != nil {
		t.Skip(err)
	}
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}, Folders: []string{open}}, "acme")
	s := mustSession(t, h, roleGrant("acme", staff, identity.Editor))
	for _, path := range []string{secret, filepath.Join(secret, "note.md"), filepath.Join(open, "..", filepath.Base(secret)), filepath.Join(open, "link"), "/etc/passwd", "-"} {
		if _, err := s.Ingest(t.Context(), IngestRequest{Paths: []string{path}}); !errors.Is(err, assay.ErrForbidden) {
			t.Errorf("Ingest of %s: %v, want ErrForbidden", path, err)
		}
	}
	report, err := s.Ingest(t.Context(), IngestRequest{Paths: []string{open}})
	if err != nil || report.Added != 1 {
		t.Errorf("Ingest = %+v, %v; want one document", report, err)
	}
	report, err = s.Ingest(t.Context(), IngestRequest{Paths: []string{"-"}, Stdin: strings.NewReader("# Another\n\nAn upload.\n"), StdinName: "up.md"})
	if err != nil || report.Added != 1 {
		t.Errorf("Ingest of an upload = %+v, %v", report, err)
	}
	// Documents of another user under the name of an upload stay, deleted ones as well.
	hide := func(e *Engine, uri string) {
		t.Helper()
		text := "The hidden text of " + uri + "."
		d := assay.Document{ID: assay.DocumentID("default", uri), Collection: "default", URI: uri, Version: assay.DocumentVersion(text, nil, "test"), Text: text}
		d.ACL = assay.ACL{Restricted: true, Allow: []string{"user:bob"}}
		if err := e.Put(t.Context(), []store.Entry{{Document: d}}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = call(t.Context(), s, "Ingest", func(c *sessionCall) (struct{}, error) {
		hide(c.engine, "stdin:hidden.md")
		hide(c.engine, "stdin:deleted.md")
		return struct{}{}, c.engine.DeleteDocuments(t.Context(), assay.Principal{User: "bob"}, assay.DocumentID("default", "stdin:deleted.md"))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hidden.md", "deleted.md"} {
		req := IngestRequest{Paths: []string{"-"}, Stdin: strings.NewReader("# Mine\n\nNow it is mine.\n"), StdinName: name}
		if report, err := s.Ingest(t.Context(), req); !errors.Is(err, assay.ErrForbidden) {
			t.Errorf("Ingest over %s of another user: %+v, %v, want ErrForbidden", name, report, err)
		}
	}
}

// foreignCanary occurs in everything of the tenant globex: texts, names, users and questions.
const foreignCanary = "QUORRAX"

// A trustWorld is a host with two tenants. acme has guardedPapers, of which the board's have hidden in
// them, and runs of bob, who is in the board. globex has foreignCanary in all that it has.
type trustWorld struct {
	host     *Host
	folder   string
	boardRun string // of bob, which read hidden documents
	zedRun   string // of globex
	boardDoc string // ID of a hidden document
	zedDoc   string // ID of a document of globex
	zedKey   string // ID of an API key of globex
	waiting  string // run of bob that waits for a review
	share    string // token of a link to boardRun, which has feedback and is a question of the default set
}

// openTrust opens a world with its files in a folder. If bare is set, it lacks globex, the board's
// documents and bob's runs.
func openTrust(t *testing.T, folder string, bare bool) *trustWorld {
	t.Helper()
	x := &trustWorld{folder: folder}
	known := map[string]bool{"revoked-key": true}
	x.host = openHost(t, HostConfig{
		Config: Config{Dir: t.TempDir(), NoBackground: true, Encoders: someEncoders("first/64"), Sources: sourcekinds.All()},
		Idle:   time.Hour, Folders: []string{x.folder},
		AllowSource:     func(string, NewSource) bool { return true },
		AllowCredential: func(_, reference string) bool { return reference == "env:HOOK_SECRET" },
		Recheck: func(_ context.Context, g identity.Grant) error {
			if known[g.Principal.Key] {
				return assay.ErrUnauthenticated
			}
			return nil
		},
	}, "acme", "suspended")
	if err := x.host.store.SuspendTenant(t.Context(), "suspended", store.Act{}); err != nil {
		t.Fatal(err)
	}
	admin := mustSession(t, x.host, roleGrant("acme", assay.Principal{User: "root"}, identity.Admin))
	for name, text := range guardedPapers {
		if strings.Contains(name, "board") {
			if bare {
				if err := os.Remove(filepath.Join(folder, name)); err != nil {
					t.Fatal(err)
				}
				continue
			}
			x.write(t, name+".metadata.json", `{"acl": ["group:board"]}`)
		}
		x.write(t, name, text)
	}
	x.write(t, "added/new.md", "# New\n\nA document that an editor adds.\n")
	for _, c := range []string{"open", "vault"} {
		x.ingest(t, admin, c)
	}
	if bare {
		x.zedKey = "no-key"
		return x
	}
	bob := mustSession(t, x.host, roleGrant("acme", board, identity.Reader))
	x.boardRun = mustAsk(t, bob, "What is the budget of the Falcon project?", hidden)
	x.boardDoc = findID(t, bob, "board-plan.md")
	x.waiting = x.ask(t, admin, bob)
	x.label(t, bob)
	createTenants(t, x.host.store, "globex")
	zed := mustSession(t, x.host, roleGrant("globex", assay.Principal{User: strings.ToLower(foreignCanary), Groups: []string{"board", "staff"}}, identity.Admin))
	x.write(t, strings.ToLower(foreignCanary)+"/falcon-"+foreignCanary+".md", "# Falcon project "+foreignCanary+"\n\nThe budget of the Falcon project is "+foreignCanary+"-9 euros. The Falcon project is led by "+foreignCanary+".")
	x.ingest(t, zed, strings.ToLower(foreignCanary))
	x.zedRun = mustAsk(t, zed, "What is the budget of the Falcon project?", foreignCanary)
	x.zedDoc = findID(t, zed, "falcon-"+foreignCanary+".md")
	key, _, err := zed.CreateKey(t.Context(), identity.KeySpec{Roles: []identity.RoleIn{{Role: identity.Reader}}})
	if err != nil {
		t.Fatal(err)
	}
	x.zedKey = key.ID
	return x
}

// ask asks a question as bob whose answer waits for a review.
func (x *trustWorld) ask(t *testing.T, admin, bob *Session) string {
	t.Helper()
	if err := admin.SetPolicy(t.Context(), review.Policy{Name: "board", Groups: []string{"board"}}, "a test"); err != nil {
		t.Fatal(err)
	}
	a, err := bob.Answer(t.Context(), Request{Question: "What is the default timeout of Falcon?", NoCache: true})
	if err != nil || a.Status != assay.PendingReview {
		t.Fatalf("Answer = %s, %v; want one that waits", a.Status, err)
	}
	if err := admin.RemovePolicy(t.Context(), "board", "a test"); err != nil {
		t.Fatal(err)
	}
	return a.Run
}

// label shares the run of bob, says that it is right, and makes a question of it.
func (x *trustWorld) label(t *testing.T, bob *Session) {
	t.Helper()
	share, err := bob.Share(t.Context(), x.boardRun, 0)
	if err != nil {
		t.Fatal(err)
	}
	x.share = share.Token
	if _, err := bob.SetFeedback(t.Context(), RunRef{Run: x.boardRun}, NewFeedback{Verdict: FeedbackRight, Note: hidden}); err != nil {
		t.Fatal(err)
	}
	chair := mustSession(t, x.host, roleGrant("acme", assay.Principal{User: "chair", Groups: []string{"board"}}, identity.Admin))
	if _, err := chair.LabelFeedback(t.Context(), x.boardRun, board.User, DefaultQuestionSet, nil); err != nil {
		t.Fatal(err)
	}
}

// tokenOf returns the token of a share of a run, or the ID of the run if it has none.
func (x *trustWorld) tokenOf(run string) string {
	if run == x.boardRun && run != "" {
		return x.share
	}
	return run
}

// sign returns a signed checkpoint of the whole log of acme.
func (x *trustWorld) sign(ctx context.Context) (audit.Signed, error) {
	tenant, err := x.host.store.Tenant(ctx, "acme")
	if err != nil {
		return audit.Signed{}, err
	}
	defer tenant.Close()
	var c audit.Checkpoint
	if c.Origin, err = audit.Origin(ctx, tenant.Audit()); err != nil {
		return audit.Signed{}, err
	}
	if c.Size, err = tenant.Audit().Size(ctx); err != nil {
		return audit.Signed{}, err
	}
	if c.Root, err = audit.RootAt(ctx, tenant.Audit(), c.Size); err != nil {
		return audit.Signed{}, err
	}
	key, err := audit.NewKey()
	if err != nil {
		return audit.Signed{}, err
	}
	return audit.Sign(c, key)
}

// write writes a file unless it exists, so that its version stays the same.
func (x *trustWorld) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(x.folder, name)
	if _, err := os.Stat(path); err == nil {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// A file that has just changed gets another fingerprint than one that has not.
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func (x *trustWorld) ingest(t *testing.T, s *Session, collection string) {
	t.Helper()
	_, err := s.Ingest(t.Context(), IngestRequest{Paths: []string{filepath.Join(x.folder, collection)}, Collection: collection, Wait: true})
	if err != nil {
		t.Fatal(err)
	}
}

func mustAsk(t *testing.T, s *Session, question, want string) string {
	t.Helper()
	a, err := s.Answer(t.Context(), Request{Question: question})
	if err != nil || !strings.Contains(a.Text, want) {
		t.Fatalf("Answer = %q, %v; want it to have %s", a.Text, err, want)
	}
	return a.Run
}

func findID(t *testing.T, s *Session, name string) string {
	t.Helper()
	for d, err := range s.Documents(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(d.URI, name) {
			return d.ID
		}
	}
	t.Fatalf("there is no document %s", name)
	return ""
}

// A credential is something that a caller of a door presents. grant stands for its authentication.
type credential struct {
	name  string
	grant func() (identity.Grant, error)
	sees  bool // its session reaches the tenant acme
}

// credentials are the columns of the matrix.
func credentials() []credential {
	refused := func() (identity.Grant, error) { return identity.Grant{}, assay.ErrUnauthenticated }
	as := func(g identity.Grant) func() (identity.Grant, error) {
		return func() (identity.Grant, error) { return g, nil }
	}
	expired := roleGrant("acme", board, identity.Admin)
	expired.Expires = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	revoked := roleGrant("acme", board, identity.Admin)
	revoked.Principal.Key = "revoked-key"
	former := assay.Principal{User: board.User, Groups: []string{"staff"}} // bob has left the board
	narrow := grantOf("acme", board, identity.Right{Scope: identity.ScopeAsk, Collections: []string{"open"}}, identity.Right{Scope: identity.ScopeSearch, Collections: []string{"open"}})
	narrow.Principal.Groups = []string{"staff"}
	list := []credential{
		{"none", refused, false},
		{"foreign audience", refused, false},
		{"expired", as(expired), false},
		{"revoked", as(revoked), false},
		{"suspended tenant", as(roleGrant("suspended", board, identity.Admin)), false},
		{"foreign tenant", as(roleGrant("globex", board, identity.Admin)), false},
	}
	for _, r := range identity.Roles {
		list = append(list, credential{string(r.Role), as(roleGrant("acme", staff, r.Role)), true})
	}
	return append(list,
		credential{"group removed", as(roleGrant("acme", former, identity.Reader)), true},
		credential{"one collection", as(narrow), true},
	)
}

// A probe calls a method as a caller would who wants to see all that it can, and returns everything
// that it learns.
type probe struct {
	method string
	call   func(ctx context.Context, s *Session, x *trustWorld) (any, error)
}

func collect[T any](values iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for v, err := range values {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// followed returns the events of a run except those that a follower may miss.
func followed(ctx context.Context, s *Session, id string) ([]Event, error) {
	events, err := collect(s.Follow(ctx, id, -1))
	return slices.DeleteFunc(events, func(ev Event) bool { return ev.Kind == StepStarted || ev.Kind == Draft }), err
}

// probes returns the calls of every method. Those that name something name what the caller must not
// see: foreign is a run, waiting one that waits for a review, foreignDoc a document and of a collection.
func probes(foreign, waiting, foreignDoc, of string) []probe {
	ask := Request{Question: "What is the budget of the Falcon project, and who leads it?", NoCache: true}
	q := assay.Query{Text: "budget of the Falcon project", Limit: 20}
	within := func(q assay.Query, of string) assay.Query {
		if of != "" {
			q.Collections = []string{of}
		}
		return q
	}
	names := func(of string) []string {
		if of == "" {
			return nil
		}
		return []string{of}
	}
	asked := ask
	asked.Collections = names(of)
	return append(append(adminProbes(foreign, waiting), feedbackProbes(foreign)...), []probe{
		{"Ask", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return collect(s.Ask(ctx, asked)) }},
		{"Answer", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return s.Answer(ctx, asked) }},
		{"Resume", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return collect(s.Resume(ctx, foreign))
		}},
		{"Begin", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			id, err := s.Begin(ctx, asked)
			if err != nil {
				return nil, err
			}
			return followed(ctx, s, id)
		}},
		{"BeginResume", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return nil, s.BeginResume(ctx, foreign)
		}},
		{"BeginFork", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			id, err := s.BeginFork(ctx, foreign, "1", nil)
			if err != nil {
				return nil, err
			}
			return followed(ctx, s, id)
		}},
		{"Follow", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return followed(ctx, s, foreign) }},
		{"Cancel", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return nil, s.Cancel(ctx, foreign) }},
		{"Replay", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return s.Replay(ctx, foreign) }},
		{"Fork", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return collect(s.Fork(ctx, foreign, "1", nil))
		}},
		{"Diff", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.Diff(ctx, foreign, foreign)
		}},
		{"Runs", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return s.Runs(ctx, 0) }},
		{"Run", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			r, steps, err := s.Run(ctx, foreign)
			return []any{r, steps}, err
		}},
		{"DeleteRun", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return nil, s.DeleteRun(ctx, foreign, "")
		}},
		{"PruneRuns", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.PruneRuns(ctx, time.Now().Add(time.Hour), "", true)
		}},
		{"Observations", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.Observations(ctx, time.Time{})
		}},
		{"AskOptions", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return s.AskOptions(ctx) }},
		{"Suggestions", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.Suggestions(ctx, names(of), 100)
		}},
		{"Search", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			var all []any
			for _, text := range []string{q.Text, "Falcon " + hidden, foreignCanary, "timeout of Falcon"} {
				query := within(q, of)
				query.Text = text
				r, err := s.Search(ctx, query)
				if err != nil {
					return all, err
				}
				all = append(all, r)
			}
			return all, nil
		}},
		{"Explain", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.Explain(ctx, within(q, of))
		}},
		{"Documents", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return collect(s.Documents(ctx, names(of)...))
		}},
		{"Document", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return s.Document(ctx, foreignDoc) }},
		{"FindDocument", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.FindDocument(ctx, foreignDoc, names(of)...)
		}},
		{"DocumentVersion", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.DocumentVersion(ctx, foreignDoc, "")
		}},
		{"DocumentVersions", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.DocumentVersions(ctx, foreignDoc)
		}},
		{"Original", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.Original(ctx, foreignDoc, "")
		}},
		{"PageImage", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.PageImage(ctx, foreignDoc, "", 1, PageImageOptions{})
		}},
		{"CitedBy", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.CitedBy(ctx, foreignDoc, 0)
		}},
		{"Entries", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			all, err := collect(s.Entries(ctx))
			slices.SortFunc(all, func(a, b store.Entry) int { return strings.Compare(a.Document.ID, b.Document.ID) })
			return all, err
		}},
		{"Collections", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return s.Collections(ctx) }},
		{"EmbedTexts", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.EmbedTexts(ctx, EmbedRequest{Texts: []string{"budget of the Falcon project"}})
		}},
		{"Ingest", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.Ingest(ctx, IngestRequest{Paths: []string{filepath.Join(x.folder, "added")}, Collection: "added", Wait: true})
		}},
		{"PlanIngest", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.PlanIngest(ctx, IngestRequest{Paths: []string{filepath.Join(x.folder, "added")}, Collection: "added"})
		}},
		{"Put", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return nil, s.Put(ctx, nil) }},
		{"DeleteDocuments", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return nil, s.DeleteDocuments(ctx, foreignDoc)
		}},
		{"SetCollection", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return nil, s.SetCollection(ctx, store.Collection{Name: "added"})
		}},
		{"UploadState", func(ctx context.Context, s *Session, _ *trustWorld) (any, error) { return s.UploadState(ctx, "1") }},
		{"FailedDocuments", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.FailedDocuments(ctx, names(of)...)
		}},
		{"Sources", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return s.Sources(ctx) }},
		{"SourceKinds", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			all, err := s.SourceKinds(ctx)
			return len(all) > 0, errors.Join(err, checkKinds(all))
		}},
		{"Sync", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.Sync(ctx, SyncRequest{Name: "no-source"})
		}},
		{"WatchSource", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return nil, s.WatchSource(ctx, "no-source", func() {})
		}},
		{"AddSource", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return nil, s.AddSource(ctx, NewSource{Name: "wiki", Kind: "no-kind"})
		}},
		{"RemoveSource", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return s.RemoveSource(ctx, "no-source", false)
		}},
		{"Vectors", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			_, err := s.Vectors(ctx) // counts all documents: an administrator's figure
			return nil, err
		}},
		{"ACLSummary", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			_, err := s.ACLSummary(ctx) // counts all documents: an administrator's figure
			return nil, err
		}},
		{"RoleModels", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return s.RoleModels(ctx) }},
		{"Embed", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			_, err := s.Embed(ctx, nil)
			return nil, err
		}},
		{"UseEncoder", func(ctx context.Context, s *Session, x *trustWorld) (any, error) {
			return nil, s.UseEncoder(ctx, "no-encoder", "")
		}},
		{"AuditRuns", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return s.AuditRuns(ctx, 0) }},
		{"AuditRun", func(ctx context.Context, s *Session, x *trustWorld) (any, error) { return s.AuditRun(ctx, foreign) }},
	}...)
}

// feedbackProbes returns the calls about shares, feedback and labelled questions.
func feedbackProbes(foreign string) []probe {
	type ctx = context.Context
	wrong := NewFeedback{Verdict: FeedbackWrong}
	return []probe{
		{"Share", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			share, err := s.Share(ctx, foreign, 0)
			return share.Token != "", err
		}},
		{"Shares", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Shares(ctx, foreign) }},
		{"Unshare", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return nil, s.Unshare(ctx, foreign, "no-share") }},
		{"SharedRun", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.SharedRun(ctx, x.tokenOf(foreign)) }},
		{"SetFeedback", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			own, err := s.SetFeedback(ctx, RunRef{Run: foreign}, wrong)
			shared, errShared := s.SetFeedback(ctx, RunRef{Share: x.tokenOf(foreign)}, wrong)
			return []any{own, shared, fmt.Sprint(errShared)}, err
		}},
		{"Feedback", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			own, err := s.Feedback(ctx, RunRef{Run: foreign})
			shared, errShared := s.Feedback(ctx, RunRef{Share: x.tokenOf(foreign)})
			return []any{own, shared, fmt.Sprint(errShared)}, err
		}},
		{"RemoveFeedback", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return fmt.Sprint(s.RemoveFeedback(ctx, RunRef{Share: x.tokenOf(foreign)})), s.RemoveFeedback(ctx, RunRef{Run: foreign})
		}},
		{"FeedbackList", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			all, next, err := s.FeedbackList(ctx, FeedbackFilter{})
			return []any{all, next}, err
		}},
		{"LabelFeedback", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return s.LabelFeedback(ctx, foreign, board.User, "probe", nil)
		}},
		{"QuestionSets", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.QuestionSets(ctx) }},
		{"QuestionSet", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.QuestionSet(ctx, DefaultQuestionSet) }},
		{"SetLabels", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return s.SetLabels(ctx, DefaultQuestionSet, foreign, Labels{Unanswerable: true})
		}},
		{"RemoveQuestion", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return nil, s.RemoveQuestion(ctx, DefaultQuestionSet, foreign)
		}},
	}
}

// adminProbes returns the calls for reviewers, auditors and administrators. They leave nothing that
// later calls could depend on.
func adminProbes(foreign, waiting string) []probe {
	type ctx = context.Context
	policy := review.Policy{Name: "probe", Groups: []string{"no-group"}}
	hold := store.Hold{Name: "probe", User: "probe", Reason: "a probe"}
	target := webhook.Target{URL: "https://hooks.example.com/probe", Events: []string{"*"}, Form: webhook.Standard, Secrets: []string{"env:HOOK_SECRET"}, Active: true}
	done := func(errs ...error) (any, error) { return nil, errors.Join(errs...) }
	proof := func(ctx ctx, x *trustWorld, prove func(ctx, string, audit.Signed) (audit.Proof, error)) (any, error) {
		c, err := x.sign(ctx)
		if err != nil {
			return nil, err
		}
		p, err := prove(ctx, foreign, c)
		p.Checkpoint, p.Keys = "", nil // the tree's hashes are random
		for i := range p.Entries {
			p.Entries[i].Inclusion = nil
		}
		return p, err
	}
	return []probe{
		{"EraseRuns", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return s.EraseRuns(ctx, []string{foreign, "no-run"}, "a probe", true)
		}},
		{"Prove", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return proof(ctx, x, s.Prove) }},
		{"AuditProve", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return proof(ctx, x, s.AuditProve) }},
		{"StartEvaluation", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			ended := make(chan bool)
			e, err := s.StartEvaluation(ctx, "probe", 1, func(context.Context, func(done, all int)) (json.RawMessage, error) {
				close(ended)
				return nil, nil
			})
			if err == nil {
				<-ended
			}
			for err == nil && e.State == EvaluationRunning { // the next probe starts another one
				e, err = s.Evaluation(ctx, e.ID)
			}
			return nil, err
		}},
		{"Evaluations", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			all, err := s.Evaluations(ctx)
			return len(all) > 0, err
		}},
		{"Evaluation", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Evaluation(ctx, "no-evaluation") }},
		{"CancelEvaluation", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return done(s.CancelEvaluation(ctx, "no-evaluation"))
		}},
		{"AuditCheckpoint", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			signed, err := s.AuditCheckpoint(ctx, "", "")
			return signed.Size, err
		}},
		{"AuditLog", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.AuditLog(ctx, 0, MaxAuditEntries) }},
		{"CheckProof", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.CheckProof(ctx, foreign) }},
		{"AuditCheckProof", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.AuditCheckProof(ctx, foreign) }},
		{"AuditCheckpoints", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			all, _, err := s.AuditCheckpoints(ctx)
			return all, err
		}},
		{"AuditCompare", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.AuditCompare(ctx, "no note", "") }},
		{"AuditSearch", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			all, _, err := s.AuditSearch(ctx, AuditFilter{Limit: MaxAuditEntries, Records: true})
			return all, err
		}},
		{"AuditReport", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.AuditReport(ctx, governance.Options{}) }},
		{"Await", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			if waiting != x.waiting || waiting == "" {
				return s.Await(ctx, waiting) // it does not wait
			}
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			return s.Await(ctx, waiting)
		}},
		{"Reviews", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return s.Reviews(ctx, ReviewFilter{Decided: true})
		}},
		{"Review", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Review(ctx, waiting) }},
		{"Claim", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Claim(ctx, waiting, 0) }},
		{"Release", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Release(ctx, waiting) }},
		{"Approve", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Approve(ctx, waiting) }},
		{"Edit", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Edit(ctx, waiting, "Another text.") }},
		{"CheckEdit", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return s.CheckEdit(ctx, waiting, "Another text.")
		}},
		{"Reject", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Reject(ctx, waiting, "a probe") }},
		{"Policies", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Policies(ctx) }},
		{"SetPolicy", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return done(s.SetPolicy(ctx, policy, "a probe"))
		}},
		{"RemovePolicy", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return done(s.RemovePolicy(ctx, policy.Name, "a probe"))
		}},
		{"TestPolicies", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			a, matches, err := s.TestPolicies(ctx, Request{Question: "What is the budget of the Falcon project?"})
			return []any{a, matches}, err
		}},
		{"Limits", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Limits(ctx) }},
		{"LimitUsage", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.LimitUsage(ctx) }},
		{"SetLimits", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return done(s.SetLimits(ctx, limit.User("probe"), limit.Limits{limit.RequestsPerDay: 5}, "a probe"))
		}},
		{"RemoveLimits", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return done(s.RemoveLimits(ctx, limit.User("probe"), "a probe"))
		}},
		{"Stop", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			if err := s.Stop(ctx, "a probe"); err != nil {
				return nil, err
			}
			return done(s.Start(ctx, "a probe"))
		}},
		{"Start", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return done(s.Start(ctx, "a probe")) }},
		{"Stops", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Stops(ctx) }},
		{"AddHold", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return done(s.AddHold(ctx, hold)) }},
		{"Holds", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Holds(ctx) }},
		{"RemoveHold", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return done(s.RemoveHold(ctx, hold.Name, "a probe"))
		}},
		{"RetentionPolicies", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			all, err := s.RetentionPolicies(ctx)
			for i := range all {
				all[i].Set = time.Time{}
			}
			return all, err
		}},
		{"SetRetention", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return done(s.SetRetention(ctx, store.RetainActs, 3000, "a probe"))
		}},
		{"RemoveRetention", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return done(s.RemoveRetention(ctx, store.RetainActs, "a probe"))
		}},
		{"ApplyRetention", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.ApplyRetention(ctx, false) }},
		{"SetWebhook", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return done(s.SetWebhook(ctx, "probe", target, "a probe"))
		}},
		{"RemoveWebhook", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return done(s.RemoveWebhook(ctx, "probe", "a probe"))
		}},
		{"Webhooks", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Webhooks(ctx) }},
		{"TestWebhook", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return done(s.TestWebhook(ctx, "no-webhook")) }},
		{"DeadWebhooks", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.DeadWebhooks(ctx) }},
		{"RetryWebhooks", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.RetryWebhooks(ctx) }},
		{"AddCanary", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			_, _, err := s.AddCanary(ctx, NewCanary{Text: "words of its own choice"})
			return nil, err
		}},
		{"Canaries", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Canaries(ctx) }},
		{"RemoveCanary", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return done(s.RemoveCanary(ctx, "no-canary", "a probe"))
		}},
		{"RestrictEgress", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			err := s.RestrictEgress(ctx, EgressRules{Allow: []string{"example.com"}}, "a probe")
			return done(err, s.RestrictEgress(ctx, EgressRules{}, "a probe"))
		}},
		{"EgressRestriction", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.EgressRestriction(ctx) }},
		{"Keys", func(ctx ctx, s *Session, x *trustWorld) (any, error) { return s.Keys(ctx) }},
		{"CreateKey", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			_, _, err := s.CreateKey(ctx, identity.KeySpec{User: "no-user", Roles: []identity.RoleIn{{Role: identity.Reader}}})
			return refusedOnlyByContent(err)
		}},
		{"RotateKey", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			_, _, err := s.RotateKey(ctx, x.zedKey, 0, time.Time{})
			return refusedOnlyByContent(err)
		}},
		{"RevokeKey", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			return done(s.RevokeKey(ctx, x.zedKey, "a probe"))
		}},
		{"Doctor", func(ctx ctx, s *Session, x *trustWorld) (any, error) {
			checks, err := s.Doctor(ctx) // counts all documents: an administrator's figure
			for i := range checks {
				checks[i].Detail = regexp.MustCompile("[0-9]").ReplaceAllString(checks[i].Detail, "")
			}
			return checks, err
		}},
	}
}

// refusedOnlyByContent returns the error of a call whose argument is forbidden to everyone, so that the
// table says who may make the call.
func refusedOnlyByContent(err error) (any, error) {
	if err != nil && strings.Contains(err.Error(), "its own user only") {
		return nil, nil
	}
	return nil, err
}

func checkKinds(all []source.Kind) error {
	if len(all) == 0 {
		return nil
	}
	for _, k := range all {
		if k.Name == "" {
			return errors.New("a kind has no name")
		}
	}
	return nil
}

// refusal returns the HTTP status with which a call was refused before it did anything; 0: it was
// allowed.
func refusal(err error) int {
	for _, kind := range []error{assay.ErrUnauthenticated, assay.ErrForbidden, assay.ErrStopped} {
		if errors.Is(err, kind) {
			return assay.StatusCode(kind)
		}
	}
	return 0
}

// TestMatrix calls every method with every credential in two tenants. No result, event, error or
// note may have a byte of what the credential may not see. The table of refusals is in
// docs/security.md; -update writes it.
func TestMatrix(t *testing.T) {
	x := openTrust(t, t.TempDir(), false)
	columns := credentials()
	table := map[string]map[string]string{}
	calls := 0
	for _, c := range columns {
		for _, target := range [][4]string{{x.boardRun, x.waiting, x.boardDoc, ""}, {x.zedRun, x.zedRun, x.zedDoc, strings.ToLower(foreignCanary)}, {"no-run", "no-run", "no-document", "no-collection"}} {
			for _, p := range probes(target[0], target[1], target[2], target[3]) {
				calls++
				got, err := x.try(t, c, p)
				text := jsonOf(got) + "\n" + fmt.Sprint(err)
				for i, given := range target { // an error may repeat what the caller has named
					const document = 2
					if given != "" && (i != document || strings.Contains(p.method, "Document") || slices.Contains([]string{"Original", "PageImage", "CitedBy"}, p.method)) {
						text = strings.ReplaceAll(text, given, "")
					}
				}
				if leak := x.leak(c, p, text); leak != "" {
					t.Errorf("%s, %s: leaks %s: %.600s", c.name, p.method, leak, text)
				}
				if table[p.method] == nil {
					table[p.method] = map[string]string{}
				}
				cell := "yes"
				if status := refusal(err); status != 0 {
					cell = fmt.Sprint(status)
				}
				table[p.method][c.name] = cell
			}
		}
	}
	t.Logf("%d calls of %d methods with %d kinds of credential", calls, len(SessionMethods), len(columns))
	checkTable(t, matrixOf(columns, table, calls))
}

// try calls a method with a credential.
func (x *trustWorld) try(t *testing.T, c credential, p probe) (any, error) {
	g, err := c.grant()
	if err != nil {
		return nil, err
	}
	s, err := x.host.Session(t.Context(), g)
	if err != nil {
		return nil, err
	}
	return p.call(t.Context(), s, x)
}

// leak returns what a text reveals to a credential that does not see it.
func (x *trustWorld) leak(c credential, p probe, text string) string {
	audits := strings.HasPrefix(p.method, "Audit") || p.method == "FeedbackList"
	secrets := map[string]string{hidden: "a hidden text", x.boardDoc: "the ID of a hidden document", "board-": "the name of a hidden document"}
	if !audits && c.name != "group removed" { // auditors see runs, and bob his own
		secrets[x.boardRun] = "the ID of a foreign run"
	}
	if c.name != "foreign tenant" {
		secrets[foreignCanary], secrets[strings.ToLower(foreignCanary)] = "a text of another tenant", "a name of another tenant"
		secrets[x.zedRun], secrets[x.zedDoc] = "a run of another tenant", "a document of another tenant"
		if p.method != "RotateKey" && p.method != "RevokeKey" { // which name it
			secrets[x.zedKey] = "an API key of another tenant"
		}
	} else {
		delete(secrets, "board-")
		secrets["Brightwater"], secrets["vault"] = "a text of another tenant", "a collection of another tenant"
	}
	if c.name == "one collection" {
		secrets["garden"], secrets["vault"] = "a text of another collection", "the name of another collection"
	}
	asked := strings.NewReplacer(hidden, "", foreignCanary, "", strings.ToLower(foreignCanary), "")
	if p.method == "Search" || p.method == "Explain" { // the terms of the query are in its result
		text = regexp.MustCompile(`"Terms?":\[[^\]]*\]|"terms":\[[^\]]*\]|"(?:text|stem)":"[^"]{0,20}"`).ReplaceAllStringFunc(text, asked.Replace)
	}
	for secret, what := range secrets {
		if secret != "" && strings.Contains(text, secret) {
			return what
		}
	}
	return ""
}

// matrixOf writes the matrix as a table in Markdown.
func matrixOf(columns []credential, table map[string]map[string]string, calls int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls, 0 leaks.\n\n| method | scope |", calls)
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(columns)) + "\n")
	for _, m := range SessionMethods {
		scope := string(m.Scope)
		if m.PerCollection {
			scope += ", by collection"
		}
		fmt.Fprintf(&b, "| `%s` | %s |", m.Name, scope)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", table[m.Name][c.name])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// checkTable compares the table in docs/security.md with a new one, or writes it.
func checkTable(t *testing.T, want string) {
	t.Helper()
	const begin, end = "<!-- matrix -->\n", "<!-- end of matrix -->"
	file := filepath.Join("..", "docs", "security.md")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	got, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the matrix", file)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs; run go test ./engine -run TestMatrix -update (-want +got):\n%s", file, diff)
	}
}

// TestAsIfItWereNotThere compares what each credential learns with what it learns in a world without
// the other tenant, the hidden documents and the runs of others, to the last digit of a score.
func TestAsIfItWereNotThere(t *testing.T) {
	t.Parallel()
	folder := t.TempDir() // the IDs of documents are made of their paths
	full := openTrust(t, folder, false)
	bare := openTrust(t, folder, true)
	volatile := regexp.MustCompile(`"[a-z_]*(?:us|rate|seconds|elapsed_ns|elapsed_ms|elapsed|active_ns|ordinal|started|created|updated|time)":(?:"[^"]*"|-?[0-9.e+]+)`)
	runIDs := regexp.MustCompile(`\b[a-z2-7]{16}\b`)
	clean := func(got any, err error) []string {
		parts := []string{jsonOf(got), fmt.Sprint(err)}
		if events, ok := got.([]Event); ok { // parallel steps end in any order
			parts = parts[1:]
			for _, e := range events {
				parts = append(parts, jsonOf(e))
			}
		}
		for i := range parts {
			parts[i] = strings.ReplaceAll(parts[i], full.zedKey, bare.zedKey)
			parts[i] = runIDs.ReplaceAllString(volatile.ReplaceAllString(parts[i], ""), "RUN")
		}
		slices.Sort(parts)
		return parts
	}
	for _, c := range credentials() {
		if !c.sees || c.name == "auditor" || c.name == "group removed" {
			continue // auditors see the runs of others, and bob has some
		}
		for _, p := range probes("no-run", "no-run", "no-document", "") {
			listed := []string{"Runs", "Observations", "PruneRuns", "Reviews", "LimitUsage", // those before, with their times
				"FeedbackList", "QuestionSets", "QuestionSet", "SetLabels", "RemoveQuestion"} // auditors know of others' feedback
			if strings.HasPrefix(p.method, "Audit") || slices.Contains(listed, p.method) {
				continue
			}
			with, err := full.try(t, c, p)
			a := clean(with, err)
			without, err := bare.try(t, c, p)
			if diff := cmp.Diff(a, clean(without, err)); diff != "" {
				t.Errorf("%s, %s: with what may not be seen and without (-with +without):\n%s", c.name, p.method, diff)
			}
		}
	}
}

// TestGroupRemoved checks that a principal who has left a group can use neither the documents nor
// the runs that read them, in any way.
func TestGroupRemoved(t *testing.T) {
	t.Parallel()
	x := openTrust(t, t.TempDir(), false)
	former := mustSession(t, x.host, roleGrant("acme", assay.Principal{User: board.User, Groups: []string{"staff"}}, identity.Reader))
	errs := map[string]error{}
	_, errs["Replay"] = former.Replay(t.Context(), x.boardRun)
	_, _, errs["Run"] = former.Run(t.Context(), x.boardRun)
	_, errs["Diff"] = former.Diff(t.Context(), x.boardRun, x.boardRun)
	_, errs["Fork"] = collect(former.Fork(t.Context(), x.boardRun, "1", nil))
	_, errs["follow"] = former.Answer(t.Context(), Request{Question: "And what else?", Follows: x.boardRun})
	_, errs["Document"] = former.Document(t.Context(), x.boardDoc)
	for what, err := range errs {
		if !errors.Is(err, assay.ErrNotFound) || strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: %v, want ErrNotFound", what, err)
		}
	}
	a, err := former.Answer(t.Context(), Request{Question: "What is the budget of the Falcon project?"})
	if err != nil || a.Cached != nil || strings.Contains(jsonOf(a), hidden) {
		t.Errorf("the answer is %q, cached %v, %v", a.Text, a.Cached, err)
	}
	s, err := former.Search(t.Context(), assay.Query{Text: "budget " + hidden, Limit: 10})
	if err != nil || slices.ContainsFunc(s.Hits, func(h assay.Hit) bool { return strings.Contains(h.Text, hidden) }) {
		t.Errorf("the search finds %s, %v", jsonOf(s.Hits), err)
	}
}

// TestSetHiddenCollection checks that an editor cannot change a collection whose documents are all
// hidden, and an administrator can.
func TestSetHiddenCollection(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme")
	ann := mustSession(t, h, roleGrant("acme", staff, identity.Editor))
	hidden := store.Collection{Name: "c", RequireACL: true}
	if err := ann.SetCollection(t.Context(), hidden); err != nil {
		t.Fatal(err)
	}
	text := "The merger is planned for May."
	d := assay.Document{ID: assay.DocumentID("c", "plan.md"), Collection: "c", URI: "plan.md", Version: assay.DocumentVersion(text, nil, "test"), Text: text}
	d.ACL = assay.ACL{Restricted: true, Allow: []string{"user:bob"}}
	if err := ann.Put(t.Context(), []store.Entry{{Document: d}}); err != nil {
		t.Fatal(err)
	}
	if err := ann.SetCollection(t.Context(), store.Collection{Name: "c"}); !errors.Is(err, assay.ErrForbidden) {
		t.Errorf("an editor who sees no document of the collection: %v, want ErrForbidden", err)
	}
	if err := mustSession(t, h, roleGrant("acme", staff, identity.Admin)).SetCollection(t.Context(), store.Collection{Name: "c"}); err != nil {
		t.Errorf("an administrator: %v", err)
	}
}

// TestRequireACL checks through a session that a collection that requires ACLs takes no document
// without one.
func TestRequireACL(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme")
	s := mustSession(t, h, roleGrant("acme", staff, identity.Editor))
	if err := s.SetCollection(t.Context(), store.Collection{Name: "c", RequireACL: true}); err != nil {
		t.Fatal(err)
	}
	text := "Five days of leave may be carried over."
	d := assay.Document{ID: assay.DocumentID("c", "leave.md"), Collection: "c", URI: "leave.md", Version: assay.DocumentVersion(text, nil, "test"), Text: text}
	if err := s.Put(t.Context(), []store.Entry{{Document: d}}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("Put without an ACL: %v, want ErrInvalid", err)
	}
	d.ACL = assay.ACL{Restricted: true, Allow: []string{"user:bob"}}
	if err := s.Put(t.Context(), []store.Entry{{Document: d}}); err != nil {
		t.Fatal(err)
	}
	d.ACL.Allow = []string{"user:ann"}
	if err := s.Put(t.Context(), []store.Entry{{Document: d}}); !errors.Is(err, assay.ErrForbidden) {
		t.Errorf("Put over a document of another: %v, want ErrForbidden", err)
	}
	d.ID = assay.DocumentID("c", "other.md")
	if err := s.Put(t.Context(), []store.Entry{{Document: d}}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("Put with the ID of another document: %v, want ErrInvalid", err)
	}
}
