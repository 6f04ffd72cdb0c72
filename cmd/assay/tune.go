package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/tune"
	"github.com/assay-rag/assay/strategy"
)

// tuneFlags are the flags of tune.
type tuneFlags struct {
	answers  answersFlags // those that select the questions
	strategy string
	write    bool
}

func (a *app) tuneCommand() *cobra.Command {
	var f tuneFlags
	cmd := &cobra.Command{
		Use:   "tune SET",
		Short: "Choose settings from your own labelled questions",
		Long: `Tune tries other settings on the labelled questions of SET and reports which are worth
changing, with the expected gain:

  retrieval.vector_weight, .rerank    measured by nDCG@10 of the gold
  strategies.corrective.floor, .held  measured by the share of right answers
  strategies.auto.escalate            the same; ties go to the one with the fewest steps

Settings are chosen by cross-validation, with the questions about one document kept
together. A setting changes only if the 95% interval of its gain on held-out questions is
above 0 and p is at most 0.01. Thresholds below the defaults are tried only if SET has
unanswerable questions. No language model is called. Run the same command again to resume
an interrupted tune.`,
		Example: `  assay tune questions.jsonl --docs ./handbook --limit 100
  assay tune questions.jsonl --write`,
		Args: oneArgument("SET"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.tune(cmd.Context(), f, args[0]) },
	}
	flags := cmd.Flags()
	g := &f.answers
	flags.StringArrayVar(&g.docs, "docs", nil, "ask about the documents at this `path`; may be repeated\n(default: the passages of SET, or the store in --data)")
	flags.StringVar(&f.strategy, "strategy", "", "strategy to tune, by `name` (default: the configured one, or auto)")
	flags.StringVar(&g.out, "out", "", "keep measurements in this `folder` (default: one in the cache folder)")
	flags.IntVar(&g.limit, "limit", 0, "use only the first `n` questions (default: all)")
	flags.IntVar(&g.parallel, "parallel", 0, "ask `n` questions at a time (default: one per processor)")
	flags.BoolVar(&g.words, "words", false, "make no vectors: search by words alone (with --docs or the passages of SET)")
	flags.StringVar(&g.cache, "cache", "", "keep vectors in this `folder` (default: one in the cache folder)")
	flags.BoolVar(&f.write, "write", false, "write the recommended changes to the configuration file")
	flags.BoolVar(&g.json, "json", false, "print one JSON object")
	return cmd
}

// tuned is the JSON of tune.
type tuned struct {
	tune.Tuning
	Config  string `json:"config,omitempty"`  // settings to add to the configuration
	Written string `json:"written,omitempty"` // the file they were written to
	Backup  string `json:"backup,omitempty"`  // its previous contents; empty: no file
}

func (a *app) tune(ctx context.Context, f tuneFlags, path string) error {
	f.answers.local, f.answers.localSet, f.answers.judge = true, true, "off"
	v := &evaluating{app: a, flags: f.answers, path: path, shown: a.progress()}
	defer v.shown.clear()
	if err := v.read(); err != nil {
		return err
	}
	if v.set.Labelled(f.answers.limit) == 0 {
		return hinted{usagef("%s has no labelled questions", path), "label them with answers, gold, or \"unanswerable\": true; see assay eval init --help"}
	}
	t, err := v.tune(ctx, f)
	if errors.Is(err, context.Canceled) {
		return hinted{err, "measurements so far are kept; run the same command to continue"}
	}
	if err != nil {
		return err
	}
	v.shown.clear()
	out := tuned{Tuning: t}
	settings := settingsOf(t)
	if len(settings) > 0 {
		if out.Config, err = config.Snippet(settings); err != nil {
			return err
		}
	}
	place, err := config.Place(a.sources())
	if err != nil {
		return err
	}
	if f.write && len(settings) > 0 {
		if out.Backup, err = config.Write(place, settings); err != nil {
			return err
		}
		out.Written = place
	}
	if f.answers.json {
		return writeJSON(a.stdout, out)
	}
	return writeTuning(a.stdout, out, place, a.width)
}

// tune opens the store and tunes its settings.
func (v *evaluating) tune(ctx context.Context, f tuneFlags) (_ tune.Tuning, err error) {
	set, err := v.app.settings()
	if err != nil {
		return tune.Tuning{}, err
	}
	configured := set.Config()
	name := cmp.Or(f.strategy, configured.Strategy, strategy.Names()[0])
	if _, err := strategy.Lookup(name); err != nil {
		return tune.Tuning{}, err
	}
	identity, err := v.identity(ctx)
	if err != nil {
		return tune.Tuning{}, err
	}
	identity.Config["tuned by"] = name
	v.app.ownLimits = true // each candidate sets all of them

	var e *engine.Engine
	if !v.own { // its documents may have changed
		if e, err = v.engine(ctx); err != nil {
			return tune.Tuning{}, err
		}
		defer e.Close()
		found, err := v.probe(ctx, e)
		if err != nil {
			return tune.Tuning{}, err
		}
		sequence, err := e.Sequence(ctx)
		if err != nil {
			return tune.Tuning{}, err
		}
		identity.Config["index"] = indexName(sequence, found)
	}
	if err := v.openTuning(ctx, identity); err != nil {
		return tune.Tuning{}, err
	}
	defer v.folder.Close()
	if v.own {
		if e, err = v.engine(ctx); err != nil {
			return tune.Tuning{}, err
		}
		defer e.Close()
		if err := v.embed(ctx, e); err != nil {
			return tune.Tuning{}, err
		}
	}
	found, err := v.probe(ctx, e)
	if err != nil {
		return tune.Tuning{}, err
	}
	return tune.Run(ctx, e, v.set, v.folder, tune.Options{
		Strategy: name, Limits: configured.Limits, Escalate: configured.Settings.Auto.Escalate, Vectors: found.Model != "", Limit: v.flags.limit, Parallel: v.flags.parallel,
		Principal: assay.Local(), Progress: func(p eval.Progress) { v.shown.update("%s", evalProgress(p)) },
	})
}

// openTuning opens the folder for measurements.
func (v *evaluating) openTuning(ctx context.Context, identity answers.Identity) error {
	cache, err := v.cacheDir()
	if err != nil {
		return err
	}
	dir := v.flags.out
	if dir == "" {
		dir = filepath.Join(cache, strings.Map(plainName, v.set.Name)+"-tune-"+shortHash(identity))
	}
	if v.folder, err = answers.OpenFolder(ctx, dir, identity); errors.Is(err, assay.ErrInvalid) {
		return hinted{err, "name another folder with --out"}
	}
	if v.at.String() == "" {
		v.at = localDir(filepath.Join(dir, "store"))
	}
	return err
}

// settingsOf returns the settings that tuning changes.
func settingsOf(t tune.Tuning) []config.Setting {
	var all []config.Setting
	for _, k := range t.Knobs {
		for path, value := range k.Settings {
			all = append(all, config.Setting{Path: path, Value: value})
		}
	}
	slices.SortFunc(all, func(a, b config.Setting) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// writeTuning prints the result of tuning.
func writeTuning(w io.Writer, t tuned, place string, width int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", t.Set, count(t.Questions, "labelled question", "labelled questions"))
	for _, k := range t.Knobs {
		fmt.Fprintf(&b, "\n%s, by %s of %s (%s)\n", k.Name, k.Measure, count(k.Questions, "question", "questions"), count(k.Groups, "group", "groups"))
		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for i, c := range k.Tried {
			said := ""
			switch {
			case i == 0 && k.Current == k.Chosen:
				said = "configured, kept"
			case i == 0:
				said = "configured"
			case c.Value == k.Chosen:
				said = "chosen"
			}
			steps := ""
			if c.Steps > 0 {
				steps = fmt.Sprintf("%.1f steps", c.Steps)
			}
			fmt.Fprintf(table, "  %s\t%.3f\t%s\t%s\n", c.Value, c.Mean, steps, said)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		for _, says := range []string{k.Note, verdictOf(k)} {
			if says != "" {
				fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(wrap(says, "    ", width)))
			}
		}
	}
	switch {
	case t.Config == "":
		b.WriteString("\nno change\n")
	case t.Written != "":
		fmt.Fprintf(&b, "\nwritten to %s", shortPath(t.Written))
		if t.Backup != "" {
			fmt.Fprintf(&b, " (backup: %s)", shortPath(t.Backup))
		}
		fmt.Fprintf(&b, ":\n\n%s", t.Config)
	default:
		fmt.Fprintf(&b, "\nadd this to %s, or run again with --write:\n\n%s", shortPath(place), t.Config)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// verdictOf describes the gain of a setting and its certainty.
func verdictOf(k tune.Knob) string {
	p := fmt.Sprintf("p %.3f", k.Gain.P)
	if k.Gain.P < 0.001 {
		p = "p < 0.001"
	}
	gain := fmt.Sprintf("%+.3f (%+.3f to %+.3f, %s) on held-out questions", k.Gain.Mean, k.Gain.Low, k.Gain.High, p)
	switch {
	case k.Cheaper:
		return fmt.Sprintf("change: %s (right %+.3f, %+.3f to %+.3f)", k.Why, k.Gain.Mean, k.Gain.Low, k.Gain.High)
	case k.Change:
		return "change: " + gain
	case k.Gain.Mean == 0:
		return "no change: " + k.Why
	}
	return "no change: " + gain + "; " + k.Why
}
