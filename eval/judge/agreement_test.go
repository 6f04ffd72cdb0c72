package judge_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/eval/mutate"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/ground"
)

// A selection is a question with the sentences that people selected as its answer, and the
// reference answers that they wrote from them.
type selection struct {
	Text     string
	Metadata struct {
		Answers  []string
		Selected [][]string `json:"selected_sentences"`
	}
}

// selections reads the first n of clapnq-answerable.
func selections(t *testing.T, n int) []selection {
	t.Helper()
	dir := os.Getenv("ASSAY_TESTDATA")
	if dir == "" {
		t.Skip("ASSAY_TESTDATA is not set: it names the folder of the shared sets")
	}
	f, err := os.Open(filepath.Join(dir, "data", "retrieval", "clapnq-answerable", "queries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []selection
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && len(all) < n {
		var s selection
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Metadata.Answers) > 0 && len(s.Metadata.Selected) > 0 && len(s.Metadata.Selected[0]) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// TestLocalCorrectnessTellsAnswersApart checks that, in nearly all pairs, the sentences that people
// selected agree more with the answer written from them than an answer to another question does.
// The figures in docs/measures.md are of ASSAY_LONG=1.
func TestLocalCorrectnessTellsAnswersApart(t *testing.T) {
	n := 30
	if os.Getenv("ASSAY_LONG") != "" {
		n = 150
	}
	all := selections(t, n)
	correct := func(q selection, sentences []string) float64 {
		in := judge.Input{Question: q.Text, Answer: strings.Join(sentences, " "), References: q.Metadata.Answers}
		for _, c := range ground.Cut(in.Answer, nil) {
			in.Claims = append(in.Claims, judge.Claim{Text: c.Text})
		}
		got, err := judge.Local{}.Judge(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := got.Scores[judge.Correctness]
		if !ok {
			t.Errorf("%q is not judged: %s", in.Answer, got.NotJudged[judge.Correctness])
		}
		return s.Value
	}
	var right, other []float64
	lower, changed := 0, 0
	for i, q := range all {
		sentences := q.Metadata.Selected[0]
		right = append(right, correct(q, sentences))
		other = append(other, correct(q, all[(i+len(all)/4)%len(all)].Metadata.Selected[0]))
		if ms := mutate.Of(sentences[0], strings.Join(sentences, " ")); len(ms) > 0 {
			changed++
			if correct(q, slices.Concat([]string{ms[i%len(ms)].Claim}, sentences[1:])) < right[i] {
				lower++
			}
		}
	}
	auc := 0.0
	for _, r := range right {
		for _, o := range other {
			switch {
			case r > o:
				auc++
			case r == o:
				auc += 0.5
			}
		}
	}
	auc /= float64(len(right) * len(other))
	t.Logf("of %d questions: AUC %.3f, medians %.2f and %.2f; lower with one word changed: %d of %d",
		len(all), auc, stat.Percentile(right, 50), stat.Percentile(other, 50), lower, changed)
	if auc < 0.95 {
		t.Errorf("AUC %.3f, want at least 0.95", auc)
	}
}
