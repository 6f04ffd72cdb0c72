package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/claims"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
)

// groundFlags are the flags of eval ground.
type groundFlags struct {
	json   bool
	floor  float64
	shown  bool
	out    string
	shared string
	half   string
}

func (a *app) evalGroundCommand() *cobra.Command {
	var f groundFlags
	cmd := &cobra.Command{
		Use:   "ground FILE.jsonl|FOLDER",
		Short: "Measure the verifier on labelled claims",
		Long: `Ground judges labelled claims with the local verifier and prints balanced accuracy, the F1
of each verdict, calibration, and how many claims the hard checks rejected, and how many
of those wrongly. No language model is called.

FILE has one JSON object per line: {"id", "claim", "evidence", "label"}, and optionally
"heading" and "kind". - is standard input. Evidence is a text or a list of sentences. The
labels of the common sets are known (docs/formats.md); other labels count as unsupported.
FOLDER has passages.jsonl and paraphrases.jsonl; true and false claims are made from them.

A claim is supported if its probability reaches the floor. The default is the balanced
floor for a FILE, and the floor for shown answers for a FOLDER.`,
		Example: `  assay eval ground claims.jsonl
  assay eval ground claims.jsonl --out judged.jsonl && grep '"right":false' judged.jsonl`,
		Args: oneArgument("FILE.jsonl"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("floor") && !(f.floor > 0 && f.floor <= 1) {
				return usagef("--floor %g is outside (0, 1]", f.floor)
			}
			if f.shown && f.floor > 0 {
				return usagef("--shown and --floor exclude each other")
			}
			if f.half != "" && f.half != "dev" && f.half != "test" {
				return usagef("--half is %q, want dev or test", f.half)
			}
			return a.evalGround(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print the figures as JSON")
	flags.BoolVar(&f.shown, "shown", false, "use the floor for shown answers")
	flags.StringVar(&f.out, "out", "", "write the verdict on each claim to this `file`")
	flags.Float64Var(&f.floor, "floor", 0, "lowest `probability` of a supported claim")
	flags.StringVar(&f.shared, "data", "", "`folder` with the sets that the passages of FOLDER come from")
	flags.StringVar(&f.half, "half", "", "use only this `half` of the passages of FOLDER: dev or test")
	return cmd
}

// A groundReport is the JSON that eval ground prints.
type groundReport struct {
	File     string  `json:"file"`
	Verifier string  `json:"verifier"`
	Floor    float64 `json:"floor"`
	claims.Figures
	UnknownLabels map[string]int `json:"unknown_labels,omitempty"` // counted as unsupported
	MSPerClaim    float64        `json:"ms_per_claim"`
}

func (a *app) evalGround(ctx context.Context, file string, f groundFlags) error {
	cases, changed, err := a.groundCases(file, f)
	if err != nil {
		return err
	}
	f.shown = f.shown || changed && f.floor == 0
	unknown := claims.UnknownLabels(cases)
	a.noteLabels(unknown)
	verifier, name, err := a.groundVerifier(f)
	if err != nil {
		return err
	}
	shown := a.progress()
	defer shown.clear()
	start := time.Now()
	judged, err := claims.Judge(ctx, verifier, cases, func(done, all int) {
		shown.update("judging claim %d of %d", done, all)
	})
	if err != nil {
		return err
	}
	shown.clear()
	r := groundReport{File: filepath.Base(file), Verifier: name, Floor: verifier.Floor, Figures: claims.FiguresOf(judged)}
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

// groundCases reads labelled claims, from standard input if file is "-". If file is a folder of
// passages, it makes the claims from them and changed is true.
func (a *app) groundCases(file string, f groundFlags) (cases []claims.Case, changed bool, err error) {
	if file == "-" {
		if cases, err = claims.Parse(a.stdin); err != nil {
			err = fmt.Errorf("standard input: %w", err)
		}
		return cases, false, err
	}
	if _, err := os.Stat(filepath.Join(file, "passages.jsonl")); err != nil {
		cases, err := claims.Read(file)
		return cases, false, err
	}
	for _, half := range []string{"dev", "test"} {
		if f.half != "" && f.half != half {
			continue
		}
		more, err := claims.ChangedAnswers(file, f.shared, half)
		if err != nil {
			return nil, true, err
		}
		cases = append(cases, more...)
	}
	return cases, true, nil
}

// noteLabels lists the unknown labels, which count as unsupported.
func (a *app) noteLabels(unknown map[string]int) {
	if len(unknown) == 0 {
		return
	}
	var words []string
	for _, label := range slices.Sorted(maps.Keys(unknown)) {
		words = append(words, fmt.Sprintf("%q (%d)", label, unknown[label]))
	}
	fmt.Fprintf(a.stderr, "unknown labels, counted as unsupported: %s\n", strings.Join(words, ", "))
}

// A claimVerdict is a line of --out.
type claimVerdict struct {
	ID       string        `json:"id"`
	Claim    string        `json:"claim"`
	Label    string        `json:"label"`
	Gold     assay.Verdict `json:"gold"` // verdict that the label maps to
	Verdict  assay.Verdict `json:"verdict"`
	Right    bool          `json:"right"`
	Score    float64       `json:"score"`
	Reason   string        `json:"reason"`
	Evidence []claimSpan   `json:"evidence,omitempty"`
}

// A claimSpan is a byte range of the claim's evidence. If the evidence is a list of sentences,
// empty lines separate them.
type claimSpan struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Quote string `json:"quote"`
}

// writeVerdicts writes a line for each claim.
func writeVerdicts(file string, cases []claims.Case, judged []claims.Judged) error {
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

// groundVerifier returns the local verifier as the engine builds it, with the floor that the flags
// select, and its name.
func (a *app) groundVerifier(f groundFlags) (ground.Local, string, error) {
	reader, err := localReader()
	if err != nil {
		return ground.Local{}, "", err
	}
	shown, balanced, err := ground.Floors()
	l := engine.LocalVerifier(reader)
	l.Floor = cmp.Or(f.floor, balanced)
	if f.shown {
		l.Floor = shown
	}
	return l, "local, " + reader.Model(), err
}

// localReader returns the reader in the binary.
func localReader() (llm.Reader, error) { return embedded.OpenReader() }

// orDash formats a figure, or "–" if there is none.
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
	fmt.Fprintf(table, "refused\t%d\tby hard checks, %d of them wrongly\n", r.Refused.Rightly+r.Refused.Wrongly, r.Refused.Wrongly)
	fmt.Fprintf(table, "auc\t%s\n", orDash(r.AUC))
	fmt.Fprintf(table, "ece\t%.3f\n", r.ECE)
	fmt.Fprintf(table, "ms_per_claim\t%.1f\n", r.MSPerClaim)
	fmt.Fprintf(table, "\nscore\tclaims\tmean score\tsupported\n")
	for _, b := range r.Calibration {
		fmt.Fprintf(table, "%.1f–%.1f\t%d\t%.3f\t%.3f\n", b.Low, b.High, b.Claims, b.Score, b.Supported)
	}
	if len(r.Kinds) > 0 {
		fmt.Fprintf(table, "\nkind\tclaims\tcalled supported\n")
	}
	for _, k := range r.Kinds {
		fmt.Fprintf(table, "%s\t%d\t%d (%.1f%%)\n", k.Kind, k.Claims, k.Supported, 100*float64(k.Supported)/float64(k.Claims))
	}
	return table.Flush()
}
