// Package metric holds the measures of retrieval, answers, claims and citations: pure
// functions, each with its definition and where it comes from, and the table of them all
// that reports and docs/measures.md are made of. It judges nothing: what a verifier or a
// model has to say comes in as booleans and scores (package judge makes them).
//
// Measures are of one question. A set's figure is the mean over the questions that a
// measure applies to, which is what makes shares of them: [Of] leaves out what does not
// apply, so that the mean of abstention_precision, say, is over the questions that were
// refused.
package metric

import "time"

// Input is all that the measures know of one question and what came of it. What is not
// known is left at its zero value, and the measures that need it do not apply.
type Input struct {
	Ranked   []string       // documents that searches brought, best first, each once; 100 deep where there are as many
	Relevant map[string]int // relevant ones, by their grades from 1; empty: not known

	Right *bool // the question was answered from gold, or refused where unanswerable; nil: not known

	Unanswerable bool // the documents do not answer it
	Refused      bool // the system said so
	Failed       bool // the run ended in an error: there is no answer

	Conflicting  *bool // the documents disagree on it; nil: the set does not say
	SaidConflict bool  // the system said so

	Text    string   // of the answer, without citation numbers
	Answers []string // any of them is right

	Contexts []Context // that the generator was handed, in order
	Expected []Source  // that a right answer rests on

	// From a judge; nil: not judged. Judged has its scores by the measure's name, each in
	// [0, 1], those of custom measures too. Reference has of each claim of the right
	// answer whether the answer says it.
	Claims    []Claim
	Reference []bool
	Judged    map[string]float64

	Spent *Spent
}

// Spent is what a question cost.
type Spent struct {
	Steps        int
	Calls        int // of models
	InputTokens  int
	OutputTokens int
	CostMicros   int64 // millionths of the configured currency
	Elapsed      time.Duration
}

// answered reports whether there is an answer to be measured.
func (in Input) answered() bool { return !in.Refused && !in.Failed }

// labelled reports whether it is known if the documents answer the question.
func (in Input) labelled() bool {
	return in.Unanswerable || len(in.Relevant) > 0 || len(in.Answers) > 0 || len(in.Expected) > 0
}

// AbstentionPrecision is 1 for a refused question that is unanswerable, 0 for another
// that was refused; of the rest it says nothing. Its mean is the share of the refusals
// that were right. Source: precision as for any decision; Rajpurkar et al., "Know What You
// Don't Know: Unanswerable Questions for SQuAD", ACL 2018, for the task.
func AbstentionPrecision(in Input) (value float64, applies bool) {
	return one(in.Unanswerable), in.Refused && !in.Failed && in.labelled()
}

// AbstentionRecall is 1 for an unanswerable question that was refused, 0 for one that was
// not, be it for an error; of the rest it says nothing. Its mean is the share of the
// unanswerable questions that were refused, and what it lacks of 1 the rate of false
// answers. Source: as of AbstentionPrecision.
func AbstentionRecall(in Input) (value float64, applies bool) {
	return one(in.Refused && !in.Failed), in.Unanswerable
}

// ConflictPrecision is 1 where a conflict was shown and the documents do disagree, 0 where
// one was shown and they do not; of the rest it says nothing. Source: precision as for any
// decision; conflicts between passages as in Xie et al., "Adaptive Chameleon or Stubborn
// Sloth", ICLR 2024.
func ConflictPrecision(in Input) (value float64, applies bool) {
	return one(in.Conflicting != nil && *in.Conflicting), in.SaidConflict && in.Conflicting != nil
}

// ConflictRecall is 1 for a question on which the documents disagree where that was shown
// with both sides: every expected source is cited, where two or more are known. Else it is
// 0; of questions without a conflict it says nothing. Source: as of ConflictPrecision.
func ConflictRecall(in Input) (value float64, applies bool) {
	sides := len(in.Expected) < 2 || shareOf(in.Expected, func(s Source) bool { return s.Cited }) == 1
	return one(in.SaidConflict && sides && !in.Failed), in.Conflicting != nil && *in.Conflicting
}
