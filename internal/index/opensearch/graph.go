package opensearch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/prefetch"
)

// A remoteGraph is the graph of the passages that one view lets an access find. See
// prefetch.Graph.
type remoteGraph struct {
	*prefetch.Graph
	x      *Index
	view   *view
	filter object  // of the passages; nil: there are none
	known  *counts // that cache how many of these passages name an entity; nil: they are of other passages
}

// Graph returns the graph of the passages that a search for q by access may find. It sees what Search
// sees, and must be used within seconds: the state that it reads is not kept for it. Its type
// implements graph.Prefetcher.
func (x *Index) Graph(ctx context.Context, access assay.Access, q assay.Query) (index.Graph, error) {
	g := &remoteGraph{x: x}
	g.Graph = prefetch.New(g.fetch)
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
		g.Total = seen.chunks
		if restricted(q) {
			g.Total, err = x.total(ctx, v, g.filter)
		} else if seen.less == nil {
			g.known = seen.all
		}
		return err
	})
	if err == nil && g.view == nil && !access.IsZero() {
		err = checkEmpty(q.Filter)
	}
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	return g, nil
}

// fetch reads the passages of chunks, the passages that name entities, and the counts of all
// entities that have been seen.
func (g *remoteGraph) fetch(ctx context.Context, chunks []string, entities []uint32) error {
	if g.filter == nil {
		for i := range g.SeenEntities {
			g.SeenEntities[i].Count = 0
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

// readPassages reads passages that a query finds, with their entities. They come from columns, because
// a walk reads thousands of passages, whose stored rows have more to read.
func (g *remoteGraph) readPassages(ctx context.Context, query object, size int) ([]uint64, error) {
	var answer struct {
		Hits struct {
			Hits []struct {
				Fields struct{ Chunk, Entities, Titles []string }
			}
		}
	}
	body := object{
		"size": size, "track_total_hits": false, "sort": []string{"_doc"}, "query": all(g.filter, query),
		"stored_fields": "_none_", "docvalue_fields": []string{"chunk", "entities", "titles"},
	}
	if err := g.x.cluster.query(ctx, g.view.state, body, &answer); err != nil {
		return nil, err
	}
	var list []uint64
	for _, h := range answer.Hits.Hits {
		n := g.Number(first(h.Fields.Chunk))
		list = append(list, n)
		if g.SeenPassages[n].Read {
			continue
		}
		var names []prefetch.Name
		for _, token := range h.Fields.Entities {
			names = append(names, prefetch.Name{Entity: g.Entity(unkeyword(token)), Title: slices.Contains(h.Fields.Titles, token)})
		}
		g.SetNames(n, names)
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
			for _, name := range g.SeenPassages[n].Names {
				if e := &g.SeenEntities[name.Entity]; !e.Read && wanted[name.Entity] {
					e.Named = append(e.Named, prefetch.Share{Passage: n, Title: name.Title})
				}
			}
		}
		for n := range wanted {
			g.SeenEntities[n].Read = true
		}
		clear(wanted)
		tokens, size = nil, 0
		return nil
	}
	for _, n := range entities {
		e := &g.SeenEntities[n]
		if e.Read || wanted[n] {
			continue
		}
		if size+max(0, e.Count) > maxHits || len(wanted) >= maxLookup {
			if err := flush(); err != nil {
				return err
			}
		}
		wanted[n] = true
		tokens, size = append(tokens, keyword(e.Key)), size+max(0, e.Count)
	}
	return flush()
}

// maxCounted is the largest number of entities that are counted by one request.
const maxCounted = 10_000

// count reads the counts of the entities that have none yet.
func (g *remoteGraph) count(ctx context.Context) error {
	var unknown []uint32
	for _, n := range g.Uncounted() {
		e := &g.SeenEntities[n]
		if count, ok := g.known.naming(e.Key); ok {
			e.Count = count
		} else {
			unknown = append(unknown, n)
		}
	}
	for part := range slices.Chunk(unknown, maxCounted) {
		if err := g.countPart(ctx, part); err != nil {
			return err
		}
		g.known.keepNaming(g.SeenEntities, part)
	}
	return nil
}

// countPart reads the counts of entities.
func (g *remoteGraph) countPart(ctx context.Context, part []uint32) error {
	tokens := make([]string, len(part))
	for i, n := range part {
		tokens[i] = keyword(g.SeenEntities[n].Key)
	}
	var answer struct {
		Aggregations struct {
			Entities bucketList
		}
	}
	body := object{
		"size": 0, "track_total_hits": false, "query": all(g.filter, termsQuery("entities", tokens)),
		"aggs": object{"entities": object{"terms": object{"field": "entities", "include": tokens, "size": len(tokens), "shard_size": len(tokens)}}},
	}
	if err := g.x.cluster.query(ctx, g.view.state, body, &answer); err != nil {
		return err
	}
	for _, n := range part {
		g.SeenEntities[n].Count = 0
	}
	for _, b := range answer.Aggregations.Entities.Buckets {
		g.SeenEntities[g.Entity(unkeyword(b.Key))].Count = b.Count
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
