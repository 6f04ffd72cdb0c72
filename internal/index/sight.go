package index

import (
	"slices"
	"sync"

	"github.com/assay-rag/assay"
)

// A sight is the visibility of a view's rows for an access. It is computed once and cached for all
// searches with that access.
type sight struct {
	visible   bitset   // live rows including blank ones; nil: all rows
	members   int      // number of rows in visible
	chunks    int      // visible rows that are not blank
	total     uint64   // sum of their lengths
	languages []string // of the visible documents that have chunks, sorted

	mu    sync.Mutex
	kinds map[string]kindSet // of the metadata keys looked up so far
}

// maxKinds is the maximum number of keys that a sight caches, because a query may name arbitrary
// keys.
const maxKinds = 256

// sights caches the visibility of a view for several accesses, with the most recently used last.
type sights struct {
	mu   sync.Mutex
	list []*keyedSight
}

type keyedSight struct {
	key  string // Access.Key
	once sync.Once
	seen *sight
	err  error
}

// maxSights is the number of accesses cached for each view. Each takes up to one bit per chunk.
const maxSights = 16

// seenBy returns the rows of v that are visible to access.
func (v *view) seenBy(access assay.Access) (*sight, error) {
	k := v.sights.of(access.Key())
	k.once.Do(func() { k.seen, k.err = v.look(access) })
	return k.seen, k.err
}

func (s *sights) of(key string) *keyedSight {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(k *keyedSight) bool { return k.key == key })
	k := &keyedSight{key: key}
	if i >= 0 {
		k = s.list[i]
		s.list = slices.Delete(s.list, i, i+1)
	} else if len(s.list) >= maxSights {
		s.list = slices.Delete(s.list, 0, 1)
	}
	s.list = append(s.list, k)
	return k
}

// look computes the rows of v that are visible to access.
func (v *view) look(access assay.Access) (*sight, error) {
	s := v.segment
	visible, err := s.filters.allowed(access)
	if err != nil {
		return nil, err
	}
	if v.deleted != nil {
		if visible == nil {
			visible = newBitset(s.rows)
			visible.fill(s.rows)
		}
		visible.andNot(v.deleted)
	}
	seen := &sight{visible: visible, members: s.rows, chunks: s.rows - len(s.blank), total: s.total, kinds: make(map[string]kindSet)}
	if visible != nil {
		v.count(seen)
	}
	spoken := visible // without blank rows, which have no chunk in their language
	if len(s.blank) > 0 {
		spoken = newBitset(s.rows)
		if visible == nil {
			spoken.fill(s.rows)
		} else {
			copy(spoken, visible)
		}
		for _, row := range s.blank {
			spoken.unset(row)
		}
	}
	seen.languages, err = s.filters.languages(spoken)
	return seen, err
}

// count sets the counts of seen from its visible rows.
func (v *view) count(seen *sight) {
	s := v.segment
	seen.members = seen.visible.count()
	seen.chunks = seen.members
	for _, row := range s.blank {
		if seen.visible.has(row) {
			seen.chunks--
		}
	}
	hidden := newBitset(s.rows) // usually few
	copy(hidden, seen.visible)
	hidden.complement(s.rows)
	hidden.each(func(row uint32) { seen.total -= uint64(s.length(row)) })
}

// kindsOf returns the kinds of the visible values of a metadata key.
func (v *view) kindsOf(key string, seen *sight) (kindSet, error) {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if kinds, ok := seen.kinds[key]; ok {
		return kinds, nil
	}
	kinds, err := v.segment.filters.kinds(key, seen.visible)
	if err == nil && len(seen.kinds) < maxKinds {
		seen.kinds[key] = kinds
	}
	return kinds, err
}

// holding returns the number of visible chunks in p.
func (seen *sight) holding(p postings) (int, error) {
	if seen.visible == nil {
		return p.count, nil
	}
	return p.countIn(seen.visible, seen.members)
}
