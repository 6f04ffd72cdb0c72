package server

import (
	"context"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/review"
)

// reviewRoutes are about answers that wait for a person.
func reviewRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/reviews", "reviews.list", "Reviews", "List the answers that wait for a review", reviews),
		route("GET", "/api/v1/reviews/{run}", "reviews.show", "Review", "Show a draft with its evidence",
			func(ctx context.Context, s *engine.Session, in reviewIn) (engine.ReviewView, error) {
				return s.Review(ctx, in.Run)
			}),
		route("POST", "/api/v1/reviews/{run}/claim", "reviews.claim", "Claim", "Claim a review, or renew the claim", claim),
		route("POST", "/api/v1/reviews/{run}/release", "reviews.release", "Release", "Give a claim back",
			func(ctx context.Context, s *engine.Session, in reviewIn) (engine.ReviewSummary, error) {
				return s.Release(ctx, in.Run)
			}),
		route("POST", "/api/v1/reviews/{run}/approve", "reviews.approve", "Approve", "Approve a draft",
			func(ctx context.Context, s *engine.Session, in reviewIn) (engine.ReviewSummary, error) {
				return s.Approve(ctx, in.Run)
			}),
		route("POST", "/api/v1/reviews/{run}/edit", "reviews.edit", "Edit", "Replace the text of a draft, which is verified again", edit),
		route("POST", "/api/v1/reviews/{run}/check", "reviews.check", "CheckEdit", "Verify an edited text as an edit does, and store nothing of it",
			func(ctx context.Context, s *engine.Session, in editIn) (engine.EditCheck, error) {
				return s.CheckEdit(ctx, in.Run, in.Body.Text)
			}),
		route("POST", "/api/v1/reviews/{run}/reject", "reviews.reject", "Reject", "Reject an answer", reject),
	}
}

type reviewIn struct {
	Run string `path:"run"`
}

type reviewsIn struct {
	Decided bool   `query:"decided"` // also those that are decided
	Policy  string `query:"policy"`  // only those of this policy
}

type reviewList struct {
	Reviews []engine.ReviewSummary `json:"reviews"`
}

func reviews(ctx context.Context, s *engine.Session, in reviewsIn) (reviewList, error) {
	all, err := s.Reviews(ctx, engine.ReviewFilter{Decided: in.Decided, Policy: in.Policy})
	return reviewList{all}, err
}

type claimIn struct {
	Run   string `path:"run"`
	Lease int    `query:"lease_seconds"` // 0: the default
}

func claim(ctx context.Context, s *engine.Session, in claimIn) (engine.ReviewSummary, error) {
	lease, err := seconds("lease_seconds", in.Lease)
	if err != nil {
		return engine.ReviewSummary{}, err
	}
	return s.Claim(ctx, in.Run, lease)
}

type editIn struct {
	Run  string     `path:"run"`
	Body editedText `body:"application/json"`
}

// An editedText replaces the text of a draft.
type editedText struct {
	Text string `json:"text"`
}

func edit(ctx context.Context, s *engine.Session, in editIn) (engine.ReviewSummary, error) {
	return s.Edit(ctx, in.Run, in.Body.Text)
}

type rejectIn struct {
	Run  string    `path:"run"`
	Body rejection `body:"application/json"`
}

// A rejection says why an answer is rejected.
type rejection struct {
	Reason string `json:"reason"` // which the asker sees
}

func reject(ctx context.Context, s *engine.Session, in rejectIn) (engine.ReviewSummary, error) {
	return s.Reject(ctx, in.Run, in.Body.Reason)
}

// policyRoutes are about the policies that make answers wait for a review.
func policyRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/policies", "policies.list", "Policies", "List review policies",
			func(ctx context.Context, s *engine.Session, _ none) (policyList, error) {
				all, err := s.Policies(ctx)
				return policyList{all}, err
			}),
		route("PUT", "/api/v1/policies/{name}", "policies.set", "SetPolicy", "Set a review policy", setPolicy),
		route("DELETE", "/api/v1/policies/{name}", "policies.remove", "RemovePolicy", "Remove a review policy",
			func(ctx context.Context, s *engine.Session, in removeIn) (none, error) {
				return none{}, s.RemovePolicy(ctx, in.Name, in.Reason)
			}),
		route("POST", "/api/v1/policies/test", "policies.test", "TestPolicies", "Ask a question and say which policies its answer would wait for", testPolicies),
	}
}

type policyList struct {
	Policies []review.Policy `json:"policies"`
}

type setPolicyIn struct {
	Name   string        `path:"name"`
	Reason string        `query:"reason"` // for the audit log
	Body   review.Policy `body:"application/json"`
}

// setPolicy sets the policy of the body under the name in the path.
func setPolicy(ctx context.Context, s *engine.Session, in setPolicyIn) (none, error) {
	in.Body.Name = in.Name
	return none{}, s.SetPolicy(ctx, in.Body, in.Reason)
}

type testPoliciesIn struct {
	Body engine.Request `body:"application/json"`
}

// A policyTest is an answer with the policies that it would wait for.
type policyTest struct {
	Answer  assay.Answer   `json:"answer"`
	Matches []review.Match `json:"matches"`
}

func testPolicies(ctx context.Context, s *engine.Session, in testPoliciesIn) (policyTest, error) {
	answer, matches, err := s.TestPolicies(ctx, in.Body)
	return policyTest{answer, matches}, err
}

// maxSeconds is the longest time that a request may name: ten years.
const maxSeconds = 10 * 366 * 24 * 60 * 60

// seconds returns a time of a request.
func seconds(name string, n int) (time.Duration, error) {
	if n < 0 || n > maxSeconds {
		return 0, invalid("%s is %d, want 0 to %d", name, n, maxSeconds)
	}
	return time.Duration(n) * time.Second, nil
}
