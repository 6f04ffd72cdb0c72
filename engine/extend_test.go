package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
	"github.com/assay-rag/assay/strategy"
)

func openConfigured(t *testing.T, c Config) *Engine {
	t.Helper()
	e, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own := func(name string, f strategy.Func) Config {
		return Config{Dir: t.TempDir(), Strategies: []strategy.Spec{{Name: name, Func: f}}}
	}
	twice := own("own", strategy.Static)
	twice.Strategies = append(twice.Strategies, twice.Strategies...)
	for name, c := range map[string]Config{
		"neither directory nor store": {},
		"directory and store":         {Dir: t.TempDir(), Store: s},
		"a tenant's name":             {Store: s, Tenant: "../default"},
		"a name in use":               own("static", strategy.Static),
		"no name":                     own("", strategy.Static),
		"no function":                 own("own", nil),
		"a name twice":                twice,
		"an unknown strategy":         {Dir: t.TempDir(), Strategy: "own"},
	} {
		e, err := Open(t.Context(), c)
		if !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: Open = %v, %v, want assay.ErrInvalid", name, e, err)
		}
	}
}

// TestOwnStrategyIsResumed checks that a run of a caller's strategy is neither resumed nor failed by
// an engine without it.
func TestOwnStrategyIsResumed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	own := []strategy.Spec{{Name: "own", Func: func(c context.Context, s run.Scope, env strategy.Env) (strategy.Result, error) {
		r, err := strategy.Static(c, s, env)
		cancel()
		return r, err
	}}}
	e := openConfigured(t, Config{Dir: dir, Strategies: own, Strategy: "own"})
	ingestPaths(t, e, "testdata/handbook")
	_, err := e.Answer(ctx, assay.Local(), Request{Question: someQuestion})
	var ended *RunError
	if !errors.As(err, &ended) || !ended.Resumable {
		t.Fatalf("an interrupted run: %v", err)
	}
	resume := func(e *Engine) error {
		for _, err := range e.Resume(t.Context(), assay.Local(), ended.Run) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := resume(openDir(t, dir)); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("resumed without the strategy: %v", err)
	}
	if err := resume(e); err != nil {
		t.Errorf("resumed with the strategy: %v", err)
	}
}

// A laxVerifier has a threshold that its name and type do not tell.
type laxVerifier struct {
	ground.Local
	threshold float64
}

// TestExtendedIsNotCached checks that answers that depend on the caller's code are not given again.
func TestExtendedIsNotCached(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"roles":     {Roles: func(r strategy.Roles) strategy.Roles { return r }},
		"retriever": {Retriever: func(r assay.Retriever) assay.Retriever { return r }},
		"strategy":  {Strategy: "own", Strategies: []strategy.Spec{{Name: "own", Func: strategy.Static}}},
		"verifier":  {Models: Models{Verifier: laxVerifier{threshold: 0.1}}},
	} {
		c.Dir = t.TempDir()
		e := openConfigured(t, c)
		ingestPaths(t, e, "testdata/handbook")
		ask(t, e, someQuestion)
		if a := ask(t, e, someQuestion); a.Cached != nil {
			t.Errorf("%s: the answer was cached", name)
		}
	}
}

func TestRemovedRole(t *testing.T) {
	t.Parallel()
	e := openConfigured(t, Config{Dir: t.TempDir(), Roles: func(r strategy.Roles) strategy.Roles {
		r.Grader = nil
		return r
	}})
	ingestPaths(t, e, "testdata/handbook")
	_, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion})
	if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "Grader") {
		t.Errorf("Answer: %v", err)
	}
}

// TestOwnStrategyPanics checks that a panic in a caller's strategy reaches the caller, who can
// recover, and leaves a run that can be resumed by the same process.
func TestOwnStrategyPanics(t *testing.T) {
	broken := true
	own := []strategy.Spec{{Name: "own", Func: func(c context.Context, s run.Scope, env strategy.Env) (strategy.Result, error) {
		r, err := strategy.Static(c, s, env)
		if broken {
			panic("a mistake")
		}
		return r, err
	}}}
	e := openConfigured(t, Config{Dir: t.TempDir(), Strategies: own, Strategy: "own"})
	ingestPaths(t, e, "testdata/handbook")
	recovered := func(ask func() error) (value any) {
		defer func() { value = recover() }()
		t.Errorf("no panic but %v", ask())
		return nil
	}
	for name, ask := range map[string]func() error{
		"Answer": func() error {
			_, err := e.Answer(t.Context(), assay.Local(), Request{ID: "Answer", Question: someQuestion})
			return err
		},
		"Ask": func() error {
			_, err := last(e.Ask(t.Context(), assay.Local(), Request{ID: "Ask", Question: someQuestion}))
			return err
		},
		"Break": func() error {
			for ev := range e.Ask(t.Context(), assay.Local(), Request{ID: "Break", Question: someQuestion}) {
				if ev.Kind != RunStarted { // the strategy runs
					break
				}
			}
			return nil
		},
	} {
		broken = true
		if value := recovered(ask); name != "Break" && !strings.Contains(fmt.Sprint(value), "a mistake") {
			t.Errorf("%s: panic(%v)", name, value)
		}
		broken = false
		if _, err := last(e.Resume(t.Context(), assay.Local(), name)); err != nil {
			t.Errorf("%s: resume: %v", name, err)
		}
	}
}

// TestOwnStrategyResult checks that a result that was not verified fails its run, and that the
// results of all other strategies can be returned.
func TestOwnStrategyResult(t *testing.T) {
	bad := map[string]func(*strategy.Result){
		"nothing": func(r *strategy.Result) { *r = strategy.Result{} },
		"an invented text": func(r *strategy.Result) {
			*r = strategy.Result{Answer: assay.Answer{Status: assay.Answered, Text: "Anyone."}}
		},
		"a text of no hits": func(r *strategy.Result) { r.Claims, r.Citations, r.Text = nil, nil, "Anyone." },
		"a status":          func(r *strategy.Result) { r.Status = assay.Incomplete },
		"a shorter text":    func(r *strategy.Result) { r.Text = r.Text[:3] },
		"a lost claim":      func(r *strategy.Result) { r.Claims = nil },
		"no number":         func(r *strategy.Result) { r.Citations[0].Number = 0 },
		"another claim":     func(r *strategy.Result) { r.Citations[0].Claim = 9 },
		"an open claim":     func(r *strategy.Result) { r.Claims[0].Verdict = assay.Unsupported },
		"a cached answer":   func(r *strategy.Result) { r.Cached = &assay.Cached{} },
	}
	var own []strategy.Spec
	for name, change := range bad {
		own = append(own, strategy.Spec{Name: name, Func: func(c context.Context, s run.Scope, env strategy.Env) (strategy.Result, error) {
			r, err := strategy.Static(c, s, env)
			change(&r)
			return r, err
		}})
	}
	e := openConfigured(t, Config{Dir: t.TempDir(), Strategies: own})
	ingestPaths(t, e, "testdata/handbook")
	for name := range bad {
		_, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: name})
		failed, ok := errors.AsType[*RunError](err)
		if !ok || !errors.Is(err, assay.ErrInvalid) || failed.Resumable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOwnStrategyWraps checks that a strategy of the caller can return what any other returns.
func TestOwnStrategyWraps(t *testing.T) {
	e, _, _ := openEvery(t)
	for _, s := range strategy.Specs() {
		e.config.Strategies = append(e.config.Strategies, strategy.Spec{Name: "own " + s.Name, Func: s.Func})
	}
	for _, way := range everyWay {
		everyModels(e, way)
		for _, name := range strategy.Names() {
			for _, budget := range []assay.Budget{{Wall: time.Minute}, {Wall: time.Nanosecond}, {Wall: time.Minute, Iterations: 1, Calls: 5}} {
				req := everyRequest(name)
				if name == "managed" {
					continue // needs its name to have a service
				}
				req.Strategy, req.Budget = "own "+name, budget
				a, err := e.Answer(t.Context(), assay.Local(), req)
				if err != nil {
					t.Errorf("%s, %s, %+v: %v", name, way, budget, err)
					continue
				}
				replays(t, e, a.Run)
			}
		}
	}
}

// refusing is a grader that calls nothing sufficient.
type refusing struct{}

func (refusing) Grade(_ context.Context, _ role.Caller, in role.GradeInput) (role.Grade, error) {
	return role.Grade{Verdict: assay.Insufficient, Missing: []string{in.Question}}, nil
}

// TestOwnRole checks that a caller's role decides, is replayed, and is left out of a local question.
func TestOwnRole(t *testing.T) {
	t.Parallel()
	e := openConfigured(t, Config{Dir: t.TempDir(), Roles: func(r strategy.Roles) strategy.Roles {
		r.Grader = refusing{}
		return r
	}})
	ingestPaths(t, e, "testdata/handbook")
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: "static"})
	if err != nil || a.Status != assay.NotFound {
		t.Fatalf("%s, %v, want not_found", a.Status, err)
	}
	if _, err := e.Replay(t.Context(), assay.Local(), a.Run); err != nil {
		t.Error(err)
	}
	a, err = e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: "static", Local: true})
	if err != nil || a.Status != assay.Answered {
		t.Errorf("a local question: %s, %v, want answered", a.Status, err)
	}
}

// disclosing is a retriever that ignores the access.
type disclosing struct {
	hits func() []assay.Hit
}

func (d disclosing) Retrieve(context.Context, assay.Access, assay.Query) (assay.Results, error) {
	return assay.Results{Hits: d.hits()}, nil
}

// TestOwnRetrieverIsGuarded checks that hits of a caller's retriever are dropped if the access does
// not allow their documents or the store does not hold them.
func TestOwnRetrieverIsGuarded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var hits []assay.Hit
	e := openConfigured(t, Config{Dir: dir, Retriever: func(assay.Retriever) assay.Retriever {
		return disclosing{func() []assay.Hit { return hits }}
	}})
	put := func(uri string, acl assay.ACL) string {
		entry := store.Entry{Document: assay.Document{
			ID: assay.DocumentID("c", uri), Collection: "c", URI: uri, Version: assay.DocumentVersion(uri, nil, ""), Title: uri, Text: uri, ACL: acl,
		}}
		if err := e.Put(t.Context(), []store.Entry{entry}); err != nil {
			t.Fatal(err)
		}
		return entry.Document.ID
	}
	legal, err := assay.RestrictTo("group:legal")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{put("open", assay.ACL{}), put("closed", legal), assay.DocumentID("c", "never stored")} {
		hits = append(hits, assay.Hit{Chunk: assay.Chunk{Document: id}})
	}
	open := hits[0].Chunk.Document
	r, err := e.Search(t.Context(), assay.Local(), assay.Query{Text: "anything", Limit: 3})
	if err != nil || len(r.Hits) != 1 || r.Hits[0].Chunk.Document != open {
		t.Errorf("Search = %+v, %v, want the open document alone", r.Hits, err)
	}
	if _, err := e.Explain(t.Context(), assay.Local(), assay.Query{Text: "anything", Limit: 3}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("Explain: %v", err)
	}
}

// A countingStore is a store of a caller: another type than the engine's own, that keeps no index.
type countingStore struct {
	store.Store
	opened, written, runs, closed atomic.Int64
}

func (s *countingStore) Tenant(ctx context.Context, name string) (store.Tenant, error) {
	t, err := s.Store.Tenant(ctx, name)
	if err != nil {
		return nil, err
	}
	s.opened.Add(1)
	return &countingTenant{t, s}, nil
}

func (s *countingStore) Close() error {
	s.closed.Add(1)
	return s.Store.Close()
}

type countingTenant struct {
	store.Tenant
	store *countingStore
}

func (*countingTenant) IndexDir() string { return "" }

func (t *countingTenant) Writer(ctx context.Context) (store.Writer, error) {
	t.store.written.Add(1)
	return t.Tenant.Writer(ctx)
}

func (t *countingTenant) Runs() store.Runs {
	t.store.runs.Add(1)
	return t.Tenant.Runs()
}

// TestOwnStore checks an engine on a caller's store: all data goes through it, the index is in a
// temporary folder that is removed, and tenants see nothing of each other.
func TestOwnStore(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	inner, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	createTenants(t, inner, "acme", "globex")
	s := &countingStore{Store: inner}
	acme, err := Open(t.Context(), Config{Store: s, Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	ingestPaths(t, acme, "testdata/handbook")
	a := ask(t, acme, someQuestion)
	if a.Status != assay.Answered {
		t.Errorf("the answer is %s", a.Status)
	}
	if entries, err := os.ReadDir(temp); err != nil || len(entries) == 0 {
		t.Errorf("the index is not in a temporary folder: %v, %v", entries, err)
	}
	globex, err := Open(t.Context(), Config{Store: s, Tenant: "globex"})
	if err != nil {
		t.Fatal(err)
	}
	if b := ask(t, globex, someQuestion); b.Status != assay.NotFound {
		t.Errorf("another tenant's answer is %s", b.Status)
	}
	if _, _, err := globex.Run(t.Context(), assay.Local(), a.Run); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("another tenant's run: %v", err)
	}
	for _, c := range Doctor(t.Context(), Config{Store: s, Tenant: "acme"}) {
		if !c.OK {
			t.Errorf("Doctor: %s: %s", c.Name, c.Detail)
		}
	}
	if err := errors.Join(acme.Close(), globex.Close()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "tenants", "acme", "index")); err == nil {
		t.Error("there is an index in the store's folder")
	}
	if s.opened.Load() != 3 || s.written.Load() == 0 || s.runs.Load() == 0 || s.closed.Load() != 0 {
		t.Errorf("%d tenants opened, %d writers, %d times the runs, %d times closed", s.opened.Load(), s.written.Load(), s.runs.Load(), s.closed.Load())
	}
	if names, err := s.Tenants(t.Context()); err != nil || !slices.Equal(names, []string{"acme", "globex"}) {
		t.Errorf("tenants %v, %v", names, err)
	}
}

// TestOwnStoreIsNotIngested checks that a store's data directory inside an ingested folder is left
// out, with the files of all its tenants.
func TestOwnStoreIsNotIngested(t *testing.T) {
	folder := t.TempDir()
	s, err := sqlite.Open(t.Context(), filepath.Join(folder, "data"))
	if err != nil {
		t.Fatal(err)
	}
	createTenants(t, s, "acme")
	e := openConfigured(t, Config{Store: s, Tenant: "acme"})
	if err := os.WriteFile(filepath.Join(folder, "note.md"), []byte("# A note\n\nIt is short.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{folder}})
	if err != nil || report.Added != 1 || len(report.Skipped) > 0 {
		t.Errorf("Ingest = %+v, %v, want the note alone", report, err)
	}
}

func createTenants(t *testing.T, s store.Store, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := s.CreateTenant(t.Context(), name, store.Act{}); err != nil {
			t.Fatal(err)
		}
	}
}
