package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/eval/abstention"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
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
		Short: "Measure false answers after the passages with the answers are removed",
		Long: `Abstention removes the passages that answer half of the questions of each set, asks all
questions about the rest, and prints shares of the questions:

  false answers  unanswerable, but at least one claim is shown
  right          answerable, and a relevant passage is cited
  holds          answerable, and the text contains a reference answer
  in full        right, with the status answered

For static it also prints these at each answerability threshold (the setting
strategies.corrective.held), and how well the predicted probability separates
answerable from unanswerable questions (AUC, ECE). No language model is called.`,
		Example: `  assay eval abstention ./xquad-en
  assay eval abstention --strategy static,auto --splits 4 ./xquad-en`,
		Args: needFolders,
		RunE: func(cmd *cobra.Command, folders []string) error { return a.evalAbstention(cmd.Context(), folders, f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print a JSON object with every outcome for each set")
	flags.StringVar(&f.cache, "cache", "", "keep vectors in this `folder` (default: one in the cache folder)")
	flags.BoolVar(&f.noEncoder, "no-encoder", false, "search by words alone")
	flags.StringSliceVar(&f.strategies, "strategy", []string{"static"}, "strategies to measure, by `name`")
	flags.IntVar(&f.splits, "splits", 2, "ask all questions `n` times, each time without a different half")
	flags.IntVar(&f.questions, "questions", 0, "ask `n` questions, evenly spread (default: all)")
	return cmd
}

func (a *app) evalAbstention(ctx context.Context, folders []string, f abstentionFlags) error {
	if f.splits < 1 || f.questions < 0 {
		return usagef("--splits must be at least 1, and --questions 0 or more")
	}
	shared := evalFlags{cache: f.cache}
	if err := a.openEval(ctx, &shared); err != nil {
		return err
	}
	opts := abstention.Options{Strategies: f.strategies, Splits: f.splits, Questions: f.questions}
	if !f.noEncoder {
		encoders, err := a.encoders()
		if err != nil {
			return err
		}
		if encoders != nil {
			opts.Encoders = retrieval.CachedEncoders{Encoders: encoders, Dir: shared.cache}
		}
	}
	for i, folder := range folders {
		err := a.evalSet(folder, shared, func(set testset.Set, parts retrieval.Parts) error {
			opts.Progress, opts.Reader = parts.Progress, parts.Reader
			report, err := abstention.Measure(ctx, set, opts)
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

func writeAbstention(w io.Writer, r abstention.Report) error {
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
func writeCurve(w io.Writer, r abstention.Report) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "threshold\tfalse\tright\t")
	for _, p := range r.Curve {
		fmt.Fprintf(table, "%.2f\t%.1f%%\t%.1f%%\t\n", p.Threshold, 100*p.False, 100*p.Right)
	}
	fmt.Fprintln(table, "probability\tquestions\tmean\tanswerable\t")
	for _, b := range r.Bins {
		if b.Cases > 0 {
			fmt.Fprintf(table, "%.1f to %.1f\t%d\t%.2f\t%.2f\t\n", b.Low, b.High, b.Cases, b.Score, b.Right)
		}
	}
	return table.Flush()
}
