package index

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/vector"
)

// counts holds the number of rows that each step of a search passes to the next. First, the
// similarity of all rows is estimated from the signs of the residuals of both the query and the
// row. The best short rows are then estimated from the query's values and the row's signs. For the
// best rescored of those, the similarity is computed from twelve bits per dimension.
type counts struct{ short, rescored int }

// countsFor returns the counts for a search of limit neighbours among the given number of rows. If
// there are few rows, the similarity of every row is computed. The constants were chosen with
// TestRecallOfReal on passage vectors of two encoders, with 500 questions. Recall of the ten
// nearest:
//
//	                       gte-small, of           all-minilm-l6-v2
//	short  rescored   20,000  60,000  200,000      of 110,000 rows
//	 1000       100    0.987   0.985    0.988           0.989
//	 1000       200    0.995   0.993    0.994           0.996
//	 2000       200    0.998   0.996    0.996           0.997
//	 4000       500    1.000   0.999    0.999           0.999
//	 8000      1000    1.000   1.000    0.999           1.000
//	10 asked, chosen   0.996   0.998    0.997           0.998
//	50 asked, chosen   0.999   0.999    0.999           0.999
//
// The short list must grow about as the cube root of the number of rows.
func countsFor(limit, rows int) counts {
	n := counts{short: 2500 + 30*limit, rescored: 200 + 6*limit}
	if rows <= n.short {
		return counts{rows, rows}
	}
	scale := math.Cbrt(float64(rows) / 200_000)
	return counts{short: int(scale * float64(n.short)), rescored: int(max(1, scale) * float64(n.rescored))}
}

// A vectorView is one sidecar as seen by one search.
type vectorView struct {
	vectors *vectors // nil: none
	ids     []byte   // chunk IDs, 16 bytes each
	kept    bitset   // chunks that may be found; nil: all
}

// A neighbour is a chunk found by nearest.
type neighbour struct {
	view       int
	chunk      uint32
	similarity float64
}

// nearest returns the limit chunks most similar to q over all views, best first, ties by chunk ID,
// and the number of kept rows. Equal views give equal results. The error wraps assay.ErrInvalid if
// q has other dimensions than the views, is not finite, is zero under Cosine, or has an unknown
// metric.
func nearest(ctx context.Context, views []vectorView, q Vector, limit int) ([]neighbour, int, error) {
	s := searches.Get().(*vectorSearch)
	defer s.end()
	if err := s.prepare(views, q); err != nil {
		return nil, 0, err
	}
	limit = min(limit, s.total)
	found, err := s.nearest(ctx, limit, countsFor(limit, s.total))
	return found, s.total, err
}

// sparse is the ratio of all rows to kept rows above which reading only the kept rows is faster
// than estimating all rows.
const sparse = 50

// nearest returns the limit best rows.
func (s *vectorSearch) nearest(ctx context.Context, limit int, n counts) ([]neighbour, error) {
	if limit < 1 || s.total == 0 {
		return nil, nil
	}
	exact := s.total <= n.short || s.length == 0
	if exact || s.total < s.size/sparse {
		s.all()
	} else if err := s.scan(ctx, n.short); err != nil {
		return nil, err
	}
	if !exact {
		if err := s.refine(ctx); err != nil {
			return nil, err
		}
		s.rows = s.best(s.rows, n.rescored)
	}
	if err := s.rescore(ctx); err != nil {
		return nil, err
	}
	return s.found(limit), nil
}

// searches is a pool of the memory of finished searches.
var searches = sync.Pool{New: func() any { return new(vectorSearch) }}

// end returns the search's memory to the pool, without references to the views.
func (s *vectorSearch) end() {
	for i := range s.views {
		s.views[i] = searchedView{memory: s.views[i].memory}
	}
	for _, a := range s.angles {
		a.centre = nil
	}
	searches.Put(s)
}

// A vectorSearch is the state of one search.
type vectorSearch struct {
	views  []searchedView
	angles []*angle
	metric Metric
	length float64 // of the query
	query  direction
	rest   direction // of the query, what query is too coarse for
	total  int       // number of kept rows
	size   int       // number of rows in views with kept rows

	rows   []scoredRow
	ties   []scoredRow
	counts [1 << selectBits]uint32
}

// A searchedView is a view with the rows that may be found.
type searchedView struct {
	vectorView
	angle  *angle
	set    bitset // nil: all rows
	count  int    // rows in set
	memory bitset // buffer for set
}

// An angle is the query relative to a centre.
type angle struct {
	centre    []float32
	base      float64 // dot product of the query's direction with the centre
	residual  residual
	estimator vector.Estimator

	// integers are the residual's values in steps, and table is made of them. Both are valid if
	// filled.
	integers []int16
	step     float32
	table    vector.Table
	filled   bool
}

// A scoredRow is a row of a view with a sort key made from its score.
type scoredRow struct {
	key       uint64
	view, row uint32
}

// prepare checks the query and finds the kept rows.
func (s *vectorSearch) prepare(views []vectorView, q Vector) error {
	switch q.Metric {
	case Cosine, Dot, L2:
	default:
		return fmt.Errorf("metric %q: %w", q.Metric, assay.ErrInvalid)
	}
	s.length = length(q.Values)
	if !(s.length <= maxNorm) {
		return fmt.Errorf("a vector of %s that is not finite, or longer than %g: %w", q.Model, maxNorm, assay.ErrInvalid)
	}
	if s.length == 0 && q.Metric == Cosine {
		return fmt.Errorf("a vector of %s that is zero has no direction: %w", q.Model, assay.ErrInvalid)
	}
	s.metric, s.total, s.size = q.Metric, 0, 0
	s.query.of(q.Values, s.length)
	s.rest.remainder(&s.query, q.Values, s.length)
	s.views = slices.Grow(s.views[:0], len(views))[:len(views)]
	angles := 0
	for i, view := range views {
		at := &s.views[i]
		*at = searchedView{vectorView: view, memory: at.memory}
		if view.vectors == nil {
			continue
		}
		if d := view.vectors.dims; d != len(q.Values) {
			return fmt.Errorf("a vector of %d dimensions, those of %s have %d: %w", len(q.Values), q.Model, d, assay.ErrInvalid)
		}
		at.count = view.vectors.count
		if view.kept != nil {
			at.memory, at.count = view.vectors.keptRows(view.kept, at.memory)
		}
		if at.count < view.vectors.count {
			at.set = at.memory
		}
		s.total += at.count
		if at.count > 0 {
			s.size += view.vectors.count
			at.angle, angles = s.angle(view.vectors.centred, q.Values, angles)
		}
	}
	return nil
}

// angle returns the query relative to the centre. The first known angles belong to this search. The
// second result is the new number of such angles.
func (s *vectorSearch) angle(centre []float32, values []float32, known int) (*angle, int) {
	for _, a := range s.angles[:known] {
		if slices.Equal(a.centre, centre) {
			return a, known
		}
	}
	if known == len(s.angles) {
		s.angles = append(s.angles, new(angle))
	}
	a := s.angles[known]
	a.centre, a.filled = centre, false
	a.residual.of(values, s.length, centre)
	a.base = a.residual.offset
	for _, c := range centre {
		a.base += float64(float64(c) * float64(c))
	}
	a.estimator = vector.Estimator{
		Code: a.residual.code, Dimensions: len(values),
		Base: float32(a.base), Gain: float32(a.residual.scale), ByNorm: s.metric != Cosine,
	}
	switch s.metric {
	case Dot:
		a.estimator.Slope = 1
	case L2:
		a.estimator.Slope, a.estimator.Bend = float32(2*s.length), 1
	}
	return a, known + 1
}

// all selects every kept row.
func (s *vectorSearch) all() {
	s.rows = s.rows[:0]
	for i := range s.views {
		switch view := &s.views[i]; {
		case view.count == 0:
		case view.set == nil:
			for row := range view.count {
				s.rows = append(s.rows, scoredRow{view: uint32(i), row: uint32(row)})
			}
		default:
			view.set.each(func(row uint32) {
				s.rows = append(s.rows, scoredRow{view: uint32(i), row: row})
			})
		}
	}
}

// scan estimates the similarity of every kept row and selects the best n.
func (s *vectorSearch) scan(ctx context.Context, n int) error {
	for _, threshold := range []float32{s.sample(n), everyScore} {
		if err := s.gather(ctx, n, threshold); err != nil {
			return err
		}
		if len(s.rows) >= n {
			break
		}
	}
	s.rows = s.best(s.rows, n)
	return nil
}

// everyScore is a threshold that every estimate reaches.
const everyScore = -math.MaxFloat32

// sample returns a threshold that about 1.5 n rows should reach. It estimates every fourth row of
// about 256 evenly spaced groups. If n is not much less than the number of rows, it returns
// everyScore.
func (s *vectorSearch) sample(n int) float32 {
	if s.total < 4*n {
		return everyScore
	}
	const groups, lanes = 256, 0x1111111111111111
	stride := max(1, s.size/vector.GroupRows/groups)
	var scores [vector.GroupRows]float32
	s.rows = s.rows[:0]
	for i := range s.views {
		view := &s.views[i]
		for row := 0; view.count > 0 && row < view.vectors.count; row += stride * vector.GroupRows {
			mask := view.mask(row) & lanes
			if mask == 0 {
				continue
			}
			mask &= view.angle.estimator.Estimate(view.vectors.group(row), everyScore, &scores)
			for ; mask != 0; mask &= mask - 1 {
				lane := bits.TrailingZeros64(mask)
				s.rows = append(s.rows, scoredRow{key: orderOf(float64(scores[lane])), view: uint32(i), row: uint32(row + lane)})
			}
		}
	}
	rank := n*len(s.rows)*3/2/s.total + 8
	if rank >= len(s.rows) {
		return everyScore
	}
	return float32(scoreOf(lowest(s.best(s.rows, rank))))
}

// gather selects the kept rows whose estimate reaches the threshold. Whenever it has 2 n rows, it
// keeps the best n and raises the threshold to the lowest of their scores.
func (s *vectorSearch) gather(ctx context.Context, n int, threshold float32) error {
	s.rows = slices.Grow(s.rows[:0], 2*n)
	var scores [vector.GroupRows]float32
	for i := range s.views {
		view := &s.views[i]
		for row := 0; view.count > 0 && row < view.vectors.count; row += vector.GroupRows {
			if row%blockRows == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			mask := view.mask(row)
			if mask == 0 {
				continue
			}
			mask &= view.angle.estimator.Estimate(view.vectors.group(row), threshold, &scores)
			for ; mask != 0; mask &= mask - 1 {
				lane := bits.TrailingZeros64(mask)
				s.rows = append(s.rows, scoredRow{key: orderOf(float64(scores[lane])), view: uint32(i), row: uint32(row + lane)})
				if len(s.rows) == 2*n {
					s.rows = s.best(s.rows, n)
					threshold = float32(scoreOf(lowest(s.rows)))
				}
			}
		}
	}
	return nil
}

// mask returns a mask of the rows that may be found among the 64 rows from row, a multiple of 64.
func (v *searchedView) mask(row int) uint64 {
	if v.set != nil {
		return v.set[row/vector.GroupRows]
	}
	if left := v.vectors.count - row; left < vector.GroupRows {
		return 1<<left - 1
	}
	return ^uint64(0)
}

// orderOf returns a sort key that ascends with the score, which must not be NaN.
func orderOf(score float64) uint64 {
	b := math.Float64bits(score + 0) // turns -0 into 0
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// scoreOf is the inverse of orderOf.
func scoreOf(key uint64) float64 {
	if key>>63 != 0 {
		return math.Float64frombits(key &^ (1 << 63))
	}
	return math.Float64frombits(^key)
}

func lowest(rows []scoredRow) uint64 {
	key := ^uint64(0)
	for _, r := range rows {
		key = min(key, r.key)
	}
	return key
}

// ahead is how many rows in advance the memory of a row is prefetched.
const ahead = 8

// refine scores the rows by the query's values and the rows' signs.
func (s *vectorSearch) refine(ctx context.Context) error {
	for i := range s.rows {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if next := i + ahead; next < len(s.rows) {
			r := s.rows[next]
			v := s.views[r.view].vectors
			vector.Prefetch(v.group(int(r.row)).Octet(vector.Words(v.dims), int(r.row)%vector.GroupRows))
		}
		r := &s.rows[i]
		view := &s.views[r.view]
		a := view.angle
		if !a.filled {
			a.integers, a.step = a.residual.integers(a.integers)
			a.table.Fill(a.integers[:len(a.centre)])
			a.filled = true
		}
		group, lane := view.vectors.group(int(r.row)), int(r.row)%vector.GroupRows
		numbers := group.Numbers(len(a.estimator.Code), lane)
		product := float64(float64(numbers.Scale) * float64(float64(a.step)*float64(a.table.Sum(group, lane))))
		score := s.score(a.base+float64(numbers.Offset)+product, float64(numbers.Norm))
		if math.IsNaN(score) {
			score = math.Inf(-1)
		}
		r.key = orderOf(score)
	}
	return nil
}

// score returns a value that orders rows by similarity. cosine is the cosine of the row with the
// query and norm is the row's norm.
func (s *vectorSearch) score(cosine, norm float64) float64 {
	switch s.metric {
	case Dot:
		return norm * cosine
	case L2:
		return norm * (float64(2*s.length*cosine) - norm)
	}
	return cosine
}

// rescore computes the rows' similarities from twelve bits per dimension. A similarity depends on
// the query and the row's vector alone, to the last bit: the sum is one of integers.
func (s *vectorSearch) rescore(ctx context.Context) error {
	for i := range s.rows {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if next := i + ahead; next < len(s.rows) {
			r := s.rows[next]
			vector.Prefetch(s.views[r.view].vectors.precise(int(r.row)))
		}
		r := &s.rows[i]
		vectors, row := s.views[r.view].vectors, int(r.row)
		numbers := vectors.numbers(row)
		precise := vectors.precise(row)
		product := float64(float64(s.query.step)*float64(vector.Dot(precise, s.query.integers))) +
			float64(float64(s.rest.step)*float64(vector.Dot(precise, s.rest.integers)))
		cosine := float64(float64(numbers.Step) * product)
		similarity := s.similarity(cosine, float64(numbers.Norm))
		if math.IsNaN(similarity) || math.IsInf(similarity, 0) {
			return damaged("vectors: a similarity is not a number")
		}
		r.key = orderOf(similarity)
	}
	return nil
}

// found returns the limit best rows as neighbours.
func (s *vectorSearch) found(limit int) []neighbour {
	rows := s.best(s.rows, limit)
	slices.SortFunc(rows, func(a, b scoredRow) int {
		if a.key != b.key {
			return cmp.Compare(b.key, a.key)
		}
		return s.compareIDs(a, b)
	})
	list := make([]neighbour, len(rows))
	for i, r := range rows {
		chunk := s.views[r.view].vectors.chunkOf(int(r.row))
		list[i] = neighbour{view: int(r.view), chunk: chunk, similarity: scoreOf(r.key)}
	}
	return list
}

// similarity returns the similarity, under the search's metric, of a row with the given norm and
// cosine with the query's direction.
func (s *vectorSearch) similarity(cosine, norm float64) float64 {
	if norm == 0 {
		cosine = 0
	}
	switch s.metric {
	case Dot:
		return s.length * norm * cosine
	case L2:
		squares := float64(s.length*s.length) + float64(norm*norm) - float64(2*s.length*norm*cosine)
		return -math.Sqrt(max(0, squares))
	}
	return max(-1, min(1, cosine))
}

func (s *vectorSearch) compareIDs(a, b scoredRow) int { return bytes.Compare(s.id(a), s.id(b)) }

func (s *vectorSearch) id(r scoredRow) []byte {
	view := &s.views[r.view]
	return view.ids[16*int(view.vectors.chunkOf(int(r.row))):][:16]
}

// selectBits is the number of key bits that best examines in one round.
const selectBits = 11

// best moves the n best rows to the front, in no particular order, and returns them. Ties go to the
// smaller chunk ID. Each round counts rows by the leading bits in which their keys differ and
// continues only with the bucket that contains the n-th row.
func (s *vectorSearch) best(rows []scoredRow, n int) []scoredRow {
	rest := rows
	for n := n; len(rest) > n; {
		low, high := rest[0].key, rest[0].key
		for _, r := range rest {
			low, high = min(low, r.key), max(high, r.key)
		}
		if low == high {
			slices.SortFunc(rest, s.compareIDs)
			break
		}
		shift := max(0, bits.Len64(low^high)-selectBits)
		clear(s.counts[:])
		for _, r := range rest {
			s.counts[r.key>>shift%(1<<selectBits)]++
		}
		bucket, above := high>>shift, 0
		for above+int(s.counts[bucket%(1<<selectBits)]) < n {
			above += int(s.counts[bucket%(1<<selectBits)])
			bucket--
		}
		s.ties = s.ties[:0]
		front := 0
		for _, r := range rest {
			switch b := r.key >> shift; {
			case b > bucket:
				rest[front] = r
				front++
			case b == bucket:
				s.ties = append(s.ties, r)
			}
		}
		n -= above
		rest = rest[above : above+copy(rest[above:], s.ties)]
	}
	return rows[:min(n, len(rows))]
}
