// Command handwritten measures assay on the evaluation sets in eval/testdata, which were written by
// hand. It prints how often each figure holds:
//
//	go run ./eval/handwritten eval/testdata
//	go run ./eval/handwritten -set statements,paraphrased -kinds eval/testdata
//
// The README.md of the folder describes the sets:
//
//   - statements: false statements that the local verifier rejects, and fair paraphrases that it
//     rejects as well. It judges claims and passages like those of answers.
//   - nearmiss: questions that one paragraph answers, or only seems to answer, asked with static over
//     that paragraph alone and over all paragraphs. A question is right if the answer has the expected
//     words, and falsely answered if any claim is shown.
//   - conflicts: pairs of documents that conflict and are reported as conflicting, and pairs that
//     agree and are reported as well.
//   - everyday: questions over parts of four manuals. It counts answers that contain the expected
//     words, at all, within 60 words, and for questions worded differently from the text; complete
//     lists; and refused unanswerable questions.
//   - handbook: the same over four documents of the folder.
//   - paraphrased: right answers in other words, written by a scripted model, that whole runs show,
//     with the local verifier and with a scripted one.
//
// The sets nearmiss and everyday need texts that are not in the folder: -data names the folder with
// data/retrieval and data/corpora. Without it they are left out. No language model is asked, and
// equal sets give equal figures.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"

	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "handwritten:", err)
		os.Exit(1)
	}
}

// command measures the sets that args select.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("handwritten", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: handwritten [flags] FOLDER")
		flags.PrintDefaults()
	}
	var opts Options
	var sets string
	flags.StringVar(&sets, "set", "", "measure these sets, by `name`, separated by commas (default: all)")
	flags.IntVar(&opts.Limit, "limit", 0, "measure `n` rows of each set, evenly spread (default: all)")
	flags.StringVar(&opts.Data, "data", os.Getenv("ASSAY_TESTDATA"), "`folder` with data/retrieval and data/corpora")
	cache := flags.String("cache", "", "keep vectors in this `folder` (default: assay/eval in the user's cache folder)")
	lexical := flags.Bool("no-encoder", false, "search and judge by words alone")
	asJSON := flags.Bool("json", false, "print the figures as JSON, by kind")
	kinds := flags.Bool("kinds", false, "also print the figures by kind")
	out := flags.String("out", "", "write a line for each row to this `file`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || opts.Limit < 0 {
		flags.Usage()
		return errors.New("want one FOLDER and no negative limit")
	}
	if sets != "" {
		opts.Sets = strings.Split(sets, ",")
	}
	w, err := Read(flags.Arg(0))
	if err != nil {
		return err
	}
	opts.Reader = func() (llm.Reader, error) { return embedded.OpenReader() }
	opts.Progress = eval.ProgressTo(stderr)
	if !*lexical {
		if opts.Encoders, err = encoders(*cache); err != nil {
			return err
		}
	}
	report, err := w.Measure(ctx, opts)
	if err != nil {
		return err
	}
	if err := writeOutcomes(*out, report.Outcomes); err != nil {
		return err
	}
	if *asJSON {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	return report.write(stdout, *kinds)
}

// encoders returns the encoder in the program with a cache in a folder.
func encoders(cache string) (retrieval.CachedEncoders, error) {
	cache, err := retrieval.CacheDir(cache)
	if err != nil {
		return retrieval.CachedEncoders{}, fmt.Errorf("%w; name a folder with -cache", err)
	}
	return retrieval.CachedEncoders{Encoders: embedded.Encoders{}, Dir: cache}, nil
}

// writeOutcomes writes a line for each row. An empty file name writes nothing.
func writeOutcomes(file string, outcomes []Outcome) error {
	if file == "" {
		return nil
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	for _, o := range outcomes {
		if err := encoder.Encode(o); err != nil {
			return err
		}
	}
	return os.WriteFile(file, lines.Bytes(), 0o600)
}

// write prints the figures, and those by kind if kinds is set.
func (r Report) write(w io.Writer, kinds bool) error {
	by := "by words alone"
	if r.Encoder != "" {
		by = "with " + r.Encoder
	}
	fmt.Fprintf(w, "hand-written sets, %s\n", by)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "set\tfigure\tshare\t\tbetter")
	for _, f := range r.Figures {
		fmt.Fprintf(table, "%s\t%s\t%.1f%%\t%d of %d\t%s\n", f.Set, f.Name, 100*f.Share, f.Count, f.Of, f.Goal)
		if !kinds {
			continue
		}
		for _, kind := range f.Kinds() {
			k := f.By[kind]
			fmt.Fprintf(table, "\t  %s\t%.1f%%\t%d of %d\t\n", kind, 100*k.Share, k.Count, k.Of)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(r.LeftOut) > 0 {
		fmt.Fprintf(w, "skipped without -data: %s\n", strings.Join(r.LeftOut, ", "))
	}
	return nil
}
