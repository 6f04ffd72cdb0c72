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
		Short: "Write runs for people to correct, as a set for assay eval",
		Long: `Export writes a line of JSON for each run that has an answer, the newest first: the
question, what was answered and cited, and room for what is right. For each line either

  set "correct" to true, where the answer was right as it was given (with the status
  not_found: where it was right to refuse), or
  fill in "answers" with right answers, "gold" with the places that they rest on, or
  both: [{"document": "end of its path", "quote": "words that stand there"}], or
  set "unanswerable" to true, where the documents do not answer it.

Lines that nobody has touched are left out by assay eval. A file that is there is not
written over. What is exported quotes the documents: it is as confidential as they are.`,
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
	cmd.Flags().IntVar(&limit, "limit", 0, "look at this many runs at most (default: all)")
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
		if summary.State != assay.RunDone || summary.Measuring || summary.ForkedFrom != nil {
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

// exportedRun returns the export of a run.
func exportedRun(ctx context.Context, e *engine.Engine, id string) (testset.Exported, error) {
	r, _, err := e.Run(ctx, assay.Local(), id)
	if err != nil {
		return testset.Exported{}, err
	}
	var req engine.Request
	if err := json.Unmarshal(r.Request, &req); err != nil {
		return testset.Exported{}, fmt.Errorf("run %s: its request cannot be read: %w: %w", id, assay.ErrDamaged, err)
	}
	return testset.Export(r, req.History, req.Filter, req.Collections), nil
}

// writeNew writes a file that must not exist yet, so that no corrections of the user are
// overwritten.
func writeNew(file string, data []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return hinted{usagef("%s is there already", file), "name another file, or remove it"}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
