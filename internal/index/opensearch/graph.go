package opensearch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/index"
)

// A remoteGraph is the graph of the passages that one view lets an access find. It knows what it has
// prefetched (see graph.Prefetcher), and asking for anything else is an error.
type remoteGraph struct {
	x      *Index
	view   *view
	filter object // of the passages; nil: there are none
	total  int

	passages []graphPassage
	numbers  map[string]uint64 // passage numbers by chunk
	entities []graphEntity
	byKey    map[string]uint32 // entity numbers by key
}

// A graphPassage is a passage that has been seen.
type graphPassage struct {
	chunk string
	read  bool
	names []graphName // sorted by key
}

// A graphName is an entity that a passage names.
type graphName struct {
	entity uint32
	title  bool
}

// A graphEntity is an entity that has been seen.
type graphEntity struct {
	key   string
	count int // of the passages that name it; -1: not read
	named []graphShare
	read  bool // named has all passages
}

// A graphShare is a passage that names an entity.
type graphShare struct {
	passage uint64
	title   bool
}

// Graph returns the graph of the passages that a search for q by access may find. It sees what Search
// sees, and must be used within seconds: the state that it reads is not kept for it. Its type
// implements graph.Prefetcher.
func (x *Index) Graph(ctx context.Context, access assay.Access, q assay.Query) (index.Graph, error) {
	g := &remoteGraph{x: x, numbers: make(map[string]uint64), byKey: make(map[string]uint32)}
	err := x.read(ctx, func(v *view) error {
		g.view = v
		if access.IsZero() {
			return nil
		}
		seen, err := x.look(ctx, v, access, q.Filter)
		if err != nil {
			return err
		}
		filter, err := kept(seen.scope, q)
		if err != nil {
			return err
		}
		g.filter = all(filter, termQuery("kind", kindText))
		var answer hitList
		if err := x.cluster.query(ctx, v.state, object{"size": 0, "track_total_hits": true, "query": g.filter}, &answer); err != nil {
			return err
		}
		g.total = answer.Hits.Total.Value
		return nil
	})
	if err == nil && g.view == nil && !access.IsZero() {
		err = checkEmpty(q.Filter)
	}
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	return g, nil
}

// Close implements index.Graph.
func (g *remoteGraph) Close() {}

// Passages implements index.Graph.
func (g *remoteGraph) Passages() int { return g.total }

// Passage implements index.Graph. It knows the passages that have been prefetched.
func (g *remoteGraph) Passage(chunk string) (passage uint64, ok bool) {
	passage, ok = g.numbers[chunk]
	return passage, ok
}

// Chunk implements index.Graph.
func (g *remoteGraph) Chunk(passage uint64) string { return g.passages[passage].chunk }

// Compare implements index.Graph.
func (g *remoteGraph) Compare(a, b uint64) int {
	return strings.Compare(g.passages[a].chunk, g.passages[b].chunk)
}

// Entity implements index.Graph.
func (g *remoteGraph) Entity(key string) uint32 {
	n, ok := g.byKey[key]
	if !ok {
		n = uint32(len(g.entities))
		g.byKey[key] = n
		g.entities = append(g.entities, graphEntity{key: key, count: -1})
	}
	return n
}

// Key implements index.Graph.
func (g *remoteGraph) Key(entity uint32) string { return g.entities[entity].key }

// Entities implements index.Graph.
func (g *remoteGraph) Entities(passage uint64, f func(entity uint32, title bool)) error {
	p := &g.passages[passage]
	if !p.read {
		return fmt.Errorf("graph: the entities of chunk %s were not prefetched", p.chunk)
	}
	for _, n := range p.names {
		f(n.entity, n.title)
	}
	return nil
}

// Count implements index.Graph.
func (g *remoteGraph) Count(entity uint32) (int, error) {
	e := &g.entities[entity]
	if e.count < 0 {
		return 0, fmt.Errorf("graph: the passages of entity %q were not counted", e.key)
	}
	return e.count, nil
}

// Named implements index.Graph.
func (g *remoteGraph) Named(entity uint32, f func(passage uint64, title bool)) error {
	e := &g.entities[entity]
	if !e.read {
		return fmt.Errorf("graph: the passages of entity %q were not prefetched", e.key)
	}
	for _, s := range e.named {
		f(s.passage, s.title)
	}
	return nil
}

// PrefetchStart implements graph.Prefetcher.
func (g *remoteGraph) PrefetchStart(ctx context.Context, chunks, keys []string) error {
	for _, key := range keys {
		g.Entity(key)
	}
	return g.prefetch(ctx, chunks, nil)
}

// Prefetch implements graph.Prefetcher.
func (g *remoteGraph) Prefetch(ctx context.Context, passages []uint64, entities []uint32) error {
	var chunks []string
	for _, n := range passages {
		if p := &g.passages[n]; !p.read {
			chunks = append(chunks, p.chunk)
		}
	}
	return g.prefetch(ctx, chunks, entities)
}

// prefetch reads the passages of chunks, the passages that name entities, and the counts of all
// entities that have been seen.
func (g *remoteGraph) prefetch(ctx context.Context, chunks []string, entities []uint32) error {
	if g.filter == nil {
		for i := range g.entities {
			g.entities[i].count = 0
		}
		return nil
	}
	if err := g.x.begin(); err != nil {
		return err
	}
	defer g.x.calls.Done()
	for part := range slices.Chunk(chunks, maxLookup) {
		if _, err := g.readPassages(ctx, termsQuery("chunk", part), len(part)); err != nil {
			return fmt.Errorf("graph: %w", err)
		}
	}
	if err := g.readNamed(ctx, entities); err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	if err := g.count(ctx); err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	if time.Now().After(g.view.until) {
		return fmt.Errorf("graph: it was used for more than %v: %w", g.x.grace, assay.ErrUnavailable)
	}
	return nil
}

// readPassages reads passages that a query finds, with their entities.
func (g *remoteGraph) readPassages(ctx context.Context, query object, size int) ([]uint64, error) {
	rows, err := g.x.rows(ctx, g.view.state, all(g.filter, query), size, "chunk", "entities", "titles")
	if err != nil {
		return nil, err
	}
	var list []uint64
	for _, r := range rows {
		n, ok := g.numbers[r.Chunk]
		if !ok {
			n = uint64(len(g.passages))
			g.numbers[r.Chunk] = n
			g.passages = append(g.passages, graphPassage{chunk: r.Chunk})
		}
		list = append(list, n)
		p := &g.passages[n]
		if p.read {
			continue
		}
		p.read = true
		for _, token := range r.Entities {
			p.names = append(p.names, graphName{g.Entity(unkeyword(token)), slices.Contains(r.Titles, token)})
		}
		slices.SortFunc(p.names, func(a, b graphName) int { return strings.Compare(g.Key(a.entity), g.Key(b.entity)) })
	}
	return list, nil
}

// readNamed reads the passages that name entities. Their counts must be known.
func (g *remoteGraph) readNamed(ctx context.Context, entities []uint32) error {
	wanted := make(map[uint32]bool)
	var tokens []string
	size := 0
	flush := func() error {
		if len(wanted) == 0 {
			return nil
		}
		passages, err := g.readPassages(ctx, termsQuery("entities", tokens), size)
		if err != nil {
			return err
		}
		for _, n := range passages {
			for _, name := range g.passages[n].names {
				if e := &g.entities[name.entity]; !e.read && wanted[name.entity] {
					e.named = append(e.named, graphShare{n, name.title})
				}
			}
		}
		for n := range wanted {
			g.entities[n].read = true
		}
		clear(wanted)
		tokens, size = nil, 0
		return nil
	}
	for _, n := range entities {
		e := &g.entities[n]
		if e.read || wanted[n] {
			continue
		}
		if size+max(0, e.count) > maxHits || len(wanted) >= maxLookup {
			if err := flush(); err != nil {
				return err
			}
		}
		wanted[n] = true
		tokens, size = append(tokens, keyword(e.key)), size+max(0, e.count)
	}
	return flush()
}

// maxCounted is the largest number of entities that are counted by one request.
const maxCounted = 10_000

// count reads the counts of the entities that have none yet.
func (g *remoteGraph) count(ctx context.Context) error {
	var unknown []uint32
	for n := range g.entities {
		if g.entities[n].count < 0 {
			unknown = append(unknown, uint32(n))
		}
	}
	for part := range slices.Chunk(unknown, maxCounted) {
		tokens := make([]string, len(part))
		for i, n := range part {
			tokens[i] = keyword(g.entities[n].key)
			g.entities[n].count = 0
		}
		var answer struct {
			Aggregations struct {
				Entities struct {
					Buckets []struct {
						Key   string
						Count int `json:"doc_count"`
					}
				}
			}
		}
		body := object{
			"size": 0, "track_total_hits": false, "query": all(g.filter, termsQuery("entities", tokens)),
			"aggs": object{"entities": object{"terms": object{
				"field": "entities", "include": tokens, "size": len(tokens), "shard_size": len(tokens), "execution_hint": "map",
			}}},
		}
		if err := g.x.cluster.query(ctx, g.view.state, body, &answer); err != nil {
			return err
		}
		for _, b := range answer.Aggregations.Entities.Buckets {
			g.entities[g.Entity(unkeyword(b.Key))].count = b.Count
		}
	}
	return nil
}

// unkeyword is the inverse of keyword for names that are kept as a whole.
func unkeyword(token string) string { return unlatin(token[min(1, len(token)):]) }

// entityTokens returns the tokens of the entities of a passage, and those that are titles. Names of
// over maxToken/8 bytes are left out.
func entityTokens(found []entity.Entity) (entities, titles []string) {
	slices.SortFunc(found, func(a, b entity.Entity) int { return cmp.Compare(a.Key, b.Key) })
	for _, e := range found {
		if len(e.Key) > maxToken/8 {
			continue
		}
		entities = append(entities, keyword(e.Key))
		if e.Title {
			titles = append(titles, keyword(e.Key))
		}
	}
	return entities, titles
}
