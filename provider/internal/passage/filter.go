package passage

import (
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
)

// complements maps operators to their negations.
var complements = map[assay.FilterOp]assay.FilterOp{
	assay.OpEquals: assay.OpNotEquals, assay.OpNotEquals: assay.OpEquals,
	assay.OpIn: assay.OpNotIn, assay.OpNotIn: assay.OpIn,
	assay.OpGreaterThan: assay.OpLessThanOrEquals, assay.OpLessThanOrEquals: assay.OpGreaterThan,
	assay.OpLessThan: assay.OpGreaterThanOrEquals, assay.OpGreaterThanOrEquals: assay.OpLessThan,
	assay.OpAndAll: assay.OpOrAll, assay.OpOrAll: assay.OpAndAll,
}

// A Normalizer rewrites filters for a service without "not".
type Normalizer struct {
	Service string   // in errors, in the plural: "Bedrock knowledge bases"
	Notes   []string // deviations from the meaning that the author may expect
}

// Positive returns f without "not" (De Morgan). It flattens nested groups of the same kind and
// replaces groups of one part by that part. A negated operator without a complement is
// assay.ErrInvalid. f must be a filter that its Check accepts, and not zero.
func (c *Normalizer) Positive(f assay.Filter) (assay.Filter, error) { return c.positive(f, false) }

func (c *Normalizer) positive(f assay.Filter, negate bool) (assay.Filter, error) {
	if f.Op == assay.OpNot {
		return c.positive(f.Filters[0], !negate)
	}
	op := f.Op
	if negate {
		var ok bool
		if op, ok = complements[f.Op]; !ok {
			return f, fmt.Errorf("filter not %s on key %q: %s do not support \"not\", and %s has no complement: %w", f.Op, f.Key, c.Service, f.Op, assay.ErrInvalid)
		}
	}
	if op != assay.OpAndAll && op != assay.OpOrAll {
		if negate && Ordered(op) {
			c.note(fmt.Sprintf("not (%s) is searched as %s, which excludes documents without the key %q", f, assay.Filter{Op: op, Key: f.Key, Value: f.Value}, f.Key))
		}
		f.Op = op
		return f, nil
	}
	group := assay.Filter{Op: op}
	for _, part := range f.Filters {
		p, err := c.positive(part, negate)
		if err != nil {
			return f, err
		}
		if p.Op == op {
			group.Filters = append(group.Filters, p.Filters...)
		} else {
			group.Filters = append(group.Filters, p)
		}
	}
	if len(group.Filters) == 1 {
		return group.Filters[0], nil
	}
	return group, nil
}

func (c *Normalizer) note(text string) {
	if !slices.Contains(c.Notes, text) {
		c.Notes = append(c.Notes, text)
	}
}

// Ordered reports whether an operator is an order comparison.
func Ordered(op assay.FilterOp) bool {
	switch op {
	case assay.OpGreaterThan, assay.OpGreaterThanOrEquals, assay.OpLessThan, assay.OpLessThanOrEquals:
		return true
	}
	return false
}
