package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/durable"
	"github.com/assay-rag/assay/internal/stats"
)

// statsFlags are the flags of stats.
type statsFlags struct {
	json                  bool
	by, html, symptom     string
	since, recent, window string
}

func (a *app) statsCommand() *cobra.Command {
	var f statsFlags
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show the quality, drift, latency and cost of past runs",
		Long: `Stats summarises the journals of the store's runs, without any labels: the share with
sufficient evidence on the first try, iterations, the relevance of the best passage,
rejected claims, unanswered questions, runs that hit a limit, errors of tools and models,
latency and cost, in total and by day, strategy or collection. It reports:

  objectives  targets for all runs: p95 latency at most 20 s, fewer than 5% hit a limit,
              every trace complete
  alerts      recent signals out of bounds: over 8 iterations a question, over 10% of
              runs hit a limit, p95 above 30 s, over 2% of tool calls fail
  drift       recent signals that differ significantly from the days before (1% level,
              corrected for the number of signals)
  alarms      combinations of worsening signals, with the likely cause

Each finding names a symptom; --symptom NAME prints its remedies. Days are in UTC.
Unfinished runs count only where they have data. No question or document text is shown.`,
		Example: `  assay stats
  assay stats --since 30d --by strategy
  assay stats --docs ./handbook --json
  assay stats --html stats.html
  assay stats --symptom slow`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.stats(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	flags.StringVar(&f.by, "by", "day", "group the table by `key`: day, strategy or collection")
	flags.StringVar(&f.html, "html", "", "write the report with plots to this HTML `file`")
	flags.StringVar(&f.since, "since", "", "include runs up to this `age`, as in 30d or 12h (default: all)")
	flags.StringVar(&f.recent, "recent", "1d", "runs up to this `age` are recent")
	flags.StringVar(&f.window, "window", "7d", "compare recent runs with this `period` before them")
	flags.StringVar(&f.symptom, "symptom", "", "print the remedies for the symptom `name`; help lists all")
	return cmd
}

func (a *app) stats(ctx context.Context, f statsFlags) error {
	if f.symptom != "" {
		return a.symptoms(f.symptom, f.json)
	}
	if !slices.Contains([]string{"day", "strategy", "collection"}, f.by) {
		return usagef("--by is %q, want one of day, strategy, collection", f.by)
	}
	o := stats.Options{Now: time.Now()}
	var from time.Time
	for _, span := range []struct {
		name, text string
		use        func(time.Duration)
	}{
		{"--since", f.since, func(d time.Duration) { from = o.Now.Add(-d) }},
		{"--recent", f.recent, func(d time.Duration) { o.Recent = d }},
		{"--window", f.window, func(d time.Duration) { o.Window = d }},
	} {
		if span.text == "" {
			continue
		}
		d, err := daysOrHours(span.text)
		if err != nil {
			return usagef("%s %q: %v", span.name, span.text, err)
		}
		span.use(d)
	}
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	shown := a.progress()
	defer shown.clear()
	all, err := e.Observations(ctx, assay.Local(), from, func(done, of int) {
		if done%100 == 0 {
			shown.update("reading runs, %d of %d", done, of)
		}
	})
	shown.clear()
	if err != nil {
		return err
	}
	report := stats.Of(all, o)
	if f.html != "" {
		if err := writeFile(f.html, func(w io.Writer) error { return stats.HTML(w, report) }); err != nil {
			return err
		}
	}
	stops, err := e.Stops(ctx)
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(a.stdout, statsReport{report, stops})
	}
	for _, s := range stops {
		fmt.Fprintf(a.stdout, "%s\n\n", stopLine(s))
	}
	return writeStats(a.stdout, report, f)
}

// statsReport is the JSON of stats.
type statsReport struct {
	stats.Report
	Stops []engine.Stop `json:"stops,omitempty"` // that hold now
}

// daysOrHours parses a duration such as "7d" or "12h".
func daysOrHours(text string) (time.Duration, error) {
	const most = 36500 // days
	unit := time.Hour
	number, isDays := strings.CutSuffix(text, "d")
	if isDays {
		unit = 24 * time.Hour
	} else if n, ok := strings.CutSuffix(text, "h"); ok {
		number = n
	} else {
		return 0, fmt.Errorf("want a number of days or hours, as in 7d or 12h")
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0) || n*float64(unit) > most*24*float64(time.Hour) {
		return 0, fmt.Errorf("want a number of days or hours above 0, as in 7d or 12h")
	}
	return time.Duration(n * float64(unit)), nil
}

// writeFile writes a file atomically.
func writeFile(path string, write func(io.Writer) error) error {
	if err := durable.Write(path, 0o600, write); err != nil { // the file contains users' questions
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// tryFile checks whether writeFile can write a file. An empty path is accepted.
func tryFile(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usagef("write %s: it is a folder", path)
	}
	try, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.try")
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("write %s: the folder %s does not exist", path, filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return errors.Join(try.Close(), os.Remove(try.Name()))
}

// writeStats prints a report for people.
func writeStats(w io.Writer, r stats.Report, f statsFlags) error {
	var b strings.Builder
	if r.All.Runs == 0 {
		b.WriteString("no runs\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "%s, %s to %s (UTC)", count(r.All.Runs, "run", "runs"), r.From.UTC().Format(time.DateOnly), r.To.UTC().Format(time.DateOnly))
	for _, part := range []struct {
		n    int
		what string
	}{{r.All.Failed, "failed"}, {r.All.Runs - r.All.Ended, "unfinished"}, {r.All.Cached, "answered from the cache"}, {r.Measuring, "from evaluations and forks, left out"}} {
		if part.n > 0 {
			fmt.Fprintf(&b, "; %d %s", part.n, part.what)
		}
	}
	b.WriteString("\n\n")
	groups := map[string][]stats.Group{"day": r.Days, "strategy": r.Strategies, "collection": r.Collections}[f.by]
	const most = 31
	if n := len(groups) - most; n > 0 {
		fmt.Fprintf(&b, "(the first %d rows are left out; --json prints all)\n", n)
		groups = groups[n:]
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\truns\tfirst try\titerations\trelevance\trejected\tnot found\tcap hits\ttool errors\tmodel errors\tp50\tp95\tcost p95\n", f.by)
	for _, g := range append(slices.Clone(groups), stats.Group{Name: "all", Signals: r.All}) {
		s := g.Signals
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plainLine(g.Name), s.Runs, shareOf(s.FirstTry),
			numberOf(s.Iterations, s.Iterations.Mean, "%.1f"), numberOf(s.TopRelevance, s.TopRelevance.P50, "%.2f"), shareOf(s.Rejected), shareOf(s.NotFound),
			shareOf(s.CapHits), shareOf(s.ToolErrors), shareOf(s.ModelErrors), numberOf(s.LatencyMS, s.LatencyMS.P50, "%.0f ms"), numberOf(s.LatencyMS, s.LatencyMS.P95, "%.0f ms"),
			numberOf(s.CostMicros, s.CostMicros.P95/1e6, "%.4f"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	b.WriteString("\nStages, all runs (they overlap: a verdict includes its model call)\n")
	table = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "stage\truns\tp50\tp95\tp99\tcost p50\tcost p95")
	for _, s := range r.All.Stages {
		fmt.Fprintf(table, "%s\t%d\t%.1f ms\t%.1f ms\t%.1f ms\t%.4f\t%.4f\n", s.Stage, s.ElapsedMS.Count, s.ElapsedMS.P50, s.ElapsedMS.P95, s.ElapsedMS.P99, s.CostMicros.P50/1e6, s.CostMicros.P95/1e6)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	writeCounts(&b, "Stops", r.All.Stops)
	writeCounts(&b, "Model replies", r.All.Finishes)
	if s := r.All.OutputTokens; s.Count > 0 {
		fmt.Fprintf(&b, "Output tokens: p50 %.0f, p95 %.0f\n", s.P50, s.P95)
	}
	if s := r.All.Stale; s.Count > 0 {
		fmt.Fprintf(&b, "Citations of documents replaced or removed since: %d of %d (see --symptom %s)\n", s.Count, s.Of, stats.Stale)
	}
	writeAlarms(&b, r)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeAlarms prints objectives, faulty traces, alerts, alarms and drift.
func writeAlarms(b *strings.Builder, r stats.Report) {
	b.WriteString("\nObjectives\n")
	for _, o := range r.Objectives {
		state := "met"
		switch {
		case o.Runs == 0:
			state = "not measured"
		case !o.Met:
			state = "MISSED"
		}
		fmt.Fprintf(b, "  %-12s  %s\n", state, o.Text)
	}
	for _, fault := range r.Faults[:min(len(r.Faults), 5)] {
		fmt.Fprintf(b, "  trace of %s: %s\n", fault.Run, plainLine(fault.Why))
	}
	b.WriteString("\nAlerts, recent runs\n")
	for _, x := range r.Alerts {
		fmt.Fprintf(b, "  %s (see --symptom %s)\n", x.Text, x.Symptom)
	}
	for _, x := range r.Alarms {
		fmt.Fprintf(b, "  %s: %s: %s (see --symptom %s)\n", x.Name, strings.Join(x.Signals, ", "), x.Text, x.Symptom)
	}
	if len(r.Alerts)+len(r.Alarms) == 0 {
		b.WriteString("  none\n")
	}
	b.WriteString("\nDrift against the days before\n")
	drifting := 0
	for _, d := range r.Drift {
		if d.Drifting {
			drifting++
			direction := "better"
			if d.Worse {
				direction = "worse"
			}
			fmt.Fprintf(b, "  %s %s: %.4g, was %.4g (p = %.2g, %s; see --symptom %s)\n", d.Signal, direction, d.Recent, d.Before, d.P, d.Test, d.Symptom)
		}
	}
	switch {
	case r.TooFew != "":
		fmt.Fprintf(b, "  %s\n", r.TooFew)
	case drifting == 0:
		fmt.Fprintf(b, "  none of %s\n", count(len(r.Drift), "signal", "signals"))
	}
}

func shareOf(s stats.Share) string {
	if s.Of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*s.Share)
}

func numberOf(d stats.Distribution, x float64, format string) string {
	if d.Count == 0 {
		return "-"
	}
	return fmt.Sprintf(format, x)
}

// writeCounts prints counts by name, in descending order.
func writeCounts(b *strings.Builder, title string, counts map[string]int) {
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(counts[y]-counts[x], cmp.Compare(x, y)) })
	var parts []string
	for _, n := range names {
		parts = append(parts, fmt.Sprintf("%s %d", plainLine(n), counts[n]))
	}
	if len(parts) > 0 {
		fmt.Fprintf(b, "%s: %s\n", title, strings.Join(parts, ", "))
	}
}

// symptoms prints the advice for a symptom, or lists all symptoms.
func (a *app) symptoms(name string, asJSON bool) error {
	all := stats.Symptoms()
	if name != strategyHelp {
		all = slices.DeleteFunc(all, func(s stats.Symptom) bool { return s.Name != name })
	}
	if len(all) == 0 {
		return hinted{usagef("unknown symptom %q", name), "see: assay stats --symptom help"}
	}
	if asJSON {
		return writeJSON(a.stdout, all)
	}
	var b strings.Builder
	for i, s := range all {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s (%s)\n  shows: %s\n", s.Title, s.Name, s.Shows)
		for _, do := range s.Do {
			fmt.Fprintf(&b, "  - %s\n", do)
		}
	}
	_, err := io.WriteString(a.stdout, b.String())
	return err
}
