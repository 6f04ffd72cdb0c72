package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/mutate"
)

// The kinds of correct answers in ChangedAnswers. Changed ones have the kinds of package
// mutate.
const (
	kindVerbatim   = "verbatim"
	kindParaphrase = "paraphrase"
)

// ChangedAnswers returns the answers of package mutate as claims: correct ones, verbatim or
// paraphrased, and as many with one change. Dir holds the passages and paraphrases. Shared
// holds the sets of some further passages, which are left out if it is empty. Half is "dev"
// or "test".
func ChangedAnswers(dir, shared, half string) ([]GroundingCase, error) {
	correct, wrong, err := mutate.Answers(dir, shared, half)
	if err != nil {
		return nil, err
	}
	var cases []GroundingCase
	for _, a := range slices.Concat(correct, wrong) {
		c := GroundingCase{ID: a.Passage, Claim: a.Claim, Evidence: []string{a.Cited}, Heading: a.Heading}
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

// PairCases reads texts with right and wrong statements about them, one JSON object a line:
// {"id", "text", "right": [statements], "wrong": [{"kind", "claim"}]}.
func PairCases(file string) ([]GroundingCase, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var cases []GroundingCase
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
			cases = append(cases, GroundingCase{ID: row.ID, Claim: claim, Evidence: []string{row.Text}, Label: string(v), Verdict: v, Kind: kind})
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
