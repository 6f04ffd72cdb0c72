package role

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// ActorRole is the name of the role that decides which tools to call.
const ActorRole = "actor"

// An Actor decides on the next step for a question: which of the read-only tools to call, or
// that it is done. Its words are never shown or cited; the results of its calls are evidence
// for other roles. Its cautious output is done.
type Actor interface {
	Act(ctx context.Context, c Caller, in ActInput) (Action, error)
}

// ActInput is a question and the steps so far.
type ActInput struct {
	Question string     `json:"question"`
	Style    ActStyle   `json:"style,omitempty"`
	Tools    []llm.Tool `json:"tools"` // available tools
	Most     int        `json:"most"`  // most calls that one reply may make
	Left     int        `json:"left"`  // replies left, this one included

	// Memo summarises the earlier steps that are no longer in Steps, with the numbers of
	// their results. Made are the calls of these steps.
	Memo []Statement `json:"memo,omitempty"`
	Made []ToolUse   `json:"made,omitempty"`

	Steps []ActStep `json:"steps,omitempty"` // the latest steps, oldest first

	// Found are the results of the calls by the numbers that they were shown under, best
	// first. Terms are the terms of the question in the index, Floor is as in GradeInput.
	// They are for an actor without a model; a model reads the observations.
	Found []assay.Evidence `json:"found,omitempty"`
	Terms []assay.Term     `json:"terms,omitempty"`
	Floor float64          `json:"floor,omitempty"`
	Fresh int              `json:"fresh,omitempty"` // number of new results of the last step that reach Floor

	// Plain is set if an earlier Action found that the model does not support tools.
	Plain bool `json:"plain,omitempty"`
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

	Outcome
}
