package engine

import "sync"

// A contentCache keeps what was computed from the documents that principals may see, until the content
// changes. Its zero value is empty and ready to use.
type contentCache[T any] struct {
	mu       sync.Mutex
	sequence int64
	by       map[string]T
}

// maxContentCache is how many values a contentCache keeps.
const maxContentCache = 256

func (c *contentCache[T]) get(sequence int64, key string) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.by[key]
	return value, ok && c.sequence == sequence
}

func (c *contentCache[T]) put(sequence int64, key string, value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil || c.sequence != sequence || len(c.by) >= maxContentCache {
		c.sequence, c.by = sequence, map[string]T{}
	}
	c.by[key] = value
}
