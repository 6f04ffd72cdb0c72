package eval

import (
	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/mutate"
)

// AnswerCases returns the statements of package mutate for development, correct and
// changed, as claims to learn from; those that are for the test are not among them. dir
// holds the passages and paraphrases, shared the sets that some passages are read from;
// empty: without these.
func AnswerCases(dir, shared string) ([]GroundingCase, error) {
	correct, wrong, err := mutate.Answers(dir, shared, "dev")
	if err != nil {
		return nil, err
	}
	var cases []GroundingCase
	for _, a := range correct {
		cases = append(cases, GroundingCase{ID: a.Passage, Claim: a.Claim, Evidence: []string{a.Cited}, Heading: a.Heading, Verdict: assay.Supported})
	}
	for _, a := range wrong {
		cases = append(cases, GroundingCase{ID: a.Passage, Claim: a.Claim, Evidence: []string{a.Cited}, Heading: a.Heading, Verdict: assay.Unsupported, Edits: []string{string(a.Kind)}})
	}
	return cases, nil
}
