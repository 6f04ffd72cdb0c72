package retrieval

import (
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/chunk"
)

func TestRecallWithin(t *testing.T) {
	d := &wholeDocument{id: "d", at: map[string][2]int{"a": {0, 100}, "b": {100, 200}}}
	owner := map[string]*wholeDocument{"a": d, "b": d}
	hit := func(uri string, start, end, tokens int) assay.Hit {
		return assay.Hit{URI: uri, Chunk: assay.Chunk{Start: start, End: end, Tokens: tokens}}
	}
	for _, tt := range []struct {
		what     string
		hits     []assay.Hit
		relevant []string
		budget   int
		want     float64
	}{
		{"nothing found", nil, []string{"a"}, 100, 0},
		{"all of it", []assay.Hit{hit("d", 0, 200, 50)}, []string{"a"}, 50, 1},
		{"half of the budget's hit", []assay.Hit{hit("d", 0, 100, 50)}, []string{"a"}, 25, .5},
		{"overlapping hits count once", []assay.Hit{hit("d", 0, 60, 10), hit("d", 40, 80, 10)}, []string{"a"}, 100, .8},
		{"another document", []assay.Hit{hit("e", 0, 100, 10)}, []string{"a"}, 100, 0},
		{"a hit beyond the budget", []assay.Hit{hit("e", 0, 100, 100), hit("d", 0, 100, 10)}, []string{"a"}, 100, 0},
		{"two passages", []assay.Hit{hit("d", 0, 150, 10)}, []string{"a", "b"}, 100, .75},
	} {
		relevant := map[string]int{}
		for _, id := range tt.relevant {
			relevant[id] = 1
		}
		if got := recallWithin(tt.hits, tt.budget, relevant, owner); got != tt.want {
			t.Errorf("%s: recall %v, want %v", tt.what, got, tt.want)
		}
	}
}

// TestChunkers checks that passages become sections of their documents, and that every chunker is
// measured on all of them.
func TestChunkers(t *testing.T) {
	set := testset.Set{Name: "s", Passages: []testset.Passage{
		{ID: "manual#1", Title: "Pumps", Text: "The pump moves water. It runs at night."},
		{ID: "manual#2", Title: "Valves", Text: "The valve closes the pipe."},
		{ID: "other", Title: "Birds", Text: "Storks fly south in autumn."},
	}, Queries: []testset.Query{
		{ID: "q1", Text: "When does the pump run?", Relevant: map[string]int{"manual#1": 1}},
		{ID: "q2", Text: "Where do storks fly?", Relevant: map[string]int{"other": 1}},
	}}
	var options []chunk.Options
	for _, c := range chunk.Chunkers() {
		if c.Name != "semantic" { // which needs an encoder
			options = append(options, chunk.Options{Chunker: c.Name})
		}
	}
	report, err := Chunkers(t.Context(), set, Parts{}, options)
	if err != nil {
		t.Fatal(err)
	}
	if report.Documents != 2 || len(report.Rows) != len(options) {
		t.Fatalf("%d documents and %d rows, want 2 and %d", report.Documents, len(report.Rows), len(options))
	}
	for i, row := range report.Rows {
		if got := row.Recall[0].Mean; got != 1 {
			t.Errorf("%s: recall %v, want 1: the documents are smaller than the budget", row.Chunker, got)
		}
		if (row.Recall[0].Against == nil) != (i == 0) {
			t.Errorf("%s is compared: %v", row.Chunker, row.Recall[0].Against != nil)
		}
	}
}
