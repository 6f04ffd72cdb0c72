package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/report"
)

// reportFiles are the files that a report is written to. Files without a name are not written.
type reportFiles struct{ html, csv, figures string }

// write writes the files, each atomically.
func (f reportFiles) write(r answers.Report) error {
	for _, to := range []struct {
		path  string
		write func(io.Writer, answers.Report) error
	}{{f.html, report.HTML}, {f.csv, report.CSV}, {f.figures, report.FiguresCSV}} {
		if to.path == "" {
			continue
		}
		if err := writeFile(to.path, func(w io.Writer) error { return to.write(w, r) }); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) evalReportCommand() *cobra.Command {
	var files reportFiles
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Convert an evaluation to an HTML page or CSV",
		Long: `Report converts the output of assay eval answers --json to an HTML page (--html), or to
CSV with one row per question and strategy (--csv) or per figure (--figures-csv).

The page needs no network and runs no code from questions or answers. It is as
confidential as the documents. CSV cells that a spreadsheet would read as a formula
start with an apostrophe.`,
		Example: `  assay eval answers questions.jsonl --json > report.json
  assay eval report report.json --html report.html --csv questions.csv`,
		Args: oneArgument("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if files == (reportFiles{}) {
				return hinted{usagef("nothing to write"), "name a file with --html, --csv or --figures-csv"}
			}
			r, err := readReport(args[0])
			if err != nil {
				return err
			}
			return files.write(r)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&files.html, "html", "", "write an HTML page with plots and every question to this `file`")
	flags.StringVar(&files.csv, "csv", "", "write one row per question and strategy to this `file`")
	flags.StringVar(&files.figures, "figures-csv", "", "write one row per figure to this `file`")
	return cmd
}

// readReport reads a report that --json printed.
func readReport(path string) (answers.Report, error) {
	var r answers.Report
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%w: %s is not a report: %w", assay.ErrInvalid, path, err)
	}
	if len(r.Systems) == 0 {
		return r, hinted{fmt.Errorf("%w: %s is not a report: it has no systems", assay.ErrInvalid, path), "create one with: assay eval answers SET --json"}
	}
	return r, nil
}
