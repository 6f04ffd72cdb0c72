package pgvector

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// Graph returns the graph of the passages that a search for q by access may find, as
// index.Searcher.Graph does. It has its own transaction until it is closed, or until ctx ends.
func (x *Index) Graph(ctx context.Context, access assay.Access, q assay.Query) (index.Graph, error) {
	if err := x.use(); err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	s, err := x.begin(ctx, "")
	if err != nil {
		x.calls.Done()
		return nil, fmt.Errorf("graph: %w", err)
	}
	g := &passageGraph{Index: x, ctx: ctx, snapshot: s, numbers: make(map[string]uint32), known: make(map[uint64]*passage), byID: make(map[[16]byte]uint64)}
	if err := g.start(access, q); err != nil {
		g.Close()
		return nil, fmt.Errorf("graph: %w", err)
	}
	return g, nil
}

// A passageGraph implements index.Graph. The number of a passage is that of its chunk. What it has
// read it keeps, because a walk comes to the same places again.
type passageGraph struct {
	*Index
	*snapshot
	ctx      context.Context
	scope    scope
	passages int
	closed   bool

	entities []graphEntity
	numbers  map[string]uint32 // of entities, by key
	known    map[uint64]*passage
	byID     map[[16]byte]uint64
}

// A graphEntity is an entity that has been seen.
type graphEntity struct {
	key    string
	count  int // passages that name it; -1: not counted yet
	named  []naming
	listed bool // named has been read
}

// A naming is a passage that names an entity.
type naming struct {
	passage uint64
	title   bool
}

// A passage is a passage that has been seen.
type passage struct {
	id    [16]byte
	keys  []string
	title []bool
	read  bool // keys and title have been read
}

// start counts the passages.
func (g *passageGraph) start(access assay.Access, q assay.Query) error {
	if access.IsZero() {
		return nil
	}
	seen, err := g.sight(g.ctx, g.snapshot, access)
	if err != nil {
		return err
	}
	if err := seen.checkFilter(g.ctx, g.tx, q.Filter); err != nil {
		return err
	}
	if g.scope, err = seen.scope(g.ctx, g.tx, q); err != nil {
		return err
	}
	if q.Filter.IsZero() {
		const query = `SELECT coalesce(sum(n), 0)::bigint FROM count WHERE what = $1 AND name = '' AND class = ANY($2::int[])`
		return g.tx.QueryRow(g.ctx, query, countChunks, g.scope.classes).Scan(&g.passages)
	}
	var a arguments
	query := `SELECT count(*) FROM passage p WHERE ` + g.scope.where("p", &a)
	return g.tx.QueryRow(g.ctx, query, a...).Scan(&g.passages)
}

// Close implements index.Graph.
func (g *passageGraph) Close() {
	if g.closed {
		return
	}
	g.closed = true
	_ = endTx(g.ctx, g.tx) // the pool drops a connection that cannot end its transaction
	g.calls.Done()
}

// Passages implements index.Graph.
func (g *passageGraph) Passages() int { return g.passages }

// Passage implements index.Graph. If the passage cannot be read, it is not in the graph, and a later
// call of another method returns the error.
func (g *passageGraph) Passage(chunk string) (number uint64, ok bool) {
	id, ok := index.ParseID(chunk)
	if !ok {
		return 0, false
	}
	if number, ok := g.byID[id]; ok {
		return number, true
	}
	if len(g.scope.classes) == 0 {
		return 0, false
	}
	if err := g.read("p.id = ", id); err != nil {
		return 0, false
	}
	number, ok = g.byID[id]
	return number, ok
}

// read reads the passage of which a column has a value, with its entities.
func (g *passageGraph) read(column string, value any) error {
	var a arguments
	query := `SELECT p.chunk, p.id, p.keys, p.titles FROM passage p WHERE ` + column + a.add(value) + ` AND ` + g.scope.where("p", &a)
	rows, err := g.tx.Query(g.ctx, query, a...)
	if err != nil {
		return err
	}
	var keys []string
	for rows.Next() {
		var number int64
		p := &passage{read: true}
		if err := rows.Scan(&number, &p.id, &p.keys, &p.title); err != nil {
			return err
		}
		p.sort()
		keys = append(keys, p.keys...)
		g.known[uint64(number)] = p
		g.byID[p.id] = uint64(number)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return g.count(keys)
}

// sort decodes the keys of a passage and sorts them.
func (p *passage) sort() {
	order := make([]int, len(p.keys))
	for i := range order {
		order[i] = i
		p.keys[i] = decode(p.keys[i])
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(p.keys[a], p.keys[b]) })
	keys, title := make([]string, len(order)), make([]bool, len(order))
	for to, from := range order {
		keys[to], title[to] = p.keys[from], p.title[from]
	}
	p.keys, p.title = keys, title
}

// count counts the passages that name entities, all in one statement.
func (g *passageGraph) count(keys []string) error {
	var terms []int64
	of := make(map[int64]uint32)
	for _, key := range keys {
		n := g.Entity(key)
		if g.entities[n].count < 0 {
			term := entityOf(key)
			terms, of[term] = append(terms, term), n
		}
	}
	if len(terms) == 0 {
		return nil
	}
	query := `SELECT term, sum(n)::bigint FROM term WHERE term = ANY($1::bigint[]) AND class = ANY($2::int[]) GROUP BY term`
	a := arguments{terms, g.scope.classes}
	if !g.scope.filter.IsZero() {
		a = arguments{terms}
		query = `SELECT t.term, (SELECT count(*) FROM passage p WHERE p.terms @> ARRAY[t.term] AND ` + g.scope.where("p", &a) + `) FROM unnest($1::bigint[]) AS t(term)`
	}
	rows, err := g.tx.Query(g.ctx, query, a...)
	if err != nil {
		return err
	}
	for _, n := range of {
		g.entities[n].count = 0
	}
	for rows.Next() {
		var term int64
		var n int
		if err := rows.Scan(&term, &n); err != nil {
			return err
		}
		g.entities[of[term]].count = n
	}
	return rows.Err()
}

// Chunk implements index.Graph.
func (g *passageGraph) Chunk(number uint64) string { return index.FormatID(g.known[number].id) }

// Compare implements index.Graph.
func (g *passageGraph) Compare(a, b uint64) int {
	x, y := g.known[a].id, g.known[b].id
	return bytes.Compare(x[:], y[:])
}

// Entity implements index.Graph.
func (g *passageGraph) Entity(key string) uint32 {
	n, ok := g.numbers[key]
	if !ok {
		n = uint32(len(g.entities))
		g.entities = append(g.entities, graphEntity{key: key, count: -1})
		g.numbers[key] = n
	}
	return n
}

// Key implements index.Graph.
func (g *passageGraph) Key(entity uint32) string { return g.entities[entity].key }

// Entities implements index.Graph.
func (g *passageGraph) Entities(number uint64, f func(entity uint32, title bool)) error {
	p := g.known[number]
	if !p.read {
		if err := g.read("p.chunk = ", int64(number)); err != nil {
			return err
		}
		p = g.known[number]
	}
	for i, key := range p.keys {
		f(g.Entity(key), p.title[i])
	}
	return nil
}

// Count implements index.Graph.
func (g *passageGraph) Count(entity uint32) (int, error) {
	if g.entities[entity].count < 0 {
		if err := g.count([]string{g.entities[entity].key}); err != nil {
			return 0, err
		}
	}
	return g.entities[entity].count, nil
}

// Named implements index.Graph.
func (g *passageGraph) Named(entity uint32, f func(passage uint64, title bool)) error {
	e := &g.entities[entity]
	if !e.listed {
		if err := g.list(e); err != nil {
			return err
		}
	}
	for _, n := range e.named {
		f(n.passage, n.title)
	}
	return nil
}

// list reads the passages that name an entity.
func (g *passageGraph) list(e *graphEntity) error {
	var a arguments
	term := a.add(entityOf(e.key)) + "::bigint"
	query := `SELECT p.chunk, p.id, p.titles[array_position(p.terms, ` + term + `)] FROM passage p
		WHERE p.terms @> ARRAY[` + term + `] AND ` + g.scope.where("p", &a)
	rows, err := g.tx.Query(g.ctx, query, a...)
	if err != nil {
		return err
	}
	for rows.Next() {
		var number int64
		var id [16]byte
		var n naming
		if err := rows.Scan(&number, &id, &n.title); err != nil {
			return err
		}
		n.passage = uint64(number)
		e.named = append(e.named, n)
		if g.known[n.passage] == nil {
			g.known[n.passage] = &passage{id: id}
			g.byID[id] = n.passage
		}
	}
	e.listed = true
	slices.SortFunc(e.named, func(a, b naming) int { return cmp.Compare(a.passage, b.passage) })
	return rows.Err()
}
