// Package evaltest has the labelled sets that the tests of package eval's tree share.
package evaltest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-rag/assay/eval/testset"
)

// A set in the BEIR layout with two passages. Only one of its two queries has judgements, and one
// judgement names a query that does not exist.
const (
	Corpus = `{"_id":"p1","title":"Servers","text":"Shutdown closes all listeners."}
{"_id":"p2","title":"Fruit","text":"Bananas are yellow."}
`
	Queries = `{"_id":"q1","text":"which listeners are closed"}
{"_id":"q2","text":"never judged"}
`
	Judgements = "query-id\tcorpus-id\tscore\nq1\tp1\t1\nq1\tp2\t0\nq9\tp1\t1\n"
)

// WriteSet writes a set in the BEIR layout and returns its folder, whose name is tiny.
func WriteSet(t *testing.T, corpus, queries, judgements string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels.tsv": judgements} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// WriteFile writes a file to a temporary folder and returns its path.
func WriteFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Shared reads labelled sets of the folder ASSAY_TESTDATA. It skips the test if that is not set.
func Shared(t *testing.T, names ...string) []testset.Set {
	t.Helper()
	data := os.Getenv("ASSAY_TESTDATA")
	if data == "" {
		t.Skip("ASSAY_TESTDATA is not set: it names a folder that holds data/retrieval")
	}
	var sets []testset.Set
	for _, name := range names {
		set, err := testset.ReadSet(filepath.Join(data, "data", "retrieval", name))
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	return sets
}
