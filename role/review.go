package role

import (
	"context"

	"github.com/assay-rag/assay"
)

// Reading is a question with its evidence, the input of most roles. Context is as in
// GenerateInput.
type Reading struct {
	Question string           `json:"question"`
	Evidence []assay.Evidence `json:"evidence"`
	Context  []Excerpt        `json:"context,omitempty"`
}

// An Analyst sorts the statements of the evidence by category. Its cautious output has no
// statements and leaves the whole question open.
type Analyst interface {
	Analyse(ctx context.Context, c Caller, in Reading) (Analysis, error)
}

// An Analysis holds statements by category. The names in a statement are in its sources verbatim;
// other statements are in Dropped.
type Analysis struct {
	Categories []Category `json:"categories"`
	Answered   []string   `json:"answered"` // the answered parts of the question, in words
	Open       []string   `json:"open"`     // the other parts
	Dropped    []Dropped  `json:"dropped,omitempty"`

	Outcome
}

// A Category is a group of statements that belong together.
type Category struct {
	Name       string      `json:"name"`
	Statements []Statement `json:"statements"` // with only text and evidence
}

// Dropped is a statement that was left out.
type Dropped struct {
	Text   string `json:"text"`
	Reason string `json:"reason"`
}

// A Reflector decides whether known statements answer a question. Its cautious output is
// IncompleteStatus.
type Reflector interface {
	Reflect(ctx context.Context, c Caller, in ReflectInput) (Reflection, error)
}

// ReflectInput is a question and the statements known so far.
type ReflectInput struct {
	Question string   `json:"question"`
	Known    []string `json:"known"`
	Open     []string `json:"open"`
	Rounds   int      `json:"rounds"` // so far

	// Threshold is the share of the question, in [0, 1], that must be answered; 0:
	// DefaultThreshold.
	Threshold float64 `json:"threshold"`
}

// DefaultThreshold is the share of a question that must be answered by default.
const DefaultThreshold = 0.8

// A Reflection is the reflector's decision. It is CompletedStatus only if Coverage reaches
// Threshold.
type Reflection struct {
	Status        ReflectionStatus `json:"status"`
	Justification string           `json:"justification"`
	Coverage      float64          `json:"coverage"` // answered share of the question, in [0, 1]
	Threshold     float64          `json:"threshold"`

	Outcome
}

// A ReflectionStatus is the decision whether to continue.
type ReflectionStatus string

// The statuses of a reflection.
const (
	CompletedStatus  ReflectionStatus = "COMPLETED"
	IncompleteStatus ReflectionStatus = "INCOMPLETE"
)

// DraftInput is a draft and its evidence.
type DraftInput struct {
	Reading
	Draft Draft `json:"draft"`

	// Critique is the critique of the draft, for a judge; nil: there is none.
	Critique *Critique `json:"critique,omitempty"`
}

// A Judge judges hits, drafts and answers. Each of its tasks has its own scale.
type Judge interface {
	DraftJudge
	Critic
	SupportGrader
	RetrievalGrader
	AnswerGrader
	Scorer
	Analyst
	Reflector
}

// A DraftJudge decides whether a draft may be shown. Its cautious output is REVISE.
type DraftJudge interface {
	JudgeDraft(ctx context.Context, c Caller, in DraftInput) (Judgement, error)
}

// A Judgement is a judge's decision on a draft.
type Judgement struct {
	Verdict JudgeVerdict `json:"verdict"`
	Revise  []string     `json:"revise"` // revisions, at least one if the verdict is Revise
	Reason  string       `json:"reason"`

	Outcome
}

// A JudgeVerdict is the verdict of a judge.
type JudgeVerdict string

// The verdicts of a judge.
const (
	Accept JudgeVerdict = "ACCEPT"
	Revise JudgeVerdict = "REVISE"
)

// A Critic rates a draft by fixed criteria. Its cautious output rates all of them Fair and
// has no remarks.
type Critic interface {
	Criticise(ctx context.Context, c Caller, in DraftInput) (Critique, error)
}

// A Critique is a critic's rating of a draft.
type Critique struct {
	Grounded Rating   `json:"grounded"` // the sources support it
	Complete Rating   `json:"complete"` // it answers the whole question
	Relevant Rating   `json:"relevant"` // it answers only the question
	Clear    Rating   `json:"clear"`    // it is easy to understand
	Remarks  []Remark `json:"remarks"`

	Outcome
}

// A Rating is the rating of one criterion.
type Rating string

// The ratings.
const (
	Good Rating = "good"
	Fair Rating = "fair"
	Poor Rating = "poor"
)

// A Remark is a flaw of a draft.
type Remark struct {
	Statement int    `json:"statement"` // its index; -1: the whole draft
	Flaw      Flaw   `json:"flaw"`
	Advice    string `json:"advice"`
}

// A Flaw is a kind of flaw.
type Flaw string

// The flaws.
const (
	FlawUnsupported  Flaw = "unsupported"
	FlawContradicted Flaw = "contradicted"
	FlawOffTopic     Flaw = "off_topic"
	FlawMissing      Flaw = "missing"
	FlawUnclear      Flaw = "unclear"
)

// A SupportGrader grades how far the evidence of each statement of a draft supports it, in
// order. It guides a strategy and is not a verifier. The cautious grade is PartlySupported,
// or NotSupported for a statement without evidence.
type SupportGrader interface {
	GradeSupport(ctx context.Context, c Caller, in DraftInput) (SupportGrades, error)
}

// SupportGrades are the grades of a draft's statements.
type SupportGrades struct {
	Grades []Support `json:"grades"`

	Outcome
}

// Support is the grade of a statement.
type Support string

// The grades of a statement.
const (
	FullySupported  Support = "supported"
	PartlySupported Support = "partly"
	NotSupported    Support = "not"
)
