// Package role says which jobs a strategy hands out, as small interfaces. The
// package local does them without a language model, the package prompted with one.
//
// A role takes values and returns values. It knows neither the run nor the
// store: what it is given is all that it can see, and the only thing it can do is
// to call a model through the [Caller] of its strategy, which makes a step of each
// call. Roles are safe for concurrent use, and deterministic but for what models
// reply: equal input and equal replies give equal output and equal calls.
//
// # When a job could not be done
//
// A role returns an error only where the run cannot go on with it: its context or
// the budget has ended. What else goes wrong is in its output, as a Failure and
// the cautious output beside it, or as notes: a provider that is down, for which
// the local role stood in; replies that could not be used.
package role

import (
	"cmp"
	"context"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
)

// The names of the roles, as configuration, prompts and answers have them.
const (
	PlannerRole    = "planner"
	RewriterRole   = "rewriter"
	RouterRole     = "router"
	GraderRole     = "grader"
	QuerierRole    = "querier" // the next-best sub-query
	AnalystRole    = "analyst"
	ReflectorRole  = "reflector"
	JudgeRole      = "judge"
	CriticRole     = "critic"
	GeneratorRole  = "generator"
	VerifierRole   = "verifier"
	ExtractorRole  = "extractor"
	SummariserRole = "summariser"
	ComparerRole   = "comparer"

	ClarifierRole       = "clarifier"
	ScorerRole          = "scorer" // of hits
	RetrievalGraderRole = "retrieval_grader"
	SupportGraderRole   = "support_grader"
)

// A Caller makes a role's calls, each as a step of the run. It is good for one job,
// and for one call at a time.
type Caller interface {
	// Call asks call.Model. The error is assay.ErrUnavailable when the provider
	// failed; any other ends the role's job and is to be returned as it is.
	Call(ctx context.Context, call Call) (llm.Response, error)

	// Check has a claim judged by a verifier that is a service. Errors are as those
	// of Call.
	Check(ctx context.Context, v ground.Service, claim Claim) (ground.Judgement, error)
}

// A Call is one question to a model. What is recorded of it is its JSON and the
// model's name.
type Call struct {
	Role    string      `json:"role"`   // one of the names above
	Prompt  string      `json:"prompt"` // the template and its hash: "grader@5f0c7a1e"
	Model   llm.Model   `json:"-"`
	Request llm.Request `json:"request"` // Attempts is the caller's to set
}

// A Planner cuts a question into what has to be looked up.
type Planner interface {
	Plan(ctx context.Context, c Caller, question string) (Plan, error)
}

// A Plan is a question's sub-questions, at least one, in an order in which they
// can be answered.
type Plan struct {
	// Shape says how the sub-questions make up the question.
	Shape        PlanShape     `json:"shape"`
	SubQuestions []SubQuestion `json:"sub_questions"`

	Outcome
}

// An Outcome says what a reader has to know of how an output came about. That of a
// job that went well is zero.
type Outcome struct {
	// Failure says why the job could not be done: the output is the cautious one.
	Failure string `json:"failure,omitempty"`

	// Notes say what went wrong and was made up for, each in a sentence: "grader:
	// openai/gpt-4.1-mini: rate limited (HTTP 429); the local grader stood in".
	Notes []string `json:"notes,omitempty"`

	// StoodIn says that the local role did it, for the provider failed.
	StoodIn bool `json:"stood_in,omitempty"`
}

// A PlanShape is how a plan's sub-questions make up its question.
type PlanShape string

// The shapes of a plan.
const (
	Single      PlanShape = "single"
	Conjunction PlanShape = "conjunction" // several questions in one: all of them are to be answered
	Comparison  PlanShape = "comparison"  // the same question about several things
	Chain       PlanShape = "chain"       // an answer is needed to ask the next question
)

// A SubQuestion is one thing to look up.
type SubQuestion struct {
	Text string `json:"text"`
	// Needs lists the sub-questions, by index, whose evidence this one builds
	// on. All are smaller than its own index.
	Needs []int `json:"needs,omitempty"`
	// Filter narrows the search; it is ANDed with the caller's own.
	Filter assay.Filter `json:"filter"`
}

// A Grader judges what searches for one question brought.
type Grader interface {
	Grade(ctx context.Context, c Caller, in GradeInput) (Grade, error)
}

// GradeInput is a question and what was found for it so far.
type GradeInput struct {
	Question string       `json:"question"`
	Hits     []assay.Hit  `json:"hits"`  // of all its searches, best first by relevance
	Terms    []assay.Term `json:"terms"` // of the question, as the index sees them
	Tried    []string     `json:"tried"` // queries that were searched already
	Floor    float64      `json:"floor"` // relevance under which a hit does not count; a grader that reads the hits need not go by it

	// Held is how likely the hits have to hold the answer for a grader that can tell; 0:
	// it does not ask itself that.
	Held float64 `json:"held,omitempty"`
}

// A Grade is the word on a question's evidence.
type Grade struct {
	Verdict  assay.GradeVerdict `json:"verdict"`
	Relevant []string           `json:"relevant_chunks"`    // chunk IDs, best first
	Missing  []string           `json:"missing"`            // what the hits do not say, in words
	Query    string             `json:"reformulated_query"` // to search next; empty: nothing better is known
	Reason   string             `json:"reason"`             // in a sentence

	// Held is how likely the hits hold the answer, in [0, 1]; nil: the grader did not say.
	Held *float64 `json:"held,omitempty"`

	// Answers are the likeliest answers in the hits, best first, of a grader that finds them.
	Answers []Extract `json:"answers,omitempty"`

	Outcome
}

// An Extract is words of a hit that may answer a question.
type Extract struct {
	Text  string  `json:"text"`
	Chunk string  `json:"chunk"` // the hit's chunk ID
	Score float64 `json:"score"` // comparable only within one list
}

// A Generator writes an answer from evidence and from nothing else.
type Generator interface {
	Generate(ctx context.Context, c Caller, in GenerateInput) (Draft, error)
}

// GenerateInput is a question and the evidence accepted for it.
type GenerateInput struct {
	Question string           `json:"question"`
	Parts    []Part           `json:"parts"`
	Evidence []assay.Evidence `json:"evidence"`

	// Context is what of the evidence to read where not all of it fits, and in which
	// order: the best first and last. Numbers stay those of the evidence. A generator
	// that reads as much as it likes may take the evidence itself.
	Context []Excerpt `json:"context"`

	// Rejected are statements that a draft before this one had, and that were not
	// found in what they cite.
	Rejected []Rejected `json:"rejected,omitempty"`

	// Advice says, in words, what a draft before this one did not do, and that this one
	// should where the evidence allows it.
	Advice []string `json:"advice,omitempty"`
}

// Rejected is a statement that the verifier did not let through, and why.
type Rejected struct {
	Text   string `json:"text"`
	Reason string `json:"reason"`
}

// An Excerpt is what to read of a piece of evidence: the spans of its document's
// text, ascending and apart from one another.
type Excerpt struct {
	Evidence int    `json:"n"`
	Spans    []Span `json:"spans"`
}

// A Span is the bytes [Start, End) of a document's text.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Text returns what an excerpt of a piece of evidence says, with an ellipsis where
// something is left out between two spans.
func (x Excerpt) Text(ev assay.Evidence) string {
	parts := make([]string, len(x.Spans))
	for i, s := range x.Spans {
		parts[i] = ev.Hit.Text[s.Start-ev.Hit.Chunk.Start : s.End-ev.Hit.Chunk.Start]
	}
	return strings.Join(parts, " … ")
}

// A Part is a sub-question and the evidence that was found for it, by number.
type Part struct {
	Question string       `json:"question"`
	Evidence []int        `json:"evidence"` // best first
	Terms    []assay.Term `json:"terms"`
}

// A Draft is an answer that nobody has verified yet. A draft without statements
// says that the evidence does not answer the question.
type Draft struct {
	Statements []Statement `json:"statements"`

	// Shape is how the statements make up an answer; empty: prose, with lists where
	// statements are items.
	Shape AnswerShape `json:"shape,omitempty"`

	// Columns are the heads of a table. Its rows are statements with Cells.
	Columns []string `json:"columns,omitempty"`

	// Conflicts are pairs of statements, by index, that cannot both hold: two sides
	// that different sources take.
	Conflicts [][2]int `json:"conflicts,omitempty"`

	// Open says, in words, what of the question the evidence does not answer.
	Open []string `json:"open,omitempty"`

	// Torn says that an item of its list, a row of its table or a side of a conflict
	// could not be used and is not here: what is looks whole and is not.
	Torn bool `json:"torn,omitempty"`

	Outcome
}

// An AnswerShape is a form that an answer takes.
type AnswerShape string

// The shapes.
const (
	Prose AnswerShape = "prose"
	List  AnswerShape = "list"
	Table AnswerShape = "table"
)

// A Statement is one or more sentences and the evidence they rest on. A number
// that was not given is an error of the generator and is dropped; a statement
// left without a number is not shown.
type Statement struct {
	Text     string `json:"text"`
	Evidence []int  `json:"evidence"`
	Item     bool   `json:"item"` // of a list: shown on a line of its own

	// Section is the heading that it stands under, one of the sections that the
	// domain wants an answer to have; empty: under none.
	Section string `json:"section,omitempty"`

	// Cells are those of a table's row, one for each column; Text then says in a
	// sentence what the row says, for the verifier.
	Cells []string `json:"cells,omitempty"`

	// Decides is how the statement answers a question for yes or no; empty: it is none, or
	// the statement does not decide it. Only a quotation can.
	Decides YesNo `json:"decides,omitempty"`
}

// A YesNo answers a question in one word.
type YesNo string

// The two of them, as they are shown.
const (
	Yes YesNo = "Yes"
	No  YesNo = "No"
)

// A Verifier judges the claims of a draft against the words that they cite, and
// nothing else. It returns a judgement for each, in their order; what it cannot
// judge is not supported.
type Verifier interface {
	Verify(ctx context.Context, c Caller, claims []Claim) ([]ground.Judgement, error)
}

// A Claim is what a verifier is given of one.
type Claim struct {
	Text  string           `json:"claim"`
	Cited []ground.Passage `json:"cited"`

	// Said is the claim as it reads by itself: what its pronouns and ellipses stand for
	// is put in. Empty: it is Text.
	Said string `json:"said,omitempty"`

	// Row is set where the claim is a table's row. Text is then made of its columns and
	// cells, as it is shown.
	Row *ground.Row `json:"row,omitempty"`
}

// Alone is the claim as it reads by itself, which is what a verifier judges.
func (c Claim) Alone() string { return cmp.Or(c.Said, c.Text) }
