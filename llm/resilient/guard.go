// Package resilient protects calls to a provider's endpoint against transient failures, in one
// place for all providers: it limits the time of each attempt, retries temporary errors, pauses an
// endpoint that keeps failing, and keeps calls within the endpoint's rate limits. Its main type is
// [Guard].
//
// A Guard also enforces the contracts of package llm: for any behaviour of a wrapped model, the
// guarded one returns a Response or an error that keeps them.
//
// It does not interpret replies and caches nothing.
package resilient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"

	"github.com/assay-rag/assay/llm"
)

// Config configures the calls to one endpoint. The zero value selects the defaults.
type Config struct {
	// Timeout limits one attempt of a model's call, ReadTimeout one of any other call. 0: 3 minutes
	// and 1 minute. An earlier deadline of the caller takes precedence.
	Timeout     time.Duration
	ReadTimeout time.Duration

	// Attempts is the largest number of attempts of a read. For a model's call the request sets it.
	// 0: 3.
	Attempts int

	// Backoff is the longest wait before the second attempt. It doubles with each further attempt,
	// up to MaxBackoff. Waits are drawn uniformly between zero and the current maximum. 0: 1 s and
	// 20 s.
	Backoff    time.Duration
	MaxBackoff time.Duration

	// MaxWait is the longest wait accepted from a server. If a server asks for more, its error is
	// returned at once. 0: 1 minute.
	MaxWait time.Duration

	// Concurrency is the largest number of concurrent calls; further calls wait. 0: 8.
	Concurrency int

	// Requests and Tokens are the endpoint's limits per minute. A call that would have to wait
	// beyond its context's deadline fails with llm.RateLimited. The tokens of a call are an
	// estimate: its input plus its largest possible output. 0: unlimited.
	Requests int
	Tokens   int

	// After OpenAfter consecutive failures, calls fail at once with llm.Open for OpenFor. Then one
	// call is let through, and its outcome decides. 0: 5 and 20 s.
	OpenAfter int
	OpenFor   time.Duration

	// HedgeAfter is how long a read runs before it is made a second time concurrently. The first
	// success counts. Calls of models are never hedged. 0: reads are not hedged.
	HedgeAfter time.Duration

	// MaxText is the largest size, in bytes, of a reply's text, and of the arguments of its calls.
	// 0: 8 MiB.
	MaxText int

	// Rand returns a random number in [0, 1). Nil: math/rand/v2.
	Rand func() float64
}

// withDefaults returns c with defaults for its zero fields.
func (c Config) withDefaults() Config {
	c.Timeout, c.ReadTimeout = cmp.Or(c.Timeout, 3*time.Minute), cmp.Or(c.ReadTimeout, time.Minute)
	c.Attempts = cmp.Or(c.Attempts, 3)
	c.Backoff, c.MaxBackoff = cmp.Or(c.Backoff, time.Second), cmp.Or(c.MaxBackoff, 20*time.Second)
	c.MaxWait = cmp.Or(c.MaxWait, time.Minute)
	c.Concurrency = cmp.Or(c.Concurrency, 8)
	c.OpenAfter, c.OpenFor = cmp.Or(c.OpenAfter, 5), cmp.Or(c.OpenFor, 20*time.Second)
	c.MaxText = cmp.Or(c.MaxText, 8<<20)
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

// A Guard makes the calls to one endpoint, for all of its models. It is safe for concurrent use.
type Guard struct {
	config   Config
	breaker  circuitbreaker.CircuitBreaker[any]
	room     bulkhead.Bulkhead[any]
	requests ratelimiter.RateLimiter[any] // nil: unlimited
	tokens   ratelimiter.RateLimiter[any] // nil: unlimited
}

// New returns a guard of an endpoint. It panics if a number in c is negative.
func New(c Config) *Guard {
	for _, n := range []int64{int64(c.Timeout), int64(c.ReadTimeout), int64(c.Attempts), int64(c.Backoff), int64(c.MaxBackoff), int64(c.MaxWait),
		int64(c.Concurrency), int64(c.Requests), int64(c.Tokens), int64(c.OpenAfter), int64(c.OpenFor), int64(c.HedgeAfter), int64(c.MaxText)} {
		if n < 0 {
			panic(fmt.Sprintf("resilient: a negative number in %+v", c))
		}
	}
	c = c.withDefaults()
	return &Guard{
		config:   c,
		breaker:  circuitbreaker.NewBuilder[any]().WithFailureThreshold(uint(c.OpenAfter)).WithSuccessThreshold(1).WithDelay(c.OpenFor).Build(),
		room:     bulkhead.New[any](uint(c.Concurrency)),
		requests: perMinute(c.Requests),
		tokens:   perMinute(c.Tokens),
	}
}

func perMinute(n int) ratelimiter.RateLimiter[any] {
	if n == 0 {
		return nil
	}
	return ratelimiter.NewBursty[any](uint(n), time.Minute)
}

// A refusal is the guard's own error: no call was made.
type refusal struct{ err *llm.Error }

func (r *refusal) Error() string { return r.err.Error() }

func (r *refusal) Unwrap() error { return r.err }

// enter waits until a call may be made. If it succeeds, the caller must call leave. The error is a
// *refusal or that of ctx.
func (g *Guard) enter(ctx context.Context, tokens int) error {
	if err := g.open(); err != nil { // before taking the slot of the probing call
		return err
	}
	if err := g.pace(ctx, tokens); err != nil {
		return err
	}
	if err := g.room.AcquirePermit(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		g.room.ReleasePermit()
		return err
	}
	if !g.breaker.TryAcquirePermit() {
		g.room.ReleasePermit()
		return &refusal{g.openError()}
	}
	return nil
}

// open returns an error if the circuit is open.
func (g *Guard) open() error {
	if g.breaker.IsOpen() && g.breaker.RemainingDelay() > 0 {
		return &refusal{g.openError()}
	}
	return nil
}

func (g *Guard) openError() *llm.Error {
	return &llm.Error{Kind: llm.Open, Message: "it failed too often and is left alone for a while", RetryAfter: g.breaker.RemainingDelay()}
}

// pace waits until the endpoint's rate limits allow a call.
func (g *Guard) pace(ctx context.Context, tokens int) error {
	most := time.Duration(-1) // no limit
	if deadline, ok := ctx.Deadline(); ok {
		most = max(0, time.Until(deadline))
	}
	var wait time.Duration
	for _, rate := range []struct {
		limiter ratelimiter.RateLimiter[any]
		permits int
		unit    string
		limit   int
	}{{g.requests, 1, "requests", g.config.Requests}, {g.tokens, max(1, tokens), "tokens", g.config.Tokens}} {
		if rate.limiter == nil {
			continue
		}
		w := rate.limiter.TryReservePermits(uint(rate.permits), most)
		if w < 0 {
			return &refusal{&llm.Error{Kind: llm.RateLimited, Message: fmt.Sprintf("the configured limit of %d %s a minute has no room before the call's time is over", rate.limit, rate.unit)}}
		}
		wait = max(wait, w)
	}
	return sleep(ctx, wait)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave ends a call that enter began and records its outcome: err, and whether the caller cancelled
// it.
func (g *Guard) leave(err error, given bool) {
	defer g.room.ReleasePermit()
	failed, _ := errors.AsType[*llm.Error](err)
	unheard := given || err != nil && failed == nil // or no call was made: the budget is exhausted or a text is too long
	switch {
	case unheard && g.breaker.IsHalfOpen():
		g.breaker.Open() // the probing call had no result
	case unheard:
	case failed != nil && failing(failed.Kind):
		g.breaker.RecordFailure()
	default:
		g.breaker.RecordSuccess() // an endpoint that refuses a request is available
	}
}

// failing reports whether an error of kind k indicates that the endpoint is down.
func failing(k llm.ErrorKind) bool {
	switch k {
	case llm.Overloaded, llm.ServerError, llm.Unreachable, llm.TimedOut, llm.BrokeOff:
		return true
	}
	return false
}

// backoff returns how long to wait after the given number of attempts. asked is the wait requested
// by the server.
func (g *Guard) backoff(attempts int, asked time.Duration) time.Duration {
	most := g.config.Backoff
	for i := 1; i < attempts && most < g.config.MaxBackoff; i++ {
		most *= 2
	}
	most = min(most, g.config.MaxBackoff)
	if asked > 0 {
		most = min(most, g.config.Backoff) // the server set the time; only spread the calls
	}
	return asked + time.Duration(g.config.Rand()*float64(most))
}
