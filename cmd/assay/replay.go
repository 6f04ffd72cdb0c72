package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/run"
)

func (a *app) replayCommand() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "replay RUN | --all",
		Short: "Answer again from a run's journal, and compare",
		Long: `Replay goes through a run again with what its journal holds: nothing is searched
and nobody is called. It must come to the same answer, byte for byte: status,
stop, text, claims, citations and what is missing. If a step asks for something
else than it did then, both inputs are shown.

RUN is a run's ID, the beginning of one, or "last".`,
		Example: `  assay replay last
  assay replay --all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return noArguments(cmd, args)
			}
			return oneArgument("RUN")(cmd, args)
		},
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all {
				return a.replayAll(cmd.Context())
			}
			return a.replay(cmd.Context(), args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "replay every run that has an answer")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the replayed answer as JSON, like ask --json")
	cmd.MarkFlagsMutuallyExclusive("all", "json")
	return cmd
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
		if r.Status == "" && r.State != assay.RunDone {
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
