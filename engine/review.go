package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/store"
)

// A ReviewMode says whether the answer to a question may wait for a person.
type ReviewMode string

// The modes. The empty mode is ReviewByPolicy, except that evaluations by a principal that may skip
// reviews have ReviewNever.
const (
	ReviewByPolicy ReviewMode = "policy" // as the tenant's policies decide
	ReviewAlways   ReviewMode = "always" // every answer waits
	ReviewNever    ReviewMode = "never"  // only mandatory policies count; for administrators and the local principal
)

// policyKind is the kind of review policies in the registry.
const policyKind = "policy"

// mayReview reports whether a principal may act as a reviewer.
func mayReview(p assay.Principal) bool {
	return isPrivileged(p) || p.User != "" && slices.Contains(p.Roles, string(identity.Reviewer))
}

// isPrivileged reports whether a principal is an administrator or the command line's own.
func isPrivileged(p assay.Principal) bool {
	local := assay.Local()
	isLocal := p.User == local.User && p.Key == "" && len(p.Roles) == 0 && len(p.Groups) == 0
	return isLocal || p.User != "" && slices.Contains(p.Roles, string(identity.Admin))
}

// checkReviewMode validates the review mode of a request.
func checkReviewMode(principal assay.Principal, req *Request) error {
	switch req.Review {
	case "":
		req.Review = ReviewByPolicy
		if req.Measuring && isPrivileged(principal) {
			req.Review = ReviewNever
		}
	case ReviewByPolicy, ReviewAlways:
	case ReviewNever:
		if !isPrivileged(principal) {
			return fmt.Errorf("only administrators may ask for an answer without a review: %w", assay.ErrForbidden)
		}
	default:
		return fmt.Errorf("review %.20q: want policy, always or never: %w", req.Review, assay.ErrInvalid)
	}
	return nil
}

// policies returns the tenant's review policies, and a match for each that cannot be read.
func (e *Engine) policies(ctx context.Context) (all []review.Policy, broken []review.Match, err error) {
	items, err := e.tenant.Registry().Items(ctx, policyKind)
	if err != nil {
		return nil, nil, fmt.Errorf("read the review policies: %w", err)
	}
	for _, item := range items {
		p, err := review.ParsePolicy(item.Value)
		if err == nil && p.Name != item.Name {
			err = fmt.Errorf("its name is %q", p.Name)
		}
		if err != nil {
			broken = append(broken, review.Match{Policy: item.Name, Why: "the policy cannot be read: " + err.Error(), Failed: true})
			continue
		}
		all = append(all, p)
	}
	return all, broken, nil
}

// reviewPossible reports whether a policy may make the answer to a request wait. Nothing of the answer
// may then be shown before it is released. If that cannot be decided, the answer is true.
func (e *Engine) reviewPossible(ctx context.Context, r assay.Run, req Request) bool {
	policies, broken, err := e.policies(ctx)
	if err != nil || len(broken) > 0 || req.Review == ReviewAlways {
		return true
	}
	return slices.ContainsFunc(policies, func(p review.Policy) bool {
		return (p.Mandatory || req.Review != ReviewNever) && p.Possible(r.ID, r.Principal, req.Collections)
	})
}

// A suspension is the error with which gate says that an answer waits for a person.
type suspension struct {
	review store.Review
	pins   []store.Pin
	act    store.Act
}

func (*suspension) Error() string { return "the answer waits for a review" }

// Unwrap returns assay.ErrSuspended.
func (*suspension) Unwrap() error { return assay.ErrSuspended }

// gate decides whether an answer waits for a person. If it does, the result is the answer that is shown
// until then, assay.RunSuspended, and a *suspension as the error.
func (e *Engine) gate(ctx context.Context, r assay.Run, req storedRequest, answer assay.Answer) (assay.Answer, assay.RunState, error) {
	matches, policies, err := e.matches(ctx, r, req, answer)
	if err != nil {
		return assay.Answer{}, "", err
	}
	if len(matches) == 0 {
		return answer, assay.RunDone, nil
	}
	records, err := e.runs.Records(ctx, r.ID)
	if err != nil {
		return assay.Answer{}, "", err
	}
	held := heldDraft{Format: review.Format, Answer: answer, Evidence: reviewEvidence(answer, records)}
	draft, err := json.Marshal(held)
	if err != nil {
		return assay.Answer{}, "", fmt.Errorf("store the answer for review: %w", err)
	}
	c := review.NewCase(r, matches, policies, hashOf(answer.Text), e.config.Now().UTC())
	state, err := json.Marshal(c)
	if err != nil {
		return assay.Answer{}, "", fmt.Errorf("store the review: %w", err)
	}
	act, err := reviewAct("review.needed", assay.Principal{}, reviewNeeded{
		Policies: policyNames(matches), Deadline: timeOrNil(c.Deadline), Approvals: c.Needed, Draft: hashOf(string(draft)),
	})
	if err != nil {
		return assay.Answer{}, "", err
	}
	return pendingAnswer(answer, c), assay.RunSuspended, &suspension{
		review: store.Review{Run: r.ID, Case: state, Draft: draft}, pins: pinsOf(held.Evidence), act: act,
	}
}

// matches returns why an answer waits; empty: it does not.
func (e *Engine) matches(ctx context.Context, r assay.Run, req storedRequest, answer assay.Answer) ([]review.Match, []review.Policy, error) {
	policies, matches, err := e.policies(ctx)
	if err != nil {
		return nil, nil, err
	}
	if req.Review == ReviewAlways {
		matches = append(matches, review.Match{Why: "the asker asked for a review"})
	}
	facts := e.reviewFacts(ctx, r, answer)
	for _, p := range policies {
		if req.Review == ReviewNever && !p.Mandatory {
			continue
		}
		if m, ok := p.Match(ctx, facts); ok {
			matches = append(matches, m)
		}
	}
	return matches, policies, nil
}

// reviewFacts returns what policies judge an answer by.
func (e *Engine) reviewFacts(ctx context.Context, r assay.Run, answer assay.Answer) review.Facts {
	f := review.Facts{Run: r.ID, Asker: r.Principal, Answer: answer}
	seen := map[store.Pin]bool{}
	for _, c := range answer.Citations {
		version := store.Pin{Document: c.Document, Version: c.Version}
		if c.Origin != assay.FromDocuments || seen[version] {
			continue
		}
		seen[version] = true
		d, err := e.content.Version(ctx, c.Document, c.Version)
		if err != nil {
			f.Unread = "a cited document cannot be read"
			continue
		}
		f.Documents = append(f.Documents, review.Document{Collection: d.Collection, Metadata: d.Metadata})
	}
	if reader, err := e.reader(); err == nil && reader != nil {
		f.Topics = review.Topics(reader, r.Question, answer.Text)
	}
	return f
}

// TestPolicies asks a question and returns the policies that match the answer. Only mandatory policies
// make it wait. It is for administrators and the local principal.
func (e *Engine) TestPolicies(ctx context.Context, principal assay.Principal, req Request) (assay.Answer, []review.Match, error) {
	if !isPrivileged(principal) {
		return assay.Answer{}, nil, fmt.Errorf("test review policies: %w", assay.ErrForbidden)
	}
	req.Review, req.Measuring = ReviewNever, true
	shown, err := e.Answer(ctx, principal, req)
	if err != nil {
		return shown, nil, err
	}
	r, err := e.run(ctx, principal, shown.Run)
	if err != nil {
		return shown, nil, err
	}
	answer := shown
	if r.State == assay.RunSuspended {
		held, _, err := e.loadReview(ctx, r.ID)
		if err != nil {
			return shown, nil, err
		}
		answer = held.draft.Answer
	}
	matches, _, err := e.matches(ctx, r, storedRequest{Request: Request{Review: ReviewByPolicy}}, answer)
	return shown, matches, err
}

// Policies returns the tenant's review policies by name. The error is assay.ErrDamaged if one cannot be
// read; every answer waits then.
func (e *Engine) Policies(ctx context.Context) ([]review.Policy, error) {
	all, broken, err := e.policies(ctx)
	for _, m := range broken {
		err = errors.Join(err, fmt.Errorf("policy %q: %s: %w", m.Policy, m.Why, assay.ErrDamaged))
	}
	return all, err
}

// SetPolicy creates or replaces a review policy. It applies to every answer that is finished later, in
// every process.
func (e *Engine) SetPolicy(ctx context.Context, principal assay.Principal, p review.Policy, reason string) error {
	if !isPrivileged(principal) {
		return fmt.Errorf("set a review policy: %w", assay.ErrForbidden)
	}
	if err := p.Check(); err != nil {
		return err
	}
	value, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("review policy %q: %w", p.Name, err)
	}
	act := store.Act{Kind: "policy.set", Subject: p.Name, Actor: principal, Reason: reason}
	return e.tenant.Registry().Set(ctx, store.RegistryItem{Kind: policyKind, Name: p.Name, Value: value}, act)
}

// RemovePolicy removes a review policy, or returns assay.ErrNotFound. Answers that wait go on waiting.
func (e *Engine) RemovePolicy(ctx context.Context, principal assay.Principal, name, reason string) error {
	if !isPrivileged(principal) {
		return fmt.Errorf("remove a review policy: %w", assay.ErrForbidden)
	}
	act := store.Act{Kind: "policy.removed", Subject: name, Actor: principal, Reason: reason}
	return e.tenant.Registry().Delete(ctx, policyKind, name, act)
}
