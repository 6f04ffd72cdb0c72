// Package run drives a question's session so that it can be stopped at any moment and continued,
// and replayed later without repeating its effects.
//
// A strategy is an ordinary Go function. Everything it does except plain computation (a model call,
// a search, a human's decision, reading the clock) goes through [Do], which makes it a step: the
// result is in the [Journal] before Do returns. A [Run] made by [New] executes its steps, except
// those already in the journal: their recorded results are returned. A run made by [Replay]
// executes none.
//
// # Requirements on strategies
//
// The journal holds only the results of steps, so a strategy must reach the same steps with the
// same inputs whenever it gets the same results:
//
//   - It reads no clock, random source or map order except through steps, and keeps no state
//     between runs.
//   - Every step has its own path: the names of its scopes and its own name. Taking a path twice is
//     a programming error and panics.
//   - The steps of one scope, and of scopes made from it by [Scope.Sub] and [Scope.Until], are
//     sequential. Only the branches of [Scope.Parallel] run concurrently, each with its own scope;
//     they share nothing until they are joined. Two concurrent steps of one branch panic.
//   - A context is passed on unchanged. A context that ends on its own (a timeout that the strategy
//     sets) would stop a step at a moment that no replay repeats.
//
// # Stopping
//
// Five kinds of error are recorded like any other result: an error of a step, a step that the budget
// refuses ([BudgetError]), a step that the run's wall time ends or refuses (assay.ErrDeadline), a
// step that the [Ledger] refuses (assay.ErrQuota) and a step that an administrator's stop ends or
// refuses (assay.ErrStopped). A strategy handles them and continues.
//
// Four events are not recorded and halt the run, so that the journal holds no step that a resumed
// run would not take: the end of the caller's context, a journal failure, a divergence
// ([DivergenceError]) and a panic. Every later step fails with the same error, even if the strategy
// ignores it, and [Run.Finish] returns it. A new run can resume from the journal, unless the run
// diverged.
//
// A step that waits for a person (assay.ErrSuspended) is not recorded either. It halts its branch;
// other branches continue to their end.
package run
