package local

import (
	"context"
	"fmt"
	"math"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/tensor"
	"github.com/assay-rag/assay/llm"
)

// A Reader is a joint encoder with heads for answers, relevance and entailment. It implements
// llm.Reader, is safe for concurrent use, and need not be closed.
//
// The input is [CLS] a [SEP] heading : text [SEP], where a is the question or the claim. A heading
// longer than 48 tokens loses its left end, which has the most general headings. If room is scarce,
// the heading is shortened to leave 64 tokens for the text. A text that does not fit is read in
// windows that overlap by a quarter. Names of special tokens are treated as plain text.
//
// A text without tokens has no answer and no relevance, and is neutral to every claim.
type Reader struct {
	readerSettings
	name      string
	bytes     int64
	tokenizer *tokenizer
	bert      *bert

	span       dense // two rows: start, end
	relevance  dense // one row
	entailment dense // three rows: supported, contradicted, neutral
}

var _ llm.Reader = (*Reader)(nil)

func newReader(ctx context.Context, f *folder, e *Encoder) (*Reader, error) {
	r := &Reader{tokenizer: e.tokenizer}
	var err error
	if r.readerSettings, err = readReaderSettings(f, e); err != nil {
		return nil, err
	}
	if r.bert, err = readOnto(ctx, &f.weights, e.bert, r.layers); err != nil {
		return nil, err
	}
	for _, head := range []struct {
		name string
		rows int
		into *dense
	}{{"span", 2, &r.span}, {"relevance", 1, &r.relevance}, {"entailment", 3, &r.entailment}} {
		if *head.into, err = f.weights.dense(head.rows, r.bert.Hidden, head.name); err != nil {
			return nil, err
		}
	}
	f.note("encoder", []byte(e.Model()))
	if r.name = f.Model; r.name == "" {
		r.name = f.Name + "@" + f.identity()
	}
	r.bytes = f.size
	return r, nil
}

// readOnto reads a trunk of the given number of layers. The file may lack the embeddings and the
// lowest layers; these are shared with the encoder.
func readOnto(ctx context.Context, w *weights, encoder *bert, layers int) (*bert, error) {
	const words = "embeddings.word_embeddings.weight"
	if w.has(words) {
		return nil, fmt.Errorf("%s: unexpected tensor %s; a reader shares that of its encoder: %w", weightsFile, words, assay.ErrInvalid)
	}
	if encoder.Types < 2 {
		return nil, fmt.Errorf("%s of the encoder: a reader needs two token types, got one: %w", configFile, assay.ErrInvalid)
	}
	a := encoder.architecture
	a.Layers = layers
	m := newBERT(a)
	m.words, m.positions, m.types, m.norm = encoder.words, encoder.positions, encoder.types, encoder.norm
	if err := m.readOwnEmbeddings(w); err != nil {
		return nil, err
	}
	first := 0
	for first < m.Layers && !w.hasAny(layerName(first)) {
		first++
	}
	if first == m.Layers {
		return nil, fmt.Errorf("%s: no layer tensors: %w", weightsFile, assay.ErrDamaged)
	}
	copy(m.layers[:first], encoder.layers)
	return m, m.readLayers(ctx, w, first)
}

// readOwnEmbeddings reads the embeddings in the file, other than those of words.
func (m *bert) readOwnEmbeddings(w *weights) (err error) {
	const name = "embeddings."
	if w.hasAny(name + "position_embeddings") {
		if m.positions, err = w.floats(name+"position_embeddings.weight", m.Positions, m.Hidden); err != nil {
			return err
		}
	}
	if w.hasAny(name + "token_type_embeddings") {
		if m.types, err = w.floats(name+"token_type_embeddings.weight", m.Types, m.Hidden); err != nil {
			return err
		}
	}
	if w.hasAny(name + "LayerNorm") {
		m.norm, err = w.norm(name+"LayerNorm", m.Hidden)
	}
	return err
}

// Model returns the name of the reader and eight digits of a checksum of its files and its encoder.
func (r *Reader) Model() string { return r.name }

// Bytes returns the size of the reader's own weights.
func (r *Reader) Bytes() int64 { return r.bytes }

// Read implements llm.Reader. If there are several windows, the highest Answerable and Relevance
// count, and a span's Score is multiplied by the ratio of its window's Answerable to the highest.
func (r *Reader) Read(ctx context.Context, question string, passages []llm.Excerpt) ([]llm.Reading, error) {
	pairs := make([]llm.ClaimPair, len(passages))
	for i, p := range passages {
		pairs[i] = llm.ClaimPair{Claim: question, Passage: p}
	}
	all, err := r.compute(ctx, pairs)
	if err != nil {
		return nil, err
	}
	readings := make([]llm.Reading, len(passages))
	for i, windows := range all {
		readings[i] = r.reading(windows)
	}
	return readings, nil
}

// Entail implements llm.Reader. If there are several windows, one decides: the most supporting
// window if its likeliest class is Supported, else the most contradicting one if its likeliest
// class is Contradicted, else the one with the highest probability of either.
func (r *Reader) Entail(ctx context.Context, pairs []llm.ClaimPair) ([]llm.Entailment, error) {
	all, err := r.compute(ctx, pairs)
	if err != nil {
		return nil, err
	}
	entailments := make([]llm.Entailment, len(pairs))
	for i, windows := range all {
		entailments[i] = r.entailed(windows)
	}
	return entailments, nil
}

// logits are the outputs of the heads for a window.
type logits struct {
	window
	spans      []float32 // start and end of each token, [CLS] first
	relevance  float64
	entailment [3]float64
}

// compute runs the network on the windows of each pair.
func (r *Reader) compute(ctx context.Context, pairs []llm.ClaimPair) ([][]logits, error) {
	var sequences []sequence
	var windows []window
	var owners []int // the pair of each window
	questions := map[string][]int32{}
	for i, p := range pairs {
		a, known := questions[p.Claim]
		if !known {
			a = r.tokenizer.locate(p.Claim).ids
			questions[p.Claim] = a
		}
		cut, err := r.cut(a, p.Passage, i)
		if err != nil {
			return nil, err
		}
		for _, w := range cut {
			sequences, windows, owners = append(sequences, w.sequence), append(windows, w), append(owners, i)
		}
	}
	all := make([][]logits, len(pairs))
	err := r.bert.run(ctx, sequences, allRows, func(i int, rows []float32) error {
		l, err := r.heads(windows[i], rows)
		all[owners[i]] = append(all[owners[i]], l)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read with %s: %w", r.name, err)
	}
	return all, nil
}

// heads computes the logits from the rows of the last layer.
func (r *Reader) heads(w window, rows []float32) (logits, error) {
	n, cls := len(w.ids), rows[:r.bert.Hidden]
	l := logits{window: w, spans: make([]float32, 2*n)}
	r.span.apply(l.spans, rows, n, tensor.None)
	var relevance [1]float32
	r.relevance.apply(relevance[:], cls, 1, tensor.None)
	var entailment [3]float32
	r.entailment.apply(entailment[:], cls, 1, tensor.None)
	l.relevance = float64(relevance[0])
	for i, x := range entailment {
		l.entailment[i] = float64(x)
	}
	for _, x := range append(append(relevance[:], entailment[:]...), l.spans...) {
		if x := float64(x); math.IsNaN(x) || math.IsInf(x, 0) {
			return l, fmt.Errorf("%s: the weights produce the logit %g: %w", weightsFile, x, assay.ErrDamaged)
		}
	}
	return l, nil
}

// A calibration converts a logit to a probability.
type calibration struct{ scale, bias float64 }

func (c calibration) probability(logit float64) float64 {
	return 1 / (1 + math.Exp(-(c.scale*logit + c.bias)))
}

// reading combines the windows of a passage.
func (r *Reader) reading(windows []logits) llm.Reading {
	var reading llm.Reading
	answerable := make([]float64, len(windows))
	for i := range windows {
		answerable[i] = r.answerable.probability(windows[i].answerable())
		reading.Answerable = max(reading.Answerable, answerable[i])
		reading.Relevance = max(reading.Relevance, r.relevant.probability(windows[i].relevance))
	}
	var spans []llm.Extract
	for i := range windows {
		for _, s := range windows[i].extracts(maxSpans) {
			if answerable[i] < reading.Answerable {
				s.Score *= answerable[i] / reading.Answerable
			}
			spans = append(spans, s)
		}
	}
	reading.Spans = mergeSpans(spans)
	return reading
}

// entailed returns the entailment of the window that decides.
func (r *Reader) entailed(windows []logits) llm.Entailment {
	if len(windows) == 0 {
		return llm.Entailment{Neutral: 1}
	}
	all := make([]llm.Entailment, len(windows))
	supporting, contradicting, decided := 0, 0, 0
	for i := range windows {
		p := softmax(windows[i].entailment[:], r.entailmentScale)
		all[i] = llm.Entailment{Supported: p[0], Contradicted: p[1], Neutral: p[2]}
		if all[i].Supported > all[supporting].Supported {
			supporting = i
		}
		if all[i].Contradicted > all[contradicting].Contradicted {
			contradicting = i
		}
		if max(p[0], p[1]) > max(all[decided].Supported, all[decided].Contradicted) {
			decided = i
		}
	}
	chosen := decided
	if s, c := all[supporting], all[contradicting]; s.Supported > max(s.Contradicted, s.Neutral) {
		chosen = supporting
	} else if c.Contradicted > max(c.Supported, c.Neutral) {
		chosen = contradicting
	}
	e := all[chosen]
	if best := windows[chosen].extracts(1); len(best) > 0 {
		e.Decisive = best[0]
	}
	return e
}
