package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

func (a *app) holdCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hold",
		Short: "Keep runs and documents from being erased (legal holds)",
		Long: `A hold keeps what it covers: nothing erases, deletes, prunes or expires it until the hold
has ended or was removed. It covers a run, the runs of a user, everything of a collection
(its document versions, and the runs that may have searched it), or everything.

Every change is in the audit log, with the reason.`,
	}
	cmd.AddCommand(a.holdAddCommand(), a.holdListCommand(), a.holdRemoveCommand())
	return cmd
}

func (a *app) holdAddCommand() *cobra.Command {
	var h store.Hold
	var until string
	cmd := &cobra.Command{
		Use:   "add NAME --reason REASON",
		Short: "Add a hold",
		Example: `  assay hold add case-42 --user ann --reason "litigation 42"
  assay hold add audit-2026 --collection hr --reason "audit" --until 2027-06-30`,
		Args: oneArgument("the name of the hold"),
		RunE: func(cmd *cobra.Command, args []string) error {
			h.Name = args[0]
			if until != "" {
				day, err := time.ParseInLocation(time.DateOnly, until, time.Local)
				if err != nil {
					return usagef("--until %q: want a date, as in 2027-06-30", until)
				}
				end := day.AddDate(0, 0, 1).UTC()
				h.Until = &end
			}
			return a.addHold(cmd.Context(), h)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&h.Run, "run", "", "keep this `run`")
	flags.StringVar(&h.User, "user", "", "keep the runs of this `user`")
	flags.StringVar(&h.Collection, "collection", "", "keep this `collection` and the runs that may have searched it")
	flags.BoolVar(&h.All, "all", false, "keep everything")
	flags.StringVar(&h.Reason, "reason", "", "`why`, for the audit log")
	flags.StringVar(&until, "until", "", "last `day` on which it counts (default: no end)")
	return cmd
}

func (a *app) addHold(ctx context.Context, h store.Hold) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	if h.Run != "" {
		if h.Run, err = findRunOf(ctx, e, h.Run); err != nil {
			return err
		}
	}
	if err := e.AddHold(ctx, assay.Local(), h); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "hold %s covers %s\n", h.Name, h.Covers())
	return err
}

// shownHold is the JSON of hold list.
type shownHold struct {
	Name string `json:"name"`
	store.Hold
	Counts bool `json:"counts"`
}

func (a *app) holdListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the holds",
		Example: "  assay hold list --json",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listHolds(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func (a *app) listHolds(ctx context.Context, asJSON bool) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	holds, err := e.Holds(ctx)
	if err != nil {
		return err
	}
	shown := make([]shownHold, len(holds))
	for i, h := range holds {
		shown[i] = shownHold{Name: h.Name, Hold: h, Counts: h.Counts(time.Now())}
	}
	if asJSON {
		return writeJSON(a.stdout, shown)
	}
	for _, h := range shown {
		until := "no end"
		if h.Until != nil {
			until = "until " + h.Until.Add(-time.Second).Local().Format(time.DateOnly)
		}
		if !h.Counts {
			until += ", ended"
		}
		fmt.Fprintf(a.stdout, "%s  %s  %s  %s\n", h.Name, h.Covers(), until, oneLine(h.Reason, 60))
	}
	return nil
}

func (a *app) holdRemoveCommand() *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:     "remove NAME --reason REASON",
		Short:   "Remove a hold",
		Example: `  assay hold remove case-42 --reason "settled" --yes`,
		Args:    oneArgument("the name of the hold"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return hinted{usagef("what the hold covers can then be removed"), "if you mean it, add --yes"}
			}
			return a.removeHold(cmd.Context(), args[0], reason)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for the audit log")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it without asking")
	return cmd
}

func (a *app) removeHold(ctx context.Context, name, reason string) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.RemoveHold(ctx, assay.Local(), name, reason); err != nil {
		return hintList(err, "assay hold list")
	}
	_, err = fmt.Fprintf(a.stdout, "hold %s removed\n", name)
	return err
}
