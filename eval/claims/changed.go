package claims

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/mutate"
)

// The kinds of the correct answers in ChangedAnswers. The kinds of the wrong ones are defined in
// package mutate.
const (
	kindVerbatim   = "verbatim"
	kindParaphrase = "paraphrase"
)

// ChangedAnswers returns the answers of package mutate as claims: correct ones, verbatim or
// paraphrased, and wrong ones with one change. dir holds the passages and paraphrases. shared holds
// the sets of some further passages, which are left out if shared is empty. half is "dev" or
// "test".
func ChangedAnswers(dir, shared, half string) ([]Case, error) {
	correct, wrong, err := mutate.Answers(dir, shared, half)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, a := range slices.Concat(correct, wrong) {
		c := Case{ID: a.Passage, Claim: a.Claim, Evidence: []string{a.Cited}, Heading: a.Heading}
		switch {
		case a.Kind != "":
			c.Kind, c.Verdict = string(a.Kind), assay.Unsupported
		case a.Verbatim:
			c.Kind, c.Verdict = kindVerbatim, assay.Supported
		default:
			c.Kind, c.Verdict = kindParaphrase, assay.Supported
		}
		c.Label = string(c.Verdict)
		cases = append(cases, c)
	}
	return cases, nil
}

// PairCases reads texts with right and wrong statements about them, one JSON object per line:
// {"id", "text", "right": [statements], "wrong": [{"kind", "claim"}]}.
func PairCases(file string) ([]Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for line := range bytes.Lines(data) {
		var row struct {
			ID, Text string
			Right    []string
			Wrong    []struct{ Kind, Claim string }
		}
		if err := json.Unmarshal(line, &row); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", file, err, assay.ErrInvalid)
		}
		add := func(claim, kind string, v assay.Verdict) {
			cases = append(cases, Case{ID: row.ID, Claim: claim, Evidence: []string{row.Text}, Label: string(v), Verdict: v, Kind: kind})
		}
		for _, claim := range row.Right {
			add(claim, kindParaphrase, assay.Supported)
		}
		for _, w := range row.Wrong {
			add(w.Claim, w.Kind, assay.Unsupported)
		}
	}
	return cases, nil
}
