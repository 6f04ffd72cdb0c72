package index

import (
	"slices"
	"sync"

	"github.com/assay-rag/assay"
)

// visibility is the visibility of a view's rows for an access. It is computed once and cached for
// all searches with that access.
type visibility struct {
	visible   bitset   // live rows including blank ones; nil: all rows
	members   int      // number of rows in visible
	chunks    int      // visible rows that are not blank
	total     uint64   // sum of their lengths
	languages []string // of the visible documents that have chunks, sorted

	mu    sync.Mutex
	kinds map[string]kindSet // of the metadata keys looked up so far
}

// maxKinds is the maximum number of keys that a visibility caches, because a query may name
// arbitrary keys.
const maxKinds = 256

// visibilityCache caches the visibility of a view for several accesses, with the most recently used
// last.
type visibilityCache struct {
	mu   sync.Mutex
	list []*visibilityEntry
}

type visibilityEntry struct {
	key  string // Access.Key
	once sync.Once
	rows *visibility
	err  error
}

// maxVisibilities is the number of accesses cached for each view. Each takes up to one bit per
// chunk.
const maxVisibilities = 16

// visibleTo returns the rows of v that are visible to access.
func (v *view) visibleTo(access assay.Access) (*visibility, error) {
	k := v.visibilities.of(access.Key())
	k.once.Do(func() { k.rows, k.err = v.computeVisibility(access) })
	return k.rows, k.err
}

func (s *visibilityCache) of(key string) *visibilityEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(k *visibilityEntry) bool { return k.key == key })
	k := &visibilityEntry{key: key}
	if i >= 0 {
		k = s.list[i]
		s.list = slices.Delete(s.list, i, i+1)
	} else if len(s.list) >= maxVisibilities {
		s.list = slices.Delete(s.list, 0, 1)
	}
	s.list = append(s.list, k)
	return k
}

// computeVisibility computes the rows of v that are visible to access.
func (v *view) computeVisibility(access assay.Access) (*visibility, error) {
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
	seen := &visibility{visible: visible, members: s.rows, chunks: s.rows - len(s.blank), total: s.total, kinds: make(map[string]kindSet)}
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
func (v *view) count(seen *visibility) {
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
func (v *view) kindsOf(key string, seen *visibility) (kindSet, error) {
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

// countVisible returns the number of visible chunks in p.
func (seen *visibility) countVisible(p postings) (int, error) {
	if seen.visible == nil {
		return p.count, nil
	}
	return p.countIn(seen.visible, seen.members)
}
