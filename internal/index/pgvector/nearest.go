package pgvector

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	vectors "github.com/pgvector/pgvector-go"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// A measure is how PostgreSQL computes a metric.
type measure struct {
	operator string // a distance
	class    string // of HNSW indexes, without the name of the type
}

var measures = map[index.Metric]measure{
	index.Cosine: {"<=>", "cosine_ops"},
	index.Dot:    {"<#>", "ip_ops"},
	index.L2:     {"<->", "l2_ops"},
}

// similarity returns the similarity of two vectors of equal dimensions. PostgreSQL computes
// distances with 32 bits, which suffice to find the nearest vectors; the similarities of those are
// computed here.
func similarity(metric index.Metric, a, b []float32) float64 {
	var dot, aa, bb, apart float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot += x * y
		aa += x * x
		bb += y * y
		apart += (x - y) * (x - y)
	}
	switch {
	case metric == index.Dot:
		return dot
	case metric == index.L2:
		return 0 - math.Sqrt(apart) // not -0
	case aa == 0 || bb == 0: // no direction
		return 0
	}
	return dot / math.Sqrt(aa) / math.Sqrt(bb)
}

// Nearest implements index.Index.
func (x *Index) Nearest(ctx context.Context, access assay.Access, q assay.Query, v index.Vector) (index.Result, error) {
	if err := index.CheckQuery(q); err != nil {
		return index.Result{}, err
	}
	if err := x.use(); err != nil {
		return index.Result{}, fmt.Errorf("search: %w", err)
	}
	defer x.calls.Done()
	var result index.Result
	err := x.current(ctx, v.Model, func(s *snapshot) (err error) {
		result, err = x.nearest(ctx, s, access, q, v)
		return err
	})
	if err != nil {
		return index.Result{}, fmt.Errorf("search: %w", err)
	}
	return result, nil
}

// checkVector checks the vector of a query.
func (s *snapshot) checkVector(v index.Vector) error {
	if err := index.CheckVector(v); err != nil {
		return err
	}
	if d := s.model.dimensions; d > 0 && d != len(v.Values) {
		return fmt.Errorf("a vector of %d dimensions, those of %s have %d: %w", len(v.Values), v.Model, d, assay.ErrInvalid)
	}
	return nil
}

func (x *Index) nearest(ctx context.Context, s *snapshot, access assay.Access, q assay.Query, v index.Vector) (index.Result, error) {
	result := index.Result{Sequence: s.sequence, Index: assay.IndexVersion{Model: v.Model}}
	if access.IsZero() {
		return result, index.CheckVector(v)
	}
	seen, err := x.sight(ctx, s, access)
	if err != nil {
		return result, err
	}
	if err := seen.checkFilter(ctx, s.tx, q.Filter); err != nil {
		return result, err
	}
	if err := s.checkVector(v); err != nil {
		return result, err
	}
	result.Chunks = seen.chunks
	if s.model.dimensions == 0 || seen.chunks == 0 {
		return result, nil
	}
	n := neighbours{Index: x, tx: s.tx, model: s.model, vector: v, limit: q.Limit}
	if n.scope, err = seen.scope(ctx, s.tx, q); err != nil {
		return result, err
	}
	covered, err := n.count(ctx, seen)
	if err != nil {
		return result, err
	}
	result.Index.Coverage = float64(covered) / float64(seen.chunks)
	result.Total = n.eligible
	result.Hits, err = n.find(ctx)
	return result, err
}

// neighbours is a vector query on one snapshot.
type neighbours struct {
	*Index
	tx     pgx.Tx
	model  model
	scope  scope
	vector index.Vector
	limit  int

	all      int // vectors of the model
	eligible int // of those, vectors in the scope
}

// count counts the vectors and returns the number of visible ones.
func (n *neighbours) count(ctx context.Context, seen *sight) (visible int, err error) {
	const query = `SELECT coalesce(sum(n), 0)::bigint, coalesce(sum(n) FILTER (WHERE class = ANY($3::int[])), 0)::bigint,
		coalesce(sum(n) FILTER (WHERE class = ANY($4::int[])), 0)::bigint FROM count WHERE what = $1 AND name = $2`
	err = n.tx.QueryRow(ctx, query, countVectors, modelName(n.model.no), seen.classes, n.scope.classes).Scan(&n.all, &visible, &n.eligible)
	if err != nil || n.scope.filter.IsZero() {
		return visible, err
	}
	var a arguments
	filtered := `SELECT count(*) FROM ` + vectorTable(n.model.no) + ` v WHERE ` + n.scope.whereVector(&a)
	return visible, n.tx.QueryRow(ctx, filtered, a...).Scan(&n.eligible)
}

// sparse is the ratio of all vectors to eligible ones above which a scan of an HNSW index meets too
// many others.
const sparse = 50

// find returns the nearest neighbours.
func (n *neighbours) find(ctx context.Context) ([]index.Hit, error) {
	wanted := min(n.limit, n.eligible)
	if wanted == 0 {
		return nil, nil
	}
	if n.eligible > n.settings.exact && n.eligible >= n.all/sparse {
		ready, err := n.hasIndex(ctx)
		if err != nil {
			return nil, err
		}
		if !ready {
			n.buildIndex(n.schema, n.model, n.vector.Metric)
		} else if hits, err := n.approximate(ctx); err != nil || len(hits) == wanted {
			return hits, err
		} else if _, err := n.tx.Exec(ctx, planAgain); err != nil { // the scan ended before it had found enough
			return nil, err
		}
	}
	return n.exactly(ctx)
}

// planAgain undoes what approximate sets for the planner.
const planAgain = `RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_sort`

// exactly reads all vectors of the scope.
func (n *neighbours) exactly(ctx context.Context) ([]index.Hit, error) {
	var a arguments
	distance := n.distance(&a)
	if n.vector.Metric == index.Cosine {
		distance = "coalesce(nullif(" + distance + ", 'NaN'), 1)"
	} else {
		distance = "(" + distance + ") + 0" // not the order of an HNSW index
	}
	where := n.scope.whereVector(&a)
	return n.hits(ctx, `SELECT c.id, v.document, v.value, `+distance+` AS distance FROM `+vectorTable(n.model.no)+` v JOIN chunk c ON c.no = v.chunk
		WHERE `+where+` ORDER BY distance, c.id LIMIT `+a.add(n.limit), a)
}

// approximate scans the HNSW index until enough vectors of the scope are found. The result may be
// shorter than limit.
func (n *neighbours) approximate(ctx context.Context) ([]index.Hit, error) {
	scan := min(maxScan, max(n.settings.scan, 2*n.limit))
	// Without hash joins and sorts, the plan reads the index in its order and looks up the document of
	// each vector that it meets.
	settings := fmt.Sprintf(`SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.ef_search = %d; SET LOCAL hnsw.max_scan_tuples = %d;
		SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_sort = off`,
		scan, 20*sparse*max(scan, n.limit))
	if _, err := n.tx.Exec(ctx, settings); err != nil {
		return nil, err
	}
	var a arguments
	distance := indexed(n.model.dimensions, "v.value") + " " + measures[n.vector.Metric].operator + " " + indexed(n.model.dimensions, a.add(vectors.NewVector(n.vector.Values))+"::vector")
	where := n.scope.whereVector(&a)
	return n.hits(ctx, `SELECT c.id, b.document, b.value FROM (SELECT v.chunk, v.document, v.value FROM `+vectorTable(n.model.no)+` v
		WHERE `+where+` ORDER BY `+distance+` LIMIT `+a.add(n.limit)+`) AS b JOIN chunk c ON c.no = b.chunk`, a)
}

// maxScan is the limit of hnsw.ef_search.
const maxScan = 1000

// distance returns the distance of vector v from the query.
func (n *neighbours) distance(a *arguments) string {
	return "v.value " + measures[n.vector.Metric].operator + " " + a.add(vectors.NewVector(n.vector.Values)) + "::vector"
}

// hits reads the hits of a query for chunk IDs, document numbers and vectors.
func (n *neighbours) hits(ctx context.Context, query string, a arguments) ([]index.Hit, error) {
	rows, err := n.tx.Query(ctx, `SELECT b.id, d.id, d.version, b.value FROM (`+query+`) AS b JOIN document d ON d.no = b.document`, a...)
	if err != nil {
		return nil, err
	}
	var hits []index.Hit
	for rows.Next() {
		var chunk, document, version [16]byte
		var value vectors.Vector
		if err := rows.Scan(&chunk, &document, &version, &value); err != nil {
			return nil, err
		}
		hits = append(hits, index.Hit{
			Chunk: index.FormatID(chunk), Document: index.FormatID(document), Version: index.FormatID(version),
			Similarity: similarity(n.vector.Metric, n.vector.Values, value.Slice()),
		})
	}
	slices.SortFunc(hits, func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.Chunk, b.Chunk))
	})
	return hits, rows.Err()
}

// Similarities implements index.Index.
func (x *Index) Similarities(ctx context.Context, access assay.Access, v index.Vector, chunks []string) ([]*float64, error) {
	check := func(s *snapshot) error { return s.checkVector(v) }
	known, err := x.known(ctx, access, v.Model, chunks, check)
	if err != nil {
		return nil, fmt.Errorf("compare vectors: %w", err)
	}
	list := make([]*float64, len(chunks))
	for i, values := range known {
		if values != nil {
			n := similarity(v.Metric, v.Values, values)
			list[i] = &n
		}
	}
	return list, nil
}

// Vectors implements index.Index.
func (x *Index) Vectors(ctx context.Context, access assay.Access, model string, chunks []string) ([][]float32, error) {
	list, err := x.known(ctx, access, model, chunks, func(*snapshot) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	return list, nil
}

// known returns the vectors of those chunks that are visible to access, if check accepts the
// snapshot.
func (x *Index) known(ctx context.Context, access assay.Access, name string, chunks []string, check func(*snapshot) error) ([][]float32, error) {
	if err := x.use(); err != nil {
		return nil, err
	}
	defer x.calls.Done()
	var ids [][16]byte
	for _, chunk := range chunks {
		if id, ok := index.ParseID(chunk); ok {
			ids = append(ids, id)
		}
	}
	values := make(map[[16]byte][]float32)
	err := x.current(ctx, name, func(s *snapshot) error {
		if err := check(s); err != nil || access.IsZero() || s.model.dimensions == 0 {
			return err
		}
		seen, err := x.sight(ctx, s, access)
		if err != nil {
			return err
		}
		return readVectors(ctx, s, scope{classes: seen.classes}, ids, values)
	})
	list := make([][]float32, len(chunks))
	for i, chunk := range chunks {
		if id, ok := index.ParseID(chunk); ok {
			list[i] = values[id]
		}
	}
	return list, err
}

// readVectors reads the vectors of those chunks that are in the scope.
func readVectors(ctx context.Context, s *snapshot, in scope, ids [][16]byte, values map[[16]byte][]float32) error {
	var a arguments
	query := `SELECT c.id, v.value FROM chunk c JOIN ` + vectorTable(s.model.no) + ` v ON v.chunk = c.no
		WHERE c.id = ANY(` + a.add(ids) + `::uuid[]) AND ` + in.whereVector(&a)
	rows, err := s.tx.Query(ctx, query, a...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id [16]byte
		var value vectors.Vector
		if err := rows.Scan(&id, &value); err != nil {
			return err
		}
		values[id] = value.Slice()
	}
	return rows.Err()
}
