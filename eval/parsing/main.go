// Command parsing compares the documents that assay parses with references in Markdown:
//
//	go run ./eval/parsing FOLDER
//	go run ./eval/parsing -format pdf -tools TOOLS -verbose FOLDER
//
// FOLDER has a folder for each format, with the files in "sources" and their references in
// "groundtruth": NAME.md for the file NAME, with or without its extension. Files without a reference
// are left out. TOOLS has the results of other programs, which scripts/parsing-tools writes.
//
// A document is rendered as Markdown, and both sides lose their markup in the same way. The figures
// are means over files, in [0, 1], and a file that cannot be parsed counts as 0:
//
//   - words: F1 of the bags of words. Words are runs of letters and digits after Unicode
//     normalisation (NFKC) in lower case; each Han and kana character is a word.
//   - order: the normalised indel similarity 2·LCS/(a+b) of the words in order, by characters. It is
//     the measure of reading order of opendataloader-bench
//     (https://github.com/opendataloader-project/opendataloader-bench), where it is called NID.
//   - headings: F1 of the bags of headings, compared as words, whatever their levels. Over the files
//     with a heading on either side.
//   - cells: F1 of the bags of table cells that have words. Over the files with a cell on either side.
//
// References by docling are the output of models and have errors of their own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "parsing:", err)
		os.Exit(1)
	}
}

// command measures the files that args select.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("parsing", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: parsing [flags] FOLDER")
		flags.PrintDefaults()
	}
	var opts Options
	flags.StringVar(&opts.Format, "format", "", "measure the format `name` only: a folder, or pdf for the PDFs of all (default: all)")
	flags.StringVar(&opts.Match, "match", "", "measure the files whose name matches the shell `pattern`")
	flags.StringVar(&opts.Tools, "tools", "", "also measure the results of other programs in `folder`")
	flags.StringVar(&opts.Out, "out", "", "write the Markdown of each file into `folder`")
	verbose := flags.Bool("verbose", false, "also print the figures of each file")
	asJSON := flags.Bool("json", false, "print the figures of each file as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return errors.New("want one FOLDER")
	}
	results, err := Measure(ctx, flags.Arg(0), opts)
	if err != nil {
		return err
	}
	if *asJSON {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(results)
	}
	return write(stdout, results, *verbose)
}

// write prints the means by format and tool, and the files below if verbose is set.
func write(w io.Writer, results []Result, verbose bool) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "format\ttool\tfiles\tfailed\twords\torder\theadings\tcells\tseconds\t")
	for len(results) > 0 {
		n := 1
		for n < len(results) && results[n].Format == results[0].Format && results[n].Tool == results[0].Tool {
			n++
		}
		m := meanOf(results[:n])
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%.3f\t%.3f\t%s\t%s\t%.2f\t\n", results[0].Format, results[0].Tool,
			n, m.failed, m.words, m.order, m.headings, m.cells, m.seconds)
		for _, r := range results[:n] {
			if verbose {
				fmt.Fprintf(table, "\t  %s\t\t\t%.3f\t%.3f\t%s\t%s\t%.2f\t%s\n", r.File, r.Words, r.Order, share(r.Headings), share(r.Cells), r.Seconds, r.Error)
			}
		}
		results = results[n:]
	}
	return table.Flush()
}

func share(f *float64) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *f)
}

// A mean is the means over files.
type mean struct {
	failed                int
	words, order, seconds float64
	headings, cells       string // with the number of files
}

func meanOf(results []Result) mean {
	var m mean
	var headings, cells []float64
	for _, r := range results {
		if r.Error != "" {
			m.failed++
		}
		m.words += r.Words / float64(len(results))
		m.order += r.Order / float64(len(results))
		m.seconds += r.Seconds
		if r.Headings != nil {
			headings = append(headings, *r.Headings)
		}
		if r.Cells != nil {
			cells = append(cells, *r.Cells)
		}
	}
	m.headings, m.cells = meanOver(headings), meanOver(cells)
	return m
}

func meanOver(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return fmt.Sprintf("%.3f (%d)", sum/float64(len(values)), len(values))
}
