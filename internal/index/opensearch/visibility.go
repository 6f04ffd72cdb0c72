package opensearch

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/index/prefetch"
)

// visibility is what an access may see in a view. The counts are those of the state, which are cached,
// less those of the rows of changed documents, which are few.
type visibility struct {
	scope     object
	chunks    int
	length    float64 // sum over the chunks
	languages []string
	kinds     map[string][]assay.ValueKind // of the keys of a filter

	all  *counts // of the state
	less *counts // of the changed documents; nil: there are none
}

// counts are those of the chunks in a scope of one state.
type counts struct {
	scope     object
	chunks    int
	length    float64
	languages map[string]int // by token
	kinds     map[string]int // of documents, by token

	mu      sync.Mutex
	holding map[string]int // cached numbers of chunks that hold a term, by formsKey
	covered map[string]int // cached numbers of chunks that have a vector, by field
	named   map[string]int // cached numbers of chunks that name an entity, by its key
}

// maxLanguages is the largest number of languages of the documents that an access may see.
const maxLanguages = 1000

// look returns the visibility of an access, after checking the filter.
func (x *Index) look(ctx context.Context, v *view, access assay.Access, f assay.Filter) (*visibility, error) {
	keys := filterKeys(f, nil)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	name := access.Key() + " " + strings.Join(keys, " ")
	seen := &visibility{scope: v.scope(access, v.changed), kinds: make(map[string][]assay.ValueKind), all: x.sight(v, name)}
	scope := v.scope(access, nil)
	var err error
	if seen.all == nil {
		if seen.all, err = x.count(ctx, v, scope, keys); err != nil {
			return nil, err
		}
		x.keepSight(v, name, seen.all)
	}
	if len(v.changed) > 0 {
		if seen.less, err = x.count(ctx, v, all(scope, termsQuery("document", v.changed)), keys); err != nil {
			return nil, err
		}
	}
	seen.subtract(keys)
	return seen, f.Check(func(key string) []assay.ValueKind { return seen.kinds[key] })
}

// subtract derives what is visible from the counts.
func (s *visibility) subtract(keys []string) {
	less := s.less
	if less == nil {
		less = &counts{}
	}
	s.chunks, s.length = s.all.chunks-less.chunks, s.all.length-less.length
	for _, token := range slices.Sorted(maps.Keys(s.all.languages)) {
		if s.all.languages[token] > less.languages[token] {
			s.languages = append(s.languages, unlatin(token))
		}
	}
	slices.Sort(s.languages)
	for _, key := range keys {
		for _, kind := range valueKinds {
			if token := metaKeyOf(key).kind(kind); s.all.kinds[token] > less.kinds[token] {
				s.kinds[key] = append(s.kinds[key], kind)
			}
		}
	}
}

// maxSights is the number of accesses, with the keys of a filter, whose counts are cached.
const maxSights = 256

func (x *Index) sight(v *view, name string) *counts {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sightOf != v.state {
		return nil
	}
	return x.sights[name]
}

func (x *Index) keepSight(v *view, name string, seen *counts) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known != v.state {
		return
	}
	if x.sightOf != v.state || len(x.sights) >= maxSights {
		x.sightOf, x.sights = v.state, make(map[string]*counts)
	}
	x.sights[name] = seen
}

// filterKeys returns the keys of a filter after the given ones.
func filterKeys(f assay.Filter, keys []string) []string {
	if f.Key != "" {
		keys = append(keys, f.Key)
	}
	for _, part := range f.Filters {
		keys = filterKeys(part, keys)
	}
	return keys
}

var valueKinds = []assay.ValueKind{assay.KindString, assay.KindNumber, assay.KindBoolean, assay.KindTime, assay.KindList}

// bucketList is the result of an aggregation by terms.
type bucketList struct {
	Buckets []struct {
		Key   string
		Count int `json:"doc_count"`
	}
}

func (l bucketList) counts() map[string]int {
	m := make(map[string]int, len(l.Buckets))
	for _, b := range l.Buckets {
		m[b.Key] = b.Count
	}
	return m
}

// count asks for the counts of a scope, with the kinds of values under keys.
func (x *Index) count(ctx context.Context, v *view, scope object, keys []string) (*counts, error) {
	aggregations := object{"texts": object{
		"filter": termQuery("kind", kindText),
		"aggs": object{
			"length":    object{"sum": object{"field": "length"}},
			"languages": object{"terms": object{"field": "language", "size": maxLanguages}},
		},
	}}
	var tokens []string
	for _, key := range keys {
		for _, kind := range valueKinds {
			tokens = append(tokens, metaKeyOf(key).kind(kind))
		}
	}
	if len(tokens) > 0 {
		aggregations["keys"] = object{"terms": object{"field": "keys", "include": tokens, "size": len(tokens)}}
	}
	var answer struct {
		Aggregations struct {
			Texts struct {
				Count     int `json:"doc_count"`
				Length    struct{ Value float64 }
				Languages bucketList
			}
			Keys bucketList
		}
	}
	body := object{"size": 0, "track_total_hits": false, "query": all(scope, not(termQuery("kind", kindVector))), "aggs": aggregations}
	if err := x.cluster.query(ctx, v.state, body, &answer); err != nil {
		return nil, err
	}
	texts := answer.Aggregations.Texts
	return &counts{
		scope: scope, chunks: texts.Count, length: texts.Length.Value,
		languages: texts.Languages.counts(), kinds: answer.Aggregations.Keys.counts(),
	}, nil
}

// maxHolding is the number of terms whose counts are cached for a scope.
const maxHolding = 2000

// known returns the cached count of a term, or -1.
func (c *counts) known(term string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.holding[term]; ok {
		return n
	}
	return -1
}

func (c *counts) keep(term string, holding int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holding == nil || len(c.holding) >= maxHolding {
		c.holding = make(map[string]int)
	}
	c.holding[term] = holding
}

// formsKey identifies a term by its forms.
func formsKey(t analysis.QueryTerm) string { return strings.Join(t.Forms, "\x00") }

// holding returns the number of visible chunks that hold each term.
func (x *Index) holding(ctx context.Context, v *view, seen *visibility, terms []analysis.QueryTerm) ([]int, error) {
	list, err := x.holdingIn(ctx, v, seen.all, terms)
	if err != nil || seen.less == nil {
		return list, err
	}
	less, err := x.holdingIn(ctx, v, seen.less, terms)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i] -= less[i]
	}
	return list, nil
}

// holdingIn returns the number of chunks in a scope that hold each term. It counts those terms that are
// not cached.
func (x *Index) holdingIn(ctx context.Context, v *view, c *counts, terms []analysis.QueryTerm) ([]int, error) {
	list := make([]int, len(terms))
	if c.chunks == 0 {
		return list, nil
	}
	filters := object{}
	var wanted []string
	for i, t := range terms {
		if list[i] = c.known(formsKey(t)); list[i] < 0 {
			wanted = append(wanted, forms(t)...)
			filters[strconv.Itoa(i)] = termsQuery("terms", forms(t))
		}
	}
	if len(wanted) == 0 {
		return list, nil
	}
	var answer struct {
		Aggregations struct {
			Terms struct {
				Buckets map[string]struct {
					Count int `json:"doc_count"`
				}
			}
		}
	}
	body := object{
		"size": 0, "track_total_hits": false, "query": all(c.scope, termQuery("kind", kindText), termsQuery("terms", wanted)),
		"aggs": object{"terms": object{"filters": object{"filters": filters}}},
	}
	if err := x.cluster.query(ctx, v.state, body, &answer); err != nil {
		return nil, err
	}
	for i, t := range terms {
		if list[i] < 0 {
			list[i] = answer.Aggregations.Terms.Buckets[strconv.Itoa(i)].Count
			c.keep(formsKey(t), list[i])
		}
	}
	return list, nil
}

// covered returns the number of visible chunks that have a vector in a field.
func (x *Index) covered(ctx context.Context, v *view, seen *visibility, field string) (int, error) {
	n, err := x.coveredIn(ctx, v, seen.all, field)
	if err != nil || seen.less == nil {
		return n, err
	}
	less, err := x.coveredIn(ctx, v, seen.less, field)
	return n - less, err
}

// coveredIn returns the number of chunks in a scope that have a vector in a field.
func (x *Index) coveredIn(ctx context.Context, v *view, c *counts, field string) (int, error) {
	c.mu.Lock()
	n, ok := c.covered[field]
	c.mu.Unlock()
	if ok {
		return n, nil
	}
	n, err := x.total(ctx, v, all(c.scope, termQuery("field", field)))
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.covered == nil {
		c.covered = make(map[string]int)
	}
	c.covered[field] = n
	return n, nil
}

// maxNamed is the number of entities whose counts are cached for a scope: some megabytes.
const maxNamed = 20_000

// naming returns the cached count of an entity. c may be nil.
func (c *counts) naming(key string) (n int, ok bool) {
	if c == nil {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok = c.named[key]
	return n, ok
}

// keepNaming caches the counts of entities. c may be nil.
func (c *counts) keepNaming(seen []prefetch.Entity, entities []uint32) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.named == nil || len(c.named)+len(entities) > maxNamed {
		c.named = make(map[string]int)
	}
	for _, n := range entities {
		c.named[seen[n].Key] = seen[n].Count
	}
}
