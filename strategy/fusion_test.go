package strategy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// TestFusionOrder checks that the order is by fused rank and the relevance is that to the question.
func TestFusionOrder(t *testing.T) {
	l := newLibrary("gravity alone.", "gravity and Newton.", "Newton in full.")
	l.relevance = map[string]float64{"doc1": 0.9, "doc2": 0.8, "doc3": 0.6}
	w := &watched{library: l}
	roles := localRoles()
	roles.Rewriter = rewrites(map[role.Technique][]string{role.Expand: {"Newton", "Newton in full", "Newton himself", "one more", "and another"}})
	var got []string
	roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
		for _, h := range in.Hits {
			got = append(got, fmt.Sprintf("%s %.1f", h.URI, h.Scores.Relevance))
		}
		return enough(in)
	})
	roles.Generator = generator(verbatim)
	e := env(l, "gravity?", roles)
	e.Retriever = w
	a := ask(t, strategy.Fusion, e, assay.Budget{})
	if diff := cmp.Diff([]string{"doc1 0.9", "doc2 0.8", "doc3 0.6"}, got); diff != "" {
		t.Errorf("graded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{nil, {"Newton"}, {"Newton himself"}, {"Newton in full"}}, w.wordings()); diff != "" {
		t.Errorf("searched beside the question (-want +got):\n%s", diff)
	}
	if a.Status != assay.Answered || a.Iterations != 4 || len(a.Searched) != 4 || a.Stop != assay.StopSufficient {
		t.Errorf("%s (%s) after %d searches: %s", a.Status, a.Stop, a.Iterations, a.Justification)
	}
	if !slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.Contains(n, "more than asked for") }) {
		t.Errorf("notes %q do not say that rewritings were left out", a.Notes)
	}
}

// TestFusionKeepsRelevance checks that a hit is not accepted merely because many rewrites rank it
// first.
func TestFusionKeepsRelevance(t *testing.T) {
	l := newLibrary("Newton in full closes listeners of Newton.", shutdown)
	l.relevance = map[string]float64{"doc1": 0.1, "doc2": 0.9}
	roles := localRoles()
	roles.Rewriter = rewrites(map[role.Technique][]string{role.Expand: {"Newton", "full Newton", "Newton wholly"}})
	e := env(l, "What does Shutdown do to open listeners?", roles)
	e.Retriever = &watched{library: l}
	a := ask(t, strategy.Fusion, e, assay.Budget{})
	if a.Status != assay.Answered || strings.Contains(a.Text, "Newton") {
		t.Errorf("%s: %q (%s), want what is relevant alone", a.Status, a.Text, a.Justification)
	}
}

// TestFusionBranches walks through the branches of Fusion.
func TestFusionBranches(t *testing.T) {
	tests := []struct {
		name     string
		rewriter rewriter
		queries  int // 0: the default
		grader   grader
		searches int
		status   assay.Status
		stop     assay.Stop
	}{
		{"three rewritings", rewrites(map[role.Technique][]string{role.Expand: {"a", "b", "c", "d"}}), 0, enough, 4, assay.Answered, assay.StopSufficient},
		{"as many as are set", rewrites(map[role.Technique][]string{role.Expand: {"a", "b", "c", "d"}}), 2, enough, 3, assay.Answered, assay.StopSufficient},
		{"no rewriting", rewrites(nil), 0, enough, 1, assay.Answered, assay.StopSufficient},
		{"the question again", rewrites(map[role.Technique][]string{role.Expand: {strings.ToUpper(about), " "}}), 0, enough, 1, assay.Answered, assay.StopSufficient},
		{"the rewriter fails", func(role.RewriteInput) (role.Rewriting, error) { return role.Rewriting{}, errors.New("asleep") }, 0, enough, 1, assay.Answered, assay.StopSufficient},
		{"the budget has room for searches alone", func(role.RewriteInput) (role.Rewriting, error) { return role.Rewriting{}, assay.ErrBudget }, 0, enough, 1, assay.Answered, assay.StopSufficient},
		{"not enough", rewrites(map[role.Technique][]string{role.Expand: {"a"}}), 0, partly, 2, assay.Incomplete, assay.StopIterationLimit},
		{"nothing relevant", rewrites(map[role.Technique][]string{role.Expand: {"a"}}), 0, insufficient, 2, assay.NotFound, assay.StopIterationLimit},
	}
	for _, tt := range tests {
		l := growing(0)
		roles := localRoles()
		roles.Rewriter, roles.Grader, roles.Generator = tt.rewriter, tt.grader, generator(verbatim)
		e := env(l, about, roles)
		e.Settings.Fusion.Queries = tt.queries
		a := ask(t, strategy.Fusion, e, assay.Budget{})
		if len(l.searches) != tt.searches || a.Status != tt.status || a.Stop != tt.stop || a.Strategy != "fusion" {
			t.Errorf("%s: %s, %s (%s) after searches %q; want %s (%s) after %d", tt.name, a.Strategy, a.Status, a.Stop, l.searches, tt.status, tt.stop, tt.searches)
		}
	}
}
