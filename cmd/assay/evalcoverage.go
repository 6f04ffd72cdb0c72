package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/eval"
)

func (a *app) evalCoverageCommand() *cobra.Command {
	var f evalFlags
	var shares []int
	cmd := &cobra.Command{
		Use:   "coverage FOLDER...",
		Short: "Measure rankings while vectors are still being made",
		Long: `Coverage searches labelled sets as ask and search do by default when only a part
of their passages has vectors yet, as it is while a large folder is being read:
chosen at random, and those at the beginning. It prints nDCG@10 of each, and how
much more or less it is than with words alone, with an interval that holds the
difference for 95 of 100 sets of as many such questions.

What a FOLDER holds: see assay eval retrieval --help.`,
		Example: `  assay eval coverage ./scifact ./hotpotqa
  assay eval coverage ./scifact --percent 25 --percent 75 --json`,
		Args: needFolders,
		RunE: func(cmd *cobra.Command, folders []string) error {
			return a.evalCoverage(cmd.Context(), folders, f, shares)
		},
	}
	f.add(cmd)
	cmd.Flags().IntSliceVar(&shares, "percent", []int{0, 10, 50, 90}, "how many of 100 passages have vectors; may be repeated")
	return cmd
}

func (a *app) evalCoverage(ctx context.Context, folders []string, f evalFlags, percents []int) error {
	var shares []float64
	for _, p := range percents {
		if p < 0 || p > 100 {
			return usagef("--percent %d is not from 0 to 100", p)
		}
		shares = append(shares, float64(p)/100)
	}
	if err := a.openEval(ctx, &f); err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	if !f.json {
		fmt.Fprintln(table, "set\tvectors of\tnDCG@10\tbeside text alone")
	}
	for _, folder := range folders {
		err := a.evalSet(folder, f, func(set eval.Set, parts eval.Parts) error {
			report, err := eval.Coverage(ctx, set, parts, shares)
			if err != nil {
				return err
			}
			if f.json {
				return json.NewEncoder(a.stdout).Encode(report)
			}
			fmt.Fprintf(table, "%s\ttext alone\t%s\t\n", report.Set, figure(report.Text.NDCG10, report.Text.Low.NDCG10, report.Text.High.NDCG10))
			for _, row := range report.Rows {
				which := map[eval.Order]string{eval.AtRandom: "%.0f%%, at random", eval.FirstOnes: "the first %.0f%%"}[row.Order]
				fmt.Fprintf(table, "%s\t"+which+"\t%s\t%s\n", report.Set, 100*row.Share,
					figure(row.NDCG10, row.Low.NDCG10, row.High.NDCG10), difference(*row.Against))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return table.Flush()
}
