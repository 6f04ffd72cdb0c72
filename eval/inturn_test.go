package eval

import (
	"sync"
	"testing"
)

// TestInTurn checks that each item is reported, in order and one at a time.
func TestInTurn(t *testing.T) {
	var heard []int
	step := InTurn(400, func(done, all int) {
		if heard = append(heard, done); all != 400 {
			t.Errorf("%d of %d", done, all)
		}
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				step()
			}
		})
	}
	all.Wait()
	for i, n := range heard {
		if n != i+1 {
			t.Fatalf("heard of %d as the %d.", n, i+1)
		}
	}
	if len(heard) != 400 {
		t.Errorf("heard of %d of 400", len(heard))
	}
	InTurn(1, nil)()
}
