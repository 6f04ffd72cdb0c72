package gate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay"
)

func TestUnlimited(t *testing.T) {
	var g Gate
	for range 100 {
		if _, err := g.Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefused checks that work is refused if too much waits, if it waited for too long, and if its
// context ends.
func TestRefused(t *testing.T) {
	var g Gate
	g.SetLimit(Limit{Most: 1})
	leave, err := g.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Enter(t.Context()); !errors.Is(err, assay.ErrBusy) {
		t.Errorf("without a queue: %v", err)
	}
	g.SetLimit(Limit{Most: 1, Waiting: 1, Patience: time.Millisecond})
	if _, err := g.Enter(t.Context()); !errors.Is(err, assay.ErrBusy) {
		t.Errorf("after the patience: %v", err)
	}
	g.SetLimit(Limit{Most: 1, Waiting: 1, Patience: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Enter(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
	leave()
	if active, waiting := g.Active(); active != 0 || waiting != 0 {
		t.Errorf("%d active, %d waiting", active, waiting)
	}
	if _, err := g.Enter(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestOrder checks that work is admitted in the order of its arrival, also when the limit grows.
func TestOrder(t *testing.T) {
	var g Gate
	limit := Limit{Most: 1, Waiting: 10, Patience: time.Hour}
	g.SetLimit(limit)
	leave, err := g.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	order := make(chan int)
	for i := range 3 {
		go func() {
			leave, err := g.Enter(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			order <- i
			leave()
		}()
		for waiting := 0; waiting <= i; {
			_, waiting = g.Active()
		}
	}
	leave()
	for want := range 3 {
		if got := <-order; got != want {
			t.Errorf("%d came as number %d", got, want)
		}
	}
}

// TestNeverMore enters from many goroutines.
func TestNeverMore(t *testing.T) {
	var g Gate
	g.SetLimit(Limit{Most: 3, Waiting: 5, Patience: time.Hour})
	var inside, admitted, refused atomic.Int32
	var work sync.WaitGroup
	for range 200 {
		work.Go(func() {
			leave, err := g.Enter(t.Context())
			if err != nil {
				refused.Add(1)
				return
			}
			defer leave()
			admitted.Add(1)
			if n := inside.Add(1); n > 3 {
				t.Errorf("%d at once", n)
			}
			inside.Add(-1)
		})
	}
	work.Wait()
	if admitted.Load()+refused.Load() != 200 {
		t.Errorf("%d admitted, %d refused", admitted.Load(), refused.Load())
	}
	if active, waiting := g.Active(); active != 0 || waiting != 0 {
		t.Errorf("%d active, %d waiting", active, waiting)
	}
}
