package local

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assay-rag/assay/llm"
)

// A parityCase contains PyTorch's outputs for a pair that fits the input: logits of every token,
// [CLS] first, and of the other heads.
type parityCase struct {
	A          string
	Heading    string
	Text       string
	Start, End []float64
	Relevance  float64
	Entailment [3]float64
}

// readParity reads a reader's parity.json, or skips the test.
func readParity(t *testing.T, dir string) []parityCase {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "parity.json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s has no parity.json, which train/ writes with the weights", dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []parityCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatal("parity.json has no cases")
	}
	return file.Cases
}

// openReaderIn opens the reader in a folder on the encoder with the given name in another folder.
func openReaderIn(t testing.TB, dir, encoder, name string) *Reader {
	t.Helper()
	e, err := OpenDir(t.Context(), encoder, Config{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenReaderDir(t.Context(), dir, Config{}, e)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// logitsOf computes the cases, each in one window. It returns its logits and those of PyTorch.
func logitsOf(t *testing.T, r *Reader, cases []parityCase) (got, want []logits) {
	t.Helper()
	pairs := make([]llm.ClaimPair, len(cases))
	for i, c := range cases {
		pairs[i] = llm.ClaimPair{Claim: c.A, Passage: llm.Excerpt{Heading: c.Heading, Text: c.Text}}
	}
	all, err := r.compute(t.Context(), pairs)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if len(all[i]) != 1 || len(all[i][0].ids) != len(c.Start) || len(c.End) != len(c.Start) {
			t.Fatalf("case %d (%.40q, %.40q): %d windows, the first of %d tokens; PyTorch has %d", i, c.A, c.Text, len(all[i]), len(all[i][0].ids), len(c.Start))
		}
		w := logits{window: all[i][0].window, relevance: c.Relevance, entailment: c.Entailment}
		for k := range c.Start {
			w.spans = append(w.spans, float32(c.Start[k]), float32(c.End[k]))
		}
		got, want = append(got, all[i][0]), append(want, w)
	}
	return got, want
}

// farthest returns the largest difference between logits.
func farthest(a, b logits) float64 {
	most := math.Abs(a.relevance - b.relevance)
	for i := range a.entailment {
		most = max(most, math.Abs(a.entailment[i]-b.entailment[i]))
	}
	for i := range a.spans {
		most = max(most, math.Abs(float64(a.spans[i])-float64(b.spans[i])))
	}
	return most
}

// TestReaderParity compares the forward pass with PyTorch's, with float32 weights.
func TestReaderParity(t *testing.T) {
	dir := filepath.Join("testdata", "tinyreader")
	cases := readParity(t, dir)
	got, want := logitsOf(t, openReaderIn(t, dir, filepath.Join(dir, "encoder"), "tiny"), cases)
	most := 0.0
	for i := range got {
		if d := farthest(got[i], want[i]); !(d <= 1e-3) {
			t.Errorf("case %d (%.40q, %.40q): a logit is off by %g", i, cases[i].A, cases[i].Text, d)
		}
		most = max(most, farthest(got[i], want[i]))
	}
	t.Logf("%d cases, logits off by %.1g at most", len(got), most)
}

// TestEmbeddedReaderParity compares the embedded reader's decisions with those of PyTorch with the
// weights before quantisation.
func TestEmbeddedReaderParity(t *testing.T) {
	dir := filepath.Join("..", "embedded", "reader")
	cases := readParity(t, dir)
	if testing.Short() {
		cases = cases[:min(20, len(cases))]
	}
	r := openReaderIn(t, dir, filepath.Join("..", "embedded"), "gte-small-int8")
	got, want := logitsOf(t, r, cases)
	most := 0.0
	other := map[string]int{}
	for i := range got {
		most = max(most, farthest(got[i], want[i]))
		a, b := r.reading(got[i:i+1]), r.reading(want[i:i+1])
		if a.Answerable > 0.5 != (b.Answerable > 0.5) {
			other["answerable"]++
		}
		if a.Spans[0].Start != b.Spans[0].Start || a.Spans[0].End != b.Spans[0].End {
			other["best span"]++
		}
		if class(got[i]) != class(want[i]) {
			other["class"]++
		}
	}
	t.Logf("%d cases, logits off by %.3f at most; other decisions: %v", len(got), most, other)
	for what, n := range other {
		if 100*n > len(got) {
			t.Errorf("%s: %d of %d decisions differ, more than 1 in 100", what, n, len(got))
		}
	}
}

// class returns the likeliest class.
func class(l logits) int { return slices.Index(l.entailment[:], slices.Max(l.entailment[:])) }
