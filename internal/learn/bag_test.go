package learn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bags makes bags of which those of class 1 have one item whose two vectors differ.
func bags(n int) []BagExample {
	random := rand.New(rand.NewPCG(1, 2))
	var out []BagExample
	for i := range n {
		e := BagExample{Class: i % 2, Weight: 1}
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
			e.Items = append(e.Items, item)
		}
		out = append(out, e)
	}
	return out
}

var bagShape = Bag{Pairs: 1, Width: 3, Scalars: 1, Hidden: 8, Outputs: 2, Classes: 2}

func TestTrainBag(t *testing.T) {
	c := BagConfig{Epochs: 30, Batch: 8, Rate: 0.02, Decay: 0.001, Seed: 1}
	b := TrainBag(&bagShape, bags(300), c)
	right := 0
	test := bags(500)[300:]
	for _, e := range test {
		if s := b.LogOdds(e.Items); s[1] > s[0] == (e.Class == 1) {
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
	b := bagShape
	b.Layers = b.drawn(rand.New(rand.NewPCG(4, 4)))
	e := bags(2)[1]
	loss := func() float64 {
		p := newPass(&b, 1)
		p.forward(e.Items)
		return -math.Log(float64(softmax(p.scores)[e.Class]))
	}
	gradient := &Bag{Layers: b.zeros()}
	p := newPass(&b, 1)
	p.forward(e.Items)
	p.backward(len(e.Items), e.Class, 1, gradient)
	for l := range b.Layers {
		for r, row := range b.Layers[l] {
			for i := range row {
				const step = 1e-2
				old := row[i]
				row[i] = old + step
				above := loss()
				row[i] = old - step
				below := loss()
				row[i] = old
				if want, got := (above-below)/(2*step), float64(gradient.Layers[l][r][i]); math.Abs(got-want) > 0.02+0.05*math.Abs(want) {
					t.Errorf("layer %d, weight %d, %d: gradient %.4f, want %.4f", l, r, i, got, want)
				}
			}
		}
	}
}

func TestBagFits(t *testing.T) {
	b := bagShape
	b.Layers = b.zeros()
	if !b.Fits() {
		t.Error("zeros of its sizes do not fit")
	}
	b.Layers[1][0] = b.Layers[1][0][1:]
	if b.Fits() {
		t.Error("a row that is too short fits")
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
