package learn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bags makes examples of two bags: those of class 1 have one item in the first whose two
// vectors differ. The second holds noise, or nothing.
func bags(n int) []BagExample {
	random := rand.New(rand.NewPCG(1, 2))
	var out []BagExample
	for i := range n {
		e := BagExample{Class: i % 2, Weight: 1, Bags: make([][][]float32, 2)}
		odd := random.IntN(5)
		for k := range 5 {
			item := make([]float32, 7)
			for j := range 3 {
				item[j] = float32(random.NormFloat64())
				item[3+j] = item[j]
				if e.Class == 1 && k == odd {
					item[3+j] = float32(random.NormFloat64())
				}
			}
			e.Bags[0] = append(e.Bags[0], item)
		}
		for range random.IntN(3) {
			e.Bags[1] = append(e.Bags[1], []float32{float32(random.NormFloat64()), 1})
		}
		out = append(out, e)
	}
	return out
}

var bagShape = Bag{
	Towers: []Tower{{Pairs: 1, Width: 3, Scalars: 1, Hidden: 8, Outputs: 2}, {Scalars: 2, Hidden: 2, Outputs: 1}},
	Upper:  3, Classes: 2,
}

func TestTrainBag(t *testing.T) {
	c := BagConfig{Epochs: 30, Batch: 8, Rate: 0.02, Decay: 0.001, Seed: 1}
	b := TrainBag(&bagShape, bags(300), c)
	right := 0
	test := bags(500)[300:]
	for _, e := range test {
		if s := b.LogOdds(e.Bags); s[1] > s[0] == (e.Class == 1) {
			right++
		}
	}
	if right < 180 {
		t.Errorf("%d of %d bags are told apart, want 180", right, len(test))
	}
	if diff := cmp.Diff(b, TrainBag(&bagShape, bags(300), c)); diff != "" {
		t.Errorf("trained twice, the weights differ:\n%s", diff)
	}
	if !b.Fits() {
		t.Error("a trained network does not fit its own sizes")
	}
}

// The gradient is the slope of the loss.
func TestBagGradient(t *testing.T) {
	b := bagShape.blank()
	b.draw(rand.New(rand.NewPCG(4, 4)))
	for _, e := range bags(6) {
		loss := func() float64 {
			p := newPass(b)
			p.read(e.Bags)
			p.through()
			return -math.Log(float64(softmax(p.scores)[e.Class]))
		}
		gradient := b.blank()
		p := newPass(b)
		p.read(e.Bags)
		p.through()
		p.backward(e.Class, 1, gradient)
		for l, layer := range b.weights() {
			for r, row := range layer {
				for i := range row {
					const step = 5e-4
					old := row[i]
					row[i] = old + step
					above := loss()
					row[i] = old - step
					below := loss()
					row[i] = old
					if want, got := (above-below)/(2*step), float64(gradient.weights()[l][r][i]); math.Abs(got-want) > 0.02+0.05*math.Abs(want) {
						t.Errorf("layer %d, weight %d, %d: gradient %.4f, want %.4f", l, r, i, got, want)
					}
				}
			}
		}
	}
}

func TestBagFits(t *testing.T) {
	b := bagShape.blank()
	if !b.Fits() || !b.Alike(&bagShape) {
		t.Error("zeros of its sizes do not fit")
	}
	b.Towers[1].Layers[1][0] = b.Towers[1].Layers[1][0][1:]
	if b.Fits() {
		t.Error("a row that is too short fits")
	}
	b = bagShape.blank()
	b.Layers[0] = b.Layers[0][1:]
	if b.Fits() {
		t.Error("a layer that lacks a row fits")
	}
	b.Towers[0].Hidden++
	if b.Alike(&bagShape) {
		t.Error("a network of another size is alike")
	}
}

func TestPrincipal(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	var vectors [][]float32
	for range 2000 {
		a, b := random.NormFloat64(), random.NormFloat64()
		vectors = append(vectors, []float32{float32(2 * a), float32(2*a + 0.1*b), float32(b), 0})
	}
	rows := Principal(vectors, 2)
	for i, row := range rows {
		square := 0.0
		for _, v := range vectors {
			x := float64(product(row, v))
			square += x * x
		}
		if got := math.Sqrt(square / float64(len(vectors))); math.Abs(got-0.5) > 0.02 {
			t.Errorf("products with row %d have a deviation of %.3f, want 0.5", i, got)
		}
	}
	if r := rows[0]; math.Abs(float64(r[0]-r[1])) > 0.02 || math.Abs(float64(r[3])) > 1e-3 {
		t.Errorf("the first direction is %v, want its first two numbers equal", r)
	}
}
