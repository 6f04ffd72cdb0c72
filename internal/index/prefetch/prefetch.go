// Package prefetch keeps what an index has read of an entity graph that is on a server.
package prefetch

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A Graph is the part of a graph that was read from a server. It implements index.Graph and graph.Prefetcher.
// Methods return an error for a passage or an entity that was not read yet. Use New to make one.
type Graph struct {
	Total        int       // passages of the whole graph
	SeenPassages []Passage // by number
	SeenEntities []Entity  // by number

	fetch   func(ctx context.Context, chunks []string, entities []uint32) error
	numbers map[string]uint64 // passage numbers by chunk
	byKey   map[string]uint32 // entity numbers by key
}

// A Passage is a passage that has been seen.
type Passage struct {
	Chunk string
	Read  bool   // Names has all entities
	Names []Name // sorted by key, see SetNames
}

// A Name is an entity that a passage names.
type Name struct {
	Entity uint32
	Title  bool
}

// An Entity is an entity that has been seen.
type Entity struct {
	Key   string
	Count int // passages that name it; -1: not read
	Named []Share
	Read  bool // Named has all passages
}

// A Share is a passage that names an entity.
type Share struct {
	Passage uint64
	Title   bool
}

// New returns an empty part of a graph. fetch reads the passages of chunks, the passages that name
// entities, and the counts of all SeenEntities without one.
func New(fetch func(ctx context.Context, chunks []string, entities []uint32) error) *Graph {
	return &Graph{fetch: fetch, numbers: make(map[string]uint64), byKey: make(map[string]uint32)}
}

// Number returns the number of a chunk's passage, which is now seen.
func (g *Graph) Number(chunk string) uint64 {
	n, ok := g.numbers[chunk]
	if !ok {
		n = uint64(len(g.SeenPassages))
		g.numbers[chunk] = n
		g.SeenPassages = append(g.SeenPassages, Passage{Chunk: chunk})
	}
	return n
}

// SetNames sets all entities that a passage names.
func (g *Graph) SetNames(passage uint64, names []Name) {
	slices.SortFunc(names, func(a, b Name) int { return strings.Compare(g.Key(a.Entity), g.Key(b.Entity)) })
	p := &g.SeenPassages[passage]
	p.Names, p.Read = names, true
}

// Lookup returns the number of an entity that has been seen.
func (g *Graph) Lookup(key string) (entity uint32, ok bool) {
	entity, ok = g.byKey[key]
	return entity, ok
}

// Uncounted returns the entities whose passages were not counted.
func (g *Graph) Uncounted() []uint32 {
	var unknown []uint32
	for n := range g.SeenEntities {
		if g.SeenEntities[n].Count < 0 {
			unknown = append(unknown, uint32(n))
		}
	}
	return unknown
}

// Close implements index.Graph.
func (g *Graph) Close() {}

// Passages implements index.Graph.
func (g *Graph) Passages() int { return g.Total }

// Passage implements index.Graph. It knows the passages that have been seen.
func (g *Graph) Passage(chunk string) (passage uint64, ok bool) {
	passage, ok = g.numbers[chunk]
	return passage, ok
}

// Chunk implements index.Graph.
func (g *Graph) Chunk(passage uint64) string { return g.SeenPassages[passage].Chunk }

// Compare implements index.Graph.
func (g *Graph) Compare(a, b uint64) int { return strings.Compare(g.Chunk(a), g.Chunk(b)) }

// Entity implements index.Graph.
func (g *Graph) Entity(key string) uint32 {
	n, ok := g.byKey[key]
	if !ok {
		n = uint32(len(g.SeenEntities))
		g.byKey[key] = n
		g.SeenEntities = append(g.SeenEntities, Entity{Key: key, Count: -1})
	}
	return n
}

// Key implements index.Graph.
func (g *Graph) Key(entity uint32) string { return g.SeenEntities[entity].Key }

// Entities implements index.Graph.
func (g *Graph) Entities(passage uint64, f func(entity uint32, title bool)) error {
	p := &g.SeenPassages[passage]
	if !p.Read {
		return fmt.Errorf("graph: the entities of chunk %s were not prefetched", p.Chunk)
	}
	for _, n := range p.Names {
		f(n.Entity, n.Title)
	}
	return nil
}

// Count implements index.Graph.
func (g *Graph) Count(entity uint32) (int, error) {
	e := &g.SeenEntities[entity]
	if e.Count < 0 {
		return 0, fmt.Errorf("graph: the passages of entity %q were not counted", e.Key)
	}
	return e.Count, nil
}

// Named implements index.Graph.
func (g *Graph) Named(entity uint32, f func(passage uint64, title bool)) error {
	e := &g.SeenEntities[entity]
	if !e.Read {
		return fmt.Errorf("graph: the passages of entity %q were not prefetched", e.Key)
	}
	for _, s := range e.Named {
		f(s.Passage, s.Title)
	}
	return nil
}

// PrefetchStart implements graph.Prefetcher.
func (g *Graph) PrefetchStart(ctx context.Context, chunks, keys []string) error {
	for _, key := range keys {
		g.Entity(key)
	}
	return g.fetch(ctx, chunks, nil)
}

// Prefetch implements graph.Prefetcher.
func (g *Graph) Prefetch(ctx context.Context, passages []uint64, entities []uint32) error {
	var chunks []string
	for _, n := range passages {
		if p := &g.SeenPassages[n]; !p.Read {
			chunks = append(chunks, p.Chunk)
		}
	}
	return g.fetch(ctx, chunks, entities)
}
