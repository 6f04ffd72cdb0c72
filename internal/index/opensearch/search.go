package opensearch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/index"
)

// Search implements index.Index. The result has the changes up to Result.Sequence, without the
// documents that changed since then. A Limit over 100,000 counts as 100,000. Strings of startsWith
// and stringContains of over 8,000 and 4,000 bytes are assay.ErrInvalid.
func (x *Index) Search(ctx context.Context, access assay.Access, q assay.Query) (index.Result, error) {
	if err := checkQuery(q); err != nil {
		return index.Result{}, err
	}
	var result index.Result
	err := x.read(ctx, func(v *view) error {
		var err error
		result, err = x.search(ctx, v, access, q)
		return err
	})
	if err == nil && result.Sequence == 0 && !access.IsZero() {
		err = checkEmpty(q.Filter)
		result.Terms = shownTerms(analysis.QueryTerms(q.Text, nil), nil, 0)
	}
	if err != nil {
		return index.Result{}, fmt.Errorf("search: %w", err)
	}
	return result, nil
}

// checkEmpty checks a filter where there is no document.
func checkEmpty(f assay.Filter) error {
	return f.Check(func(string) []assay.ValueKind { return nil })
}

func checkQuery(q assay.Query) error {
	if q.Limit < 1 {
		return fmt.Errorf("search limit is %d, want at least 1: %w", q.Limit, assay.ErrInvalid)
	}
	return q.BM25.Check()
}

// visibility is what an access may see in a view.
type visibility struct {
	scope     object
	chunks    int
	length    float64 // sum over the chunks
	languages []string
	kinds     map[string][]assay.ValueKind // of the keys of a filter

	mu      sync.Mutex
	holding map[string]int // cached numbers of chunks that hold a term, by formsKey
}

// maxLanguages is the largest number of languages of the documents that an access may see.
const maxLanguages = 1000

// look returns the visibility of an access, after checking the filter. It is cached while the view
// has no changed documents.
func (x *Index) look(ctx context.Context, v *view, access assay.Access, f assay.Filter) (*visibility, error) {
	keys := filterKeys(f, nil)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	name := access.Key() + " " + strings.Join(keys, " ")
	seen := x.sight(v, name)
	if seen == nil {
		var err error
		if seen, err = x.count(ctx, v, access, keys); err != nil {
			return nil, err
		}
		x.keepSight(v, name, seen)
	}
	return seen, f.Check(func(key string) []assay.ValueKind { return seen.kinds[key] })
}

// maxSights is the number of visibilities that are cached.
const maxSights = 256

func (x *Index) sight(v *view, name string) *visibility {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sightOf != v.state || len(v.changed) > 0 {
		return nil
	}
	return x.sights[name]
}

func (x *Index) keepSight(v *view, name string, seen *visibility) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(v.changed) > 0 || x.known != v.state {
		return
	}
	if x.sightOf != v.state || len(x.sights) >= maxSights {
		x.sightOf, x.sights = v.state, make(map[string]*visibility)
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
		Key string
	}
}

// count asks for the visibility of an access.
func (x *Index) count(ctx context.Context, v *view, access assay.Access, keys []string) (*visibility, error) {
	seen := &visibility{scope: v.scope(access, v.changed), kinds: make(map[string][]assay.ValueKind)}
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
	body := object{"size": 0, "track_total_hits": false, "query": all(seen.scope, not(termQuery("kind", kindVector))), "aggs": aggregations}
	if err := x.cluster.query(ctx, v.state, body, &answer); err != nil {
		return nil, err
	}
	texts := answer.Aggregations.Texts
	seen.chunks, seen.length = texts.Count, texts.Length.Value
	for _, b := range texts.Languages.Buckets {
		seen.languages = append(seen.languages, unlatin(b.Key))
	}
	slices.Sort(seen.languages)
	has := make(map[string]bool)
	for _, b := range answer.Aggregations.Keys.Buckets {
		has[b.Key] = true
	}
	for _, key := range keys {
		for _, kind := range valueKinds {
			if has[metaKeyOf(key).kind(kind)] {
				seen.kinds[key] = append(seen.kinds[key], kind)
			}
		}
	}
	return seen, nil
}

// search answers a text query from one view.
func (x *Index) search(ctx context.Context, v *view, access assay.Access, q assay.Query) (index.Result, error) {
	result := index.Result{Sequence: v.Sequence}
	if access.IsZero() {
		return result, nil
	}
	seen, err := x.look(ctx, v, access, q.Filter)
	if err != nil {
		return index.Result{}, err
	}
	result.Chunks = seen.chunks
	terms := analysis.QueryTerms(q.Text, seen.languages)
	holding, err := x.holding(ctx, v, seen, terms)
	if err != nil {
		return index.Result{}, err
	}
	result.Terms = shownTerms(terms, holding, seen.chunks)
	if !slices.ContainsFunc(holding, func(n int) bool { return n > 0 }) {
		return result, nil
	}
	filter, err := kept(seen.scope, q)
	if err != nil {
		return index.Result{}, err
	}
	if err := x.best(ctx, v, newTextQuery(seen, filter, q, terms, holding), &result); err != nil {
		return index.Result{}, err
	}
	return result, nil
}

// shownTerms returns the terms of a result. holding may be nil: no chunk has a term.
func shownTerms(terms []analysis.QueryTerm, holding []int, chunks int) []assay.Term {
	var shown []assay.Term
	for i, t := range terms {
		n := 0
		if holding != nil {
			n = holding[i]
		}
		s := assay.Term{Text: t.Text, Stem: t.Forms[0], Chunks: n, Weight: weight(chunks, n)}
		if len(t.Forms) > 1 {
			s.Forms = t.Forms[1:]
		}
		shown = append(shown, s)
	}
	return shown
}

// idf and weight are those of package index.
func idf(chunks, holding int) float64 {
	return math.Log(1 + (float64(chunks-holding)+0.5)/(float64(holding)+0.5))
}

func weight(chunks, holding int) float64 {
	const background = 100
	return idf(chunks+background, holding+1) / idf(chunks+background, 1)
}

// forms returns the forms of a term as they are stored.
func forms(t analysis.QueryTerm) []string {
	list := make([]string, len(t.Forms))
	for i, f := range t.Forms {
		list[i] = term(f)
	}
	return list
}

// maxHolding is the number of terms whose counts a visibility caches.
const maxHolding = 2000

// known returns the cached count of a term, or -1.
func (v *visibility) known(term string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n, ok := v.holding[term]; ok {
		return n
	}
	return -1
}

func (v *visibility) keep(term string, holding int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.holding == nil || len(v.holding) >= maxHolding {
		v.holding = make(map[string]int)
	}
	v.holding[term] = holding
}

// holding returns the number of visible chunks that hold each term. It counts those terms that are not
// cached.
func (x *Index) holding(ctx context.Context, v *view, seen *visibility, terms []analysis.QueryTerm) ([]int, error) {
	counts := make([]int, len(terms))
	if seen.chunks == 0 {
		return counts, nil
	}
	filters := object{}
	var wanted []object
	for i, t := range terms {
		if counts[i] = seen.known(formsKey(t)); counts[i] < 0 {
			filter := termsQuery("terms", forms(t))
			filters[strconv.Itoa(i)], wanted = filter, append(wanted, filter)
		}
	}
	if len(wanted) == 0 {
		return counts, nil
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
		"size": 0, "track_total_hits": false, "query": all(seen.scope, termQuery("kind", kindText), anyOf(wanted...)),
		"aggs": object{"terms": object{"filters": object{"filters": filters}}},
	}
	if err := x.cluster.query(ctx, v.state, body, &answer); err != nil {
		return nil, err
	}
	for i, t := range terms {
		if counts[i] < 0 {
			counts[i] = answer.Aggregations.Terms.Buckets[strconv.Itoa(i)].Count
			seen.keep(formsKey(t), counts[i])
		}
	}
	return counts, nil
}

// formsKey identifies a term by its forms.
func formsKey(t analysis.QueryTerm) string { return strings.Join(t.Forms, "\x00") }
