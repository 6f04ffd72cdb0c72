package eval

import "sync"

// inTurn returns a function that reports one more of all items as done. It is safe for concurrent
// use. The calls of progress are serialised; progress may be nil.
func inTurn(all int, progress func(done, all int)) func() {
	var mu sync.Mutex
	done := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if done++; progress != nil {
			progress(done, all)
		}
	}
}
