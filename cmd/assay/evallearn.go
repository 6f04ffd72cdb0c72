package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/eval"
)

func (a *app) evalCalibrateCommand() *cobra.Command {
	var f evalFlags
	var out string
	cmd := &cobra.Command{
		Use:   "calibrate FOLDER FOLDER...",
		Short: "Fit the relevance model on labelled sets",
		Long: `Calibrate fits the model that turns a hit's scores and words into its relevance,
on two or more sets in the BEIR layout, and prints how well it does on each set
when fitted on the others: by words alone, and by words and the encoder's
similarities. It is deterministic. The model in the binary was written by it to
retrieve/relevance.json.`,
		Example: `  assay eval calibrate ./scifact ./hotpotqa ./xquad --out retrieve/relevance.json`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, folders []string) error {
			return a.evalCalibrate(cmd.Context(), folders, f, out)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&out, "out", "", "write the model to this `file`")
	return cmd
}

func (a *app) evalCalibrate(ctx context.Context, folders []string, f evalFlags, out string) error {
	sets, parts, done, err := a.evalSets(ctx, folders, &f)
	if err != nil {
		return err
	}
	cal, err := eval.Calibrate(ctx, sets, parts)
	done()
	if err != nil {
		return err
	}
	if out != "" {
		if err := writeModel(out, cal.Model); err != nil {
			return err
		}
	}
	if f.json {
		return writeJSON(a.stdout, cal)
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "left out\tby\tauc\tbrier\taccepted\trefused\trefused_near\tbm25 ndcg@10\trelevance ndcg@10")
	for _, s := range cal.Sets {
		writeJudgement(table, s.Set, "words", s.Judgement)
		fmt.Fprintf(table, "\t%.3f\t%.3f\n", s.BM25NDCG10, s.RelevanceNDCG10)
		if s.Vectors != nil {
			writeJudgement(table, "", "words and vectors", *s.Vectors)
			fmt.Fprintln(table)
		}
	}
	return table.Flush()
}

func writeJudgement(table *tabwriter.Writer, set, by string, j eval.Judgement) {
	fmt.Fprintf(table, "%s\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f", set, by, j.AUC, j.Brier, j.Accepted, j.Refused, j.RefusedNear)
}

// evalSets reads folders to learn from and opens the encoder. What it returns last
// takes the progress off the terminal.
func (a *app) evalSets(ctx context.Context, folders []string, f *evalFlags) ([]eval.Set, eval.Parts, func(), error) {
	if err := a.openEval(ctx, f); err != nil {
		return nil, eval.Parts{}, nil, err
	}
	var sets []eval.Set
	for _, folder := range folders {
		set, err := eval.ReadSet(folder)
		if err != nil {
			return nil, eval.Parts{}, nil, err
		}
		sets = append(sets, set)
	}
	shown := a.progress()
	return sets, eval.Parts{
		Embedder: f.embedder, CacheDir: f.cache,
		Progress: func(p eval.Progress) { shown.update("%s", evalProgress(p)) },
	}, shown.clear, nil
}

// writeModel writes what was learned, for a file that the program embeds.
func writeModel(file string, model any) error {
	data, err := json.MarshalIndent(model, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
