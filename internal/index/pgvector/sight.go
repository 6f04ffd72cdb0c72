package pgvector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/assay-rag/assay"
)

// A sight is what an access may see of one state of the index. It is computed once and cached for
// all searches of that state with that access.
type sight struct {
	classes     []int32
	collections map[int32]string // of the classes, encoded
	chunks      int
	length      int64    // sum of the chunks' lengths
	languages   []string // of the documents that have chunks, sorted
	few         bool     // the chunks are few of all, see settings.few

	mu    sync.Mutex
	kinds map[string][]assay.ValueKind // of the metadata keys looked up so far
	any   map[string]int               // visible chunks that have any of several terms
	kept  map[string][]int64           // scope.documents, by filter and collections
}

// sightCache caches sights, with the most recently used last.
type sightCache struct {
	mu   sync.Mutex
	list []cachedSight
}

type cachedSight struct {
	key   string
	sight *sight
}

// maxSights, maxLookups and maxKept are the numbers of sights, and of lookups and documents of filters
// in each, that are cached.
const (
	maxSights  = 64
	maxLookups = 256
	maxKept    = 8
)

func (c *sightCache) get(key string) *sight {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.list, func(s cachedSight) bool { return s.key == key })
	if i < 0 {
		return nil
	}
	found := c.list[i]
	c.list = append(slices.Delete(c.list, i, i+1), found)
	return found.sight
}

func (c *sightCache) put(key string, s *sight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) >= maxSights {
		c.list = slices.Delete(c.list, 0, 1)
	}
	c.list = append(c.list, cachedSight{key, s})
}

// sight returns what access sees in the snapshot.
func (x *Index) sight(ctx context.Context, s *snapshot, access assay.Access) (*sight, error) {
	key := fmt.Sprintf("%d %d %s", s.epoch, s.sequence, access.Key())
	if known := x.sights.get(key); known != nil {
		return known, nil
	}
	seen, err := readSight(ctx, s.tx, access)
	if err != nil {
		return nil, err
	}
	var all int // chunks, of all classes
	const query = `SELECT coalesce(sum(n), 0)::bigint FROM count WHERE what = $1`
	if err := s.tx.QueryRow(ctx, query, countChunks).Scan(&all); err != nil {
		return nil, err
	}
	seen.few = seen.chunks*x.settings.few <= all
	x.sights.put(key, seen)
	return seen, nil
}

func readSight(ctx context.Context, tx pgx.Tx, access assay.Access) (*sight, error) {
	seen := &sight{collections: make(map[int32]string), kinds: make(map[string][]assay.ValueKind), any: make(map[string]int), kept: make(map[string][]int64)}
	var collections []string // nil: all
	if narrowed := access.Collections(); narrowed != nil {
		collections = encodeAll(narrowed)
	}
	const classes = `SELECT no, collection FROM class
		WHERE (NOT restricted OR allow && $1::text[]) AND ($2::text[] IS NULL OR collection = ANY($2)) ORDER BY no`
	rows, err := tx.Query(ctx, classes, encodeAll(access.Names()), collections)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var no int32
		var collection string
		if err := rows.Scan(&no, &collection); err != nil {
			return nil, err
		}
		seen.classes = append(seen.classes, no)
		seen.collections[no] = collection
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	const counts = `SELECT what, name, sum(n)::bigint FROM count WHERE class = ANY($1::int[]) AND what = ANY($2) GROUP BY what, name`
	rows, err = tx.Query(ctx, counts, seen.classes, []string{countChunks, countLength, countLanguage})
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var what, name string
		var n int64
		if err := rows.Scan(&what, &name, &n); err != nil {
			return nil, err
		}
		switch what {
		case countChunks:
			seen.chunks = int(n)
		case countLength:
			seen.length = n
		case countLanguage:
			seen.languages = append(seen.languages, decode(name))
		}
	}
	slices.Sort(seen.languages)
	return seen, rows.Err()
}

// within returns the classes of the collections; none means all.
func (v *sight) within(collections []string) []int32 {
	if len(collections) == 0 {
		return v.classes
	}
	named := encodeAll(collections)
	kept := []int32{}
	for _, no := range v.classes {
		if slices.Contains(named, v.collections[no]) {
			kept = append(kept, no)
		}
	}
	return kept
}

// average returns the average weighted length of the chunks.
func (v *sight) average() float64 {
	if v.chunks == 0 {
		return 0
	}
	return float64(v.length) / float64(v.chunks)
}

// checkFilter returns the error documented by index.Index.Search for a filter with a key that no
// visible document has, or that visible documents have only with other kinds of values.
func (v *sight) checkFilter(ctx context.Context, tx pgx.Tx, f assay.Filter) error {
	wanted := make(map[string]bool)
	if err := f.Check(nil); err != nil {
		return err // before the keys of a filter above the limits are looked up
	}
	keysOf(f, wanted)
	kinds, err := v.kindsOf(ctx, tx, slices.Sorted(maps.Keys(wanted)))
	if err != nil {
		return err
	}
	return f.Check(func(key string) []assay.ValueKind { return kinds[key] })
}

// keysOf adds the keys of a filter.
func keysOf(f assay.Filter, keys map[string]bool) {
	if f.Key != "" {
		keys[f.Key] = true
	}
	for _, part := range f.Filters {
		keysOf(part, keys)
	}
}

// kindsOf returns the kinds of the visible values of metadata keys.
func (v *sight) kindsOf(ctx context.Context, tx pgx.Tx, keys []string) (map[string][]assay.ValueKind, error) {
	found := make(map[string][]assay.ValueKind)
	names := make(map[string]string) // keys by name
	var unknown []string
	v.mu.Lock()
	for _, key := range keys {
		if kinds, ok := v.kinds[key]; ok {
			found[key] = kinds
			continue
		}
		name := keyName(encode(key))
		names[name] = key
		unknown = append(unknown, name)
	}
	v.mu.Unlock()
	if len(unknown) == 0 {
		return found, nil
	}
	var whats []string
	for _, kind := range []assay.ValueKind{assay.KindString, assay.KindNumber, assay.KindBoolean, assay.KindTime, assay.KindList} {
		whats = append(whats, countKind+string(kind))
	}
	const query = `SELECT DISTINCT name, what FROM count WHERE what = ANY($1) AND name = ANY($2) AND class = ANY($3::int[]) ORDER BY name, what`
	rows, err := tx.Query(ctx, query, whats, unknown, v.classes)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var name, what string
		if err := rows.Scan(&name, &what); err != nil {
			return nil, err
		}
		key := names[name]
		found[key] = append(found[key], assay.ValueKind(strings.TrimPrefix(what, countKind)))
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, key := range names {
		if len(v.kinds) < maxLookups {
			v.kinds[key] = found[key]
		}
	}
	return found, nil
}

// holding returns, for each term, the number of visible chunks that have it, and of those that are
// in the given classes.
func (v *sight) holding(ctx context.Context, tx pgx.Tx, terms []int64, kept []int32) (visible, eligible map[int64]int, err error) {
	visible, eligible = make(map[int64]int, len(terms)), make(map[int64]int, len(terms))
	const query = `SELECT term, sum(n)::bigint, coalesce(sum(n) FILTER (WHERE class = ANY($3::int[])), 0)::bigint
		FROM term WHERE term = ANY($1::bigint[]) AND class = ANY($2::int[]) GROUP BY term`
	rows, err := tx.Query(ctx, query, terms, v.classes, kept)
	if err != nil {
		return nil, nil, err
	}
	for rows.Next() {
		var term, n, m int64
		if err := rows.Scan(&term, &n, &m); err != nil {
			return nil, nil, err
		}
		visible[term], eligible[term] = int(n), int(m)
	}
	return visible, eligible, rows.Err()
}

// holdingAny returns the number of visible chunks that have any of the terms.
func (v *sight) holdingAny(ctx context.Context, tx pgx.Tx, terms []int64) (int, error) {
	var key strings.Builder
	for _, t := range terms {
		key.WriteString(strconv.FormatInt(t, 36) + " ")
	}
	v.mu.Lock()
	n, ok := v.any[key.String()]
	v.mu.Unlock()
	if ok {
		return n, nil
	}
	const query = `SELECT count(*) FROM chunk WHERE terms && $1::bigint[] AND class = ANY($2::int[])`
	if err := tx.QueryRow(ctx, query, terms, v.classes).Scan(&n); err != nil {
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.any) < maxLookups {
		v.any[key.String()] = n
	}
	return n, nil
}
