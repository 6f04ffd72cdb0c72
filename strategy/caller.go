package strategy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// maxAttempts is the maximum number of attempts of a call, if the budget allows them.
const maxAttempts = 4

// A caller makes the calls of one role's job. The calls are steps of the job's group.
type caller struct {
	scope  run.Scope
	stream func(path string, d llm.Delta) // may be nil
	share  float64                        // of the run's remaining time, for the whole job
	calls  int
	until  time.Time // end of the share; zero before the first call
}

// CallerIn returns a caller that makes its calls in a scope, for work that is not a strategy's.
func CallerIn(s run.Scope) role.Caller { return &caller{scope: s, share: 1} }

// Shares of the run's remaining time for the jobs. A provider that exceeds its share has failed,
// and its fallback still has time to answer. Most of the time is for writing the answer.
const (
	searchShare = 0.25 // planning and grading
	answerShare = 0.75 // writing and verifying
)

// errSlow is the cause of a context that ended with its job's share.
var errSlow = errors.New("the job's share of the run's time is over")

// Within implements role.Caller.
func (c *caller) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return c.within(ctx)
}

// within returns a context that ends with the job's share of the time.
func (c *caller) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok && c.until.IsZero() {
		c.until = time.Now().Add(time.Duration(c.share * float64(time.Until(end))))
	}
	if c.until.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, c.until, errSlow)
}

// slow turns the error of a call that exceeded its job's share into a provider error, since the run
// itself can go on.
func slow(limited context.Context, model string, err error) error {
	if err == nil || context.Cause(limited) != errSlow {
		return err
	}
	out := &llm.Error{Model: model, Kind: llm.TimedOut, Usage: spent(assay.Usage{}, err),
		Message: "no reply in the time that the run has for this; a longer one (--timeout) leaves more"}
	if failed, ok := errors.AsType[*llm.Error](err); ok && failed != nil {
		out.Attempts = failed.Attempts
	}
	return out
}

// next returns the scope of the job's next call.
func (c *caller) next() run.Scope {
	s := c.scope.Sub("call", c.calls)
	c.calls++
	return s
}

// Call implements role.Caller. The step reserves the maximum cost of one attempt. It makes further
// attempts as far as the tokens and the money left allow. All attempts together count as one call,
// and each is charged its tokens and its cost.
func (c *caller) Call(ctx context.Context, call role.Call) (llm.Response, error) {
	s := c.next()
	most, err := upperBound(call)
	if err != nil {
		return llm.Response{}, err
	}
	call.Request.Attempts = min(maxAttempts, max(1, s.Affords(attempt(most))))
	step := run.Step{Name: "model", Kind: assay.StepModel, Model: call.Model.Model(), Reserve: most}
	further := s.Further(step.Name)
	return run.Do(ctx, s, step, call, func(ctx context.Context, call role.Call) (llm.Response, assay.Usage, error) {
		var stream func(llm.Delta)
		if c.stream != nil {
			stream = func(d llm.Delta) { c.stream(s.Path()+"/"+step.Name, d) }
		}
		limited, cancel := c.within(ctx)
		defer cancel()
		call.Request.Attempts = granted(ctx, further, call.Request.Attempts, attempt(most))
		r, err := call.Model.Generate(limited, call.Request, stream)
		err = slow(limited, call.Model.Model(), err)
		return r, onceCounted(spent(r.Usage, err)), err
	})
}

// granted returns how many of the attempts of a call the limits that runs share allow. The first is
// reserved already.
func granted(ctx context.Context, further func(context.Context, assay.Usage) error, attempts int, each assay.Usage) int {
	for further != nil && attempts > 1 {
		more := assay.Usage{}
		for range attempts - 1 {
			more = more.Add(each)
		}
		if further(ctx, more) == nil {
			break
		}
		attempts--
	}
	return attempts
}

// attempt returns the cost of a further attempt of a call that may cost up to most: it is not
// another call.
func attempt(most assay.Usage) assay.Usage {
	most.Calls = 0
	return most
}

// onceCounted returns the usage of all attempts of a call, which count as one call. A call that was
// refused before its first attempt counts as none.
func onceCounted(u assay.Usage) assay.Usage {
	u.Calls = min(u.Calls, 1)
	return u
}

// spent returns the usage of a call. If the call failed, the usage comes from its error.
func spent(u assay.Usage, err error) assay.Usage {
	if err == nil {
		return u
	}
	if failed, ok := errors.AsType[*llm.Error](err); ok && failed != nil {
		return failed.Usage
	}
	return assay.Usage{Calls: 1}
}

// Check implements role.Caller.
func (c *caller) Check(ctx context.Context, v ground.Service, claim role.Claim) (ground.Judgement, error) {
	s := c.next()
	step := run.Step{Name: "check", Kind: assay.StepModel, Model: v.Model(), Reserve: mostOf(v, claim)}
	return run.Do(ctx, s, step, claim, func(ctx context.Context, claim role.Claim) (ground.Judgement, assay.Usage, error) {
		limited, cancel := c.within(ctx)
		defer cancel()
		j, err := role.AskService(limited, v, claim)
		usage := j.Usage
		if err != nil {
			usage = spent(usage, err)
		}
		usage.Calls = 1 // however many attempts were made
		return j, usage, slow(limited, v.Model(), err)
	})
}

// mostOf returns the maximum cost of one judgement of a service, which is its input.
func mostOf(v ground.Service, claim role.Claim) assay.Usage {
	text := llm.EstimateTokens(claim.Alone()) + llm.EstimateTokens(claim.Question)
	for _, p := range claim.Cited {
		text += llm.EstimateTokens(p.Quote) + llm.EstimateTokens(p.Context)
	}
	u := assay.Usage{Calls: 1, InputTokens: text}
	d, ok := v.(llm.Described)
	if !ok || !d.Facts().Priced {
		return u
	}
	u.CostMicros = max(1, d.Facts().Cost(assay.Usage{InputTokens: text}))
	return u
}

// upperBound returns the maximum cost of one attempt of a call. The number of tokens is a cautious
// estimate.
func upperBound(call role.Call) (assay.Usage, error) {
	u := assay.Usage{Calls: 1, InputTokens: call.Request.InputTokens(), OutputTokens: call.Request.MaxTokens}
	if call.Request.MaxTokens < 1 {
		return u, fmt.Errorf("a call of the %s sets no limit to its reply: %w", call.Role, assay.ErrInvalid)
	}
	if facts := llm.FactsOf(call.Model); facts.Priced {
		u.CostMicros = facts.Cost(u)
	}
	return u, nil
}
