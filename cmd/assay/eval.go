package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

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
	cmd.AddCommand(a.evalRetrievalCommand(), a.evalCoverageCommand(), a.evalAnswersCommand(), a.evalCalibrateCommand(), a.evalTrainCommand(), a.evalStrategiesCommand(), a.evalCostCommand())
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
questions that the documents do not answer and that were refused. No language model is
asked, whatever is configured: the count is that of assay's own roles.

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
	e, err := a.openEngine(ctx, dir, searching)
	if err != nil {
		return err
	}
	defer e.Close()
	shown := a.progress()
	defer shown.clear()
	request := engine.IngestRequest{Paths: docs, Wait: a.installed != nil, Progress: shown.ingest, Embedding: shown.embed}
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
