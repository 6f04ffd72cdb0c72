package learn

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Bag is a small network that tells which of some classes a bag of items is of: here
// the words of a claim, each beside what the evidence has of it. Each item goes through
// the same two layers, whose outputs are averaged over the bag, and the greatest of each
// is taken; a linear layer weighs both. A claim is wrong for one wrong word: that is what
// the greatest is for.
//
// An item is Pairs pairs of vectors of Width numbers, a and b, and then Scalars numbers.
// Of each pair the network sees a, b, their product and the size of their difference,
// number by number.
//
// Sources: Parikh, Täckström, Das and Uszkoreit, "A decomposable attention model for
// natural language inference", EMNLP 2016, compares aligned words alone; Conneau, Kiela,
// Schwenk, Barrault and Bordes, "Supervised learning of universal sentence
// representations from natural language inference data", EMNLP 2017, joins u, v, |u-v|
// and u*v; Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015;
// Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019.
type Bag struct {
	Pairs   int `json:"pairs"`
	Width   int `json:"width"`
	Scalars int `json:"scalars"`
	Hidden  int `json:"hidden"`
	Outputs int `json:"outputs"` // of the items
	Classes int `json:"classes"`

	// Layers are weights, a row for each output of a layer with its bias last: of the
	// items' first and second layer, and of the bag's.
	Layers [3][][]float32 `json:"layers"`
}

// A BagExample is a bag to learn from.
type BagExample struct {
	Items  [][]float32 // at least one, each of the bag's ItemSize numbers
	Class  int
	Weight float64 // positive; 1 on average
}

// BagConfig says how a Bag is trained. Its fields are all needed but Decay.
type BagConfig struct {
	Epochs int
	Batch  int
	Rate   float64 // of the first step; it falls to 0
	Decay  float64 // of weights, as a share of the step
	Drop   float64 // share of the items' inputs that are left out in training, within [0, 1)
	Seed   uint64
}

// ItemSize is how many numbers an item has.
func (b *Bag) ItemSize() int { return 2*b.Pairs*b.Width + b.Scalars }

func (b *Bag) inputs() int { return 4*b.Pairs*b.Width + b.Scalars }

// pooled is how many numbers stand for a bag: the mean and the greatest of each output,
// and how many items there are.
func (b *Bag) pooled() int { return 2*b.Outputs + 1 }

// Fits reports whether the weights are of the sizes that b says.
func (b *Bag) Fits() bool {
	if b.Pairs < 0 || b.Width < 0 || b.Scalars < 0 || b.Hidden < 1 || b.Outputs < 1 || b.Classes < 2 {
		return false
	}
	for i, size := range b.sizes() {
		if len(b.Layers[i]) != size[0] || slices.ContainsFunc(b.Layers[i], func(row []float32) bool { return len(row) != size[1] }) {
			return false
		}
	}
	return true
}

// sizes are those of the layers: rows and columns.
func (b *Bag) sizes() [3][2]int {
	return [3][2]int{{b.Hidden, b.inputs() + 1}, {b.Outputs, b.Hidden + 1}, {b.Classes, b.pooled() + 1}}
}

// LogOdds returns the score of each class of a bag: the differences are log odds.
func (b *Bag) LogOdds(items [][]float32) []float32 {
	p := newPass(b, len(items))
	p.forward(items)
	return p.scores
}

// A pass is one bag on its way through the network.
type pass struct {
	b        *Bag
	in       [][]float32 // of each item
	hidden   [][]float32
	out      [][]float32
	bag      []float32
	greatest []int // item of each output
	scores   []float32
}

func newPass(b *Bag, items int) *pass {
	p := &pass{b: b, bag: make([]float32, b.pooled()+1), greatest: make([]int, b.Outputs), scores: make([]float32, b.Classes)}
	p.room(items)
	return p
}

func (p *pass) room(items int) {
	for len(p.in) < items {
		p.in = append(p.in, make([]float32, p.b.inputs()+1))
		p.hidden = append(p.hidden, make([]float32, p.b.Hidden+1))
		p.out = append(p.out, make([]float32, p.b.Outputs))
	}
}

func (p *pass) forward(items [][]float32) {
	p.room(len(items))
	for i, item := range items {
		p.b.expand(item, p.in[i])
	}
	p.through(len(items))
}

// through takes the first n of p.in through the layers.
func (p *pass) through(n int) {
	b := p.b
	clear(p.bag)
	for i := range n {
		in, hidden, out := p.in[i], p.hidden[i], p.out[i]
		for k, row := range b.Layers[0] {
			hidden[k] = max(product(row, in), 0)
		}
		hidden[b.Hidden] = 1
		for k, row := range b.Layers[1] {
			x := float32(math.Tanh(float64(product(row, hidden))))
			out[k] = x
			p.bag[k] += x / float32(n)
			if i == 0 || x > p.bag[b.Outputs+k] {
				p.bag[b.Outputs+k], p.greatest[k] = x, i
			}
		}
	}
	p.bag[2*b.Outputs] = float32(math.Log1p(float64(n))) / 4
	p.bag[2*b.Outputs+1] = 1
	for k, row := range b.Layers[2] {
		p.scores[k] = product(row, p.bag)
	}
}

// expand writes what the network sees of an item.
func (b *Bag) expand(item, in []float32) {
	w := b.Width
	for k := range b.Pairs {
		x, y := item[2*k*w:(2*k+1)*w], item[(2*k+1)*w:(2*k+2)*w]
		to := in[4*k*w : 4*(k+1)*w]
		for i := range x {
			to[i], to[w+i], to[2*w+i] = x[i], y[i], x[i]*y[i]
			to[3*w+i] = max(x[i]-y[i], y[i]-x[i])
		}
	}
	copy(in[4*b.Pairs*w:], item[2*b.Pairs*w:])
	in[b.inputs()] = 1
}

func product(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// backward adds to gradient that of the weighted log loss of a bag of n items that has
// been through the layers.
func (p *pass) backward(n, class int, weight float32, gradient *Bag) {
	b := p.b
	toBag := make([]float32, len(p.bag))
	for k, share := range softmax(p.scores) {
		d := share
		if k == class {
			d--
		}
		d *= weight
		add(gradient.Layers[2][k], p.bag, d)
		add(toBag, b.Layers[2][k], d)
	}
	toHidden := make([]float32, b.Hidden+1)
	for i := range n {
		clear(toHidden)
		for k := range b.Outputs {
			d := toBag[k] / float32(n)
			if p.greatest[k] == i {
				d += toBag[b.Outputs+k]
			}
			d *= 1 - p.out[i][k]*p.out[i][k]
			add(gradient.Layers[1][k], p.hidden[i], d)
			add(toHidden, b.Layers[1][k], d)
		}
		for k := range b.Hidden {
			if p.hidden[i][k] > 0 {
				add(gradient.Layers[0][k], p.in[i], toHidden[k])
			}
		}
	}
}

func softmax(scores []float32) []float32 {
	out := make([]float32, len(scores))
	most := slices.Max(scores)
	sum := 0.0
	for i, s := range scores {
		e := math.Exp(float64(s - most))
		out[i] = float32(e)
		sum += e
	}
	for i := range out {
		out[i] /= float32(sum)
	}
	return out
}

func add(to, what []float32, times float32) {
	what = what[:len(to)]
	for i := range to {
		to[i] += times * what[i]
	}
}

// TrainBag trains a network of the sizes that shape says on bags, by Adam with decoupled
// weight decay.
func TrainBag(shape *Bag, examples []BagExample, c BagConfig) *Bag {
	b := &Bag{Pairs: shape.Pairs, Width: shape.Width, Scalars: shape.Scalars, Hidden: shape.Hidden, Outputs: shape.Outputs, Classes: shape.Classes}
	random := rand.New(rand.NewPCG(c.Seed, 3))
	b.Layers = b.drawn(random)
	gradient := &Bag{Layers: b.zeros()}
	first, second := b.zeros(), b.zeros()
	order := make([]int, len(examples))
	for i := range order {
		order[i] = i
	}
	p := newPass(b, 1)
	steps := c.Epochs * ((len(examples) + c.Batch - 1) / c.Batch)
	step := 0
	for range c.Epochs {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for batch := range slices.Chunk(order, c.Batch) {
			for l := range gradient.Layers {
				for _, row := range gradient.Layers[l] {
					clear(row)
				}
			}
			for _, i := range batch {
				e := examples[i]
				p.room(len(e.Items))
				for k, item := range e.Items {
					b.expand(item, p.in[k])
				}
				p.drop(len(e.Items), c.Drop, random)
				p.through(len(e.Items))
				p.backward(len(e.Items), e.Class, float32(e.Weight)/float32(len(batch)), gradient)
			}
			step++
			rate := c.Rate * (1 - float64(step-1)/float64(steps))
			adam{step, rate, c.Decay}.take(b, gradient, first, second)
		}
	}
	for l := range b.Layers {
		for _, row := range b.Layers[l] {
			for i, x := range row {
				row[i] = float32(round(float64(x), 1e-4))
			}
		}
	}
	return b
}

// drop leaves out a share of what the network sees of a bag, the same of all its items,
// and makes the rest greater for it.
func (p *pass) drop(n int, share float64, random *rand.Rand) {
	if share == 0 {
		return
	}
	keep := float32(1 / (1 - share))
	for j := range p.b.inputs() {
		scale := keep
		if random.Float64() < share {
			scale = 0
		}
		for i := range n {
			p.in[i][j] *= scale
		}
	}
}

// drawn are weights to begin with, zeros none.
func (b *Bag) drawn(random *rand.Rand) [3][][]float32 {
	layers := b.zeros()
	for l := range layers {
		for _, row := range layers[l] {
			scale := math.Sqrt(1 / float64(len(row)))
			for i := range row[:len(row)-1] {
				row[i] = float32(random.NormFloat64() * scale)
			}
		}
	}
	return layers
}

func (b *Bag) zeros() [3][][]float32 {
	var layers [3][][]float32
	for l, size := range b.sizes() {
		layers[l] = make([][]float32, size[0])
		for i := range layers[l] {
			layers[l][i] = make([]float32, size[1])
		}
	}
	return layers
}

// adam is one step of the method of that name.
type adam struct {
	step        int
	rate, decay float64
}

func (a adam) take(b, gradient *Bag, first, second [3][][]float32) {
	const keepFirst, keepSecond, least = 0.9, 0.999, 1e-8
	scale1 := float32(1 / (1 - math.Pow(keepFirst, float64(a.step))))
	scale2 := 1 / (1 - math.Pow(keepSecond, float64(a.step)))
	rate, decay := float32(a.rate), float32(a.rate*a.decay)
	for l := range b.Layers {
		for r, row := range b.Layers[l] {
			g, m, v := gradient.Layers[l][r], first[l][r], second[l][r]
			for i := range row {
				m[i] = keepFirst*m[i] + (1-keepFirst)*g[i]
				v[i] = keepSecond*v[i] + (1-keepSecond)*g[i]*g[i]
				size := float32(math.Sqrt(float64(v[i]) * scale2))
				row[i] -= rate*m[i]*scale1/(size+least) + decay*row[i]
			}
		}
	}
}
