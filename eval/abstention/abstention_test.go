package abstention

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay/eval/testset"
)

// TestHalves checks that the two splits of a pair are complements of each other.
func TestHalves(t *testing.T) {
	var queries []testset.Query
	for i := range 400 {
		queries = append(queries, testset.Query{ID: fmt.Sprint(i), Relevant: map[string]int{fmt.Sprint("p", i/2): 1}})
	}
	queries = append(queries, testset.Query{ID: "two", Relevant: map[string]int{"p0": 1, "p1": 1, "p2": 1, "p3": 1, "p4": 1, "p5": 1}})
	for _, pair := range []int{0, 2} {
		one, first := Halves(queries, pair)
		other, second := Halves(queries, pair+1)
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
	a, _ := Halves(queries, 0)
	b, _ := Halves(queries, 2)
	if cmp.Equal(a, b) {
		t.Error("splits 0 and 2 are the same")
	}
}

// count1 returns 1 if b is true, else 0. TestHalves shadows one.
func count1(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestAbstentionPoints checks PointAt, AtMost and auc on hand-worked cases.
func TestAbstentionPoints(t *testing.T) {
	all := []Rated{
		{Answerable: true, Right: true, Probability: 0.9},
		{Answerable: true, Right: true, Probability: 0.6},
		{Answerable: true, Right: false, Probability: 0.8}, // answered from a wrong passage
		{Answerable: true, Right: true, Probability: 0.3},
		{Probability: 0.7},
		{Probability: 0.2},
		{Probability: 0.1},
		{Probability: 0.1},
	}
	for _, tt := range []struct{ threshold, wrong, right float64 }{
		{0, 1, 0.75}, {0.25, 0.25, 0.75}, {0.5, 0.25, 0.5}, {0.75, 0, 0.25}, {0.95, 0, 0},
	} {
		want := Point{tt.threshold, tt.wrong, tt.right}
		if diff := cmp.Diff(want, PointAt(all, tt.threshold)); diff != "" {
			t.Errorf("pointAt(%v): %s", tt.threshold, diff)
		}
	}
	if got, want := AtMost(all, 0.25), (Point{0.3, 0.25, 0.75}); got != want {
		t.Errorf("atMost(0.25) = %v, want %v", got, want)
	}
	if got, want := AtMost(all, 0.05), (Point{0.8, 0, 0.25}); got != want {
		t.Errorf("atMost(0.05) = %v, want %v", got, want)
	}
}

func TestAbstentionCounts(t *testing.T) {
	row := Row{Outcomes: []Outcome{
		{Answerable: true, Status: "answered", Cited: []string{"a"}, Right: true, Answers: []string{"A"}, Holds: true},
		{Answerable: true, Status: "incomplete", Cited: []string{"a"}, Right: true},
		{Answerable: true, Status: "answered", Cited: []string{"b"}, Answers: []string{"A"}},
		{Answerable: true, Status: "not_found"},
		{Status: "incomplete", Cited: []string{"b"}}, // a shown claim counts as an answer
		{Status: "not_found"},
	}}
	row.count()
	want := Row{Unanswerable: 2, False: 1, FalseShare: 0.5, Answerable: 4, Answered: 3, Right: 2, RightShare: 0.5, InFull: 1, Known: 2, Holds: 1, HoldShare: 0.5}
	if diff := cmp.Diff(want, row, cmpopts.IgnoreFields(Row{}, "Outcomes")); diff != "" {
		t.Error(diff)
	}
}

// madeSet returns articles of three passages, with a question for each passage.
func madeSet() testset.Set {
	set := testset.Set{Name: "made"}
	for a, place := range []string{"Aldingham", "Borrowdale", "Cartmel", "Dalton", "Eskdale", "Foxfield"} {
		for k, what := range []struct{ asks, says, answer string }{
			{"Who built the mill of %s?", "The mill of %s was built by Jane Whitfield, a corn merchant.", "Jane Whitfield"},
			{"When was the church of %s founded?", "The church of %s was founded in 1187 by monks.", "1187"},
			{"How high is the tower of %s?", "The tower of %s is 43 metres high and stands on a hill.", "43 metres"},
		} {
			id := fmt.Sprintf("%d-%d", a, k)
			set.Passages = append(set.Passages, testset.Passage{ID: id, Title: place, Text: fmt.Sprintf(what.says, place)})
			set.Queries = append(set.Queries, testset.Query{ID: id, Text: fmt.Sprintf(what.asks, place), Relevant: map[string]int{id: 1}, Answers: []string{what.answer}})
		}
	}
	return set
}

// TestAbstentionRuns measures whole runs with lexical search, with some of the answers removed.
func TestAbstentionRuns(t *testing.T) {
	r, err := Measure(t.Context(), madeSet(), Options{Splits: 1})
	if err != nil {
		t.Fatal(err)
	}
	row := r.Rows[0]
	if len(row.Outcomes) != 18 || row.Answerable+row.Unanswerable != 18 || row.Known != row.Answerable || r.Questions != 18 || len(r.Curve) == 0 {
		t.Errorf("%d outcomes, %d and %d questions, %d with an answer in words, %d points", len(row.Outcomes), row.Answerable, row.Unanswerable, row.Known, len(r.Curve))
	}
	if row.Holds == 0 || row.Holds > row.Answered {
		t.Errorf("%d of %d answers hold what is right", row.Holds, row.Answered)
	}
}
