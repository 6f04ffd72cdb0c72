package index

import (
	"fmt"
	"math/bits"
	"slices"
)

// mergeFactor is how many segments of one size class are merged into one of the
// next; a class holds segments up to mergeFactor times larger than the class
// before. So a chunk is rewritten about log₈ n times as n chunks arrive one by
// one, and a search meets at most 7·log₈ n segments.
const mergeFactor = 8

// mergeViews merges segments until there are fewer than mergeFactor of each
// class and none of which half is deleted. Order is kept where nothing is merged.
func mergeViews(views []view) ([]view, error) {
	for {
		group := toMerge(views)
		if group == nil {
			return views, nil
		}
		merged, err := merge(group)
		if err != nil {
			return nil, err
		}
		views = slices.DeleteFunc(slices.Clone(views), func(v view) bool {
			return slices.ContainsFunc(group, func(g view) bool { return g.segment == v.segment })
		})
		if merged.documents > 0 {
			views = append(views, merged)
		}
	}
}

// toMerge returns the next views that should become one, nil for none.
func toMerge(views []view) []view {
	classes := make(map[int][]view)
	for _, v := range views {
		if deleted := v.segment.documentCount - v.documents; 2*deleted > v.segment.documentCount {
			return []view{v}
		}
		if len(v.segment.bytes) > maxSegmentBytes/mergeFactor {
			continue
		}
		class := bits.Len(uint(v.segment.chunkCount)) / 3 // log₂ 8
		classes[class] = append(classes[class], v)
		if len(classes[class]) == mergeFactor {
			return classes[class]
		}
	}
	return nil
}

// merge makes one segment of the live documents of several.
func merge(views []view) (view, error) {
	b := newBuilder()
	for _, v := range views {
		if err := b.addSegment(v); err != nil {
			return view{}, fmt.Errorf("merge: %w", err)
		}
	}
	s, err := b.segment()
	if err != nil {
		return view{}, fmt.Errorf("merge: %w", err)
	}
	return wholeView(s), nil
}

// addSegment adds a segment's live documents as they are.
func (b *builder) addSegment(v view) error {
	const gone = ^uint32(0)
	s := v.segment
	newDocument := make([]uint32, s.documentCount)
	newChunk := make([]uint32, s.chunkCount)
	for n := range uint32(s.documentCount) {
		first, end := s.chunksOf(n)
		newDocument[n] = gone
		if v.deleted.has(n) {
			for c := first; c < end; c++ {
				newChunk[c] = gone
			}
			continue
		}
		newDocument[n] = b.addDocument(s.documentID(n), s.documentVersion(n), s.collections[s.collection(n)], s.acls[s.acl(n)])
		for c := first; c < end; c++ {
			newChunk[c] = uint32(len(b.chunks))
			b.chunks = append(b.chunks, chunkRow{s.chunkID(c), newDocument[n], s.fieldLengths(c)})
		}
	}
	for name, key := range s.keys {
		ok := key.each(s.documentCount, func(document uint32, raw []byte) {
			if n := newDocument[document]; n != gone {
				b.column(name).addRaw(n, raw)
			}
		})
		if !ok {
			return damaged("column of " + name)
		}
	}
	for i := range s.termCount {
		text, p := s.term(i)
		n, known := b.terms[text]
		if !known {
			n = b.newTerm(text)
		}
		l := &b.lists[n]
		ok := p.each(func(p posting) {
			if c := newChunk[p.chunk]; c != gone {
				l.add(c, p.tf)
			}
		})
		if !ok {
			return damaged("postings of " + text)
		}
	}
	return nil
}
