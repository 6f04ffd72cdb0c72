package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
)

// evalFlags are the flags shared by the evaluations of labelled sets.
type evalFlags struct {
	json     bool
	cache    string
	model    string
	embedder llm.Embedder // nil: none; see openEval
}

func (f *evalFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.json, "json", false, "print a JSON object for each set")
	cmd.Flags().StringVar(&f.model, "model", "", "encoder `name`, as in assay models list (default: the built-in one)")
	cmd.Flags().StringVar(&f.cache, "cache", "", "keep vectors in this `folder` (default: one in the cache folder)")
}

// needFolders accepts one or more folders.
func needFolders(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return hinted{usagef("missing argument: the FOLDER of a labelled set"), "see: " + cmd.CommandPath() + " --help"}
	}
	return nil
}

// openEval opens the selected encoder, by default the one in the binary, and finds the folder for
// vectors.
func (a *app) openEval(ctx context.Context, f *evalFlags) error {
	cache, err := retrieval.CacheDir(f.cache)
	if err != nil {
		return hinted{err, "name one with --cache"}
	}
	f.cache = cache
	encoders, err := a.encoders()
	if err != nil || encoders == nil {
		return err
	}
	name := encoders.Default()
	if f.model != "" {
		if name, _, err = a.findEncoder(f.model); err != nil {
			return err
		}
	}
	f.embedder, err = encoders.Open(ctx, name)
	return err
}

// evalSet reads a folder and measures it, and shows the progress.
func (a *app) evalSet(folder string, f evalFlags, measure func(testset.Set, retrieval.Parts) error) error {
	shown := a.progress()
	defer shown.clear()
	shown.update("reading %s", folder)
	set, err := testset.ReadSet(folder)
	if err != nil {
		return err
	}
	reader, err := embedded.OpenReader()
	if err != nil {
		return err
	}
	err = measure(set, retrieval.Parts{
		Embedder: f.embedder, CacheDir: f.cache, Reader: reader,
		Progress: func(p eval.Progress) {
			if p.Done == p.All {
				shown.clear()
			} else {
				shown.update("%s", evalProgress(p))
			}
		},
	})
	if errors.Is(err, context.Canceled) && f.embedder != nil {
		return hinted{err, "vectors made so far are kept; run the same command to continue"}
	}
	return err
}

// evalProgress formats the progress of an evaluation, with the rate and the remaining time when
// they are known.
func evalProgress(p eval.Progress) string {
	s := fmt.Sprintf("%s: %s, %d of %d", p.Set, p.What, p.Done, p.All)
	if now := p.Done - p.Before; now > 0 && p.Elapsed > time.Second {
		rate := float64(now) / p.Elapsed.Seconds()
		left := time.Duration(float64(p.All-p.Done) / rate * float64(time.Second))
		s += fmt.Sprintf(" (%s a second, %s left)", rateOf(rate), left.Round(time.Second))
	}
	return s
}

// rateOf formats a rate with about two digits.
func rateOf(rate float64) string {
	if rate < 10 {
		return fmt.Sprintf("%.1f", rate)
	}
	return fmt.Sprintf("%.0f", rate)
}

// figure formats a mean with half the width of its interval.
func figure(mean, low, high float64) string {
	return strings.Replace(fmt.Sprintf("%.3f ±%.3f", mean, (high-low)/2), "±0.", "±.", 1)
}

// difference formats a difference with its interval.
func difference(d retrieval.Difference) string {
	return fmt.Sprintf("%+.3f (%+.3f to %+.3f)", d.NDCG10, d.Low, d.High)
}
