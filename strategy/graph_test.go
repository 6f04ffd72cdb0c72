package strategy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/strategy"
)

// TestGraphHops checks that a hop is made for each of the best names that the walk reaches.
func TestGraphHops(t *testing.T) {
	l := newLibrary("Springfield was founded by Jebediah.", "Jebediah wrote poems on Springfield.", "Springfield has a mill.", "Springfield has a lake.", "Springfield has a zoo.")
	for i, title := range []string{"Springfield", "Jebediah Obadiah", "The mill", "The lake", "The zoo"} {
		l.documents[i].Title = title
	}
	w := &watched{library: l}
	roles := localRoles()
	roles.Grader, roles.Generator = grader(enough), generator(verbatim)
	e := env(l, "Who founded Springfield?", roles)
	e.Retriever = walked{w, map[string]float64{"doc1": 0.4, "doc2": 0.3, "doc3": 0.1, "doc4": 0.05, "doc5": 0.01}}
	a := ask(t, strategy.Graph, e, assay.Budget{})
	var got []string
	for _, q := range w.queries {
		if q.Walk != assay.WalkFar || q.Text != e.Question {
			t.Errorf("searched %q with the walk %q", q.Text, q.Walk)
		}
		got = append(got, strings.Join(q.Rewrites, "|")+" from "+fmt.Sprint(len(q.From)))
	}
	slices.Sort(got)
	want := []string{" from 0", "Who founded Springfield? Jebediah Obadiah from 1", "Who founded Springfield? The lake from 1", "Who founded Springfield? The mill from 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("searches (-want +got):\n%s", diff)
	}
	if a.Status != assay.Answered || a.Iterations != 4 || a.Strategy != "graph" {
		t.Errorf("%s by %q after %d searches: %s", a.Status, a.Strategy, a.Iterations, a.Justification)
	}
}

// TestGraphBranches walks through the branches of Graph: without clues there is no second hop, and
// the grade of all hits together decides.
func TestGraphBranches(t *testing.T) {
	clued := map[string]float64{"doc1": 0.4, "doc2": 0.3}
	tests := []struct {
		name     string
		walk     map[string]float64
		grader   grader
		searches int
		status   assay.Status
		stop     assay.Stop
	}{
		{"a clue", clued, enough, 2, assay.Answered, assay.StopSufficient},
		{"no clue", nil, enough, 1, assay.Answered, assay.StopSufficient},
		{"a clue, and not enough", clued, partly, 2, assay.Incomplete, assay.StopIterationLimit},
		{"nothing relevant", clued, insufficient, 2, assay.NotFound, assay.StopIterationLimit},
	}
	for _, tt := range tests {
		l := newLibrary("Springfield was founded by Jebediah.", "Jebediah wrote poems on Springfield.")
		l.documents[0].Title, l.documents[1].Title = "Springfield", "Jebediah Obadiah"
		w := &watched{library: l}
		roles := localRoles()
		roles.Grader, roles.Generator = tt.grader, generator(verbatim)
		e := env(l, "Who founded Springfield?", roles)
		e.Retriever = walked{w, tt.walk}
		a := ask(t, strategy.Graph, e, assay.Budget{})
		if len(w.queries) != tt.searches || a.Status != tt.status || a.Stop != tt.stop || a.Strategy != "graph" {
			t.Errorf("%s: %s, %s (%s) after %d searches; want %s (%s) after %d", tt.name, a.Strategy, a.Status, a.Stop, len(w.queries), tt.status, tt.stop, tt.searches)
		}
	}
}
