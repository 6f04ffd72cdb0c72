package llmtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// A ModelFault is a way in which a language model, its provider or its reply is not
// what one hopes for. Some keep the contract of llm.Model, others break it.
type ModelFault string

// ModelFaults are all of them.
var ModelFaults = faultNames()

func faultNames() []ModelFault {
	names := make([]ModelFault, len(faults))
	for i, f := range faults {
		names[i] = f.name
	}
	return names
}

// HostileModel returns a model that replies as inner does, with a fault. It panics
// where there is no such fault.
func HostileModel(inner llm.Model, fault ModelFault) llm.Model {
	for _, f := range faults {
		if f.name == fault {
			return &hostileModel{inner: inner, do: f.do}
		}
	}
	panic(fmt.Sprintf("llmtest: no fault is %q", fault))
}

type hostileModel struct {
	inner llm.Model
	do    behaviour
	calls atomic.Int64
}

// Model implements llm.Model.
func (h *hostileModel) Model() string { return h.inner.Model() }

// Facts implements llm.Described.
func (h *hostileModel) Facts() llm.Facts { return llm.FactsOf(h.inner) }

// Generate implements llm.Model, but for its contract.
func (h *hostileModel) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	if err := ctx.Err(); err != nil {
		return llm.Response{}, err
	}
	n := h.calls.Add(1)
	if stream == nil {
		stream = func(llm.Delta) {}
	}
	return h.do(exchange{h.inner, ctx, req, stream, int(n)})
}

// An exchange is a call of a hostile model.
type exchange struct {
	inner  llm.Model
	ctx    context.Context
	req    llm.Request
	stream func(llm.Delta)
	n      int // which call it is, from 1
}

// A behaviour is what a hostile model does in place of what it should.
type behaviour func(x exchange) (llm.Response, error)

// reply replies with a text.
func (x exchange) reply(text string) (llm.Response, error) {
	return spoken(x.inner.Model(), x.req, llm.Response{Text: text}, x.stream), nil
}

// fail returns an error of a provider.
func (x exchange) fail(kind llm.ErrorKind, status int, wait time.Duration) (llm.Response, error) {
	return llm.Response{}, &llm.Error{Model: x.inner.Model(), Kind: kind, Status: status, Message: "as the test wants it", RetryAfter: wait, Usage: assay.Usage{Calls: 1}}
}

// says replies with a text whatever is asked.
func says(text string) behaviour {
	return func(x exchange) (llm.Response, error) { return x.reply(text) }
}

// twists replies with what is made of the inner model's text.
func twists(twist func(string) string) behaviour {
	return func(x exchange) (llm.Response, error) {
		r, err := x.inner.Generate(x.ctx, x.req, nil)
		if err != nil {
			return r, err
		}
		return x.reply(twist(r.Text))
	}
}

// changes replies as the inner model does, but for a change.
func changes(change func(r *llm.Response, x exchange)) behaviour {
	return func(x exchange) (llm.Response, error) {
		r, err := x.inner.Generate(x.ctx, x.req, x.stream)
		if err == nil {
			change(&r, x)
		}
		return r, err
	}
}

// fails fails always.
func fails(kind llm.ErrorKind, status int, wait time.Duration) behaviour {
	return func(x exchange) (llm.Response, error) { return x.fail(kind, status, wait) }
}

// calls asks for tools, n at once, with the arguments that args returns.
func calls(n int, tool func(x exchange, i int) llm.ToolCall) behaviour {
	return func(x exchange) (llm.Response, error) {
		r := llm.Response{Finish: llm.FinishTools}
		for i := range n {
			r.Calls = append(r.Calls, tool(x, i))
		}
		return spoken(x.inner.Model(), x.req, r, x.stream), nil
	}
}

// tool returns a call of a tool that there is, if there is any.
func tool(x exchange, i int, arguments string) llm.ToolCall {
	name := "search"
	if len(x.req.Tools) > 0 {
		name = x.req.Tools[i%len(x.req.Tools)].Name
	}
	return llm.ToolCall{ID: fmt.Sprintf("call_%d_%d", x.n, i), Name: name, Arguments: arguments}
}

// blocks does nothing until the context ends.
func blocks(x exchange) (llm.Response, error) {
	<-x.ctx.Done()
	return llm.Response{}, x.ctx.Err()
}

// drips streams a word now and then until the context ends.
func drips(x exchange) (llm.Response, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-x.ctx.Done():
			return llm.Response{}, x.ctx.Err()
		case <-tick.C:
			x.stream(llm.Delta{Text: "and "})
		}
	}
}

// floods streams as fast as it can until the context ends, or 64 MB are out.
func floods(x exchange) (llm.Response, error) {
	piece := llm.Delta{Text: strings.Repeat("and so on ", 1<<10)}
	for sent := 0; sent < 64<<20 && x.ctx.Err() == nil; sent += len(piece.Text) {
		x.stream(piece)
	}
	if err := x.ctx.Err(); err != nil {
		return llm.Response{}, err
	}
	return x.fail(llm.TooLarge, 0, 0)
}

// breaksOff streams half of what the inner model says.
func breaksOff(x exchange) (llm.Response, error) {
	r, err := x.inner.Generate(x.ctx, x.req, nil)
	if err != nil {
		return r, err
	}
	x.stream(llm.Delta{Text: r.Text[:len(r.Text)/2]})
	return x.fail(llm.BrokeOff, 0, 0)
}

// alternates does the one on odd calls, and what the inner model does on even ones.
func alternates(odd behaviour) behaviour {
	return func(x exchange) (llm.Response, error) {
		if x.n%2 == 1 {
			return odd(x)
		}
		return x.inner.Generate(x.ctx, x.req, x.stream)
	}
}

// errForeign is an error that no model should return.
var errForeign = errors.New("an error of some library, with a key: Authorization: Bearer " + Canary)
