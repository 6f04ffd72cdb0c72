package local

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/assay-rag/assay/internal/tensor"
)

const (
	// batchRows is the number of tokens per core in a batch. It is large enough that cores seldom
	// wait for each other at the end of a layer, and needs 5 MB of memory per core for a hidden
	// size of 384.
	batchRows = 512

	// tileRows is the number of tokens that a core takes through a layer at a time, so that its
	// output (600 kB in float32 for an intermediate size of 1536) is still in its cache when it
	// reads it. leastRows is the least number for which reading the weights pays off. Kernels
	// process kernelRows at a time.
	tileRows   = 8 * kernelRows
	leastRows  = 2 * kernelRows
	kernelRows = 12
)

// A batch is a set of sequences that are computed together, with their tokens packed one after
// another as rows, without padding.
type batch struct {
	m         *bert
	sequences []sequence
	starts    []int // the first row of each sequence, then the number of rows
	workers   int
	first     bool
	*memory
}

// memory is the working memory of a batch. It is reused, since clearing new memory takes longer
// than computing a short text.
type memory struct {
	x []float32 // rows x Hidden

	// qkv are the queries, keys and values, rows x 3 Hidden: those of the layer being computed, and
	// those of the next layer, which workers begin while others still read the first.
	qkv [2][]float32
}

func newMemory(size int) *memory {
	return &memory{make([]float32, size), [2][]float32{make([]float32, 3*size), make([]float32, 3*size)}}
}

// A scratch is the working memory of one worker for one tile.
type scratch struct {
	attended []float32 // tile x Hidden
	narrow   []float32 // tile x Hidden
	wide     []float32 // tile x Intermediate
	kernel   *tensor.Scratch
}

func newScratch(tile int, a *architecture) scratch {
	return scratch{
		attended: make([]float32, tile*a.Hidden),
		narrow:   make([]float32, tile*a.Hidden),
		wide:     make([]float32, tile*a.Intermediate),
		kernel:   new(tensor.Scratch),
	}
}

// cut returns the part of the scratch for the given number of rows.
func (s scratch) cut(rows int, a *architecture) scratch {
	s.attended, s.narrow, s.wide = s.attended[:rows*a.Hidden], s.narrow[:rows*a.Hidden], s.wide[:rows*a.Intermediate]
	return s
}

// The wanted rows of the last layer: those of all tokens, or only those of the first token of each
// sequence, which saves much of the last layer.
const (
	allRows   = false
	firstRows = true
)

// run computes the sequences in the order given. It calls each with the wanted rows of the last
// layer, Hidden numbers each, which are valid only during the call. Between layers it stops with
// the context's error.
func (m *bert) run(ctx context.Context, sequences []sequence, first bool, each func(i int, rows []float32) error) error {
	workers := runtime.GOMAXPROCS(0)
	for begin := 0; begin < len(sequences); {
		rows, end := 0, begin
		for end < len(sequences) && (end == begin || rows+len(sequences[end].ids) <= workers*batchRows) {
			rows += len(sequences[end].ids)
			end++
		}
		b := newBatch(m, sequences[begin:end], workers)
		b.first = first
		if err := b.run(ctx, func(i int, rows []float32) error { return each(begin+i, rows) }); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

func newBatch(m *bert, sequences []sequence, workers int) *batch {
	b := &batch{m: m, sequences: sequences, starts: make([]int, 1, len(sequences)+1)}
	for _, s := range sequences {
		b.starts = append(b.starts, b.rows()+len(s.ids))
	}
	b.workers = min(workers, len(tiles(b.rows(), workers)))
	return b
}

// A tile is the rows [from, to) of a batch.
type tile struct{ from, to int }

// tiles divides n rows into tiles, which workers take one after another. If the rows are few, there
// is one tile per worker. Otherwise tiles get smaller towards the end, so that all workers finish
// at about the same time. A single worker takes whole tiles.
func tiles(n, workers int) []tile {
	var all []tile
	for from := 0; from < n; {
		share := (n - from + 2*workers - 1) / (2 * workers)
		if workers == 1 || n <= workers*tileRows {
			share = (n + workers - 1) / workers
		} else {
			share = max(share, leastRows)
		}
		size := min(tileRows, (share+kernelRows-1)/kernelRows*kernelRows)
		all = append(all, tile{from, min(from+size, n)})
		from += size
	}
	return all
}

// run computes the batch once a slot is free.
func (b *batch) run(ctx context.Context, each func(i int, rows []float32) error) error {
	m := b.m
	select {
	case m.slots <- struct{}{}:
		defer func() { <-m.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	b.memory, _ = m.memory.Get().(*memory)
	if b.memory == nil || len(b.x) < b.rows()*m.Hidden {
		b.memory = newMemory(max(b.rows(), runtime.GOMAXPROCS(0)*batchRows) * m.Hidden)
	}
	defer m.memory.Put(b.memory)
	if err := b.compute(ctx); err != nil {
		return err
	}
	for i := range b.sequences {
		from, to := b.starts[i], b.starts[i+1]
		if b.first {
			from, to = i, i+1
		}
		if err := each(i, b.x[from*m.Hidden:to*m.Hidden]); err != nil {
			return err
		}
	}
	return nil
}

// compute runs the network. Between layers the workers wait for each other, since attention reads
// the rows of whole sequences.
func (b *batch) compute(ctx context.Context) error {
	scratches := make([]scratch, b.workers)
	for i := range scratches {
		scratches[i] = newScratch(min(b.rows(), tileRows), &b.m.architecture)
	}
	all, first := tiles(b.rows(), b.workers), tiles(len(b.sequences), b.workers)
	for step := range len(b.m.layers) + 1 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if step == len(b.m.layers) && b.first {
			b.compact()
			share(first, scratches, b.finishFirst)
		} else {
			share(all, scratches, func(t tile, s scratch) { b.advance(step, t.from, t.to, s) })
		}
	}
	return nil
}

// share runs one worker per scratch. The workers take tiles until none is left.
func share(tiles []tile, scratches []scratch, do func(t tile, s scratch)) {
	var taken atomic.Int64
	work := func(s scratch) {
		for i := taken.Add(1); i <= int64(len(tiles)); i = taken.Add(1) {
			do(tiles[i-1], s)
		}
	}
	var others sync.WaitGroup
	for _, s := range scratches[1:min(len(scratches), len(tiles))] {
		others.Go(func() { work(s) })
	}
	work(scratches[0])
	others.Wait()
}

func (b *batch) rows() int { return b.starts[len(b.starts)-1] }

// advance takes the rows [from, to) one step further. The first step computes the embeddings, and
// each other step a layer. Each step also prepares the input of the next layer's attention.
func (b *batch) advance(step, from, to int, s scratch) {
	m, rows := b.m, to-from
	x := b.x[from*m.Hidden : to*m.Hidden]
	if step == 0 {
		b.embed(x, from, to)
	} else {
		b.attend(b.qkv[(step-1)%2], from, to, s)
		m.layers[step-1].finish(x, rows, &m.architecture, s.cut(rows, &m.architecture))
	}
	if step < len(m.layers) {
		m.layers[step].project(b.qkv[step%2][3*from*m.Hidden:3*to*m.Hidden], x, rows)
	}
}

// compact moves the row of the first token of each sequence to the front of x.
func (b *batch) compact() {
	h := b.m.Hidden
	for i := range b.sequences {
		copy(b.x[i*h:(i+1)*h], b.x[b.starts[i]*h:])
	}
}

// finishFirst computes the last layer for the first tokens of the sequences
// [from, to).
func (b *batch) finishFirst(t tile, s scratch) {
	m, last, from, to := b.m, len(b.m.layers)-1, t.from, t.to
	for i := from; i < to; i++ {
		b.attendOne(s.attended[(i-from)*m.Hidden:(i-from+1)*m.Hidden], b.qkv[last%2], i, 0, 1, s)
	}
	x := b.x[from*m.Hidden : to*m.Hidden]
	m.layers[last].finish(x, to-from, &m.architecture, s.cut(to-from, &m.architecture))
}

// spans calls yield for each sequence i with tokens [begin, end) among the rows [from, to).
func (b *batch) spans(from, to int, yield func(i, begin, end int)) {
	for i := range b.sequences {
		begin, end := max(from, b.starts[i]), min(to, b.starts[i+1])
		if begin < end {
			yield(i, begin-b.starts[i], end-b.starts[i])
		}
	}
}

func (b *batch) embed(x []float32, from, to int) {
	m := b.m
	b.spans(from, to, func(i, begin, end int) {
		for place := begin; place < end; place++ {
			row := b.starts[i] + place - from
			m.embed(x[row*m.Hidden:(row+1)*m.Hidden], b.sequences[i], place)
		}
	})
	m.norm.apply(x, nil, to-from, &m.architecture)
}

// attend writes the attention output of the rows [from, to) to s.attended.
func (b *batch) attend(qkv []float32, from, to int, s scratch) {
	h := b.m.Hidden
	b.spans(from, to, func(i, begin, end int) {
		first := b.starts[i] - from
		b.attendOne(s.attended[(first+begin)*h:(first+end)*h], qkv, i, begin, end, s)
	})
}

// attendOne does the same for the tokens [begin, end) of one sequence.
func (b *batch) attendOne(out, qkv []float32, i, begin, end int, s scratch) {
	m := b.m
	qkv = qkv[3*b.starts[i]*m.Hidden : 3*b.starts[i+1]*m.Hidden]
	tensor.AttentionRows(out, qkv, begin, end, len(b.sequences[i].ids), m.Heads, m.Hidden/m.Heads, s.kernel)
}
