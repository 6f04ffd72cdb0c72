package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/ground"
)

// groundFlags are the flags of eval ground.
type groundFlags struct {
	json, words bool
	floor       float64
	shown       bool
	model       string
	out         string
}

func (a *app) evalGroundCommand() *cobra.Command {
	var f groundFlags
	cmd := &cobra.Command{
		Use:   "ground FILE.jsonl",
		Short: "Measure the verifier on labelled claims",
		Long: `Ground has the local verifier judge labelled claims, and prints how often it is right.
No language model is asked.

FILE has one JSON object a line: {"id", "claim", "evidence", "label"}. The evidence is a
text, or a list of sentences. Labels are the words of the common sets: supported,
SUPPORT(S), entailment, attributable, consistent, yes, true and 1 are supported;
contradiction, CONTRADICT(S), contradicted, refuted and REFUTES are contradicted;
partially_supported, neutral, NOT_ENOUGH_INFO, inconsistent and all else are unsupported;
words that no common set has are counted, and named. FILE - is standard input.

  balanced_accuracy  the mean of two shares: of the supported claims that are called so,
                     and of the others that are not
  macro_f1           the mean F1 of the verdicts that the file has labels of: three, or
                     two where no claim is labelled contradicted: there what is called
                     that counts as unsupported
  f1                 of each verdict that the file has labels of
  ece                how far the scores are from the share of supported claims: the mean
                     over ten ranges of scores
  auc                how often a supported claim has a higher score than another one
  ms_per_claim       the time that a claim takes, milliseconds

A claim is called supported when its probability reaches the floor: by default the one
that treats either mistake alike; with --shown the one that answers are held to, which
lets hardly any changed statement pass; with --floor that given.

--out FILE has a JSON object for each claim: id, claim, label, gold (the verdict that the
label is), verdict, right, score, reason, and evidence, the words that decide it. It
shows which claims were judged wrongly.`,
		Example: `  assay eval ground claims.jsonl
  assay eval ground claims.jsonl --out judged.jsonl && grep '"right":false' judged.jsonl
  assay eval ground claims.jsonl --json --no-encoder`,
		Args: oneArgument("FILE.jsonl"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("floor") && !(f.floor > 0 && f.floor <= 1) {
				return usagef("--floor %g is not within (0, 1]", f.floor)
			}
			if f.shown && f.floor > 0 {
				return usagef("--shown and --floor are two floors")
			}
			if f.words && f.model != "" {
				return usagef("--no-encoder takes no --model")
			}
			return a.evalGround(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print the figures as JSON")
	flags.BoolVar(&f.words, "no-encoder", false, "judge by words alone")
	flags.BoolVar(&f.shown, "shown", false, "with the floor that answers are held to")
	flags.StringVar(&f.out, "out", "", "write the verdict on each claim to this `file`")
	flags.Float64Var(&f.floor, "floor", 0, "least `probability` of supported")
	flags.StringVar(&f.model, "model", "", "the `encoder`; by default the one that is in the binary")
	return cmd
}

// A groundReport is what eval ground prints as JSON.
type groundReport struct {
	File     string  `json:"file"`
	Verifier string  `json:"verifier"`
	Floor    float64 `json:"floor"`
	eval.GroundingFigures
	UnknownLabels map[string]int `json:"unknown_labels,omitempty"` // counted as unsupported
	MSPerClaim    float64        `json:"ms_per_claim"`
}

func (a *app) evalGround(ctx context.Context, file string, f groundFlags) error {
	cases, err := a.groundCases(file)
	if err != nil {
		return err
	}
	unknown := eval.UnknownLabels(cases)
	a.noteLabels(unknown)
	verifier, name, err := a.groundVerifier(ctx, f)
	if err != nil {
		return err
	}
	shown := a.progress()
	defer shown.clear()
	start := time.Now()
	judged, err := eval.JudgeGrounding(ctx, verifier, cases, func(done, all int) {
		shown.update("judging claim %d of %d", done, all)
	})
	if err != nil {
		return err
	}
	shown.clear()
	r := groundReport{File: filepath.Base(file), Verifier: name, Floor: verifier.Floor, GroundingFigures: eval.FiguresOf(judged)}
	r.UnknownLabels = unknown
	r.MSPerClaim = float64(time.Since(start).Microseconds()) / 1000 / float64(len(cases))
	if f.out != "" {
		if err := writeVerdicts(f.out, cases, judged); err != nil {
			return err
		}
	}
	if f.json {
		return writeJSON(a.stdout, r)
	}
	return writeGround(a.stdout, r)
}

// groundCases reads labelled claims, from standard input where the file is -.
func (a *app) groundCases(file string) ([]eval.GroundingCase, error) {
	if file != "-" {
		return eval.ReadGrounding(file)
	}
	cases, err := eval.ParseGrounding(a.stdin)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return cases, nil
}

// noteLabels says which labels were taken for unsupported without being known.
func (a *app) noteLabels(unknown map[string]int) {
	if len(unknown) == 0 {
		return
	}
	var words []string
	for _, label := range slices.Sorted(maps.Keys(unknown)) {
		words = append(words, fmt.Sprintf("%q (%d)", label, unknown[label]))
	}
	fmt.Fprintf(a.stderr, "labels that are not known count as unsupported: %s\n", strings.Join(words, ", "))
}

// A claimVerdict is a line of --out.
type claimVerdict struct {
	ID       string        `json:"id"`
	Claim    string        `json:"claim"`
	Label    string        `json:"label"`
	Gold     assay.Verdict `json:"gold"` // what the label is taken for
	Verdict  assay.Verdict `json:"verdict"`
	Right    bool          `json:"right"`
	Score    float64       `json:"score"`
	Reason   string        `json:"reason"`
	Evidence []claimSpan   `json:"evidence,omitempty"`
}

// A claimSpan is bytes of the claim's evidence, whose sentences, where it is a list, are
// parted by an empty line.
type claimSpan struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Quote string `json:"quote"`
}

// writeVerdicts writes a line for each claim.
func writeVerdicts(file string, cases []eval.GroundingCase, judged []eval.Judged) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	for i, j := range judged {
		c := cases[i]
		v := claimVerdict{ID: c.ID, Claim: c.Claim, Label: c.Label, Gold: j.Gold, Verdict: j.Verdict, Right: j.Gold == j.Verdict, Score: j.Score, Reason: j.Reason}
		cited := c.Cited()
		for _, s := range j.Spans {
			v.Evidence = append(v.Evidence, claimSpan{s.Start, s.End, cited[s.Passage].Context[s.Start:s.End]})
		}
		if err := encoder.Encode(v); err != nil {
			return err
		}
	}
	return os.WriteFile(file, lines.Bytes(), 0o600)
}

// groundVerifier returns the local verifier and its name.
func (a *app) groundVerifier(ctx context.Context, f groundFlags) (ground.Learned, string, error) {
	encoder, name, err := a.groundEncoder(ctx, f.words, f.model)
	if err != nil {
		return ground.Learned{}, "", err
	}
	l := ground.Learned{Encoder: encoder, Floor: f.floor}
	shown, balanced, err := l.Floors()
	if err != nil {
		return l, "", err
	}
	if l.Floor == 0 {
		l.Floor = balanced
	}
	if f.shown {
		l.Floor = shown
	}
	return l, "local, " + name, nil
}

// groundEncoder returns what gives words their vectors and how to say so; nil where there
// is none, or words is set.
func (a *app) groundEncoder(ctx context.Context, words bool, model string) (ground.Encoder, string, error) {
	flags := evalFlags{model: model, cache: "-"} // it keeps no vectors
	if words {
		return nil, "by words alone", nil
	}
	if err := a.openEval(ctx, &flags); err != nil {
		return nil, "", err
	}
	encoder, ok := flags.embedder.(ground.Encoder)
	if flags.embedder == nil {
		return nil, "by words alone", nil
	}
	if !ok {
		return nil, "", hinted{fmt.Errorf("encoder %s gives no vectors of words: %w", flags.embedder.Model(), assay.ErrInvalid), "judge by words alone with --no-encoder"}
	}
	return encoder, "with " + flags.embedder.Model(), nil
}

// orDash writes a figure, "–" where there is none.
func orDash(x *float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f", *x)
}

func writeGround(w io.Writer, r groundReport) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s, %s; supported from %.3f on\n", r.File, r.Verifier, r.Floor)
	fmt.Fprintf(table, "claims\t%d\t%d supported, %d contradicted, %d unsupported\n", r.Claims,
		r.Gold[assay.Supported], r.Gold[assay.Contradicted], r.Gold[assay.Unsupported])
	fmt.Fprintf(table, "balanced_accuracy\t%.3f\tsupported against the rest\n", r.BalancedAccuracy)
	of := "of three verdicts"
	if r.Gold[assay.Contradicted] == 0 {
		of = "of the verdicts that the file has"
	}
	fmt.Fprintf(table, "macro_f1\t%.3f\t%s\n", r.MacroF1, of)
	fmt.Fprintf(table, "f1\t\tsupported %s, contradicted %s, unsupported %s\n", orDash(r.F1[assay.Supported]), orDash(r.F1[assay.Contradicted]), orDash(r.F1[assay.Unsupported]))
	fmt.Fprintf(table, "auc\t%s\n", orDash(r.AUC))
	fmt.Fprintf(table, "ece\t%.3f\n", r.ECE)
	fmt.Fprintf(table, "ms_per_claim\t%.1f\n", r.MSPerClaim)
	fmt.Fprintf(table, "\nscore\tclaims\tmean score\tsupported\n")
	for _, b := range r.Calibration {
		fmt.Fprintf(table, "%.1f–%.1f\t%d\t%.3f\t%.3f\n", b.Low, b.High, b.Claims, b.Score, b.Supported)
	}
	return table.Flush()
}

func (a *app) evalTrainVerifierCommand() *cobra.Command {
	var asJSON, words bool
	var write, answers, data, model string
	cmd := &cobra.Command{
		Use:   "train-verifier FILE.jsonl FILE.jsonl...",
		Short: "Learn the verifier from labelled claims",
		Long: `Train-verifier learns the local verifier from labelled claims, files as eval ground
takes them, two or more: once by words alone and once with the encoder's vectors. It
prints what it reaches on claims that it has not seen, held out by folds (those that
share a claim or its evidence in the same one) and by whole sets, beside a baseline of
twenty plain features and logistic regression that learned from the same claims.

With --data FOLDER it also learns from claims that it makes itself: of answers, titles and
sentences of the retrieval sets under FOLDER/data/retrieval, with words exchanged for
others of their meaning, and with names, numbers, negations and other words changed. From
three quarters of these it learns first what a changed word looks like to the encoder.
None of them is measured. It is deterministic: the same files give the same weights. The
weights in the binary were written by it to ground/.`,
		Example: `  assay eval train-verifier scifact-train.jsonl wice-claim-dev.jsonl summedits.jsonl
  assay eval train-verifier a.jsonl b.jsonl --data ../sets --write ground`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("%s needs two files of labelled claims or more", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			return a.evalTrainVerifier(cmd.Context(), files, answers, data, write, model, words, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, "json", false, "print the figures as JSON")
	flags.BoolVar(&words, "no-encoder", false, "learn by words alone")
	flags.StringVar(&write, "write", "", "write the weights into this `folder`")
	flags.StringVar(&answers, "answers", "", "also learn from the answers for development in this `folder`, and choose the shown floor by them")
	flags.StringVar(&data, "data", "", "also learn from claims made of the retrieval sets in this `folder`")
	flags.StringVar(&model, "model", "", "the `encoder`; by default the one that is in the binary")
	return cmd
}

func (a *app) evalTrainVerifier(ctx context.Context, files []string, answers, data, write, model string, words, asJSON bool) error {
	var sets []eval.GroundingSet
	for _, file := range files {
		cases, err := eval.ReadGrounding(file)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(sets, func(s eval.GroundingSet) bool { return reflect.DeepEqual(s.Cases, cases) }); i >= 0 {
			return usagef("%s holds the claims of %s: a set that is left out must not be learned from", file, files[i])
		}
		sets = append(sets, eval.GroundingSet{Name: strings.TrimSuffix(filepath.Base(file), ".jsonl"), Cases: cases})
	}
	encoder, _, err := a.groundEncoder(ctx, words, model)
	if err != nil {
		return err
	}
	from := eval.VerifierData{Sets: sets}
	known := slices.Clone(sets) // whose texts no claim is made of
	if answers != "" {
		if from.Answers, err = eval.AnswerCases(answers, data); err != nil {
			return err
		}
		held, err := eval.HeldOutAnswers(answers, data)
		if err != nil {
			return err
		}
		known = append(known, held)
	}
	shown := a.progress()
	defer shown.clear()
	var edits *ground.Edits
	if data != "" {
		made, err := eval.MadeGrounding(filepath.Join(data, "data", "retrieval"), known)
		if err != nil {
			return err
		}
		var learnt []eval.GroundingCase
		learnt, from.Made = eval.ForEdits(made)
		if encoder != nil {
			if edits, err = eval.TrainEdits(ctx, learnt, encoder, func(done, all int) { shown.update("reading made claim %d of %d", done, all) }); err != nil {
				return err
			}
		}
	}
	t, err := eval.TrainVerifier(ctx, from, encoder, edits, func(done, all int) { shown.update("measuring claim %d of %d", done, all) })
	if err != nil {
		return err
	}
	shown.clear()
	if write != "" {
		if err := t.Write(write); err != nil {
			return err
		}
	}
	if asJSON {
		return writeJSON(a.stdout, t)
	}
	return writeTraining(a.stdout, t)
}

func writeTraining(w io.Writer, t eval.VerifierTraining) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "held out\tlearner\tset\tbalanced_accuracy\tauc\tmacro_f1\tsupported\tcontradicted\tunsupported\tece")
	for _, part := range t.Tables {
		for i, f := range part.Figures {
			fmt.Fprintf(table, "%s\t%s\t%s\t%.3f\t%s\t%.3f\t%s\t%s\t%s\t%.3f\n", part.HeldOut, part.Learner, part.Sets[i],
				f.BalancedAccuracy, orDash(f.AUC), f.MacroF1, orDash(f.F1[assay.Supported]), orDash(f.F1[assay.Contradicted]), orDash(f.F1[assay.Unsupported]), f.ECE)
		}
	}
	return table.Flush()
}
