package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/eval"
)

// figuresFlags are the flags of eval figures.
type figuresFlags struct {
	json      bool
	kinds     bool
	cache     string
	noEncoder bool
	data      string
	sets      []string
	limit     int
	out       string
}

func (a *app) evalFiguresCommand() *cobra.Command {
	var f figuresFlags
	cmd := &cobra.Command{
		Use:   "figures FOLDER",
		Short: "Measure the hand-written sets",
		Long: `Figures measures the hand-written evaluation sets in FOLDER (eval/testdata in the source
tree, whose README.md describes them) and prints how often each figure holds:

  statements    false statements that the local verifier catches, and fair paraphrases
                that it refuses. It judges claims and passages as those of answers
  nearmiss      questions that one paragraph answers, or only seems to answer: asked by
                static of that paragraph alone, then of all paragraphs. A question is
                right if the answer holds the expected words, and falsely answered if
                any claim is shown. Of all paragraphs, another one may answer it
  conflicts     pairs of documents that conflict and are reported as conflicting, and
                pairs that agree and are reported all the same
  everyday      questions over parts of four manuals: the answer holds what was asked,
                does so in 60 words, does so for questions in other words than the text's;
                lists whose items are all there; questions without an answer that were
                answered
  handbook      the same over four documents of FOLDER
  paraphrased   right answers in other words, written by a scripted model, that whole
                runs show: with the local verifier, and with a scripted model as verifier

nearmiss and everyday need texts that are not in FOLDER: --data names the folder that
holds data/retrieval and data/corpora. Without it they are left out.

No language model is asked. Equal sets give equal figures.`,
		Example: `  assay eval figures eval/testdata
  assay eval figures eval/testdata --set statements,paraphrased --kinds
  assay eval figures eval/testdata --limit 40 --out outcomes.jsonl`,
		Args: oneArgument("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.evalFigures(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print the figures as JSON, by kind")
	flags.BoolVar(&f.kinds, "kinds", false, "also print the figures by kind")
	flags.StringVar(&f.cache, "cache", "", "the `folder` that keeps vectors (default: assay/eval in the user's cache folder)")
	flags.BoolVar(&f.noEncoder, "no-encoder", false, "search and judge by words alone")
	flags.StringVar(&f.data, "data", "", "the `folder` with data/retrieval and data/corpora (default: ASSAY_TESTDATA)")
	flags.StringSliceVar(&f.sets, "set", nil, "measure this set, by `name`; may be repeated (default: all)")
	flags.IntVar(&f.limit, "limit", 0, "measure `n` rows of each set, evenly spread (default: all)")
	flags.StringVar(&f.out, "out", "", "write a line for each row to this `file`")
	return cmd
}

func (a *app) evalFigures(ctx context.Context, folder string, f figuresFlags) error {
	if f.limit < 0 {
		return usagef("--limit %d is negative", f.limit)
	}
	sets, err := eval.ReadWritten(folder)
	if err != nil {
		return err
	}
	shared := evalFlags{cache: f.cache}
	if err := a.openEval(ctx, &shared); err != nil {
		return err
	}
	opts := eval.WrittenOptions{Sets: f.sets, Limit: f.limit, Data: f.data, Reader: localReader}
	if opts.Data == "" {
		opts.Data = a.getenv("ASSAY_TESTDATA")
	}
	if !f.noEncoder {
		encoders, err := a.encoders()
		if err != nil {
			return err
		}
		if encoders != nil {
			opts.Encoders = eval.CachedEncoders{Encoders: encoders, Dir: shared.cache}
		}
	}
	shown := a.progress()
	defer shown.clear()
	opts.Progress = func(p eval.Progress) { shown.update("%s", evalProgress(p)) }
	report, err := sets.Measure(ctx, opts)
	shown.clear()
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := writeOutcomes(f.out, report.Outcomes); err != nil {
			return err
		}
	}
	if f.json {
		return writeJSON(a.stdout, report)
	}
	return writeWritten(a.stdout, report, f.kinds)
}

// writeOutcomes writes a line for each row.
func writeOutcomes(file string, outcomes []eval.WrittenOutcome) error {
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

func writeWritten(w io.Writer, r eval.WrittenReport, kinds bool) error {
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
		fmt.Fprintf(w, "left out, without --data: %s\n", strings.Join(r.LeftOut, ", "))
	}
	return nil
}
