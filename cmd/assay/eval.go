package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval"
)

func (a *app) evalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Measure retrieval and answers on labelled questions",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.evalRetrievalCommand(), a.evalCoverageCommand(), a.evalAnswersCommand(), a.evalCalibrateCommand())
	return cmd
}

func (a *app) evalAnswersCommand() *cobra.Command {
	var asJSON bool
	var docs []string
	cmd := &cobra.Command{
		Use:   "answers --docs PATH GOLDEN",
		Short: "Ask golden questions and count the right citations",
		Long: `Answers ingests documents into a temporary store, with their vectors, asks each
question of GOLDEN, and counts the answers that cite a right section, and the
questions that the documents do not answer and that were refused.

GOLDEN has one JSON object a line: {"question": …, "document": "end of its path",
"sections": ["any of these headings"]}, without sections when the documents do
not answer the question.`,
		Example: `  assay eval answers --docs "$(go env GOROOT)/doc" eval/testdata/godoc.jsonl`,
		Args:    oneArgument("GOLDEN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(docs) == 0 {
				return hinted{usagef("no documents"), "give them with --docs PATH"}
			}
			return a.evalAnswers(cmd.Context(), docs, args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report with every outcome as JSON")
	cmd.Flags().StringArrayVar(&docs, "docs", nil, "a file or folder `path`; may be repeated")
	return cmd
}

func (a *app) evalAnswers(ctx context.Context, docs []string, file string, asJSON bool) error {
	golden, err := eval.ReadGolden(file)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "assay-eval-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	e, err := engine.Open(ctx, a.engineConfig(dir))
	if err != nil {
		return err
	}
	defer e.Close()
	shown := a.progress()
	defer shown.clear()
	request := engine.IngestRequest{Paths: docs, Wait: a.encoders() != nil, Progress: shown.ingest, Embedding: shown.embed}
	if _, err := e.Ingest(ctx, request); err != nil {
		return err
	}
	shown.update("asking %s", count(len(golden), "question", "questions"))
	report, err := eval.Answers(ctx, e, golden)
	shown.clear()
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, report)
	}
	for _, o := range report.Outcomes {
		if !o.Right {
			fmt.Fprintf(a.stdout, "wrong: %s (%s)\n", o.Question, o.Status)
			for _, c := range o.Cited {
				fmt.Fprintf(a.stdout, "  cited %s\n", c)
			}
		}
	}
	fmt.Fprintf(a.stdout, "%s: %d of %d cite a right section (%d with the first statement), %d of %d refused\n",
		filepath.Base(file), report.Right, report.Answerable, report.RightFirst, report.Refused, report.Unanswerable)
	return nil
}

func (a *app) evalCalibrateCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "calibrate FOLDER FOLDER...",
		Short: "Fit the relevance model on labelled sets",
		Long: `Calibrate fits the model that turns a hit's scores and words into its relevance,
on two or more sets in the BEIR layout, and prints how well it does on each set
when fitted on the others. It is deterministic. The model in the binary was
written by it to retrieve/relevance.json.`,
		Example: `  assay eval calibrate ./scifact ./hotpotqa ./xquad --out retrieve/relevance.json`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, folders []string) error {
			return a.evalCalibrate(cmd.Context(), folders, out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write the model to this `file`")
	return cmd
}

func (a *app) evalCalibrate(ctx context.Context, folders []string, out string) error {
	var sets []eval.Set
	for _, folder := range folders {
		set, err := eval.ReadSet(folder)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	cal, err := eval.Calibrate(ctx, sets)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "left out\tauc\tbrier\taccepted\trefused\trefused_near\tbm25 ndcg@10\trelevance ndcg@10")
	for _, s := range cal.Sets {
		fmt.Fprintf(table, "%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\n",
			s.Set, s.AUC, s.Brier, s.Accepted, s.Refused, s.RefusedNear, s.BM25NDCG10, s.RelevanceNDCG10)
	}
	if err := table.Flush(); err != nil || out == "" {
		return err
	}
	data, err := json.MarshalIndent(cal.Model, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(data, '\n'), 0o644)
}
