package eval

import "sync"

// inTurn returns what to call from any goroutine when one more thing of all is done.
// Progress hears of each, one at a time; nil: nobody looks.
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
