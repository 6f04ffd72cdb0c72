package strategy_test

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// A strategy of your own looks as often as it wants, within the run's budget, and finishes as the
// others do. The documents here are a list in memory.
func Example() {
	own := strategy.Spec{Name: "own", Func: func(ctx context.Context, s run.Scope, env strategy.Env) (strategy.Result, error) {
		found, err := env.Look(ctx, s.Sub("look", 0), assay.Query{Text: env.Question})
		if err != nil {
			return strategy.Result{}, err
		}
		fmt.Println(len(found.Hits()), "hits, sufficient:", found.Sufficient())
		return env.Finish(ctx, s, "own", found)
	}}

	documents := newLibrary("The library opens at nine.", "Dogs wait outside.")
	env := engine.Models{}.Equip(strategy.Env{
		Request: strategy.Request{Question: "When does the library open?", Access: assay.Local().Access()},
		Tools:   strategy.Tools{Retriever: documents, Content: documents, Strategies: []strategy.Spec{own}},
	})
	session, err := run.New(run.Config{Run: "run-1", Journal: &run.Memory{}})
	if err != nil {
		panic(err)
	}
	answer, err := strategy.Ask(context.Background(), session.Scope(), env, "own")
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Status, answer.Text)
	// Output:
	// 1 hits, sufficient: true
	// answered The library opens at nine. [1]
}
