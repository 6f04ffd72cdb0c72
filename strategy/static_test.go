package strategy_test

import (
	"slices"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// insufficient is a grader that calls no hit relevant.
func insufficient(role.GradeInput) (role.Grade, error) {
	return role.Grade{Verdict: assay.Insufficient, Missing: []string{"all of it"}, Query: "another query"}, nil
}

// TestStatic walks through the branches of Static: one search and one grade, whatever comes of them.
func TestStatic(t *testing.T) {
	tests := []struct {
		name      string
		documents []string
		relevance float64 // of the first document; 0: the default
		grader    grader
		drafts    role.Generator
		status    assay.Status
		stop      assay.Stop
		text      string
		missing   []string
	}{
		{"sufficient", []string{shutdown}, 0, enough, drafts("It first closes all open listeners."), assay.Answered, assay.StopSufficient, "It first closes all open listeners. [1]", []string{}},
		{"partly", []string{shutdown}, 0, partly, drafts("It first closes all open listeners."), assay.Incomplete, assay.StopIterationLimit, "It first closes all open listeners. [1]", []string{"more"}},
		{"insufficient", []string{shutdown}, 0, insufficient, drafts("never asked for"), assay.NotFound, assay.StopIterationLimit, "Not found in these documents.", []string{"all of it"}},
		{"graded sufficient, below the floor", []string{shutdown}, 0.2, enough, drafts("never asked for"), assay.NotFound, assay.StopIterationLimit, "Not found in these documents.", []string{"What does Shutdown do to open listeners?"}},
		{"no hits", []string{"Bananas."}, 0, insufficient, drafts("never asked for"), assay.NotFound, assay.StopIterationLimit, "Not found in these documents.", []string{"all of it"}},
		{"nothing that was written is supported", []string{shutdown}, 0, enough, drafts("It paints the doors of Paris."), assay.Incomplete, assay.StopSufficient, "Passages were found, but nothing that was written from them could be verified.", []string{"What does Shutdown do to open listeners?"}},
	}
	for _, tt := range tests {
		l := newLibrary(tt.documents...)
		if tt.relevance > 0 {
			l.relevance["doc1"] = tt.relevance
		}
		roles := localRoles()
		roles.Grader, roles.Generator = tt.grader, tt.drafts
		a := ask(t, strategy.Static, env(l, "What does Shutdown do to open listeners?", roles), assay.Budget{})
		if a.Status != tt.status || a.Stop != tt.stop || a.Text != tt.text || a.Strategy != "static" {
			t.Errorf("%s: %s (%s) %q; want %s (%s) %q", tt.name, a.Status, a.Stop, a.Text, tt.status, tt.stop, tt.text)
		}
		if !slices.Equal(gapTexts(a.Missing), tt.missing) || len(l.searches) != 1 || a.Iterations != 1 {
			t.Errorf("%s: missing %q after searches %q, want %q after one", tt.name, gapTexts(a.Missing), l.searches, tt.missing)
		}
	}
}
