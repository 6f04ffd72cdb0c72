package pgvector

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/assay-rag/assay/internal/analysis"
)

// projection makes vectors of texts: the sum of a random direction for each term, weighted by its
// frequency in the text and its rarity in the corpus. Texts with the same words are near each other,
// as with a trained encoder, but it needs no model.
type projection struct {
	dimensions int
	holding    map[string]int
	texts      int
	directions map[string][]float32
}

func newProjection(dimensions int, texts []string) *projection {
	p := &projection{dimensions: dimensions, holding: make(map[string]int), texts: len(texts), directions: make(map[string][]float32)}
	for _, text := range texts {
		seen := make(map[string]bool)
		for _, t := range analysis.Tokens(text, "en") {
			if !seen[t.Term] {
				seen[t.Term] = true
				p.holding[t.Term]++
			}
		}
	}
	return p
}

func (p *projection) direction(term string) []float32 {
	if d, ok := p.directions[term]; ok {
		return d
	}
	h := fnv.New64a()
	h.Write([]byte(term))
	r := rand.New(rand.NewPCG(h.Sum64(), 7))
	d := make([]float32, p.dimensions)
	for i := range d {
		d[i] = float32(r.NormFloat64())
	}
	p.directions[term] = d
	return d
}

// vector returns the vector of a text, of unit length.
func (p *projection) vector(text string) []float32 {
	v := make([]float32, p.dimensions)
	v[0] = 1e-6 // a text without words has a direction too
	counts := make(map[string]int)
	for _, t := range analysis.Tokens(text, "en") {
		counts[t.Term]++
	}
	for term, n := range counts {
		weight := float32((1 + math.Log(float64(n))) * math.Log(1+float64(p.texts)/float64(1+p.holding[term])))
		for i, x := range p.direction(term) {
			v[i] += weight * x
		}
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}
