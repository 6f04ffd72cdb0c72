package strategy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

func TestSelf(t *testing.T) {
	const listeners = "It first closes all open listeners."
	relevantAll := retrievalGrader(func(_ string, hits []assay.Hit) (role.RetrievalGrades, error) {
		return role.RetrievalGrades{Grades: slices.Repeat([]role.Relevance{role.Relevant}, len(hits))}, nil
	})
	none := retrievalGrader(func(_ string, hits []assay.Hit) (role.RetrievalGrades, error) {
		return role.RetrievalGrades{Grades: slices.Repeat([]role.Relevance{role.NotRelevant}, len(hits))}, nil
	})
	supports := func(grades ...role.Support) supportGrader {
		n := 0
		return func(in role.DraftInput) (role.SupportGrades, error) {
			g := grades[min(n, len(grades)-1)]
			n++
			return role.SupportGrades{Grades: slices.Repeat([]role.Support{g}, len(in.Draft.Statements))}, nil
		}
	}
	again := func(in role.GradeInput) (role.Grade, error) { // sufficient, with new hits in each search
		return role.Grade{Verdict: assay.Sufficient, Relevant: relevant(in)}, nil
	}
	tests := []struct {
		name     string
		hits     role.RetrievalGrader
		grader   grader
		drafts   generator
		supports supportGrader
		status   assay.Status
		stop     assay.Stop
		searches int    // including those for unsupported statements
		says     string // the exact text
		review   assay.Review
	}{
		{"supported at once", relevantAll, again, drafts(listeners), supports(role.FullySupported), assay.Answered, assay.StopSufficient, 1, listeners + " [1]", assay.Review{RetrievalQuality: "relevant", GenerationQuality: "supported", Iterations: 1, ContextsUsed: []int{1}}},
		{"supported at last", relevantAll, again, drafts("It opens windows.", listeners), supports(role.NotSupported, role.FullySupported), assay.Answered, assay.StopSufficient, 3, listeners + " [1]", assay.Review{RetrievalQuality: "relevant", GenerationQuality: "supported", Iterations: 2, ContextsUsed: []int{1, 2}}},
		{"never supported", relevantAll, again, drafts("It opens windows.", "It paints doors.", "It buys bananas.", "never asked for"), supports(role.NotSupported), assay.Incomplete, assay.StopIterationLimit, 5, "Passages were found, but nothing that was written from them could be verified.", assay.Review{RetrievalQuality: "relevant", GenerationQuality: "not_supported", Iterations: 3, ContextsUsed: []int{1, 2, 3}}},
		{"graded partly, verified", relevantAll, again, drafts(listeners), supports(role.PartlySupported), assay.Incomplete, assay.StopNoProgress, 2, listeners + " [1]", assay.Review{RetrievalQuality: "relevant", GenerationQuality: "partially_supported", Iterations: 2, ContextsUsed: []int{1, 2}}},
		{"the first draft stands", relevantAll, again, drafts(listeners, "It opens windows."), supports(role.PartlySupported), assay.Incomplete, assay.StopIterationLimit, 4, listeners + " [1]", assay.Review{RetrievalQuality: "relevant", GenerationQuality: "partially_supported", Iterations: 3, ContextsUsed: []int{1}}},
		{"no hit is relevant", none, again, drafts(listeners), supports(role.FullySupported), assay.NotFound, assay.StopNoProgress, 1, "Not found in these documents.", assay.Review{RetrievalQuality: "not_relevant", GenerationQuality: "not_supported"}},
	}
	for _, tt := range tests {
		l := newLibrary(shutdown)
		roles := localRoles()
		roles.RetrievalGrader, roles.Generator, roles.SupportGrader = tt.hits, tt.drafts, tt.supports
		roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
			l.documents = append(l.documents, newLibrary(slices.Repeat([]string{"More on Shutdown."}, 9)[:len(l.documents)+1]...).documents[len(l.documents)])
			return tt.grader(in)
		})
		a := ask(t, strategy.Self, env(l, "What does Shutdown do to open listeners?", roles), assay.Budget{})
		if a.Status != tt.status || a.Stop != tt.stop || a.Text != tt.says || len(l.searches) != tt.searches || a.Iterations != tt.searches {
			t.Errorf("%s: %s (%s) after %q: %q\nwant %s (%s) after %d: %q", tt.name, a.Status, a.Stop, l.searches, a.Text, tt.status, tt.stop, tt.searches, tt.says)
		}
		if diff := cmp.Diff(&tt.review, a.Review); diff != "" {
			t.Errorf("%s: review (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestSelfUngraded checks that a draft is incomplete if the run ends before its statements are
// graded, although the verifier supports them.
func TestSelfUngraded(t *testing.T) {
	roles := localRoles()
	roles.Grader = grader(enough)
	roles.Generator = drafts("It first closes all open listeners.")
	roles.SupportGrader = supportGrader(func(role.DraftInput) (role.SupportGrades, error) {
		return role.SupportGrades{}, fmt.Errorf("a call: %w", assay.ErrDeadline)
	})
	a := ask(t, strategy.Self, env(newLibrary(shutdown), "What does Shutdown do to open listeners?", roles), assay.Budget{})
	if a.Status != assay.Incomplete || a.Stop != assay.StopDeadline || len(a.Claims) != 1 || a.Review == nil || a.Review.GenerationQuality != "not_supported" {
		t.Errorf("%s (%s) with %d claims, review %+v; want incomplete, not supported", a.Status, a.Stop, len(a.Claims), a.Review)
	}
}

// TestSelfSifts checks that irrelevant hits are never evidence, and that partly relevant ones are
// only if the grader accepts them.
func TestSelfSifts(t *testing.T) {
	l := newLibrary("alpha is first.", "alpha is second.", "alpha is third.", "alpha is fourth.")
	roles := localRoles()
	roles.RetrievalGrader = retrievalGrader(func(_ string, hits []assay.Hit) (role.RetrievalGrades, error) {
		return role.RetrievalGrades{Grades: []role.Relevance{role.PartlyRelevant, role.NotRelevant, role.Relevant, "superb"}}, nil
	})
	roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
		return role.Grade{Verdict: assay.Sufficient, Relevant: relevant(in)[:2]}, nil
	})
	roles.Generator = generator(verbatim)
	a := ask(t, strategy.Self, env(l, "alpha?", roles), assay.Budget{})
	if want := "alpha is third. [1] alpha is first. [2]"; a.Text != want {
		t.Errorf("%q, want %q", a.Text, want)
	}
}
