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
  holds          the share of the others whose answer, as it is shown, has the words of a
                 right one, where the set has them
  in full        the share of those with the status answered, too

Halves are drawn by passage, by hash: splits 0 and 1 are each other's complement, 2 and
3 are others, and so on. Of the others of a document, passages stay: what is left is
near to what is asked.

Then comes what static would do by the probability alone that the passages answer the
question: the threshold at which 5 of 100 questions without an answer are answered, and how
many right answers it leaves; how well the probabilities tell the two kinds apart (AUC) and
how far they are from the shares that were seen (ECE); and both shares for each threshold.
The threshold is the limit held of the configuration.

No language model is asked. What a FOLDER holds: see assay eval retrieval --help. Equal
sets give equal figures.`,
		Example: `  assay eval abstention ./xquad-en
  assay eval abstention --strategy static,auto --splits 4 ./xquad-en ./clapnq
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
	for i, folder := range folders {
		err := a.evalSet(folder, shared, func(set eval.Set, parts eval.Parts) error {
			opts.Progress, opts.Reader = parts.Progress, parts.Reader
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
	fmt.Fprintln(table, "strategy\tfalse answers\tright\tholds\tin full")
	for _, row := range r.Rows {
		fmt.Fprintf(table, "%s\t%.1f%% (%d of %d)\t%.1f%% (%d of %d)\t%.1f%% (%d of %d)\t%.1f%%\n", row.Strategy, 100*row.FalseShare, row.False, row.Unanswerable,
			100*row.RightShare, row.Right, row.Answerable, 100*row.HoldShare, row.Holds, row.Known, 100*float64(row.InFull)/float64(max(row.Answerable, 1)))
	}
	fmt.Fprintf(table, "probability %.2f\t%.1f%%\t%.1f%%\t\t\n", r.AtMostFalse.Threshold, 100*r.AtMostFalse.False, 100*r.AtMostFalse.Right)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "AUC %.3f, ECE %.3f\n", r.AUC, r.ECE)
	return writeCurve(w, r)
}

// writeCurve prints the effect of each threshold and the calibration of the probabilities.
func writeCurve(w io.Writer, r eval.AbstentionReport) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "threshold\tfalse\tright\t")
	for _, p := range r.Curve {
		fmt.Fprintf(table, "%.2f\t%.1f%%\t%.1f%%\t\n", p.Threshold, 100*p.False, 100*p.Right)
	}
	fmt.Fprintln(table, "probability\tquestions\tmean\thave an answer\t")
	for _, b := range r.Bins {
		if b.Cases > 0 {
			fmt.Fprintf(table, "%.1f to %.1f\t%d\t%.2f\t%.2f\t\n", b.Low, b.High, b.Cases, b.Score, b.Right)
		}
	}
	return table.Flush()
}

func (a *app) evalFitAbstentionCommand() *cobra.Command {
	var f evalFlags
	var out string
	cmd := &cobra.Command{
		Use:   "fit-abstention FOLDER...",
		Short: "Fit how likely passages answer a question to labelled sets",
		Long: `Fit-abstention takes the answers to one half of the questions of each set away, then those
to the other, searches for all of them, has the reader read the best passages, and fits a
logistic regression to tell the questions that are left with their answer. Queries without a
relevant passage are asked as unanswerable. It prints, for
each set, the AUC and the calibration error of a model that was fitted to the others, and
what that does where 5 of 100 questions without an answer are answered.

It is deterministic: equal sets give equal bytes. The model in the program was written by it,
to internal/role/local/answerability.json. The sets should be none that the reader was trained on.`,
		Example: `  assay eval fit-abstention ./squad ./policies --out internal/role/local/answerability.json`,
		Args:    needFolders,
		RunE: func(cmd *cobra.Command, folders []string) error {
			return a.evalFitAbstention(cmd.Context(), folders, f, out)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&out, "out", "", "write the model to this `file`")
	return cmd
}

func (a *app) evalFitAbstention(ctx context.Context, folders []string, f evalFlags, out string) error {
	sets, parts, done, err := a.evalSets(ctx, folders, &f)
	if err != nil {
		return err
	}
	fit, err := eval.FitAbstention(ctx, sets, parts)
	done()
	if err != nil {
		return err
	}
	if out != "" {
		if err := writeCompact(out, fit.Model); err != nil {
			return err
		}
	}
	if f.json {
		return writeJSON(a.stdout, fit)
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "set left out\tquestions\tAUC\tECE\tright at 5% false\tat\tas asked: false\tright")
	for _, s := range fit.Sets {
		fmt.Fprintf(table, "%s\t%d\t%.3f\t%.3f\t%.1f%%\t%.2f\t%.1f%%\t%.1f%%\n", s.Set, s.Questions, s.AUC, s.ECE, 100*s.AtMostFalse.Right, s.AtMostFalse.Threshold, 100*s.AtDefault.False, 100*s.AtDefault.Right)
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
