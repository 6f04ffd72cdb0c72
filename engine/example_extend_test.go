package engine_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
	"github.com/assay-rag/assay/strategy"
)

// twoLooks searches a second time, in other words, if the first search is not sufficient.
func twoLooks(ctx context.Context, s run.Scope, env strategy.Env) (strategy.Result, error) {
	found, err := env.Look(ctx, s.Sub("look", 0), assay.Query{Text: env.Question})
	if err == nil && !found.Sufficient() {
		again := strings.ReplaceAll(env.Question, "PTO", "annual leave")
		err = env.LookAgain(ctx, s.Sub("look", 1), found, assay.Query{Text: again})
	}
	if err != nil {
		return strategy.Result{}, err
	}
	return env.Finish(ctx, s, "two-looks", found)
}

// Add a strategy. It is an ordinary function over the run, and can be resumed and replayed.
func ExampleConfig_strategies() {
	own := strategy.Spec{Name: "two-looks", Summary: "a second look in the words of the handbook", Func: twoLooks}
	e, done := handbook(engine.Config{Strategies: []strategy.Spec{own}})
	defer done()

	a, err := e.Answer(context.Background(), assay.Local(), engine.Request{Question: "Who approves travel to a customer?", Strategy: "two-looks"})
	check(err)
	fmt.Println(a.Strategy, a.Status, a.Iterations)
	again, err := e.Replay(context.Background(), assay.Local(), a.Run)
	check(err)
	fmt.Println("replayed:", again.Text == a.Text)
	// Output:
	// two-looks answered 1
	// replayed: true
}

// inOurWords searches for the handbook's word instead of the one that people use.
type inOurWords struct{ assay.Retriever }

func (r inOurWords) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	q.Text = strings.ReplaceAll(q.Text, "lodging", "hotel")
	return r.Retriever.Retrieve(ctx, access, q)
}

// Wrap the built-in retriever.
func ExampleConfig_retriever() {
	wrap := func(builtin assay.Retriever) assay.Retriever { return inOurWords{builtin} }
	e, done := handbook(engine.Config{Retriever: wrap})
	defer done()

	r, err := e.Search(context.Background(), assay.Local(), assay.Query{Text: "lodging", Limit: 1})
	check(err)
	fmt.Println(r.Hits[0].Title)
	// Output: Travel
}

// twoSources refuses claims about money that rest on one passage alone.
type twoSources struct{ role.Verifier }

func (v twoSources) Verify(ctx context.Context, c role.Caller, claims []role.Claim) ([]ground.Judgement, error) {
	judged, err := v.Verifier.Verify(ctx, c, claims)
	for i := range judged {
		if strings.Contains(claims[i].Text, "euros") && len(claims[i].Cited) < 2 {
			judged[i] = ground.Judgement{Verdict: assay.Unsupported, Reason: "an amount needs two sources"}
		}
	}
	return judged, err
}

// Replace a role, here the verifier by a stricter one.
func ExampleConfig_roles() {
	e, done := handbook(engine.Config{Roles: func(builtin strategy.Roles) strategy.Roles {
		builtin.Verifier = twoSources{builtin.Verifier}
		builtin.QuoteVerifier = builtin.Verifier
		return builtin
	}})
	defer done()

	for _, question := range []string{"Who approves travel to a customer?", "How much may a hotel cost?"} {
		a, err := e.Answer(context.Background(), assay.Local(), engine.Request{Question: question, Strategy: "static"})
		check(err)
		fmt.Println(question, a.Status)
	}
	// Output:
	// Who approves travel to a customer? answered
	// How much may a hotel cost? incomplete
}

// An announcedStore is a store of the caller. It announces which tenant is opened, and keeps no
// index.
type announcedStore struct{ store.Store }

func (s announcedStore) Tenant(ctx context.Context, name string) (store.Tenant, error) {
	fmt.Println("opening", name)
	t, err := s.Store.Tenant(ctx, name)
	if err != nil {
		return nil, err
	}
	return announcedTenant{t}, nil
}

type announcedTenant struct{ store.Tenant }

func (announcedTenant) IndexDir() string { return "" }

// Supply a store and name a tenant.
func ExampleConfig_store() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	s, err := sqlite.Open(context.Background(), dir)
	check(err)
	defer s.Close()
	check(s.CreateTenant(context.Background(), "acme", store.Act{Actor: assay.Local()}))
	e, done := handbook(engine.Config{Store: announcedStore{s}, Tenant: "acme"})
	defer done()

	a, err := e.Answer(context.Background(), assay.Local(), engine.Request{Question: "Who approves travel to a customer?"})
	check(err)
	fmt.Println(a.Status)
	// Output:
	// opening acme
	// answered
}

// handbook opens an engine that has read the handbook, without models. If c names no store, the
// engine has a temporary data directory.
func handbook(c engine.Config) (e *engine.Engine, done func()) {
	if c.Store == nil {
		c.Dir = tempDir()
	}
	e, err := engine.Open(context.Background(), c)
	check(err)
	_, err = e.Ingest(context.Background(), engine.IngestRequest{Paths: []string{"testdata/handbook"}})
	check(err)
	return e, func() {
		check(e.Close())
		check(os.RemoveAll(c.Dir))
	}
}
