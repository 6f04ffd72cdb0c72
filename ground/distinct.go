package ground

import (
	"context"

	"github.com/assay-rag/assay/llm"
)

// Distinct returns the indexes of passages that answer the question with different values, in order:
// numbers of one dimension, or names that the other passage lacks. A passage takes part if the
// probability that it answers is at least least, and if its answer differs from that of each passage
// before it. Unlike those of [Conflicts], the passages may speak of different things.
func Distinct(ctx context.Context, reader llm.Reader, question string, passages []Passage, least float64) ([]int, error) {
	answers, err := answersIn(ctx, reader, question, passages)
	if err != nil {
		return nil, err
	}
	var kept []answer
	for _, a := range answers {
		if a.answerable >= least && a.differsFromAll(kept) {
			kept = append(kept, a)
		}
	}
	distinct := make([]int, len(kept))
	for i, a := range kept {
		distinct[i] = a.span.Passage
	}
	return distinct, nil
}

// differsFromAll reports whether the value of a is another than that of each other answer.
func (a answer) differsFromAll(others []answer) bool {
	for _, o := range others {
		names := compareValues(a, o) == valuesUnknown && haveOwnWords(a.names(), o.names(), a, o)
		if compareValues(a, o) != valuesDiffer && !names {
			return false
		}
	}
	return true
}
