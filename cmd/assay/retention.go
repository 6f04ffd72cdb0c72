package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

func (a *app) retentionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retention",
		Short: "Set how long data is kept, and remove what is older",
		Long: `Retention is set in days for each kind of data. Without one, data is kept until it is
removed otherwise. Nothing is removed before assay retention apply, which can run daily.

  runs       runs with their journals and answers, which are deleted
  journals   journals of failed runs, which are erased
  versions   replaced and deleted document versions that no run cites: kept that long
  reviews    what was written in reviews: the payloads of their entries in the audit log
  acts       the payloads of all other entries that nothing stored rests on

The audit log keeps all entries, without their erased payloads. Holds go first.`,
	}
	cmd.AddCommand(a.retentionSetCommand(), a.retentionListCommand(), a.retentionRemoveCommand(), a.retentionApplyCommand())
	return cmd
}

// onRetention opens the data directory of the command and calls fn.
func (a *app) onRetention(ctx context.Context, fn func(*engine.Engine) error) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	return fn(e)
}

func (a *app) retentionSetCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "set KIND DAYS",
		Short: "Set how many days a kind of data is kept",
		Example: `  assay retention set runs 365 --reason "policy 7"
  assay retention set journals 30`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return hinted{usagef("want a kind and a number of days"), "see: assay retention --help"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			days, err := strconv.Atoi(strings.TrimSuffix(args[1], "d"))
			if err != nil {
				return usagef("%q is no number of days", args[1])
			}
			return a.onRetention(cmd.Context(), func(e *engine.Engine) error {
				if err := e.SetRetention(cmd.Context(), assay.Local(), args[0], days, reason); err != nil {
					return err
				}
				_, err := fmt.Fprintf(a.stdout, "%s: kept for %s\n", args[0], count(days, "day", "days"))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for the audit log")
	return cmd
}

func (a *app) retentionListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List how long data is kept",
		Example: "  assay retention list --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onRetention(cmd.Context(), func(e *engine.Engine) error {
				policies, err := e.RetentionPolicies(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(a.stdout, policies)
				}
				for _, p := range policies {
					fmt.Fprintf(a.stdout, "%-9s  %s\n", p.Kind, count(p.Days, "day", "days"))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func (a *app) retentionRemoveCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "remove KIND",
		Short:   "Keep a kind of data until it is removed otherwise",
		Example: "  assay retention remove runs",
		Args:    oneArgument("a kind"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onRetention(cmd.Context(), func(e *engine.Engine) error {
				if err := e.RemoveRetention(cmd.Context(), assay.Local(), args[0], reason); err != nil {
					return hintList(err, "assay retention list")
				}
				_, err := fmt.Fprintf(a.stdout, "%s: kept without a limit\n", args[0])
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for the audit log")
	return cmd
}

func (a *app) retentionApplyCommand() *cobra.Command {
	var dry, yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Remove what is older than the retention",
		Example: `  assay retention apply --dry-run
  assay retention apply --yes`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !dry && !yes {
				return hinted{usagef("removed data cannot be restored"), "see what it would be with --dry-run, or add --yes"}
			}
			return a.onRetention(cmd.Context(), func(e *engine.Engine) error {
				done, err := e.ApplyRetention(cmd.Context(), assay.Local(), dry)
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(a.stdout, done)
				}
				_, err = fmt.Fprint(a.stdout, retainedText(done, dry))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "count, and remove nothing")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it without asking")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the counts as a JSON object")
	return cmd
}

func retainedText(done engine.Retained, dry bool) string {
	var b strings.Builder
	line := func(kind string, p engine.PrunedRuns, did string) {
		if dry {
			did = "to be " + did
		}
		fmt.Fprintf(&b, "%-9s  %d %s", kind, p.Runs, did)
		if p.Held > 0 {
			fmt.Fprintf(&b, "; %d kept by %s", p.Held, strings.Join(p.Holds, ", "))
		}
		if p.Live > 0 {
			fmt.Fprintf(&b, "; %d kept because they are active", p.Live)
		}
		b.WriteString("\n")
	}
	line("runs", done.Runs, "deleted")
	line("journals", done.Journals, "erased")
	if !dry {
		fmt.Fprintf(&b, "versions   %d removed\n", done.Runs.Versions)
	}
	line("acts", engine.PrunedRuns{Runs: done.Acts}, "erased")
	if done.Residue != "" {
		fmt.Fprintf(&b, "The bytes may still be in the files (%s). Apply again when that process has ended.\n", done.Residue)
	}
	return b.String()
}
