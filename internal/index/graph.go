package index

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"

	"github.com/assay-rag/assay"
)

// A Graph is a graph of the passages that a search may find and the entities that they name, in one
// state of an index. The numbers of passages and entities are valid only in their Graph, which must
// be closed. It is not safe for concurrent use.
type Graph interface {
	// Passages returns the number of passages.
	Passages() int
	// Passage returns the number of a chunk's passage. ok is false if the passage is not in the
	// graph.
	Passage(chunk string) (passage uint64, ok bool)
	// Chunk returns the chunk ID of a passage.
	Chunk(passage uint64) string
	// Compare compares passages by their chunk IDs.
	Compare(a, b uint64) int
	// Entity returns the number of the entity with the given key, whether or not a passage names it.
	Entity(key string) uint32
	// Key returns the key of an entity.
	Key(entity uint32) string
	// Entities calls f for each entity that a passage names. The order depends only on the passage.
	// title reports whether the passage stands under the entity as its title.
	Entities(passage uint64, f func(entity uint32, title bool)) error
	// Count returns the number of passages that name an entity.
	Count(entity uint32) (int, error)
	// Named calls f for each passage that names an entity, in any order.
	Named(entity uint32, f func(passage uint64, title bool)) error
	// Close releases what the graph holds. It may be called more than once.
	Close()
}

// A snapshotGraph is the Graph of a snapshot. It holds files of the index until Close.
type snapshotGraph struct {
	snapshot *snapshot
	views    []graphView
	passages int

	entities []graphEntity
	byKey    map[string]uint32
	row      []mention // buffer
	closed   bool
}

// A graphView is the part of a snapshotGraph that lies in one view.
type graphView struct {
	segment *segment
	kept    bitset            // rows; nil: all
	members int               // number of kept rows
	known   map[uint32]uint32 // Graph's entity numbers by the segment's
}

// A graphEntity is an entity that has been seen in the graph.
type graphEntity struct {
	key   string
	view  int        // view whose postings are in met; -1: none
	met   postings   // postings in that view
	lists []postings // by view; nil: not looked up
	count int        // passages that name it; -1: not counted yet
}

// Graph returns the graph of the passages that a search for q by access may find, which are
// visible, in q's collections and kept by q's filter. Other passages are not in the graph: they are
// not counted and have no links. The caller must close the graph. Graph returns the same errors as
// Search.
func (s *Searcher) Graph(ctx context.Context, access assay.Access, q assay.Query) (Graph, error) {
	snap, err := s.catchUp(ctx)
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	g, err := snap.graph(access, q)
	if err != nil {
		snap.release()
		return nil, fmt.Errorf("graph: %w", err)
	}
	return g, nil
}

func (s *snapshot) graph(access assay.Access, q assay.Query) (*snapshotGraph, error) {
	g := &snapshotGraph{snapshot: s, byKey: make(map[string]uint32)}
	if access.IsZero() {
		return g, nil
	}
	p, err := s.prepare(access, q)
	if err != nil {
		return nil, err
	}
	for i, v := range p.views {
		view := graphView{segment: v.segment, kept: p.kept[i], members: v.segment.rows, known: make(map[uint32]uint32)}
		blank := len(v.segment.blank)
		if view.kept != nil {
			view.members, blank = view.kept.count(), 0
			for _, row := range v.segment.blank {
				if view.kept.has(row) {
					blank++
				}
			}
		}
		g.passages += view.members - blank
		g.views = append(g.views, view)
	}
	return g, nil
}

// Close implements Graph.
func (g *snapshotGraph) Close() {
	if !g.closed {
		g.closed = true
		g.snapshot.release()
	}
}

// Passages implements Graph.
func (g *snapshotGraph) Passages() int { return g.passages }

// passageNumber returns the number of a passage, which has the view in its upper half and the row
// in its lower half.
func passageNumber(view int, row uint32) uint64 { return uint64(view)<<32 | uint64(row) }

// Passage implements Graph.
func (g *snapshotGraph) Passage(chunk string) (passage uint64, ok bool) {
	id, ok := parseID(chunk)
	if !ok || id == (rawID{}) {
		return 0, false
	}
	for i := range g.views {
		v := &g.views[i]
		if row, ok := v.segment.findChunk(id); ok && (v.kept == nil || v.kept.has(row)) {
			return passageNumber(i, row), true
		}
	}
	return 0, false
}

// Chunk implements Graph.
func (g *snapshotGraph) Chunk(passage uint64) string {
	v := g.views[passage>>32]
	return hex.EncodeToString(id(v.segment.ids, uint32(passage)))
}

// Compare implements Graph.
func (g *snapshotGraph) Compare(a, b uint64) int {
	return bytes.Compare(id(g.views[a>>32].segment.ids, uint32(a)), id(g.views[b>>32].segment.ids, uint32(b)))
}

// Entity implements Graph.
func (g *snapshotGraph) Entity(key string) uint32 {
	n, ok := g.byKey[key]
	if !ok {
		n = uint32(len(g.entities))
		g.entities = append(g.entities, graphEntity{key: key, view: -1, count: -1})
		g.byKey[key] = n
	}
	return n
}

// Key implements Graph.
func (g *snapshotGraph) Key(entity uint32) string { return g.entities[entity].key }

// Entities implements Graph.
func (g *snapshotGraph) Entities(passage uint64, f func(entity uint32, title bool)) error {
	view := &g.views[passage>>32]
	row, err := view.segment.mentions.of(uint32(passage), g.row[:0])
	if err != nil {
		return err
	}
	g.row = row
	for _, m := range row {
		n, ok := view.known[m.entity]
		if !ok {
			it, err := view.segment.entities.at(m.entity)
			if err != nil {
				return err
			}
			n = g.Entity(it.term())
			view.known[m.entity] = n
			g.entities[n].view, g.entities[n].met = int(passage>>32), it.postings()
		}
		f(n, m.title)
	}
	return nil
}

// Count implements Graph.
func (g *snapshotGraph) Count(entity uint32) (int, error) {
	e := &g.entities[entity]
	if e.count >= 0 {
		return e.count, nil
	}
	if err := g.lookup(e); err != nil {
		return 0, err
	}
	count := 0
	for i, list := range e.lists {
		n, err := list.countIn(g.views[i].kept, g.views[i].members)
		if err != nil {
			return 0, err
		}
		count += n
	}
	e.count = count
	return count, nil
}

// lookup finds an entity's postings in all views.
func (g *snapshotGraph) lookup(e *graphEntity) error {
	if e.lists != nil {
		return nil
	}
	lists := make([]postings, len(g.views))
	for i := range g.views {
		if i == e.view {
			lists[i] = e.met
			continue
		}
		var err error
		if lists[i], err = g.views[i].segment.entities.lookup(e.key); err != nil {
			return err
		}
	}
	e.lists = lists
	return nil
}

// Named implements Graph.
func (g *snapshotGraph) Named(entity uint32, f func(passage uint64, title bool)) error {
	e := &g.entities[entity]
	if err := g.lookup(e); err != nil {
		return err
	}
	for i, list := range e.lists {
		kept := g.views[i].kept
		err := list.each(func(p posting) {
			if kept == nil || kept.has(p.chunk) {
				f(passageNumber(i, p.chunk), p.tf == titled)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
