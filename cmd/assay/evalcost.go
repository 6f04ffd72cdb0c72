package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/strategies"
	"github.com/assay-rag/assay/eval/testset"
)

// evalCost measures what saves calls and tokens.
func (a *app) evalCost(ctx context.Context, folders []string, f evalFlags, questions int) error {
	var reports []strategies.CostReport
	for _, folder := range folders {
		err := a.evalSet(folder, f, func(set testset.Set, parts retrieval.Parts) (err error) {
			o, err := retrieval.Open(ctx, set, parts)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, o.Close()) }()
			report, err := strategies.Cost(ctx, o, questions)
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

func writeCosts(w io.Writer, reports []strategies.CostReport) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "set\tvariant\tpassages\trecall\tall gold\tcalls\ttokens\tlarge\tkept")
	for _, r := range reports {
		for _, way := range r.Ways {
			fmt.Fprintf(table, "%s\t%s\t%.1f\t%s\t%s\t%.2f\t%.0f\t%.0f\t%.0f%%\n", r.Set, way.Way, way.Handed,
				figure(way.Recall.Mean, way.Recall.Low, way.Recall.High), figure(way.AllGold.Mean, way.AllGold.Low, way.AllGold.High),
				way.Calls, way.Tokens, way.Large, 100*way.Kept)
		}
	}
	return table.Flush()
}
