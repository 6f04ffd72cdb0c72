package gemini

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A reply is a complete reply, or a piece of a streamed one.
type reply struct {
	Candidates []candidate `json:"candidates"`
	Feedback   feedback    `json:"promptFeedback"`
	Usage      *usage      `json:"usageMetadata"`
	Version    string      `json:"modelVersion"`
	Error      *fault      `json:"error"`
}

type candidate struct {
	Content struct {
		Parts []part `json:"parts"`
	} `json:"content"`
	FinishReason  string `json:"finishReason"`
	FinishMessage string `json:"finishMessage"`
}

// A feedback gives the reason for a reply without a candidate.
type feedback struct {
	BlockReason  string `json:"blockReason"`
	BlockMessage string `json:"blockReasonMessage"`
}

// A usage contains the API's token counts. The prompt includes tokens read from the cache.
type usage struct {
	Prompt     int `json:"promptTokenCount"`
	ToolPrompt int `json:"toolUsePromptTokenCount"`
	Candidates int `json:"candidatesTokenCount"`
	Thoughts   int `json:"thoughtsTokenCount"`
	Cached     int `json:"cachedContentTokenCount"`
}

// A reader builds a response from a whole or streamed reply.
type reader struct {
	client *wire.Client
	scrub  *wire.Scrubber
	stream func(llm.Delta)

	text   strings.Builder
	calls  []llm.ToolCall
	finish string
	usage  *usage
	served string
	ended  bool
}

// event handles an event of a stream. The API does not name its events.
func (r *reader) event(name string, data []byte) error {
	if name != "" && name != wire.Whole {
		return nil // an unknown type, added later
	}
	var piece reply
	if name == wire.Whole {
		if err := r.client.Decode(data, &piece); err != nil {
			return err
		}
		if err := r.whole(piece); err != nil {
			return err
		}
		return wire.Done
	}
	if err := r.client.DecodeEvent(data, &piece); err != nil {
		return err
	}
	if err := r.take(piece); err != nil {
		return err
	}
	if !r.ended {
		return nil
	}
	r.tell(r.scrub.Rest())
	return wire.Done
}

// whole reads a reply that is not a stream.
func (r *reader) whole(whole reply) error {
	// Its pieces are streamed as one.
	tell := r.stream
	r.stream = nil
	if err := r.take(whole); err != nil {
		return err
	}
	r.tell(r.scrub.Rest())
	if !r.ended {
		return r.client.Fail(llm.BadReply, "the reply has no finished candidate")
	}
	if tell != nil && r.text.Len() > 0 {
		tell(llm.Delta{Text: r.text.String()})
	}
	return nil
}

// take handles a piece of a reply. The piece with the finish reason is the last.
func (r *reader) take(piece reply) error {
	if f := piece.Error; f != nil {
		e := r.client.Fail(cmp.Or(f.kind(), llm.ServerError), "%s", cmp.Or(f.Message, f.Status))
		e.RetryAfter = f.wait()
		return e
	}
	r.served = cmp.Or(piece.Version, r.served)
	if piece.Usage != nil {
		r.usage = piece.Usage
	}
	if len(piece.Candidates) == 0 {
		if b := piece.Feedback; b.BlockReason != "" {
			return r.client.Fail(llm.Filtered, "the request was blocked: %s %s", b.BlockReason, b.BlockMessage)
		}
		return nil
	}
	c := piece.Candidates[0]
	for _, p := range c.Content.Parts {
		if err := r.part(p); err != nil {
			return err
		}
	}
	if c.FinishReason != "" {
		r.finish, r.ended = c.FinishReason, true
	}
	return nil
}

// part handles a part of a reply. Thoughts are not text. Parts of other kinds belong to Google's
// own tools, which are never requested.
func (r *reader) part(p part) error {
	switch {
	case p.Call != nil:
		if p.Call.Name == "" {
			return r.client.Fail(llm.BadReply, "a function call without a name")
		}
		call := llm.ToolCall{ID: p.Call.ID, Name: p.Call.Name, Arguments: "{}"}
		if args := string(p.Call.Args); args != "" && args != "null" {
			call.Arguments = args
		}
		if p.Signature != "" {
			raw, _ := json.Marshal(opaque{p.Signature})
			call.Opaque = string(raw)
		}
		r.calls = append(r.calls, call)
	case !p.Thought:
		r.tell(r.scrub.Next(p.Text))
	}
	return nil
}

func (r *reader) tell(text string) {
	if text == "" {
		return
	}
	r.text.WriteString(text)
	if r.stream != nil {
		r.stream(llm.Delta{Text: text})
	}
}

// response returns the response of a complete reply.
func (r *reader) response(req llm.Request) llm.Response {
	res := llm.Response{Text: r.text.String(), Calls: r.client.Calls(r.calls), Served: r.client.Scrub(r.served), Finish: finish(r.finish, len(r.calls) > 0)}
	res.Usage, res.Estimated = r.spends(req)
	if r.usage != nil {
		res.Cached = min(max(0, r.usage.Cached), res.Usage.InputTokens)
	}
	return res
}

// finish maps a finish reason to a Finish.
//
// Source: FinishReason in the API reference.
func finish(reason string, calls bool) llm.Finish {
	switch reason {
	case "STOP":
		if calls {
			return llm.FinishTools // the API has no reason of its own for calls
		}
		return llm.FinishStop
	case "MAX_TOKENS":
		return llm.FinishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR":
		return llm.FinishRefused
	}
	return llm.FinishOther // MALFORMED_FUNCTION_CALL, LANGUAGE, OTHER, …
}

// spends returns the usage of the reply so far, and whether it is an estimate.
func (r *reader) spends(req llm.Request) (u assay.Usage, estimated bool) {
	u = assay.Usage{Calls: 1}
	if r.usage != nil {
		u.InputTokens = max(0, r.usage.Prompt) + max(0, r.usage.ToolPrompt)
		u.OutputTokens = max(0, r.usage.Candidates) + max(0, r.usage.Thoughts)
	}
	if u.InputTokens == 0 {
		u.InputTokens, estimated = req.InputTokens(), true
	}
	if n := r.produced(req); u.OutputTokens == 0 && n > 0 {
		u.OutputTokens, estimated = n, true
	}
	return u, estimated
}

// produced returns an estimate of the output tokens received, limited to the requested maximum.
func (r *reader) produced(req llm.Request) int {
	n := llm.EstimateTokens(r.text.String())
	for _, c := range r.calls {
		n += llm.EstimateTokens(c.Name) + llm.EstimateTokens(c.Arguments)
	}
	return min(n, max(req.MaxTokens, 0))
}
