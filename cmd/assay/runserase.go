package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// eraseFlags are the flags of runs erase.
type eraseFlags struct {
	reason             string
	related, yes, json bool
}

func (a *app) eraseRunsCommand() *cobra.Command {
	var f eraseFlags
	cmd := &cobra.Command{
		Use:   "erase RUN... --reason REASON",
		Short: "Erase what runs said, and keep their entries in the audit log",
		Long: `Erase removes the questions, requests and answers of runs, and the inputs and outputs of
their steps, from every file of the data directory. It cannot be undone. The runs are
still listed, as erased. The audit log keeps their entries without the text (times, kinds
of steps, models, usage) and gets one with who erased them and why, so it still verifies,
and so do proofs. Document versions that only erased runs cited are removed too, a day
after they were replaced. A run under a hold, or one that waits for a review, is not erased.

Runs that follow, fork or reuse an erased run repeat parts of it. They are listed;
--related erases them too. Backups are not changed.`,
		Example: `  assay runs erase 7nqy2ilgu34wcppt --reason "request of 2026-11-20" --yes
  assay runs erase last --related --reason "test with real names" --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return hinted{usagef("no run is named"), "see: " + cmd.CommandPath() + " --help"}
			}
			return nil
		},
		ValidArgsFunction: a.completeRuns,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.eraseRuns(cmd.Context(), args, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.reason, "reason", "", "`why`, for the audit log; it stays, so name no person")
	flags.BoolVar(&f.related, "related", false, "erase also runs that follow, fork or reuse them")
	flags.BoolVar(&f.yes, "yes", false, "do it without asking")
	flags.BoolVar(&f.json, "json", false, "print what was done as a JSON object")
	return cmd
}

func (a *app) eraseRuns(ctx context.Context, names []string, f eraseFlags) error {
	if strings.TrimSpace(f.reason) == "" {
		return usagef("--reason is missing")
	}
	if !f.yes {
		return hinted{usagef("erased text cannot be restored"), "if you mean it, add --yes"}
	}
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	ids := make([]string, len(names))
	for i, name := range names {
		if ids[i], err = findRunOf(ctx, e, name); err != nil {
			return err
		}
	}
	done, err := e.EraseRuns(ctx, assay.Local(), ids, f.reason, f.related)
	if err != nil {
		if len(done.Runs) > 0 {
			err = fmt.Errorf("%s erased: %w", count(len(done.Runs), "run was", "runs were"), err)
		}
		return err
	}
	if f.json {
		return writeJSON(a.stdout, done)
	}
	_, err = fmt.Fprint(a.stdout, erasureText(done))
	return err
}

// findRunOf is findRun that also takes the whole ID of a run of another principal.
func findRunOf(ctx context.Context, e *engine.Engine, name string) (string, error) {
	id, err := findRun(ctx, e, name)
	if err != nil && e.HasRun(ctx, assay.Local(), name) {
		return name, nil
	}
	return id, err
}

func erasureText(done engine.Erasure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s erased, and %s that no other run cites removed\n", count(len(done.Runs), "run", "runs"), count(done.Versions, "document version", "document versions"))
	if len(done.Related) > 0 {
		fmt.Fprintf(&b, "Runs that repeat parts of them, not erased: %s\n", strings.Join(done.Related, ", "))
	}
	if done.Writing {
		b.WriteString("Another process is writing documents; the next ingest removes the versions.\n")
	}
	if done.Residue != "" {
		fmt.Fprintf(&b, "The bytes may still be in the files (%s). Run the command again when that process has ended.\n", done.Residue)
	}
	return b.String()
}
