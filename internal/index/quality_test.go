package index_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// loadCorpus puts each document of a BEIR folder into an index, as a title and one chunk, and
// returns the corpus IDs by document ID.
func loadCorpus(t testing.TB, dir string) (index.Index, map[string]string) {
	t.Helper()
	source := indextest.NewSource(dir)
	names := make(map[string]string)
	var entries []indextest.Entry
	for _, row := range indextest.ReadRows(t, filepath.Join(dir, "corpus.jsonl")) {
		e := indextest.NewEntry("c", row.ID, row.Title, row.Text)
		names[e.Document.ID] = row.ID
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
	root := filepath.Join(indextest.Data(t), "retrieval")
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
	qrels := indextest.ReadGrades(t, filepath.Join(dir, "qrels.tsv"))
	sum, n := 0.0, 0
	for _, q := range indextest.ReadRows(t, filepath.Join(dir, "queries.jsonl")) {
		grades := qrels[q.ID]
		if grades == nil {
			continue
		}
		result, err := ix.Search(t.Context(), assay.Local().Access(), assay.Query{Text: q.Text, Limit: 10})
		if err != nil {
			t.Fatalf("query %s: %v", q.ID, err)
		}
		var ranking []string
		for _, h := range result.Hits {
			ranking = append(ranking, names[h.Document])
		}
		sum += indextest.NDCG10(ranking, grades)
		n++
	}
	return sum / float64(n)
}
