package role

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// An Actor looks a question up with the read-only tools: it makes a plan, acts turn by turn, and
// judges after each turn that searched or read whether it has enough. Its words are never shown or
// cited; the results of its calls are evidence for other roles. It also does the work of the tools
// that read results.
type Actor interface {
	// Plan lists the sub-goals of a question before the first turn. The cautious output is the
	// question as the only one.
	Plan(ctx context.Context, c Caller, question string) (Plan, error)

	// Act decides on the next turn: which tools to call, or that the search is done. The cautious
	// output is done.
	Act(ctx context.Context, c Caller, in ActInput) (Action, error)

	// Critique judges the results so far. The cautious output is not sufficient and changes nothing
	// in the plan.
	Critique(ctx context.Context, c Caller, in ActInput) (SelfCritique, error)

	Extractor
	Summariser
	Comparer
}

// A Goal is an item of an actor's plan.
type Goal struct {
	Text  string `json:"text"`
	Needs []int  `json:"needs,omitempty"` // goals, by index, to be covered first
	Done  bool   `json:"done,omitempty"`  // the results cover it
}

// A SelfCritique is an actor's judgement of the results so far.
type SelfCritique struct {
	Sufficient   bool     `json:"sufficient"`    // they answer the whole question; Missing is then empty
	Missing      []string `json:"missing"`       // what the question asks and no result says, in words
	NextSearches []string `json:"next_searches"` // queries that were not made, the best first

	// Covered are the goals, by index, that the results cover. Revised replaces the goals that are
	// still open; empty: the plan stays.
	Covered []int    `json:"covered"`
	Revised []string `json:"revised,omitempty"`

	Outcome
}

// ActInput is a question and the steps so far.
type ActInput struct {
	Question string     `json:"question"`
	Style    ActStyle   `json:"style,omitempty"`
	Tools    []llm.Tool `json:"tools,omitempty"` // available tools; none for a critique
	Most     int        `json:"most,omitempty"`  // most calls that one reply may make
	Left     int        `json:"left,omitempty"`  // replies left, this one included

	// Plan is the plan before the first of Steps; empty: the actor works without one.
	Plan []Goal `json:"plan,omitempty"`

	// Memo summarises the earlier steps that are no longer in Steps, with the numbers of
	// their results. Made are the calls of these steps.
	Memo []Statement `json:"memo,omitempty"`
	Made []ToolUse   `json:"made,omitempty"`

	Steps []ActStep `json:"steps,omitempty"` // the latest steps, oldest first

	// Found are the results of the calls by the numbers that they were shown under, best
	// first. A critique reads them. To act, a model reads the observations, and only an actor
	// without a model needs Found. Terms are the terms of the question in the index, Floor is
	// as in GradeInput.
	Found []assay.Evidence `json:"found,omitempty"`
	Terms []assay.Term     `json:"terms,omitempty"`
	Floor float64          `json:"floor,omitempty"`
	Fresh int              `json:"fresh,omitempty"` // number of new results of the last step that reach Floor

	// Plain is set if an earlier Action found that the model does not support tools.
	Plain bool `json:"plain,omitempty"`
}

// Current returns the plan after the last of the steps.
func (in ActInput) Current() []Goal {
	for _, s := range slices.Backward(in.Steps) {
		if s.Plan != nil {
			return s.Plan
		}
	}
	return in.Plan
}

// Critique returns the critique of the last step; nil: none.
func (in ActInput) Critique() *SelfCritique {
	if n := len(in.Steps); n > 0 {
		return in.Steps[n-1].Critique
	}
	return nil
}

// An ActStyle is the way in which an actor works.
type ActStyle string

// The styles.
const (
	StepByStep ActStyle = ""      // reason, act, observe, and again
	AllInOne   ActStyle = "agent" // plan, retrieve, analyse and reflect in one prompt
)

// An ActStep is one reply of an actor and its results.
type ActStep struct {
	Thought string    `json:"thought,omitempty"`
	Uses    []ToolUse `json:"uses"`
	Note    string    `json:"note,omitempty"` // further information for the actor

	// Critique is the actor's judgement after the step, and Plan the plan after it; nil: the step
	// was not followed by one.
	Critique *SelfCritique `json:"critique,omitempty"`
	Plan     []Goal        `json:"plan,omitempty"`
}

// A ToolUse is a call and its result.
type ToolUse struct {
	Call    llm.ToolCall `json:"call"`
	Brought string       `json:"brought,omitempty"` // the observation; empty in Made
	Short   string       `json:"short,omitempty"`   // summary of the observation without words of documents
	Failed  bool         `json:"failed,omitempty"`  // the call had no result
}

// An Action is a reply of an actor.
type Action struct {
	Thought string         `json:"thought"`
	Calls   []llm.ToolCall `json:"calls,omitempty"` // to make in parallel; unchecked: tools may not exist, arguments may be anything
	Done    bool           `json:"done"`            // the search is over; Calls is empty

	// Asked is the number of calls that the actor asked for, if Calls has fewer.
	Asked int `json:"asked,omitempty"`

	// Plain is set if the model does not support tools and was asked in words.
	Plain bool `json:"plain,omitempty"`

	// Unreadable is set if no reply of the model could be used, however often it was asked. Failure
	// says why, and Done is set.
	Unreadable bool `json:"unreadable,omitempty"`

	Outcome
}
