package learn

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// corners are rows in which neither feature alone tells the class: both high or both low.
func corners(n int) []Row {
	random := rand.New(rand.NewPCG(1, 2))
	rows := make([]Row, n)
	for i := range rows {
		a, b := random.Float64(), random.Float64()
		rows[i] = Row{Features: []float64{a, b, random.Float64(), 0}, Positive: (a > 0.5) == (b > 0.5), Weight: 1}
	}
	return rows
}

var small = BoostConfig{Rounds: 60, Depth: 3, Rate: 0.2, Ridge: 1, Least: 3, Rows: 0.8, Columns: 1, Seed: 3}

func right(rows []Row, odds func([]float64) float64) float64 {
	n := 0.0
	for _, r := range rows {
		if (odds(r.Features) > 0) == r.Positive {
			n++
		}
	}
	return n / float64(len(rows))
}

func TestBoost(t *testing.T) {
	rows := corners(600)
	trees := Boost(rows[:400], small)
	if got := right(rows[400:], trees.LogOdds); got < 0.9 {
		t.Errorf("trees tell %.2f of the rows they have not seen, want 0.9", got)
	}
	if got := right(rows[400:], Logistic(rows[:400], 0.01).LogOdds); got > 0.7 {
		t.Errorf("a linear model tells %.2f: the rows are too easy", got)
	}
	if d := cmp.Diff(trees, Boost(rows[:400], small)); d != "" {
		t.Errorf("trees of the same rows differ:\n%s", d)
	}
	if !trees.Fits(4) || trees.Fits(1) {
		t.Error("Fits is wrong about how many features the trees ask for")
	}
	mean := Mean(trees, trees)
	if x := rows[500].Features; math.Abs(mean.LogOdds(x)-trees.LogOdds(x)) > 1e-2 {
		t.Errorf("the mean of two equal models gives %g, each %g", mean.LogOdds(x), trees.LogOdds(x))
	}
}

// Trees that went through JSON ask the same.
func TestTreesJSON(t *testing.T) {
	trees := Boost(corners(200), small)
	data, err := json.Marshal(trees)
	if err != nil {
		t.Fatal(err)
	}
	var again Trees
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(*trees, again); d != "" {
		t.Error(d)
	}
}

func TestFits(t *testing.T) {
	for name, tree := range map[string]Tree{
		"no node":         {},
		"a circle":        {Feature: []int{0, -1, -1}, Cut: []float64{0, 0, 0}, Left: []int{0, 0, 0}},
		"a missing child": {Feature: []int{0, -1}, Cut: []float64{0, 0}, Left: []int{1, 0}},
		"no cut":          {Feature: []int{-1}, Left: []int{0}},
	} {
		if trees := (&Trees{Trees: []Tree{tree}}); trees.Fits(4) {
			t.Errorf("a tree with %s fits", name)
		}
	}
}

// One class, or nothing, is learned too.
func TestBoostOfOneClass(t *testing.T) {
	rows := []Row{{Features: []float64{1}, Positive: true, Weight: 1}, {Features: []float64{2}, Positive: true, Weight: 1}}
	if got := Boost(rows, small).LogOdds([]float64{1}); got < 2 {
		t.Errorf("log odds %g where all is positive", got)
	}
	if got := Boost(nil, small).LogOdds(nil); got > 0 {
		t.Errorf("log odds %g where nothing is known", got)
	}
	if got := Logistic(nil, 1).LogOdds(nil); got != 0 {
		t.Errorf("log odds %g where nothing is known", got)
	}
}

// The weights of two rows that contradict one another are the share of either.
func TestLogisticWeights(t *testing.T) {
	rows := []Row{
		{Features: []float64{1}, Positive: true, Weight: 3}, {Features: []float64{1}, Positive: false, Weight: 1},
		{Features: []float64{0}, Positive: true, Weight: 1}, {Features: []float64{0}, Positive: false, Weight: 3},
	}
	l := Logistic(rows, 1e-9)
	for x, want := range map[float64]float64{1: 0.75, 0: 0.25} {
		if got := Sigmoid(l.LogOdds([]float64{x})); math.Abs(got-want) > 1e-3 {
			t.Errorf("p(%g) = %.4f, want %.4f", x, got, want)
		}
	}
	if got := LogOdds(Sigmoid(0.7)); math.Abs(got-0.7) > 1e-12 {
		t.Errorf("LogOdds(Sigmoid(0.7)) = %g", got)
	}
}
