package local

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/tensor"
)

// A bert is the trunk of a BERT: embeddings and layers. It is immutable after reading, so it is
// safe for concurrent use.
type bert struct {
	architecture
	words     *table
	positions []float32 // Positions x Hidden
	types     []float32 // Types x Hidden
	norm      layerNorm // of the embeddings
	layers    []layer

	slots  chan struct{} // one for each batch that may be computed concurrently
	memory sync.Pool     // of completed batches
}

// A layer is a BERT layer: attention, and two products with a wide row between them.
type layer struct {
	qkv        dense // queries, keys and values of all heads in one row
	output     dense
	outputNorm layerNorm
	up, down   dense
	downNorm   layerNorm
}

// readBERT reads a trunk.
func readBERT(ctx context.Context, w *weights, a architecture) (*bert, error) {
	if !w.has("embeddings.word_embeddings.weight") {
		w.prefix = "bert."
	}
	m := newBERT(a)
	if err := m.readEmbeddings(w); err != nil {
		return nil, err
	}
	return m, m.readLayers(ctx, w, 0)
}

// newBERT returns a trunk without weights.
func newBERT(a architecture) *bert {
	return &bert{architecture: a, layers: make([]layer, a.Layers), slots: make(chan struct{}, runtime.GOMAXPROCS(0)+1)}
}

// layerName returns the prefix of a layer's tensor names.
func layerName(i int) string { return fmt.Sprintf("encoder.layer.%d.", i) }

// layerWeights is a tensor that every layer has.
const layerWeights = "attention.self.query.weight"

// readLayers reads the layers from the first on. It rejects a file with more layers than the model
// has.
func (m *bert) readLayers(ctx context.Context, w *weights, first int) error {
	if extra := layerName(m.Layers) + layerWeights; w.has(extra) {
		return fmt.Errorf("%s: unexpected tensor %s; the model has %d layers: %w", weightsFile, w.prefix+extra, m.Layers, assay.ErrDamaged)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := first; i < m.Layers; i++ {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return m.layers[i].read(w, layerName(i), m.architecture)
		})
	}
	return g.Wait()
}

func (m *bert) readEmbeddings(w *weights) (err error) {
	const name = "embeddings."
	if m.words, err = w.table(name+"word_embeddings.weight", m.Vocabulary, m.Hidden); err != nil {
		return err
	}
	if m.positions, err = w.floats(name+"position_embeddings.weight", m.Positions, m.Hidden); err != nil {
		return err
	}
	if m.types, err = w.floats(name+"token_type_embeddings.weight", m.Types, m.Hidden); err != nil {
		return err
	}
	m.norm, err = w.norm(name+"LayerNorm", m.Hidden)
	return err
}

func (l *layer) read(w *weights, name string, a architecture) (err error) {
	self := name + "attention.self."
	if l.qkv, err = w.dense(a.Hidden, a.Hidden, self+"query", self+"key", self+"value"); err != nil {
		return err
	}
	if l.output, err = w.dense(a.Hidden, a.Hidden, name+"attention.output.dense"); err != nil {
		return err
	}
	if l.outputNorm, err = w.norm(name+"attention.output.LayerNorm", a.Hidden); err != nil {
		return err
	}
	if l.up, err = w.dense(a.Intermediate, a.Hidden, name+"intermediate.dense"); err != nil {
		return err
	}
	if l.down, err = w.dense(a.Hidden, a.Intermediate, name+"output.dense"); err != nil {
		return err
	}
	l.downNorm, err = w.norm(name+"output.LayerNorm", a.Hidden)
	return err
}

// A sequence is an input of the network: 1 to Positions tokens, of which those from second on have
// the second type.
type sequence struct {
	ids    []int32
	second int // len(ids) if there are none
}

// embed writes the input of the network for the token at a place of a sequence, before
// normalisation.
func (m *bert) embed(x []float32, s sequence, place int) {
	m.words.read(x, int(s.ids[place]))
	position := m.positions[place*m.Hidden : (place+1)*m.Hidden]
	kind := m.types[:m.Hidden]
	if place >= s.second {
		kind = m.types[m.Hidden : 2*m.Hidden]
	}
	for i := range x {
		x[i] += position[i] + kind[i]
	}
}

// project computes the queries, keys and values of rows.
func (l *layer) project(qkv, x []float32, rows int) {
	l.qkv.apply(qkv, x, rows, tensor.None)
}

// finish computes the part of the layer after attention: it replaces the rows x by the layer's
// output.
func (l *layer) finish(x []float32, rows int, a *architecture, s scratch) {
	l.output.apply(s.narrow, s.attended, rows, tensor.None)
	l.outputNorm.apply(x, s.narrow, rows, a)
	l.up.apply(s.wide, x, rows, tensor.GELU)
	l.down.apply(s.narrow, s.wide, rows, tensor.None)
	l.downNorm.apply(x, s.narrow, rows, a)
}

func (d *dense) apply(y, x []float32, rows int, act tensor.Activation) {
	d.weights.Apply(y, x, rows, d.bias, act)
}

// apply normalises the sum of the rows of x and of residual, which may be nil.
func (n *layerNorm) apply(x, residual []float32, rows int, a *architecture) {
	tensor.LayerNorm(x, residual, n.gamma, n.beta, rows, a.Hidden, a.Epsilon)
}
