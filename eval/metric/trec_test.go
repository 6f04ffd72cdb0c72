package metric_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/assay-rag/assay/eval/metric"
)

// A judgedRun is a line of testdata/runs: a query's relevance judgements and its ranking.
type judgedRun struct {
	relevant map[string]int
	ranked   []string
}

// readRun reads a file of testdata/runs. The format is described in testdata/trec_eval.py.
func readRun(t *testing.T, path string) (runs []judgedRun, hash string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		run := judgedRun{relevant: map[string]int{}, ranked: strings.Fields(fields[2])}
		for pair := range strings.FieldsSeq(fields[1]) {
			at := strings.LastIndex(pair, "=")
			if run.relevant[pair[:at]], err = strconv.Atoi(pair[at+1:]); err != nil {
				t.Fatal(err)
			}
		}
		runs = append(runs, run)
	}
	sum := sha256.Sum256(text)
	return runs, hex.EncodeToString(sum[:])
}

// TestAgainstTrecEval compares with trec_eval's figures for BM25 rankings of three whole sets, and
// for one ranking with grades from 0 to 3. The figures are those of testdata/trec_eval.json, which
// scripts/trec-eval regenerates with trec_eval itself.
func TestAgainstTrecEval(t *testing.T) {
	data, err := os.ReadFile("testdata/trec_eval.json")
	if err != nil {
		t.Fatal(err)
	}
	var reference map[string]struct {
		Hash    string `json:"sha256"`
		Queries int
		Means   map[string]float64
	}
	if err := json.Unmarshal(data, &reference); err != nil {
		t.Fatal(err)
	}
	measures := map[string]func([]string, map[string]int) float64{
		"ndcg_cut_10": ndcg(10, metric.Linear), "ndcg_cut_100": ndcg(100, metric.Linear),
		"map_cut_100": at(100, metric.AveragePrecision), "recip_rank": at(100, metric.ReciprocalRank),
		"recall_5": at(5, metric.Recall), "recall_10": at(10, metric.Recall), "recall_100": at(100, metric.Recall),
		"P_5": at(5, metric.Precision), "P_10": at(10, metric.Precision),
		"success_1": at(1, metric.Hit), "success_5": at(5, metric.Hit), "success_10": at(10, metric.Hit),
	}
	files, err := filepath.Glob("testdata/runs/*.tsv.gz")
	if err != nil || len(files) != len(reference) || len(files) < 4 {
		t.Fatalf("%d runs (%v), and figures of %d", len(files), err, len(reference))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".tsv.gz")
		runs, hash := readRun(t, file)
		want := reference[name]
		if hash != want.Hash || len(runs) != want.Queries || len(want.Means) != len(measures) {
			t.Errorf("%s: %d queries with hash %s; the figures are of %d with hash %s: make them again", name, len(runs), hash, want.Queries, want.Hash)
			continue
		}
		for measure, of := range measures {
			sum := 0.0
			for _, r := range runs {
				sum += of(r.ranked, r.relevant)
			}
			if got := sum / float64(len(runs)); math.Abs(got-want.Means[measure]) > 1e-9 {
				t.Errorf("%s: %s = %.10f, trec_eval says %.10f", name, measure, got, want.Means[measure])
			}
		}
		// With grades 0 and 1 the two gains are the same.
		for _, r := range runs {
			linear, exponential := metric.NDCG(r.ranked, r.relevant, 10, metric.Linear), metric.NDCG(r.ranked, r.relevant, 10, metric.Exponential)
			if name != "graded" && linear != exponential {
				t.Fatalf("%s: nDCG %v by linear gain and %v by exponential", name, linear, exponential)
			}
		}
	}
}
