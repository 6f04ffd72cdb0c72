package llm

import (
	"context"
	"encoding/json"

	"github.com/assay-rag/assay"
)

// A Model is a language model that continues a conversation.
type Model interface {
	// Model names it, with the provider that it is reached by: "openai/gpt-4.1".
	Model() string

	// Generate asks the model once. What went wrong is an *Error, unless ctx has
	// ended: a reply that broke off is one, and never a Response. The Response is
	// not to be believed: arguments may be no JSON, tools invented, and the text
	// anything at all.
	//
	// Where stream is not nil, text is handed to it as it arrives, in order, by the
	// goroutine that called; the Response has all of it again. A reply that breaks
	// off may have streamed a part. When Generate returns, nothing of the call is
	// left: no goroutine, no connection in use. Generate is safe for concurrent use.
	Generate(ctx context.Context, req Request, stream func(Delta)) (Response, error)
}

// A Delta is a piece of text as a model produces it.
type Delta struct{ Text string }

// A Request is what a model is asked.
type Request struct {
	// System is what the model is told about its job. It is the part that stays the
	// same from call to call: providers that can cache a prefix cache Tools and it.
	System   string    `json:"system,omitempty"`
	Messages []Message `json:"messages"` // at least one; the last one is not of the assistant

	Tools  []Tool     `json:"tools,omitempty"`  // that the model may call
	Choice ToolChoice `json:"choice,omitempty"` // whether it has to

	// Schema, where set, is what the text of the reply has to follow. Providers
	// without such a thing ask for it in words: whoever needs it checks.
	Schema *Schema `json:"schema,omitempty"`

	MaxTokens   int     `json:"max_tokens"`  // of the reply, at least 1
	Temperature float64 `json:"temperature"` // in [0, 2]; left out where a model does not take it

	// Attempts is how often the call may be made until it succeeds, at least 1; a
	// provider makes one, and what wraps it (package resilient) the others.
	Attempts int `json:"attempts"`
}

// A Speaker is who says a message.
type Speaker string

// The speakers.
const (
	User      Speaker = "user"
	Assistant Speaker = "assistant"
)

// A Message is one turn of a conversation. Results answer the Calls of the
// assistant's message before, all of them, and stand in a user's message.
type Message struct {
	Speaker Speaker      `json:"speaker"`
	Text    string       `json:"text,omitempty"`
	Calls   []ToolCall   `json:"calls,omitempty"`   // assistant only
	Results []ToolResult `json:"results,omitempty"` // user only
}

// A Tool is something that a model may ask to have done.
type Tool struct {
	Name        string          `json:"name"` // of letters, digits, _ and -; at most 64
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON schema of an object
}

// A ToolChoice says whether a model has to call tools.
type ToolChoice string

// The choices.
const (
	ToolsAuto     ToolChoice = "" // as the model likes
	ToolsRequired ToolChoice = "required"
	ToolsNone     ToolChoice = "none"
)

// A ToolCall is what a model asks to have done.
type ToolCall struct {
	ID        string `json:"id"` // unique in the reply; made up where a provider has none
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the model sent it, meant to be a JSON object

	// Opaque is what the provider wants to have back with the call, in a form of its
	// own: the signature of the thinking that led to it, say. Whoever makes a Message
	// of a Response keeps it. Another provider ignores it.
	Opaque string `json:"opaque,omitempty"`
}

// A ToolResult is what came of a call.
type ToolResult struct {
	Call  string `json:"call"` // its ID
	Name  string `json:"name"` // of its tool
	Text  string `json:"text"`
	Error bool   `json:"error,omitempty"` // the call failed, Text says why
}

// A Schema is a JSON schema with a name.
type Schema struct {
	Name   string          `json:"name"` // of letters, digits, _ and -; at most 64
	Schema json.RawMessage `json:"schema"`
}

// A Finish says why a reply ended.
type Finish string

// The reasons. A provider's other reasons are FinishOther.
const (
	FinishStop    Finish = "stop"
	FinishLength  Finish = "length" // MaxTokens, or the model's window, is used up
	FinishTools   Finish = "tools"  // the model waits for the results of its calls
	FinishRefused Finish = "refused"
	FinishOther   Finish = "other"
)

// A Response is a model's reply, whole.
type Response struct {
	Text   string     `json:"text"` // when refused, what it said instead
	Calls  []ToolCall `json:"calls,omitempty"`
	Finish Finish     `json:"finish"`
	Served string     `json:"served,omitempty"` // the model that the provider says has answered

	// Usage counts every attempt. Its tokens are what the provider says; where it
	// says nothing they are counted by EstimateTokens and Estimated is set.
	Usage     assay.Usage `json:"usage"`
	Estimated bool        `json:"estimated,omitempty"`
	Cached    int         `json:"cached,omitempty"` // of the input tokens, those read from a provider's prompt cache

	// Attempts are those that failed before the one that succeeded.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// An Attempt is a call that failed.
type Attempt struct {
	Kind    ErrorKind `json:"kind"`
	Message string    `json:"message"`
}

// Facts are what is known of a model beforehand. Zero fields: not known.
type Facts struct {
	Window    int  // tokens of request and reply together
	MaxOutput int  // tokens of a reply
	Priced    bool // the two prices are known
	Input     int64
	Output    int64 // price of a million tokens, in millionths of the currency

	// Cached is that of input that a provider read from its prompt cache; 0: that of Input.
	Cached int64 `json:",omitempty"`
}

// Cost returns what a call costs, in millionths of the currency, rounded up.
func (f Facts) Cost(u assay.Usage) int64 {
	const million = 1_000_000
	return (int64(u.InputTokens)*f.Input + int64(u.OutputTokens)*f.Output + million - 1) / million
}

// CostCached is Cost where so many of the input tokens were read from a provider's prompt
// cache. It is never more than Cost, which is what is reserved.
func (f Facts) CostCached(u assay.Usage, cached int) int64 {
	if f.Cached <= 0 || f.Cached >= f.Input {
		return f.Cost(u)
	}
	const million = 1_000_000
	read := int64(min(max(cached, 0), u.InputTokens))
	return ((int64(u.InputTokens)-read)*f.Input + read*f.Cached + int64(u.OutputTokens)*f.Output + million - 1) / million
}

// A Described is a Model, or another service that is asked, of which something is known.
type Described interface{ Facts() Facts }

// FactsOf returns what is known of a service: of one that is no [Described], nothing.
func FactsOf(service any) Facts {
	if d, ok := service.(Described); ok {
		return d.Facts()
	}
	return Facts{}
}

// EstimateTokens returns a cautious estimate of the tokens that a model makes of
// text: more than the common vocabularies make of prose in scripts with spaces (which
// is a token for four letters) and of code, about theirs of tables of numbers and of
// the other scripts. Of identifiers, such as hashes, it may fall short by a third.
func EstimateTokens(text string) int {
	thirds := 0 // of a token
	for _, r := range text {
		switch {
		case '0' <= r && r <= '9': // many vocabularies have no numbers but these
			thirds += 3
		case r == ' ' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
			thirds++
		case r < 0x800: // signs as well, which often come in pairs
			thirds += 2
		default:
			thirds += 4
		}
	}
	return (thirds + 2) / 3
}

// InputTokens returns a cautious estimate of the tokens of a request.
func (r Request) InputTokens() int {
	const perMessage, perTool = 8, 16
	n := EstimateTokens(r.System) + perMessage
	for _, m := range r.Messages {
		n += EstimateTokens(m.Text) + perMessage
		for _, c := range m.Calls {
			n += EstimateTokens(c.Name) + EstimateTokens(c.Arguments) + perTool
		}
		for _, res := range m.Results {
			n += EstimateTokens(res.Text) + perTool
		}
	}
	for _, t := range r.Tools {
		n += EstimateTokens(t.Name) + EstimateTokens(t.Description) + EstimateTokens(string(t.Parameters)) + perTool
	}
	if r.Schema != nil {
		n += EstimateTokens(string(r.Schema.Schema)) + perTool
	}
	return n
}
