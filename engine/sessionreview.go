package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/review"
)

// checkReview returns assay.ErrNotFound for a review that belongs to documents in which the scope
// was not granted.
func (c *sessionCall) checkReview(ctx context.Context, id string) error {
	if c.collections == nil {
		return nil
	}
	o, r, err := c.engine.reviewer(ctx, c.acting, id)
	if err != nil {
		return err
	}
	records, err := c.engine.runs.Records(ctx, r.ID)
	if err != nil {
		return err
	}
	hidden, err := c.engine.hiddenFrom(ctx, c.acting, r, records, o.draft)
	if err == nil && hidden > 0 {
		err = fmt.Errorf("review of run %q: %w", id, assay.ErrNotFound)
	}
	return err
}

// Reviews is Engine.Reviews. A right in some collections shows the reviews of answers that were made
// from their documents alone.
func (s *Session) Reviews(ctx context.Context, filter ReviewFilter) ([]ReviewSummary, error) {
	return call(ctx, s, "Reviews", func(c *sessionCall) ([]ReviewSummary, error) {
		all, err := c.engine.Reviews(ctx, c.acting, filter)
		if err != nil {
			return nil, err
		}
		shown := []ReviewSummary{}
		for _, r := range all {
			if c.checkReview(ctx, r.Run) == nil {
				shown = append(shown, r)
			}
		}
		return shown, ctx.Err()
	})
}

// Review is Engine.Review.
func (s *Session) Review(ctx context.Context, id string) (ReviewView, error) {
	return reviewCall(ctx, s, "Review", id, func(c *sessionCall) (ReviewView, error) {
		return c.engine.Review(ctx, c.acting, id)
	})
}

// Claim is Engine.Claim.
func (s *Session) Claim(ctx context.Context, id string, lease time.Duration) (ReviewSummary, error) {
	return reviewCall(ctx, s, "Claim", id, func(c *sessionCall) (ReviewSummary, error) {
		return c.engine.Claim(ctx, c.acting, id, lease)
	})
}

// Release is Engine.Release.
func (s *Session) Release(ctx context.Context, id string) (ReviewSummary, error) {
	return reviewCall(ctx, s, "Release", id, func(c *sessionCall) (ReviewSummary, error) {
		return c.engine.Release(ctx, c.acting, id)
	})
}

// Approve is Engine.Approve.
func (s *Session) Approve(ctx context.Context, id string) (ReviewSummary, error) {
	return reviewCall(ctx, s, "Approve", id, func(c *sessionCall) (ReviewSummary, error) {
		return c.engine.Approve(ctx, c.acting, id)
	})
}

// Edit is Engine.Edit.
func (s *Session) Edit(ctx context.Context, id, text string) (ReviewSummary, error) {
	return reviewCall(ctx, s, "Edit", id, func(c *sessionCall) (ReviewSummary, error) {
		return c.engine.Edit(ctx, c.acting, id, text)
	})
}

// CheckEdit is Engine.CheckEdit.
func (s *Session) CheckEdit(ctx context.Context, id, text string) (EditCheck, error) {
	return reviewCall(ctx, s, "CheckEdit", id, func(c *sessionCall) (EditCheck, error) {
		return c.engine.CheckEdit(ctx, c.acting, id, text)
	})
}

// Reject is Engine.Reject.
func (s *Session) Reject(ctx context.Context, id, reason string) (ReviewSummary, error) {
	return reviewCall(ctx, s, "Reject", id, func(c *sessionCall) (ReviewSummary, error) {
		return c.engine.Reject(ctx, c.acting, id, reason)
	})
}

// reviewCall is call for a method about one review.
func reviewCall[T any](ctx context.Context, s *Session, method, id string, fn func(*sessionCall) (T, error)) (T, error) {
	return call(ctx, s, method, func(c *sessionCall) (T, error) {
		if err := c.checkReview(ctx, id); err != nil {
			var none T
			return none, err
		}
		return fn(c)
	})
}

// Await is Engine.Await, for the principal who asked. The wait may be long, so the grant and the
// tenant are checked again after it.
func (s *Session) Await(ctx context.Context, id string) (assay.Answer, error) {
	return call(ctx, s, "Await", func(c *sessionCall) (assay.Answer, error) {
		answer, err := c.engine.Await(ctx, c.principal, id)
		if err == nil {
			err = s.checkGrant(ctx)
		}
		if err == nil {
			_, err = s.host.tenant(ctx, s.grant.Tenant)
		}
		if err != nil {
			return assay.Answer{}, err
		}
		return answer, nil
	})
}

// Policies is Engine.Policies.
func (s *Session) Policies(ctx context.Context) ([]review.Policy, error) {
	return call(ctx, s, "Policies", func(c *sessionCall) ([]review.Policy, error) { return c.engine.Policies(ctx) })
}

// SetPolicy is Engine.SetPolicy.
func (s *Session) SetPolicy(ctx context.Context, p review.Policy, reason string) error {
	return act(ctx, s, "SetPolicy", p.Name, reason, func(c *sessionCall) error { return c.engine.SetPolicy(ctx, c.acting, p, reason) })
}

// RemovePolicy is Engine.RemovePolicy.
func (s *Session) RemovePolicy(ctx context.Context, name, reason string) error {
	return act(ctx, s, "RemovePolicy", name, reason, func(c *sessionCall) error { return c.engine.RemovePolicy(ctx, c.acting, name, reason) })
}

// TestPolicies is Engine.TestPolicies.
func (s *Session) TestPolicies(ctx context.Context, req Request) (answer assay.Answer, matches []review.Match, err error) {
	err = do(ctx, s, "TestPolicies", func(c *sessionCall) error {
		if err := c.checkRequest(ctx, &req); err != nil {
			return err
		}
		answer, matches, err = c.engine.TestPolicies(ctx, c.acting, req)
		return err
	})
	return answer, matches, err
}
