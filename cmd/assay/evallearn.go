package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/provider/embedded"
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
internal/retrieve/relevance.json.`,
		Example: `  assay eval calibrate ./scifact ./hotpotqa ./xquad --out internal/retrieve/relevance.json`,
		Args:    needSets,
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

// evalSets reads the labelled sets in folders and opens the encoder. The returned function clears
// the progress line.
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
	reader, err := embedded.OpenReader()
	if err != nil {
		return nil, eval.Parts{}, nil, err
	}
	shown := a.progress()
	return sets, eval.Parts{
		Embedder: f.embedder, CacheDir: f.cache, Reader: reader,
		Progress: func(p eval.Progress) { shown.update("%s", evalProgress(p)) },
	}, shown.clear, nil
}

// writeModel writes a learned model, for a file that the program embeds.
func writeModel(file string, model any) error {
	data, err := json.MarshalIndent(model, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

func (a *app) evalTrainCommand() *cobra.Command {
	var f evalFlags
	var relevance, reranker string
	cmd := &cobra.Command{
		Use:   "train FOLDER FOLDER...",
		Short: "Learn relevance and the reranker from labelled sets",
		Long: `Train learns all that the program learns from labelled sets in the BEIR layout,
two or more: relevance, as calibrate does, and the reranker. It prints what search
reaches on each set with what was learned from the others. It is deterministic. The
models in the binary were written by it, to internal/retrieve/relevance.json and
internal/rerank/model.json.`,
		Example: `  assay eval train ./scifact ./hotpotqa ./xquad --relevance internal/retrieve/relevance.json --reranker internal/rerank/model.json`,
		Args:    needSets,
		RunE: func(cmd *cobra.Command, folders []string) error {
			return a.evalTrain(cmd.Context(), folders, f, relevance, reranker)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&relevance, "relevance", "", "write the relevance model to this `file`")
	cmd.Flags().StringVar(&reranker, "reranker", "", "write the reranker to this `file`")
	return cmd
}

func (a *app) evalTrain(ctx context.Context, folders []string, f evalFlags, relevance, reranker string) error {
	sets, parts, done, err := a.evalSets(ctx, folders, &f)
	if err != nil {
		return err
	}
	defer done()
	t, err := eval.Train(ctx, sets, parts)
	if err != nil {
		return err
	}
	if relevance != "" {
		if err := writeModel(relevance, t.Calibration.Model); err != nil {
			return err
		}
	}
	if reranker != "" {
		if err := writeModel(reranker, t.Model); err != nil {
			return err
		}
	}
	rankings := eval.Rankings(parts.Embedder != nil, false)
	var reports []eval.RetrievalReport
	for _, l := range t.LeftOut {
		own, err := l.Parts(parts)
		if err != nil {
			return err
		}
		report, err := eval.Retrieval(ctx, l.Set, own, rankings)
		if err != nil {
			return err
		}
		reports = append(reports, report)
	}
	done()
	for i, report := range reports {
		if f.json {
			if err := json.NewEncoder(a.stdout).Encode(report); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(a.stdout, "learned without %s: bridge %.2f, without vectors %.2f\n",
			report.Set, t.LeftOut[i].Rerank.Vector[1], t.LeftOut[i].Rerank.Words[1])
		if err := writeRetrieval(a.stdout, report, true); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) evalFitReadingCommand() *cobra.Command {
	var f evalFlags
	var queries int
	cmd := &cobra.Command{
		Use:   "fit-reading FOLDER...",
		Short: "Measure how much the reader should count in the order of hits",
		Long: `Fit-reading searches labelled sets in the BEIR layout as ask does, has the reader read the
best hits, and prints nDCG@10 for each weight of its relevance beside the score that
ordered them, which weight is best in the mean of the sets, and which one the other sets
choose for each. It is deterministic. The weight in the program is retrieve.ReadWeight.
The sets should be none that the reader was trained on.`,
		Example: `  assay eval fit-reading ./scifact ./hotpotqa ./xquad`,
		Args:    needFolders,
		RunE: func(cmd *cobra.Command, folders []string) error {
			return a.evalFitReading(cmd.Context(), folders, f, queries)
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&queries, "questions", 100, "at most `so many` of a set")
	return cmd
}

func (a *app) evalFitReading(ctx context.Context, folders []string, f evalFlags, queries int) error {
	if queries < 1 {
		return usagef("--questions %d is less than 1", queries)
	}
	sets, parts, done, err := a.evalSets(ctx, folders, &f)
	if err != nil {
		return err
	}
	fit, err := eval.FitReading(ctx, sets, parts, queries)
	done()
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(a.stdout, fit)
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "set\tquestions\tothers choose")
	for _, w := range fit.Weights {
		fmt.Fprintf(table, "\t%.2f", w)
	}
	fmt.Fprintln(table)
	for _, s := range fit.Sets {
		fmt.Fprintf(table, "%s\t%d\t%.2f", s.Set, s.Queries, s.LeftOut)
		for _, x := range s.NDCG10 {
			fmt.Fprintf(table, "\t%.3f", x)
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintf(table, "best of all\t\t%.2f\n", fit.Best)
	return table.Flush()
}
