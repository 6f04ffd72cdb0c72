package resilient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
)

// Spent is the cost of a call.
type Spent struct {
	Usage    assay.Usage   // of all attempts, including the successful one
	Attempts []llm.Attempt // the failed ones
}

// A call is repeated until it succeeds.
type call[T any] struct {
	guard   *Guard
	name    string // for errors
	most    int    // largest number of attempts, at least 1
	tokens  int    // of one attempt, estimated
	timeout time.Duration
	hedge   time.Duration // 0: one attempt at a time

	try func(context.Context) (T, error) // makes an attempt
	use func(v T, err error) assay.Usage // returns the usage of an attempt with this outcome

	running sync.WaitGroup

	mu       sync.Mutex
	over     bool // no further attempt may begin
	live     int  // attempts in progress
	spent    Spent
	wait     time.Duration // before the next attempt
	deadline time.Time     // zero if there is none
}

// errTimeout is the cause of an attempt's context that exceeded its time limit.
var errTimeout = errors.New("the attempt took too long")

// do makes the call. When it returns, no attempt is in progress.
func (c *call[T]) do(ctx context.Context) (T, Spent, error) {
	c.deadline, _ = ctx.Deadline()
	retry := retrypolicy.NewBuilder[T]().
		WithMaxAttempts(max(1, c.most)).
		ReturnLastFailure().
		AbortIf(func(_ T, err error) bool { return err != nil && !c.again(err) }).
		WithDelayFunc(func(failsafe.ExecutionAttempt[T]) time.Duration { return c.wait }).
		Build()
	policies := []failsafe.Policy[T]{retry}
	if c.hedge > 0 {
		policies = append(policies, hedgepolicy.NewBuilderWithDelay[T](c.hedge).CancelIf(c.decides).Build())
	}
	v, err := failsafe.With(policies...).WithContext(ctx).GetWithExecution(func(e failsafe.Execution[T]) (T, error) {
		return c.attempt(e.Context())
	})
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.running.Wait()
	if err != nil {
		var none T
		return none, c.spent, c.outcome(ctx, err)
	}
	return v, c.spent, nil
}

// decides reports whether the result of a hedged attempt is the result of the call. It is if the
// attempt succeeded, if its error is permanent, or if no other attempt is in progress. A budget
// error of one attempt does not decide, since it says nothing about the other.
func (c *call[T]) decides(_ T, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	failed, ok := errors.AsType[*llm.Error](err)
	passing := ok && failed.Kind.Temporary() || errors.Is(err, assay.ErrBudget)
	return err == nil || !passing || c.live == 0
}

// again reports whether to make another attempt after a failed one, and sets how long to wait
// before it.
func (c *call[T]) again(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok || !failed.Kind.Temporary() || failed.RetryAfter > c.guard.config.MaxWait {
		return false
	}
	if _, refused := errors.AsType[*refusal](err); refused {
		return false
	}
	c.wait = c.guard.backoff(len(c.spent.Attempts), failed.RetryAfter)
	return c.deadline.IsZero() || time.Until(c.deadline) > c.wait
}

// outcome returns the error of a call whose last error is err.
func (c *call[T]) outcome(ctx context.Context, err error) error {
	failed, ok := errors.AsType[*llm.Error](err)
	before := c.spent.Attempts
	if _, refused := errors.AsType[*refusal](err); ok && !refused && len(before) > 0 {
		before = before[:len(before)-1] // the last one is err itself
	}
	switch {
	case ctx.Err() != nil && c.spent.Usage == assay.Usage{}:
		return fmt.Errorf("%s: %w", c.name, ctx.Err())
	case ctx.Err() != nil:
		return &endedError{ctx.Err(), &llm.Error{Model: c.name, Kind: llm.TimedOut, Message: "given up by the caller", Usage: c.spent.Usage, Attempts: c.spent.Attempts}}
	case !ok:
		return err
	}
	out := *failed
	out.Model, out.Usage, out.Attempts = c.name, c.spent.Usage, slices.Clone(before)
	return &out
}

// An endedError reports that a context ended during a call, with the usage until then.
type endedError struct {
	ended error
	spent *llm.Error
}

func (e *endedError) Error() string { return fmt.Sprintf("%s: %v", e.spent.Model, e.ended) }

func (e *endedError) Unwrap() []error { return []error{e.ended, e.spent} }

// attempt makes one attempt.
func (c *call[T]) attempt(ctx context.Context) (T, error) {
	var none T
	c.mu.Lock()
	if c.over { // a hedge that was about to begin
		c.mu.Unlock()
		return none, context.Canceled
	}
	c.running.Add(1)
	c.live++
	c.mu.Unlock()
	defer c.ended()
	if err := c.guard.enter(ctx, c.tokens); err != nil {
		return none, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	v, err := c.safely(limited)
	given := err != nil && ctx.Err() != nil
	if err != nil && !given {
		err = c.failure(limited, err)
	}
	c.guard.leave(err, given)
	c.record(c.use(v, err), err, given)
	switch {
	case given:
		return none, ctx.Err()
	case err != nil:
		return none, err
	}
	return v, nil
}

func (c *call[T]) ended() {
	c.mu.Lock()
	c.live--
	c.mu.Unlock()
	c.running.Done()
}

// safely calls try and converts a panic into an error of the model.
func (c *call[T]) safely(ctx context.Context) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &llm.Error{Kind: llm.BadReply, Message: fmt.Sprintf("panic: %v", p)}
		}
	}()
	return c.try(ctx)
}

// failure converts an attempt's error to one that keeps the contract. It returns an error other
// than *llm.Error unchanged.
func (c *call[T]) failure(ctx context.Context, err error) error {
	if context.Cause(ctx) == errTimeout {
		var used assay.Usage
		if failed, _ := errors.AsType[*llm.Error](err); failed != nil {
			used = failed.Usage
		}
		return &llm.Error{Model: c.name, Kind: llm.TimedOut, Message: fmt.Sprintf("no whole reply within %v", c.timeout), Usage: used}
	}
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return err
	}
	return c.held(failed)
}

// held returns a copy of an error that keeps the contract.
func (c *call[T]) held(failed *llm.Error) *llm.Error {
	if failed == nil {
		return &llm.Error{Model: c.name, Kind: llm.BadReply, Message: "an error that says nothing"}
	}
	out := *failed
	out.Model, out.Message, out.RetryAfter, out.Attempts = c.name, quoted(failed.Message), max(0, failed.RetryAfter), nil
	if !known(out.Kind) {
		out.Kind = llm.BadReply
	}
	return &out
}

// maxQuoted is the number of bytes of foreign text that are considered for a quotation.
const maxQuoted = 8 << 10

// quoted returns foreign text in a form that is safe for an error.
func quoted(text string) string { return secret.Redact(text[:min(len(text), maxQuoted)]) }

func known(k llm.ErrorKind) bool {
	switch k {
	case llm.BadKey, llm.NoModel, llm.BadRequest, llm.TooLong, llm.NoQuota, llm.Filtered, llm.TooLarge, llm.BadReply:
		return true
	}
	return k.Temporary()
}

// record adds an attempt to the usage of the call.
func (c *call[T]) record(u assay.Usage, err error, given bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent.Usage = c.spent.Usage.Add(u)
	if failed, ok := errors.AsType[*llm.Error](err); ok && !given {
		c.spent.Attempts = append(c.spent.Attempts, llm.Attempt{Kind: failed.Kind, Message: message(failed)})
	}
}

// message returns the text of an error without its model and kind.
func message(e *llm.Error) string {
	switch {
	case e.Status == 0:
		return e.Message
	case e.Message == "":
		return fmt.Sprintf("HTTP %d", e.Status)
	}
	return fmt.Sprintf("HTTP %d: %s", e.Status, e.Message)
}
