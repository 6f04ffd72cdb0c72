package opensearch

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/index"
)

// scoring says which of the chunks that match a text query are scored.
type scoring struct {
	all    int // all of them if there are at most so many
	window int // otherwise at least so many candidates of each shard,
	factor int // and at least so many for each hit
	most   int // but all of them if that would be more than so many candidates
}

var defaultScoring = scoring{all: 10_000, window: 1000, factor: 20, most: 20_000}

// candidates returns the number of candidates of each shard.
func (s scoring) candidates(limit int) int { return max(s.window, s.factor*min(limit, maxHits)) }

// ties is the number of hits more than needed that are asked for among candidates. OpenSearch does
// not order equal scores there, so that they are ordered here.
const ties = 50

// scoreScript computes the score of package index. length is that of the chunk by the average.
const scoreScript = `double score = 0;
double norm = params.k1 * (1 - params.b + params.b * doc['length'].value / params.average);
for (int i = 0; i < params.forms.length; i++) {
  double frequency = termFreq('terms', params.forms[i]);
  if (frequency > 0) {
    score += params.idf[i] * frequency / (frequency + norm);
  }
}
return score;`

// hitList is the hits of an answer.
type hitList struct {
	Hits struct {
		Total struct{ Value int }
		Hits  []struct {
			Score   float64             `json:"_score"`
			Matched []string            `json:"matched_queries"`
			Fields  map[string][]string `json:"fields"`
		}
	}
}

// A textQuery finds the best chunks by BM25 that a filter keeps.
type textQuery struct {
	filter  object
	limit   int
	k1, b   float64
	average float64 // length of the visible chunks
	terms   []weighted
	most    int // upper bound of the number of matching chunks
}

// weighted is a term of a query that visible chunks hold.
type weighted struct {
	name  string   // the term as it is shown
	forms []string // as they are stored
	idf   float64
}

func newTextQuery(seen *visibility, filter object, q assay.Query, terms []analysis.QueryTerm, holding []int) textQuery {
	bm25 := q.BM25.Over(assay.DefaultBM25)
	t := textQuery{
		filter: all(filter, termQuery("kind", kindText)), limit: min(q.Limit, maxHits, seen.chunks),
		k1: bm25.K1, b: bm25.B, average: cmp.Or(seen.length/float64(seen.chunks), 1),
	}
	for i, term := range terms {
		if holding[i] > 0 {
			t.terms = append(t.terms, weighted{term.Forms[0], forms(term), idf(seen.chunks, holding[i])})
			t.most += holding[i]
		}
	}
	return t
}

// scored returns the query that gives the chunks which another finds their scores.
func (t *textQuery) scored(query object) object {
	var list []string
	var weights []float64
	for _, term := range t.terms {
		for _, form := range term.forms {
			list, weights = append(list, form), append(weights, term.idf)
		}
	}
	return object{"script_score": object{
		"query": query,
		"script": object{"source": scoreScript, "params": object{
			"k1": t.k1, "b": t.b, "average": t.average, "forms": list, "idf": weights,
		}},
	}}
}

// maxForms is the number of forms of terms up to which candidates are searched for. OpenSearch allows
// about a thousand clauses in a query.
const maxForms = 500

// forms returns the number of forms of all terms.
func (t *textQuery) forms() int {
	n := 0
	for _, term := range t.terms {
		n += len(term.forms)
	}
	return n
}

// nameOf returns the name of the query for a form of term i. Names are unique in a request.
func nameOf(i, form int) string { return strconv.Itoa(i) + "." + strconv.Itoa(form) }

// every returns the search that scores every matching chunk.
func (t *textQuery) every() object {
	var should []object
	for i, term := range t.terms {
		should = append(should, object{"terms": object{"terms": term.forms, "_name": nameOf(i, 0)}})
	}
	return object{
		"size": t.limit, "track_total_hits": index.MaxTotal,
		"sort":  []object{{"_score": "desc"}, {"chunk": "asc"}},
		"query": t.scored(object{"bool": object{"filter": []object{t.filter}, "should": should, "minimum_should_match": 1}}),
	}
}

// leastPivot is a number that is more than 0 for OpenSearch.
const leastPivot = 1e-30

// best returns the search that scores the candidates with the best sums of impacts. They differ from
// scores by the assumed length of chunks (see impacts). OpenSearch knows the largest impact in a block
// of postings, and skips blocks that have no candidate.
func (t *textQuery) best(s scoring) object {
	var should []object
	for i, term := range t.terms {
		for j, form := range term.forms {
			should = append(should, object{"rank_feature": object{
				"field": "impacts." + feature(form), "boost": term.idf, "saturation": object{"pivot": max(t.k1, leastPivot)}, "_name": nameOf(i, j),
			}})
		}
	}
	// The sum is a required clause of its own, because Lucene does not skip in optional clauses beside a
	// filter.
	sum := object{"bool": object{"should": should}}
	candidates := s.candidates(t.limit)
	return object{
		"size": min(t.limit+ties, candidates), "track_total_hits": max(s.all, index.MaxTotal) + 1,
		"query": object{"bool": object{"filter": []object{t.filter}, "must": []object{sum}}},
		"rescore": object{"window_size": candidates, "query": object{
			"query_weight": 0, "rescore_query_weight": 1, "rescore_query": t.scored(object{"match_all": object{}}),
		}},
	}
}

// best finds the best chunks. It scores every matching chunk, or if there are too many, candidates.
func (x *Index) best(ctx context.Context, v *view, t textQuery, result *index.Result) error {
	s := x.scoring
	var answer hitList
	few := t.most <= s.all || s.candidates(t.limit) > s.most || t.forms() > maxForms
	if !few {
		if err := x.hits(ctx, v, t.best(s), &answer); err != nil {
			return err
		}
		few = answer.Hits.Total.Value <= s.all
	}
	if few {
		answer = hitList{}
		if err := x.hits(ctx, v, t.every(), &answer); err != nil {
			return err
		}
	}
	result.Total = min(answer.Hits.Total.Value, index.MaxTotal)
	for _, h := range answer.Hits.Hits {
		hit := index.Hit{Chunk: first(h.Fields["chunk"]), Document: first(h.Fields["document"]), Version: first(h.Fields["version"]), BM25: h.Score}
		for i, term := range t.terms {
			if slices.ContainsFunc(h.Matched, func(name string) bool { return strings.HasPrefix(name, strconv.Itoa(i)+".") }) {
				hit.Matched = append(hit.Matched, term.name)
			}
		}
		result.Hits = append(result.Hits, hit)
	}
	slices.SortStableFunc(result.Hits, func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(b.BM25, a.BM25), cmp.Compare(a.Chunk, b.Chunk))
	})
	result.Hits = result.Hits[:min(t.limit, len(result.Hits))]
	return nil
}

// hits sends a search for chunks.
func (x *Index) hits(ctx context.Context, v *view, body object, answer *hitList) error {
	body["stored_fields"], body["docvalue_fields"] = "_none_", []string{"chunk", "document", "version"}
	return x.cluster.query(ctx, v.state, body, answer)
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
