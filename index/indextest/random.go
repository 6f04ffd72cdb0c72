package indextest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/index"
	"github.com/assay-rag/assay/internal/analysis"
)

// rounds is n, or a hundred times as many with ASSAY_LONG=1.
func rounds(n int) int {
	if os.Getenv("ASSAY_LONG") == "1" {
		return 100 * n
	}
	return n
}

var words = strings.Fields("alpha Beta gamma os.Open file_name running ran the of E1042 naïve 日本語 delta epsilon zeta eta theta iota kappa ReadTimeout")

// A world makes random documents and queries.
type world struct{ *rand.Rand }

func (w world) text(most int) string {
	var b strings.Builder
	for range w.IntN(most + 1) {
		b.WriteString(words[min(w.IntN(len(words)), w.IntN(len(words)))])
		b.WriteByte(' ')
	}
	return b.String()
}

func (w world) entry(documents int) Entry {
	var texts []string
	for range w.IntN(4) {
		texts = append(texts, w.text(12))
	}
	e := NewEntry(fmt.Sprint("c", w.IntN(2)), fmt.Sprint("d", w.IntN(documents)), w.text(2), texts...)
	for i := range e.Chunks {
		if w.IntN(3) == 0 {
			e.Chunks[i].Headings = []string{w.text(2), w.text(1)}
		}
		if w.IntN(8) == 0 {
			e.Chunks[i].Kind = assay.ChunkSection
		}
	}
	e.Document.ACL = w.acl()
	e.Document.Metadata = maps.Clone(filterMetadata[w.IntN(len(filterMetadata))])
	return e
}

func (w world) acl() assay.ACL {
	var names []string
	switch w.IntN(4) {
	case 0:
		names = []string{"user:ann"}
	case 1:
		names = []string{"group:legal", "user:bob"}
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
	return []assay.Principal{{}, assay.Local(), {User: "ann"}, {User: "bob"}, {User: "eve", Groups: []string{"legal"}}}[w.IntN(5)].Access()
}

func (w world) query() assay.Query {
	q := assay.Query{Text: w.text(5), Limit: 1 + w.IntN(20)}
	if w.IntN(3) == 0 {
		q.Collections = []string{fmt.Sprint("c", w.IntN(3))}
	}
	if w.IntN(2) == 0 {
		q.Filter = filters[w.IntN(len(filters))]
	}
	return q
}

// testRandom compares an index that is updated, flushed and reopened at random
// with a naive model and with an index made afresh.
func testRandom(t *testing.T, open Opener) {
	for seed := range uint64(4) {
		w := world{rand.New(rand.NewPCG(seed, 1))}
		s := NewSource("a")
		dir := t.TempDir()
		ix := open(t, s, dir)
		for round := range rounds(250) {
			switch n := w.IntN(20); {
			case n < 8:
				var entries []Entry
				seen := make(map[string]bool)
				for range 1 + w.IntN(3) {
					if e := w.entry(10 + 40*int(seed)); !seen[e.Document.ID] {
						seen[e.Document.ID] = true
						entries = append(entries, e)
					}
				}
				s.Put(entries...)
			case n < 11:
				s.Delete(w.entry(10 + 40*int(seed)).Document.ID)
			case n < 12:
				s.Skip()
			case n < 14:
				if err := ix.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			case n < 15:
				if err := ix.Close(); err != nil {
					t.Fatal(err)
				}
				ix = open(t, s, dir)
			default:
				access, q := w.access(), w.query()
				got, err := ix.Search(t.Context(), access, q)
				checkModel(t, s, access, q, got, err)
				if round%10 == 0 {
					fresh, freshErr := open(t, s, t.TempDir()).Search(t.Context(), access, q)
					if diff := cmp.Diff(fresh, got); diff != "" || (err == nil) != (freshErr == nil) {
						t.Errorf("not what a fresh index finds (%v, %v): -fresh +got\n%s", freshErr, err, diff)
					}
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d, round %d", seed, round)
			}
		}
	}
}

// checkModel checks a result against what reading every document gives.
func checkModel(t *testing.T, s *Source, access assay.Access, q assay.Query, got index.Result, err error) {
	t.Helper()
	var current []assay.Change // that access may see: nothing else counts
	for _, change := range s.documents() {
		if access.Allows(change.Document.ACL) {
			current = append(current, change)
		}
	}
	kinds := func(key string) []assay.ValueKind {
		var kinds []assay.ValueKind
		for _, c := range current {
			if v, ok := c.Document.Metadata[key]; ok {
				kinds = append(kinds, v.Kind)
			}
		}
		return kinds
	}
	if invalid := q.Filter.Check(kinds); !access.IsZero() && invalid != nil {
		if err == nil {
			t.Errorf("filter %s: no error, want %v", q.Filter, invalid)
		}
		return
	}
	if err != nil {
		t.Errorf("Search(%+v): %v", q, err)
		return
	}
	stems := distinctTerms(q.Text)
	holding := make(map[string]int)
	matched := make(map[string][]string) // of the visible chunks
	chunks := 0
	for _, change := range current {
		visible := q.Filter.Match(change.Document.Metadata) &&
			(len(q.Collections) == 0 || slices.Contains(q.Collections, change.Document.Collection))
		for _, c := range change.Chunks {
			if c.Kind == assay.ChunkSection {
				continue
			}
			chunks++
			held := heldTerms(change.Document, c, stems)
			for _, stem := range held {
				holding[stem]++
			}
			if visible && len(held) > 0 {
				matched[c.ID] = held
			}
		}
	}
	if access.IsZero() {
		stems, chunks = nil, 0
	}
	if got.Total != len(matched) || got.Chunks != chunks || len(got.Hits) != min(q.Limit, len(matched)) {
		t.Errorf("Search(%+v): %d hits, Total %d of %d, want Total %d of %d", q, len(got.Hits), got.Total, got.Chunks, len(matched), chunks)
	}
	for _, h := range got.Hits {
		if diff := cmp.Diff(matched[h.Chunk], h.Matched, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("Search(%+v): chunk %s matched: -want +got\n%s", q, h.Chunk, diff)
		}
	}
	var terms []string
	for _, term := range got.Terms {
		terms = append(terms, term.Stem)
		if term.Chunks != holding[term.Stem] {
			t.Errorf("Search(%+v): term %s in %d chunks, want %d", q, term.Stem, term.Chunks, holding[term.Stem])
		}
	}
	if diff := cmp.Diff(stems, terms); diff != "" {
		t.Errorf("Search(%+v): terms: -want +got\n%s", q, diff)
	}
}

func distinctTerms(text string) []string {
	var stems []string
	for _, t := range analysis.Tokens(text, "") {
		if !slices.Contains(stems, t.Term) {
			stems = append(stems, t.Term)
		}
	}
	return stems
}

// heldTerms returns those of the stems that a chunk holds.
func heldTerms(d *assay.Document, c assay.Chunk, stems []string) []string {
	own := distinctTerms(d.Title + "\n" + strings.Join(c.Headings, "\n") + "\n" + d.Text[c.Start:c.End])
	var held []string
	for _, stem := range stems {
		if slices.Contains(own, stem) {
			held = append(held, stem)
		}
	}
	return held
}
