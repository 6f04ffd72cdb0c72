package index_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// TestLarge repeats the random checks with more chunks than a bitmap container, a window or a short
// list holds, in one segment and in several, with deletions.
func TestLarge(t *testing.T) {
	t.Parallel()
	if os.Getenv("ASSAY_LONG") != "1" {
		t.Skip("reads every document for every question: only with ASSAY_LONG=1")
	}
	s := indextest.NewSource("a")
	random := rand.New(rand.NewPCG(7, 1))
	dir := t.TempDir()
	ix := opened(t, index.Open, s, dir)
	for step := range 4 {
		var entries []indextest.Entry
		for i := range 15_000 {
			entries = append(entries, largeEntry(random, step*12_000+i)) // overlaps the previous step
		}
		s.Put(entries...)
		for model, dimensions := range map[string]int{"small/24": 24, "odd/7": 7} {
			vectors := make(map[string][]float32)
			for _, e := range entries {
				for _, c := range e.Chunks {
					if random.IntN(3) == 0 {
						vectors[c.ID] = largeVector(random, dimensions)
					}
				}
			}
			s.PutVectors(model, vectors)
		}
		var gone []string
		for range 1000 {
			gone = append(gone, largeEntry(random, random.IntN(12_000*(step+1))).Document.ID)
		}
		if step > 0 {
			s.Delete(gone...)
		}
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		indextest.Check(t, ix, s, uint64(step), 15)
	}
	if err := ix.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	indextest.Check(t, ix, s, 10, 15)
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	read := s.Read()
	again := opened(t, index.Open, s, dir)
	indextest.Check(t, again, s, 11, 15)
	if s.Read() != read {
		t.Errorf("reopening read %d documents again", s.Read()-read)
	}
}

func largeEntry(random *rand.Rand, n int) indextest.Entry {
	words := strings.Fields("alpha Beta gamma os.Open file_name running ran E1042 naïve delta epsilon zeta eta theta iota kappa ReadTimeout Häuser Haus")
	texts := make([]string, 1+random.IntN(5))
	for i := range texts {
		for range 1 + random.IntN(12) {
			texts[i] += words[min(random.IntN(len(words)), random.IntN(len(words)))] + " "
		}
		texts[i] += fmt.Sprint("w", random.IntN(50_000))
	}
	e := indextest.NewEntry(fmt.Sprint("c", n%3), fmt.Sprint("d", n), words[random.IntN(len(words))], texts...)
	e.Document.Metadata = assay.Metadata{
		"year": assay.NumberValue(float64(1900 + random.IntN(125))),
		"team": assay.StringValue(words[random.IntN(len(words))]),
		"tags": assay.ListValue("old", words[random.IntN(len(words))]),
	}
	if random.IntN(4) == 0 {
		e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
	}
	if random.IntN(50) == 0 {
		e.Document.Metadata[assay.MetaLanguage] = assay.StringValue("de")
	}
	return e
}

func largeVector(random *rand.Rand, dimensions int) []float32 {
	v := make([]float32, dimensions)
	for i := range v {
		v[i] = float32(1 + random.NormFloat64())
	}
	return v
}
