package strategy

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// retrieving is a retriever made of a function.
type retrieving func(context.Context) (assay.Results, error)

func (f retrieving) Retrieve(ctx context.Context, _ assay.Access, _ assay.Query) (assay.Results, error) {
	return f(ctx)
}

// TestSearchOnce checks that of identical searches at the same time one is made, that a later one is
// not made at all, and that a search that failed is made again.
func TestSearchOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		r := retrieving(func(context.Context) (assay.Results, error) {
			made++
			time.Sleep(time.Second) // of the bubble
			if made == 1 {
				return assay.Results{}, assay.ErrBudget
			}
			return assay.Results{Chunks: 7}, nil
		})
		s := &searches{}
		in := searchInput{Query: assay.Query{Text: "Who?"}}
		if _, u, err := s.once(t.Context(), in, llm.NewMeter(assay.Usage{}), r); err == nil || u.Searches != 1 {
			t.Errorf("the failed search: %+v, %v", u, err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		var spent assay.Usage
		for range 3 {
			wg.Go(func() {
				found, u, err := s.once(t.Context(), in, llm.NewMeter(assay.Usage{}), r)
				if err != nil || found.Chunks != 7 {
					t.Errorf("found %+v, %v", found, err)
				}
				mu.Lock()
				defer mu.Unlock()
				spent = spent.Add(u)
			})
		}
		wg.Wait()
		if made != 2 || spent.Searches != 1 {
			t.Errorf("%d searches were made, and %+v spent for three after the first; want 2 and 1", made, spent)
		}
		other := searchInput{Query: assay.Query{Text: "Who?", Limit: 3}}
		if _, _, err := s.once(t.Context(), other, llm.NewMeter(assay.Usage{}), r); err != nil || made != 3 {
			t.Errorf("another query: %d searches, %v", made, err)
		}
	})
}
