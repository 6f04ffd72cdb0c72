package run

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	"github.com/assay-rag/assay"
)

// A branch is a sequential part of a run: the run itself, or one branch of Scope.Parallel. It keeps
// the ledger against which its steps are checked. Only the goroutine that drives the branch uses
// it.
type branch struct {
	path      string      // of its outermost scope; empty: the run itself
	busy      atomic.Bool // a step or a fork of the branch is in progress
	suspended bool        // a step waits for a person
	limit     limit
	spent     assay.Usage
	clocks    map[string]int // clock readings so far, by scope path
}

// enter begins a step or a fork.
func (b *branch) enter(path string) {
	if !b.busy.CompareAndSwap(false, true) {
		panic(fmt.Sprintf("run: step %s is taken while another step of its branch is under way", path))
	}
}

func (b *branch) leave() { b.busy.Store(false) }

// A limit is the amount that a branch may spend, by dimension.
type limit struct{ calls, tokens, micros int64 }

// unlimited is the limit of an unbounded dimension.
const unlimited = math.MaxInt64

func limitOf(b assay.Budget) limit {
	of := func(n int64) int64 {
		if n == 0 {
			return unlimited
		}
		return max(n, 0)
	}
	return limit{calls: of(int64(b.Calls)), tokens: of(int64(b.Tokens)), micros: of(b.CostMicros)}
}

// left returns the amount left to spend, at least 0 in each dimension.
func (b *branch) left() limit {
	of := func(limit, spent int64) int64 {
		if limit == unlimited {
			return unlimited
		}
		return max(limit-spent, 0)
	}
	return limit{
		calls:  of(b.limit.calls, int64(b.spent.Calls)),
		tokens: of(b.limit.tokens, tokens(b.spent)),
		micros: of(b.limit.micros, b.spent.CostMicros),
	}
}

// share returns the i-th of n equal parts of l. The remainder goes to the first parts.
func (l limit) share(i, n int) limit {
	of := func(left int64) int64 {
		if left == unlimited {
			return unlimited
		}
		part := left / int64(n)
		if int64(i) < left%int64(n) {
			part++
		}
		return part
	}
	return limit{calls: of(l.calls), tokens: of(l.tokens), micros: of(l.micros)}
}

// reserve returns a *BudgetError if a step that needs up to u exceeds the amount left. It holds
// nothing back, because the branch takes no other step before this one is charged.
func (b *branch) reserve(u assay.Usage) error {
	left := b.left()
	for _, d := range []struct {
		stop       assay.Stop
		need, left int64
	}{
		{assay.StopCallBudget, int64(u.Calls), left.calls},
		{assay.StopTokenBudget, tokens(u), left.tokens},
		{assay.StopMoneyBudget, u.CostMicros, left.micros},
	} {
		if d.need > 0 && d.need > d.left {
			return &BudgetError{Stop: d.stop, Need: d.need, Left: d.left}
		}
	}
	return nil
}

// charge records the cost of a step, even if it exceeds the reserve.
func (b *branch) charge(u assay.Usage) {
	u = nonNegative(u)
	b.spent = assay.Usage{
		Calls:        sum(b.spent.Calls, u.Calls),
		InputTokens:  sum(b.spent.InputTokens, u.InputTokens),
		OutputTokens: sum(b.spent.OutputTokens, u.OutputTokens),
		CostMicros:   sum(b.spent.CostMicros, u.CostMicros),
		Searches:     sum(b.spent.Searches, u.Searches),
	}
}

// nonNegative returns u with negative counts set to zero, so that a provider's report cannot refill
// a budget.
func nonNegative(u assay.Usage) assay.Usage {
	return assay.Usage{
		Calls: max(u.Calls, 0), InputTokens: max(u.InputTokens, 0), OutputTokens: max(u.OutputTokens, 0),
		CostMicros: max(u.CostMicros, 0), Searches: max(u.Searches, 0),
	}
}

func tokens(u assay.Usage) int64 { return sum(int64(u.InputTokens), int64(u.OutputTokens)) }

// sum returns a + b for non-negative a and b. If that overflows, it returns the larger one, which
// exceeds any budget.
func sum[T int | int64](a, b T) T {
	if s := a + b; s >= a {
		return s
	}
	return max(a, b)
}

// A BudgetError is the part of the budget that a step exceeds. It wraps assay.ErrBudget.
type BudgetError struct {
	Path string     // of the step
	Stop assay.Stop // StopCallBudget, StopTokenBudget or StopMoneyBudget
	Need int64      // calls, tokens or millionths of the currency that the step may need
	Left int64      // the amount that its branch may still spend
}

// message returns the form of e in a journal, which lacks the path.
func (e *BudgetError) message() string {
	return fmt.Sprintf("%s: up to %d needed, %d left", e.Stop, e.Need, e.Left)
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("step %s: %v: %s", e.Path, assay.ErrBudget, e.message())
}

// Unwrap returns assay.ErrBudget.
func (e *BudgetError) Unwrap() error { return assay.ErrBudget }

// parseBudgetError is the inverse of message. It returns nil for any other text.
func parseBudgetError(path, message string) *BudgetError {
	stop, numbers, _ := strings.Cut(message, ": ")
	e := &BudgetError{Path: path, Stop: assay.Stop(stop)}
	if _, err := fmt.Sscanf(numbers, "up to %d needed, %d left", &e.Need, &e.Left); err != nil || e.message() != message {
		return nil
	}
	return e
}

// StopReason returns the reason to stop for err: the part of the budget in a [BudgetError],
// assay.StopDeadline, assay.StopQuota, assay.StopStopped or assay.StopCancelled. It reports false for any other error.
func StopReason(err error) (assay.Stop, bool) {
	var budget *BudgetError
	switch {
	case errors.As(err, &budget):
		return budget.Stop, true
	case errors.Is(err, assay.ErrDeadline):
		return assay.StopDeadline, true
	case errors.Is(err, assay.ErrStopped):
		return assay.StopStopped, true
	case errors.Is(err, assay.ErrCancelled):
		return assay.StopCancelled, true
	case errors.Is(err, assay.ErrQuota):
		return assay.StopQuota, true
	}
	return "", false
}
