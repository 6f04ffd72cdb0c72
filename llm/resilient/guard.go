// Package resilient makes calls to a provider's endpoint hold out against what goes
// wrong on the way, in one place for all providers: each attempt has a time limit,
// what is temporary is tried again, an endpoint that keeps failing is left alone for
// a while, and calls keep to the endpoint's limits. Its main type is [Guard].
//
// It also holds what it wraps to the contracts of package llm: whatever a model does,
// a guarded one returns a Response or an error that keeps them.
//
// It decides nothing about what a reply says, and caches nothing.
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

// Config says how calls to one endpoint are made. Its zero value has the defaults.
type Config struct {
	// Timeout is how long one attempt of a model may take, ReadTimeout one of
	// anything else. 0: 3 minutes and 1 minute. The caller's own deadline ends it
	// sooner.
	Timeout     time.Duration
	ReadTimeout time.Duration

	// Attempts is how often a read is made until it succeeds; of a model's call the
	// request says that. 0: 3.
	Attempts int

	// Backoff is the most that is waited before the second attempt; it doubles with
	// each, up to MaxBackoff. The wait is drawn evenly from nothing to that. 0: 1 s
	// and 20 s.
	Backoff    time.Duration
	MaxBackoff time.Duration

	// MaxWait is the longest wait asked for by a server that is waited. A server that
	// asks for more has its error returned at once. 0: 1 minute.
	MaxWait time.Duration

	// Concurrency is how many calls are made at once; the others wait for their turn.
	// 0: 8.
	Concurrency int

	// Requests and Tokens are how many an endpoint takes in a minute; a call that has
	// to wait for longer than its context lasts fails with llm.RateLimited. What a
	// call takes of the tokens is an estimate: its input and all it may put out.
	// 0: not limited.
	Requests int
	Tokens   int

	// After OpenAfter failures in a row calls fail at once with llm.Open, for OpenFor.
	// Then one is let through, and decides. 0: 5 and 20 s.
	OpenAfter int
	OpenFor   time.Duration

	// HedgeAfter is how long a read may take until it is made a second time beside the
	// first; the one that succeeds first counts. A model's call is never made so. 0:
	// reads are not hedged.
	HedgeAfter time.Duration

	// MaxText is the most bytes of a reply's text, and of the arguments of its calls.
	// 0: 8 MiB.
	MaxText int

	// Rand draws from [0, 1). Nil: math/rand/v2.
	Rand func() float64
}

// withDefaults returns c with its zero fields set.
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

// A Guard makes the calls to one endpoint, whichever of its models they are for. It
// is safe for concurrent use.
type Guard struct {
	config   Config
	breaker  circuitbreaker.CircuitBreaker[any]
	room     bulkhead.Bulkhead[any]
	requests ratelimiter.RateLimiter[any] // nil: not limited
	tokens   ratelimiter.RateLimiter[any] // nil: not limited
}

// New returns a guard of an endpoint. It panics where a number of c is negative.
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

// A refusal is an error of the guard's own: no call was made.
type refusal struct{ err *llm.Error }

func (r *refusal) Error() string { return r.err.Error() }

func (r *refusal) Unwrap() error { return r.err }

// enter waits until a call may be made. Whoever entered has to leave. The error is a
// *refusal, or that of ctx.
func (g *Guard) enter(ctx context.Context, tokens int) error {
	if err := g.open(); err != nil { // without taking the place of the one that is let through
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

// open returns an error where calls fail at once.
func (g *Guard) open() error {
	if g.breaker.IsOpen() && g.breaker.RemainingDelay() > 0 {
		return &refusal{g.openError()}
	}
	return nil
}

func (g *Guard) openError() *llm.Error {
	return &llm.Error{Kind: llm.Open, Message: "it failed too often and is left alone for a while", RetryAfter: g.breaker.RemainingDelay()}
}

// pace waits until the endpoint's rates have room for a call.
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

// leave ends what enter began, with what became of the call: err, and whether its
// caller gave it up.
func (g *Guard) leave(err error, given bool) {
	defer g.room.ReleasePermit()
	failed, _ := errors.AsType[*llm.Error](err)
	unheard := given || err != nil && failed == nil // or no call was made: the budget had no room, or a text is too long
	switch {
	case unheard && g.breaker.IsHalfOpen():
		g.breaker.Open() // the one that was let through tells nothing
	case unheard:
	case failed != nil && failing(failed.Kind):
		g.breaker.RecordFailure()
	default:
		g.breaker.RecordSuccess() // also one that refuses is there
	}
}

// failing reports whether an error says that an endpoint is down.
func failing(k llm.ErrorKind) bool {
	switch k {
	case llm.Overloaded, llm.ServerError, llm.Unreachable, llm.TimedOut, llm.BrokeOff:
		return true
	}
	return false
}

// backoff returns how long to wait before the next attempt after so many.
func (g *Guard) backoff(attempts int, asked time.Duration) time.Duration {
	most := g.config.Backoff
	for i := 1; i < attempts && most < g.config.MaxBackoff; i++ {
		most *= 2
	}
	most = min(most, g.config.MaxBackoff)
	if asked > 0 {
		most = min(most, g.config.Backoff) // the server has said when: only not all at once
	}
	return asked + time.Duration(g.config.Rand()*float64(most))
}
