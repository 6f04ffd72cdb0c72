package engine

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/strategy"
)

// Bounds of a request's lists and names.
const (
	MaxCollections = 1000 // of a request or query
	MaxNameBytes   = 256  // of a collection, a strategy and the ID of a run or chunk
	MaxHits        = 1000 // of a query
	MaxReason      = 4096 // bytes of the reason of an act
)

// BudgetRanges returns the numbers of a budget with their ranges.
func BudgetRanges(b assay.Budget) []strategy.Range {
	return []strategy.Range{
		{Name: "budget.iterations", Value: float64(b.Iterations), Most: 100},
		{Name: "budget.calls", Value: float64(b.Calls), Most: 1_000_000},
		{Name: "budget.tokens", Value: float64(b.Tokens), Most: 1e12},
		{Name: "budget.cost_micros", Value: float64(b.CostMicros), Most: limit.Most},
		{Name: "budget.wall_ns", Value: float64(b.Wall), Most: float64(strategy.MaxWall)},
	}
}

// checkRanges returns assay.ErrInvalid if a field of r is out of range. Question, Mode and History are
// checked by complete.
func (r Request) checkRanges() error {
	if err := checkCollectionNames(r.Collections); err != nil {
		return err
	}
	for _, n := range []struct{ what, name string }{{"strategy", r.Strategy}, {"run to follow", r.Follows}, {"ID", r.ID}, {"idempotency key", r.IdempotencyKey}} {
		if err := checkName(n.what, n.name); err != nil {
			return err
		}
	}
	if err := r.Filter.Check(nil); err != nil {
		return err
	}
	for _, b := range BudgetRanges(r.Budget) {
		if err := b.Check(); err != nil {
			return err
		}
	}
	if err := r.Limits.Check(); err != nil {
		return err
	}
	return r.Settings.Check()
}

// checkQuery returns assay.ErrInvalid if a field of q is out of range. The retriever has ranges for
// Mode, Fusion, Walk, Diversity, VectorWeight, BM25 and the number of Rewrites and From.
func checkQuery(q assay.Query) error {
	for _, text := range append([]string{q.Text}, q.Rewrites...) {
		switch {
		case strings.TrimSpace(text) == "":
			return fmt.Errorf("the query is empty: %w", assay.ErrInvalid)
		case len(text) > MaxQuestionBytes:
			return fmt.Errorf("the query is longer than %d bytes: %w", MaxQuestionBytes, assay.ErrInvalid)
		case !utf8.ValidString(text):
			return fmt.Errorf("the query is not valid UTF-8: %w", assay.ErrInvalid)
		}
	}
	if q.Limit < 1 || q.Limit > MaxHits {
		return fmt.Errorf("the limit of the query is %d, want 1 to %d: %w", q.Limit, MaxHits, assay.ErrInvalid)
	}
	if err := checkCollectionNames(q.Collections); err != nil {
		return err
	}
	for _, id := range q.From {
		if err := checkName("chunk to follow", id); err != nil {
			return err
		}
	}
	for _, n := range []struct{ what, name string }{{"mode", string(q.Mode)}, {"fusion", string(q.Fusion)}, {"walk", string(q.Walk)}} {
		if err := checkName(n.what, n.name); err != nil {
			return err
		}
	}
	if err := q.Filter.Check(nil); err != nil {
		return err
	}
	return q.BM25.Check()
}

// checkCollectionNames returns assay.ErrInvalid for too many names, and for one that checkName refuses.
func checkCollectionNames(names []string) error {
	if len(names) > MaxCollections {
		return fmt.Errorf("%d collections are named, at most %d may be: %w", len(names), MaxCollections, assay.ErrInvalid)
	}
	for _, name := range names {
		if err := checkName("collection", name); err != nil {
			return err
		}
	}
	return nil
}

// checkName returns assay.ErrInvalid for a name that is too long, not UTF-8 or has control characters.
func checkName(what, name string) error {
	if len(name) > MaxNameBytes {
		return fmt.Errorf("the name of the %s has %d bytes, at most %d are allowed: %w", what, len(name), MaxNameBytes, assay.ErrInvalid)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("the name of the %s is not valid UTF-8: %w", what, assay.ErrInvalid)
	}
	for _, c := range name {
		if unicode.IsControl(c) {
			return fmt.Errorf("the name of the %s, %q, has a control character: %w", what, name, assay.ErrInvalid)
		}
	}
	return nil
}

// checkReason returns assay.ErrInvalid for a reason that is too long or not UTF-8.
func checkReason(reason string) error {
	if len(reason) > MaxReason || !utf8.ValidString(reason) {
		return fmt.Errorf("the reason has %d bytes, want at most %d of UTF-8: %w", len(reason), MaxReason, assay.ErrInvalid)
	}
	return nil
}
