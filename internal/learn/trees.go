package learn

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Trees is a sum of regression trees: the log odds of the positive class.
type Trees struct {
	Bias  float64 `json:"bias"`
	Trees []Tree  `json:"trees"`
}

// A Tree is its nodes, the root first. Node i is a leaf where Feature[i] < 0.
type Tree struct {
	Feature []int     `json:"f"` // that a node asks for
	Cut     []float64 `json:"c"` // at most this: the left child; of a leaf what it adds
	Left    []int     `json:"l"` // the right child is the one after it
}

// LogOdds returns the log odds that a row is positive.
func (t *Trees) LogOdds(features []float64) float64 {
	sum := t.Bias
	for i := range t.Trees {
		sum += t.Trees[i].value(features)
	}
	return sum
}

func (t *Tree) value(features []float64) float64 {
	n := 0
	for t.Feature[n] >= 0 {
		next := t.Left[n]
		if features[t.Feature[n]] > t.Cut[n] {
			next++
		}
		n = next
	}
	return t.Cut[n]
}

// BoostConfig says how trees are grown. Its fields are all needed.
type BoostConfig struct {
	Rounds  int     // trees
	Depth   int     // of a tree; 1 asks for one feature
	Rate    float64 // share of each step that is taken, within (0, 1]
	Ridge   float64 // added to the curvature of a leaf
	Least   float64 // weight of the rows of a leaf
	Rows    float64 // share of the rows that each tree sees
	Columns float64 // share of the features
	Seed    uint64
}

// maxBins is how many ranges of a feature are told apart.
const maxBins = 48

// Boost grows trees that minimise the weighted log loss of rows, by second-order steps.
//
// Source: Friedman, "Greedy function approximation: a gradient boosting machine", 2001;
// the gain and leaf values are those of Chen and Guestrin, "XGBoost", KDD 2016, eq. 5-7.
func Boost(rows []Row, c BoostConfig) *Trees {
	g := grower{BoostConfig: c, rows: rows, random: rand.New(rand.NewPCG(c.Seed, 1))}
	g.bin()
	var positive, all float64
	for _, r := range rows {
		all += r.Weight
		if r.Positive {
			positive += r.Weight
		}
	}
	out := &Trees{}
	if all == 0 || positive == 0 || positive == all {
		out.Bias = 10
		if positive == 0 {
			out.Bias = -10
		}
		return out
	}
	for i := range g.rows {
		g.rows[i].Weight *= float64(len(rows)) / all
	}
	out.Bias = round(LogOdds(positive/all), 1e-5)
	g.odds = slices.Repeat([]float64{out.Bias}, len(rows))
	for range c.Rounds {
		tree := g.grow()
		for i, r := range rows {
			g.odds[i] += tree.value(r.Features)
		}
		out.Trees = append(out.Trees, tree)
	}
	return out
}

type grower struct {
	BoostConfig
	rows   []Row
	random *rand.Rand
	bins   [][]uint8   // by feature, of each row
	cuts   [][]float64 // by feature: bin b holds what is at most cuts[b]
	odds   []float64
	slope  []float64
	curve  []float64
}

// bin cuts each feature's values into ranges of about as many rows.
func (g *grower) bin() {
	rows := slices.Clone(g.rows)
	g.rows = rows
	if len(rows) == 0 {
		return
	}
	g.slope, g.curve = make([]float64, len(rows)), make([]float64, len(rows))
	values := make([]float64, len(rows))
	for f := range rows[0].Features {
		for i, r := range rows {
			values[i] = r.Features[f]
		}
		slices.Sort(values)
		distinct := slices.Compact(slices.Clone(values))
		var cuts []float64
		if len(distinct) <= maxBins {
			for i := 1; i < len(distinct); i++ {
				cuts = append(cuts, (distinct[i-1]+distinct[i])/2)
			}
		} else {
			for b := 1; b < maxBins; b++ {
				at := b * len(values) / maxBins
				j, _ := slices.BinarySearch(distinct, values[at])
				if j > 0 {
					cuts = append(cuts, (distinct[j-1]+distinct[j])/2)
				}
			}
			cuts = slices.Compact(cuts)
		}
		column := make([]uint8, len(rows))
		for i, r := range rows {
			b, _ := slices.BinarySearch(cuts, r.Features[f])
			column[i] = uint8(b)
		}
		g.cuts, g.bins = append(g.cuts, cuts), append(g.bins, column)
	}
}

// A part is the rows of one node.
type part struct {
	node, depth  int
	rows         []int
	slope, curve float64
}

func (g *grower) grow() Tree {
	var root part
	for i, r := range g.rows {
		if g.Rows < 1 && g.random.Float64() >= g.Rows {
			continue
		}
		p, y := Sigmoid(g.odds[i]), 0.0
		if r.Positive {
			y = 1
		}
		g.slope[i], g.curve[i] = r.Weight*(p-y), r.Weight*p*(1-p)
		root.rows = append(root.rows, i)
		root.slope += g.slope[i]
		root.curve += g.curve[i]
	}
	var columns []int
	for f := range g.cuts {
		if len(g.cuts[f]) > 0 && (g.Columns >= 1 || g.random.Float64() < g.Columns) {
			columns = append(columns, f)
		}
	}
	t := Tree{Feature: []int{-1}, Cut: []float64{0}, Left: []int{0}}
	for queue := []part{root}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		t.Cut[p.node] = round(-g.Rate*p.slope/(p.curve+g.Ridge), 1e-5)
		if p.depth == g.Depth {
			continue
		}
		f, bin, ok := g.best(p, columns)
		if !ok {
			continue
		}
		left, right := part{node: len(t.Feature), depth: p.depth + 1}, part{node: len(t.Feature) + 1, depth: p.depth + 1}
		for _, i := range p.rows {
			side := &left
			if int(g.bins[f][i]) > bin {
				side = &right
			}
			side.rows = append(side.rows, i)
			side.slope += g.slope[i]
			side.curve += g.curve[i]
		}
		t.Feature[p.node], t.Cut[p.node], t.Left[p.node] = f, g.cuts[f][bin], left.node
		t.Feature, t.Cut, t.Left = append(t.Feature, -1, -1), append(t.Cut, 0, 0), append(t.Left, 0, 0)
		queue = append(queue, left, right)
	}
	return t
}

// best finds the question that tells a node's rows apart best.
func (g *grower) best(p part, columns []int) (feature, bin int, ok bool) {
	most := 1e-6
	for _, f := range columns {
		var slope, curve, weight [maxBins]float64
		all := 0.0
		column := g.bins[f]
		for _, i := range p.rows {
			b := column[i]
			slope[b] += g.slope[i]
			curve[b] += g.curve[i]
			weight[b] += g.rows[i].Weight
			all += g.rows[i].Weight
		}
		var s, c, w float64
		whole := p.slope * p.slope / (p.curve + g.Ridge)
		for b := range g.cuts[f] {
			s, c, w = s+slope[b], c+curve[b], w+weight[b]
			if w < g.Least || all-w < g.Least {
				continue
			}
			gain := s*s/(c+g.Ridge) + (p.slope-s)*(p.slope-s)/(p.curve-c+g.Ridge) - whole
			if gain > most && !math.IsNaN(gain) {
				most, feature, bin, ok = gain, f, b, true
			}
		}
	}
	return feature, bin, ok
}

// Fits reports whether trees ask for n features at most and lead to leaves.
func (t *Trees) Fits(n int) bool {
	for _, tree := range t.Trees {
		if len(tree.Feature) == 0 || len(tree.Cut) != len(tree.Feature) || len(tree.Left) != len(tree.Feature) {
			return false
		}
		for i, f := range tree.Feature {
			if f >= n || f >= 0 && (tree.Left[i] <= i || tree.Left[i]+1 >= len(tree.Feature)) {
				return false
			}
		}
	}
	return true
}

// Mean returns trees that give the mean of the log odds of others.
func Mean(all ...*Trees) *Trees {
	out := &Trees{}
	share := 1 / float64(len(all))
	for _, t := range all {
		out.Bias += t.Bias * share
		for _, tree := range t.Trees {
			cut := slices.Clone(tree.Cut)
			for i, f := range tree.Feature {
				if f < 0 {
					cut[i] = round(cut[i]*share, 1e-5)
				}
			}
			out.Trees = append(out.Trees, Tree{Feature: tree.Feature, Cut: cut, Left: tree.Left})
		}
	}
	return out
}
