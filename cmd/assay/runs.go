package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

func (a *app) runsCommand() *cobra.Command {
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List past questions, newest first",
		Long: `Runs lists past questions, newest first, with the ID, time and status of each run. A
command that takes a run accepts its ID, a unique prefix of it, or "last".`,
		Example: `  assay runs
  assay runs --docs ./handbook      # questions of assay ask --docs ./handbook
  assay runs --json --limit 0       # all runs`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit %d is negative", limit)
			}
			return a.runs(cmd.Context(), limit, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	cmd.Flags().IntVar(&limit, "limit", 20, "list at most `n` runs; 0 lists all")
	cmd.AddCommand(a.diffRunsCommand(), a.exportRunsCommand(), a.pruneRunsCommand(), a.eraseRunsCommand())
	return cmd
}

func (a *app) runs(ctx context.Context, limit int, asJSON bool) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	runs, err := e.Runs(ctx, assay.Local(), limit)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, runs)
	}
	for _, r := range runs {
		question := oneLine(r.Question, 60)
		if r.State == assay.RunErased {
			question = "(erased)"
		}
		if r.Measuring {
			question += "  (an evaluation)"
		}
		if r.ForkedFrom != nil {
			question += "  (forked from " + r.ForkedFrom.Run + ")"
		}
		if r.Cached != "" {
			question += "  (the answer of " + r.Cached + ")"
		}
		fmt.Fprintf(a.stdout, "%s  %s  %-12s  %s\n", r.ID, r.Created.Local().Format(time.DateTime), outcome(r.State, r.Status, r.Live), question)
	}
	return nil
}

// outcome returns the state of a run in one word: its answer's status, or the reason why it has
// none.
func outcome(state assay.RunState, status assay.Status, live bool) string {
	switch {
	case status != "":
		return string(status)
	case state == assay.RunActive && live:
		return "running"
	case state == assay.RunActive:
		return "interrupted"
	}
	return string(state)
}

// openRun opens the data directory of the command and finds the named run in it.
func (a *app) openRun(ctx context.Context, name string, n needs) (*engine.Engine, string, error) {
	e, err := a.openExisting(ctx, n)
	if err != nil {
		return nil, "", err
	}
	id, err := findRun(ctx, e, name)
	if err != nil {
		return nil, "", errors.Join(err, e.Close())
	}
	return e, id, nil
}

// findRun returns the ID of a run. Name is an ID, a prefix of exactly one ID, or "last" for the
// newest run that answers a question.
func findRun(ctx context.Context, e *engine.Engine, name string) (string, error) {
	runs, err := e.Runs(ctx, assay.Local(), 0)
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(runs, func(r engine.RunSummary) bool { return !r.Describing }); name == "last" && i >= 0 {
		return runs[i].ID, nil
	}
	var found []string
	for _, r := range runs {
		if r.ID == name {
			return r.ID, nil
		}
		if name != "" && strings.HasPrefix(r.ID, name) {
			found = append(found, r.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", hinted{fmt.Errorf("run %q: %w", name, assay.ErrNotFound), "see: assay runs"}
	case 1:
		return found[0], nil
	}
	return "", usagef("run %q is ambiguous: it is a prefix of %d runs, such as %s and %s", name, len(found), found[0], found[1])
}

// findAnswered is findRun for a run to follow: "last" is the newest that has an answer.
func findAnswered(ctx context.Context, e *engine.Engine, name string) (string, error) {
	if name != "last" {
		return findRun(ctx, e, name)
	}
	runs, err := e.Runs(ctx, assay.Local(), 0)
	if err != nil {
		return "", err
	}
	for _, r := range runs {
		if r.State == assay.RunDone && !r.Describing {
			return r.ID, nil
		}
	}
	return "", hinted{fmt.Errorf("there is no run with an answer to follow: %w", assay.ErrNotFound), "ask without --follow first"}
}

// completeRuns offers the IDs of the runs to the shell.
func (a *app) completeRuns(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	e, err := a.openExisting(cmd.Context(), looking)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer e.Close()
	runs, err := e.Runs(cmd.Context(), assay.Local(), 50)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := []cobra.Completion{cobra.CompletionWithDesc("last", "the newest run")}
	for _, r := range runs {
		names = append(names, cobra.CompletionWithDesc(r.ID, oneLine(r.Question, 40)))
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
