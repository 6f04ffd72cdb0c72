package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/prompted"
)

// Limits on the metadata keys in a planner's prompt. The keys come from the first keyDocuments
// documents, because a user is waiting. A planner gets the keyCount most frequent keys, and the
// values of keys with at most keyValues of them.
const (
	keyDocuments = 20_000 // documents that are scanned
	keyCount     = 24
	keyValues    = 12
	keyBytes     = 64 // longest key name and longest listed value
)

// keyCache caches the metadata keys of the documents that each access may see. Its entries are
// valid until the documents change, and it holds at most maxScans of them.
type keyCache struct {
	mu       sync.Mutex
	sequence int64
	found    map[string]*keyScan // by access and collections
}

// maxScans is the maximum number of cached scans.
const maxScans = 256

// A keyScan is one scan of the documents, shared by all callers that wait for it.
type keyScan struct {
	done chan struct{}
	keys []prompted.Key
	err  error
}

// scan returns the keyScan for an access. If mine is true, the caller must run the scan and call
// end.
func (c *keyCache) scan(sequence int64, of string) (s *keyScan, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sequence != sequence || c.found == nil || len(c.found) >= maxScans && c.found[of] == nil {
		c.sequence, c.found = sequence, map[string]*keyScan{}
	}
	if s := c.found[of]; s != nil {
		return s, false
	}
	s = &keyScan{done: make(chan struct{})}
	c.found[of] = s
	return s, true
}

// end releases the callers that wait for s. It removes a failed scan from the cache.
func (c *keyCache) end(of string, s *keyScan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.err != nil && c.found[of] == s {
		delete(c.found, of)
	}
	close(s.done)
}

// keys returns the metadata keys that plans may use. They come only from documents that access
// may see.
func (e *Engine) keys(ctx context.Context, access assay.Access, collections []string) ([]prompted.Key, error) {
	sequence, err := e.content.Sequence(ctx)
	if err != nil {
		return nil, err
	}
	of := access.Key() + "\x00" + strings.Join(collections, "\x00")
	for {
		s, mine := e.keyCache.scan(sequence, of)
		if mine {
			s.keys, s.err = e.lookForKeys(ctx, access, collections)
			e.keyCache.end(of, s)
			return s.keys, s.err
		}
		select {
		case <-s.done:
			if s.err == nil {
				return s.keys, nil
			} // the other caller may have been interrupted: retry
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lookForKeys scans the documents for their metadata keys.
func (e *Engine) lookForKeys(ctx context.Context, access assay.Access, collections []string) ([]prompted.Key, error) {
	seen := map[string]*seenKey{}
	looked, whole := 0, true
	for d, err := range e.content.Documents(ctx, collections...) {
		if err != nil {
			return nil, err
		}
		if looked++; looked > keyDocuments {
			whole = false
			break
		}
		if access.Allows(d.Collection, d.ACL) {
			see(seen, d.Metadata)
		}
	}
	return keysOf(seen, whole), nil
}

// ownKeys are the keys that assay derives from a file's type, path and name. Their values are
// never sent to a model: they are not meant for filters, and file and folder names must stay on
// this computer.
var ownKeys = []string{
	assay.MetaSource, assay.MetaType, assay.MetaTitle, assay.MetaAuthor, assay.MetaCreated, assay.MetaModified, assay.MetaLanguage, assay.MetaPath,
}

// A seenKey collects the uses of one metadata key.
type seenKey struct {
	documents int
	kinds     map[assay.ValueKind]bool
	values    map[string]bool // nil: too many, or private
}

func see(seen map[string]*seenKey, m assay.Metadata) {
	for name, v := range m {
		if len(name) > keyBytes {
			continue
		}
		k := seen[name]
		if k == nil {
			k = &seenKey{kinds: map[assay.ValueKind]bool{}, values: map[string]bool{}}
			seen[name] = k
		}
		k.documents++
		k.kinds[v.Kind] = true
		if slices.Contains(ownKeys, name) {
			k.values = nil
		}
		values := []string{v.Text()}
		if v.Kind == assay.KindList {
			values = v.List
		}
		for _, text := range values {
			if k.values == nil {
				break
			}
			k.values[text] = true
			if len(k.values) > keyValues || len(text) > keyBytes || v.Kind == assay.KindTime { // filters do not compare exact times
				k.values = nil
			}
		}
	}
}

// keysOf returns the most frequent keys. Values are listed only if all documents were scanned,
// because the list must be complete.
func keysOf(seen map[string]*seenKey, whole bool) []prompted.Key {
	names := slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		return cmp.Or(cmp.Compare(seen[b].documents, seen[a].documents), cmp.Compare(a, b))
	})
	var keys []prompted.Key
	for _, name := range names[:min(len(names), keyCount)] {
		k := prompted.Key{Name: name, Kinds: slices.Sorted(maps.Keys(seen[name].kinds))}
		if whole {
			k.Values = slices.Sorted(maps.Keys(seen[name].values))
		}
		keys = append(keys, k)
	}
	return keys
}
