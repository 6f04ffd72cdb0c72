//go:build unix

package main

import (
	"archive/zip"
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	_ "modernc.org/sqlite"

	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store/sqlite"
)

// A syncWorld is a service with documents that a test changes between syncs.
type syncWorld struct {
	add    []string                       // arguments of source add after the name
	kind   string                         // of the source
	uri    func(name string) string       // of an item
	put    func(name, text string)        // a text, or with a name that ends in .zip an archive
	remove func(name string)              //
	allow  func(name string, user string) // nil: the kind has no ACLs
	zips   bool                           // items may be archives
}

// syncItem is what a world holds under a name.
type syncItem struct{ text, user string }

// zipOf returns an archive with two documents that contain a text.
func zipOfParts(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"one.txt", "two.txt"} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text + " in " + name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func contentOf(t *testing.T, name, text string) []byte {
	if strings.HasSuffix(name, ".zip") {
		return zipOfParts(t, text)
	}
	return []byte(text)
}

// s3World is a bucket of a server in this process.
func s3World(t *testing.T) syncWorld {
	backend := s3mem.New()
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	if err := backend.CreateBucket("docs"); err != nil {
		t.Fatal(err)
	}
	write := func(key string, data []byte) {
		if _, err := backend.PutObject("docs", key, nil, bytes.NewReader(data), int64(len(data)), nil); err != nil {
			t.Fatal(err)
		}
	}
	drop := func(key string) {
		if _, err := backend.DeleteObject("docs", key); err != nil {
			t.Fatal(err)
		}
	}
	return syncWorld{
		kind: "s3", zips: true,
		add: []string{"s3://docs/team", "--set", "endpoint=" + server.URL, "--set", "path-style=true", "--set", "allow-private=true", "--set", "page-size=7"},
		uri: func(name string) string { return "s3://docs/team/" + name },
		put: func(name, text string) { write("team/"+name, contentOf(t, name, text)) },
		remove: func(name string) {
			drop("team/" + name)
			drop("team/" + name + source.SidecarSuffix)
		},
		allow: func(name, user string) { write("team/"+name+source.SidecarSuffix, []byte(`{"acl":["user:`+user+`"]}`)) },
	}
}

// gitWorld is a repository that the git program serves over HTTP.
func gitWorld(t *testing.T) syncWorld {
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git program to serve a repository")
	}
	dir := t.TempDir()
	repo, err := gogit.PlainInit(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	commit := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tree.Commit("change", &gogit.CommitOptions{Author: &object.Signature{Name: "Ann", When: time.Now()}, AllowEmptyCommits: true}); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string, data []byte) {
		t.Helper()
		err := os.WriteFile(filepath.Join(dir, name), data, 0o600)
		if err == nil {
			_, err = tree.Add(name)
		}
		commit(err)
	}
	server := httptest.NewServer(&cgi.Handler{Path: program, Args: []string{"http-backend"}, Env: []string{
		"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}})
	t.Cleanup(server.Close)
	address := server.URL + "/" + filepath.Base(dir) + "/.git"
	return syncWorld{
		kind: "git", zips: true,
		add: []string{address, "--set", "allow-private=true"},
		uri: func(name string) string { return strings.TrimSuffix(address, ".git") + "#" + name },
		put: func(name, text string) { write(name, contentOf(t, name, text)) },
		remove: func(name string) {
			_, err := tree.Remove(name)
			if _, statErr := os.Stat(filepath.Join(dir, name+source.SidecarSuffix)); err == nil && statErr == nil {
				_, err = tree.Remove(name + source.SidecarSuffix)
			}
			commit(err)
		},
		allow: func(name, user string) { write(name+source.SidecarSuffix, []byte(`{"acl":["user:`+user+`"]}`)) },
	}
}

// webWorld is a site with a start page that links to all others.
func webWorld(t *testing.T) syncWorld {
	var mu sync.Mutex
	pages := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		name := strings.TrimPrefix(r.URL.Path, "/")
		text, ok := pages[name]
		switch {
		case name == "":
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("X-Robots-Tag", "noindex")
			for name := range pages {
				fmt.Fprintf(w, "<a href=%q>%s</a>\n", "/"+name, name)
			}
		case ok:
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("ETag", fmt.Sprintf("%q", text))
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader("<html><body><p>"+text+"</p></body></html>"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return syncWorld{
		kind: "web",
		add:  []string{server.URL + "/", "--set", "allow-private=true", "--set", "delay=0s"},
		uri:  func(name string) string { return server.URL + "/" + name },
		put: func(name, text string) {
			mu.Lock()
			defer mu.Unlock()
			pages[name] = text
		},
		remove: func(name string) {
			mu.Lock()
			defer mu.Unlock()
			delete(pages, name)
		},
	}
}

// sqlWorld is a table of an SQLite database.
func sqlWorld(t *testing.T) syncWorld {
	file := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE articles (id TEXT PRIMARY KEY, body TEXT, readers TEXT DEFAULT 'group:all', updated INTEGER DEFAULT 1)`)
	return syncWorld{
		kind: "sql",
		add: []string{"sqlite:" + file, "--set", "query=SELECT * FROM articles", "--set", "text=body", "--set", "acl=readers",
			"--set", "updated=updated", "--set", "uri=https://shop.example.com/{id}"},
		uri: func(name string) string { return "https://shop.example.com/" + url.PathEscape(name) },
		put: func(name, text string) {
			exec(`INSERT INTO articles (id, body) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET body = ?2, updated = updated + 1`, name, text)
		},
		remove: func(name string) { exec(`DELETE FROM articles WHERE id = ?`, name) },
		allow:  func(name, user string) { exec(`UPDATE articles SET readers = ? WHERE id = ?`, "user:"+user, name) },
	}
}

// A syncKiller syncs a world with the built binary, which it kills at random moments.
type syncKiller struct {
	*sandbox
	world syncWorld
	rng   *rand.Rand
	truth map[string]syncItem
	count int           // of changes
	took  time.Duration // of the last complete sync
}

// change makes a few random changes. It removes one item at most.
func (k *syncKiller) change() {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range k.truth {
			if !yield(name) {
				return
			}
		}
	})
	if len(names) > 20 && k.rng.IntN(2) == 0 {
		name := names[k.rng.IntN(len(names))]
		k.world.remove(name)
		delete(k.truth, name)
		names = slices.DeleteFunc(names, func(n string) bool { return n == name })
	}
	for range 1 + k.rng.IntN(4) {
		k.count++
		name := fmt.Sprintf("item-%03d.txt", k.count)
		if k.world.zips && k.rng.IntN(3) == 0 {
			name = fmt.Sprintf("item-%03d.zip", k.count)
		}
		if len(names) > 0 && (len(names) > 40 || k.rng.IntN(2) == 0) {
			name = names[k.rng.IntN(len(names))]
		}
		item := k.truth[name]
		if item.text != "" && k.world.allow != nil && k.rng.IntN(3) == 0 {
			item.user = fmt.Sprintf("user%d", k.count)
			k.world.allow(name, item.user)
		} else {
			item.text = fmt.Sprintf("%s has the text number %d.", name, k.count)
			k.world.put(name, item.text)
		}
		k.truth[name] = item
	}
}

// kill starts a sync and kills it at a random moment. It returns whether the sync was not yet over.
func (k *syncKiller) kill() bool {
	k.t.Helper()
	cmd := k.command("--data", "data", "source", "sync", "s", "--yes")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	timer := time.AfterFunc(time.Duration(k.rng.Int64N(int64(k.took)+1)), func() { cmd.Process.Signal(syscall.SIGKILL) })
	defer timer.Stop()
	exit, ok := errors.AsType[*exec.ExitError](cmd.Wait())
	if !ok {
		return false
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		k.t.Fatalf("the sync ended with %v; it printed\n%s", exit, &out)
	}
	return true
}

// want returns the documents that the store must have: their text and ACL by URI.
func (k *syncKiller) want() map[string]string {
	all := map[string]string{}
	for name, item := range k.truth {
		allow := "[]"
		switch {
		case item.user != "":
			allow = "[user:" + item.user + "]"
		case k.world.kind == "sql":
			allow = "[group:all]"
		}
		if !strings.HasSuffix(name, ".zip") {
			all[k.world.uri(name)] = item.text + " " + allow
			continue
		}
		for _, part := range []string{"one.txt", "two.txt"} {
			all[k.world.uri(name)+"!/"+part] = item.text + " in " + part + " " + allow
		}
	}
	return all
}

// check syncs to the end and compares the store with the world.
func (k *syncKiller) check() {
	k.t.Helper()
	began := time.Now()
	k.wantExit(0, "source", "sync", "s", "--yes")
	k.took = time.Since(began)
	s, err := sqlite.Open(k.t.Context(), filepath.Join(k.dir, "data"))
	if err != nil {
		k.t.Fatal(err)
	}
	tenant, err := s.Tenant(k.t.Context(), "default")
	if err != nil {
		k.t.Fatal(err)
	}
	defer tenant.Close()
	got := map[string]string{}
	for d, err := range tenant.Content().Documents(k.t.Context()) {
		if err != nil {
			k.t.Fatal(err)
		}
		if _, twice := got[d.URI]; twice {
			k.t.Errorf("%s is there twice", d.URI)
		}
		full, err := tenant.Content().Document(k.t.Context(), d.ID)
		if err != nil {
			k.t.Fatal(err)
		}
		got[d.URI] = strings.TrimSpace(full.Text) + " " + fmt.Sprint(full.ACL.Allow)
	}
	if diff := cmp.Diff(k.want(), got); diff != "" {
		k.t.Fatalf("the store differs from the source (-want +got):\n%s", diff)
	}
}

func (k *syncKiller) wantExit(code int, args ...string) {
	k.t.Helper()
	k.sandbox.want(code, "", append([]string{"--data", "data"}, args...)...)
}

// TestSourceKilled kills syncs at random moments. Nothing is lost, nothing is there twice, and the
// next complete sync brings the store in step. ASSAY_LONG=1 kills 60 syncs of each kind.
func TestSourceKilled(t *testing.T) {
	rounds, kills := 1, 3
	if os.Getenv("ASSAY_LONG") != "" {
		rounds, kills = 15, 4
	}
	for name, world := range map[string]func(*testing.T) syncWorld{"s3": s3World, "git": gitWorld, "web": webWorld, "sql": sqlWorld} {
		t.Run(name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			k := &syncKiller{sandbox: newSandbox(t), world: world(t), rng: rand.New(rand.NewPCG(seed, 0)), truth: map[string]syncItem{}}
			for range 10 {
				k.change()
			}
			k.wantExit(0, append([]string{"source", "add", k.world.kind, "s"}, k.world.add...)...)
			k.took = 400 * time.Millisecond
			killed := 0
			for range rounds {
				for range kills {
					k.change()
					if k.kill() {
						killed++
					}
				}
				k.check()
			}
			t.Logf("killed %d of %d syncs before their end", killed, rounds*kills)
		})
	}
}
