// Package gate bounds concurrent work. Work beyond the limit waits in a queue for a short time, and is
// refused if the queue is full.
package gate

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/assay-rag/assay"
)

// A Limit is how much work a Gate admits. The zero Limit admits any amount.
type Limit struct {
	Most     int           // at once; 0: any number
	Waiting  int           // most that wait for others to end
	Patience time.Duration // how long each waits at most
}

// A Gate admits work in the order of its arrival. The zero Gate admits any amount. It is safe for
// concurrent use.
type Gate struct {
	mu      sync.Mutex
	limit   Limit
	active  int
	waiting list.List // of chan struct{}, closed when the work is admitted
}

// SetLimit changes the limit. Work that was admitted is not affected.
func (g *Gate) SetLimit(l Limit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = l
	g.admit()
}

// Active returns how much work is being done, and how much waits.
func (g *Gate) Active() (active, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.active, g.waiting.Len()
}

// Enter waits until work is admitted. The caller must call leave, once, when the work has ended. The
// error is assay.ErrBusy, or that of ctx.
func (g *Gate) Enter(ctx context.Context) (leave func(), err error) {
	g.mu.Lock()
	if g.free() && g.waiting.Len() == 0 {
		g.active++
		g.mu.Unlock()
		return g.leave, nil
	}
	limit := g.limit
	if g.waiting.Len() >= limit.Waiting {
		g.mu.Unlock()
		return nil, fmt.Errorf("the limit of %d at once is reached: %w", limit.Most, assay.ErrBusy)
	}
	admitted := make(chan struct{})
	place := g.waiting.PushBack(admitted)
	g.mu.Unlock()
	timer := time.NewTimer(limit.Patience)
	defer timer.Stop()
	select {
	case <-admitted:
		return g.leave, nil
	case <-timer.C:
		err = fmt.Errorf("waited for %s, because the limit of %d at once is reached: %w", limit.Patience, limit.Most, assay.ErrBusy)
	case <-ctx.Done():
		err = ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-admitted: // in the same moment
		return g.leave, nil
	default:
		g.waiting.Remove(place)
		return nil, err
	}
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	g.admit()
}

// admit admits waiting work. g.mu is held.
func (g *Gate) admit() {
	for g.waiting.Len() > 0 && g.free() {
		g.active++
		close(g.waiting.Remove(g.waiting.Front()).(chan struct{}))
	}
}

func (g *Gate) free() bool { return g.limit.Most == 0 || g.active < g.limit.Most }
