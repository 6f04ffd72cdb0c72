package bedrock

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A reading is the state of a model's reply while it is read.
type reading struct {
	request    llm.Request
	schemaTool string       // the tool whose arguments are the reply's text; empty: none
	client     *wire.Client // removes credentials from the reply, which is journalled
	scrubber   *wire.Scrubber

	text    strings.Builder
	calls   []llm.ToolCall
	blocks  map[int32]int // open tool calls by block: index into calls, or asText
	thought []thought
	stop    types.StopReason
	usage   *types.TokenUsage
	served  string
	counted bool // the metadata, which comes last, has arrived
}

// asText is the index of a call whose arguments are the reply's text.
const asText = -1

// done reports whether a stream is complete: the stop reason and the metadata after it have
// arrived.
func (r *reading) done() bool { return r.stop != "" && r.counted }

// whole reads a reply that is not a stream.
func (r *reading) whole(out *bedrockruntime.ConverseOutput) error {
	message, ok := out.Output.(*types.ConverseOutputMemberMessage)
	if !ok || out.StopReason == "" {
		return errors.New("the reply is not a Converse reply: it has no message or no stop reason")
	}
	for _, block := range message.Value.Content {
		switch b := block.(type) {
		case *types.ContentBlockMemberText:
			r.write(b.Value)
		case *types.ContentBlockMemberToolUse:
			args, err := toJSON(b.Value.Input)
			if err != nil {
				return fmt.Errorf("arguments of a tool call: %w", err)
			}
			r.call(aws.ToString(b.Value.ToolUseId), aws.ToString(b.Value.Name), args)
		case *types.ContentBlockMemberReasoningContent:
			r.thought = append(r.thought, thoughtOf(b.Value))
		}
	}
	r.stop, r.usage = out.StopReason, out.Usage
	if out.Trace != nil && out.Trace.PromptRouter != nil {
		r.served = aws.ToString(out.Trace.PromptRouter.InvokedModelId)
	}
	return nil
}

// write appends to the text and returns the part that is safe to stream.
func (r *reading) write(text string) string {
	text = r.scrubber.Next(strings.ToValidUTF8(text, "\uFFFD"))
	r.text.WriteString(text)
	return text
}

// rest ends the text and returns the part that write has held back.
func (r *reading) rest() string {
	text := r.scrubber.Rest()
	r.text.WriteString(text)
	return text
}

// call adds a complete call.
func (r *reading) call(id, name, args string) {
	if r.schemaTool != "" && name == r.schemaTool {
		r.write(args)
		return
	}
	r.calls = append(r.calls, llm.ToolCall{ID: id, Name: name, Arguments: args})
}

// event handles an event of a stream and returns the text that it adds. It ignores unknown events.
func (r *reading) event(event types.ConverseStreamOutput) (text string) {
	switch e := event.(type) {
	case *types.ConverseStreamOutputMemberContentBlockStart:
		if use, ok := e.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
			r.begin(aws.ToInt32(e.Value.ContentBlockIndex), aws.ToString(use.Value.ToolUseId), aws.ToString(use.Value.Name))
		}
	case *types.ConverseStreamOutputMemberContentBlockDelta:
		return r.delta(aws.ToInt32(e.Value.ContentBlockIndex), e.Value.Delta)
	case *types.ConverseStreamOutputMemberMessageStop:
		r.stop = cmp.Or(e.Value.StopReason, "unknown")
	case *types.ConverseStreamOutputMemberMetadata:
		r.usage, r.counted = e.Value.Usage, true
		if t := e.Value.Trace; t != nil && t.PromptRouter != nil {
			r.served = aws.ToString(t.PromptRouter.InvokedModelId)
		}
	}
	return ""
}

// begin opens a tool call block.
func (r *reading) begin(block int32, id, name string) {
	if r.blocks == nil {
		r.blocks = map[int32]int{}
	}
	if r.schemaTool != "" && name == r.schemaTool {
		r.blocks[block] = asText
		return
	}
	r.blocks[block] = len(r.calls)
	r.calls = append(r.calls, llm.ToolCall{ID: id, Name: name})
}

func (r *reading) delta(block int32, delta types.ContentBlockDelta) (text string) {
	switch d := delta.(type) {
	case *types.ContentBlockDeltaMemberText:
		return r.write(d.Value)
	case *types.ContentBlockDeltaMemberToolUse:
		i, ok := r.blocks[block]
		if ok && i == asText {
			return r.write(aws.ToString(d.Value.Input))
		}
		if ok {
			r.calls[i].Arguments += aws.ToString(d.Value.Input)
		}
	case *types.ContentBlockDeltaMemberReasoningContent:
		r.think(block, d.Value)
	}
	return ""
}

// response returns the response of a complete reply.
func (r *reading) response() llm.Response {
	out := llm.Response{Text: r.text.String(), Calls: r.calls, Finish: r.finish(), Served: r.served}
	for i := range out.Calls {
		c := &out.Calls[i]
		c.Arguments = cmp.Or(c.Arguments, "{}") // streams omit the arguments of a tool without parameters
	}
	if len(out.Calls) > 0 && len(r.thought) > 0 {
		out.Calls[0].Opaque = opaque(r.thought)
	}
	out.Calls = r.client.Calls(out.Calls)
	out.Usage, out.Cached, out.Estimated = r.tokens(out)
	return out
}

func (r *reading) finish() llm.Finish {
	switch r.stop {
	case types.StopReasonEndTurn, types.StopReasonStopSequence:
		return llm.FinishStop
	case types.StopReasonToolUse:
		if r.schemaTool != "" && len(r.calls) == 0 {
			return llm.FinishStop
		}
		return llm.FinishTools
	case types.StopReasonMaxTokens, types.StopReasonModelContextWindowExceeded:
		return llm.FinishLength
	case types.StopReasonGuardrailIntervened, types.StopReasonContentFiltered, "refusal":
		return llm.FinishRefused
	}
	return llm.FinishOther
}

// tokens returns the usage of a reply. For some models, Bedrock's inputTokens exclude the tokens
// read from or written to the cache; totalTokens include all.
//
// Source: AWS, Amazon Bedrock API Reference, TokenUsage; User Guide, "Prompt caching for faster
// model inference".
func (r *reading) tokens(out llm.Response) (u assay.Usage, cached int, estimated bool) {
	u.Calls = 1
	if r.usage == nil || aws.ToInt32(r.usage.InputTokens) <= 0 && aws.ToInt32(r.usage.TotalTokens) <= 0 {
		u.InputTokens, u.OutputTokens = r.request.InputTokens(), llm.EstimateTokens(out.Text)
		for _, c := range out.Calls {
			u.OutputTokens += llm.EstimateTokens(c.Name) + llm.EstimateTokens(c.Arguments)
		}
		u.OutputTokens = min(u.OutputTokens, r.request.MaxTokens) // the requested maximum
		return u, 0, true
	}
	count := func(n *int32) int { return int(max(0, aws.ToInt32(n))) }
	in, total := count(r.usage.InputTokens), count(r.usage.TotalTokens)
	read, written := count(r.usage.CacheReadInputTokens), count(r.usage.CacheWriteInputTokens)
	u.OutputTokens = count(r.usage.OutputTokens)
	if total >= in+u.OutputTokens {
		u.InputTokens = total - u.OutputTokens
	} else {
		u.InputTokens = in + read + written
	}
	return u, min(read, u.InputTokens), false
}

// A thought is a block of a model's reasoning. Claude requires it back, unchanged, with the results
// of the calls that follow it.
type thought struct {
	Text      string `json:"text,omitempty"`
	Signature string `json:"signature,omitempty"`
	Redacted  []byte `json:"redacted,omitempty"`
	block     int32
}

func thoughtOf(block types.ReasoningContentBlock) thought {
	switch b := block.(type) {
	case *types.ReasoningContentBlockMemberReasoningText:
		return thought{Text: aws.ToString(b.Value.Text), Signature: aws.ToString(b.Value.Signature)}
	case *types.ReasoningContentBlockMemberRedactedContent:
		return thought{Redacted: b.Value}
	}
	return thought{}
}

// think adds a piece of a streamed reasoning block.
func (r *reading) think(block int32, delta types.ReasoningContentBlockDelta) {
	if n := len(r.thought); n == 0 || r.thought[n-1].block != block {
		r.thought = append(r.thought, thought{block: block})
	}
	t := &r.thought[len(r.thought)-1]
	switch d := delta.(type) {
	case *types.ReasoningContentBlockDeltaMemberText:
		t.Text += d.Value
	case *types.ReasoningContentBlockDeltaMemberSignature:
		t.Signature += d.Value
	case *types.ReasoningContentBlockDeltaMemberRedactedContent:
		t.Redacted = append(t.Redacted, d.Value...)
	}
}

// opaqueMark marks opaque data of this package.
const opaqueMark = "bedrock.reasoning:"

func opaque(thoughts []thought) string {
	data, err := json.Marshal(thoughts)
	if err != nil {
		return "" // strings and bytes only: cannot fail
	}
	return opaqueMark + string(data)
}

// thoughts returns the reasoning blocks that precede calls.
func thoughts(calls []llm.ToolCall) []types.ContentBlock {
	var blocks []types.ContentBlock
	for _, c := range calls {
		data, ok := strings.CutPrefix(c.Opaque, opaqueMark)
		var kept []thought
		if !ok || json.Unmarshal([]byte(data), &kept) != nil {
			continue
		}
		for _, t := range kept {
			var b types.ReasoningContentBlock = &types.ReasoningContentBlockMemberRedactedContent{Value: t.Redacted}
			if t.Redacted == nil {
				text := types.ReasoningTextBlock{Text: &t.Text}
				if t.Signature != "" {
					text.Signature = &t.Signature
				}
				b = &types.ReasoningContentBlockMemberReasoningText{Value: text}
			}
			blocks = append(blocks, &types.ContentBlockMemberReasoningContent{Value: b})
		}
	}
	return blocks
}
