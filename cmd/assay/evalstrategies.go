package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/scripted"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/strategies"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm/recorded"
	"github.com/assay-rag/assay/strategy"
)

// strategiesFlags are the flags of eval strategies.
type strategiesFlags struct {
	evalFlags
	strategies []string
	questions  int
	markdown   bool
	asAsked    bool
	words      bool
	savings    bool

	record, recorded string
	scripted         bool
}

// recordedRoles and recordingRoles are the values of strategies.Row.Roles for roles that are not
// local.
const (
	recordedRoles  = "recorded"
	recordingRoles = "recording"
)

func (a *app) evalStrategiesCommand() *cobra.Command {
	var f strategiesFlags
	cmd := &cobra.Command{
		Use:   "strategies FOLDER...",
		Short: "Compare the strategies on labelled sets in the BEIR layout",
		Long: `Strategies asks each question of a labelled set with every strategy, over the same search
and with ten passages for the generator. It prints recall and all gold of these passages
with 95% intervals, the answers' agreement with the set, and the cost per question. The
first row is a naive baseline: vector search, one prompt, no checks. Iterations are the
searches per sub-question. The strategy managed is a remote service and is left out.

The roles are local by default. --record calls the configured models and stores their
replies; --recorded plays them back without a network, with local roles for calls that
were not recorded. A recording quotes the passages and is as confidential as the set.
--savings instead measures ways to save calls and tokens, and the evidence each loses.`,
		Example: `  assay eval strategies --strategy static,multihop,auto ./musique ./hotpotqa
  assay eval strategies --recorded replies.jsonl ./musique`,
		Args: needFolders,
		RunE: func(cmd *cobra.Command, folders []string) error { return a.evalStrategies(cmd.Context(), folders, f) },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.Lookup("json").Usage = "print a JSON object for each strategy of each set"
	flags.StringSliceVar(&f.strategies, "strategy", nil, "strategies to measure, by `name` (default: all but managed)")
	flags.IntVar(&f.questions, "questions", 0, "ask only the first `n` questions of each set (default: all)")
	flags.BoolVar(&f.markdown, "markdown", false, "print Markdown tables")
	flags.BoolVar(&f.words, "words", false, "let local roles judge by words, without the reader; much faster")
	flags.BoolVar(&f.asAsked, "as-asked", false, "give the generator what the strategy accepts, as ask does, not ten passages")
	flags.StringVar(&f.record, "record", "", "call the configured models and store their replies in `FILE`")
	flags.BoolVar(&f.scripted, "scripted", false, "with --record: call scripted models instead")
	flags.StringVar(&f.recorded, "recorded", "", "measure with the replies in `FILE`")
	flags.BoolVar(&f.savings, "savings", false, "measure ways to save calls and tokens instead")
	return cmd
}

func (a *app) evalStrategies(ctx context.Context, folders []string, f strategiesFlags) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	if err := a.openEval(ctx, &f.evalFlags); err != nil {
		return err
	}
	if f.savings {
		return a.evalCost(ctx, folders, f.evalFlags, f.questions)
	}
	runs := []strategies.Options{{}}
	switch {
	case f.record != "":
		recorder, err := a.recorder(ctx, f)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, recorder.Close()) }()
		runs = []strategies.Options{{Roles: recordingRoles, Models: engine.Models{Roles: recorder.Roles()}}}
	case f.recorded != "":
		tape, err := recorded.Open(f.recorded)
		if err != nil {
			return err
		}
		runs = append(runs, strategies.Options{Roles: recordedRoles, Models: engine.Models{Roles: tape.Roles()}})
	}
	var all []strategies.Row
	for i, folder := range folders {
		rows, err := a.strategiesOf(ctx, folder, f, runs)
		all = append(all, rows...)
		if printed := a.printStrategies(rows, f, i > 0); err != nil || printed != nil {
			return errors.Join(err, printed)
		}
	}
	if f.json {
		return nil
	}
	return writeTargets(a.stdout, strategies.TargetsOf(all))
}

// check rejects flags that do not go together.
func (f strategiesFlags) check() error {
	for _, name := range f.strategies {
		if !slices.Contains(strategy.Names(), name) {
			return usagef("--strategy is %q, want one of %s", name, strings.Join(strategy.Names(), ", "))
		}
	}
	switch {
	case f.json && f.markdown:
		return usagef("--json and --markdown exclude each other")
	case f.record != "" && f.recorded != "":
		return usagef("--record and --recorded exclude each other")
	case f.scripted && f.record == "":
		return usagef("--scripted needs --record")
	case f.questions < 0:
		return usagef("--questions is negative")
	}
	return nil
}

// recorder opens a recording of the configured or the scripted models. It omits verifiers and
// rerankers that are services, because they are not recorded.
func (a *app) recorder(ctx context.Context, f strategiesFlags) (*recorded.Recorder, error) {
	models := scripted.Models()
	if !f.scripted {
		set, err := a.settings()
		if err != nil {
			return nil, err
		}
		if models, err = set.Models(ctx); err != nil {
			return nil, err
		}
		if len(models.Roles) == 0 {
			return nil, hinted{usagef("--record: no language model is configured"), "configure one (docs/models.md), or add --scripted"}
		}
	}
	return recorded.Record(f.record, models.Roles)
}

// strategiesOf measures one set. Rows that were finished before an error are returned with it.
func (a *app) strategiesOf(ctx context.Context, folder string, f strategiesFlags, runs []strategies.Options) (rows []strategies.Row, err error) {
	err = a.evalSet(folder, f.evalFlags, func(set testset.Set, parts retrieval.Parts) (err error) {
		o, err := retrieval.Open(ctx, set, parts)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.Close()) }()
		for _, opts := range runs {
			opts.Strategies, opts.Questions, opts.AsAsked, opts.ByWords, opts.Naive = f.strategies, f.questions, f.asAsked, f.words, true
			more, err := strategies.Measure(ctx, o, opts)
			if rows = append(rows, more...); err != nil {
				return err
			}
		}
		return nil
	})
	return rows, err
}

// printStrategies prints the rows of a set in the selected form. Rows with different roles get
// separate tables.
func (a *app) printStrategies(rows []strategies.Row, f strategiesFlags, again bool) error {
	if f.json {
		encoder := json.NewEncoder(a.stdout)
		for _, row := range rows {
			if err := encoder.Encode(row); err != nil {
				return err
			}
		}
		return nil
	}
	write := writeStrategies
	if f.markdown {
		write = writeMarkdown
	}
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Roles == rows[0].Roles {
			n++
		}
		if err := write(a.stdout, rows[:n], again); err != nil {
			return err
		}
		rows, again = rows[n:], true
	}
	return nil
}

// strategyColumns are the headings of a table of strategies.
var strategyColumns = []string{"strategy", "recall", "all gold", "against static", "answered", "match", "f1", "steps", "searches", "iterations", "calls", "tokens", "time"}

// strategyCells returns the cells of a row.
func strategyCells(r strategies.Row) []string {
	beside, match, f1 := "", "", ""
	if r.Gain != nil {
		beside = interval(r.Gain.AllGold)
	}
	if r.Answers > 0 {
		match, f1 = fmt.Sprintf("%.2f", r.Match), fmt.Sprintf("%.2f", r.F1)
	}
	return []string{
		r.Strategy, figure(r.Recall.Mean, r.Recall.Low, r.Recall.High), figure(r.AllGold.Mean, r.AllGold.Low, r.AllGold.High), beside,
		fmt.Sprintf("%d%%", 100*r.Statuses[assay.Answered]/max(r.Questions, 1)), match, f1, fmt.Sprintf("%.1f", r.Steps),
		fmt.Sprintf("%.1f", r.Searches), fmt.Sprintf("%.1f", r.Iterations), fmt.Sprintf("%.1f", r.Calls), fmt.Sprintf("%.0f", r.Tokens), fmt.Sprintf("%.0f ms", r.MedianMS),
	}
}

// strategyTitle returns the title of a table.
func strategyTitle(name string, r strategies.Row) string {
	title := fmt.Sprintf("%s: %s", name, count(r.Questions, "question", "questions"))
	switch r.Roles {
	case recordedRoles:
		title += ", with recorded replies"
	case recordingRoles:
		title += ", while replies are recorded"
	}
	if r.AsAsked {
		title += ", with the passages that the strategy accepts"
	}
	if r.Scripted {
		title += " of scripted models (a test of the plumbing: these figures say nothing about a real model)"
	}
	return title
}

// interval formats a difference with its bounds.
func interval(m stat.Interval) string {
	return fmt.Sprintf("%+.3f (%+.3f to %+.3f)", m.Mean, m.Low, m.High)
}

// writeStrategies prints a table.
func writeStrategies(w io.Writer, rows []strategies.Row, again bool) error {
	var b strings.Builder
	if again {
		b.WriteString("\n")
	}
	fmt.Fprintln(&b, strategyTitle(rows[0].Set, rows[0]))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(strategyColumns, "\t"))
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(strategyCells(row), "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, remark := range strategyRemarks(rows) {
		fmt.Fprintln(&b, remark)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeMarkdown prints a table in Markdown.
func writeMarkdown(w io.Writer, rows []strategies.Row, again bool) error {
	var b strings.Builder
	if again {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s:\n\n", strategyTitle("`"+rows[0].Set+"`", rows[0]))
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(strategyColumns)
	line(slices.Repeat([]string{"---"}, len(strategyColumns)))
	for _, row := range rows {
		cells := strategyCells(row)
		cells[0] = "`" + cells[0] + "`"
		line(cells)
	}
	for i, remark := range strategyRemarks(rows) {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s\n", remark)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// strategyRemarks returns remarks on rows that their figures do not show, such as an unusual number
// of passages and failures.
func strategyRemarks(rows []strategies.Row) []string {
	var remarks []string
	say := func(format string, args ...any) { remarks = append(remarks, fmt.Sprintf(format, args...)) }
	for _, r := range rows {
		if r.AsAsked {
			say("%s passes %.1f passages to the generator on average", r.Strategy, r.Handed)
			continue
		}
		if r.Over > 0 {
			say("%s passes more than %d passages to the generator for %s; only the first %[2]d count", r.Strategy, strategies.Handed, count(r.Over, "question", "questions"))
		}
		if short := float64(strategies.Handed) - r.Handed; short > 0.05 && r.Over == 0 {
			say("%s passes %.1f passages to the generator on average", r.Strategy, r.Handed)
		}
		if r.AskedBack > 0 {
			say("%s asks for clarification of %s", r.Strategy, count(r.AskedBack, "question", "questions"))
		}
		if r.CallsFailed > 0 {
			say("%s: no reply to %s; local roles stood in, except for the verifier", r.Strategy, count(r.CallsFailed, "call", "calls"))
		}
		if r.Failed > 0 {
			say("%s fails at %s: %s", r.Strategy, count(r.Failed, "question", "questions"), r.Failure)
		}
	}
	return remarks
}

// writeTargets prints the figures that are compared with the strategies' targets.
func writeTargets(w io.Writer, t strategies.Targets) error {
	var b strings.Builder
	for _, g := range t.MultiHop {
		fmt.Fprintf(&b, "%s: %s has %s all gold and %s recall against static\n", g.Set, g.Strategy, interval(g.AllGold), interval(g.Recall))
	}
	if s := t.Auto; s != nil {
		fmt.Fprintf(&b, "auto, over %s: %.1f%% of the best mean recall (%s) and %.1f%% of the best mean all gold (%s), in %.0f%% of the steps of multihop\n",
			count(s.Sets, "set", "sets"), 100*s.Recall, s.Best, 100*s.AllGold, s.BestAllGold, 100*s.Steps)
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(w, "\n"+b.String())
	return err
}
