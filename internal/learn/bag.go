package learn

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Bag is a small network that tells which of some classes an example is of that is made
// of bags of items: here the words of a claim, each beside what the evidence has of it, and
// the words of the evidence beside what the claim has. Each kind of bag has a tower: each of
// its items goes through the same two layers, whose outputs are averaged over the bag, and
// the greatest of each is taken. What the towers say is joined and weighed by a linear
// layer, beside a hidden one over the same. A claim is wrong for one wrong word: that is
// what the greatest is for.
//
// Sources: Parikh, Täckström, Das and Uszkoreit, "A decomposable attention model for
// natural language inference", EMNLP 2016, compares aligned words alone, both ways;
// Conneau, Kiela, Schwenk, Barrault and Bordes, "Supervised learning of universal sentence
// representations from natural language inference data", EMNLP 2017, joins u, v, |u-v|
// and u*v; Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015;
// Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019.
type Bag struct {
	Towers  []Tower `json:"towers"`
	Upper   int     `json:"upper"` // outputs of the hidden layer over what is joined
	Classes int     `json:"classes"`

	// Layers are weights, a row for each output with its bias last: of the hidden layer
	// over what is joined, and of the classes, over what is joined and the hidden layer.
	Layers [2][][]float32 `json:"layers"`
}

// A Tower reads the bags of one kind. An item is Pairs pairs of vectors of Width numbers, a
// and b, and then Scalars numbers. Of each pair the network sees a, b, their product and
// the size of their difference, number by number.
type Tower struct {
	Pairs   int `json:"pairs"`
	Width   int `json:"width"`
	Scalars int `json:"scalars"`
	Hidden  int `json:"hidden"`
	Outputs int `json:"outputs"`

	// Layers are weights, a row for each output of a layer with its bias last.
	Layers [2][][]float32 `json:"layers"`
}

// A BagExample is an example to learn from.
type BagExample struct {
	Bags   [][][]float32 // for each tower items, each of its ItemSize numbers; a bag may be empty
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
	Start  *Bag // of shape's sizes: it is trained further, itself unchanged; nil: weights are drawn
}

// ItemSize is how many numbers an item has.
func (t *Tower) ItemSize() int { return 2*t.Pairs*t.Width + t.Scalars }

func (t *Tower) inputs() int { return 4*t.Pairs*t.Width + t.Scalars }

// pooled is how many numbers stand for a bag: the mean and the greatest of each output,
// and how many items there are.
func (t *Tower) pooled() int { return 2*t.Outputs + 1 }

func (t *Tower) sizes() [2][2]int {
	return [2][2]int{{t.Hidden, t.inputs() + 1}, {t.Outputs, t.Hidden + 1}}
}

// Alike reports whether two networks have the same sizes.
func (b *Bag) Alike(o *Bag) bool {
	if b.Upper != o.Upper || b.Classes != o.Classes || len(b.Towers) != len(o.Towers) {
		return false
	}
	for i := range b.Towers {
		t, u := &b.Towers[i], &o.Towers[i]
		if t.Pairs != u.Pairs || t.Width != u.Width || t.Scalars != u.Scalars || t.Hidden != u.Hidden || t.Outputs != u.Outputs {
			return false
		}
	}
	return true
}

// Fits reports whether the weights are of the sizes that b says.
func (b *Bag) Fits() bool {
	if len(b.Towers) == 0 || b.Upper < 0 || b.Classes < 2 || !fits(b.Layers[:], b.sizes()) {
		return false
	}
	for i := range b.Towers {
		t := &b.Towers[i]
		if t.Pairs < 0 || t.Width < 0 || t.Scalars < 0 || t.Hidden < 1 || t.Outputs < 1 || !fits(t.Layers[:], t.sizes()) {
			return false
		}
	}
	return true
}

func fits(layers [][][]float32, sizes [2][2]int) bool {
	for i, size := range sizes {
		if len(layers[i]) != size[0] || slices.ContainsFunc(layers[i], func(row []float32) bool { return len(row) != size[1] }) {
			return false
		}
	}
	return true
}

// joined is how many numbers the towers give together.
func (b *Bag) joined() int {
	n := 0
	for i := range b.Towers {
		n += b.Towers[i].pooled()
	}
	return n
}

func (b *Bag) sizes() [2][2]int {
	return [2][2]int{{b.Upper, b.joined() + 1}, {b.Classes, b.joined() + 1 + b.Upper}}
}

// weights are all layers, those of the towers first.
func (b *Bag) weights() [][][]float32 {
	var all [][][]float32
	for i := range b.Towers {
		all = append(all, b.Towers[i].Layers[:]...)
	}
	return append(all, b.Layers[:]...)
}

// blank is a network of the sizes of b whose weights are 0.
func (b *Bag) blank() *Bag {
	o := &Bag{Towers: slices.Clone(b.Towers), Upper: b.Upper, Classes: b.Classes, Layers: zeros(b.sizes())}
	for i := range o.Towers {
		o.Towers[i].Layers = zeros(o.Towers[i].sizes())
	}
	return o
}

func zeros(sizes [2][2]int) [2][][]float32 {
	var layers [2][][]float32
	for l, size := range sizes {
		layers[l] = make([][]float32, size[0])
		for i := range layers[l] {
			layers[l][i] = make([]float32, size[1])
		}
	}
	return layers
}

// LogOdds returns the score of each class of an example, of which it has a bag for each
// tower: the differences are log odds.
func (b *Bag) LogOdds(bags [][][]float32) []float32 {
	p := newPass(b)
	p.read(bags)
	p.through()
	return p.scores
}

// A pass is one example on its way through the network.
type pass struct {
	b      *Bag
	towers []towerPass
	joined []float32 // what the towers say, 1, and the hidden layer
	scores []float32
}

// A towerPass is one bag on its way through a tower.
type towerPass struct {
	n        int         // items
	in       [][]float32 // of each item
	hidden   [][]float32
	out      [][]float32
	bag      []float32
	greatest []int // item of each output
}

func newPass(b *Bag) *pass {
	p := &pass{b: b, towers: make([]towerPass, len(b.Towers)), joined: make([]float32, b.joined()+1+b.Upper), scores: make([]float32, b.Classes)}
	at := 0
	for i := range b.Towers {
		t := &b.Towers[i]
		p.towers[i] = towerPass{greatest: make([]int, t.Outputs), bag: p.joined[at : at+t.pooled()]}
		at += t.pooled()
	}
	p.joined[at] = 1
	return p
}

// read takes in the items of an example.
func (p *pass) read(bags [][][]float32) {
	for k := range p.towers {
		t, tp := &p.b.Towers[k], &p.towers[k]
		tp.n = len(bags[k])
		for len(tp.in) < tp.n {
			tp.in = append(tp.in, make([]float32, t.inputs()+1))
			tp.hidden = append(tp.hidden, make([]float32, t.Hidden+1))
			tp.out = append(tp.out, make([]float32, t.Outputs))
		}
		for i, item := range bags[k] {
			t.expand(item, tp.in[i])
		}
	}
}

func (p *pass) through() {
	for k := range p.towers {
		p.towers[k].through(&p.b.Towers[k])
	}
	low := p.b.joined() + 1
	for k, row := range p.b.Layers[0] {
		p.joined[low+k] = max(product(row, p.joined[:low]), 0)
	}
	for k, row := range p.b.Layers[1] {
		p.scores[k] = product(row, p.joined)
	}
}

func (p *towerPass) through(t *Tower) {
	clear(p.bag)
	for i := range p.n {
		in, hidden, out := p.in[i], p.hidden[i], p.out[i]
		for k, row := range t.Layers[0] {
			hidden[k] = max(product(row, in), 0)
		}
		hidden[t.Hidden] = 1
		for k, row := range t.Layers[1] {
			x := float32(math.Tanh(float64(product(row, hidden))))
			out[k] = x
			p.bag[k] += x / float32(p.n)
			if i == 0 || x > p.bag[t.Outputs+k] {
				p.bag[t.Outputs+k], p.greatest[k] = x, i
			}
		}
	}
	p.bag[2*t.Outputs] = float32(math.Log1p(float64(p.n))) / 4
}

// expand writes what the network sees of an item.
func (t *Tower) expand(item, in []float32) {
	w := t.Width
	for k := range t.Pairs {
		x, y := item[2*k*w:(2*k+1)*w], item[(2*k+1)*w:(2*k+2)*w]
		to := in[4*k*w : 4*(k+1)*w]
		for i := range x {
			to[i], to[w+i], to[2*w+i] = x[i], y[i], x[i]*y[i]
			to[3*w+i] = max(x[i]-y[i], y[i]-x[i])
		}
	}
	copy(in[4*t.Pairs*w:], item[2*t.Pairs*w:])
	in[t.inputs()] = 1
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

// backward adds to gradient that of the weighted log loss of the example that has been
// through the layers.
func (p *pass) backward(class int, weight float32, gradient *Bag) {
	b := p.b
	to := make([]float32, len(p.joined))
	for k, share := range softmax(p.scores) {
		d := share
		if k == class {
			d--
		}
		d *= weight
		add(gradient.Layers[1][k], p.joined, d)
		add(to, b.Layers[1][k], d)
	}
	low := b.joined() + 1
	for k, row := range b.Layers[0] {
		if p.joined[low+k] > 0 {
			d := to[low+k]
			add(gradient.Layers[0][k], p.joined[:low], d)
			add(to[:low], row, d)
		}
	}
	at := 0
	for k := range p.towers {
		n := b.Towers[k].pooled()
		p.towers[k].backward(&b.Towers[k], to[at:at+n], &gradient.Towers[k])
		at += n
	}
}

func (p *towerPass) backward(t *Tower, toBag []float32, gradient *Tower) {
	toHidden := make([]float32, t.Hidden+1)
	for i := range p.n {
		clear(toHidden)
		for k := range t.Outputs {
			d := toBag[k] / float32(p.n)
			if p.greatest[k] == i {
				d += toBag[t.Outputs+k]
			}
			d *= 1 - p.out[i][k]*p.out[i][k]
			add(gradient.Layers[1][k], p.hidden[i], d)
			add(toHidden, t.Layers[1][k], d)
		}
		for k := range t.Hidden {
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

// TrainBag trains a network of the sizes that shape says, by Adam with decoupled weight
// decay.
func TrainBag(shape *Bag, examples []BagExample, c BagConfig) *Bag {
	b := shape.blank()
	random := rand.New(rand.NewPCG(c.Seed, 3))
	if b.draw(random); c.Start != nil {
		b.take(c.Start)
	}
	gradient, first, second := b.blank(), b.blank(), b.blank()
	order := make([]int, len(examples))
	for i := range order {
		order[i] = i
	}
	p := newPass(b)
	steps := c.Epochs * ((len(examples) + c.Batch - 1) / c.Batch)
	step := 0
	for range c.Epochs {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for batch := range slices.Chunk(order, c.Batch) {
			for _, layer := range gradient.weights() {
				for _, row := range layer {
					clear(row)
				}
			}
			for _, i := range batch {
				e := examples[i]
				p.read(e.Bags)
				p.drop(c.Drop, random)
				p.through()
				p.backward(e.Class, float32(e.Weight)/float32(len(batch)), gradient)
			}
			step++
			rate := c.Rate * (1 - float64(step-1)/float64(steps))
			adam{step, rate, c.Decay}.take(b.weights(), gradient.weights(), first.weights(), second.weights())
		}
	}
	for _, layer := range b.weights() {
		for _, row := range layer {
			for i, x := range row {
				row[i] = float32(round(float64(x), 1e-4))
			}
		}
	}
	return b
}

// drop leaves out a share of what the network sees of a bag, the same of all its items,
// and makes the rest greater for it.
func (p *pass) drop(share float64, random *rand.Rand) {
	if share == 0 {
		return
	}
	keep := float32(1 / (1 - share))
	for k := range p.towers {
		tp := &p.towers[k]
		for j := range p.b.Towers[k].inputs() {
			scale := keep
			if random.Float64() < share {
				scale = 0
			}
			for i := range tp.n {
				tp.in[i][j] *= scale
			}
		}
	}
}

// draw draws weights to begin with, zeros none.
func (b *Bag) draw(random *rand.Rand) {
	for _, layer := range b.weights() {
		for _, row := range layer {
			scale := math.Sqrt(1 / float64(len(row)))
			for i := range row[:len(row)-1] {
				row[i] = float32(random.NormFloat64() * scale)
			}
		}
	}
}

// take copies the weights of a network of the same sizes.
func (b *Bag) take(o *Bag) {
	from := o.weights()
	for l, layer := range b.weights() {
		for r, row := range layer {
			copy(row, from[l][r])
		}
	}
}

// adam is one step of the method of that name.
type adam struct {
	step        int
	rate, decay float64
}

func (a adam) take(weights, gradient, first, second [][][]float32) {
	const keepFirst, keepSecond, least = 0.9, 0.999, 1e-8
	scale1 := float32(1 / (1 - math.Pow(keepFirst, float64(a.step))))
	scale2 := 1 / (1 - math.Pow(keepSecond, float64(a.step)))
	rate, decay := float32(a.rate), float32(a.rate*a.decay)
	for l := range weights {
		for r, row := range weights[l] {
			g, m, v := gradient[l][r], first[l][r], second[l][r]
			for i := range row {
				m[i] = keepFirst*m[i] + (1-keepFirst)*g[i]
				v[i] = keepSecond*v[i] + (1-keepSecond)*g[i]*g[i]
				size := float32(math.Sqrt(float64(v[i]) * scale2))
				row[i] -= rate*m[i]*scale1/(size+least) + decay*row[i]
			}
		}
	}
}
