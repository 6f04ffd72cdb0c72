package strategies_test

import (
	"testing"

	"github.com/assay-rag/assay/eval/strategies"
	"github.com/assay-rag/assay/eval/testset"
)

// TestCost checks that Cost counts the savings, and that a small generator does not change the
// evidence.
func TestCost(t *testing.T) {
	set := orchard()
	set.Queries = append(set.Queries, testset.Query{ID: "q4", Text: "Please tell me when the quince tree was planted?", Relevant: map[string]int{"quince": 1}})
	set.Queries = append(set.Queries, testset.Query{ID: "q5", Text: "When was a quince tree planted?", Relevant: map[string]int{"quince": 1}})
	o := opened(t, set)
	defer o.Close()
	r, err := strategies.Cost(t.Context(), o, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Ways) != 3 || r.Questions != len(set.Queries) {
		t.Fatalf("%+v", r)
	}
	plain, alone, small := r.Ways[0], r.Ways[1], r.Ways[2]
	if plain.Tokens == 0 || plain.Tokens != plain.Large || plain.Kept <= 0 || plain.Kept >= 1 {
		t.Errorf("as it is: %+v", plain)
	}
	if alone.Tokens > plain.Tokens || alone.Handed > plain.Handed {
		t.Errorf("one strong hit alone costs more: %+v", alone)
	}
	if small.Large >= plain.Large || small.Recall != plain.Recall {
		t.Errorf("with a small generator: %+v", small)
	}
	if few, err := strategies.Cost(t.Context(), o, 1); err != nil || few.Questions != 1 {
		t.Errorf("%+v, %v", few, err)
	}
}
