package prompted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// Actor has a model call the tools in a conversation. Its calls and their results are turns in the
// provider's own form, so that the prompt of each step extends the previous one. A model without
// tool support gets the tools in words and replies with JSON. Actor does not check arguments; the
// code that executes the calls does, and reports errors to the model.
type Actor struct {
	Config

	// Local acts if the provider fails; nil means the cautious output.
	Local role.Actor
}

// Limits of the parts of a reply that are kept, and of the parts that are shown again.
const (
	maxThought   = 600     // bytes
	maxArguments = 9 << 10 // bytes of a call; more than any tool accepts, so that a longer one is refused
	maxShownUse  = 240     // bytes of a call whose result is no longer shown
	actTokens    = 700     // of a reply
)

// Act implements role.Actor.
func (a Actor) Act(ctx context.Context, c role.Caller, in role.ActInput) (role.Action, error) {
	name := role.ActorRole
	if in.Style == role.AllInOne {
		name = role.AgentTask
	}
	t := turn{config: a.Config, in: in, prompt: a.promptOf(name), window: llm.FactsOf(a.Model).Window, plain: in.Plain || len(in.Tools) == 0}
	if t.window <= 0 {
		t.window = unknownWindow
	}
	action, outcome, err := t.ask(ctx, c)
	out, err := typed[role.Action, role.Action]{
		job:      job[role.Action]{task: role.ActorRole},
		local:    ifAny(a.Local != nil, func() (role.Action, error) { return a.Local.Act(ctx, c, in) }),
		cautious: func(o role.Outcome) role.Action { return role.Action{Done: true, Outcome: o} },
		finish: func(action role.Action, o role.Outcome) role.Action {
			action.Outcome = o
			return action
		},
	}.finished(ctx, action, outcome, err)
	out.Plain, out.Unreadable = t.plain, t.unreadable
	return out, err
}

// A turn is one request to the actor in progress.
type turn struct {
	config  Config
	in      role.ActInput
	prompt  prompt
	window  int
	plain   bool          // tools are described in words
	base    []llm.Message // messages of the first request
	request llm.Request
	notes   []string

	unreadable bool // no reply could be used
}

// ask asks the model, like the function ask does for a typed output.
func (t *turn) ask(ctx context.Context, c role.Caller) (role.Action, role.Outcome, error) {
	if !t.begin() {
		return role.Action{}, t.failed("the request does not fit into the model's window of %d tokens", t.window), nil
	}
	for n := 1; ; n++ {
		reply, err := t.call(ctx, c)
		if err != nil {
			return role.Action{}, role.Outcome{}, err
		}
		if reply.Finish == llm.FinishRefused {
			return role.Action{}, t.failed("the model refused: %s", shorten(line(reply.Text), 200)), nil
		}
		action, problem := t.read(reply)
		if problem == "" {
			return action, role.Outcome{Notes: t.notes}, nil
		}
		if n == maxPrompts {
			t.unreadable = true
			return role.Action{}, t.failed("the model gave no usable reply in %d tries; the last one: %s", maxPrompts, shorten(line(problem), 300)), nil
		}
		t.again(n+1, reply, problem)
	}
}

// call makes one request. If the provider rejects the tools, it retries with the tools in words. If
// the provider reports that the request is too long, it retries with less.
func (t *turn) call(ctx context.Context, c role.Caller) (llm.Response, error) {
	for {
		reply, err := c.Call(ctx, role.Call{Role: role.ActorRole, Prompt: t.prompt.id, Model: t.config.Model, Request: t.request})
		if err == nil || !errors.Is(err, assay.ErrUnavailable) {
			return reply, err
		}
		switch {
		case refusesRequest(err) && !t.plain:
			t.plain = true
			if !t.begin() {
				return reply, err
			}
			t.note("%s; retried without tools", providerText(err))
		case isKind(err, llm.TooLong) && t.window > minWindow:
			before := t.window
			if t.window = smaller(t.window, t.request); !t.begin() {
				return reply, err
			}
			t.note("%s; retried with a shorter request, for a window of %d tokens instead of %d", providerText(err), t.window, before)
		default:
			return reply, err
		}
	}
}

func (t *turn) note(format string, args ...any) {
	t.notes = append(t.notes, role.ActorRole+": "+fmt.Sprintf(format, args...))
}

func (t *turn) failed(format string, args ...any) role.Outcome {
	return role.Outcome{Failure: failure(t.config.Model, format, args...), Notes: t.notes}
}

// begin builds the first request, with as many of the latest steps as fit and at least a part of
// the last one. It reports whether the question fits.
func (t *turn) begin() bool {
	reply := max(1, min(actTokens, t.window/4))
	if most := llm.FactsOf(t.config.Model).MaxOutput; most > 0 {
		reply = min(reply, most)
	}
	fits := func(k, room int) bool {
		t.base = t.messages(k, room)
		t.request = llm.Request{System: t.prompt.system, Messages: t.base, MaxTokens: reply}
		if !t.plain {
			t.request.Tools = t.in.Tools
		}
		return t.request.InputTokens()+reply+retryRoom <= t.window
	}
	n := len(t.in.Steps)
	if k := most(n, func(k int) bool { return fits(k, 0) }); k > 0 || n == 0 {
		return fits(k, 0)
	}
	for room := 4000; room >= 250; room /= 2 {
		if fits(1, room) {
			return true
		}
	}
	return fits(0, 0)
}

// messages returns the conversation with the last k steps. A positive room limits the bytes shown
// of each observation.
func (t *turn) messages(k, room int) []llm.Message {
	steps := t.in.Steps
	left := len(steps) - k
	made := slices.Clone(t.in.Made)
	for _, s := range steps[:left] {
		made = append(made, s.Uses...)
	}
	data := map[string]any{"Question": t.in.Question, "Plan": planText(t.in.Plan), "Made": usesText(made), "Memo": memoText(t.in.Memo), "Left": left, "Tools": ""}
	if t.plain {
		data["Tools"] = toolsText(t.in.Tools)
	}
	messages := []llm.Message{{Speaker: llm.User, Text: t.prompt.render(data)}}
	ids := map[string]bool{}
	for i, s := range steps[left:] {
		after := fmt.Sprintf("You have %d more replies.", t.in.Left+k-1-i)
		if s.Note != "" {
			after += " " + s.Note + "."
		}
		if critique := critiqueText(s.Critique, s.Plan); critique != "" {
			after = fenced("critique", critique) + "\n" + after
		}
		if t.plain {
			messages = append(messages, inWords(s, room, after)...)
		} else {
			messages = append(messages, inCalls(s, room, after, ids)...)
		}
	}
	return messages
}

// inCalls returns a step as two turns of a conversation with tools. The model's own output is
// repeated unchanged, except for parts that a provider would reject.
func inCalls(s role.ActStep, room int, after string, ids map[string]bool) []llm.Message {
	said := llm.Message{Speaker: llm.Assistant, Text: harmless(s.Thought)}
	told := llm.Message{Speaker: llm.User, Text: mark(after)}
	for _, u := range s.Uses {
		call := u.Call
		if call.ID == "" || len(call.ID) > 64 || ids[call.ID] || !plainName.MatchString(call.ID) {
			call.ID = fmt.Sprintf("call%d", len(ids))
		}
		ids[call.ID] = true
		if !plainName.MatchString(call.Name) {
			call.Name = "unknown"
		}
		var object map[string]any
		if len(call.Arguments) > maxArguments || json.Unmarshal([]byte(call.Arguments), &object) != nil || object == nil {
			call.Arguments = "{}"
		}
		said.Calls = append(said.Calls, call)
		told.Results = append(told.Results, llm.ToolResult{Call: call.ID, Name: call.Name, Text: mark(fenced("observation", inRoom(u.Brought, room))), Error: u.Failed})
	}
	return []llm.Message{said, told}
}

// plainName matches the names and IDs of calls that providers accept.
var plainName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// inWords returns a step as two turns of a conversation without tools.
func inWords(s role.ActStep, room int, after string) []llm.Message {
	reply := actReply{Thought: harmless(s.Thought)}
	var told strings.Builder
	for _, u := range s.Uses {
		raw := json.RawMessage(u.Call.Arguments)
		var object map[string]any
		if len(raw) > maxArguments || json.Unmarshal(raw, &object) != nil || object == nil {
			raw = json.RawMessage("{}")
		}
		reply.Calls = append(reply.Calls, callReply{Tool: shorten(line(u.Call.Name), 64), Arguments: raw})
		told.WriteString(fenced("observation", inRoom(u.Brought, room)) + "\n")
	}
	text, err := json.Marshal(reply)
	if err != nil { // cannot happen, since it was read from JSON
		text = []byte(`{"thought":"","calls":[],"done":false}`)
	}
	return []llm.Message{
		{Speaker: llm.Assistant, Text: harmless(string(text))},
		{Speaker: llm.User, Text: mark(told.String() + "\n" + after)},
	}
}

// inRoom returns at most room bytes of an observation; 0 means all.
func inRoom(text string, room int) string {
	if room == 0 {
		return text
	}
	return shorten(text, room)
}

// usesText lists calls, one per line, with a short summary of their results.
func usesText(uses []role.ToolUse) string {
	lines := make([]string, len(uses))
	for i, u := range uses {
		lines[i] = shorten(line(u.Call.Name+" "+u.Call.Arguments), maxShownUse) + ": " + shorten(line(u.Short), 120)
	}
	return strings.Join(lines, "\n")
}

// memoText lists statements, one per line, with the numbers of their results.
func memoText(memo []role.Statement) string {
	lines := make([]string, len(memo))
	for i, s := range memo {
		lines[i] = fmt.Sprintf("%s (results %s)", shorten(line(s.Text), maxPhrase), listed(s.Evidence))
	}
	return strings.Join(lines, "\n")
}

// toolsText describes the tools in words.
func toolsText(tools []llm.Tool) string {
	lines := make([]string, len(tools))
	for i, d := range tools {
		lines[i] = fmt.Sprintf("- %s: %s\n  %s", d.Name, d.Description, d.Parameters)
	}
	return strings.Join(lines, "\n")
}

// again builds the next request: the first one, followed by the problem with the reply. A reply
// that was cut off gets twice the room.
func (t *turn) again(try int, reply llm.Response, problem string) {
	if reply.Finish == llm.FinishLength {
		more := min(2*t.request.MaxTokens, t.window/2, t.window-t.request.InputTokens()-retryRoom)
		t.request.MaxTokens = max(t.request.MaxTokens, more)
	}
	messages := slices.Clone(t.base)
	messages[len(messages)-1].Text += fmt.Sprintf("\n\nYour last reply cannot be used: %s. Call tools, or reply as you were told. This is try %d of %d.",
		shorten(line(problem), 300), try, maxPrompts)
	t.request.Messages = messages
}

// actReply is the reply of a model without tools.
type actReply struct {
	Thought string      `json:"thought"`
	Calls   []callReply `json:"calls"`
	Done    bool        `json:"done"`

	callReply // set in a reply that consists of one call only
}

type callReply struct {
	Tool      string          `json:"tool,omitempty"`
	Name      string          `json:"name,omitempty"` // some models write this instead of Tool
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// read parses a reply, or returns the problem with it.
func (t *turn) read(reply llm.Response) (role.Action, string) {
	if len(reply.Calls) > 0 {
		return t.action(reply.Text, reply.Calls), ""
	}
	text := withoutThoughts(reply.Text)
	said, err := actsIn(text)
	switch {
	case err == nil && (len(said.Calls) > 0 || said.Done):
		var calls []llm.ToolCall
		for i, c := range said.Calls {
			calls = append(calls, llm.ToolCall{ID: fmt.Sprintf("words%d", i), Name: c.Tool, Arguments: string(c.Arguments)})
		}
		return t.action(said.Thought, calls), ""
	case err == nil:
		return role.Action{}, `it has no calls and does not set "done": true`
	case reply.Finish == llm.FinishLength:
		return role.Action{}, fmt.Sprintf("it was cut off after %d tokens; use fewer words", t.request.MaxTokens)
	case strings.TrimSpace(text) == "":
		return role.Action{}, "it is empty"
	case t.plain || !errors.Is(err, errNoObject):
		return role.Action{}, err.Error()
	}
	return t.action(text, nil), "" // text without a call means done
}

// action returns the action that a reply requests, limited to t.in.Most calls.
func (t *turn) action(thought string, calls []llm.ToolCall) role.Action {
	a := role.Action{Thought: shorten(line(thought[:min(len(thought), 8*maxThought)]), maxThought), Done: len(calls) == 0}
	if len(calls) > max(1, t.in.Most) {
		a.Asked, calls = len(calls), calls[:max(1, t.in.Most)]
	}
	for _, c := range calls {
		c.Name, c.Arguments = shorten(c.Name, 200), cutTo(c.Arguments, maxArguments)
		a.Calls = append(a.Calls, c)
	}
	return a
}

// cutTo returns the first n bytes of arguments. No tool accepts longer ones, so the rest is not
// needed.
func cutTo(text string, n int) string {
	return strings.ToValidUTF8(text[:min(len(text), n)], "\uFFFD")
}

// actsIn parses the reply of a model without tools: one JSON object, or one for each call.
func actsIn(text string) (actReply, error) {
	var all actReply
	if len(text) > maxReply {
		return all, fmt.Errorf("it has %d bytes; the limit is %d", len(text), maxReply)
	}
	problem := errNoObject
	found := false
	for _, piece := range objects(text) {
		var one actReply
		if err := readAct(piece, &one); err != nil {
			problem = err
			continue
		}
		if one.Tool = one.tool(); one.Tool != "" {
			one.Calls = append(one.Calls, one.callReply)
		}
		if len(one.Calls) == 0 && !one.Done {
			problem = errors.New(`an object of it has neither "calls" nor "done"`)
			continue
		}
		if found && one.Done != all.Done {
			return all, errors.New("it both calls tools and sets \"done\": true")
		}
		if all.Thought == "" {
			all.Thought = one.Thought
		}
		all.Calls, all.Done, found = append(all.Calls, one.Calls...), one.Done, true
	}
	if !found {
		return all, problem
	}
	for i, c := range all.Calls {
		all.Calls[i] = callReply{Tool: c.tool(), Arguments: c.unquoted()}
	}
	all.Done = all.Done && len(all.Calls) == 0
	return all, nil
}

// readAct decodes one object, and repairs it if it is nearly JSON.
func readAct(piece string, into *actReply) error {
	if nesting(piece) > maxNesting {
		return fmt.Errorf("its brackets nest deeper than %d", maxNesting)
	}
	if !json.Valid([]byte(piece)) {
		repaired, err := repair(piece)
		if err != nil {
			return fmt.Errorf("it is not valid JSON: %w", err)
		}
		piece = repaired
	}
	if err := checkKeys(piece); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(piece), into); err != nil {
		return errors.New(`it does not have the form {"thought": "...", "calls": [{"tool": "NAME", "arguments": {...}}], "done": false}`)
	}
	return nil
}

func (c callReply) tool() string {
	if c.Tool != "" {
		return c.Tool
	}
	return c.Name
}

// unquoted returns the arguments, decoded if they were written as a string of JSON.
func (c callReply) unquoted() json.RawMessage {
	var text string
	if json.Unmarshal(c.Arguments, &text) == nil {
		return json.RawMessage(text)
	}
	return c.Arguments
}
