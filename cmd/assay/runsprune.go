package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

func (a *app) pruneRunsCommand() *cobra.Command {
	var before string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "prune --before AGE|DATE",
		Short: "Remove old runs and their journals",
		Long: `Prune removes the runs before a date, or older than an age: their questions, journals and
answers. They can no longer be shown, replayed or followed. Document versions that were
kept only because these runs cite them are removed too. Active runs stay. The freed space
is reused; the files do not shrink.`,
		Example: `  assay runs prune --before 90d
  assay runs prune --before 2026-01-31 --dry-run`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := pruneTime(before, time.Now())
			if err != nil {
				return err
			}
			return a.pruneRuns(cmd.Context(), at, dry, asJSON)
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "`age` in days or hours, as in 90d or 12h, or a date, as in 2026-01-31")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "count the runs and remove nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the counts as a JSON object")
	return cmd
}

// pruneTime parses an age or a date.
func pruneTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, hinted{usagef("--before is missing"), "for example: assay runs prune --before 90d"}
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return day, nil
	}
	age, err := daysOrHours(text)
	if err != nil {
		return time.Time{}, usagef("--before %q: want a number of days or hours, as in 90d or 12h, or a date, as in 2026-01-31", text)
	}
	return now.Add(-age), nil
}

func (a *app) pruneRuns(ctx context.Context, before time.Time, dry, asJSON bool) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	pruned, err := e.PruneRuns(ctx, assay.Local(), before, dry)
	if err != nil {
		return fmt.Errorf("%d runs were removed: %w", pruned.Runs, err)
	}
	if asJSON {
		return writeJSON(a.stdout, pruned)
	}
	fmt.Fprintln(a.stdout, prunedLine(pruned, dry))
	return nil
}

func prunedLine(p engine.PrunedRuns, dry bool) string {
	line := fmt.Sprintf("%d runs removed, and %d document versions that no other run cites", p.Runs, p.Versions)
	switch {
	case dry:
		line = fmt.Sprintf("%d runs would be removed", p.Runs)
	case p.Writing:
		line = fmt.Sprintf("%d runs removed; another process is writing documents, so the next ingest removes the document versions that no other run cites", p.Runs)
	}
	if p.Live > 0 {
		line += fmt.Sprintf("; %d kept because they are active", p.Live)
	}
	return line
}
