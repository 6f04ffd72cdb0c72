package index

import (
	"slices"

	"github.com/assay-rag/assay"
)

// seenBy returns the snapshot as access may see it: other documents count no
// more than deleted ones do. So neither the counts and scores of what is found
// nor the keys that a filter may name tell of them.
func (s *snapshot) seenBy(access assay.Access) *snapshot {
	views := make([]view, len(s.views))
	hides := false
	for i, v := range s.views {
		hidden := v.hiddenFrom(access)
		hides = hides || len(hidden) > 0
		views[i] = v
		if len(hidden) > 0 {
			views[i] = v.without(hidden)
		}
	}
	if !hides {
		return s
	}
	return newSnapshot(s.sequence, views)
}

// hiddenFrom returns the live documents that access may not see.
func (v view) hiddenFrom(access assay.Access) []uint32 {
	s := v.segment
	denied := make([]bool, len(s.acls))
	for i, acl := range s.acls {
		denied[i] = !access.Allows(acl)
	}
	if !slices.Contains(denied, true) {
		return nil
	}
	var hidden []uint32
	for n := range uint32(s.documentCount) {
		if denied[s.acl(n)] && !v.deleted.has(n) {
			hidden = append(hidden, n)
		}
	}
	return hidden
}

// checkFilter returns the error that Index.Search names for a filter whose keys
// no live document has, or has with other kinds of values only.
func (s *snapshot) checkFilter(f assay.Filter) error {
	return f.Check(func(key string) []assay.ValueKind {
		kinds := kindSet(0)
		for _, v := range s.views {
			kinds |= v.kinds(key)
		}
		return kinds.list()
	})
}

// kinds returns the kinds of a key's values in the live documents.
func (v view) kinds(key string) kindSet {
	k := v.segment.keys[key]
	if v.deleted == nil {
		return k.kinds
	}
	kinds := kindSet(0)
	k.each(v.segment.documentCount, func(document uint32, raw []byte) {
		if !v.deleted.has(document) {
			kinds |= 1 << raw[0]
		}
	})
	return kinds
}

// kept returns the chunks that a search may score: of live documents, in the
// query's collections, kept by its filter. It returns nil where that is all of
// them.
func (v view) kept(q assay.Query) (bitset, error) {
	s := v.segment
	wanted := make([]bool, len(s.collections))
	for i, name := range s.collections {
		wanted[i] = len(q.Collections) == 0 || slices.Contains(q.Collections, name)
	}
	var kept bitset // documents; nil: all
	if q.Filter.Op != "" {
		var err error
		if kept, err = s.keep(q.Filter); err != nil {
			return nil, err
		}
	}
	if kept == nil && v.deleted == nil && !slices.Contains(wanted, false) {
		return nil, nil
	}
	chunks := newBitset(s.chunkCount)
	for n := range uint32(s.documentCount) {
		if wanted[s.collection(n)] && !v.deleted.has(n) && (kept == nil || kept.has(n)) {
			chunks.setRange(s.chunksOf(n))
		}
	}
	return chunks, nil
}

// keep returns the documents, deleted ones included, that a filter keeps. It
// gives what Filter.Match gives for each document.
func (s *segment) keep(f assay.Filter) (bitset, error) {
	set := newBitset(s.documentCount)
	switch f.Op {
	case "", assay.OpAndAll:
		set.fill(s.documentCount)
		for _, part := range f.Filters {
			kept, err := s.keep(part)
			if err != nil {
				return nil, err
			}
			set.and(kept)
		}
	case assay.OpOrAll:
		for _, part := range f.Filters {
			kept, err := s.keep(part)
			if err != nil {
				return nil, err
			}
			set.or(kept)
		}
	case assay.OpNot:
		kept, err := s.keep(f.Filters[0])
		if err != nil {
			return nil, err
		}
		kept.complement(s.documentCount)
		return kept, nil
	default:
		return s.compare(f)
	}
	return set, nil
}

// compare returns the documents for which one comparison holds.
func (s *segment) compare(f assay.Filter) (bitset, error) {
	set := newBitset(s.documentCount)
	if f.Holds(assay.Value{}, false) {
		set.fill(s.documentCount) // what holds for a document without the key
	}
	known := make(map[string]bool) // what the filter says of each different value
	ok := s.keys[f.Key].each(s.documentCount, func(document uint32, raw []byte) {
		holds, seen := known[string(raw)]
		if !seen {
			holds = f.Holds(rawValue(raw), true)
			known[string(raw)] = holds
		}
		if holds {
			set.set(document)
		} else {
			set.unset(document)
		}
	})
	if !ok {
		return nil, damaged("column of " + f.Key)
	}
	return set, nil
}
