package run_test

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/run"
)

// A strategy is a function over a scope. A replay from its journal performs no search and returns
// the same result.
func Example() {
	search := func(_ context.Context, query string) ([]string, assay.Usage, error) {
		fmt.Println("searching", query)
		return []string{query + ".md"}, assay.Usage{Searches: 1}, nil
	}
	strategy := func(ctx context.Context, s run.Scope) ([]string, error) {
		var found []string
		for i, query := range []string{"shutdown", "timeout"} { // a visible limit
			step := run.Step{Name: "search", Kind: assay.StepSearch}
			hits, err := run.Do(ctx, s.Sub("round", i), step, query, search)
			if err != nil {
				return nil, err
			}
			found = append(found, hits...)
		}
		return found, nil
	}

	ctx := context.Background()
	var journal run.Memory
	live, err := run.New(run.Config{Run: "run-1", Journal: &journal})
	if err != nil {
		panic(err)
	}
	fmt.Println(strategy(ctx, live.Scope()))

	replay, err := run.Replay(run.Config{Run: "run-1", Records: journal.Records()})
	if err != nil {
		panic(err)
	}
	fmt.Println(strategy(ctx, replay.Scope()))
	fmt.Println(replay.Finish())
	// Output:
	// searching shutdown
	// searching timeout
	// [shutdown.md timeout.md] <nil>
	// [shutdown.md timeout.md] <nil>
	// <nil>
}
