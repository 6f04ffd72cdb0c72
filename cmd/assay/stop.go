package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// stopFlags are the flags of stop.
type stopFlags struct {
	all, lift, json bool
	reason          string
}

func (a *app) stopCommand() *cobra.Command {
	var f stopFlags
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop all work of the tenant, or of all tenants, until the stop is lifted",
		Long: `Stop ends running questions, in every process within a second, with the part of the answer
that is verified; they are stored as incomplete. Ingests and syncs end at their next safe
point and keep what they have stored. Questions, searches and ingests are then refused
with exit code 10, until the stop is lifted. Documents and past runs can still be read.

Who stopped what, why and since when is shown by assay doctor and assay stats, and not to
those who ask.`,
		Example: `  assay stop --reason "a document was shared by mistake"
  assay stop --all --reason "provider incident"   # every tenant of the data directory
  assay stop --lift`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.stop(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "stop all tenants of the data directory")
	flags.BoolVar(&f.lift, "lift", false, "lift the stop")
	flags.StringVar(&f.reason, "reason", "", "`why`, for the audit log; required to stop")
	flags.BoolVar(&f.json, "json", false, "print the stops that hold now as a JSON list")
	return cmd
}

func (a *app) stop(ctx context.Context, f stopFlags) error {
	if !f.lift && strings.TrimSpace(f.reason) == "" {
		return hinted{usagef("say why"), `use: assay stop --reason "TEXT"`}
	}
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	if f.lift {
		err = e.Start(ctx, assay.Local(), f.all, f.reason)
	} else {
		err = e.Stop(ctx, assay.Local(), f.all, f.reason)
	}
	if errors.Is(err, assay.ErrNotFound) {
		return fmt.Errorf("there is no stop of %s to lift: %w", stopped(f.all), assay.ErrNotFound)
	}
	if err != nil {
		return err
	}
	stops, err := e.Stops(ctx)
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(a.stdout, append([]engine.Stop{}, stops...))
	}
	if f.lift {
		fmt.Fprintf(a.stdout, "lifted the stop of %s\n", stopped(f.all))
	}
	for _, s := range stops {
		fmt.Fprintln(a.stdout, stopLine(s))
	}
	return nil
}

func stopped(all bool) string {
	if all {
		return "all tenants"
	}
	return "this tenant"
}

// stopLine describes a stop for an administrator.
func stopLine(s engine.Stop) string {
	verb := "is"
	if s.All {
		verb = "are"
	}
	return fmt.Sprintf("%s %s stopped by %s since %s: %s", stopped(s.All), verb, plainLine(s.By), s.Since.UTC().Format(time.RFC3339), plainLine(s.Reason))
}
