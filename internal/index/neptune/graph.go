package neptune

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/prefetch"
)

// Limits of what one statement returns.
const (
	maxFiltered = 10_000 // documents, see readMetadata
	maxPassages = 200    // with their names
	maxNamed    = 10_000 // passages that name the entities asked for, unless one alone has more
	maxEntities = 1000
)

// A passageGraph is the graph of the passages that a search may find. See prefetch.Graph.
type passageGraph struct {
	*prefetch.Graph
	x     *Index
	scope *scope // nil: there are no passages
}

// Graph returns the graph of the passages that a search for q by access may find: those of the last
// Flush, without the documents that changed since. Its type implements graph.Prefetcher.
func (x *Index) Graph(ctx context.Context, access assay.Access, q assay.Query) (index.Graph, error) {
	g := &passageGraph{x: x}
	g.Graph = prefetch.New(g.fetch)
	if access.IsZero() {
		return g, nil
	}
	if err := g.start(ctx, access, q); err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	return g, nil
}

// start reads the state, the documents that the filter keeps and the number of passages.
func (g *passageGraph) start(ctx context.Context, access assay.Access, q assay.Query) error {
	if err := q.Filter.Check(nil); err != nil {
		return err
	}
	st, err := g.x.state(ctx)
	if err != nil {
		return err
	}
	// The state is read first, so that it is not ahead of its source.
	sequence, err := g.x.source.Sequence(ctx)
	if err != nil {
		return err
	}
	if err := g.x.usable(st, sequence); err != nil {
		return err
	}
	changed, err := g.x.changes.since(ctx, g.x.source, st.Sequence, sequence)
	if err != nil {
		return err
	}
	s := newScope(g.x.tenant, access, q.Collections, st.Sequence, changed)
	if !q.Filter.IsZero() {
		if s.documents, err = g.x.filtered(ctx, s, q.Filter); err != nil {
			return err
		}
	}
	rows, err := run[struct{ Passages *int }](ctx, g.x.graph, countPassages, s.parameters(nil))
	if err != nil {
		return err
	}
	if len(rows) != 1 || rows[0].Passages == nil || *rows[0].Passages < 0 {
		return errReply
	}
	g.scope, g.Total = s, *rows[0].Passages
	return nil
}

// filtered returns the documents in a scope that a filter keeps.
func (x *Index) filtered(ctx context.Context, s *scope, f assay.Filter) ([]string, error) {
	rows, err := run[struct {
		shownRow
		Metadata string
	}](ctx, x.graph, readMetadata, s.parameters(nil))
	if err != nil {
		return nil, err
	}
	if len(rows) > maxFiltered {
		return nil, fmt.Errorf("a filter over more than %d documents: %w", maxFiltered, assay.ErrUnavailable)
	}
	kinds := make(map[string][]assay.ValueKind)
	kept := []string{}
	for _, r := range rows {
		var m assay.Metadata
		if !s.shows(r.shownRow) {
			return nil, errForeignRow
		}
		if err := json.Unmarshal([]byte(r.Metadata), &m); err != nil {
			return nil, fmt.Errorf("metadata of document %s: %w", r.Document, errReply)
		}
		for key, v := range m {
			if !slices.Contains(kinds[key], v.Kind) {
				kinds[key] = append(kinds[key], v.Kind)
			}
		}
		if f.Match(m) {
			kept = append(kept, r.Document)
		}
	}
	slices.Sort(kept)
	return kept, f.Check(func(key string) []assay.ValueKind { return kinds[key] })
}

var (
	errReply      = fmt.Errorf("the reply of Neptune is not valid: %w", assay.ErrUnavailable)
	errForeignRow = fmt.Errorf("an answer of Neptune had something that was not asked for, or that the caller may not see; all of it was dropped: %w", assay.ErrUnavailable)
)

// A scope is what one access may see in one state, and what a query keeps of it.
type scope struct {
	tenant      namespace
	readers     []string
	everywhere  bool // no matter the collection
	collections []string
	sequence    int64
	changed     []string // documents that are left out, sorted
	documents   []string // that the filter keeps, sorted; nil: there is no filter
}

func newScope(tenant namespace, access assay.Access, collections []string, sequence int64, changed []string) *scope {
	s := &scope{tenant: tenant, readers: readersOfAccess(access), sequence: sequence, changed: changed, collections: []string{}}
	narrowed := access.Collections()
	s.everywhere = narrowed == nil && len(collections) == 0
	switch {
	case narrowed == nil:
		s.collections = append(s.collections, collections...)
	case len(collections) == 0:
		s.collections = narrowed
	default:
		for _, c := range collections {
			if slices.Contains(narrowed, c) {
				s.collections = append(s.collections, c)
			}
		}
	}
	return s
}

// parameters returns the parameters of a statement within the scope, after adding those of more.
func (s *scope) parameters(more parameters) parameters {
	p := parameters{
		"tenant": string(s.tenant), "readers": s.tenant.all(s.readers, s.tenant.reader), "everywhere": s.everywhere, "collections": s.collections,
		"sequence": s.sequence, "changed": append([]string{}, s.changed...), "unfiltered": s.documents == nil, "documents": append([]string{}, s.documents...),
	}
	for name, v := range more {
		p[name] = v
	}
	return p
}

// A shownRow has the columns by which a row is checked again; see the constant shown.
type shownRow struct {
	Tenant     string
	Document   string
	Collection string
	Sequence   int64
	Readers    []string
}

// shows reports whether a row is in the scope.
func (s *scope) shows(r shownRow) bool {
	complete := r.Document != "" && len(r.Readers) > 0
	current := r.Sequence >= 1 && r.Sequence <= s.sequence
	if r.Tenant != string(s.tenant) || !complete || !current {
		return false
	}
	for _, name := range r.Readers {
		if !slices.Contains(s.readers, name) {
			return false
		}
	}
	if _, changed := slices.BinarySearch(s.changed, r.Document); changed {
		return false
	}
	if _, kept := slices.BinarySearch(s.documents, r.Document); !kept && s.documents != nil {
		return false
	}
	return s.everywhere || slices.Contains(s.collections, r.Collection)
}

// fetch reads the passages of chunks, the passages that name entities, and the counts of all
// entities that have been seen.
func (g *passageGraph) fetch(ctx context.Context, chunks []string, entities []uint32) error {
	err := g.readPassages(ctx, chunks)
	if err == nil {
		err = g.readNamed(ctx, entities)
	}
	if err == nil {
		err = g.count(ctx)
	}
	if err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	return nil
}

// readPassages reads the passages of chunks, with what they name.
func (g *passageGraph) readPassages(ctx context.Context, chunks []string) error {
	if g.scope == nil {
		return nil
	}
	tenant := g.scope.tenant
	for part := range slices.Chunk(chunks, maxPassages) {
		rows, err := run[struct {
			shownRow
			Chunk string
			Names []struct {
				Key   *string
				Title *bool
			}
		}](ctx, g.x.graph, readPassages, g.scope.parameters(parameters{"passages": tenant.all(part, tenant.passage)}))
		if err != nil {
			return err
		}
		for _, r := range rows {
			if !g.scope.shows(r.shownRow) || !slices.Contains(part, r.Chunk) {
				return errForeignRow
			}
			n := g.Number(r.Chunk)
			if g.SeenPassages[n].Read {
				continue
			}
			var names []prefetch.Name
			for _, name := range r.Names {
				switch {
				case name.Key == nil && name.Title == nil: // it names nothing
				case name.Key == nil || name.Title == nil:
					return errReply
				default:
					names = append(names, prefetch.Name{Entity: g.Entity(*name.Key), Title: *name.Title})
				}
			}
			g.SetNames(n, names)
		}
	}
	return nil
}

// readNamed reads the passages that name entities. Their counts must be known.
func (g *passageGraph) readNamed(ctx context.Context, entities []uint32) error {
	var part []uint32
	size := 0
	for _, n := range entities {
		e := &g.SeenEntities[n]
		if e.Read || slices.Contains(part, n) {
			continue
		}
		if g.scope == nil {
			e.Read = true
			continue
		}
		if size+max(0, e.Count) > maxNamed || len(part) >= maxEntities {
			if err := g.readPart(ctx, part); err != nil {
				return err
			}
			part, size = nil, 0
		}
		part, size = append(part, n), size+max(0, e.Count)
	}
	return g.readPart(ctx, part)
}

// readPart reads the passages that name entities by one statement.
func (g *passageGraph) readPart(ctx context.Context, part []uint32) error {
	if len(part) == 0 {
		return nil
	}
	rows, err := run[struct {
		shownRow
		Key   string
		Title *bool
		Chunk string
	}](ctx, g.x.graph, readNamed, g.scope.parameters(parameters{"entities": g.entityIDs(part)}))
	if err != nil {
		return err
	}
	for _, r := range rows {
		n, known := g.Lookup(r.Key)
		switch {
		case !g.scope.shows(r.shownRow) || !known || !slices.Contains(part, n):
			return errForeignRow
		case r.Chunk == "" || r.Title == nil:
			return errReply
		}
		e := &g.SeenEntities[n]
		e.Named = append(e.Named, prefetch.Share{Passage: g.Number(r.Chunk), Title: *r.Title})
		if len(e.Named) > e.Count {
			return errReply
		}
	}
	for _, n := range part {
		g.SeenEntities[n].Read = true
	}
	return nil
}

func (g *passageGraph) entityIDs(part []uint32) []string {
	ids := make([]string, len(part))
	for i, n := range part {
		ids[i] = g.scope.tenant.entity(g.SeenEntities[n].Key)
	}
	return ids
}

// count reads the counts of the entities that have none yet.
func (g *passageGraph) count(ctx context.Context) error {
	for part := range slices.Chunk(g.Uncounted(), maxEntities) {
		for _, n := range part {
			g.SeenEntities[n].Count = 0
		}
		if g.scope == nil {
			continue
		}
		rows, err := run[struct {
			Key      string
			Passages int
		}](ctx, g.x.graph, countNamed, g.scope.parameters(parameters{"entities": g.entityIDs(part)}))
		if err != nil {
			return err
		}
		for _, r := range rows {
			n, known := g.Lookup(r.Key)
			switch {
			case !known || !slices.Contains(part, n):
				return errForeignRow
			case r.Passages < 1 || r.Passages > g.Total:
				return errReply
			}
			g.SeenEntities[n].Count = r.Passages
		}
	}
	return nil
}
