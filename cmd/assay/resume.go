package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
)

func (a *app) resumeCommand() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue an interrupted run",
		Long: `Resume continues an interrupted run at the step where it stopped. Finished steps
are taken from the journal. The answer of a run that waits for a review, or was
decided in one, is printed. RUN is a run ID, a prefix of one, or "last".`,
		Example:           `  assay resume last`,
		Args:              oneArgument("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.resume(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print the answer as one JSON object")
	a.modelFlag(cmd)
	cmd.Flags().BoolVar(&f.trace, "trace", false, "print each step on standard error, with its time and result")
	return cmd
}

func (a *app) resume(ctx context.Context, name string, f askFlags) error {
	e, id, err := a.openRun(ctx, name, answering)
	if err != nil {
		return err
	}
	defer e.Close()
	shown := a.progress()
	defer shown.clear()
	return a.answer(e.Resume(ctx, assay.Local(), id), shown, f)
}
