package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/eval"
)

func (a *app) evalCostCommand() *cobra.Command {
	var f evalFlags
	var questions int
	cmd := &cobra.Command{
		Use:   "cost FOLDER...",
		Short: "Measure what saves calls and tokens, and what it costs in evidence",
		Long: `Cost asks each question of a labelled set as it is asked by default, with one strong
hit handed over alone, and with a small generator for simple questions. Evidence is
chosen by local roles; the generator is a model that replies by a rule, at once, and
says nothing of what a model is worth. Means of a question:

  handed    passages that the generator reads
  recall    the share of the relevant passages that are among them
  all gold  the share of questions with every relevant passage among them
  tokens    of all models, input and output; large: those of the large generator
  kept      the share of the input that begins like an earlier request, which a
            provider may have kept

A FOLDER is as for assay eval retrieval.`,
		Example: `  assay eval cost ./clapnq ./hotpotqa
  assay eval cost --questions 100 --json ./xquad-en`,
		Args: needFolders,
		RunE: func(cmd *cobra.Command, folders []string) error {
			return a.evalCost(cmd.Context(), folders, f, questions)
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&questions, "questions", 0, "ask the first `n` of each set (default: all)")
	return cmd
}

func (a *app) evalCost(ctx context.Context, folders []string, f evalFlags, questions int) error {
	if questions < 0 {
		return usagef("--questions is negative")
	}
	if err := a.openEval(ctx, &f); err != nil {
		return err
	}
	var reports []eval.CostReport
	for _, folder := range folders {
		err := a.evalSet(folder, f, func(set eval.Set, parts eval.Parts) (err error) {
			o, err := eval.Open(ctx, set, parts)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, o.Close()) }()
			report, err := o.Cost(ctx, questions)
			if err == nil && f.json {
				return json.NewEncoder(a.stdout).Encode(report)
			}
			reports = append(reports, report)
			return err
		})
		if err != nil {
			return err
		}
	}
	if f.json {
		return nil
	}
	return writeCosts(a.stdout, reports)
}

func writeCosts(w io.Writer, reports []eval.CostReport) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "set\tway\thanded\trecall\tall gold\tcalls\ttokens\tlarge\tkept")
	for _, r := range reports {
		for _, way := range r.Ways {
			fmt.Fprintf(table, "%s\t%s\t%.1f\t%s\t%s\t%.2f\t%.0f\t%.0f\t%.0f%%\n", r.Set, way.Way, way.Handed,
				figure(way.Recall.Mean, way.Recall.Low, way.Recall.High), figure(way.AllGold.Mean, way.AllGold.Low, way.AllGold.High),
				way.Calls, way.Tokens, way.Large, 100*way.Kept)
		}
	}
	return table.Flush()
}
