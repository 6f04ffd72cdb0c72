package main

import (
	"context"
	"math"

	"github.com/assay-rag/assay/internal/analysis"
)

// An accumulator is minimal text search: postings in memory with precomputed scores, added up in
// one array over all chunks. It uses assay's terms and formula (k1 0.9, b 0.4; title and headings
// three times), and supports neither files nor changes nor filters.
type accumulator struct {
	postings map[string][]impact
	scores   []float32
	analyzer *analysis.Analyzer
}

type impact struct {
	chunk uint32
	score float32
}

func newAccumulator(ctx context.Context, c *corpus) (*accumulator, error) {
	a := &accumulator{postings: make(map[string][]impact), scores: make([]float32, c.chunks), analyzer: analysis.NewAnalyzer("")}
	lengths := make([]float32, 0, c.chunks)
	total := 0.0
	frequencies := make(map[string]float32)
	for i := range c.documents() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d := c.document(i)
		for _, chunk := range d.Chunks {
			clear(frequencies)
			length := a.count(frequencies, d.Title, 3) + a.count(frequencies, chunk.Heading, 3) + a.count(frequencies, chunk.Text, 1)
			for term, tf := range frequencies {
				a.postings[term] = append(a.postings[term], impact{uint32(len(lengths)), tf})
			}
			lengths = append(lengths, length)
			total += float64(length)
		}
	}
	average := float32(total / float64(max(1, len(lengths))))
	for _, list := range a.postings {
		idf := float32(math.Log(1 + (float64(len(lengths)-len(list))+0.5)/(float64(len(list))+0.5)))
		for i, p := range list {
			list[i].score = idf * p.score / (p.score + 0.9*(0.6+0.4*lengths[p.chunk]/average))
		}
	}
	return a, nil
}

func (a *accumulator) count(frequencies map[string]float32, text string, weight float32) float32 {
	words := float32(0)
	a.analyzer.Each(text, func(t analysis.Token) {
		frequencies[t.Term] += weight
		if !t.Part {
			words += weight
		}
	})
	return words
}

func (a *accumulator) find(q string, limit int) (answer, error) {
	var terms []string
	for _, t := range analysis.QueryTerms(q, nil) {
		terms = append(terms, t.Forms...)
	}
	for _, term := range terms {
		for _, p := range a.postings[term] {
			a.scores[p.chunk] += p.score
		}
	}
	best := make(scoreHeap, 0, limit)
	for _, term := range terms {
		for _, p := range a.postings[term] {
			if s := a.scores[p.chunk]; s > 0 {
				best.offer(scored{int(p.chunk), s}, limit)
				a.scores[p.chunk] = 0
			}
		}
	}
	return best.sorted, nil
}
