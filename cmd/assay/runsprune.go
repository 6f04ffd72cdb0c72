package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/store"
)

func (a *app) pruneRunsCommand() *cobra.Command {
	var before, reason string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "prune --before AGE|DATE",
		Short: "Remove old runs and their journals",
		Long: `Prune removes the runs before a date, or older than an age: their questions, journals and
answers. They can no longer be shown, replayed or followed. Document versions that were
kept only because these runs cite them are removed too. Active runs and those under a
hold stay. The audit log keeps their leaves and the reason. The freed space is reused;
the files do not shrink. Without --before, the retention of runs counts.`,
		Example: `  assay runs prune --before 90d
  assay runs prune --before 2026-01-31 --dry-run`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.pruneRuns(cmd.Context(), before, reason, dry, asJSON)
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "`age` in days or hours, as in 90d or 12h, or a date, as in 2026-01-31")
	cmd.Flags().StringVar(&reason, "reason", "pruned", "`why`, for the audit log")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "count the runs and remove nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the counts as a JSON object")
	return cmd
}

// pruneTime parses an age or a date.
func pruneTime(text string, now time.Time) (time.Time, error) {
	if day, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return day, nil
	}
	age, err := daysOrHours(text)
	if err != nil {
		return time.Time{}, usagef("--before %q: want a number of days or hours, as in 90d or 12h, or a date, as in 2026-01-31", text)
	}
	return now.Add(-age), nil
}

func (a *app) pruneRuns(ctx context.Context, before, reason string, dry, asJSON bool) error {
	var at time.Time
	if before != "" { // reject what cannot be read before anything is opened
		var err error
		if at, err = pruneTime(before, time.Now()); err != nil {
			return err
		}
	}
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	if before == "" {
		if at, err = retainedSince(ctx, e); err != nil {
			return err
		}
	}
	pruned, err := e.PruneRuns(ctx, assay.Local(), at, reason, dry)
	if err != nil {
		return fmt.Errorf("%d runs were removed: %w", pruned.Runs, err)
	}
	if asJSON {
		return writeJSON(a.stdout, pruned)
	}
	fmt.Fprintln(a.stdout, prunedLine(pruned, dry))
	return nil
}

// retainedSince returns the time before which the retention of runs keeps none.
func retainedSince(ctx context.Context, e *engine.Engine) (time.Time, error) {
	policies, err := e.RetentionPolicies(ctx)
	if err != nil {
		return time.Time{}, err
	}
	for _, p := range policies {
		if p.Kind == store.RetainRuns {
			return time.Now().Add(-store.Retention{Days: p.Days}.Duration()), nil
		}
	}
	return time.Time{}, hinted{usagef("--before is missing, and there is no retention of runs"), "for example: assay runs prune --before 90d"}
}

func prunedLine(p engine.PrunedRuns, dry bool) string {
	line := fmt.Sprintf("%d runs removed, and %d document versions that no other run cites", p.Runs, p.Versions)
	switch {
	case dry:
		line = fmt.Sprintf("%d runs would be removed", p.Runs)
	case p.Writing:
		line = fmt.Sprintf("%d runs removed; another process is writing documents, so the next ingest removes the document versions that no other run cites", p.Runs)
	}
	if p.Held > 0 {
		line += fmt.Sprintf("; %d kept by %s", p.Held, strings.Join(p.Holds, ", "))
	}
	if p.Live > 0 {
		line += fmt.Sprintf("; %d kept because they are active", p.Live)
	}
	if p.Waiting > 0 {
		line += fmt.Sprintf("; %d kept because they wait for a review", p.Waiting)
	}
	return line
}
