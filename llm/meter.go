package llm

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
)

// A Meter counts the usage of embedders and rerankers within a search. Their interfaces do not
// return usage, since most of them run in this process and cost nothing. The caller that runs a
// search as a step puts a Meter into its context, and code that calls a provider reports to it.
// Apart from cancellation, it and the attempts of a call (see Attempts) are the only things that a
// context carries: the retriever and the wrappers of a model lie between the two and do not need
// them. A Meter is safe for concurrent use.
type Meter struct {
	// Further, if not nil, is asked for room for each call besides the limit, with the most that the
	// call may use. It may wait for a store. An error refuses the call.
	Further func(context.Context, assay.Usage) error

	limit assay.Usage

	of     *Meter // the meter that reports are forwarded to; nil if this one keeps them
	prices Facts  // applied to forwarded reports

	mu    sync.Mutex
	spent assay.Usage
	held  reservations
}

// NewMeter returns a meter that allows usage up to limit. A field of limit that is zero sets no
// limit; a negative one allows nothing. Input and output tokens share one limit.
func NewMeter(limit assay.Usage) *Meter { return &Meter{limit: limit} }

// Spent returns the usage reported so far.
func (m *Meter) Spent() assay.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spent
}

// priced returns u with its cost raised at least to the price of its tokens.
func (m *Meter) priced(u assay.Usage) assay.Usage {
	u.CostMicros = max(u.CostMicros, m.prices.Cost(u))
	return u
}

// hold reserves room for u, or returns an error that names the exhausted limit.
func (m *Meter) hold(ctx context.Context, u assay.Usage) error {
	if m.of != nil {
		return m.of.hold(ctx, m.priced(u))
	}
	if m.Further != nil {
		if err := m.Further(ctx, u); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	after := m.spent.Add(u).Add(m.held.sum())
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
	m.held.add(u)
	return nil
}

// reservations are for calls that are not reported yet, by dimension.
type reservations struct {
	calls, input, output, cost []int64
}

func (r *reservations) each() []*[]int64 { return []*[]int64{&r.calls, &r.input, &r.output, &r.cost} }

func (r *reservations) add(u assay.Usage) {
	for i, n := range []int64{int64(u.Calls), int64(u.InputTokens), int64(u.OutputTokens), u.CostMicros} {
		list := r.each()[i]
		*list = append(*list, n)
	}
}

func (r *reservations) sum() assay.Usage {
	var sums [4]int64
	for i, list := range r.each() {
		for _, n := range *list {
			sums[i] += n
		}
	}
	return assay.Usage{Calls: int(sums[0]), InputTokens: int(sums[1]), OutputTokens: int(sums[2]), CostMicros: sums[3]}
}

// release drops the smallest reservation of each dimension. A report does not name the call that
// it is of, so no room may become free that another call still holds.
func (r *reservations) release() {
	for _, list := range r.each() {
		if len(*list) > 0 {
			at := slices.Index(*list, slices.Min(*list))
			*list = slices.Delete(*list, at, at+1)
		}
	}
}

type meterKey struct{}

// WithMeter returns a context in which calls are reported to m.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// WithPrice returns a context in which usage reported to the meter of ctx is priced by the facts of
// a service, unless the report includes a higher cost. Without a meter or prices, it returns ctx.
func WithPrice(ctx context.Context, f Facts) context.Context {
	m, ok := ctx.Value(meterKey{}).(*Meter)
	if !ok || !f.Priced {
		return ctx
	}
	return WithMeter(ctx, &Meter{of: m, prices: f})
}

// Attempts returns a function that makes the context of each attempt of one call, when the attempt
// begins. Requests that an attempt repeats after another one has made them do not count as calls
// again. Their tokens and costs count each time.
func Attempts() func(context.Context) context.Context {
	var c attempts
	return func(ctx context.Context) context.Context {
		c.mu.Lock()
		defer c.mu.Unlock()
		return context.WithValue(ctx, attemptKey{}, &attempt{of: &c, repeats: c.most})
	}
}

type attemptKey struct{}

// attempts are the attempts of one call.
type attempts struct {
	mu   sync.Mutex
	most int // requests made by one of them
}

// An attempt counts its requests. The first ones are repeats.
type attempt struct {
	of      *attempts
	repeats int
	made    int // guarded by of.mu
}

// ofRequest returns the usage u of the next request in ctx, without a call if it is a repeat. Made
// says whether the request was made.
func ofRequest(ctx context.Context, u assay.Usage, made bool) assay.Usage {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return u
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.made < a.repeats {
		u.Calls = 0
	}
	if made {
		a.made++
		a.of.most = max(a.of.most, a.made)
	}
	return u
}

// Room reserves room for one call that uses up to u. It returns assay.ErrBudget if the call does
// not fit into the limit of ctx's meter, or the error of the meter's Further. Code that calls an embedder or reranker of a provider
// calls Room before each request, including retries (see Attempts). The reservation lasts until Report, so
// concurrent requests do not share room. Without a meter there is always room.
func Room(ctx context.Context, u assay.Usage) error {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok {
		return m.hold(ctx, ofRequest(ctx, u, false))
	}
	return nil
}

// Report adds the usage of one request of an embedder or reranker to the meter of ctx, if there is
// one. It is called once for each request, failed ones included, after Room.
func Report(ctx context.Context, u assay.Usage) {
	m, ok := ctx.Value(meterKey{}).(*Meter)
	if !ok {
		return
	}
	u = assay.Usage{
		Calls: max(u.Calls, 0), InputTokens: max(u.InputTokens, 0), OutputTokens: max(u.OutputTokens, 0), CostMicros: max(u.CostMicros, 0),
	}
	u = ofRequest(ctx, u, u.Calls > 0)
	for m.of != nil {
		u, m = m.priced(u), m.of
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent = m.spent.Add(u)
	m.held.release()
}
