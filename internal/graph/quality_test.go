package graph_test

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/graph"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// A labelled set is an index of a data set. It has the passages' chunks by name and, for each
// question, the passages that answer it together.
type labelled struct {
	index     *index.Searcher
	chunks    []string
	questions []string
	gold      [][]string
}

// lines reads a file of JSON objects, one per line.
func lines[T any](t *testing.T, path string) []T {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []T
	for line := range strings.Lines(string(data)) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

func openSet(t *testing.T, name string) labelled {
	t.Helper()
	root := os.Getenv("ASSAY_TESTDATA")
	if root == "" {
		t.Skip("ASSAY_TESTDATA is not set to a folder that holds data")
	}
	dir := filepath.Join(root, "data", "retrieval", name)
	type row struct {
		ID          string `json:"_id"`
		Title, Text string
	}
	var s labelled
	source := indextest.NewSource(name)
	chunks := map[string]string{}
	var entries []indextest.Entry
	for _, r := range lines[row](t, filepath.Join(dir, "corpus.jsonl")) {
		e := indextest.NewEntry("c", r.ID, r.Title, r.Text)
		chunks[r.ID] = e.Chunks[0].ID
		s.chunks = append(s.chunks, e.Chunks[0].ID)
		entries = append(entries, e)
	}
	source.Put(entries...)
	qrels, err := os.ReadFile(filepath.Join(dir, "qrels.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	gold := map[string][]string{}
	for line := range strings.Lines(string(qrels)) {
		if cells := strings.Split(strings.TrimSpace(line), "\t"); len(cells) == 3 && chunks[cells[1]] != "" && cells[2] != "0" {
			gold[cells[0]] = append(gold[cells[0]], chunks[cells[1]])
		}
	}
	for _, q := range lines[row](t, filepath.Join(dir, "queries.jsonl")) {
		s.questions, s.gold = append(s.questions, q.Text), append(s.gold, gold[q.ID])
	}
	if s.index, err = index.Open(t.Context(), t.TempDir(), source); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.index.Close() })
	return s
}

// A shuffled view is a graph in which the entities of passages are permuted.
type shuffled struct {
	graph.View
	other, back map[string]string // chunk to chunk, in both directions
}

func newShuffled(chunks []string) shuffled {
	s := shuffled{other: map[string]string{}, back: map[string]string{}}
	for i, n := range rand.New(rand.NewPCG(1, 1)).Perm(len(chunks)) {
		s.other[chunks[i]], s.back[chunks[n]] = chunks[n], chunks[i]
	}
	return s
}

func (s shuffled) Passage(chunk string) (uint64, bool) { return s.View.Passage(s.other[chunk]) }
func (s shuffled) Chunk(passage uint64) string         { return s.back[s.View.Chunk(passage)] }

// allGold returns the share of the questions whose gold passages are all among the first ten: by
// words, with the mass of a walk added, and with the mass of a walk in a shuffled graph added.
func (s labelled) allGold(t *testing.T) (words, walked, control float64) {
	t.Helper()
	access := assay.Local().Access()
	shuffled := newShuffled(s.chunks)
	var finder entity.Finder
	for i, question := range s.questions {
		found, err := s.index.Search(t.Context(), access, assay.Query{Text: question, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		scores := map[string]float64{}
		var seeds []graph.Seed
		for _, h := range found.Hits {
			scores[h.Chunk] = h.BM25 / found.Hits[0].BM25
			seeds = append(seeds, graph.Seed{Chunk: h.Chunk, Score: h.BM25})
		}
		g, err := s.index.Graph(t.Context(), access, assay.Query{})
		if err != nil {
			t.Fatal(err)
		}
		keys := finder.Question(question, "")
		shuffled.View = g
		words += s.complete(i, scores)
		walked += s.complete(i, with(scores, walk(t, g, seeds, keys, graph.Options{})))
		control += s.complete(i, with(scores, walk(t, shuffled, seeds, keys, graph.Options{})))
		g.Close()
	}
	n := float64(len(s.questions))
	return words / n, walked / n, control / n
}

// with adds half the root of each mass, relative to the greatest, to the scores.
func with(scores map[string]float64, masses []graph.Score) map[string]float64 {
	sum := map[string]float64{}
	for chunk, score := range scores {
		sum[chunk] = score
	}
	for _, m := range masses {
		sum[m.Chunk] += math.Sqrt(m.Mass/masses[0].Mass) / 2
	}
	return sum
}

// complete returns 1 if all gold passages of a question are among the ten best, else 0.
func (s labelled) complete(question int, scores map[string]float64) float64 {
	var order []string
	for chunk := range scores {
		order = append(order, chunk)
	}
	slices.SortFunc(order, func(a, b string) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	for _, g := range s.gold[question] {
		if !slices.Contains(order[:min(10, len(order))], g) {
			return 0
		}
	}
	return 1
}

// TestQuality checks that the walk finds passages that answer a question only together. It also
// checks that the gain comes from the named entities: in a shuffled graph there is none.
func TestQuality(t *testing.T) {
	for _, test := range []struct {
		set  string
		gain float64 // minimum gain in the share of questions with all gold in the first ten
	}{
		{"hotpotqa-train100", 0.10},
		{"musique-train100", 0.08},
		{"xquad-en", -0.005}, // a single passage answers each question
	} {
		t.Run(test.set, func(t *testing.T) {
			if testing.Short() && test.set != "hotpotqa-train100" {
				t.Skip("one set suffices")
			}
			words, walked, control := openSet(t, test.set).allGold(t)
			t.Logf("all gold in the first ten: by words %.3f, with the walk %.3f, shuffled %.3f", words, walked, control)
			if walked < words+test.gain {
				t.Errorf("the walk gains %.3f, want %.3f", walked-words, test.gain)
			}
			if control > words+0.01 {
				t.Errorf("a walk over a shuffled graph gains %.3f", control-words)
			}
		})
	}
}
