package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/governance"
)

func (a *app) governanceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "governance",
		Short: "Report on how questions were answered and overseen",
		Long: `Governance reports on the runs and the audit log for the people who are responsible for
them, and prints the text that tells users that they deal with an AI system.`,
		Example: `  assay governance report
  assay governance report --from 2026-01-01 --to 2026-04-01 --html quarter.html
  assay governance disclosure`,
	}
	cmd.AddCommand(a.governanceReportCommand(), a.disclosureCommand())
	return cmd
}

// governanceFlags are the flags of governance report.
type governanceFlags struct {
	from, to, html, csv string
	session, month      string
	quick               time.Duration
	json                bool
}

func (a *app) governanceReportCommand() *cobra.Command {
	var f governanceFlags
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Report on traces, tools, reviews, limits, times, costs and alarms",
		Long: `Report computes figures from the runs and the audit log, each with its definition, what was
counted, its objective and alert, and the runs behind it:

  traces      every session has its whole trace (must be 100%)
  tools       calls by week; new tools, arguments out of pattern, refused calls, errors (2%)
  reviews     override rate by month (alert above 30%), decisions that were not considered
  iterations  mean (alert above 8), 99th percentile, by kind of question and strategy
  limits      runs ended by a limit (objective under 5%, alert above 10%)
  times       95th percentile of the session time (objective 20 s, alert 30 s)
  costs       of a session and a month, beside what is expected
  verifier    claims dropped and repaired, drafts refused
  acts        canary alarms, refused connections, stops, limits, keys, policies, checkpoints

It shows no text of a question or document and no person's name. Dates are in UTC.`,
		Example: `  assay governance report
  assay governance report --from 2026-01-01 --to 2026-04-01 --html quarter.html
  assay governance report --csv tables --expect-session 0.50 --expect-month 6000`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.governanceReport(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "include runs and acts from this `date` on, as in 2026-01-31")
	flags.StringVar(&f.to, "to", "", "include runs and acts before this `date`")
	flags.StringVar(&f.session, "expect-session", "", "expected `cost` of a session, in the currency of prices")
	flags.StringVar(&f.month, "expect-month", "", "expected `cost` of a month")
	flags.DurationVar(&f.quick, "quick", 5*time.Second, "flag decisions made in less than this `time`")
	flags.StringVar(&f.html, "html", "", "write a page to this `file`")
	flags.StringVar(&f.csv, "csv", "", "write a CSV file per table to this `folder`")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	return cmd
}

// options returns the options of a report.
func (f governanceFlags) options() (o governance.Options, err error) {
	o.QuickDecision = f.quick
	if f.quick <= 0 {
		return o, usagef("--quick %s is not above 0", f.quick)
	}
	if o.From, err = dateOf("--from", f.from); err != nil {
		return o, err
	}
	if o.To, err = dateOf("--to", f.to); err != nil {
		return o, err
	}
	if !o.To.IsZero() && !o.From.Before(o.To) {
		return o, usagef("--from %s is not before --to %s", f.from, f.to)
	}
	if o.SessionMicros, err = microsOf("--expect-session", f.session); err != nil {
		return o, err
	}
	o.MonthMicros, err = microsOf("--expect-month", f.month)
	return o, err
}

func dateOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return t, usagef("%s %q: want a date, as in 2026-01-31", flag, text)
	}
	return t, nil
}

func microsOf(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0) || x > 1e9 {
		return 0, usagef("%s %q: want an amount above 0, as in 0.50", flag, text)
	}
	return int64(math.Round(x * 1e6)), nil
}

func (a *app) governanceReport(ctx context.Context, f governanceFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	if err := tryFile(f.html); err != nil {
		return err
	}
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	r, err := e.GovernanceReport(ctx, o)
	if err != nil {
		return err
	}
	if f.html != "" {
		if err := writeFile(f.html, func(w io.Writer) error { return governance.HTML(w, r) }); err != nil {
			return err
		}
	}
	if f.csv != "" {
		if err := writeTables(f.csv, r); err != nil {
			return err
		}
	}
	if f.json {
		return governance.JSON(a.stdout, r)
	}
	return writeGovernance(a.stdout, r)
}

// writeTables writes a file per table to a folder, which is created if it is missing.
func writeTables(folder string, r governance.Report) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for _, t := range append([]governance.Table{governance.FiguresTable(r)}, r.Tables...) {
		err := writeFile(filepath.Join(folder, t.Name+".csv"), func(w io.Writer) error { return governance.CSV(w, t) })
		if err != nil {
			return err
		}
	}
	return nil
}

// writeGovernance prints the figures of a report for people.
func writeGovernance(w io.Writer, r governance.Report) error {
	var b strings.Builder
	period := "all runs"
	if r.From != nil {
		period = "from " + r.From.Format(time.DateOnly)
	}
	if r.To != nil {
		period += " before " + r.To.Format(time.DateOnly)
	}
	fmt.Fprintf(&b, "%s, %s (UTC): %s, %s of the audit log\n\n", r.Tenant, period, count(r.Runs, "question", "questions"), count(r.Acts, "act", "acts"))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "figure\tvalue\tstate\truns")
	for _, f := range r.Figures {
		state := strings.ReplaceAll(string(f.State), "_", " ")
		switch f.State {
		case governance.Open:
			state = ""
		case governance.Alert, governance.Missed:
			state = strings.ToUpper(state)
		}
		runs := ""
		if n := len(f.Runs); n > 0 {
			runs = f.Runs[0]
			if n > 1 {
				runs += fmt.Sprintf(" and %d more", n-1)
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.Title, f.Text(), state, plainLine(runs))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if n := len(r.Table("tool_anomalies").Rows); n > 0 {
		fmt.Fprintf(&b, "\n%s in tool calls; --json, --csv and --html list them, and all runs\n", count(n, "anomaly", "anomalies"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *app) disclosureCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "disclosure",
		Short: "Print the text that tells users that they deal with an AI system",
		Long: `Disclosure prints the text that every door shows to its users. Show it, in their language,
wherever you show answers by other means.`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.stdout, wrap(governance.Disclosure, "", a.width)+"\n")
			return err
		},
	}
}
