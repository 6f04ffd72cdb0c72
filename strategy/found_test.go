package strategy_test

import (
	"context"
	"errors"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
	"github.com/google/go-cmp/cmp"
)

// askOwn answers a question about the documents with a strategy that is no part of the package.
func askOwn(t *testing.T, documents *library, question string, budget assay.Budget, f strategy.Func) (assay.Answer, error) {
	t.Helper()
	env := engine.Models{}.Equip(strategy.Env{
		Request: strategy.Request{Question: question, Access: assay.Local().Access()},
		Tools:   strategy.Tools{Retriever: documents, Content: documents, Strategies: []strategy.Spec{{Name: "own", Func: f}}},
	})
	session, err := run.New(run.Config{Run: "run-1", Journal: &run.Memory{}, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	return strategy.Ask(t.Context(), session.Scope(), env, "own")
}

// TestOwnStrategy checks that a strategy made of Look and Finish is Static, and that a second look
// adds its hits to the first.
func TestOwnStrategy(t *testing.T) {
	const question = "When does the library open?"
	texts := []string{"The library opens at nine.", "Dogs wait outside."}
	looking := func(again ...string) strategy.Func {
		return func(ctx context.Context, s run.Scope, env strategy.Env) (strategy.Result, error) {
			found, err := env.Look(ctx, s, assay.Query{Text: env.Question})
			for i, words := range again {
				if err == nil {
					err = env.LookAgain(ctx, s.Sub("again", i), found, assay.Query{Text: words})
				}
			}
			if err != nil {
				return strategy.Result{}, err
			}
			if n := len(found.Hits()); n != 1+len(again) {
				t.Errorf("%d hits after %d looks", n, 1+len(again))
			}
			if found.Grade().Verdict != assay.Sufficient || !found.Sufficient() {
				t.Errorf("graded %s", found.Grade().Verdict)
			}
			return env.Finish(ctx, s, "static", found)
		}
	}
	want, err := askOwn(t, newLibrary(texts...), question, assay.Budget{}, strategy.Static)
	if err != nil {
		t.Fatal(err)
	}
	got, err := askOwn(t, newLibrary(texts...), question, assay.Budget{}, looking())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Status != assay.Answered {
		t.Errorf("%s; differs from Static (-want +got):\n%s", got.Status, diff)
	}
	got, err = askOwn(t, newLibrary(texts...), question, assay.Budget{}, looking("dogs"))
	if err != nil || got.Status != assay.Answered || got.Iterations != 2 {
		t.Errorf("two looks: %s after %d iterations, %v", got.Status, got.Iterations, err)
	}
}

// TestOwnStrategyFailsClosed checks the ends without evidence.
func TestOwnStrategyFailsClosed(t *testing.T) {
	_, err := askOwn(t, newLibrary("Dogs wait outside."), "When does the library open?", assay.Budget{}, func(ctx context.Context, s run.Scope, env strategy.Env) (strategy.Result, error) {
		return env.Finish(ctx, s, "own")
	})
	if !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("Finish without anything found: %v", err)
	}
	broken := newLibrary("The library opens at nine.")
	broken.err = assay.ErrUnavailable
	_, err = askOwn(t, broken, "When does the library open?", assay.Budget{}, func(ctx context.Context, s run.Scope, env strategy.Env) (strategy.Result, error) {
		found, err := env.Look(ctx, s, assay.Query{Text: env.Question})
		if found != nil {
			t.Error("Look returns hits and an error")
		}
		return strategy.Result{}, err
	})
	if !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("a search that fails: %v", err)
	}
}

func TestCheckSpecs(t *testing.T) {
	own := strategy.Spec{Name: "own", Func: strategy.Static}
	if err := strategy.CheckSpecs([]strategy.Spec{own}); err != nil {
		t.Error(err)
	}
	if s, err := strategy.Lookup("own", own); err != nil || s.Name != "own" {
		t.Errorf("Lookup = %q, %v", s.Name, err)
	}
	for _, bad := range [][]strategy.Spec{{own, own}, {{Name: "auto", Func: strategy.Static}}, {{Name: "own"}}, {{Func: strategy.Static}}} {
		if err := strategy.CheckSpecs(bad); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("CheckSpecs(%v) = %v", bad, err)
		}
	}
}
