package indextest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// long reports whether ASSAY_LONG=1 is set.
func long() bool { return os.Getenv("ASSAY_LONG") == "1" }

// rounds returns n, or a hundred times as many with ASSAY_LONG=1, or a fifth with -short.
func rounds(n int) int { return Rounds(max(1, n/5), n, 100*n) }

// Rounds returns the number of repetitions of a random test: with -short, as usual, and with
// ASSAY_LONG=1.
func Rounds(short, usual, most int) int {
	switch {
	case long():
		return most
	case testing.Short():
		return short
	}
	return usual
}

// seeds returns 0 to n-1, or only the value of ASSAY_SEED, to repeat a failure.
func seeds(t *testing.T, n int) []uint64 {
	t.Helper()
	if s := os.Getenv("ASSAY_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("ASSAY_SEED: %v", err)
		}
		return []uint64{seed}
	}
	var list []uint64
	for seed := range uint64(n) {
		list = append(list, seed)
	}
	return list
}

var words = strings.Fields("alpha Beta gamma os.Open file_name running ran the of E1042 naïve 日本語 delta epsilon zeta eta theta iota kappa ReadTimeout Häuser Haus maisons maison")

// A world makes random documents and queries.
type world struct {
	*rand.Rand
	documents int // number of distinct documents per collection
}

func newWorld(seed uint64, documents int) world {
	return world{rand.New(rand.NewPCG(seed, 1)), documents}
}

func (w world) text(most int) string {
	var b strings.Builder
	for range w.IntN(most + 1) {
		b.WriteString(words[min(w.IntN(len(words)), w.IntN(len(words)))])
		b.WriteByte(' ')
	}
	return b.String()
}

// uri returns the URI of a random document of the world.
func (w world) uri() (collection, uri string) {
	return fmt.Sprint("c", w.IntN(2)), fmt.Sprint("d", w.IntN(w.documents))
}

func (w world) id() string { return assay.DocumentID(w.uri()) }

func (w world) entry() Entry {
	var texts []string
	for range w.IntN(4) {
		texts = append(texts, w.text(12))
	}
	collection, uri := w.uri()
	e := NewEntry(collection, uri, w.text(2), texts...)
	for i := range e.Chunks {
		if w.IntN(3) == 0 {
			e.Chunks[i].Headings = []string{w.text(2), w.text(1)}
		}
		if w.IntN(8) == 0 {
			e.Chunks[i].Kind = assay.ChunkSection
		}
	}
	e.Document.ACL = w.acl()
	e.Document.Metadata = w.metadata()
	return e.identified()
}

// identified returns e with the version and the chunk IDs that follow from its content.
func (e Entry) identified() Entry {
	d := e.Document
	shape := fmt.Sprintf("%q", d.Title)
	for _, c := range e.Chunks {
		shape += fmt.Sprintf(" %s %q", c.Kind, c.Headings)
	}
	e.Document.Version = assay.DocumentVersion(d.Text, d.Metadata, shape)
	e.Chunks = slices.Clone(e.Chunks)
	for i := range e.Chunks {
		e.Chunks[i].Version = e.Document.Version
		e.Chunks[i].ID = assay.ChunkID(d.ID, e.Document.Version, i)
	}
	return e
}

// Churn commits one random change to a source with the given number of documents and returns a
// description of the change.
func Churn(s *Source, r *rand.Rand, documents int) string { return world{r, documents}.churn(s) }

func (w world) churn(s *Source) string {
	switch n := w.IntN(100); {
	case n < 45:
		entries := w.entries(1 + w.IntN(3))
		return fmt.Sprintf("put %d documents: %d", len(entries), s.Put(entries...))
	case n < 48:
		entries := w.entries(60)
		return fmt.Sprintf("put %d documents: %d", len(entries), s.Put(entries...))
	case n < 60:
		e, ok := w.changed(s)
		if !ok {
			return "nothing to change"
		}
		return fmt.Sprintf("change %s: %d", e.Document.ID, s.Put(e))
	case n < 78:
		ids := []string{w.id()}
		for range w.IntN(3) {
			ids = append(ids, w.id())
		}
		return fmt.Sprintf("delete %s: %d", ids, s.Delete(ids...))
	case n < 80:
		s.Skip()
		return "skip"
	}
	m := models[w.IntN(len(models))]
	if w.IntN(50) == 0 {
		return fmt.Sprintf("drop the vectors of %s: %d", m.name, s.DropModel(m.name))
	}
	vectors := w.vectors(s, m.dimensions, 1+w.IntN(6))
	return fmt.Sprintf("put %d vectors of %s: %d", len(vectors), m.name, s.PutVectors(m.name, vectors))
}

// entries returns up to n distinct entries.
func (w world) entries(n int) []Entry {
	var list []Entry
	seen := make(map[string]bool)
	for range n {
		if e := w.entry(); !seen[e.Document.ID] {
			seen[e.Document.ID] = true
			list = append(list, e)
		}
	}
	return list
}

// changed returns a current document with the same text and another ACL, metadata or collection. It
// returns false if there are no documents.
func (w world) changed(s *Source) (Entry, bool) {
	current := s.documents()
	if len(current) == 0 {
		return Entry{}, false
	}
	c := current[w.IntN(len(current))]
	e := Entry{Document: *c.Document, Chunks: c.Chunks}
	switch w.IntN(3) {
	case 0:
		e.Document.ACL = w.acl()
	case 1:
		e.Document.Metadata = w.metadata()
		e = e.identified()
	default:
		e.Document.Collection = fmt.Sprint("c", w.IntN(3))
	}
	return e, true
}

func (w world) metadata() assay.Metadata {
	m := maps.Clone(filterMetadata[w.IntN(len(filterMetadata))])
	if language := []string{"", "", "en", "en-GB", "de", "fr", "xx"}[w.IntN(7)]; language != "" {
		if m == nil {
			m = make(assay.Metadata)
		}
		m[assay.MetaLanguage] = assay.StringValue(language)
	}
	return m
}

func (w world) acl() assay.ACL {
	var names []string
	switch w.IntN(5) {
	case 0:
		names = []string{"user:ann"}
	case 1:
		names = []string{"group:legal", "user:bob"}
	case 2:
		if w.IntN(2) == 0 {
			return assay.ACL{Restricted: true}
		}
		names = []string{"*"}
	default:
		return assay.ACL{}
	}
	acl, err := assay.RestrictTo(names...)
	if err != nil {
		panic(err)
	}
	return acl
}

func (w world) access() assay.Access {
	p := []assay.Principal{{}, assay.Local(), {User: "ann"}, {User: "bob"}, {User: "eve", Groups: []string{"legal"}}}[w.IntN(5)]
	if w.IntN(4) == 0 {
		p.Collections = []string{"c0", "none", "c2"}[:w.IntN(4)]
	}
	return p.Access()
}

func (w world) query() assay.Query {
	q := assay.Query{Text: w.text(5), Limit: 1 + w.IntN(20)}
	if w.IntN(10) == 0 {
		q.Limit = 1000
	}
	switch w.IntN(6) {
	case 0:
		q.Collections = []string{fmt.Sprint("c", w.IntN(3))}
	case 1:
		q.Collections = []string{"c1", "none", fmt.Sprint("c", w.IntN(3))}
	}
	switch w.IntN(4) {
	case 0:
		q.Filter = filters[w.IntN(len(filters))]
	case 1:
		q.Filter = w.filter(3)
	}
	if w.IntN(4) == 0 {
		q.BM25 = assay.BM25{K1: 3 * w.Float64(), B: w.Float64()}
	}
	return q
}

// models are the models of a world's vectors, with their dimensions.
var models = []struct {
	name       string
	dimensions int
}{{"small/24", 24}, {"odd/7", 7}}

// vector returns a random vector close to one of a few centres, like the vectors of texts.
func (w world) vector(dimensions int) []float32 {
	centre := rand.New(rand.NewPCG(w.Uint64N(5), 0))
	v := make([]float32, dimensions)
	for i := range v {
		v[i] = float32(2 + centre.NormFloat64() + 0.5*w.NormFloat64())
	}
	if w.IntN(100) == 0 {
		clear(v)
	}
	return v
}

// vectors returns vectors of a model for about one in n of the current chunks.
func (w world) vectors(s *Source, dimensions, n int) map[string][]float32 {
	vectors := make(map[string][]float32)
	for _, change := range s.documents() {
		for _, c := range change.Chunks {
			if w.IntN(n) == 0 {
				vectors[c.ID] = w.vector(dimensions)
			}
		}
	}
	return vectors
}

// vectorQuery returns a random valid query.
func (w world) vectorQuery() index.Vector {
	m := models[w.IntN(len(models))]
	v := index.Vector{Model: m.name, Metric: []index.Metric{index.Cosine, index.Dot, index.L2}[w.IntN(3)], Values: w.vector(m.dimensions)}
	v.Values[0] += 0.01 // never all zero
	return v
}
