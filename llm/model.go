package llm

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/assay-rag/assay"
)

// A Model is a language model that continues a conversation.
type Model interface {
	// Model returns the model's name with the provider that serves it, for example
	// "openai/gpt-4.1".
	Model() string

	// Generate calls the model once. A failure is an *Error, unless ctx has ended. A reply that
	// broke off is an error, never a Response. The Response is untrusted: arguments may be invalid
	// JSON, tools may be invented, and the text may be anything.
	//
	// If stream is not nil, Generate passes text to it as it arrives, in order, on the calling
	// goroutine; the Response contains all of it again. A reply that breaks off may have streamed a
	// part. When Generate returns, the call has no goroutine and no connection left in use.
	// Generate is safe for concurrent use.
	Generate(ctx context.Context, req Request, stream func(Delta)) (Response, error)
}

// A Delta is a piece of text as a model produces it.
type Delta struct{ Text string }

// A Request is the input of a model call.
type Request struct {
	// System contains the instructions. It is the part that stays the same from call to call:
	// providers that can cache a prefix cache Tools and System.
	System   string    `json:"system,omitempty"`
	Messages []Message `json:"messages"` // at least one; the last one is not from the assistant

	Tools  []Tool     `json:"tools,omitempty"`  // the tools that the model may call
	Choice ToolChoice `json:"choice,omitempty"` // whether it must call one

	// Schema, if set, is the schema that the text of the reply has to follow. Providers without
	// native support request it in words, so the caller must validate the reply.
	Schema *Schema `json:"schema,omitempty"`

	MaxTokens   int     `json:"max_tokens"`  // limit of the reply, at least 1
	Temperature float64 `json:"temperature"` // in [0, 2]; omitted if the model does not accept one

	// Attempts is the largest number of attempts, at least 1. A provider makes one; a wrapper
	// (package resilient) makes the others.
	Attempts int `json:"attempts"`
}

// A Speaker is the author of a message.
type Speaker string

// The speakers.
const (
	User      Speaker = "user"
	Assistant Speaker = "assistant"
)

// A Message is one turn of a conversation. Results belong in a user's message and answer all Calls
// of the preceding assistant message.
type Message struct {
	Speaker Speaker      `json:"speaker"`
	Text    string       `json:"text,omitempty"`
	Images  []Image      `json:"images,omitempty"`  // user only, before Text; for models that read images
	Calls   []ToolCall   `json:"calls,omitempty"`   // assistant only
	Results []ToolResult `json:"results,omitempty"` // user only
}

// An Image is a picture that a model reads.
type Image struct {
	Type string // media type: "image/png", "image/jpeg", "image/gif" or "image/webp"
	Data []byte
}

// MarshalJSON returns the type, size and hash of the image. A journal and a recording identify it by
// them; they do not keep its bytes.
func (i Image) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"type": i.Type, "bytes": len(i.Data), "sha256": fmt.Sprintf("%x", sha256.Sum256(i.Data))})
}

// ImageTokens is a cautious estimate of the number of tokens of an image, which providers scale down
// to about 1,600.
const ImageTokens = 2000

// A Tool is a function that a model may ask the caller to run.
type Tool struct {
	Name        string          `json:"name"` // of letters, digits, _ and -; at most 64
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON schema of an object
}

// A ToolChoice controls whether a model has to call tools.
type ToolChoice string

// The choices.
const (
	ToolsAuto     ToolChoice = "" // the model decides
	ToolsRequired ToolChoice = "required"
	ToolsNone     ToolChoice = "none"
)

// A ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID        string `json:"id"` // unique in the reply; generated if the provider sends none
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the model sent it; should be a JSON object

	// Opaque is provider-specific data that must be sent back with the call, for example the
	// signature of the thinking that led to it. Code that turns a Response into a Message keeps it.
	// Other providers ignore it.
	Opaque string `json:"opaque,omitempty"`
}

// A ToolResult is the result of a ToolCall.
type ToolResult struct {
	Call  string `json:"call"` // ID of the call
	Name  string `json:"name"` // name of the tool
	Text  string `json:"text"`
	Error bool   `json:"error,omitempty"` // the call failed and Text gives the reason
}

// A Schema is a JSON schema with a name.
type Schema struct {
	Name   string          `json:"name"` // of letters, digits, _ and -; at most 64
	Schema json.RawMessage `json:"schema"`
}

// A Finish is the reason for which a reply ended.
type Finish string

// The reasons. All other reasons of providers map to FinishOther.
const (
	FinishStop    Finish = "stop"
	FinishLength  Finish = "length" // MaxTokens or the model's window is exhausted
	FinishTools   Finish = "tools"  // the model waits for the results of its calls
	FinishRefused Finish = "refused"
	FinishOther   Finish = "other"
)

// A Response is a model's complete reply.
type Response struct {
	Text   string     `json:"text"` // if refused, the text of the refusal
	Calls  []ToolCall `json:"calls,omitempty"`
	Finish Finish     `json:"finish"`
	Served string     `json:"served,omitempty"` // the model that answered, according to the provider

	// Usage covers all attempts. Tokens are those reported by the provider. If it reports none,
	// EstimateTokens counts them and Estimated is set.
	Usage     assay.Usage `json:"usage"`
	Estimated bool        `json:"estimated,omitempty"`
	Cached    int         `json:"cached,omitempty"` // the input tokens that were read from a provider's prompt cache

	// Attempts are the failed attempts before the successful one.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// An Attempt is a call that failed.
type Attempt struct {
	Kind    ErrorKind `json:"kind"`
	Message string    `json:"message"`
}

// Facts are the known properties of a model. A zero field is unknown.
type Facts struct {
	Window    int  // tokens of request and reply together
	MaxOutput int  // tokens of a reply
	Priced    bool // Input and Output are known
	Input     int64
	Output    int64 // price of a million tokens, in millionths of the currency

	// Cached is the price of input that a provider read from its prompt cache; 0 means the same as
	// Input.
	Cached int64 `json:",omitempty"`
}

// Cost returns the cost of a call, in millionths of the currency, rounded up.
func (f Facts) Cost(u assay.Usage) int64 {
	const million = 1_000_000
	return (int64(u.InputTokens)*f.Input + int64(u.OutputTokens)*f.Output + million - 1) / million
}

// CostCached is like Cost, with the given number of input tokens read from a provider's prompt
// cache. The result is never more than Cost, which is the amount that is reserved.
func (f Facts) CostCached(u assay.Usage, cached int) int64 {
	if f.Cached <= 0 || f.Cached >= f.Input {
		return f.Cost(u)
	}
	const million = 1_000_000
	read := int64(min(max(cached, 0), u.InputTokens))
	return ((int64(u.InputTokens)-read)*f.Input + read*f.Cached + int64(u.OutputTokens)*f.Output + million - 1) / million
}

// A Described is a Model or another service with known Facts.
type Described interface{ Facts() Facts }

// A Listed is a model that a server lists.
type Listed struct {
	Name  string
	Facts Facts // only Window and MaxOutput, as far as the server reports them
}

// FactsOf returns the Facts of a service, or zero Facts if it is no [Described].
func FactsOf(service any) Facts {
	if d, ok := service.(Described); ok {
		return d.Facts()
	}
	return Facts{}
}

// EstimateTokens returns a cautious estimate of the number of tokens of text. It exceeds the count
// of the common vocabularies for code and for prose in scripts with spaces (one token per four
// letters). It is close to their count for tables of numbers and for other scripts. For
// identifiers, such as hashes, it may be a third too low.
func EstimateTokens(text string) int {
	thirds := 0 // of a token
	for _, r := range text {
		switch {
		case '0' <= r && r <= '9': // many vocabularies have single digits only
			thirds += 3
		case r == ' ' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
			thirds++
		case r < 0x800: // punctuation too, which often comes in pairs
			thirds += 2
		default:
			thirds += 4
		}
	}
	return (thirds + 2) / 3
}

// InputTokens returns a cautious estimate of the number of input tokens of a request.
func (r Request) InputTokens() int {
	const perMessage, perTool = 8, 16
	n := EstimateTokens(r.System) + perMessage
	for _, m := range r.Messages {
		n += EstimateTokens(m.Text) + ImageTokens*len(m.Images) + perMessage
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
