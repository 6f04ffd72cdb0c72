package resilient

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// maxTokens is more than any model reads or writes in a call. A larger count is considered invalid.
const maxTokens = 100_000_000

// maxCalls is the largest number of tool calls in a reply.
const maxCalls = 128

// Model returns m with its calls made by g. A call has at most Request.Attempts attempts; only
// temporary errors are retried. Its usage covers all attempts, with their cost at the prices in
// facts. An attempt that failed after its request was read is charged its estimated usage. Missing
// token counts are estimated, with output limited to the requested maximum. The result is an
// [llm.Described] with the given facts, or those of m if they are zero.
//
// A stream receives a text once. A later attempt continues where the earlier one broke off as long
// as their texts agree; otherwise nothing more is streamed. Only the Response is authoritative.
//
// For any behaviour of m that terminates, the Response keeps the contract of llm.Model: invalid
// UTF-8 is replaced, calls get identifiers, and usage is limited to valid ranges. A violation that
// cannot be repaired is an error of kind llm.BadReply or llm.TooLarge. So is a panic of m. If the
// context ends, the error includes an *llm.Error with the usage until then.
func (g *Guard) Model(m llm.Model, facts llm.Facts) llm.Model {
	if facts == (llm.Facts{}) {
		facts = llm.FactsOf(m)
	}
	return &model{guard: g, inner: m, name: m.Model(), facts: facts}
}

type model struct {
	guard *Guard
	inner llm.Model
	name  string
	facts llm.Facts
}

// Model implements llm.Model.
func (m *model) Model() string { return m.name }

// Facts implements llm.Described.
func (m *model) Facts() llm.Facts { return m.facts }

// Generate implements llm.Model.
func (m *model) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	l := &listener{tell: stream, most: m.guard.config.MaxText}
	defer l.close()
	estimated, most := false, req.Attempts
	req.Attempts = 1
	c := &call[llm.Response]{
		guard: m.guard, name: m.name, most: most, timeout: m.guard.config.Timeout,
		tokens: req.InputTokens() + max(0, req.MaxTokens),
		try:    func(ctx context.Context) (llm.Response, error) { return m.attempt(ctx, req, l) },
		use: func(r llm.Response, err error) assay.Usage {
			u, guessed := m.used(req, l, r, err)
			estimated = estimated || guessed
			return u
		},
	}
	r, spent, err := c.do(ctx)
	if l.panicked != nil {
		panic(l.panicked)
	}
	if err != nil {
		return llm.Response{}, err
	}
	l.rest(r.Text)
	r.Usage, r.Attempts, r.Estimated = spent.Usage, spent.Attempts, estimated
	r.Cached = min(max(0, r.Cached), r.Usage.InputTokens)
	return r, nil
}

// errTooMuch is the cause of a context that was cancelled because the stream is too long.
var errTooMuch = errors.New("the text is too long")

// attempt calls the model once and checks the result against its contract.
func (m *model) attempt(ctx context.Context, req llm.Request, l *listener) (llm.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hear := l.begin(func() { cancel(errTooMuch) })
	r, err := m.inner.Generate(ctx, req, hear)
	if err == nil {
		return m.held(r)
	}
	if context.Cause(ctx) == errTooMuch {
		return llm.Response{}, m.fail(llm.TooLarge, "the text is longer than %d bytes", m.guard.config.MaxText)
	}
	if _, ok := errors.AsType[*llm.Error](err); !ok && ctx.Err() == nil {
		return llm.Response{}, m.fail(llm.BadReply, "%s", quoted(err.Error()))
	}
	return llm.Response{}, err
}

func (m *model) fail(kind llm.ErrorKind, format string, args ...any) *llm.Error {
	return &llm.Error{Model: m.name, Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// held returns a response adjusted to the contract of llm.Model.
func (m *model) held(r llm.Response) (llm.Response, error) {
	refuse := func(kind llm.ErrorKind, format string, args ...any) (llm.Response, error) {
		e := m.fail(kind, format, args...)
		e.Usage = r.Usage
		return llm.Response{}, e
	}
	size := len(r.Text)
	for _, c := range r.Calls {
		size += len(c.ID) + len(c.Name) + len(c.Arguments) + len(c.Opaque)
	}
	if size > m.guard.config.MaxText {
		return refuse(llm.TooLarge, "the reply has %d bytes, and %d are taken", size, m.guard.config.MaxText)
	}
	if n := len(r.Calls); n > maxCalls {
		return refuse(llm.BadReply, "the reply has %d tool calls, and %d are taken", n, maxCalls)
	}
	r.Text, r.Served = valid(r.Text), quoted(r.Served)
	r.Calls = identified(r.Calls)
	switch r.Finish {
	case llm.FinishStop, llm.FinishLength, llm.FinishTools, llm.FinishRefused:
	default:
		r.Finish = llm.FinishOther
	}
	return r, nil
}

// identified returns calls with distinct identifiers.
func identified(calls []llm.ToolCall) []llm.ToolCall {
	out, seen := make([]llm.ToolCall, 0, len(calls)), map[string]bool{}
	for _, c := range calls {
		seen[valid(c.ID)] = false
	}
	for _, c := range calls {
		c = llm.ToolCall{ID: valid(c.ID), Name: valid(c.Name), Arguments: valid(c.Arguments), Opaque: valid(c.Opaque)}
		for n := len(out) + 1; c.ID == "" || seen[c.ID]; n++ {
			if id := fmt.Sprintf("call_%d", n); !has(seen, id) {
				c.ID = id
			}
		}
		seen[c.ID] = true
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func has(m map[string]bool, key string) bool {
	_, ok := m[key]
	return ok
}

func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// used returns the usage of an attempt, and whether it is an estimate.
func (m *model) used(req llm.Request, l *listener, r llm.Response, err error) (assay.Usage, bool) {
	said, guessed := r.Usage, r.Estimated
	text := r.Text
	if err != nil {
		text, guessed = l.heard(), false
		if failed, _ := errors.AsType[*llm.Error](err); failed != nil {
			said = failed.Usage
		}
	}
	u := assay.Usage{Calls: 1, InputTokens: said.InputTokens, OutputTokens: said.OutputTokens}
	untold := u.InputTokens <= 0 || u.InputTokens > maxTokens || u.OutputTokens < 0 || u.OutputTokens > maxTokens
	if untold {
		u.InputTokens, u.OutputTokens = 0, 0
		if err == nil || billed(err) {
			u.InputTokens, u.OutputTokens, guessed = req.InputTokens(), llm.EstimateTokens(text), true
			for _, c := range r.Calls {
				u.OutputTokens += llm.EstimateTokens(c.Name + c.Arguments)
			}
		}
	}
	if guessed || err != nil { // the requested maximum
		u.OutputTokens = min(u.OutputTokens, max(0, req.MaxTokens))
	}
	cached := r.Cached
	if untold || err != nil {
		cached = 0
	}
	u.CostMicros = m.facts.CostCached(u, cached)
	return u, guessed
}

// billed reports whether a provider may have read the request that failed with err: it began to
// reply, or the caller did not wait for it.
func billed(err error) bool {
	failed, _ := errors.AsType[*llm.Error](err)
	if failed == nil {
		return true
	}
	switch failed.Kind {
	case llm.BrokeOff, llm.TimedOut, llm.TooLarge, llm.BadReply:
		return true
	}
	return false
}
