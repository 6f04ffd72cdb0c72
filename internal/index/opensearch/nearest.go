package opensearch

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

const (
	minCandidates = 200    // of each shard's segments; more of them find more of the nearest
	maxCandidates = 10_000 // that OpenSearch allows
)

// Nearest implements index.Index. It sees what Search sees. By a metric other than index.Cosine, it
// is exact only if the vectors of the model have equal norms or at most 10,000 chunks are eligible.
func (x *Index) Nearest(ctx context.Context, access assay.Access, q assay.Query, v index.Vector) (index.Result, error) {
	if err := checkQuery(q); err != nil {
		return index.Result{}, err
	}
	if err := checkVector(v); err != nil {
		return index.Result{}, err
	}
	result := index.Result{Index: assay.IndexVersion{Model: v.Model}}
	err := x.read(ctx, func(at *view) error {
		var err error
		result, err = x.nearest(ctx, at, access, q, v)
		return err
	})
	if err == nil && result.Sequence == 0 && !access.IsZero() {
		err = checkEmpty(q.Filter)
	}
	if err != nil {
		return index.Result{}, fmt.Errorf("search: %w", err)
	}
	return result, nil
}

// checkVector checks what does not depend on the model.
func checkVector(v index.Vector) error {
	switch v.Metric {
	case index.Cosine, index.Dot, index.L2:
	default:
		return fmt.Errorf("metric %q does not exist: %w", v.Metric, assay.ErrInvalid)
	}
	if len(v.Values) == 0 {
		return fmt.Errorf("the vector of the query has no dimensions: %w", assay.ErrInvalid)
	}
	for _, n := range v.Values {
		if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
			return fmt.Errorf("the vector of the query has the value %v: %w", n, assay.ErrInvalid)
		}
	}
	if v.Metric == index.Cosine && norm(v.Values) == 0 {
		return fmt.Errorf("the vector of the query is all zero, which has no cosine: %w", assay.ErrInvalid)
	}
	return nil
}

// model returns the state of a query's model. ok is false if the model has no vectors.
func (at *view) model(v index.Vector) (m modelState, ok bool, err error) {
	m = at.Models[v.Model]
	ok = m.Field != ""
	if ok && m.Dimensions != len(v.Values) {
		return m, ok, fmt.Errorf("the vector of the query has %d dimensions, those of %s have %d: %w", len(v.Values), v.Model, m.Dimensions, assay.ErrInvalid)
	}
	return m, ok, nil
}

func norm(values []float32) float64 {
	sum := 0.0
	for _, n := range values {
		sum += float64(n) * float64(n)
	}
	return math.Sqrt(sum)
}

// unit returns values divided by their norm. A vector of zeros stays one.
func unit(values []float32, norm float64) []float32 {
	list := make([]float32, len(values))
	if norm > 0 {
		for i, n := range values {
			list[i] = float32(float64(n) / norm)
		}
	}
	return list
}

// similarity returns the similarity by a metric of a vector of the norm a to one of the norm b, from
// their cosine.
func similarity(metric index.Metric, cosine, a, b float64) float64 {
	switch metric {
	case index.Dot:
		return cosine * a * b
	case index.L2:
		return -math.Sqrt(max(0, a*a+b*b-2*cosine*a*b))
	}
	return cosine
}

// nearest answers a vector query from one view.
func (x *Index) nearest(ctx context.Context, at *view, access assay.Access, q assay.Query, v index.Vector) (index.Result, error) {
	result := index.Result{Sequence: at.Sequence, Index: assay.IndexVersion{Model: v.Model}}
	m, ok, err := at.model(v)
	if err != nil || access.IsZero() {
		return result, err
	}
	seen, err := x.look(ctx, at, access, q.Filter)
	if err != nil {
		return index.Result{}, err
	}
	result.Chunks = seen.chunks
	if !ok || seen.chunks == 0 {
		return result, nil
	}
	filter, err := kept(seen.scope, q)
	if err != nil {
		return index.Result{}, err
	}
	visible, err := x.covered(ctx, at, seen, m.Field)
	if err != nil {
		return index.Result{}, err
	}
	total := visible
	if restricted(q) {
		if total, err = x.total(ctx, at, all(filter, termQuery("field", m.Field))); err != nil {
			return index.Result{}, err
		}
	}
	result.Index.Coverage = float64(visible) / float64(seen.chunks)
	result.Total = total
	if total > 0 {
		result.Hits, err = x.neighbours(ctx, at, m, all(filter, termQuery("field", m.Field)), total, q.Limit, v)
	}
	return result, err
}

// total returns the number of rows that a query finds.
func (x *Index) total(ctx context.Context, at *view, query object) (int, error) {
	var answer hitList
	err := x.cluster.query(ctx, at.state, object{"size": 0, "track_total_hits": true, "query": query}, &answer)
	return answer.Hits.Total.Value, err
}

// neighbours returns the chunks whose vectors are most similar to v among the total that the filter
// keeps.
func (x *Index) neighbours(ctx context.Context, at *view, m modelState, filter object, total, limit int, v index.Vector) ([]index.Hit, error) {
	length := norm(v.Values)
	candidates := min(max(limit, minCandidates), maxCandidates)
	if v.Metric != index.Cosine && !m.Equal || length == 0 {
		candidates = maxCandidates // the nearest by cosine may be others
	}
	candidates = min(candidates, total)
	body := object{
		"size": candidates, "track_total_hits": false, "stored_fields": "_none_",
		"docvalue_fields": []string{"chunk", "document", "version", "norm"},
		"sort":            []object{{"_score": "desc"}, {"chunk": "asc"}},
		"query":           object{"knn": object{m.Field: object{"vector": unit(v.Values, length), "k": candidates, "filter": filter}}},
	}
	var answer struct {
		Hits struct {
			Hits []struct {
				Score  float64 `json:"_score"`
				Fields struct {
					Chunk, Document, Version []string
					Norm                     []float64
				}
			}
		}
	}
	if err := x.cluster.query(ctx, at.state, body, &answer); err != nil {
		return nil, err
	}
	var hits []index.Hit
	for _, h := range answer.Hits.Hits {
		b := 0.0
		if len(h.Fields.Norm) > 0 {
			b = h.Fields.Norm[0]
		}
		hits = append(hits, index.Hit{
			Chunk: first(h.Fields.Chunk), Document: first(h.Fields.Document), Version: first(h.Fields.Version),
			Similarity: similarity(v.Metric, cosineOf(h.Score), length, b),
		})
	}
	slices.SortFunc(hits, func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.Chunk, b.Chunk))
	})
	return hits[:min(limit, len(hits))], nil
}

// cosineOf returns the inner product of two unit vectors from OpenSearch's score of it.
func cosineOf(score float64) float64 {
	if score >= 1 {
		return min(1, score-1)
	}
	return max(-1, 1-1/score)
}

// maxLookup is the largest number of chunks in one query for their rows.
const maxLookup = 1000

// Similarities implements index.Index. It sees what Search sees.
func (x *Index) Similarities(ctx context.Context, access assay.Access, v index.Vector, chunks []string) ([]*float64, error) {
	if err := checkVector(v); err != nil {
		return nil, fmt.Errorf("compare vectors: %w", err)
	}
	vectors, err := x.vectors(ctx, access, v.Model, chunks, func(at *view) error {
		_, _, err := at.model(v)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("compare vectors: %w", err)
	}
	list := make([]*float64, len(chunks))
	for i, values := range vectors {
		if values != nil {
			s := exact(v, values)
			list[i] = &s
		}
	}
	return list, nil
}

// exact returns the similarity of a query to a vector.
func exact(v index.Vector, values []float32) float64 {
	dot, a, b := 0.0, norm(v.Values), norm(values)
	for i, n := range values {
		dot += float64(n) * float64(v.Values[i])
	}
	if a*b == 0 {
		return similarity(v.Metric, 0, a, b)
	}
	return similarity(v.Metric, dot/(a*b), a, b)
}

// Vectors implements index.Index. It sees what Search sees, and the values are those of the source.
func (x *Index) Vectors(ctx context.Context, access assay.Access, model string, chunks []string) ([][]float32, error) {
	list, err := x.vectors(ctx, access, model, chunks, func(*view) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	return list, nil
}

// vectors returns the vectors of the chunks that access may see. check may refuse a view.
func (x *Index) vectors(ctx context.Context, access assay.Access, model string, chunks []string, check func(*view) error) ([][]float32, error) {
	list := make([][]float32, len(chunks))
	at := make(map[string][]int, len(chunks))
	for i, c := range chunks {
		at[c] = append(at[c], i)
	}
	err := x.read(ctx, func(v *view) error {
		clear(list)
		if err := check(v); err != nil || access.IsZero() {
			return err
		}
		m := v.Models[model]
		if m.Field == "" {
			return nil
		}
		scope := v.scope(access, v.changed)
		for part := range slices.Chunk(chunks, maxLookup) {
			owners := make([]string, len(part))
			for i, c := range part {
				owners[i] = owner(m.Field, c)
			}
			rows, err := x.rows(ctx, v.state, all(scope, termsQuery("owner", owners)), len(part), "chunk", "raw")
			if err != nil {
				return err
			}
			for _, r := range rows {
				for _, i := range at[r.Chunk] {
					list[i] = unpack(r.Raw)
				}
			}
		}
		return nil
	})
	return list, err
}

// rows returns rows, with the named parts, that a query finds.
func (x *Index) rows(ctx context.Context, st *state, query object, size int, parts ...string) ([]row, error) {
	var answer struct {
		Hits struct {
			Hits []struct {
				Source row `json:"_source"`
			}
		}
	}
	body := object{"size": size, "track_total_hits": false, "_source": parts, "query": query}
	if err := x.cluster.query(ctx, st, body, &answer); err != nil {
		return nil, err
	}
	rows := make([]row, len(answer.Hits.Hits))
	for i, h := range answer.Hits.Hits {
		rows[i] = h.Source
	}
	return rows, nil
}

// pack returns the bytes of the values of a vector.
func pack(values []float32) []byte {
	b := make([]byte, 0, 4*len(values))
	for _, n := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(n))
	}
	return b
}

func unpack(b []byte) []float32 {
	values := make([]float32, len(b)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return values
}
