package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/provider/embedded"
	"github.com/assay-rag/assay/role/local"
)

// TestHalves holds two splits to being each other's complement.
func TestHalves(t *testing.T) {
	var queries []Query
	for i := range 400 {
		queries = append(queries, Query{ID: fmt.Sprint(i), Relevant: map[string]int{fmt.Sprint("p", i/2): 1}})
	}
	queries = append(queries, Query{ID: "two", Relevant: map[string]int{"p0": 1, "p1": 1, "p2": 1, "p3": 1, "p4": 1, "p5": 1}})
	for _, pair := range []int{0, 2} {
		one, first := halves(queries, pair)
		other, second := halves(queries, pair+1)
		removed := 0
		for i := range 200 {
			id := fmt.Sprint("p", i)
			if one[id] == other[id] {
				t.Errorf("splits %d and %d both have %s: %v", pair, pair+1, id, one[id])
			}
			removed += count1(one[id])
		}
		if removed < 80 || removed > 120 {
			t.Errorf("split %d has %d of 200 passages removed", pair, removed)
		}
		if len(first) != 400 || len(second) != 400 {
			t.Errorf("%d and %d questions are kept, want 400: of one some right passages are gone and some not", len(first), len(second))
		}
	}
	a, _ := halves(queries, 0)
	b, _ := halves(queries, 2)
	if cmp.Equal(a, b) {
		t.Error("splits 0 and 2 are the same")
	}
}

// count1 is one, which the test has another use for.
func count1(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestAbstentionPoints holds thresholds to hand-worked cases.
func TestAbstentionPoints(t *testing.T) {
	all := []rated{
		{answerable: true, right: true, p: 0.9},
		{answerable: true, right: true, p: 0.6},
		{answerable: true, right: false, p: 0.8}, // answered from a wrong passage
		{answerable: true, right: true, p: 0.3},
		{p: 0.7},
		{p: 0.2},
		{p: 0.1},
		{p: 0.1},
	}
	for _, tt := range []struct{ threshold, wrong, right float64 }{
		{0, 1, 0.75}, {0.25, 0.25, 0.75}, {0.5, 0.25, 0.5}, {0.75, 0, 0.25}, {0.95, 0, 0},
	} {
		want := AbstentionPoint{tt.threshold, tt.wrong, tt.right}
		if diff := cmp.Diff(want, pointAt(all, tt.threshold)); diff != "" {
			t.Errorf("pointAt(%v): %s", tt.threshold, diff)
		}
	}
	if got, want := atMost(all, 0.25), (AbstentionPoint{0.3, 0.25, 0.75}); got != want {
		t.Errorf("atMost(0.25) = %v, want %v", got, want)
	}
	if got, want := atMost(all, 0.05), (AbstentionPoint{0.8, 0, 0.25}); got != want {
		t.Errorf("atMost(0.05) = %v, want %v", got, want)
	}
	// Of 16 pairs 0.9 wins 4, 0.6 and 0.3 win 3, 0.8 wins 4.
	if got := auc(all); math.Abs(got-14.0/16) > 1e-12 {
		t.Errorf("auc = %v, want %v", got, 14.0/16)
	}
	if got := auc([]rated{{answerable: true, p: 0.5}, {p: 0.5}}); got != 0.5 {
		t.Errorf("auc of a tie = %v, want 0.5", got)
	}
}

func TestAbstentionCounts(t *testing.T) {
	row := AbstentionRow{Outcomes: []AbstentionOutcome{
		{Answerable: true, Status: "answered", Cited: []string{"a"}, Right: true},
		{Answerable: true, Status: "incomplete", Cited: []string{"a"}, Right: true},
		{Answerable: true, Status: "answered", Cited: []string{"b"}},
		{Answerable: true, Status: "not_found"},
		{Status: "incomplete", Cited: []string{"b"}}, // a claim is shown, so it is an answer
		{Status: "not_found"},
	}}
	row.count()
	want := AbstentionRow{Unanswerable: 2, False: 1, FalseShare: 0.5, Answerable: 4, Answered: 3, Right: 2, RightShare: 0.5, InFull: 1}
	if diff := cmp.Diff(want, row, cmpopts.IgnoreFields(AbstentionRow{}, "Outcomes")); diff != "" {
		t.Error(diff)
	}
}

// TestScaleOf makes probabilities of log odds that are twice too sure.
func TestScaleOf(t *testing.T) {
	var rows []learn.Row
	for i := range 2000 {
		x := float64(i%21-10) / 2 // the truth, as log odds
		p := learn.Sigmoid(x)
		rows = append(rows, learn.Row{Features: []float64{2 * x}, Positive: true, Weight: p}, learn.Row{Features: []float64{2 * x}, Weight: 1 - p})
	}
	if slope, offset := scaleOf(rows); math.Abs(slope-0.5) > 0.02 || math.Abs(offset) > 0.02 {
		t.Errorf("scaleOf = %v, %v, want 0.5 and 0", slope, offset)
	}
}

// testSet reads a shared set.
func testSet(t *testing.T, name string) Set {
	t.Helper()
	root := os.Getenv("ASSAY_TESTDATA")
	if root == "" {
		t.Skip("ASSAY_TESTDATA does not name the folder of the shared data")
	}
	set, err := ReadSet(filepath.Join(root, "data", "retrieval", name))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestAbstention takes answers away from samples of two sets and asks whole runs, by words
// alone and with the encoder in the program. The figures are those that were reached; a
// question more or less is let pass.
func TestAbstention(t *testing.T) {
	if os.Getenv("ASSAY_LONG") == "" {
		t.Skip("it encodes and asks for minutes; ASSAY_LONG=1 has it do so")
	}
	for _, tt := range []struct {
		set     string
		vectors bool
		mostly  int // right answers at least
		wrong   int // false answers at most
	}{
		{"xquad-en", false, 48, 6},
		{"xquad-en", true, 55, 8},
		{"clapnq-answerable", true, 63, 4},
	} {
		set := testSet(t, tt.set)
		opts := AbstentionOptions{Splits: 1, Questions: 120}
		if tt.vectors {
			opts.Encoders = CachedEncoders{embedded.Encoders{}, t.TempDir()}
		}
		r, err := Abstention(t.Context(), set, opts)
		if err != nil {
			t.Fatal(err)
		}
		of := r.Weights[0]
		row := of.Rows[0]
		t.Logf("%s, vectors %v: %d of %d false, %d of %d right; at the threshold for 5%%: %+v; baseline %+v; AUC %.3f",
			tt.set, tt.vectors, row.False, row.Unanswerable, row.Right, row.Answerable, of.AtMostFalse, *r.Baseline, of.AUC)
		if row.Right < tt.mostly-1 || row.False > tt.wrong+1 {
			t.Errorf("%s, vectors %v: %d right and %d false answers, want %d and %d", tt.set, tt.vectors, row.Right, row.False, tt.mostly, tt.wrong)
		}
		for _, o := range row.Outcomes {
			if o.Held == nil || *o.Held < 0.18 && o.Status != "not_found" { // what is needed where several passages suffice
				t.Errorf("%q: held %v, and the status is %s", o.Question, o.Held, o.Status)
			}
		}
	}
}

// TestTrainAbstention learns the same from the same, twice.
func TestTrainAbstention(t *testing.T) {
	if os.Getenv("ASSAY_LONG") == "" {
		t.Skip("it encodes for minutes; ASSAY_LONG=1 has it do so")
	}
	encoder, err := embedded.Open()
	if err != nil {
		t.Fatal(err)
	}
	sets := []Set{testSet(t, "anthropic-docs"), testSet(t, "xquad-en")}
	for i := range sets {
		sets[i].Queries = sample(sets[i].Queries, 40)
	}
	dir := t.TempDir()
	var first AbstentionTraining
	for i := range 2 {
		got, err := TrainAbstention(t.Context(), sets, Parts{Embedder: encoder, CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = got
		} else if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("learned twice: %s", diff)
		}
	}
	if len(first.Sets) != 4 || first.Sets[0].Cross.AUC < 0.6 {
		t.Errorf("learned %+v", first.Sets)
	}
}

// madeRows are the rows of two sets: what has an answer has features that are greater.
func madeRows() AbstentionRows {
	var out AbstentionRows
	for _, vectors := range []bool{false, true} {
		table := AbstentionTable{Features: local.HeldFeatureNames(vectors)}
		for _, name := range []string{"made", "other"} {
			set := heldSet{Name: name}
			for i := range 120 {
				x := make([]float64, len(table.Features))
				for k := range x {
					x[k] = float64((i*7+k*3)%5) / 10
				}
				held := i%2 == 0
				if held {
					x[0]++
				}
				set.Rows = append(set.Rows, heldRow{Article: fmt.Sprint("article ", i/12), Held: held, Found: held, Features: x})
			}
			table.Sets = append(table.Sets, set)
		}
		if vectors {
			out.Vectors = table
		} else {
			out.Words = table
		}
	}
	return out
}

// madeSet has articles of three passages, with a question for each passage.
func madeSet() Set {
	set := Set{Name: "made"}
	for a, place := range []string{"Aldingham", "Borrowdale", "Cartmel", "Dalton", "Eskdale", "Foxfield"} {
		for k, what := range []struct{ asks, says string }{
			{"Who built the mill of %s?", "The mill of %s was built by Jane Whitfield, a corn merchant."},
			{"When was the church of %s founded?", "The church of %s was founded in 1187 by monks."},
			{"How high is the tower of %s?", "The tower of %s is 43 metres high and stands on a hill."},
		} {
			id := fmt.Sprintf("%d-%d", a, k)
			set.Passages = append(set.Passages, Passage{ID: id, Title: place, Text: fmt.Sprintf(what.says, place)})
			set.Queries = append(set.Queries, Query{ID: id, Text: fmt.Sprintf(what.asks, place), Relevant: map[string]int{id: 1}})
		}
	}
	return set
}

// TestAbstentionUnseen asks whole runs by words with weights that have not seen the question's
// article, and with such as have not seen the set.
func TestAbstentionUnseen(t *testing.T) {
	rows := madeRows()
	r, err := Abstention(t.Context(), madeSet(), AbstentionOptions{Splits: 1, Rows: &rows})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, of := range r.Weights {
		names = append(names, of.Weights)
		row := of.Rows[0]
		if got := len(row.Outcomes); got != 18 || row.Answerable+row.Unanswerable != 18 || len(of.Curve) == 0 {
			t.Errorf("weights %s: %d outcomes, %d and %d questions, %d points", of.Weights, got, row.Answerable, row.Unanswerable, len(of.Curve))
		}
		for _, o := range row.Outcomes {
			if o.Held == nil {
				t.Errorf("weights %s: %q was not judged", of.Weights, o.Question)
			}
		}
	}
	if diff := cmp.Diff([]string{WeightsProgram, WeightsCrossed, WeightsWithout}, names); diff != "" {
		t.Error(diff)
	}
}

// TestWeighingsOf holds weights to not having seen what is asked with them.
func TestWeighingsOf(t *testing.T) {
	rows, set := madeRows(), madeSet()
	weighings := weighingsOf(set, &rows)
	if len(weighings) != 3 || len(weighings[1].folds) != articleFolds || len(weighings[2].folds) != 1 {
		t.Fatalf("weighings %+v", weighings)
	}
	for fold := range articleFolds {
		for _, table := range []AbstentionTable{rows.withoutFold("made", fold).Words, rows.withoutFold("made", fold).Vectors} {
			for _, of := range table.Sets {
				for _, row := range of.Rows {
					if of.Name == "made" && foldOf(row.Article, articleFolds) == fold {
						t.Fatalf("%s is learned from in its own fold, %d", row.Article, fold)
					}
				}
			}
		}
	}
	for _, q := range set.Queries {
		article := articlesOf(set)[leastOf(q.Relevant)]
		if got, want := weighings[1].fold(q), foldOf(article, articleFolds); got != want {
			t.Errorf("%q is asked in fold %d, its article is in %d", q.Text, got, want)
		}
	}
	if got := weighings[2].folds[0].Sets; !cmp.Equal(got, []string{"other"}) {
		t.Errorf("without the set it is learned from %v", got)
	}
	if got := weighingsOf(Set{Name: "foreign"}, &rows); len(got) != 2 {
		t.Errorf("a set that was not learned from has %d weighings, want 2", len(got))
	}
}

// TestParseAbstentionRows reads what was written, and refuses what is of other features.
func TestParseAbstentionRows(t *testing.T) {
	rows := madeRows()
	data, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseAbstentionRows(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "{}", "[1]", strings.Replace(string(data), `"relevance"`, `"irrelevance"`, 1), strings.Replace(string(data), `"x":[`, `"x":[1,`, 1)} {
		if _, err := ParseAbstentionRows(strings.NewReader(bad)); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("ParseAbstentionRows of %d bytes: %v, want %v", len(bad), err, assay.ErrInvalid)
		}
	}
}
