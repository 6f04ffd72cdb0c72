package index_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

type labelled struct {
	id, title, text string
}

func readJSONL(t testing.TB, path string) []labelled {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []labelled
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var row struct {
			ID    string `json:"_id"`
			Title string `json:"title"`
			Text  string `json:"text"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		rows = append(rows, labelled{row.ID, row.Title, row.Text})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// readQrels returns the graded documents by query.
func readQrels(t testing.TB, path string) map[string]map[string]int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	qrels := make(map[string]map[string]int)
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		cells := strings.Split(line, "\t")
		if i == 0 || len(cells) != 3 {
			continue
		}
		grade, err := strconv.Atoi(cells[2])
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if qrels[cells[0]] == nil {
			qrels[cells[0]] = make(map[string]int)
		}
		qrels[cells[0]][cells[1]] = grade
	}
	return qrels
}

// ndcg10 returns nDCG@10 of a ranking of document IDs, with the grades as gains.
func ndcg10(ranking []string, grades map[string]int) float64 {
	gain := 0.0
	for i, id := range ranking[:min(10, len(ranking))] {
		gain += float64(grades[id]) / math.Log2(float64(i)+2)
	}
	var best []int
	for _, g := range grades {
		best = append(best, g)
	}
	slices.Sort(best)
	slices.Reverse(best)
	ideal := 0.0
	for i, g := range best[:min(10, len(best))] {
		ideal += float64(g) / math.Log2(float64(i)+2)
	}
	if ideal == 0 {
		return 0
	}
	return gain / ideal
}

// testdata returns the folder of shared test data. It skips the test if there is none.
func testdata(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("ASSAY_TESTDATA")
	if dir == "" {
		t.Skip("ASSAY_TESTDATA is not set to a folder that holds data")
	}
	return dir
}

// loadCorpus puts each document of a BEIR folder into an index, as a title and one chunk, and
// returns the corpus IDs by document ID.
func loadCorpus(t testing.TB, dir string) (index.Index, map[string]string) {
	t.Helper()
	source := indextest.NewSource(dir)
	names := make(map[string]string)
	var entries []indextest.Entry
	for _, row := range readJSONL(t, filepath.Join(dir, "corpus.jsonl")) {
		e := indextest.NewEntry("c", row.id, row.title, row.text)
		names[e.Document.ID] = row.id
		entries = append(entries, e)
	}
	source.Put(entries...)
	ix, err := index.Open(t.Context(), t.TempDir(), source)
	if err != nil {
		t.Fatal(err)
	}
	return ix, names
}

// TestQuality compares the ranking's nDCG@10, in thousandths, with golden figures.
func TestQuality(t *testing.T) {
	t.Parallel()
	root := filepath.Join(testdata(t), "data", "retrieval")
	golden, err := os.ReadFile(filepath.Join("testdata", "quality.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(golden)) {
		set, _, _ := strings.Cut(line, " ")
		if testing.Short() && got.Len() > 0 { // only the first set
			got.WriteString(line)
			continue
		}
		fmt.Fprintf(&got, "%s %.3f\n", set, measure(t, filepath.Join(root, set)))
	}
	if got.String() != string(golden) {
		t.Errorf("nDCG@10 is not what testdata/quality.txt says; got\n%s\nwant\n%s", got.String(), golden)
	}
}

func measure(t *testing.T, dir string) float64 {
	t.Helper()
	ix, names := loadCorpus(t, dir)
	qrels := readQrels(t, filepath.Join(dir, "qrels.tsv"))
	sum, n := 0.0, 0
	for _, q := range readJSONL(t, filepath.Join(dir, "queries.jsonl")) {
		grades := qrels[q.id]
		if grades == nil {
			continue
		}
		result, err := ix.Search(t.Context(), assay.Local().Access(), assay.Query{Text: q.text, Limit: 10})
		if err != nil {
			t.Fatalf("query %s: %v", q.id, err)
		}
		var ranking []string
		for _, h := range result.Hits {
			ranking = append(ranking, names[h.Document])
		}
		sum += ndcg10(ranking, grades)
		n++
	}
	return sum / float64(n)
}
