// Package run drives a question's session so that it can be stopped at any
// moment and continued, and repeated later without doing anything again.
//
// A strategy is an ordinary Go function. Everything it does that is not plain
// computation (a model call, a search, a human's decision, a look at the clock)
// goes through [Do], which makes a step of it: the step's result is in the
// [Journal] before Do returns. A [Run] made by [New] performs its steps, except
// those that the journal already holds: their results are returned as they were.
// A run made by [Replay] performs none.
//
// # What a strategy must keep to
//
// The journal holds the results of steps and nothing else, so a strategy must
// reach the same steps with the same inputs whenever it gets the same results:
//
//   - it reads no clock, random source or map order except through steps, and
//     keeps no state between runs;
//   - every step has its own path: the names of its scopes and its own name. A
//     path taken twice is a programming error and panics;
//   - the steps of one scope, and of scopes made from it by [Scope.Sub] and
//     [Scope.Until], follow one another. Side by side run only the branches of
//     [Scope.Parallel], each with its own scope; they share nothing until they
//     are joined. Two steps of one branch at the same time panic;
//   - a context is passed on as it came: one that ends on its own (a timeout that
//     the strategy sets) would stop a step at a moment that no replay repeats.
//
// # What stops a run
//
// Three things are results like any other and are recorded: an error of a step, a
// step that the budget refuses ([BudgetError]) and one that the run's wall time
// ends or refuses (assay.ErrDeadline). A strategy handles them and goes on.
//
// Four things are not recorded and halt the run, so that nothing is recorded that
// a resumed run would not do: the end of the caller's context, a journal that
// fails, a divergence ([DivergenceError]) and a panic. Every later step fails
// with the same error, whatever the strategy makes of it, and [Run.Finish]
// reports it. A new run resumes from the journal, unless it diverged.
//
// A step that waits for a person (assay.ErrSuspended) is not recorded either, and
// halts its branch; other branches go on to their end.
package run
