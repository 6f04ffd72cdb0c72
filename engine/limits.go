package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
)

// limitKind is the kind of the registry's items with limits. Their names are subjects.
const limitKind = "limit"

// limitTable is the table of limits as last read.
type limitTable struct {
	mu      sync.Mutex
	known   bool
	version int64 // of the registry
	table   limit.Table
}

// limits returns the tenant's limits. Unless they have changed, only the registry's version is read.
func (e *Engine) limits(ctx context.Context) (limit.Table, error) {
	registry := e.tenant.Registry()
	version, err := registry.Version(ctx)
	if err != nil {
		return nil, err
	}
	c := &e.limitTable
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && c.version == version {
		return c.table, nil
	}
	items, err := registry.Items(ctx, limitKind)
	if err != nil {
		return nil, err
	}
	table := limit.Table{}
	for _, item := range items {
		if err := table.Parse(item.Name, item.Value); err != nil {
			return nil, fmt.Errorf("%w: %v", assay.ErrDamaged, err)
		}
	}
	c.known, c.version, c.table = true, version, table
	return table, nil
}

// bounds returns the bounds that hold for a principal.
func (e *Engine) bounds(ctx context.Context, principal assay.Principal) ([]limit.Bound, error) {
	table, err := e.limits(ctx)
	if err != nil {
		return nil, err
	}
	return table.Of(principal), nil
}

// limitsCost reports whether a limit of money holds for a principal.
func (e *Engine) limitsCost(ctx context.Context, principal assay.Principal) (bool, error) {
	bounds, err := e.bounds(ctx, principal)
	return slices.ContainsFunc(bounds, func(b limit.Bound) bool { return b.Measure.Unit() == "cost" }), err
}

// SetLimits changes limits of a subject (see package limit); a negative value removes the limit. It
// is an administrator's right, which the caller of SetLimits checks. The limits hold in every process
// for the next call. An unknown subject or measure is assay.ErrInvalid.
func (e *Engine) SetLimits(ctx context.Context, actor assay.Principal, subject string, change limit.Limits, reason string) error {
	if err := limit.CheckSubject(subject); err != nil {
		return err
	}
	table, err := e.limits(ctx)
	if err != nil {
		return err
	}
	limits := maps.Clone(table[subject])
	if limits == nil {
		limits = limit.Limits{}
	}
	for m, value := range change {
		if limits[m] = value; value < 0 {
			delete(limits, m)
		}
		if err := (limit.Limits{m: max(value, 0)}).Check(); err != nil {
			return err
		}
	}
	if len(limits) == 0 {
		return e.RemoveLimits(ctx, actor, subject, reason)
	}
	value, err := json.Marshal(limits)
	if err != nil {
		return err
	}
	detail, err := json.Marshal(limitChange{Subject: subject, Limits: limits})
	if err != nil {
		return err
	}
	act := store.Act{Kind: "limit.set", Subject: limit.ActSubject(subject), Actor: actor, Reason: reason, Detail: detail}
	return e.tenant.Registry().Set(ctx, store.RegistryItem{Kind: limitKind, Name: subject, Value: value}, act)
}

// limitChange is the detail of the acts "limit.set" and "limit.removed".
type limitChange struct {
	Subject string       `json:"subject"`
	Limits  limit.Limits `json:"limits,omitempty"`
}

// RemoveLimits removes all limits of a subject. The error is assay.ErrNotFound if it has none. What
// was spent stays counted.
func (e *Engine) RemoveLimits(ctx context.Context, actor assay.Principal, subject, reason string) error {
	detail, err := json.Marshal(limitChange{Subject: subject})
	if err != nil {
		return err
	}
	act := store.Act{Kind: "limit.removed", Subject: limit.ActSubject(subject), Actor: actor, Reason: reason, Detail: detail}
	return e.tenant.Registry().Delete(ctx, limitKind, subject, act)
}

// Limits returns the tenant's limits by subject.
func (e *Engine) Limits(ctx context.Context) (limit.Table, error) {
	table, err := e.limits(ctx)
	return maps.Clone(table), err
}

// A LimitUse is how far a limit is used up.
type LimitUse struct {
	Subject  string        `json:"subject"`
	Measure  limit.Measure `json:"measure"`
	Limit    int64         `json:"limit"` // -1: none
	Spent    int64         `json:"spent"`
	Reserved int64         `json:"reserved"` // by calls in progress
	Other    int64         `json:"other"`    // the part of Spent of which no journal has a record, see store.Ledger
	Left     int64         `json:"left"`     // at least 0; -1: no limit
	Renews   time.Time     `json:"renews,omitzero"`
}

// LimitUsage returns what subjects have spent beside their limits, for each subject that has either,
// sorted. Subjects, if any are given, select from them; the limits of limit.Users and limit.Keys are
// shown with each user and key that has spent anything. Limits per second and minute are not counted
// in the store and are left out.
func (e *Engine) LimitUsage(ctx context.Context, subjects ...string) ([]LimitUse, error) {
	table, err := e.limits(ctx)
	if err != nil {
		return nil, err
	}
	spending, err := e.tenant.Ledger().Spending(ctx)
	if err != nil {
		return nil, err
	}
	bySubject := map[string]store.Spending{}
	for _, s := range spending {
		bySubject[s.Subject] = s
	}
	for subject := range table {
		if _, ok := bySubject[subject]; !ok && subject != limit.Users && subject != limit.Keys {
			bySubject[subject] = store.Spending{Subject: subject}
		}
	}
	now := e.config.Now()
	uses := []LimitUse{}
	for _, subject := range slices.Sorted(maps.Keys(bySubject)) {
		if len(subjects) == 0 || slices.Contains(subjects, subject) {
			uses = append(uses, usesOf(bySubject[subject], table, now)...)
		}
	}
	return uses, nil
}

// usesOf returns the uses of one subject, by measure.
func usesOf(s store.Spending, table limit.Table, now time.Time) []LimitUse {
	limits := table.OfSubject(s.Subject)
	var uses []LimitUse
	for _, m := range limit.Measures {
		if m.InMemory() {
			continue
		}
		u := LimitUse{Subject: s.Subject, Measure: m, Limit: -1, Left: -1, Renews: m.Renews(now)}
		spent, other := s.Day, s.OtherDay
		if m.Period() == "month" {
			spent, other = s.Month, s.OtherMonth
		}
		if u.Spent, u.Reserved, u.Other = unitOf(spent, m), unitOf(s.Held, m), unitOf(other, m); m == limit.Runs {
			u.Spent, u.Reserved, u.Other = s.Runs, 0, 0
		}
		most, limited := limits[m]
		if limited {
			u.Limit, u.Left = most, max(0, most-u.Spent-u.Reserved)
		}
		if limited || u.Spent+u.Reserved > 0 {
			uses = append(uses, u)
		}
	}
	return uses
}

// unitOf returns the number of an amount that a measure bounds.
func unitOf(a store.Amount, m limit.Measure) int64 {
	switch m.Unit() {
	case "requests":
		return a.Requests
	case "calls":
		return a.Calls
	case "tokens":
		return a.Tokens
	case "cost":
		return a.CostMicros
	}
	return 0
}

// meteredSearch runs a search outside a run. If it may call services that cost money, their calls are
// counted, and refused if a limit is reached; the search then works without them.
func (e *Engine) meteredSearch(ctx context.Context, principal assay.Principal, services string, search func(context.Context) error) (err error) {
	if services == "" {
		return search(ctx)
	}
	account, err := e.tenant.Ledger().Admit(ctx, store.Admission{Principal: principal})
	if errors.Is(err, assay.ErrReadOnly) { // nothing can be counted, so nothing may be spent
		return search(llm.WithMeter(ctx, llm.NewMeter(assay.Usage{Calls: -1})))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	meter := llm.NewMeter(assay.Usage{})
	ledger := runLedger{e, principal, account}
	const path = "search"
	meter.Further = func(ctx context.Context, most assay.Usage) error { return ledger.Reserve(ctx, path, most) }
	err = search(llm.WithMeter(ctx, meter))
	return errors.Join(err, ledger.Settle(context.WithoutCancel(ctx), path, meter.Spent()))
}

// paid returns an embedder that counts the calls of e for the tenant.
func (l runLedger) paid(e llm.Embedder) llm.Embedder {
	p := paidEmbedder{e, l}
	if c, ok := e.(llm.TokenCounter); ok {
		return paidCounter{p, c}
	}
	return p
}

// paidCounter is a paidEmbedder of an encoder that counts tokens.
type paidCounter struct {
	paidEmbedder
	llm.TokenCounter
}

// paidEmbedder counts the calls of an encoder that is a service, for the tenant.
type paidEmbedder struct {
	llm.Embedder
	ledger runLedger
}

// embedCalls numbers the calls of paid encoders in this process. A clock would not do: where it is coarse,
// calls at the same time would share a reservation, and the second one would not be counted.
var embedCalls atomic.Int64

// Embed implements llm.Embedder. Each call is settled by itself, so that a crash forfeits one.
func (p paidEmbedder) Embed(ctx context.Context, purpose llm.Purpose, texts []string) ([]llm.Vector, error) {
	meter := llm.NewMeter(assay.Usage{})
	path := fmt.Sprintf("embed %d", embedCalls.Add(1))
	meter.Further = func(ctx context.Context, most assay.Usage) error { return p.ledger.Reserve(ctx, path, most) }
	vectors, err := p.Embedder.Embed(llm.WithPrice(llm.WithMeter(ctx, meter), llm.FactsOf(p.Embedder)), purpose, texts)
	return vectors, cmp.Or(err, p.ledger.Settle(context.WithoutCancel(ctx), path, meter.Spent()))
}
