package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role/prompted"
)

// What a planner is told of the metadata of the documents: of as many of them as can
// be looked at while somebody waits, the keys that most of them have, and the values
// of keys with few.
const (
	keyDocuments = 20_000 // documents that are looked at
	keyCount     = 24
	keyValues    = 12
	keyBytes     = 64 // of a key's name, and of a value that is listed
)

// A catalogue knows which metadata the documents have, as far as an asker may see them.
// It keeps what it found until the documents change, for a bounded number of askers.
type catalogue struct {
	mu       sync.Mutex
	sequence int64
	found    map[string]*keyScan // by asker and collections
}

// maxScans is how many askers a catalogue remembers the keys of.
const maxScans = 256

// A keyScan is one look at the documents, for all that wait for it.
type keyScan struct {
	done chan struct{}
	keys []prompted.Key
	err  error
}

// scan returns the look at the documents for one asker, and whether it is the caller's to
// take.
func (c *catalogue) scan(sequence int64, of string) (s *keyScan, mine bool) {
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

// end tells those that wait for a scan what it found. One that failed is forgotten.
func (c *catalogue) end(of string, s *keyScan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.err != nil && c.found[of] == s {
		delete(c.found, of)
	}
	close(s.done)
}

// keys returns the metadata keys that plans may use for this asker. All that it tells
// is of documents that the asker may see.
func (e *Engine) keys(ctx context.Context, access assay.Access, collections []string) ([]prompted.Key, error) {
	sequence, err := e.content.Sequence(ctx)
	if err != nil {
		return nil, err
	}
	of := access.Key() + "\x00" + strings.Join(collections, "\x00")
	for {
		s, mine := e.catalogue.scan(sequence, of)
		if mine {
			s.keys, s.err = e.lookForKeys(ctx, access, collections)
			e.catalogue.end(of, s)
			return s.keys, s.err
		}
		select {
		case <-s.done:
			if s.err == nil {
				return s.keys, nil
			} // who looked was interrupted, perhaps: look again
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lookForKeys looks at the documents.
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
		if access.Allows(d.ACL) {
			see(seen, d.Metadata)
		}
	}
	return keysOf(seen, whole), nil
}

// ownKeys are the keys that assay sets by what a file is, where it lies and what it is
// called. Their values are told to no model: nobody meant them for filters, and names of
// files and folders stay on this computer.
var ownKeys = []string{
	assay.MetaSource, assay.MetaType, assay.MetaTitle, assay.MetaAuthor, assay.MetaCreated, assay.MetaModified, assay.MetaLanguage, assay.MetaPath,
}

// A seenKey is what was seen of a key.
type seenKey struct {
	documents int
	kinds     map[assay.ValueKind]bool
	values    map[string]bool // nil: too many, or not to be told
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
			if len(k.values) > keyValues || len(text) > keyBytes || v.Kind == assay.KindTime { // nobody asks for a moment
				k.values = nil
			}
		}
	}
}

// keysOf returns the keys of most documents. Values are listed only where all documents
// were looked at: they have to be all there are.
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
