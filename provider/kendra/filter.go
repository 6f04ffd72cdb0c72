package kendra

import (
	"fmt"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/kendra/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/provider/internal/passage"
)

// Filters of Kendra compare strings and lists for equality, and dates and whole numbers by order. They
// have at most two levels of groups, of at most ten filters each. startsWith, stringContains, and
// filters beyond these limits are assay.ErrInvalid. None is weakened.
//
// Source: AWS, Amazon Kendra API Reference, AttributeFilter: "AttributeFilter cannot have a depth of
// more than 2", "AttributeFilter cannot have a length of more than 10".
const (
	maxDepth  = 2
	maxLength = 10
)

func (r *Retriever) check(f assay.Filter) error {
	_, err := r.compile(f)
	return err
}

// compile returns f in Kendra's form; nil for the zero Filter.
func (r *Retriever) compile(f assay.Filter) (*types.AttributeFilter, error) {
	if err := f.Check(nil); err != nil || f.IsZero() {
		return nil, err
	}
	n := passage.Normalizer{Service: "Kendra indexes"} // flattens the groups
	flat, err := n.Positive(f)
	if err != nil || len(n.Notes) > 0 { // only NotFilter has the exact meaning
		flat = f
	}
	out, depth, err := r.attribute(flat)
	if err == nil && depth > maxDepth {
		return nil, fmt.Errorf("filter has more than %d levels of groups, which Kendra does not support: %w", maxDepth, assay.ErrInvalid)
	}
	return out, err
}

// attribute returns a filter in Kendra's form, and its levels of groups.
func (r *Retriever) attribute(f assay.Filter) (*types.AttributeFilter, int, error) {
	switch f.Op {
	case assay.OpAndAll, assay.OpOrAll:
		if any, ok := containsAny(f, r.isList); ok {
			return any, 0, nil
		}
		parts, depth := make([]types.AttributeFilter, len(f.Filters)), 0
		for i, part := range f.Filters {
			p, d, err := r.attribute(part)
			if err != nil {
				return nil, 0, err
			}
			parts[i], depth = *p, max(depth, d)
		}
		if len(parts) > maxLength {
			return nil, 0, fmt.Errorf("filter %s has %d filters, and Kendra supports %d: %w", f.Op, len(parts), maxLength, assay.ErrInvalid)
		}
		if f.Op == assay.OpAndAll {
			return &types.AttributeFilter{AndAllFilters: parts}, depth + 1, nil
		}
		return &types.AttributeFilter{OrAllFilters: parts}, depth + 1, nil
	case assay.OpNot:
		p, depth, err := r.attribute(f.Filters[0])
		return &types.AttributeFilter{NotFilter: p}, depth + 1, err
	}
	return r.comparison(f)
}

// containsAny returns alternatives for one list as one filter.
func containsAny(f assay.Filter, isList func(string) bool) (*types.AttributeFilter, bool) {
	if f.Op != assay.OpOrAll || !isList(f.Filters[0].Key) {
		return nil, false
	}
	var values []string
	for _, part := range f.Filters {
		if part.Op != assay.OpListContains || part.Key != f.Filters[0].Key {
			return nil, false
		}
		values = append(values, part.Value.String)
	}
	return &types.AttributeFilter{ContainsAny: list(f.Filters[0].Key, values)}, true
}

func list(key string, values []string) *types.DocumentAttribute {
	return &types.DocumentAttribute{Key: &key, Value: &types.DocumentAttributeValue{StringListValue: values}}
}

// isList reports whether an attribute holds lists of strings.
func (r *Retriever) isList(key string) bool {
	s := r.config.Sharing
	return key != "" && (slices.Contains(r.config.Lists, key) || key == s.UsersKey || key == s.GroupsKey || key == s.ACLKey)
}

// comparison returns a comparison in Kendra's form, and its levels of groups.
func (r *Retriever) comparison(f assay.Filter) (*types.AttributeFilter, int, error) {
	not := func(out *types.AttributeFilter, depth int, err error) (*types.AttributeFilter, int, error) {
		return &types.AttributeFilter{NotFilter: out}, depth + 1, err
	}
	positive := f
	switch f.Op {
	case assay.OpNotEquals:
		positive.Op = assay.OpEquals
		return not(r.comparison(positive))
	case assay.OpNotIn:
		positive.Op = assay.OpIn
		return not(r.comparison(positive))
	case assay.OpIn:
		return r.oneOf(f)
	case assay.OpListContains:
		if r.isList(f.Key) {
			return &types.AttributeFilter{ContainsAny: list(f.Key, []string{f.Value.String})}, 0, nil
		}
		positive.Op = assay.OpEquals
		return r.comparison(positive)
	}
	value, err := r.value(f)
	if err != nil {
		return nil, 0, err
	}
	a := &types.DocumentAttribute{Key: &f.Key, Value: value}
	switch f.Op {
	case assay.OpEquals:
		return &types.AttributeFilter{EqualsTo: a}, 0, nil
	case assay.OpGreaterThan:
		return &types.AttributeFilter{GreaterThan: a}, 0, nil
	case assay.OpGreaterThanOrEquals:
		return &types.AttributeFilter{GreaterThanOrEquals: a}, 0, nil
	case assay.OpLessThan:
		return &types.AttributeFilter{LessThan: a}, 0, nil
	case assay.OpLessThanOrEquals:
		return &types.AttributeFilter{LessThanOrEquals: a}, 0, nil
	}
	return nil, 0, fmt.Errorf("filter %s on key %q: Kendra does not support it: %w", f.Op, f.Key, assay.ErrInvalid)
}

// oneOf returns the filter that an attribute has one of the values of f.
func (r *Retriever) oneOf(f assay.Filter) (*types.AttributeFilter, int, error) {
	values := f.Value.List
	switch {
	case len(values) == 0 || len(values) > maxLength:
		return nil, 0, fmt.Errorf("filter %s on key %q has %d values, and Kendra supports 1 to %d: %w", f.Op, f.Key, len(values), maxLength, assay.ErrInvalid)
	case r.isList(f.Key):
		return &types.AttributeFilter{ContainsAny: list(f.Key, values)}, 0, nil
	}
	out := &types.AttributeFilter{}
	for _, v := range values {
		out.OrAllFilters = append(out.OrAllFilters, types.AttributeFilter{
			EqualsTo: &types.DocumentAttribute{Key: &f.Key, Value: &types.DocumentAttributeValue{StringValue: &v}},
		})
	}
	return out, 1, nil
}

// value returns the value of a comparison in Kendra's form.
func (r *Retriever) value(f assay.Filter) (*types.DocumentAttributeValue, error) {
	const exact = 1 << 53 // whole numbers that a float64 holds
	v := f.Value
	switch {
	case r.isList(f.Key):
	case v.Kind == assay.KindString:
		return &types.DocumentAttributeValue{StringValue: &v.String}, nil
	case v.Kind == assay.KindTime:
		return &types.DocumentAttributeValue{DateValue: &v.Time}, nil
	case v.Kind == assay.KindNumber && v.Number == math.Trunc(v.Number) && math.Abs(v.Number) <= exact:
		n := int64(v.Number)
		return &types.DocumentAttributeValue{LongValue: &n}, nil
	}
	return nil, fmt.Errorf("filter %s on key %q compares with %q, a %s, which Kendra does not support for it: %w", f.Op, f.Key, v.Text(), v.Kind, assay.ErrInvalid)
}
