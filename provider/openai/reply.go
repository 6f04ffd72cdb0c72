package openai

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A reply is the part of a model's reply received so far.
type reply struct {
	stream func(llm.Delta) // receives the text
	scrub  *wire.Scrubber

	text    strings.Builder
	calls   []llm.ToolCall
	finish  llm.Finish
	ended   bool // the reply is complete
	refused bool
	served  string
	usage   *tokens // nil if the server has not sent any
}

// tokens are the token counts of a reply, in either format.
type tokens struct {
	input, output, cached int
}

// say handles a piece of text and streams the part that is ready.
func (r *reply) say(text string) { r.write(r.scrub.Next(text)) }

func (r *reply) write(text string) {
	if text != "" {
		r.text.WriteString(text)
		r.stream(llm.Delta{Text: text})
	}
}

// count records the server's counts and ignores invalid ones.
func (r *reply) count(t tokens) {
	if t.input >= 0 && t.output >= 0 && t.input+t.output > 0 {
		t.cached = min(max(0, t.cached), t.input)
		r.usage = &t
	}
}

// spend returns the usage of the call, from the server's counts or estimated. Estimated output does
// not exceed the requested maximum.
func (r *reply) spend(req llm.Request) (u assay.Usage, estimated bool) {
	if r.usage != nil {
		return assay.Usage{Calls: 1, InputTokens: r.usage.input, OutputTokens: r.usage.output}, false
	}
	out := llm.EstimateTokens(r.text.String())
	for _, c := range r.calls {
		out += llm.EstimateTokens(c.Name) + llm.EstimateTokens(c.Arguments)
	}
	return assay.Usage{Calls: 1, InputTokens: req.InputTokens(), OutputTokens: min(out, req.MaxTokens)}, true
}

// response returns the response of a complete reply.
func (m *model) response(req llm.Request, r *reply) llm.Response {
	r.write(r.scrub.Rest())
	res := llm.Response{Text: r.text.String(), Calls: wire.Distinct(r.calls), Finish: r.finish, Served: r.served}
	res.Usage, res.Estimated = r.spend(req)
	if r.usage != nil {
		res.Cached = r.usage.cached
	}
	for i := range res.Calls {
		res.Calls[i].Arguments = m.client.Scrub(res.Calls[i].Arguments)
	}
	switch {
	case r.refused:
		res.Finish = llm.FinishRefused
	case len(res.Calls) > 0 && res.Finish == llm.FinishStop: // the finish of some servers for calls
		res.Finish = llm.FinishTools
	case len(res.Calls) == 0 && res.Finish == llm.FinishTools:
		res.Finish = llm.FinishOther
	}
	return res
}

// spent adds the usage of a failed call to its error. The server counts the tokens of a reply that
// had begun, or that was refused because of its content.
func spent(err error, req llm.Request, r *reply) error {
	e, ok := errors.AsType[*llm.Error](err)
	if ok && (r.usage != nil || r.text.Len() > 0 || len(r.calls) > 0) {
		e.Usage, _ = r.spend(req)
	}
	return err
}

// arguments returns the arguments of a call in a form that can be sent back. Servers parse them, so
// anything but a JSON object is wrapped in one.
func arguments(text string) string {
	if strings.TrimSpace(text) == "" {
		return "{}"
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return text
	}
	wrapped, _ := json.Marshal(map[string]string{"arguments": text}) // a map of strings cannot fail
	return string(wrapped)
}

// outcome returns the text of a result. The formats cannot mark a failed one.
func outcome(r llm.ToolResult) string {
	if r.Error {
		return "error: " + r.Text
	}
	return r.Text
}
