package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/limit"
)

func (a *app) limitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limit",
		Short: "Limit what the tenant, its users and its API keys may spend",
		Long: `Limit sets how much may be asked and spent: requests, concurrent runs, model calls, tokens
and money. A limit holds for all processes together and survives crashes.

A subject is the tenant as a whole (tenant), each user (users), each API key (keys), one
user (user:NAME) or one key (key:ID). The smallest limit that applies holds. A measure is
one of

  requests/second  requests/minute  requests/day  requests/month
  runs             calls/day        calls/month   tokens/day     tokens/month
  cost/day         cost/month       (in units of the currency, such as 2.50)

Days and months are those of UTC; runs are those at the same time. A request over a limit
is refused. A run that reaches one ends with the part of the answer that is verified.`,
		Example: `  assay limit set users requests/day=200 runs=2
  assay limit set tenant cost/month=50 --reason "budget of 2026"
  assay limit usage`,
	}
	cmd.AddCommand(a.limitSetCommand(), a.limitListCommand(), a.limitRemoveCommand(), a.limitUsageCommand())
	return cmd
}

func (a *app) limitSetCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "set SUBJECT MEASURE=VALUE...",
		Short: "Set limits of a subject; its others stay",
		Example: `  assay limit set tenant tokens/day=2000000 cost/month=50
  assay limit set user:ann runs=1
  assay limit set key:k7f2 requests/minute=30 --reason "a nightly job"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) >= 2 {
				return nil
			}
			return hinted{usagef("want a subject and at least one limit"), "see: assay limit --help"}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.setLimits(cmd.Context(), args[0], args[1:], reason)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for the audit log")
	return cmd
}

func (a *app) setLimits(ctx context.Context, subject string, pairs []string, reason string) error {
	change := limit.Limits{}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		m := limit.Measure(name)
		if !ok {
			return usagef("%q is no limit, want MEASURE=VALUE", pair)
		}
		if _, twice := change[m]; twice {
			return usagef("%s is given twice", m)
		}
		value, err := parseAmount(m, text)
		if err != nil {
			return err
		}
		change[m] = value
	}
	if len(a.docs) > 0 {
		return usagef("--docs is for ask and search")
	}
	at, err := a.location(ctx)
	if err != nil {
		return err
	}
	e, err := a.openEngine(ctx, at, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.SetLimits(ctx, assay.Local(), subject, change, reason); err != nil {
		return err
	}
	table, err := e.Limits(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %s\n", plainLine(subject), limitsLine(table[subject]))
	return err
}

// parseAmount parses the value of a limit. Money is in units of the currency.
func parseAmount(m limit.Measure, text string) (int64, error) {
	if m.Unit() != "cost" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return 0, usagef("the limit of %s is %q, want a number from 0", m, text)
		}
		return n, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= limit.Most/1e6) {
		return 0, usagef("the limit of %s is %q, want an amount of money from 0, such as 2.50", m, text)
	}
	return int64(math.Round(x * 1e6)), nil
}

// amountText prints a number of a measure, with money in units of the currency.
func amountText(m limit.Measure, n int64) string {
	switch {
	case n < 0:
		return "-"
	case m.Unit() == "cost":
		return strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64)
	}
	return strconv.FormatInt(n, 10)
}

// limitsLine prints the limits of a subject in the form of limit set.
func limitsLine(l limit.Limits) string {
	var parts []string
	for _, m := range limit.Measures {
		if n, ok := l[m]; ok {
			parts = append(parts, fmt.Sprintf("%s=%s", m, amountText(m, n)))
		}
	}
	if len(parts) == 0 {
		return "no limits"
	}
	return strings.Join(parts, " ")
}

func (a *app) limitListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the limits",
		Example: "  assay limit list --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := a.openExisting(cmd.Context(), looking)
			if err != nil {
				return err
			}
			defer e.Close()
			table, err := e.Limits(cmd.Context())
			if err != nil {
				return err
			}
			return writeLimits(a.stdout, table, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON; money is in millionths of the currency")
	return cmd
}

func writeLimits(w io.Writer, table limit.Table, asJSON bool) error {
	if asJSON {
		return writeJSON(w, table)
	}
	if len(table) == 0 {
		_, err := fmt.Fprintln(w, "no limits")
		return err
	}
	lines := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, subject := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(lines, "%s\t%s\n", plainLine(subject), limitsLine(table[subject]))
	}
	return lines.Flush()
}

func (a *app) limitRemoveCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "remove SUBJECT [MEASURE...]",
		Short: "Remove limits of a subject, or all of them",
		Example: `  assay limit remove user:ann runs
  assay limit remove users --reason "replaced by the limit of the tenant"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return hinted{usagef("want a subject"), "see: assay limit list"}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.removeLimits(cmd.Context(), args[0], args[1:], reason)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for the audit log")
	return cmd
}

func (a *app) removeLimits(ctx context.Context, subject string, measures []string, reason string) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	table, err := e.Limits(ctx)
	if err != nil {
		return err
	}
	change := limit.Limits{}
	for _, name := range measures {
		m := limit.Measure(name)
		if _, ok := table[subject][m]; !ok {
			return hinted{fmt.Errorf("%s has no limit of %q: %w", subject, name, assay.ErrNotFound), "see: assay limit list"}
		}
		change[m] = -1
	}
	if len(change) > 0 {
		err = e.SetLimits(ctx, assay.Local(), subject, change, reason)
	} else {
		err = e.RemoveLimits(ctx, assay.Local(), subject, reason)
	}
	if errors.Is(err, assay.ErrNotFound) {
		return hinted{fmt.Errorf("%s has no limits: %w", subject, assay.ErrNotFound), "see: assay limit list"}
	}
	if err != nil {
		return err
	}
	if table, err = e.Limits(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %s\n", plainLine(subject), limitsLine(table[subject]))
	return err
}

func (a *app) limitUsageCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "usage [SUBJECT...]",
		Short: "Show what was spent, what is left and when it renews",
		Long: `Usage shows what the tenant, its users and its keys have spent today and this month (UTC),
whether they have limits or not. Reserved is set aside for calls in progress.

Other is the part of what was spent of which no journal has a record: searches without a
question, vectors, and calls whose process died before they were recorded. The latter
count with the most that they may have cost.`,
		Example: `  assay limit usage
  assay limit usage user:ann --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, subject := range args {
				if err := limit.CheckSubject(subject); err != nil {
					return err
				}
			}
			e, err := a.openExisting(cmd.Context(), looking)
			if err != nil {
				return err
			}
			defer e.Close()
			uses, err := e.LimitUsage(cmd.Context(), args...)
			if err != nil {
				return err
			}
			return writeLimitUses(a.stdout, uses, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON; money is in millionths of the currency")
	return cmd
}

func writeLimitUses(w io.Writer, uses []engine.LimitUse, asJSON bool) error {
	if asJSON {
		return writeJSON(w, append([]engine.LimitUse{}, uses...))
	}
	if len(uses) == 0 {
		_, err := fmt.Fprintln(w, "nothing was spent this month, and there are no limits")
		return err
	}
	lines := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(lines, "subject\tmeasure\tspent\tother\treserved\tlimit\tleft\trenews")
	for _, u := range uses {
		renews := "-"
		if !u.Renews.IsZero() {
			renews = u.Renews.Format(time.RFC3339)
		}
		fmt.Fprintf(lines, "%s\t%s", plainLine(u.Subject), u.Measure)
		for _, n := range []int64{u.Spent, u.Other, u.Reserved, u.Limit, u.Left} {
			fmt.Fprintf(lines, "\t%s", amountText(u.Measure, n))
		}
		fmt.Fprintf(lines, "\t%s\n", renews)
	}
	return lines.Flush()
}
