package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/eval"
)

// abstentionFlags are the flags of eval abstention.
type abstentionFlags struct {
	json       bool
	cache      string
	noEncoder  bool
	strategies []string
	splits     int
	questions  int
	rows       string
}

func (a *app) evalAbstentionCommand() *cobra.Command {
	var f abstentionFlags
	cmd := &cobra.Command{
		Use:   "abstention FOLDER...",
		Short: "Take answers away and count the questions that are answered all the same",
		Long: `Abstention takes away, for half of the questions of a labelled set, the passages that
answer them, ingests the others into a temporary store, asks all questions as ask
does, and prints

  false answers  the share of the questions without an answer that were answered all
                 the same: with any claim, whatever the status says
  right          the share of the others that were answered, with a right passage cited
  in full        the share of those with the status answered, too

Halves are drawn by passage, by hash: splits 0 and 1 are each other's complement, 2 and
3 are others, and so on. Of the others of a document, passages stay: what is left is
near to what is asked.

Then comes what static would do by the probability alone, that the passages hold the answer,
without the allowance that the grader makes where they cover the question: the threshold at
which 5 of 100 questions without an answer are answered, and how many right answers it leaves;
the same for a logistic regression over features of BM25 alone, by cross-validation;
how well the probabilities tell the two kinds apart (AUC) and how far they are from the
shares that were seen (ECE); and both shares for each threshold. The threshold is the
limit held of the configuration.

The weights in the program were learned from public sets. With --rows, which train-abstention
writes, all is done twice more: "crossed" with weights that were learned from the other sets
and from the articles of this one that the question is not about (its articles, told by the
passages' titles, are dealt into five parts), and "without" with weights that were learned
from the other sets alone. These two are what can be expected of documents like these, and
of other ones.

No language model is asked. What a FOLDER holds: see assay eval retrieval --help. Equal
sets give equal figures.`,
		Example: `  assay eval abstention ./xquad-en
  assay eval abstention --strategy static,auto --splits 4 ./xquad-en ./clapnq
  assay eval abstention --rows rows.json ./xquad-en
  assay eval abstention --no-encoder --questions 200 --json ./xquad-en`,
		Args: needFolders,
		RunE: func(cmd *cobra.Command, folders []string) error { return a.evalAbstention(cmd.Context(), folders, f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print one JSON object for each set, a line each, with every outcome")
	flags.StringVar(&f.cache, "cache", "", "the `folder` that keeps vectors (default: assay/eval in the user's cache folder)")
	flags.BoolVar(&f.noEncoder, "no-encoder", false, "search and judge by words alone")
	flags.StringSliceVar(&f.strategies, "strategy", []string{"static"}, "ask by this strategy, by `name`; may be repeated")
	flags.IntVar(&f.splits, "splits", 2, "ask so many times, each time with another half of the answers taken away")
	flags.IntVar(&f.questions, "questions", 0, "ask `n` of the questions, evenly spread (default: all)")
	flags.StringVar(&f.rows, "rows", "", "ask with weights, too, that are learned from this `file` without what is asked")
	return cmd
}

func (a *app) evalAbstention(ctx context.Context, folders []string, f abstentionFlags) error {
	if f.splits < 1 || f.questions < 0 {
		return usagef("--splits is at least 1 and --questions not negative")
	}
	shared := evalFlags{cache: f.cache}
	if err := a.openEval(ctx, &shared); err != nil {
		return err
	}
	opts := eval.AbstentionOptions{Strategies: f.strategies, Splits: f.splits, Questions: f.questions}
	if !f.noEncoder {
		encoders, err := a.encoders()
		if err != nil {
			return err
		}
		if encoders != nil {
			opts.Encoders = eval.CachedEncoders{Encoders: encoders, Dir: shared.cache}
		}
	}
	if f.rows != "" {
		rows, err := readRows(f.rows)
		if err != nil {
			return err
		}
		opts.Rows = &rows
	}
	for i, folder := range folders {
		err := a.evalSet(folder, shared, func(set eval.Set, parts eval.Parts) error {
			opts.Progress = parts.Progress
			report, err := eval.Abstention(ctx, set, opts)
			if err != nil {
				return err
			}
			if f.json {
				return json.NewEncoder(a.stdout).Encode(report)
			}
			if i > 0 {
				fmt.Fprintln(a.stdout)
			}
			return writeAbstention(a.stdout, report)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func writeAbstention(w io.Writer, r eval.AbstentionReport) error {
	by := "by words alone"
	if r.Encoder != "" {
		by = "with " + r.Encoder
	}
	fmt.Fprintf(w, "%s, %s: %s, %s\n", r.Set, by, count(r.Splits, "split", "splits"), count(r.Questions, "question asked", "questions asked"))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "weights\tstrategy\tfalse answers\tright\tin full\tAUC\tECE")
	for _, of := range r.Weights {
		for _, row := range of.Rows {
			fmt.Fprintf(table, "%s\t%s\t%.1f%% (%d of %d)\t%.1f%% (%d of %d)\t%.1f%%\t\t\n", of.Weights, row.Strategy, 100*row.FalseShare, row.False, row.Unanswerable,
				100*row.RightShare, row.Right, row.Answerable, 100*float64(row.InFull)/float64(max(row.Answerable, 1)))
		}
		fmt.Fprintf(table, "%s\tprobability %.2f\t%.1f%%\t%.1f%%\t\t%.3f\t%.3f\n", of.Weights, of.AtMostFalse.Threshold, 100*of.AtMostFalse.False, 100*of.AtMostFalse.Right, of.AUC, of.ECE)
	}
	if r.Baseline != nil {
		fmt.Fprintf(table, "BM25\tprobability %.2f\t%.1f%%\t%.1f%%\t\t\t\n", r.Baseline.Threshold, 100*r.Baseline.False, 100*r.Baseline.Right)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if r.Learned {
		fmt.Fprintln(w, "the weights in the program were learned from this set, too: their figures are no forecast")
	}
	return writeCurves(w, r.Weights)
}

// writeCurves writes what each threshold does, and the calibration of the last weights, which
// have seen least.
func writeCurves(w io.Writer, all []eval.AbstentionResult) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "threshold\t")
	for _, of := range all {
		fmt.Fprintf(table, "%s: false\tright\t", of.Weights)
	}
	fmt.Fprintln(table)
	for i, p := range all[0].Curve {
		fmt.Fprintf(table, "%.2f\t", p.Threshold)
		for _, of := range all {
			fmt.Fprintf(table, "%.1f%%\t%.1f%%\t", 100*of.Curve[i].False, 100*of.Curve[i].Right)
		}
		fmt.Fprintln(table)
	}
	last := all[len(all)-1]
	fmt.Fprintf(table, "probability (%s)\tquestions\tmean\thave an answer\t\n", last.Weights)
	for _, b := range last.Bins {
		if b.Cases > 0 {
			fmt.Fprintf(table, "%.1f to %.1f\t%d\t%.2f\t%.2f\t\n", b.Low, b.High, b.Cases, b.Score, b.Right)
		}
	}
	return table.Flush()
}

// readRows reads what train-abstention has written to learn from.
func readRows(file string) (eval.AbstentionRows, error) {
	f, err := os.Open(file)
	if err != nil {
		return eval.AbstentionRows{}, err
	}
	defer f.Close()
	rows, err := eval.ParseAbstentionRows(f)
	if err != nil {
		return rows, fmt.Errorf("%s: %w", file, err)
	}
	return rows, nil
}

func (a *app) evalTrainAbstentionCommand() *cobra.Command {
	var f evalFlags
	var out, rows string
	cmd := &cobra.Command{
		Use:   "train-abstention FOLDER FOLDER...",
		Short: "Learn from labelled sets whether passages hold an answer",
		Long: `Train-abstention takes the answers to one half of the questions of each set away, then
those to the other, searches for all of them, and learns to tell the questions that are
left with their answer: by words alone, and by words and vectors. It prints, for each set,
what is reached on it by cross-validation (learned from the other sets and from four fifths
of this one's articles) and when it is left out: the AUC, how far probabilities are from shares (ECE),
and of the questions with an answer the share that is answered from a right passage where 5
of 100 of the others are answered, too, and both shares at the threshold that ask has.

It is deterministic: equal sets give equal bytes. The model in the binary was written by it,
to role/local/held.json.`,
		Example: `  assay eval train-abstention ./xquad-en ./clapnq ./pubmedqa --out role/local/held.json`,
		Args:    needSets,
		RunE: func(cmd *cobra.Command, folders []string) error {
			return a.evalTrainAbstention(cmd.Context(), folders, f, out, rows)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&out, "out", "", "write the model to this `file`")
	cmd.Flags().StringVar(&rows, "rows", "", "write what it was learned from to this `file`, for eval abstention --rows")
	return cmd
}

func (a *app) evalTrainAbstention(ctx context.Context, folders []string, f evalFlags, out, rows string) error {
	sets, parts, done, err := a.evalSets(ctx, folders, &f)
	if err != nil {
		return err
	}
	t, err := eval.TrainAbstention(ctx, sets, parts)
	done()
	if err != nil {
		return err
	}
	if out != "" {
		if err := writeCompact(out, t.Model); err != nil {
			return err
		}
	}
	if rows != "" {
		if err := writeCompact(rows, t.Rows); err != nil {
			return err
		}
	}
	if f.json {
		return writeJSON(a.stdout, t)
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "set\tby\tquestions\tcrossed: AUC\tECE\tat 5% false\tas asked: false\tright\tleft out: AUC\tECE\tat 5% false\tas asked: false\tright")
	for _, s := range t.Sets {
		fmt.Fprintf(table, "%s\t%s\t%d", s.Set, s.By, s.Questions)
		for _, of := range []eval.AbstentionFigures{s.Cross, s.Left} {
			fmt.Fprintf(table, "\t%.3f\t%.3f\t%.1f%%\t%.1f%%\t%.1f%%", of.AUC, of.ECE, 100*of.AtMostFalse.Right, 100*of.AtDefault.False, 100*of.AtDefault.Right)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// writeCompact writes a model with many numbers, for a file that the program embeds.
func writeCompact(file string, model any) error {
	data, err := json.Marshal(model)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
