package quality

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/llm"
)

// hits is the number of hits of a search: 50 for recall@50, and as many as package retrieve asks for,
// so that all rankings share their searches.
const hits = 60

var rankings = []struct {
	name string
	mode assay.Mode
}{{"text", assay.ModeText}, {"vectors", assay.ModeVector}, {"hybrid", assay.ModeHybrid}}

var metrics = []struct {
	name string
	of   func(ranked []string, relevant map[string]int) float64
}{
	{"nDCG@10", func(ranked []string, relevant map[string]int) float64 {
		return metric.NDCG(ranked, relevant, 10, metric.Exponential)
	}},
	{"recall@10", func(ranked []string, relevant map[string]int) float64 { return metric.Recall(ranked, relevant, 10) }},
	{"recall@50", func(ranked []string, relevant map[string]int) float64 { return metric.Recall(ranked, relevant, 50) }},
}

// A measurement is a set with what is needed to measure an index of it.
type measurement struct {
	*retrieval.Opened
	source  index.VectorSource
	vectors map[string][]float32 // of all passages, by chunk ID
}

func newMeasurement(ctx context.Context, o *retrieval.Opened) (*measurement, error) {
	source, ok := o.Content.(index.VectorSource)
	if !ok {
		return nil, fmt.Errorf("%T is not an index.VectorSource", o.Content)
	}
	m := &measurement{Opened: o, source: source, vectors: make(map[string][]float32)}
	for v, err := range source.Vectors(ctx, o.Embedder.Model(), 0) {
		if err != nil {
			return nil, err
		}
		m.vectors[v.Chunk] = slices.Clone(v.Values)
	}
	return m, nil
}

// An outcome has the figures of each question.
type outcome struct {
	figures [][][]float64 // by rankings, metrics and questions
	overlap []float64     // see nearestOverlap; NaN for a question that is too long for the encoder
	text    []index.Result
}

// meanOverlap returns the mean overlap of the questions that have a vector.
func (o *outcome) meanOverlap() float64 {
	return stat.Mean(slices.DeleteFunc(slices.Clone(o.overlap), math.IsNaN))
}

// measure asks all questions of the set.
func (m *measurement) measure(ctx context.Context, x index.Index) (*outcome, error) {
	n := len(m.Set.Queries)
	o := &outcome{overlap: make([]float64, n), text: make([]index.Result, n)}
	for range rankings {
		var figures [][]float64
		for range metrics {
			figures = append(figures, make([]float64, n))
		}
		o.figures = append(o.figures, figures)
	}
	report := m.Stage(fmt.Sprintf("%T", x))
	x = &remembering{Index: x, results: make(map[string]any)}
	r := retrieve.New(retrieve.Config{Index: x, Content: m.Content, Embedder: m.Embedder})
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range m.Set.Queries {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := m.ask(ctx, x, r, i, q, o); err != nil {
				return fmt.Errorf("question %s: %w", q.ID, err)
			}
			report(i, n)
			return nil
		})
	}
	return o, g.Wait()
}

// ask stores the figures of question i in o.
func (m *measurement) ask(ctx context.Context, x index.Index, r *retrieve.Retriever, i int, q testset.Query, o *outcome) (err error) {
	for j, ranking := range rankings {
		found, err := r.Retrieve(ctx, everyone, assay.Query{Text: q.Text, Limit: hits, Mode: ranking.mode})
		if long := new(llm.TooLongError); ranking.mode == assay.ModeVector && errors.As(err, &long) {
			err = nil // it finds nothing
		}
		if err != nil {
			return err
		}
		var ranked []string
		for _, h := range found.Hits {
			ranked = append(ranked, h.URI)
		}
		for k, metric := range metrics {
			o.figures[j][k][i] = metric.of(ranked, q.Relevant)
		}
	}
	if o.text[i], err = x.Search(ctx, everyone, assay.Query{Text: q.Text, Limit: hits}); err != nil {
		return err
	}
	o.overlap[i], err = m.nearestOverlap(ctx, x, q.Text, hits)
	return err
}

// nearestOverlap returns the share of the ten passages nearest to a text that are among the first ten
// hits of a search. It is NaN if the text is too long for the encoder.
func (m *measurement) nearestOverlap(ctx context.Context, x index.Index, text string, limit int) (float64, error) {
	list, err := llm.Embed(ctx, m.Embedder, llm.Query, []string{text})
	if long := new(llm.TooLongError); errors.As(err, &long) {
		return math.NaN(), nil
	} else if err != nil {
		return 0, err
	}
	found, err := x.Nearest(ctx, everyone, assay.Query{Text: text, Limit: limit}, index.Vector{Model: m.Embedder.Model(), Metric: index.Cosine, Values: list[0]})
	if err != nil {
		return 0, err
	}
	similarity := make(map[string]float64)
	var all []float64
	for chunk, v := range m.vectors {
		similarity[chunk] = dot(list[0], v)
		all = append(all, similarity[chunk])
	}
	slices.Sort(all)
	n := min(10, len(all))
	tenth := all[len(all)-n] - 1e-6 // indexes compare with less precision
	right := 0
	for _, h := range found.Hits[:min(n, len(found.Hits))] {
		if similarity[h.Chunk] >= tenth {
			right++
		}
	}
	return float64(right) / float64(n), nil
}

// dot returns the product of two vectors of length 1.
func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// remembering is an index that makes equal searches once. The rankings of a question share theirs.
type remembering struct {
	index.Index
	mu      sync.Mutex
	results map[string]any
}

// Search implements index.Index.
func (x *remembering) Search(ctx context.Context, access assay.Access, q assay.Query) (index.Result, error) {
	return once(x, fmt.Sprint("text ", q.Limit, q.Text), func() (index.Result, error) { return x.Index.Search(ctx, access, q) })
}

// Nearest implements index.Index.
func (x *remembering) Nearest(ctx context.Context, access assay.Access, q assay.Query, v index.Vector) (index.Result, error) {
	return once(x, fmt.Sprint("nearest ", q.Limit, v.Values), func() (index.Result, error) { return x.Index.Nearest(ctx, access, q, v) })
}

// Similarities implements index.Index.
func (x *remembering) Similarities(ctx context.Context, access assay.Access, v index.Vector, chunks []string) ([]*float64, error) {
	return once(x, fmt.Sprint("similar ", chunks, v.Values), func() ([]*float64, error) { return x.Index.Similarities(ctx, access, v, chunks) })
}

// once returns the result of a search that was made before, or makes it.
func once[R any](x *remembering, key string, search func() (R, error)) (R, error) {
	x.mu.Lock()
	before, ok := x.results[key]
	x.mu.Unlock()
	if ok {
		return before.(R), nil
	}
	result, err := search()
	if err == nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.results[key] = result
	}
	return result, err
}
