package role

import "context"

// AnswerGraderRole is the name of the role that says whether an answer answers.
const AnswerGraderRole = "answer_grader"

// An AnswerGrader says how far an answer answers its question, whatever it rests on: what
// is true and cited may be beside the point. Its cautious output is a failure, and nobody
// goes by its relevance.
type AnswerGrader interface {
	GradeAnswer(ctx context.Context, c Caller, in AnswerInput) (AnswerGrade, error)
}

// AnswerInput is a question and the answer to it.
type AnswerInput struct {
	Question   string           `json:"question"`
	Parts      []string         `json:"parts,omitempty"` // the questions that it was taken apart into
	Statements []ShownStatement `json:"statements"`      // at least one

	// Quoted says that the statements are in the words of passages which were found by
	// those of the question: who goes by words can be sure then.
	Quoted bool `json:"quoted,omitempty"`
}

// A ShownStatement is a statement of an answer as it is shown, and what the passages that
// it cites stand under: a sentence of a section need not name what the section is about.
type ShownStatement struct {
	Text   string   `json:"text"`
	Under  []string `json:"under,omitempty"`
	Quotes []string `json:"quotes,omitempty"` // the words that it cites
}

// An AnswerGrade is how far an answer answers its question.
type AnswerGrade struct {
	Relevance *float64 `json:"relevance"` // in [0, 1]; nil: it cannot be told
	Lacks     []string `json:"lacks"`     // what the question asks for and the answer does not say, in words

	// OffTopic is set where the answer does not respond to the question at all. A grader
	// that is not sure leaves it.
	OffTopic bool `json:"off_topic,omitempty"`

	Outcome
}
