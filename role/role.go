// Package role defines the jobs of a strategy as small interfaces. Package local
// implements them without a language model, package prompted with one.
//
// A role takes values and returns values. It has no access to the run or the store;
// it can only call a model through the [Caller] of its strategy, which records each
// call as a step. Roles are safe for concurrent use. They are deterministic: equal
// input and equal replies of models give equal output and equal calls.
//
// # Failures
//
// A role returns an error only if the run has to end, because its context is done or
// its budget is exhausted. Other failures are part of the output: a Failure beside
// the cautious output, or notes, as when a provider was down and the local role took
// its place, or when a reply could not be used.
package role

import (
	"cmp"
	"context"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
)

// The roles, as configuration and answers name them.
const (
	PlannerRole   = "planner"
	RewriterRole  = "rewriter"
	GraderRole    = "grader"
	GeneratorRole = "generator"
	VerifierRole  = "verifier"
	JudgeRole     = "judge"
	ActorRole     = "actor"
)

// Names lists the roles.
func Names() []string {
	return []string{PlannerRole, RewriterRole, GraderRole, GeneratorRole, VerifierRole, JudgeRole, ActorRole}
}

// The tasks of roles besides the one that has the role's own name. A task has its own step,
// prompt and output.
const (
	RouterTask  = "router"  // of the planner
	ReviserTask = "reviser" // of the planner

	QuerierTask   = "querier"   // of the rewriter: the next-best sub-query
	ClarifierTask = "clarifier" // of the rewriter

	DescriberTask = "describer" // of the generator: what a figure shows

	ActorPlanTask     = "actor_plan"     // of the actor, like the tasks below
	ActorCritiqueTask = "actor_critique" //
	AgentTask         = "agent"          // an actor with the style AllInOne
	ExtractorTask     = "extractor"      // what a tool makes of results, like the next two
	SummariserTask    = "summariser"     //
	ComparerTask      = "comparer"       //

	AnalystTask         = "analyst"          // of the judge, like the tasks below
	ReflectorTask       = "reflector"        //
	CriticTask          = "critic"           //
	ScorerTask          = "scorer"           // of hits
	RefinerTask         = "refiner"          // of hits
	RetrievalGraderTask = "retrieval_grader" //
	SupportGraderTask   = "support_grader"   //
	AnswerGraderTask    = "answer_grader"    //
)

// Of returns the role that does a task. The task with a role's own name is that role's.
func Of(task string) string {
	switch task {
	case RouterTask, ReviserTask:
		return PlannerRole
	case QuerierTask, ClarifierTask:
		return RewriterRole
	case DescriberTask:
		return GeneratorRole
	case ActorPlanTask, ActorCritiqueTask, AgentTask, ExtractorTask, SummariserTask, ComparerTask:
		return ActorRole
	case AnalystTask, ReflectorTask, CriticTask, ScorerTask, RefinerTask, RetrievalGraderTask, SupportGraderTask, AnswerGraderTask:
		return JudgeRole
	}
	return task
}

// A Caller makes a role's calls, each as a step of the run. It serves one job and is not safe for
// concurrent use.
type Caller interface {
	// Call asks call.Model. The error is assay.ErrUnavailable if the provider
	// failed. A role returns any other error unchanged.
	Call(ctx context.Context, call Call) (llm.Response, error)

	// Check asks a verifier that is a service. Its errors are those of Call.
	Check(ctx context.Context, v ground.Service, claim Claim) (ground.Judgement, error)
}

// A Call is one request to a model. Its JSON and the name of the model are recorded.
type Call struct {
	Role    string      `json:"role"`   // one of the names above
	Prompt  string      `json:"prompt"` // the template and its hash: "grader@5f0c7a1e"
	Model   llm.Model   `json:"-"`
	Request llm.Request `json:"request"` // the caller sets Attempts
}

// A Planner splits a question into sub-questions to search for, revises the plan of a chain while
// it is carried out, and estimates the work for a question.
type Planner interface {
	Plan(ctx context.Context, c Caller, question string) (Plan, error)

	// Revise decides whether the remaining sub-questions of a plan still fit what the earlier
	// ones found. Its cautious output is Keep.
	Revise(ctx context.Context, c Caller, in RevisionInput) (Revision, error)

	Router
}

// RevisionInput is a plan that is partly carried out.
type RevisionInput struct {
	Question string      `json:"question"`
	Done     []HopResult `json:"done"` // at least one

	// Remaining are the other sub-questions, at least one. Needs and slots such as "#2" count the
	// done ones first.
	Remaining []SubQuestion `json:"remaining"`
}

// A HopResult is a sub-question of a plan and what was found for it.
type HopResult struct {
	Question string             `json:"question"` // as searched, with the names found before
	Answers  []string           `json:"answers"`  // likeliest first; empty: none was read
	Verdict  assay.GradeVerdict `json:"verdict"`
	Found    []string           `json:"found"` // the best hits, each with its title and a sentence
}

// A Revision is a planner's decision on the remaining sub-questions of a plan.
type Revision struct {
	Decision     RevisionDecision `json:"decision"`
	SubQuestions []SubQuestion    `json:"sub_questions,omitempty"` // in place of the remaining ones; at least one for Replace
	Reason       string           `json:"reason"`                  // in a sentence

	Outcome
}

// A RevisionDecision is what becomes of the remaining sub-questions of a plan.
type RevisionDecision string

// The decisions.
const (
	Keep    RevisionDecision = "keep"
	Replace RevisionDecision = "replace"
)

// A Plan is a question's sub-questions, at least one, in an order in which they
// can be answered.
type Plan struct {
	// Shape is how the sub-questions make up the question.
	Shape        PlanShape     `json:"shape"`
	SubQuestions []SubQuestion `json:"sub_questions"`

	Outcome
}

// An Outcome reports problems with a job. It is zero if there were none.
type Outcome struct {
	// Failure is the reason why the job failed and the output is the cautious one.
	Failure string `json:"failure,omitempty"`

	// Notes are the problems that did not make the job fail, each in a sentence:
	// "grader: openai/gpt-4.1-mini: rate limited (HTTP 429); the local grader stood in".
	Notes []string `json:"notes,omitempty"`

	// StoodIn is set if the provider failed and the local role did the job.
	StoodIn bool `json:"stood_in,omitempty"`
}

// Reported returns o. All outputs of roles promote it.
func (o *Outcome) Reported() *Outcome { return o }

// OutcomeOf returns the Outcome of an output, given a pointer to it. It panics for other types.
func OutcomeOf(output any) *Outcome { return output.(interface{ Reported() *Outcome }).Reported() }

// A PlanShape is how a plan's sub-questions make up its question.
type PlanShape string

// The shapes of a plan.
const (
	Single      PlanShape = "single"
	Conjunction PlanShape = "conjunction" // several questions in one
	Comparison  PlanShape = "comparison"  // the same question about several things
	Chain       PlanShape = "chain"       // an answer is needed to ask the next question
)

// A SubQuestion is one thing to search for.
type SubQuestion struct {
	Text string `json:"text"`
	// Needs lists the sub-questions, by index, whose evidence this one builds
	// on. All are smaller than its own index.
	Needs []int `json:"needs,omitempty"`
	// Filter narrows the search; it is ANDed with the caller's own.
	Filter assay.Filter `json:"filter"`
}

// A Grader judges whether the hits for a question answer it.
type Grader interface {
	Grade(ctx context.Context, c Caller, in GradeInput) (Grade, error)
}

// GradeInput is a question and all hits for it so far.
type GradeInput struct {
	Question string       `json:"question"`
	Hits     []assay.Hit  `json:"hits"`  // of all searches, most relevant first
	Terms    []assay.Term `json:"terms"` // of the question in the index
	Tried    []string     `json:"tried"` // earlier queries
	Floor    float64      `json:"floor"` // least relevance of a hit that counts; optional for a grader that reads the hits

	// Held is the least probability that the hits answer the question, for a grader that
	// estimates it. 0: no estimate is needed.
	MinAnswerability float64 `json:"held,omitempty"`
}

// A Grade is the verdict on the hits for a question.
type Grade struct {
	Verdict  assay.GradeVerdict `json:"verdict"`
	Relevant []string           `json:"relevant_chunks"`    // chunk IDs, best first
	Missing  []string           `json:"missing"`            // parts of the question without an answer, in words
	Query    string             `json:"reformulated_query"` // to search next; empty: no better query is known
	Reason   string             `json:"reason"`             // in a sentence

	// Held is the probability that the hits answer the question, in [0, 1]; nil: unknown.
	Answerability *float64 `json:"held,omitempty"`

	// Answers are the likeliest answers in the hits, best first, if the grader finds any.
	Answers []Extract `json:"answers,omitempty"`

	Outcome
}

// An Extract is words of a hit that may answer a question.
type Extract struct {
	Text  string  `json:"text"`
	Chunk string  `json:"chunk"` // the hit's chunk ID
	Score float64 `json:"score"` // comparable only within one list
}

// A Generator writes an answer from evidence alone.
type Generator interface {
	Generate(ctx context.Context, c Caller, in GenerateInput) (Draft, error)
}

// GenerateInput is a question and the evidence accepted for it.
type GenerateInput struct {
	Question string           `json:"question"`
	Parts    []Part           `json:"parts"`
	Evidence []assay.Evidence `json:"evidence"`

	// Context are the parts of the evidence that fit into the prompt, in prompt order: the
	// best first and last. They keep the numbers of the evidence. A generator without such
	// a limit may read the evidence itself.
	Context []Excerpt `json:"context"`

	// Rejected are statements of an earlier draft that their sources do not support.
	Rejected []Rejected `json:"rejected,omitempty"`

	// Advice are the shortcomings of an earlier draft, to be corrected as far as the evidence
	// allows.
	Advice []string `json:"advice,omitempty"`

	// SubAnswers are verified answers to the sub-questions, to be put together into one answer.
	SubAnswers []SubAnswer `json:"sub_answers,omitempty"`
}

// A SubAnswer is a verified answer to a sub-question. Its statements cite the evidence by number.
type SubAnswer struct {
	Question   string      `json:"question"`
	Columns    []string    `json:"columns,omitempty"` // of its table
	Statements []Statement `json:"statements"`        // at least one
}

// Rejected is a statement that the verifier refused.
type Rejected struct {
	Text   string `json:"text"`
	Reason string `json:"reason"`
}

// An Excerpt is a part of a piece of evidence: spans of its document's text, ascending and
// not adjacent.
type Excerpt struct {
	Evidence int    `json:"n"`
	Spans    []Span `json:"spans"`
}

// A Span is the bytes [Start, End) of a document's text.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Text returns the text of an excerpt of ev, with an ellipsis between spans.
func (x Excerpt) Text(ev assay.Evidence) string {
	parts := make([]string, len(x.Spans))
	for i, s := range x.Spans {
		parts[i] = ev.Hit.Text[s.Start-ev.Hit.Chunk.Start : s.End-ev.Hit.Chunk.Start]
	}
	return strings.Join(parts, " … ")
}

// A Part is a sub-question and the numbers of its evidence.
type Part struct {
	Question string       `json:"question"`
	Evidence []int        `json:"evidence"` // best first
	Terms    []assay.Term `json:"terms"`
}

// A Draft is an answer before verification. A draft without statements means that the
// evidence does not answer the question.
type Draft struct {
	Statements []Statement `json:"statements"`

	// Shape is the form of the answer; empty: prose, with lists of the statements that are
	// items.
	Shape AnswerShape `json:"shape,omitempty"`

	// Columns are the heads of a table, whose rows are the statements with Cells.
	Columns []string `json:"columns,omitempty"`

	// Conflicts are pairs of statements, by index, of different sources that cannot both be
	// true.
	Conflicts [][2]int `json:"conflicts,omitempty"`

	// Open are the parts of the question that the evidence does not answer, in words.
	Open []string `json:"open,omitempty"`

	// Torn is set if an unusable item of a list, row of a table or side of a conflict was
	// left out, so that the draft looks complete and is not.
	Torn bool `json:"torn,omitempty"`

	Outcome
}

// An AnswerShape is the form of an answer.
type AnswerShape string

// The shapes.
const (
	Prose AnswerShape = "prose"
	List  AnswerShape = "list"
	Table AnswerShape = "table"
)

// A Statement is one or more sentences and the evidence they rest on. Numbers that are not
// in the input are dropped, and a statement without a number is not shown.
type Statement struct {
	Text     string `json:"text"`
	Evidence []int  `json:"evidence"`
	Item     bool   `json:"item"` // of a list: shown on its own line

	// Section is the heading of the statement, one of the sections that the domain
	// prescribes for answers; empty: no heading.
	Section string `json:"section,omitempty"`

	// Cells are the cells of a row of the table, one for each column. Text is then the row
	// as a sentence, for the verifier.
	Cells []string `json:"cells,omitempty"`

	// Decides is the answer that the statement gives to a yes-no question; empty: none.
	// Only a quotation can have one.
	Decides YesNo `json:"decides,omitempty"`
}

// A YesNo is an answer in one word.
type YesNo string

// The answers in one word, as shown to users.
const (
	Yes YesNo = "Yes"
	No  YesNo = "No"
)

// A Verifier judges the claims of a draft against the passages that they cite. It returns a
// judgement for each claim, in order. A claim that it cannot judge is Unsupported.
type Verifier interface {
	Verify(ctx context.Context, c Caller, claims []Claim) ([]ground.Judgement, error)
}

// A Claim is a claim for a Verifier.
type Claim struct {
	Text  string           `json:"claim"`
	Cited []ground.Passage `json:"cited"`

	// Question is the user's whole question, for a verifier that is a service. Other verifiers do
	// not read it. It may be empty.
	Question string `json:"question,omitempty"`

	// Said is the claim with pronouns and ellipses resolved; empty: same as Text.
	Said string `json:"said,omitempty"`

	// Row is set if the claim is a row of a table. Text then consists of its columns and cells.
	Row *ground.Row `json:"row,omitempty"`
}

// Alone returns the claim with pronouns and ellipses resolved, as a verifier judges it.
func (c Claim) Alone() string { return cmp.Or(c.Said, c.Text) }
