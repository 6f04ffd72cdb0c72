package run

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	"github.com/assay-rag/assay"
)

// A branch is a part of a run whose steps follow one another: the run itself, or
// one branch of Scope.Parallel. It keeps the ledger that its steps are checked
// against. Only the goroutine that drives the branch touches it.
type branch struct {
	busy      atomic.Bool // a step or a fork of the branch is under way
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

// A limit is what a branch may spend, by dimension.
type limit struct{ calls, tokens, micros int64 }

// unlimited is the limit of a dimension that has none.
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

// left returns what is left to spend, at least 0 in each dimension.
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

// share returns the i-th of n equal parts of l. What does not divide goes to the
// first ones.
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

// reserve reports, as a *BudgetError, when a step that needs up to u does not fit
// into what is left. Nothing needs to be held: the branch takes no other step
// before this one is charged.
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

// charge books what a step has spent, also beyond what was reserved.
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

// nonNegative returns u with its negative counts set to zero: what a provider
// reports must not refill a budget.
func nonNegative(u assay.Usage) assay.Usage {
	return assay.Usage{
		Calls: max(u.Calls, 0), InputTokens: max(u.InputTokens, 0), OutputTokens: max(u.OutputTokens, 0),
		CostMicros: max(u.CostMicros, 0), Searches: max(u.Searches, 0),
	}
}

func tokens(u assay.Usage) int64 { return sum(int64(u.InputTokens), int64(u.OutputTokens)) }

// sum returns a + b, neither negative; the larger one, which is beyond any
// budget, when that overflows.
func sum[T int | int64](a, b T) T {
	if s := a + b; s >= a {
		return s
	}
	return max(a, b)
}

// A BudgetError says which part of the budget has no room for a step. It is
// assay.ErrBudget.
type BudgetError struct {
	Path string     // of the step
	Stop assay.Stop // StopCallBudget, StopTokenBudget or StopMoneyBudget
	Need int64      // calls, tokens or millionths of the currency that the step may take
	Left int64      // that its branch may still spend
}

// message is what a journal keeps of e: all but the path.
func (e *BudgetError) message() string {
	return fmt.Sprintf("%s: up to %d needed, %d left", e.Stop, e.Need, e.Left)
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("step %s: %v: %s", e.Path, assay.ErrBudget, e.message())
}

// Unwrap returns assay.ErrBudget.
func (e *BudgetError) Unwrap() error { return assay.ErrBudget }

// parseBudgetError is the inverse of message; nil when it is no such message.
func parseBudgetError(path, message string) *BudgetError {
	stop, numbers, _ := strings.Cut(message, ": ")
	e := &BudgetError{Path: path, Stop: assay.Stop(stop)}
	if _, err := fmt.Sscanf(numbers, "up to %d needed, %d left", &e.Need, &e.Left); err != nil || e.message() != message {
		return nil
	}
	return e
}

// StopReason returns the reason to stop that err stands for: the part of the
// budget that a [BudgetError] names, or assay.StopDeadline. It reports false for
// any other error.
func StopReason(err error) (assay.Stop, bool) {
	var budget *BudgetError
	switch {
	case errors.As(err, &budget):
		return budget.Stop, true
	case errors.Is(err, assay.ErrDeadline):
		return assay.StopDeadline, true
	}
	return "", false
}
