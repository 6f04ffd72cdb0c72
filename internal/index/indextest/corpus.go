package indextest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// RealChunks returns n chunks of about 120 words of the shared corpora and retrieval sets, in documents
// of up to eight, and their texts. If the texts are too short, they are cut again at other places. Half
// of the documents are restricted to user:ann. The key share of each is a random number below 1.
func RealChunks(t testing.TB, n int) ([]Entry, []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Data(t), "corpora", "*.jsonl"))
	more, moreErr := filepath.Glob(filepath.Join(Data(t), "retrieval", "*", "corpus.jsonl"))
	if files = append(files, more...); err != nil || moreErr != nil || len(files) == 0 {
		t.Fatalf("%d files of texts, %v, %v", len(files), err, moreErr)
	}
	c := cutter{random: rand.New(rand.NewPCG(1, 1)), n: n}
	for shift := 0; len(c.texts) < n; shift += 37 {
		for _, file := range files {
			for _, r := range ReadRows(t, file) {
				words := strings.Fields(r.Text)
				c.cut(fmt.Sprint(file, r.ID), r.Title, words[min(shift, len(words)):])
			}
		}
	}
	return c.entries, c.texts
}

// A cutter makes documents of texts until they have n chunks.
type cutter struct {
	random  *rand.Rand
	n       int
	entries []Entry
	texts   []string
}

func (c *cutter) cut(uri, title string, words []string) {
	const least = 40 // words of a chunk
	for len(words) > least && len(c.texts) < c.n {
		var chunks []string
		for len(words) > least && len(chunks) < 8 && len(c.texts)+len(chunks) < c.n {
			size := min(len(words), 80+c.random.IntN(80))
			chunks = append(chunks, strings.Join(words[:size], " "))
			words = words[size:]
		}
		c.texts = append(c.texts, chunks...)
		e := NewEntry("c", fmt.Sprint(uri, title, len(c.entries)), title, chunks...)
		e.Document.Metadata = assay.Metadata{"share": assay.NumberValue(c.random.Float64())}
		if c.random.IntN(2) == 0 {
			e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
		}
		c.entries = append(c.entries, e)
	}
}

// Questions returns up to n questions of each of three of the shared retrieval sets.
func Questions(t testing.TB, n int) []string {
	t.Helper()
	var questions []string
	for _, set := range []string{"scifact-train", "hotpotqa-train100", "mtrag-un-reference"} {
		rows := ReadRows(t, filepath.Join(Data(t), "retrieval", set, "queries.jsonl"))
		for _, r := range rows[:min(n, len(rows))] {
			questions = append(questions, r.Text)
		}
	}
	return questions
}

// MoreVectors returns vector i of a set of unit vectors that extends the known ones. Each other vector
// is a known one moved by half the difference of two others, which keeps the directions in which they
// vary.
func MoreVectors(known [][]float32, i int) []float32 {
	if i < len(known) {
		return known[i]
	}
	random := rand.New(rand.NewPCG(5, uint64(i)))
	v := slices.Clone(known[i%len(known)])
	a, b := known[random.IntN(len(known))], known[random.IntN(len(known))]
	sum := 0.0
	for j := range v {
		v[j] += (a[j] - b[j]) / 2
		sum += float64(v[j]) * float64(v[j])
	}
	for j := range v {
		v[j] /= float32(math.Sqrt(sum))
	}
	return v
}
