package s3vectors

import (
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/provider/internal/passage"
)

// Filters of S3 Vectors compare strings, numbers and booleans, and lists by their members. They have no
// "not". A missing key fails every comparison, so the negative ones are joined with $exists.
// startsWith, stringContains, and comparisons of times and lists are assay.ErrInvalid. None is weakened.

func checkFilter(f assay.Filter) error {
	_, _, err := compile(f)
	return err
}

// compile returns f in the form of S3 Vectors, nil for the zero Filter, and notes on deviations from its
// meaning.
func compile(f assay.Filter) (map[string]any, []string, error) {
	if err := f.Check(nil); err != nil || f.IsZero() {
		return nil, nil, err
	}
	n := passage.Normalizer{Service: "indexes of S3 Vectors"}
	f, err := n.Positive(f)
	if err != nil {
		return nil, nil, err
	}
	out, err := build(f)
	return out, n.Notes, err
}

// comparisons maps operators to those of S3 Vectors.
var comparisons = map[assay.FilterOp]string{
	assay.OpEquals: "$eq", assay.OpNotEquals: "$ne", assay.OpGreaterThan: "$gt", assay.OpGreaterThanOrEquals: "$gte",
	assay.OpLessThan: "$lt", assay.OpLessThanOrEquals: "$lte", assay.OpIn: "$in", assay.OpNotIn: "$nin", assay.OpListContains: "$eq",
}

func build(f assay.Filter) (map[string]any, error) {
	if f.Op == assay.OpAndAll || f.Op == assay.OpOrAll {
		parts := make([]any, len(f.Filters))
		for i, part := range f.Filters {
			p, err := build(part)
			if err != nil {
				return nil, err
			}
			parts[i] = p
		}
		return map[string]any{map[assay.FilterOp]string{assay.OpAndAll: "$and", assay.OpOrAll: "$or"}[f.Op]: parts}, nil
	}
	op, ok := comparisons[f.Op]
	if !ok || strings.HasPrefix(f.Key, "$") || f.Key == KeyText {
		return nil, fmt.Errorf("filter %s on key %q: S3 Vectors does not support it: %w", f.Op, f.Key, assay.ErrInvalid)
	}
	var value any
	switch v := f.Value; {
	case (f.Op == assay.OpIn || f.Op == assay.OpNotIn) && len(v.List) > 0:
		value = v.List
	case v.Kind == assay.KindString:
		value = v.String
	case v.Kind == assay.KindNumber:
		value = v.Number
	case v.Kind == assay.KindBoolean:
		value = v.Boolean
	default:
		return nil, fmt.Errorf("filter %s on key %q compares with %q, a %s, which S3 Vectors does not support: %w", f.Op, f.Key, v.Text(), v.Kind, assay.ErrInvalid)
	}
	one := map[string]any{f.Key: map[string]any{op: value}}
	if f.Op == assay.OpNotEquals || f.Op == assay.OpNotIn {
		return map[string]any{"$or": []any{one, map[string]any{f.Key: map[string]any{"$exists": false}}}}, nil
	}
	return one, nil
}
