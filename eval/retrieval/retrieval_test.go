package retrieval_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/evaltest"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
)

func TestMeasure(t *testing.T) {
	log2 := math.Log2
	tests := []struct {
		name     string
		ranked   []string
		relevant map[string]int
		want     retrieval.Metrics
	}{
		{"first", []string{"a", "b"}, map[string]int{"a": 1}, retrieval.Metrics{NDCG10: 1, MRR10: 1, Recall10: 1, Recall100: 1, AllGold10: 1}},
		{"third", []string{"x", "y", "a"}, map[string]int{"a": 1}, retrieval.Metrics{NDCG10: 1 / log2(4), MRR10: 1.0 / 3, Recall10: 1, Recall100: 1, AllGold10: 1}},
		{"nothing", nil, map[string]int{"a": 1}, retrieval.Metrics{}},
		{
			"one of two", []string{"a", "x"}, map[string]int{"a": 1, "b": 1},
			retrieval.Metrics{NDCG10: 1 / (1 + 1/log2(3)), MRR10: 1, Recall10: 0.5, Recall100: 0.5},
		},
		{
			"beyond ten", append(strings.Split("0123456789", ""), "a"), map[string]int{"a": 1},
			retrieval.Metrics{Recall100: 1},
		},
		{
			"graded", []string{"a", "b"}, map[string]int{"a": 1, "b": 2},
			retrieval.Metrics{NDCG10: (1 + 3/log2(3)) / (3 + 1/log2(3)), MRR10: 1, Recall10: 1, Recall100: 1, AllGold10: 1},
		},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, retrieval.Measure(tt.ranked, tt.relevant), cmpopts.EquateApprox(0, 1e-12)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestRetrieval(t *testing.T) {
	set, err := testset.ReadSet(evaltest.WriteSet(t, evaltest.Corpus, evaltest.Queries, evaltest.Judgements))
	if err != nil {
		t.Fatal(err)
	}
	if set.Name != "tiny" || len(set.Passages) != 2 || len(set.Queries) != 1 || set.Dropped != 1 {
		t.Errorf("ReadSet = %+v", set)
	}
	report, err := retrieval.Run(context.Background(), set, retrieval.Parts{Embedder: words{}, CacheDir: t.TempDir()}, retrieval.Rankings(true, false))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != len(retrieval.Rankings(true, false)) || report.Model != "words/2" {
		t.Errorf("Retrieval = %+v", report)
	}
	for i, row := range report.Rows {
		if row.NDCG10 != 1 || row.Low.NDCG10 != 1 || row.High.NDCG10 != 1 || (row.Against != nil) != (i > 0) {
			t.Errorf("Retrieval, %s = %+v, want 1 everywhere", row.Ranking, row)
		}
	}
	data, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"ndcg@10":1`, `"mrr@10":1`, `"recall@10":1`, `"recall@100":1`, `"all_gold@10":1`, `"low":{`, `"against":{`} {
		if !strings.Contains(string(data), key) {
			t.Errorf("the report has no %s: %s", key, data)
		}
	}
}

// words embeds texts by whether they mention listeners.
type words struct{}

func (words) Model() string { return "words/2" }

func (words) Embed(_ context.Context, _ llm.Purpose, texts []string) ([]llm.Vector, error) {
	vectors := make([]llm.Vector, len(texts))
	for i, text := range texts {
		vectors[i] = llm.Vector{0, 1}
		if strings.Contains(text, "listeners") {
			vectors[i] = llm.Vector{1, 0}
		}
	}
	return vectors, nil
}

// short embeds like words, but rejects queries of more than 8 bytes.
type short struct{ words }

func (s short) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	for i, text := range texts {
		if p == llm.Query && len(text) > 8 {
			return nil, &llm.TooLongError{Model: s.Model(), Text: i, Tokens: len(text), Limit: 8}
		}
	}
	return s.words.Embed(ctx, p, texts)
}

// TestRetrievalLongQuery checks that a query that is too long for the encoder finds nothing with
// vectors alone, and gives a note instead of an error. A hybrid search still finds lexical hits.
func TestRetrievalLongQuery(t *testing.T) {
	set, err := testset.ReadSet(evaltest.WriteSet(t, evaltest.Corpus, evaltest.Queries, evaltest.Judgements))
	if err != nil {
		t.Fatal(err)
	}
	rankings := []retrieval.Ranking{{Name: "vector", Mode: assay.ModeVector}, {Name: "hybrid"}}
	report, err := retrieval.Run(t.Context(), set, retrieval.Parts{Embedder: short{}}, rankings)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0, 1} {
		if row := report.Rows[i]; row.NDCG10 != want || len(row.Notes) == 0 {
			t.Errorf("%s: nDCG@10 %v with notes %v, want %v and a note", row.Ranking, row.NDCG10, row.Notes, want)
		}
	}
}

func TestReadSetErrors(t *testing.T) {
	tests := []struct{ name, corpus, queries, qrels, want string }{
		{"not JSON", "{", evaltest.Queries, evaltest.Judgements, "corpus.jsonl:1"},
		{"passage with two texts", evaltest.Corpus + `{"_id":"p1","text":"Another."}`, evaltest.Queries, evaltest.Judgements, "corpus.jsonl:3"},
		{"query with two texts", evaltest.Corpus, evaltest.Queries + `{"_id":"q1","text":"another"}`, evaltest.Judgements, "queries.jsonl:3"},
		{"query without ID", evaltest.Corpus, `{"text":"x"}`, evaltest.Judgements, "queries.jsonl:1"},
		{"grade is no number", evaltest.Corpus, evaltest.Queries, "query-id\tcorpus-id\tscore\nq1\tp1\tgood\n", "qrels.tsv:2"},
		{"grade is no whole number", evaltest.Corpus, evaltest.Queries, "q1\tp1\t0.5\n", "qrels.tsv:1"},
		{"grade is too high", evaltest.Corpus, evaltest.Queries, "q1\tp1\t31\n", "qrels.tsv:1"},
		{"too few columns", evaltest.Corpus, evaltest.Queries, "q1 p1\n", "qrels.tsv:1"},
		{"nothing relevant", evaltest.Corpus, evaltest.Queries, "q1\tp1\t0\n", "no query has a relevant passage"},
	}
	for _, tt := range tests {
		_, err := testset.ReadSet(evaltest.WriteSet(t, tt.corpus, tt.queries, tt.qrels))
		if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want ErrInvalid with %q", tt.name, err, tt.want)
		}
	}
	if _, err := testset.ReadSet(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty folder: %v, want ErrNotExist", err)
	}
}

// TestReadSetOdd reads the variants of the format that occur in public sets.
func TestReadSetOdd(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"corpus.jsonl": "\uFEFF{\"_id\":1,\"text\":\"no title\"}\r\n\r\n{\"_id\":\"2\",\"title\":null,\"text\":\"\",\"metadata\":{}}\r\n" +
			"{\"_id\":1,\"text\":\"no title\"}",
		"queries.jsonl":    "{\"_id\":7,\"text\":\"a\"}\n{\"_id\":7,\"text\":\"a\"}\n{\"_id\":8,\"text\":\"b\"}\n",
		"qrels/dev.tsv":    "query-id\tcorpus-id\tscore\r\n7\t1\t1\r\n7\t1\t2.0\r\n7\t1\t1\r\n7\t3\t1\r\n",
		"qrels/train.tsv":  "7\t2\t1\n",
		"qrels/readme.txt": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := testset.Set{
		Name:     filepath.Base(dir),
		Passages: []testset.Passage{{ID: "1", Text: "no title"}, {ID: "2"}},
		Queries:  []testset.Query{{ID: "7", Text: "a", Relevant: map[string]int{"1": 2}}},
		Dropped:  1,

		Unanswered: []testset.Query{{ID: "8", Text: "b", Relevant: map[string]int{}}},
	}
	got, err := testset.ReadSet(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReadSet (-want +got):\n%s", diff)
	}
	for _, qrels := range []string{"qrels/dev.tsv", "qrels/train.tsv"} {
		if err := os.Remove(filepath.Join(dir, qrels)); err != nil {
			t.Fatal(err)
		}
		if qrels == "qrels/dev.tsv" { // ReadSet falls back to train.tsv, here in TREC's four-column layout
			if err := os.WriteFile(filepath.Join(dir, "qrels", "train.tsv"), []byte("8 0 2 1\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if got, err := testset.ReadSet(dir); err != nil || len(got.Queries) != 1 || got.Queries[0].ID != "8" {
				t.Errorf("ReadSet = %+v, %v, want query 8", got, err)
			}
		}
	}
	if _, err := testset.ReadSet(dir); !errors.Is(err, os.ErrNotExist) || !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("without judgements: %v, want ErrNotExist and ErrInvalid", err)
	}
}

// TestRetrievalFigures checks minimum figures of the rankings with the embedded models. It measures
// three sets whose passages are encoded in a minute or two, and all sets with ASSAY_LONG. The
// figures in docs/evaluation.md are a little lower for sets from which the embedded models were
// also learned.
func TestRetrievalFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("encodes and searches sets")
	}
	encoder, err := embedded.Open()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		set                    string
		long                   bool
		bm25, text, full, gold float64 // minimum nDCG@10 of three rankings, and all gold@10 of the last
	}{
		{"hotpotqa-train100", false, 0.800, 0.830, 0.925, 0.98},
		{"musique-train100", false, 0.575, 0.625, 0.815, 0.75},
		{"anthropic-docs", false, 0.625, 0.770, 0.822, 0.79},
		{"scifact-train", true, 0.697, 0.697, 0.755, 0.855},
		{"clapnq-answerable", true, 0.935, 0.942, 0.977, 0.985},
		{"mtrag-un-reference", true, 0.730, 0.755, 0.846, 0.825},
		{"pubmedqa-1000", true, 0.973, 0.973, 0.990, 0.99},
		{"xquad-en", true, 0.965, 0.966, 0.980, 0.995},
		{"xquad-de", true, 0.945, 0.944, 0.944, 0.978},
	}
	for _, tt := range tests {
		if tt.long && os.Getenv("ASSAY_LONG") == "" {
			continue
		}
		set := evaltest.Shared(t, tt.set)[0]
		rankings := slices.DeleteFunc(retrieval.Rankings(true, false), func(r retrieval.Ranking) bool {
			return r.Mode == assay.ModeHybrid && !r.Rerank || r.Mode == assay.ModeVector
		})
		report, err := retrieval.Run(t.Context(), set, retrieval.Parts{Embedder: encoder}, rankings)
		if err != nil {
			t.Fatal(err)
		}
		bm25, text, full := report.Rows[0], report.Rows[1], report.Rows[2]
		t.Logf("%-18s nDCG@10: bm25 %.4f, text %.4f, %s %.4f; all gold@10 %.4f; %s", tt.set, bm25.NDCG10, text.NDCG10, full.Ranking, full.NDCG10, full.AllGold10, notes(full))
		if bm25.NDCG10 < tt.bm25 || text.NDCG10 < tt.text || full.NDCG10 < tt.full || full.AllGold10 < tt.gold {
			t.Errorf("%s: want %.4f, %.4f, %.4f and %.4f", tt.set, tt.bm25, tt.text, tt.full, tt.gold)
		}
	}
}
