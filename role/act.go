package role

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// ActorRole is the name of the role that decides which tools to call.
const ActorRole = "actor"

// An Actor says what to do next about a question: which of the read-only tools to
// call, or that it is done. Nothing that it says is shown or cited: what its calls bring
// is evidence, from which others answer. Its cautious output is done.
type Actor interface {
	Act(ctx context.Context, c Caller, in ActInput) (Action, error)
}

// ActInput is a question and what was done about it so far.
type ActInput struct {
	Question string     `json:"question"`
	Style    ActStyle   `json:"style,omitempty"`
	Tools    []llm.Tool `json:"tools"` // that there are
	Most     int        `json:"most"`  // calls that are made of one reply
	Left     int        `json:"left"`  // replies that the actor has, this one included

	// Memo is what the steps say in short that Steps does not hold any more, each with
	// the numbers of its results, and Made what was called in those.
	Memo []Statement `json:"memo,omitempty"`
	Made []ToolUse   `json:"made,omitempty"`

	Steps []ActStep `json:"steps,omitempty"` // the latest, the oldest first

	// Found is what the calls brought, by the numbers that it was shown under, best
	// first; Terms are those of the question, as the index sees them, and Floor is as
	// that of GradeInput. They are for who judges by them: whoever reads has it all in
	// the observations.
	Found []assay.Evidence `json:"found,omitempty"`
	Terms []assay.Term     `json:"terms,omitempty"`
	Floor float64          `json:"floor,omitempty"`
	Fresh int              `json:"fresh,omitempty"` // of what the last step brought, how much reaches Floor and did not before

	// Plain says that the model takes no tools, as an earlier Action said.
	Plain bool `json:"plain,omitempty"`
}

// An ActStyle is how an actor goes about a question.
type ActStyle string

// The styles.
const (
	StepByStep ActStyle = ""      // reason, act, observe, and again
	AllInOne   ActStyle = "agent" // plan, retrieve, analyse and reflect, as one prompt says
)

// An ActStep is what an actor said once, and what came of it.
type ActStep struct {
	Thought string    `json:"thought,omitempty"`
	Uses    []ToolUse `json:"uses"`
	Note    string    `json:"note,omitempty"` // what the actor is told besides
}

// A ToolUse is a call and what came of it.
type ToolUse struct {
	Call    llm.ToolCall `json:"call"`
	Brought string       `json:"brought,omitempty"` // the observation; in Made there is none
	Short   string       `json:"short,omitempty"`   // what it was in a few words, which are not a document's
	Failed  bool         `json:"failed,omitempty"`  // it brought nothing
}

// An Action is what an actor wants to have done.
type Action struct {
	Thought string         `json:"thought"`
	Calls   []llm.ToolCall `json:"calls,omitempty"` // to make side by side; as the actor gave them: tools may be invented, arguments anything
	Done    bool           `json:"done"`            // there is nothing more to look for; then there are no Calls

	// Asked is how many calls the actor wanted to have made, where those are more than Calls.
	Asked int `json:"asked,omitempty"`

	// Plain says that the model takes no tools and was asked in words.
	Plain bool `json:"plain,omitempty"`

	Outcome
}
