// Package metric holds the measures of retrieval, answers, claims and citations. They are pure
// functions, each with its definition and source, and a table of them all from which reports and
// docs/measures.md are made. The package judges nothing: the verdicts of a verifier or a model are
// inputs, as booleans and scores (package judge makes them).
//
// Each measure is of one question. The figure for a set is the mean over the questions that the
// measure applies to. [Of] leaves out measures that do not apply, so that the mean of
// abstention_precision, say, is over the refused questions.
package metric

import "time"

// Input holds the data of one question and its answer. Unknown fields are zero, and the measures
// that need them do not apply.
type Input struct {
	Ranked   []string       // documents found, best first, without duplicates; up to 100
	Relevant map[string]int // relevant documents, by grades from 1; empty: not known

	Right *bool // answered from gold, or refused if unanswerable; nil: not known

	Unanswerable bool // the documents do not answer it
	Refused      bool // the system abstained
	Failed       bool // the run ended in an error, without an answer

	Conflicting  *bool // the documents disagree on the answer; nil: not labelled
	SaidConflict bool  // the system reported a conflict

	Text    string   // of the answer, without citation numbers
	Answers []string // alternative reference answers

	Contexts []Context // given to the generator, in order
	Expected []Source  // that a right answer should cite

	// Judge's results; nil: not judged. Judged holds scores in [0, 1] by the name of the measure,
	// including custom measures. Reference reports for each claim of the reference answer whether
	// the answer entails it.
	Claims    []Claim
	Reference []bool
	Judged    map[string]float64

	Spent *Spent
}

// Spent is the cost of a question.
type Spent struct {
	Steps        int
	Searches     int
	Iterations   float64 // searches of a sub-question, in the mean
	Calls        int     // of models
	InputTokens  int
	OutputTokens int
	CostMicros   int64 // millionths of the configured currency
	Elapsed      time.Duration
}

// answered reports whether there is an answer to measure.
func (in Input) answered() bool { return !in.Refused && !in.Failed }

// labelled reports whether it is known if the documents answer the question.
func (in Input) labelled() bool {
	return in.Unanswerable || len(in.Relevant) > 0 || len(in.Answers) > 0 || len(in.Expected) > 0
}

// AbstentionPrecision is 1 for a refused unanswerable question and 0 for any other refused
// question. It does not apply to answered questions. Its mean is the share of the refusals that
// were right. Source: precision as for any decision; Rajpurkar et al., "Know What You Don't Know:
// Unanswerable Questions for SQuAD", ACL 2018, for the task.
func AbstentionPrecision(in Input) (value float64, applies bool) {
	return one(in.Unanswerable), in.Refused && !in.Failed && in.labelled()
}

// AbstentionRecall is 1 for a refused unanswerable question, and 0 for an unanswerable question
// that was answered or failed. It does not apply to answerable questions. Its mean is the share of
// the unanswerable questions that were refused, and 1 minus the mean is the rate of false answers.
// Source: as of AbstentionPrecision.
func AbstentionRecall(in Input) (value float64, applies bool) {
	return one(in.Refused && !in.Failed), in.Unanswerable
}

// ConflictPrecision is 1 if a conflict was reported and the documents disagree, and 0 if one was
// reported and they do not. It does not apply to other questions. Source: precision as for any
// decision; conflicts between passages as in Xie et al., "Adaptive Chameleon or Stubborn Sloth",
// ICLR 2024.
func ConflictPrecision(in Input) (value float64, applies bool) {
	return one(in.Conflicting != nil && *in.Conflicting), in.SaidConflict && in.Conflicting != nil
}

// ConflictRecall is 1 for a question on which the documents disagree if the answer reports the
// conflict and cites every expected source, in case two or more are known; else 0. It does not
// apply to questions without a conflict. Source: as of ConflictPrecision.
func ConflictRecall(in Input) (value float64, applies bool) {
	sides := len(in.Expected) < 2 || shareOf(in.Expected, func(s Source) bool { return s.Cited }) == 1
	return one(in.SaidConflict && sides && !in.Failed), in.Conflicting != nil && *in.Conflicting
}
