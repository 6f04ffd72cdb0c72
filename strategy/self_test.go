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

// TestSelfGradesDraftsFromBelowTheFloor checks that a draft from hits that are all below the relevance
// floor, but that the grader finds to hold the answer once no other search follows, is an answer only
// if the support grader supports it.
func TestSelfGradesDraftsFromBelowTheFloor(t *testing.T) {
	for _, tt := range []struct {
		support role.Support
		hit     role.Relevance
		status  assay.Status
		review  assay.Review
	}{
		{role.FullySupported, role.Relevant, assay.Answered, assay.Review{RetrievalQuality: "relevant", GenerationQuality: "supported", Iterations: 1, ContextsUsed: []int{1}}},
		{role.NotSupported, role.Relevant, assay.Incomplete, assay.Review{RetrievalQuality: "relevant", GenerationQuality: "not_supported", Iterations: 1, ContextsUsed: []int{1}}},
		{role.FullySupported, role.NotRelevant, assay.NotFound, assay.Review{RetrievalQuality: "not_relevant", GenerationQuality: "not_supported"}},
	} {
		l := newLibrary(shutdown)
		l.relevance["doc1"] = 0.4
		held := 0.9
		roles := localRoles()
		roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
			return role.Grade{Verdict: assay.Sufficient, Relevant: relevant(in), Answerability: &held}, nil
		})
		roles.RetrievalGrader = retrievalGrader(func(string, []assay.Hit) (role.RetrievalGrades, error) {
			return role.RetrievalGrades{Grades: []role.Relevance{tt.hit}}, nil
		})
		roles.Generator = drafts("It first closes all open listeners.")
		roles.SupportGrader = supportGrader(func(role.DraftInput) (role.SupportGrades, error) {
			return role.SupportGrades{Grades: []role.Support{tt.support}}, nil
		})
		a := ask(t, strategy.Self, env(l, "What does Shutdown do to open listeners?", roles), assay.Budget{})
		if a.Status != tt.status || (len(a.Claims) > 0) != (tt.status != assay.NotFound) {
			t.Errorf("%s, %s: %s with %d claims, want %s", tt.support, tt.hit, a.Status, len(a.Claims), tt.status)
		}
		if diff := cmp.Diff(&tt.review, a.Review); diff != "" {
			t.Errorf("%s, %s: review (-want +got):\n%s", tt.support, tt.hit, diff)
		}
	}
}

// TestSelfHoldsBackUnsiftedDrafts checks that an answer from hits that the run had no room to grade
// one by one is incomplete, although the verifier supports it.
func TestSelfHoldsBackUnsiftedDrafts(t *testing.T) {
	roles := localRoles()
	roles.Grader, roles.Generator = grader(enough), drafts("It first closes all open listeners.")
	roles.RetrievalGrader = retrievalGrader(func(string, []assay.Hit) (role.RetrievalGrades, error) {
		return role.RetrievalGrades{}, fmt.Errorf("a call: %w", assay.ErrBudget)
	})
	a := ask(t, strategy.Self, env(newLibrary(shutdown), "What does Shutdown do to open listeners?", roles), assay.Budget{})
	if a.Status != assay.Incomplete || len(a.Claims) != 1 || a.Review.GenerationQuality != "not_supported" {
		t.Errorf("%s with %d claims, review %+v; want incomplete, not supported", a.Status, len(a.Claims), a.Review)
	}
}

// TestSelfKeepsToTheFloor checks that a hit below the relevance floor which only the retrieval grader
// calls relevant is no evidence.
func TestSelfKeepsToTheFloor(t *testing.T) {
	l := newLibrary("alpha is first.", "alpha is second.")
	l.relevance["doc2"] = 0.2
	roles := localRoles()
	roles.RetrievalGrader = retrievalGrader(func(_ string, hits []assay.Hit) (role.RetrievalGrades, error) {
		return role.RetrievalGrades{Grades: []role.Relevance{role.NotRelevant, role.Relevant}[:len(hits)]}, nil
	})
	roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
		return role.Grade{Verdict: assay.Insufficient, Missing: []string{in.Question}}, nil
	})
	roles.Generator = generator(verbatim)
	if a := ask(t, strategy.Self, env(l, "alpha?", roles), assay.Budget{}); a.Status != assay.NotFound {
		t.Errorf("%s: %q, want not found", a.Status, a.Text)
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
