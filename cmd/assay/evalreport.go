package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/report"
)

// reportFiles are the files that a report is written to. Files without a name are not written.
type reportFiles struct{ html, csv, figures string }

func (f *reportFiles) add(cmd *cobra.Command, html string) {
	flags := cmd.Flags()
	flags.StringVar(&f.html, html, "", "write the report as a page of HTML to this `file`, with plots and every question;\nit needs no network")
	flags.StringVar(&f.csv, "csv", "", "write a row for each question and strategy to this `file`")
	flags.StringVar(&f.figures, "figures-csv", "", "write a row for each figure to this `file`")
}

// write writes the files, each atomically.
func (f reportFiles) write(r eval.Report) error {
	for _, to := range []struct {
		path  string
		write func(io.Writer, eval.Report) error
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
		Short: "Write the report of an evaluation as a page or as CSV",
		Long: `Report reads what assay eval answers --json has printed, and writes it as a page of
HTML for people (--html), or as CSV for programs: a row for each question (--csv), or for
each figure (--figures-csv). assay eval answers writes the same files with --report,
--csv and --figures-csv.

The page is one file that needs nothing else: it asks for nothing over a network, and
nothing in questions and answers is run. It holds them all: it is as confidential as
the documents.

In CSV a cell of text that a spreadsheet would take for a formula (it begins with =, +,
-, @, a tab or a line break) has an apostrophe before it.`,
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
	files.add(cmd, "html")
	return cmd
}

// readReport reads a report that --json printed.
func readReport(path string) (eval.Report, error) {
	var r eval.Report
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%w: %s is no report: %w", assay.ErrInvalid, path, err)
	}
	if len(r.Systems) == 0 {
		return r, hinted{fmt.Errorf("%w: %s is no report: it has no systems", assay.ErrInvalid, path), "assay eval answers SET --json prints one"}
	}
	return r, nil
}
