package llm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// CacheReadings returns a reader that caches the readings of the last size to 2×size passages, so
// that ranking, grading and writing read a passage only once. Entailments are not cached. It panics
// if size < 1.
func CacheReadings(r Reader, size int) Reader {
	if size < 1 {
		panic("llm: a cache of readings without room")
	}
	return &cachedReader{Reader: r, size: size}
}

type cachedReader struct {
	Reader
	size int

	mu       sync.Mutex
	now, old map[readingKey]Reading // when now is full it becomes old
}

type readingKey [sha256.Size]byte

// Read implements Reader.
func (c *cachedReader) Read(ctx context.Context, question string, passages []Excerpt) ([]Reading, error) {
	keys := make([]readingKey, len(passages))
	readings := make([]Reading, len(passages))
	var missing []int
	var unread []Excerpt
	for i, p := range passages {
		keys[i] = keyOf(question, p)
		if r, ok := c.get(keys[i]); ok {
			readings[i] = r
		} else {
			missing, unread = append(missing, i), append(unread, p)
		}
	}
	if len(unread) == 0 {
		return readings, ctx.Err()
	}
	fresh, err := c.Reader.Read(ctx, question, unread)
	if err != nil || len(fresh) != len(unread) {
		return nil, err
	}
	for k, i := range missing {
		readings[i] = fresh[k]
		c.put(keys[i], fresh[k])
	}
	return readings, nil
}

// Languages implements Linguist. It returns the languages of the inner reader.
func (c *cachedReader) Languages() []string {
	if l, ok := c.Reader.(Linguist); ok {
		return l.Languages()
	}
	return nil
}

func (c *cachedReader) get(k readingKey) (Reading, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.now[k]
	if !ok {
		if r, ok = c.old[k]; ok {
			c.keep(k, r)
		}
	}
	return r, ok
}

func (c *cachedReader) put(k readingKey, r Reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(k, r)
}

func (c *cachedReader) keep(k readingKey, r Reading) {
	if c.now == nil || len(c.now) >= c.size {
		c.old, c.now = c.now, make(map[readingKey]Reading, c.size)
	}
	c.now[k] = r
}

// keyOf returns a hash of the question and the excerpt, each text prefixed with its length.
func keyOf(question string, p Excerpt) readingKey {
	h := sha256.New()
	var n [8]byte
	for _, text := range []string{question, p.Heading, p.Text} {
		binary.LittleEndian.PutUint64(n[:], uint64(len(text)))
		h.Write(n[:])
		h.Write([]byte(text))
	}
	return readingKey(h.Sum(nil))
}
