package bedrock

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/provider/internal/passage"
)

// A filter of Bedrock is a filter of assay without "not", and with at least two parts in andAll and
// orAll. A filter that Bedrock cannot express is ErrInvalid. It is never weakened, which would
// return more documents than requested.
//
// For documents without the key, equals, in, startsWith and so on are false in both systems, and
// notEquals is true in both; for notIn Bedrock's behaviour is undocumented. Bedrock's "in" applies
// to strings, "listContains" to lists. Only OpenSearch Serverless supports startsWith and
// stringContains; a knowledge base on another store returns an error.
//
// Source: AWS, Amazon Bedrock API Reference, RetrievalFilter and FilterAttribute.

// A filterer compiles filters for a knowledge base.
type filterer struct {
	epochs []string // keys with seconds since 1970; times are converted for them
	notes  []string // deviations from the meaning that the author may expect
}

// compile returns f in Bedrock's form, and nil for the zero Filter.
func (c *filterer) compile(f assay.Filter) (types.RetrievalFilter, error) {
	if err := f.Check(nil); err != nil || f.IsZero() {
		return nil, err
	}
	n := passage.Normalizer{Service: "Bedrock knowledge bases"}
	positive, err := n.Positive(f)
	if err != nil {
		return nil, err
	}
	c.notes = n.Notes
	return c.build(positive)
}

// build converts a filter without "not" to the SDK's form.
func (c *filterer) build(f assay.Filter) (types.RetrievalFilter, error) {
	if f.Op == assay.OpAndAll || f.Op == assay.OpOrAll {
		parts := make([]types.RetrievalFilter, len(f.Filters))
		for i, part := range f.Filters {
			p, err := c.build(part)
			if err != nil {
				return nil, err
			}
			parts[i] = p
		}
		if f.Op == assay.OpAndAll {
			return &types.RetrievalFilterMemberAndAll{Value: parts}, nil
		}
		return &types.RetrievalFilterMemberOrAll{Value: parts}, nil
	}
	value, err := c.value(f)
	if err != nil {
		return nil, err
	}
	a := types.FilterAttribute{Key: &f.Key, Value: document.NewLazyDocument(value)}
	switch f.Op {
	case assay.OpEquals:
		return &types.RetrievalFilterMemberEquals{Value: a}, nil
	case assay.OpNotEquals:
		return &types.RetrievalFilterMemberNotEquals{Value: a}, nil
	case assay.OpGreaterThan:
		return &types.RetrievalFilterMemberGreaterThan{Value: a}, nil
	case assay.OpGreaterThanOrEquals:
		return &types.RetrievalFilterMemberGreaterThanOrEquals{Value: a}, nil
	case assay.OpLessThan:
		return &types.RetrievalFilterMemberLessThan{Value: a}, nil
	case assay.OpLessThanOrEquals:
		return &types.RetrievalFilterMemberLessThanOrEquals{Value: a}, nil
	case assay.OpIn:
		return &types.RetrievalFilterMemberIn{Value: a}, nil
	case assay.OpNotIn:
		return &types.RetrievalFilterMemberNotIn{Value: a}, nil
	case assay.OpStartsWith:
		return &types.RetrievalFilterMemberStartsWith{Value: a}, nil
	case assay.OpStringContains:
		return &types.RetrievalFilterMemberStringContains{Value: a}, nil
	case assay.OpListContains:
		return &types.RetrievalFilterMemberListContains{Value: a}, nil
	}
	return nil, fmt.Errorf("filter operator %q: not supported by Bedrock knowledge bases: %w", f.Op, assay.ErrInvalid)
}

// value returns the value of a comparison in Bedrock's form.
func (c *filterer) value(f assay.Filter) (any, error) {
	v := f.Value
	switch {
	case v.Kind == assay.KindString:
		return v.String, nil
	case v.Kind == assay.KindNumber:
		return v.Number, nil
	case v.Kind == assay.KindBoolean:
		return v.Boolean, nil
	case v.Kind == assay.KindTime && slices.Contains(c.epochs, f.Key):
		return v.Time.Unix(), nil
	case v.Kind == assay.KindTime:
		return nil, fmt.Errorf("filter %s on key %q compares a time, which Bedrock knowledge bases do not support; if the key's numbers are seconds since 1970, add it to epoch_keys: %w", f.Op, f.Key, assay.ErrInvalid)
	case v.Kind == assay.KindList && (f.Op == assay.OpIn || f.Op == assay.OpNotIn) && len(v.List) > 0:
		return v.List, nil
	case v.Kind == assay.KindList && (f.Op == assay.OpIn || f.Op == assay.OpNotIn):
		return nil, fmt.Errorf("filter %s on key %q has an empty list, which Bedrock knowledge bases reject: %w", f.Op, f.Key, assay.ErrInvalid)
	}
	return nil, fmt.Errorf("filter %s on key %q compares a %s, which Bedrock knowledge bases do not support: %w", f.Op, f.Key, v.Kind, assay.ErrInvalid)
}
