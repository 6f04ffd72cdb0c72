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

// HeldOutAnswers returns the passages of package mutate that are for the test as a set
// whose texts [MadeGrounding] leaves out. It holds no labels. dir and shared are those of
// AnswerCases.
func HeldOutAnswers(dir, shared string) (GroundingSet, error) {
	passages, err := mutate.Passages(dir, shared, "test")
	set := GroundingSet{Name: "answers held out"}
	for _, p := range passages {
		set.Cases = append(set.Cases, GroundingCase{Evidence: []string{p}})
	}
	return set, err
}
