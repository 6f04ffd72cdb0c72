package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A message is a complete reply, or the message of a stream's first event.
type message struct {
	Type        string            `json:"type"`
	Model       string            `json:"model"`
	Content     []json.RawMessage `json:"content"`
	StopReason  string            `json:"stop_reason"`
	StopDetails stopDetails       `json:"stop_details"`
	Usage       usage             `json:"usage"`
	Error       *fault            `json:"error"`
}

type stopDetails struct {
	Explanation string `json:"explanation"`
}

// A usage contains the API's token counts. Each input token is counted once: as read from the
// cache, as written to it, or as neither.
type usage struct {
	Input   *int `json:"input_tokens"`
	Created *int `json:"cache_creation_input_tokens"`
	Read    *int `json:"cache_read_input_tokens"`
	Output  *int `json:"output_tokens"`
}

// update applies a later usage, whose numbers are totals.
func (u *usage) update(later usage) {
	u.Input = cmp.Or(later.Input, u.Input)
	u.Created = cmp.Or(later.Created, u.Created)
	u.Read = cmp.Or(later.Read, u.Read)
	u.Output = cmp.Or(later.Output, u.Output)
}

// An event is an event of a stream.
type event struct {
	Type    string          `json:"type"`
	Message message         `json:"message"` // of message_start
	Index   int             `json:"index"`   // of content_block_*
	Block   json.RawMessage `json:"content_block"`
	Delta   delta           `json:"delta"`
	Usage   usage           `json:"usage"` // of message_delta
	Error   *fault          `json:"error"`
}

// A delta is an addition to a content block or to the message.
type delta struct {
	Type        string      `json:"type"`
	Text        string      `json:"text"`
	PartialJSON string      `json:"partial_json"`
	Thinking    string      `json:"thinking"`
	Signature   string      `json:"signature"`
	StopReason  string      `json:"stop_reason"`
	StopDetails stopDetails `json:"stop_details"`
}

// A content is a content block of a reply.
type content struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`

	raw json.RawMessage // as received; nil if it was streamed

	// Streamed additions to the input of a tool_use, to thinking and to its signature.
	arguments, thoughts, signature strings.Builder
}

// A reader builds a response from a whole or streamed reply.
type reader struct {
	client *wire.Client
	scrub  *wire.Scrubber
	stream func(llm.Delta)

	blocks      []*content
	at          map[int]*content // blocks of a stream, by index
	text        strings.Builder
	usage       usage
	served      string
	stop        string
	explanation string
	begun       bool
	ended       bool
}

// The relevant event types. There are others (ping, content_block_stop), and more may be added: the
// API's versioning policy asks clients to ignore unknown ones.
const (
	messageStart = "message_start"
	blockStart   = "content_block_start"
	blockDelta   = "content_block_delta"
	messageDelta = "message_delta"
	messageStop  = "message_stop"
	failed       = "error"
)

// event handles an event of a stream by its name or, if it has none, by its type.
func (r *reader) event(name string, data []byte) error {
	switch name {
	case wire.Whole:
		return r.atOnce(data)
	case "", messageStart, blockStart, blockDelta, messageDelta, messageStop, failed:
	default:
		return nil
	}
	var e event
	if err := r.client.DecodeEvent(data, &e); err != nil {
		return err
	}
	switch kind := cmp.Or(name, e.Type); kind {
	case messageStart:
		r.begin(e.Message)
	case failed:
		return r.fail(e.Error)
	case blockStart, blockDelta, messageDelta, messageStop:
		if !r.begun {
			return r.client.Fail(llm.BadReply, "the stream starts with %s instead of message_start", kind)
		}
		return r.goOn(kind, e)
	}
	return nil
}

// goOn handles an event after the start of the stream.
func (r *reader) goOn(kind string, e event) error {
	switch kind {
	case blockStart:
		return r.open(e.Index, e.Block)
	case blockDelta:
		return r.add(e.Index, e.Delta)
	case messageDelta:
		r.stop, r.explanation = cmp.Or(e.Delta.StopReason, r.stop), cmp.Or(e.Delta.StopDetails.Explanation, r.explanation)
		r.usage.update(e.Usage)
	case messageStop:
		r.end()
		return wire.Done
	}
	return nil
}

// atOnce reads a reply that was sent whole although a stream was requested.
func (r *reader) atOnce(data []byte) error {
	var m message
	if err := r.client.Decode(data, &m); err != nil {
		return err
	}
	if err := r.whole(m); err != nil {
		return err
	}
	return wire.Done
}

func (r *reader) begin(m message) {
	r.begun, r.served = true, m.Model
	r.usage.update(m.Usage)
}

// open begins a content block.
func (r *reader) open(index int, raw json.RawMessage) error {
	c, err := r.block(raw)
	if err != nil {
		return err
	}
	if r.at == nil {
		r.at = map[int]*content{}
	}
	if r.at[index] != nil {
		return r.client.Fail(llm.BadReply, "block %d of the reply starts twice", index)
	}
	r.at[index] = c
	if c.Type == "text" {
		r.say(c.Text)
	}
	return nil
}

// block decodes a block and appends it to the reply.
func (r *reader) block(raw json.RawMessage) (*content, error) {
	c := new(content)
	if err := r.client.DecodeEvent(raw, c); err != nil {
		return nil, err
	}
	c.raw = append(json.RawMessage(nil), raw...)
	r.blocks = append(r.blocks, c)
	return c, nil
}

// add applies a delta to an open block.
func (r *reader) add(index int, d delta) error {
	c := r.at[index]
	if c == nil {
		return r.client.Fail(llm.BadReply, "block %d of the reply continues without a start", index)
	}
	c.arguments.WriteString(d.PartialJSON)
	if d.Thinking != "" || d.Signature != "" {
		c.thoughts.WriteString(d.Thinking)
		c.signature.WriteString(d.Signature)
		c.raw = nil
	}
	if d.Text != "" && c.Type == "text" {
		r.say(d.Text)
	}
	return nil
}

// end completes the reply.
func (r *reader) end() {
	r.ended = true
	r.tell(r.scrub.Rest())
	if finish(r.stop) == llm.FinishRefused && r.text.Len() == 0 {
		r.tell(r.client.Scrub(r.explanation))
	}
}

// say appends a piece of the reply's text.
func (r *reader) say(text string) { r.tell(r.scrub.Next(text)) }

func (r *reader) tell(text string) {
	if text == "" {
		return
	}
	r.text.WriteString(text)
	if r.stream != nil {
		r.stream(llm.Delta{Text: text})
	}
}

// whole reads a reply that is not a stream.
func (r *reader) whole(m message) error {
	if m.Type == "error" || m.Error != nil {
		return r.fail(m.Error)
	}
	if m.Type != "message" || m.Content == nil {
		return r.client.Fail(llm.BadReply, "the reply is JSON, but not a message")
	}
	r.begin(m)
	r.stop, r.explanation = m.StopReason, m.StopDetails.Explanation
	var text strings.Builder
	for _, raw := range m.Content {
		c, err := r.block(raw)
		if err != nil {
			return err
		}
		if c.Type == "text" {
			text.WriteString(c.Text)
		}
	}
	r.say(text.String())
	r.end()
	return nil
}

// fail returns the error that the service reported within a reply.
func (r *reader) fail(f *fault) error {
	if f == nil {
		return r.client.Fail(llm.ServerError, "an error without a message")
	}
	return r.client.Fail(cmp.Or(f.kind(), llm.ServerError), "%s", cmp.Or(f.Message, f.Type))
}

// response returns the response of a complete reply.
func (r *reader) response(req llm.Request) llm.Response {
	res := llm.Response{Text: r.text.String(), Calls: r.calls(), Served: r.client.Scrub(r.served), Finish: finish(r.stop)}
	res.Usage, res.Estimated = r.spends(req)
	res.Cached = min(value(r.usage.Read), res.Usage.InputTokens)
	return res
}

// calls returns the calls of the reply, each with the thinking that led to it.
func (r *reader) calls() []llm.ToolCall {
	var calls []llm.ToolCall
	var before opaque
	for _, c := range r.blocks {
		switch c.Type {
		case "thinking", "redacted_thinking":
			before.Thinking = append(before.Thinking, c.thinking())
		case "tool_use":
			call := llm.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.input()}
			if len(before.Thinking) > 0 {
				raw, _ := json.Marshal(before)
				call.Opaque = string(raw)
			}
			calls, before = append(calls, call), opaque{}
		}
	}
	return r.client.Calls(calls)
}

// input returns the arguments of a call. A stream sends them in pieces, after a block with an empty
// input.
func (c *content) input() string {
	if c.arguments.Len() > 0 {
		return c.arguments.String()
	}
	return cmp.Or(strings.ToValidUTF8(string(c.Input), "\uFFFD"), "{}")
}

// thinking returns a thinking block in the form in which the API expects it back.
func (c *content) thinking() json.RawMessage {
	if c.raw != nil {
		return c.raw
	}
	raw, _ := json.Marshal(map[string]string{"type": c.Type, "thinking": c.Thinking + c.thoughts.String(), "signature": c.Signature + c.signature.String()})
	return raw
}

// finish maps a stop reason to a Finish.
//
// Source: "Handling stop reasons" at platform.claude.com/docs.
func finish(stop string) llm.Finish {
	switch stop {
	case "end_turn", "stop_sequence":
		return llm.FinishStop
	case "max_tokens", "model_context_window_exceeded":
		return llm.FinishLength
	case "tool_use":
		return llm.FinishTools
	case "refusal":
		return llm.FinishRefused
	}
	return llm.FinishOther // pause_turn, which is for server-side tools
}

// spends returns the usage of the reply so far, and whether it is an estimate.
func (r *reader) spends(req llm.Request) (u assay.Usage, estimated bool) {
	u = assay.Usage{
		Calls:        1,
		InputTokens:  value(r.usage.Input) + value(r.usage.Created) + value(r.usage.Read),
		OutputTokens: value(r.usage.Output),
	}
	if r.usage.Input == nil {
		u.InputTokens, estimated = req.InputTokens(), true
	}
	if r.usage.Output == nil || !r.ended { // the count at the start of a stream is not final
		u.OutputTokens, estimated = max(u.OutputTokens, r.produced(req)), estimated || r.usage.Output == nil
	}
	return u, estimated
}

// produced returns an estimate of the output tokens received, limited to the requested maximum.
func (r *reader) produced(req llm.Request) int {
	n := llm.EstimateTokens(r.text.String())
	for _, c := range r.blocks {
		n += llm.EstimateTokens(c.Name) + llm.EstimateTokens(c.arguments.String()) + llm.EstimateTokens(string(c.Input)) + llm.EstimateTokens(c.Thinking) + llm.EstimateTokens(c.thoughts.String())
	}
	return min(n, max(req.MaxTokens, 0))
}

// spent adds the usage of an interrupted reply to its error.
func (r *reader) spent(req llm.Request, err error) error {
	if e, ok := errors.AsType[*llm.Error](err); ok && r.begun {
		e.Usage, _ = r.spends(req)
	}
	return err
}

func value(n *int) int {
	if n == nil {
		return 0
	}
	return max(0, *n)
}
