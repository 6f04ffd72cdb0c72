package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/run"
)

func (a *app) replayCommand() *cobra.Command {
	var all bool
	var from string
	var f askFlags
	cmd := &cobra.Command{
		Use:   "replay RUN | --all",
		Short: "Repeat a run from its journal, or fork it at a step",
		Long: `Replay repeats a run from its journal, without searches or model calls, and
checks that it reaches the same answer byte for byte. If the input of a step
differs, replay prints both inputs and exits with 8.

With --from, replay forks the run: it takes the steps before STEP from the
journal, without paying for them again, and executes STEP and all later steps
with the models, prompts and settings configured now. The result is a new run
that names its parent. Compare both with: assay runs diff RUN last. A change
that affects a step before STEP is an error.

RUN is a run ID, a prefix of one, or "last". STEP is a path or number that
assay show prints.`,
		Example: `  assay replay last
  assay replay --all
  assay replay last --from 7 --model generator=anthropic/claude-sonnet-5-5`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return noArguments(cmd, args)
			}
			return oneArgument("RUN")(cmd, args)
		},
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, pair := range [][2]string{{"all", "json"}, {"all", "from"}, {"model", "local"}} {
				if cmd.Flags().Changed(pair[0]) && cmd.Flags().Changed(pair[1]) {
					return usagef("--%s and --%s exclude each other", pair[0], pair[1])
				}
			}
			if cmd.Flags().Changed("from") {
				return a.fork(cmd, args[0], from, f)
			}
			for _, name := range forkFlags {
				if cmd.Flags().Changed(name) {
					return hinted{usagef("--%s needs --from", name), "without it a replay repeats the run unchanged"}
				}
			}
			if all {
				return a.replayAll(cmd.Context())
			}
			return a.replay(cmd.Context(), args[0], f.json)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "replay every run that has an answer")
	flags.BoolVar(&f.json, "json", false, "print the answer as JSON, like ask --json")
	flags.StringVar(&from, "from", "", "fork the run at this `step`: its path or number; the flags below need it")
	a.modelFlag(cmd)
	flags.BoolVar(&f.local, "local", false, "use no language model")
	flags.StringVar((*string)(&f.request.Mode), "mode", "", "effort: quick (half the limits) or thorough (double)")
	budgetFlags(cmd, &f.request.Budget)
	flags.BoolVar(&f.trace, "trace", false, "print each step on standard error, like ask --trace")
	flags.SortFlags = false
	return cmd
}

// forkFlags are the flags of replay that only a fork has.
var forkFlags = []string{"model", "trace", "local", "mode", "iterations", "timeout", "max-calls", "max-tokens", "max-cost"}

// fork forks a run at a step and prints the answer of the new run.
func (a *app) fork(cmd *cobra.Command, name, step string, f askFlags) error {
	if err := checkBudgetFlags(cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	e, id, err := a.openRun(ctx, name, answering)
	if err != nil {
		return err
	}
	defer e.Close()
	shown := a.progress()
	defer shown.clear()
	change := func(r *engine.Request) {
		if f.local || len(a.models) > 0 {
			r.Local = f.local
		}
		r.Mode = cmp.Or(f.request.Mode, r.Mode)
		r.Budget = overBudget(f.request.Budget, r.Budget)
	}
	forked := ""
	events := func(yield func(engine.Event, error) bool) {
		for ev, err := range e.Fork(ctx, assay.Local(), id, step, change) {
			forked = cmp.Or(forked, ev.Run)
			if !yield(ev, a.hintFork(err)) {
				return
			}
		}
	}
	err = a.answer(events, shown, f)
	if _, printed := errors.AsType[ended](err); err != nil && !printed {
		a.printInputs(err)
		return err
	}
	if !f.json {
		fmt.Fprintf(a.stdout, "\nForked from run %s. Compare: assay runs diff %s %s%s\n", id, id, forked, a.sameStore())
	}
	return err
}

// overBudget returns the budget of flags, with the parent's for each that was not given.
func overBudget(given, parent assay.Budget) assay.Budget {
	return assay.Budget{
		Iterations: cmp.Or(given.Iterations, parent.Iterations), Wall: cmp.Or(given.Wall, parent.Wall), Calls: cmp.Or(given.Calls, parent.Calls),
		Tokens: cmp.Or(given.Tokens, parent.Tokens), CostMicros: cmp.Or(given.CostMicros, parent.CostMicros),
	}
}

// hintFork adds to the error of a fork the step that it can be forked from instead.
func (a *app) hintFork(err error) error {
	if early, ok := errors.AsType[*engine.ForkError](err); ok {
		return hinted{err, "fork from that step: --from " + shellQuote(early.Step)}
	}
	return err
}

func (a *app) replay(ctx context.Context, name string, asJSON bool) error {
	e, id, err := a.openRun(ctx, name, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	answer, err := e.Replay(ctx, assay.Local(), id)
	if err != nil {
		a.printInputs(err)
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, answer)
	}
	if err := writeAnswer(a.stdout, answer, a.width); err != nil {
		return err
	}
	if by := byLine(answer); by != "" {
		if err := a.stdout.faint("\n"+wrap(by, "", a.width), a.faintOut); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.stdout, "\nReplayed run %s: the same answer.\n", id)
	return err
}

// replayAll replays every run with an answer and prints those that fail. A failure does not stop
// it. The exit code is that of the first failure.
func (a *app) replayAll(ctx context.Context) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	runs, err := e.Runs(ctx, assay.Local(), 0)
	if err != nil {
		return err
	}
	same, failure := 0, error(nil)
	shown := a.progress()
	defer shown.clear()
	for i, r := range runs {
		if r.Describing || r.Status == "" && r.State != assay.RunDone {
			continue
		}
		shown.update("replaying run %d of %d", i+1, len(runs))
		_, err := e.Replay(ctx, assay.Local(), r.ID)
		switch {
		case err == nil:
			same++
		case ctx.Err() != nil:
			return err
		default:
			shown.clear()
			fmt.Fprintf(a.stdout, "%s  %v\n", r.ID, err)
			failure = cmp.Or(failure, err)
		}
	}
	shown.clear()
	fmt.Fprintf(a.stdout, "%s replayed to the same answer\n", count(same, "run", "runs"))
	return end(exitCode(failure))
}

// printInputs prints both complete inputs of the step at which a replay diverged, each on its own
// line.
func (a *app) printInputs(err error) {
	d, ok := errors.AsType[*run.DivergenceError](err)
	if !ok {
		return
	}
	fmt.Fprintf(a.stderr, "step %s\n", d.Path)
	for _, side := range []struct {
		name  string
		input json.RawMessage
	}{{"recorded", d.Recorded}, {"now", d.Given}} {
		input := side.input
		if input == nil {
			input = json.RawMessage("(not taken)")
		}
		fmt.Fprintf(a.stderr, "%s input: %s\n", side.name, input)
	}
}
