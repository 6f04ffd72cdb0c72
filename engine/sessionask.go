package engine

import (
	"context"
	"iter"
	"time"

	"github.com/assay-rag/assay"
)

// Ask is Engine.Ask.
func (s *Session) Ask(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return each(ctx, s, "Ask", func(c *sessionCall) (iter.Seq2[Event, error], error) {
		if err := c.checkRequest(ctx, &req); err != nil {
			return nil, err
		}
		return c.engine.Ask(ctx, c.principal, req), nil
	})
}

// Answer is Engine.Answer.
func (s *Session) Answer(ctx context.Context, req Request) (assay.Answer, error) {
	return call(ctx, s, "Answer", func(c *sessionCall) (assay.Answer, error) {
		if err := c.checkRequest(ctx, &req); err != nil {
			return assay.Answer{}, err
		}
		return c.engine.Answer(ctx, c.principal, req)
	})
}

// Resume is Engine.Resume.
func (s *Session) Resume(ctx context.Context, id string) iter.Seq2[Event, error] {
	return each(ctx, s, "Resume", func(c *sessionCall) (iter.Seq2[Event, error], error) {
		return c.engine.Resume(ctx, c.principal, id), nil
	})
}

// Replay is Engine.Replay.
func (s *Session) Replay(ctx context.Context, id string) (assay.Answer, error) {
	return call(ctx, s, "Replay", func(c *sessionCall) (assay.Answer, error) { return c.engine.Replay(ctx, c.principal, id) })
}

// Fork is Engine.Fork.
func (s *Session) Fork(ctx context.Context, id, step string, change func(*Request)) iter.Seq2[Event, error] {
	return each(ctx, s, "Fork", func(c *sessionCall) (iter.Seq2[Event, error], error) {
		return c.engine.Fork(ctx, c.principal, id, step, c.forking(change)), nil
	})
}

// forking returns the change of a fork's request within the rights of the grant.
func (c *sessionCall) forking(change func(*Request)) func(*Request) {
	return func(req *Request) {
		measuring := req.Measuring
		if change != nil {
			change(req)
		}
		req.ID = ""
		if isPrivileged(c.acting) {
			return
		}
		req.Measuring = measuring
		if req.Review != ReviewAlways {
			req.Review = ReviewByPolicy
		}
	}
}

// Diff is Engine.Diff.
func (s *Session) Diff(ctx context.Context, a, b string) (RunDiff, error) {
	return call(ctx, s, "Diff", func(c *sessionCall) (RunDiff, error) { return c.engine.Diff(ctx, c.principal, a, b) })
}

// Runs is Engine.Runs.
func (s *Session) Runs(ctx context.Context, limit int) ([]RunSummary, error) {
	return call(ctx, s, "Runs", func(c *sessionCall) ([]RunSummary, error) { return c.engine.Runs(ctx, c.principal, limit) })
}

// Run is Engine.Run.
func (s *Session) Run(ctx context.Context, id string) (run assay.Run, steps []Step, err error) {
	_, err = call(ctx, s, "Run", func(c *sessionCall) (_ struct{}, err error) {
		run, steps, err = c.engine.Run(ctx, c.principal, id)
		return struct{}{}, err
	})
	return run, steps, err
}

// DeleteRun is Engine.DeleteRun.
func (s *Session) DeleteRun(ctx context.Context, id, reason string) error {
	_, err := call(ctx, s, "DeleteRun", func(c *sessionCall) (_ struct{}, err error) {
		if err := checkReason(reason); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, c.engine.DeleteRun(ctx, c.principal, id, reason)
	})
	return err
}

// PruneRuns is Engine.PruneRuns. It does not count versions, which may be of documents that the
// principal may not see.
func (s *Session) PruneRuns(ctx context.Context, before time.Time, reason string, dry bool) (PrunedRuns, error) {
	return call(ctx, s, "PruneRuns", func(c *sessionCall) (PrunedRuns, error) {
		if err := checkReason(reason); err != nil {
			return PrunedRuns{}, err
		}
		pruned, err := c.engine.PruneRuns(ctx, c.principal, before, reason, dry)
		pruned.Versions, pruned.Writing = 0, false
		return pruned, err
	})
}

// Observations is Engine.Observations.
func (s *Session) Observations(ctx context.Context, since time.Time) ([]Observation, error) {
	return call(ctx, s, "Observations", func(c *sessionCall) ([]Observation, error) {
		return c.engine.Observations(ctx, c.principal, since, nil)
	})
}
