package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
)

// evalCoverage measures the default ranking while only a part of the passages has vectors.
func (a *app) evalCoverage(ctx context.Context, folders []string, f evalFlags, percents []int) error {
	var shares []float64
	for _, p := range percents {
		if p < 0 || p > 100 {
			return usagef("--coverage %d is outside 0 to 100", p)
		}
		shares = append(shares, float64(p)/100)
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	if !f.json {
		fmt.Fprintln(table, "set\tvectors of\tnDCG@10\tagainst text alone")
	}
	for _, folder := range folders {
		err := a.evalSet(folder, f, func(set testset.Set, parts retrieval.Parts) error {
			report, err := retrieval.Coverage(ctx, set, parts, shares)
			if err != nil {
				return err
			}
			if f.json {
				return json.NewEncoder(a.stdout).Encode(report)
			}
			fmt.Fprintf(table, "%s\ttext alone\t%s\t\n", report.Set, figure(report.Text.NDCG10, report.Text.Low.NDCG10, report.Text.High.NDCG10))
			for _, row := range report.Rows {
				which := map[retrieval.Order]string{retrieval.AtRandom: "%.0f%%, at random", retrieval.FirstOnes: "the first %.0f%%"}[row.Order]
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
