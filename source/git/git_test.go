package git

import (
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sourcetest"
)

// A work is a repository with a working tree.
type work struct {
	t    *testing.T
	dir  string
	repo *gogit.Repository
	tree *gogit.Worktree
	now  time.Time
}

func newWork(t *testing.T) *work {
	t.Helper()
	w := &work{t: t, dir: t.TempDir(), now: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}
	var err error
	if w.repo, err = gogit.PlainInitWithOptions(w.dir, &gogit.PlainInitOptions{InitOptions: gogit.InitOptions{DefaultBranch: "refs/heads/main"}}); err != nil {
		t.Fatal(err)
	}
	if w.tree, err = w.repo.Worktree(); err != nil {
		t.Fatal(err)
	}
	return w
}

// put writes a file and commits it.
func (w *work) put(name, text string) {
	w.t.Helper()
	at := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.tree.Add(name); err != nil {
		w.t.Fatal(err)
	}
	w.commit("Ann")
}

func (w *work) remove(name string) {
	w.t.Helper()
	if _, err := w.tree.Remove(name); err != nil {
		w.t.Fatal(err)
	}
	w.commit("Bob")
}

func (w *work) commit(author string) plumbing.Hash {
	w.t.Helper()
	w.now = w.now.Add(time.Hour)
	hash, err := w.tree.Commit("change", &gogit.CommitOptions{Author: &object.Signature{Name: author, When: w.now}, AllowEmptyCommits: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return hash
}

func (w *work) world() sourcetest.World {
	return sourcetest.World{
		Kind: Kind(), Config: source.Config{Target: w.dir},
		Put:    func(name, text string) { w.put("docs/"+name+".md", text) },
		Delete: func(name string) { w.remove("docs/" + name + ".md") },
		URI:    func(name string) string { return source.URI(w.dir) + "#docs/" + name + ".md" },
		SetACL: func(name, user string) {
			w.put("docs/"+name+".md.metadata.json", `{"acl":["user:`+user+`"]}`)
		},
	}
}

func TestContractLocal(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.World { return newWork(t).world() })
}

// A server is the git program's HTTP server.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	throttle int
	after    time.Duration
	token    string
}

// serve serves the repository over HTTP by git http-backend.
func serve(t *testing.T, dir string) *server {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git program to serve a repository")
	}
	s := &server{}
	backend := &cgi.Handler{Path: program, Args: []string{"http-backend"}, Env: []string{
		"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.throttle > 0 {
			s.throttle--
			w.Header().Set("Retry-After", strconv.Itoa(int(s.after.Seconds())))
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if _, password, _ := r.BasicAuth(); password != s.token {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestContractHTTP(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.World {
		w := newWork(t)
		s := serve(t, w.dir)
		s.token = "secret-token"
		world := w.world()
		target := s.URL + "/" + filepath.Base(w.dir) + "/.git"
		world.Config = source.Config{
			Target: target, Dir: t.TempDir(), HTTP: s.Client(),
			Credential: func(string) (string, error) { return "secret-token", nil },
		}
		base := strings.TrimSuffix(target, ".git")
		world.URI = func(name string) string { return base + "#docs/" + name + ".md" }
		world.Throttle = func(n int, after time.Duration) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.throttle, s.after = n, after
		}
		world.Refuse = func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.token = "other"
		}
		return world
	})
}

func openAt(t *testing.T, target string, options map[string]string) source.Source {
	t.Helper()
	all, err := Kind().Complete(options)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Kind().Open(t.Context(), source.Config{Target: target, Options: all, Credential: func(string) (string, error) { return "", nil }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// list returns the items by path below the repository, and the reasons of skips.
func list(t *testing.T, s source.Source, cursor string) (items map[string]source.Item, notes []string, last string) {
	t.Helper()
	items = map[string]source.Item{}
	for c, err := range s.Changes(t.Context(), cursor) {
		skip, skipped := source.AsSkip(err)
		if err != nil && !skipped {
			t.Fatal(err)
		}
		_, p, _ := strings.Cut(c.Item.URI, "#")
		switch {
		case skipped:
			_, p, _ = strings.Cut(skip.URI, "#")
			notes = append(notes, p+" "+string(skip.Reason))
		case c.Deleted:
			notes = append(notes, p+" deleted")
		case p != "":
			items[p] = c.Item
		}
		last = c.Cursor
	}
	return items, notes, last
}

func TestHistory(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.put("a.md", "one")
	created := w.now
	w.put("b.md", "other")
	w.put("a.md", "two")
	items, _, _ := list(t, openAt(t, w.dir, nil), "")
	m := items["a.md"].Metadata
	if !m[assay.MetaCreated].Time.Equal(created) || !m[assay.MetaModified].Time.Equal(w.now) || m[assay.MetaAuthor].String != "Ann" {
		t.Errorf("metadata %v, want created %v and modified %v", m, created, w.now)
	}
	items, _, _ = list(t, openAt(t, w.dir, map[string]string{"history": "1"}), "")
	if m := items["a.md"].Metadata; m["commit"].String == "" || m[assay.MetaCreated].Kind != "" {
		t.Errorf("metadata from one commit: %v", m)
	}
	if m := items["b.md"].Metadata; m["commit"].Kind != "" {
		t.Errorf("metadata of a file that the searched commits do not change: %v", m)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	for _, name := range []string{"a.md", "docs/b.md", "docs/c.txt", "docs/.hidden/d.md", ".e.md"} {
		w.put(name, "words")
	}
	for _, test := range []struct {
		options map[string]string
		want    []string
	}{
		{nil, []string{"a.md", "docs/b.md", "docs/c.txt"}},
		{map[string]string{"path": "/docs/"}, []string{"docs/b.md", "docs/c.txt"}},
		{map[string]string{"extensions": "MD, rst"}, []string{"a.md", "docs/b.md"}},
		{map[string]string{"hidden": "true", "path": "docs"}, []string{"docs/.hidden/d.md", "docs/b.md", "docs/c.txt"}},
	} {
		items, _, _ := list(t, openAt(t, w.dir, test.options), "")
		if len(items) != len(test.want) {
			t.Errorf("%v: %d items, want %v", test.options, len(items), test.want)
		}
		for _, p := range test.want {
			if _, ok := items[p]; !ok {
				t.Errorf("%v: no item %s", test.options, p)
			}
		}
	}
}

// TestSkipped checks links, submodules and pointers to Git LFS.
func TestSkipped(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.put("a.md", "words")
	w.put("big.md", lfsStart+"v1\noid sha256:1\nsize 5\n")
	if err := os.Symlink("a.md", filepath.Join(w.dir, "link.md")); err != nil {
		t.Skip("no symbolic links here")
	}
	if _, err := w.tree.Add("link.md"); err != nil {
		t.Fatal(err)
	}
	w.commit("Ann")
	s := openAt(t, w.dir, nil)
	items, notes, _ := list(t, s, "")
	if len(notes) != 1 || notes[0] != "link.md unsupported" {
		t.Errorf("skipped %q, want the link", notes)
	}
	_, err := s.Fetch(t.Context(), items["big.md"])
	if skip, ok := source.AsSkip(err); !ok || skip.Reason != source.Unsupported {
		t.Errorf("Fetch of a pointer = %v", err)
	}
}

func TestCursors(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.put("a.md", "one")
	w.put("b.md", "two")
	s := openAt(t, w.dir, nil)
	_, _, cursor := list(t, s, "")
	w.remove("a.md")
	w.put("c.md", "three")
	items, notes, _ := list(t, s, cursor)
	if len(items) != 1 || len(notes) != 1 || notes[0] != "a.md deleted" {
		t.Errorf("changes %v, %v", items, notes)
	}
	for _, err := range s.Changes(t.Context(), strings.Repeat("1", 40)) {
		if !errors.Is(err, source.ErrCursor) {
			t.Errorf("Changes from an unknown commit = %v", err)
		}
	}
	branch := openAt(t, w.dir, map[string]string{"branch": "none"})
	for _, err := range branch.Changes(t.Context(), "") {
		if !errors.Is(err, assay.ErrNotFound) {
			t.Errorf("Changes of an unknown branch = %v", err)
		}
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"ssh://git@host/x", "https://", "https://user:token@host/x.git", "https://host/x.git?key=token@", "file:///etc"} {
		options, err := Kind().Complete(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Kind().Open(t.Context(), source.Config{Target: target, Options: options})
		if !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), "token@") {
			t.Errorf("Open(%q) = %v", target, err)
		}
	}
}

// TestRedirect checks that a redirect to another server of the same host does not carry the token, and
// that one to another path is followed.
func TestRedirect(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.put("a.md", "a")
	inner := serve(t, w.dir)
	inner.token = "secret-token"
	var leaked sync.Map
	var elsewhere string
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if name, ok := strings.CutPrefix(r.URL.Path, "/moved/"); ok {
			http.Redirect(rw, r, elsewhere+"/"+name+"?"+r.URL.RawQuery, http.StatusFound)
			return
		}
		inner.Config.Handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(front.Close)
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		leaked.Store(r.Header.Get("Authorization"), true)
		http.NotFound(rw, r)
	}))
	t.Cleanup(other.Close)
	options, err := Kind().Complete(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, elsewhere = range []string{"", other.URL} {
		s, err := Kind().Open(t.Context(), source.Config{
			Target: front.URL + "/moved/" + filepath.Base(w.dir) + "/.git", Options: options, HTTP: front.Client(),
			Credential: func(string) (string, error) { return "secret-token", nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		var last error
		n := 0
		for _, err := range s.Sweep(t.Context()) {
			n, last = n+1, err
		}
		if elsewhere == "" && (last != nil || n != 1) || elsewhere != "" && last == nil {
			t.Errorf("redirect to %q: %d items, %v", elsewhere, n, last)
		}
	}
	leaked.Range(func(credentials, _ any) bool {
		if credentials != "" {
			t.Errorf("another server got %q", credentials)
		}
		return true
	})
}

func TestPages(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"https://github.com/a/b.git":      "https://github.com/a/b/blob/HEAD/docs/x%20y.md",
		"https://gitlab.example.com/a/b/": "https://gitlab.example.com/a/b/-/blob/HEAD/docs/x%20y.md",
		"https://git.example.com/a/b.git": "https://git.example.com/a/b#docs/x y.md",
	} {
		if got := openAt(t, target, nil).(*repository).uri("docs/x y.md"); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
		if got := openAt(t, target, nil).(*repository).uri("a.zip!/b"); strings.Contains(got, assay.PartSeparator) {
			t.Errorf("%s: %s is the URI of a document inside a.zip", target, got)
		}
	}
}
