package indextest

import (
	"cmp"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/index"
)

// A model computes the expected answers of an index by reading every document and computing every
// score from its definition. It is as simple as possible.
type model struct {
	source *Source
	levels Levels
	known  map[string]counted // by language and fields
}

func newModel(s *Source, levels Levels) *model {
	return &model{source: s, levels: levels, known: make(map[string]counted)}
}

// counted holds the term frequencies of a chunk. Terms in the title and the headings count three
// times as much as those in the body. The length counts words in the same way. The parts of a
// compound do not add to it.
type counted struct {
	frequency map[string]float64
	length    float64
}

// A found chunk is one that a query must find.
type found struct {
	chunk, document, version string
	score                    float64 // BM25 or similarity
	tolerance                float64 // allowed error of the score
	matched                  []string
}

// An answer is the expected answer to a query, with all eligible hits, best first.
type answer struct {
	invalid  error // expected error for a rejected filter
	terms    []assay.Term
	chunks   int
	coverage float64
	found    []found

	approximate bool // the first of found may be missing among the hits
}

// visibility is the part of the source that is visible to an access.
type visibility struct {
	documents []assay.Change
	chunks    int // chunks that are searched
	languages []string
}

func (m *model) visibleTo(access assay.Access) visibility {
	var s visibility
	for _, change := range m.source.documents() {
		if !access.Allows(change.Document.Collection, change.Document.ACL) {
			continue
		}
		s.documents = append(s.documents, change)
		before := s.chunks
		for _, c := range change.Chunks {
			if c.Kind != assay.ChunkSection {
				s.chunks++
			}
		}
		if s.chunks > before {
			s.languages = append(s.languages, language(change.Document))
		}
	}
	slices.Sort(s.languages)
	s.languages = slices.Compact(s.languages)
	return s
}

// language returns the language that a document is analysed as.
func language(d *assay.Document) string {
	v := d.Metadata[assay.MetaLanguage]
	if v.Kind != assay.KindString || v.String == "" {
		return "en"
	}
	return v.String
}

// kinds returns the kinds of a key's values in the documents.
func (s visibility) kinds(key string) []assay.ValueKind {
	var kinds []assay.ValueKind
	for _, change := range s.documents {
		if v, ok := change.Document.Metadata[key]; ok {
			kinds = append(kinds, v.Kind)
		}
	}
	return kinds
}

// keeps reports whether a query may score a document's chunks.
func keeps(q assay.Query, d *assay.Document) bool {
	return q.Filter.Match(d.Metadata) && (len(q.Collections) == 0 || slices.Contains(q.Collections, d.Collection))
}

// search returns the expected answer of Index.Search.
func (m *model) search(access assay.Access, q assay.Query) answer {
	if access.IsZero() {
		return answer{}
	}
	sight := m.visibleTo(access)
	a := answer{chunks: sight.chunks, invalid: q.Filter.Check(sight.kinds)}
	if a.invalid != nil {
		return a
	}
	terms := analysis.QueryTerms(q.Text, sight.languages)
	holding := make([]int, len(terms))
	length := 0.0
	m.eachChunk(sight, func(_ *assay.Document, _ assay.Chunk, has counted) {
		length += has.length
		for i, t := range terms {
			if has.any(t.Forms) {
				holding[i]++
			}
		}
	})
	for i, t := range terms {
		a.terms = append(a.terms, assay.Term{
			Text: t.Text, Stem: t.Forms[0], Forms: t.Forms[1:], Chunks: holding[i],
			Weight: idf(sight.chunks+100, holding[i]+1) / idf(sight.chunks+100, 1),
		})
	}
	average := length / float64(sight.chunks)
	m.eachChunk(sight, func(d *assay.Document, c assay.Chunk, has counted) {
		if !keeps(q, d) {
			return
		}
		f := found{chunk: c.ID, document: d.ID, version: d.Version}
		for i, t := range terms {
			if !has.any(t.Forms) {
				continue
			}
			f.matched = append(f.matched, t.Forms[0])
			for _, form := range t.Forms {
				f.score += idf(sight.chunks, holding[i]) * saturated(has.frequency[form], has.length/average, q.BM25)
			}
		}
		if len(f.matched) > 0 {
			f.tolerance = 1e-6*f.score + 1e-9*float64(len(f.matched))
			a.found = append(a.found, f)
		}
	})
	a.sort()
	return a
}

// nearest returns the expected answer of Index.Nearest for a valid vector.
func (m *model) nearest(access assay.Access, q assay.Query, v index.Vector) answer {
	if access.IsZero() {
		return answer{}
	}
	sight := m.visibleTo(access)
	a := answer{chunks: sight.chunks, invalid: q.Filter.Check(sight.kinds), approximate: !m.levels.ExactNearest}
	if a.invalid != nil {
		return a
	}
	have := 0
	m.eachChunk(sight, func(d *assay.Document, c assay.Chunk, _ counted) {
		values := m.source.vectorOf(v.Model, d, c)
		if values == nil {
			return
		}
		have++
		if keeps(q, d) {
			s, tolerance := similarity(v, values)
			a.found = append(a.found, found{chunk: c.ID, document: d.ID, version: d.Version, score: s, tolerance: tolerance})
		}
	})
	if sight.chunks > 0 {
		a.coverage = float64(have) / float64(sight.chunks)
	}
	a.sort()
	return a
}

func (m *model) eachChunk(s visibility, f func(*assay.Document, assay.Chunk, counted)) {
	for _, change := range s.documents {
		for _, c := range change.Chunks {
			if c.Kind != assay.ChunkSection {
				f(change.Document, c, m.count(change.Document, c))
			}
		}
	}
}

// count returns the counts of a chunk, from the cache if possible.
func (m *model) count(d *assay.Document, c assay.Chunk) counted {
	key := language(d) + "\n" + says(d, c)
	if has, ok := m.known[key]; ok {
		return has
	}
	has := counted{frequency: make(map[string]float64)}
	add := func(text string, weight float64) {
		for _, t := range analysis.Tokens(text, language(d)) {
			has.frequency[t.Term] += weight
			if !t.Part {
				has.length += weight
			}
		}
	}
	add(d.Title, 3)
	for _, h := range c.Headings {
		add(h, 3)
	}
	add(d.Text[c.Start:c.End], 1)
	m.known[key] = has
	return has
}

func (c counted) any(forms []string) bool {
	return slices.ContainsFunc(forms, func(form string) bool { return c.frequency[form] > 0 })
}

func idf(chunks, holding int) float64 {
	return math.Log(1 + (float64(chunks-holding)+0.5)/(float64(holding)+0.5))
}

// saturated returns a term's part of BM25 in a chunk. length is relative to the average.
func saturated(tf, length float64, p assay.BM25) float64 {
	p = p.Over(assay.DefaultBM25)
	if tf == 0 {
		return 0
	}
	return tf / (tf + p.K1*(1-p.B+p.B*length))
}

// similarity returns the similarity of a query and a vector, and the error allowed to an index that
// stores both in 8 bits per value, each with its own scale.
func similarity(q index.Vector, values []float32) (similarity, tolerance float64) {
	dot, a, b := 0.0, measure(q.Values), measure(values)
	for i, x := range values {
		dot += float64(x) * float64(q.Values[i])
	}
	off := (a.sum*b.most+b.sum*a.most)/254 + float64(len(values))*a.most*b.most/(254*254) + 1e-6*a.norm*b.norm
	switch q.Metric {
	case index.Cosine:
		if b.norm == 0 {
			return 0, 1e-6
		}
		return dot / a.norm / b.norm, off / a.norm / b.norm
	case index.L2:
		square := max(0, a.norm*a.norm+b.norm*b.norm-2*dot)
		off = 2*off + b.sum*b.most/127
		return -math.Sqrt(square), math.Sqrt(square+off) - math.Sqrt(max(0, square-off))
	}
	return dot, off
}

// measured holds norms of a vector: Euclidean, sum and maximum.
type measured struct{ norm, sum, most float64 }

func measure(values []float32) (m measured) {
	for _, x := range values {
		x := math.Abs(float64(x))
		m.norm += x * x
		m.sum += x
		m.most = max(m.most, x)
	}
	m.norm = math.Sqrt(m.norm)
	return m
}

func (a *answer) sort() {
	slices.SortFunc(a.found, func(x, y found) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.chunk, y.chunk))
	})
}
