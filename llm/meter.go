package llm

import (
	"context"
	"fmt"
	"sync"

	"github.com/assay-rag/assay"
)

// A Meter counts what embedders and rerankers spend inside a search: their
// interfaces have no place for it, since most of them are in this process and spend
// nothing. Whoever makes a search a step puts one into its context; who calls a
// provider reports to it. It is the one thing besides cancellation that a context
// carries, because between the two stand the retriever and every wrapper of a model,
// to none of which it matters. It is safe for concurrent use.
type Meter struct {
	limit assay.Usage

	of     *Meter // that what is reported is handed on to; nil: it is kept here
	prices Facts  // with which

	mu    sync.Mutex
	spent assay.Usage
	held  []assay.Usage // for calls that have room and are not reported yet
}

// NewMeter returns a meter by which up to limit may be spent. Of its fields, one that
// is zero sets no limit, and one that is negative allows nothing. Tokens are one
// limit, input and output together.
func NewMeter(limit assay.Usage) *Meter { return &Meter{limit: limit} }

// Spent returns what was reported so far.
func (m *Meter) Spent() assay.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spent
}

// priced is u with its cost, if that is not in it.
func (m *Meter) priced(u assay.Usage) assay.Usage {
	u.CostMicros = max(u.CostMicros, m.prices.Cost(u))
	return u
}

// hold keeps room for another u, or says which limit has none.
func (m *Meter) hold(u assay.Usage) error {
	if m.of != nil {
		return m.of.hold(m.priced(u))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	after := m.spent.Add(u)
	for _, other := range m.held {
		after = after.Add(other)
	}
	for _, d := range []struct {
		what        string
		after, most int64
	}{
		{"calls", int64(after.Calls), int64(m.limit.Calls)},
		{"tokens", int64(after.InputTokens + after.OutputTokens), int64(m.limit.InputTokens + m.limit.OutputTokens)},
		{"money", after.CostMicros, m.limit.CostMicros},
	} {
		if d.most != 0 && d.after > max(d.most, 0) {
			return fmt.Errorf("another call does not fit into what is left of the %s: %w", d.what, assay.ErrBudget)
		}
	}
	m.held = append(m.held, u)
	return nil
}

type meterKey struct{}

// WithMeter returns a context below which calls are reported to m.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// WithPrice returns a context below which what is reported to the meter of ctx costs
// what the facts of a service say, unless the report says so itself. Without a meter, or
// a price, it is ctx.
func WithPrice(ctx context.Context, f Facts) context.Context {
	m, ok := ctx.Value(meterKey{}).(*Meter)
	if !ok || !f.Priced {
		return ctx
	}
	return WithMeter(ctx, &Meter{of: m, prices: f})
}

// Room reports, as assay.ErrBudget, that another call which spends up to u does not
// fit into what may be spent below ctx. It is asked before each request of an
// embedder or reranker to a provider, repetitions included, and the room that it finds
// is kept until that is reported: of requests made at once each has its own. Without a
// meter there is always room.
func Room(ctx context.Context, u assay.Usage) error {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok {
		return m.hold(u)
	}
	return nil
}

// Report tells the meter of ctx, if there is one, what a request of an embedder or
// reranker to a provider has spent, also one that failed. It is called once for each
// request, after Room.
func Report(ctx context.Context, u assay.Usage) {
	m, ok := ctx.Value(meterKey{}).(*Meter)
	if !ok {
		return
	}
	u = assay.Usage{
		Calls: max(u.Calls, 0), InputTokens: max(u.InputTokens, 0), OutputTokens: max(u.OutputTokens, 0), CostMicros: max(u.CostMicros, 0),
	}
	for m.of != nil {
		u, m = m.priced(u), m.of
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent = m.spent.Add(u)
	if len(m.held) > 0 {
		m.held = m.held[1:]
	}
}
