package role

import (
	"context"

	"github.com/assay-rag/assay"
)

// Reading is a question and the evidence for it, as most roles read it. Context is
// as that of GenerateInput.
type Reading struct {
	Question string           `json:"question"`
	Evidence []assay.Evidence `json:"evidence"`
	Context  []Excerpt        `json:"context,omitempty"`
}

// An Analyst sorts what evidence says about a question by category. Its cautious
// output says nothing and leaves the whole question open.
type Analyst interface {
	Analyse(ctx context.Context, c Caller, in Reading) (Analysis, error)
}

// An Analysis says what the sources say. A statement that names something rests on
// a source that has the name verbatim; those that did not are in Dropped.
type Analysis struct {
	Categories []Category `json:"categories"`
	Answered   []string   `json:"answered"` // what of the question is answered, in words
	Open       []string   `json:"open"`     // what is not
	Dropped    []Dropped  `json:"dropped,omitempty"`

	Outcome
}

// A Category is a group of statements that belong together.
type Category struct {
	Name       string      `json:"name"`
	Statements []Statement `json:"statements"` // with text and evidence alone
}

// Dropped is a statement that was left out.
type Dropped struct {
	Text   string `json:"text"`
	Reason string `json:"reason"`
}

// A Reflector says whether what is known answers a question. Its cautious output is
// IncompleteStatus.
type Reflector interface {
	Reflect(ctx context.Context, c Caller, in ReflectInput) (Reflection, error)
}

// ReflectInput is a question and what is known of it.
type ReflectInput struct {
	Question string   `json:"question"`
	Known    []string `json:"known"` // statements
	Open     []string `json:"open"`
	Rounds   int      `json:"rounds"` // made so far

	// Threshold is the share of the question, in [0, 1], that has to be answered; 0:
	// DefaultThreshold.
	Threshold float64 `json:"threshold"`
}

// DefaultThreshold is how much of a question has to be answered unless something
// else is said.
const DefaultThreshold = 0.8

// A Reflection is the reflector's word. Completed with a Coverage under the
// Threshold does not exist.
type Reflection struct {
	Status        ReflectionStatus `json:"status"`
	Justification string           `json:"justification"`
	Coverage      float64          `json:"coverage"`  // share of the question that is answered, in [0, 1]
	Threshold     float64          `json:"threshold"` // that it was held to

	Outcome
}

// A ReflectionStatus says whether to go on.
type ReflectionStatus string

// The statuses of a reflection.
const (
	CompletedStatus  ReflectionStatus = "COMPLETED"
	IncompleteStatus ReflectionStatus = "INCOMPLETE"
)

// DraftInput is a draft and what it was written from.
type DraftInput struct {
	Reading
	Draft Draft `json:"draft"`

	// Critique is what a critic said of the draft, for a judge; nil: there was none.
	Critique *Critique `json:"critique,omitempty"`
}

// A Judge says whether a draft may go out. Its cautious output is REVISE.
type Judge interface {
	Judge(ctx context.Context, c Caller, in DraftInput) (Judgement, error)
}

// A Judgement is a judge's word on a draft.
type Judgement struct {
	Verdict JudgeVerdict `json:"verdict"`
	Revise  []string     `json:"revise"` // what to do better, at least one thing when the verdict is Revise
	Reason  string       `json:"reason"`

	Outcome
}

// A JudgeVerdict is what a judge decides.
type JudgeVerdict string

// The verdicts of a judge.
const (
	Accept JudgeVerdict = "ACCEPT"
	Revise JudgeVerdict = "REVISE"
)

// A Critic looks at a draft from fixed sides. Its cautious output rates all of
// them Fair and has no remarks.
type Critic interface {
	Criticise(ctx context.Context, c Caller, in DraftInput) (Critique, error)
}

// A Critique is a critic's word on a draft.
type Critique struct {
	Grounded Rating   `json:"grounded"` // the sources say what it says
	Complete Rating   `json:"complete"` // all of the question is answered
	Relevant Rating   `json:"relevant"` // nothing else is
	Clear    Rating   `json:"clear"`    // who asked understands it
	Remarks  []Remark `json:"remarks"`

	Outcome
}

// A Rating is how good something is.
type Rating string

// The ratings.
const (
	Good Rating = "good"
	Fair Rating = "fair"
	Poor Rating = "poor"
)

// A Remark says what is wrong with a draft.
type Remark struct {
	Statement int    `json:"statement"` // its index; -1: the draft as a whole
	Flaw      Flaw   `json:"flaw"`
	Advice    string `json:"advice"`
}

// A Flaw is a kind of thing that is wrong with a draft.
type Flaw string

// The flaws.
const (
	FlawUnsupported  Flaw = "unsupported"
	FlawContradicted Flaw = "contradicted"
	FlawOffTopic     Flaw = "off_topic"
	FlawMissing      Flaw = "missing"
	FlawUnclear      Flaw = "unclear"
)

// A SupportGrader says of each statement of a draft whether its evidence says it,
// in their order. It guides a strategy and is no verifier. The cautious grade is
// PartlySupported; that of a statement without evidence NotSupported.
type SupportGrader interface {
	GradeSupport(ctx context.Context, c Caller, in DraftInput) (SupportGrades, error)
}

// SupportGrades are the grades of a draft's statements.
type SupportGrades struct {
	Grades []Support `json:"grades"`

	Outcome
}

// Support is how far evidence says what a statement does.
type Support string

// The grades of a statement.
const (
	FullySupported  Support = "supported"
	PartlySupported Support = "partly"
	NotSupported    Support = "not"
)
