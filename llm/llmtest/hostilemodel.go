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

// A ModelFault is a way in which a language model, its provider or its reply misbehaves. Some
// faults keep the contract of llm.Model, others violate it.
type ModelFault string

// ModelFaults lists all model faults.
var ModelFaults = faultNames()

func faultNames() []ModelFault {
	names := make([]ModelFault, len(faults))
	for i, f := range faults {
		names[i] = f.name
	}
	return names
}

// HostileModel returns a model that replies like inner, with a fault. It panics if the fault is
// unknown.
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

// Generate implements llm.Model, but not its contract.
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

// An exchange is one call of a hostile model.
type exchange struct {
	inner  llm.Model
	ctx    context.Context
	req    llm.Request
	stream func(llm.Delta)
	n      int // number of the call, from 1
}

// A behaviour replaces the correct reply of a hostile model.
type behaviour func(x exchange) (llm.Response, error)

// reply returns a reply with the given text.
func (x exchange) reply(text string) (llm.Response, error) {
	return spoken(x.inner.Model(), x.req, llm.Response{Text: text}, x.stream), nil
}

// fail returns a provider's error.
func (x exchange) fail(kind llm.ErrorKind, status int, wait time.Duration) (llm.Response, error) {
	return llm.Response{}, &llm.Error{Model: x.inner.Model(), Kind: kind, Status: status, Message: "as the test wants it", RetryAfter: wait, Usage: assay.Usage{Calls: 1}}
}

// says returns a behaviour that always replies with text.
func says(text string) behaviour {
	return func(x exchange) (llm.Response, error) { return x.reply(text) }
}

// twists returns a behaviour that replies with the inner model's text, transformed by twist.
func twists(twist func(string) string) behaviour {
	return func(x exchange) (llm.Response, error) {
		r, err := x.inner.Generate(x.ctx, x.req, nil)
		if err != nil {
			return r, err
		}
		return x.reply(twist(r.Text))
	}
}

// changes returns a behaviour that replies like the inner model, modified by change.
func changes(change func(r *llm.Response, x exchange)) behaviour {
	return func(x exchange) (llm.Response, error) {
		r, err := x.inner.Generate(x.ctx, x.req, x.stream)
		if err == nil {
			change(&r, x)
		}
		return r, err
	}
}

// fails returns a behaviour that always fails.
func fails(kind llm.ErrorKind, status int, wait time.Duration) behaviour {
	return func(x exchange) (llm.Response, error) { return x.fail(kind, status, wait) }
}

// calls returns a behaviour that requests n tool calls at once, each returned by tool.
func calls(n int, tool func(x exchange, i int) llm.ToolCall) behaviour {
	return func(x exchange) (llm.Response, error) {
		r := llm.Response{Finish: llm.FinishTools}
		for i := range n {
			r.Calls = append(r.Calls, tool(x, i))
		}
		return spoken(x.inner.Model(), x.req, r, x.stream), nil
	}
}

// tool returns a call of an available tool, or of "search" if the request has none.
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

// drips streams a word every 10 milliseconds until the context ends.
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

// floods streams as fast as it can until the context ends or it has sent 64 MB.
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

// breaksOff streams half of the inner model's text.
func breaksOff(x exchange) (llm.Response, error) {
	r, err := x.inner.Generate(x.ctx, x.req, nil)
	if err != nil {
		return r, err
	}
	x.stream(llm.Delta{Text: r.Text[:len(r.Text)/2]})
	return x.fail(llm.BrokeOff, 0, 0)
}

// alternates returns a behaviour that runs odd on odd calls, and the inner model on even ones.
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
