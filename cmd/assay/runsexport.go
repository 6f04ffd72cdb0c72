package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/testset"
)

func (a *app) exportRunsCommand() *cobra.Command {
	var out string
	var limit int
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Export runs for correction, as a set for assay eval",
		Long: `Export writes one JSON line per run with an answer, newest first: the question, the answer
and its citations, and empty fields for a correction. In each line do one of these:

  set "correct" to true if the answer was right (for status not_found: if refusing was
  right), or
  fill in "answers" with right answers, "gold" with the places that support them, or
  both: [{"document": "end of its path", "quote": "words that stand there"}], or
  set "unanswerable" to true if the documents do not answer the question.

assay eval skips lines without a correction. An existing file is not overwritten. The
export quotes the documents and is as confidential as they are.`,
		Example: `  assay runs export --out runs.jsonl
  assay eval runs.jsonl`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit %d is negative", limit)
			}
			return a.exportRuns(cmd.Context(), out, limit)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write to this `file` (default: standard output)")
	cmd.Flags().IntVar(&limit, "limit", 0, "export at most the newest `n` runs (default: all)")
	return cmd
}

func (a *app) exportRuns(ctx context.Context, out string, limit int) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	runs, err := e.Runs(ctx, assay.Local(), limit)
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	exported := 0
	for _, summary := range runs {
		if !exports(summary) {
			continue
		}
		x, err := exportedRun(ctx, e, summary.ID)
		if errors.Is(err, assay.ErrNotFound) {
			continue // it read documents that are no longer visible
		}
		if err == nil {
			err = encoder.Encode(x)
		}
		if err != nil {
			return err
		}
		exported++
	}
	if out == "" {
		_, err := a.stdout.Write(lines.Bytes())
		return err
	}
	if err := writeNew(out, lines.Bytes()); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s written to %s; correct them, then: assay eval %s\n", count(exported, "run", "runs"), shortPath(out), shellQuote(out))
	return nil
}

// exports reports whether a run is exported: its question was asked for its own sake, and answered.
func exports(r engine.RunSummary) bool {
	answered := r.State == assay.RunDone && r.Status != assay.Rejected
	asked := !r.Measuring && !r.Describing && r.ForkedFrom == nil
	return answered && asked
}

// exportedRun returns the export of a run.
func exportedRun(ctx context.Context, e *engine.Engine, id string) (testset.Exported, error) {
	r, _, err := e.Run(ctx, assay.Local(), id)
	if err != nil {
		return testset.Exported{}, err
	}
	return testset.Export(r)
}

// writeNew writes a file that must not exist yet, so that no corrections of the user are
// overwritten.
func writeNew(file string, data []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return hinted{usagef("%s already exists", file), "name another file, or remove it"}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
