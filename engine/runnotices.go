package engine

import (
	"context"
	"sync"
)

// A runListener is a tenant whose store tells of changes of runs that other processes drive. fn gets the
// ID of a run that changed, or the empty string if any may have.
type runListener interface {
	Listen(ctx context.Context, fn func(run string)) error
}

// runNotices passes the notices of a store on to followers. The zero value is ready for use. It listens
// while there are followers.
type runNotices struct {
	mu      sync.Mutex
	waiting map[chan struct{}]string // runs by the channel of their follower
	end     context.CancelFunc       // of the listener; nil: it does not run
	work    sync.WaitGroup
}

// follow returns a channel that gets a value after changes of a run, and a function that ends that. If the
// tenant's store has no notices, the channel never gets one.
func (n *runNotices) follow(tenant any, run string) (changed <-chan struct{}, stop func()) {
	listener, ok := tenant.(runListener)
	if !ok {
		return nil, func() {}
	}
	own := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = map[chan struct{}]string{}
	}
	n.waiting[own] = run
	if n.end == nil {
		ctx, cancel := context.WithCancel(context.Background())
		n.end = cancel
		n.work.Go(func() { _ = listener.Listen(ctx, n.tell) }) // without it followers look again after a pause
	}
	return own, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if delete(n.waiting, own); len(n.waiting) == 0 && n.end != nil {
			n.end()
			n.end = nil
		}
	}
}

// tell wakes the followers of a run, or all if it is empty.
func (n *runNotices) tell(run string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for own, of := range n.waiting {
		if run != "" && of != run {
			continue
		}
		select {
		case own <- struct{}{}:
		default: // it is to look already
		}
	}
}

// close waits until nothing listens. There are no followers any more.
func (n *runNotices) close() { n.work.Wait() }
