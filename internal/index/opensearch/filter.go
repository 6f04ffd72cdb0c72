package opensearch

import (
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
)

func termQuery(field string, value any) object { return object{"term": object{field: value}} }

func termsQuery[T any](field string, values []T) object {
	return object{"terms": object{field: values}}
}

// all returns a query for what all the queries find.
func all(queries ...object) object { return object{"bool": object{"filter": queries}} }

// any of the queries; there must be one.
func anyOf(queries ...object) object {
	return object{"bool": object{"should": queries, "minimum_should_match": 1}}
}

func not(q object) object { return object{"bool": object{"must_not": []object{q}}} }

// kept returns the filter of the rows that a query may find: those in scope that are in its
// collections and kept by its filter.
func kept(scope object, q assay.Query) (object, error) {
	filters := []object{scope}
	if len(q.Collections) > 0 {
		filters = append(filters, termsQuery("collection", keywords(q.Collections)))
	}
	if !q.Filter.IsZero() {
		f, err := filterQuery(q.Filter)
		if err != nil {
			return nil, err
		}
		filters = append(filters, f)
	}
	return all(filters...), nil
}

// restricted reports whether a query names collections or has a filter.
func restricted(q assay.Query) bool { return len(q.Collections) > 0 || !q.Filter.IsZero() }

// filterQuery returns the query of a filter that Filter.Check accepts.
func filterQuery(f assay.Filter) (object, error) {
	switch f.Op {
	case assay.OpAndAll, assay.OpOrAll, assay.OpNot:
		var parts []object
		for _, part := range f.Filters {
			q, err := filterQuery(part)
			if err != nil {
				return nil, err
			}
			parts = append(parts, q)
		}
		switch f.Op {
		case assay.OpAndAll:
			return all(parts...), nil
		case assay.OpOrAll:
			return anyOf(parts...), nil
		}
		return not(parts[0]), nil
	case assay.OpNotEquals:
		return not(metaKeyOf(f.Key).equals(f.Value)), nil
	case assay.OpNotIn:
		return not(metaKeyOf(f.Key).in(f.Value.List)), nil
	case assay.OpEquals:
		return metaKeyOf(f.Key).equals(f.Value), nil
	case assay.OpIn:
		return metaKeyOf(f.Key).in(f.Value.List), nil
	case assay.OpListContains:
		return metaKeyOf(f.Key).in([]string{f.Value.String}), nil
	case assay.OpStartsWith:
		return metaKeyOf(f.Key).startsWith(f.Value.String)
	case assay.OpStringContains:
		return metaKeyOf(f.Key).contains(f.Value.String)
	}
	return metaKeyOf(f.Key).ordered(f.Op, f.Value), nil
}

// equals returns the query for documents whose value equals v. A time equals a string with its date.
func (k metaKey) equals(v assay.Value) object {
	var tokens []string
	switch v.Kind {
	case assay.KindString:
		tokens = append(tokens, k.token(tokenWhole, digest(v.String)))
		if t, ok := assay.ParseDate(v.String); ok {
			tokens = append(tokens, k.token(tokenTime, orderedTime(t)))
		}
	case assay.KindTime:
		tokens = append(tokens, k.token(tokenTime, orderedTime(v.Time)), k.token(tokenDate, orderedTime(v.Time)))
	case assay.KindList:
		tokens = append(tokens, k.token(tokenList, digest(v.List...)))
	default:
		tokens = k.value(v)
	}
	return termsQuery("meta", tokens)
}

// in returns the query for documents with a string, or a member of a list, that is in the list.
func (k metaKey) in(list []string) object {
	tokens := make([]string, 0, 2*len(list))
	for _, s := range list {
		tokens = append(tokens, k.token(tokenWhole, digest(s)), k.token(tokenElement, digest(s)))
	}
	return termsQuery("meta", tokens)
}

func (k metaKey) startsWith(prefix string) (object, error) {
	if len(prefix) > maxToken {
		return nil, tooLong(assay.OpStartsWith, prefix, maxToken)
	}
	return object{"prefix": object{"meta": k.token(tokenString, latin(prefix))}}, nil
}

func (k metaKey) contains(part string) (object, error) {
	if len(part) > maxToken/2 {
		return nil, tooLong(assay.OpStringContains, part, maxToken/2)
	}
	pattern := "*" + strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`).Replace(latin(part)) + "*"
	var queries []object
	for _, prefix := range []string{tokenString, tokenWindow, tokenMember, tokenPart} {
		queries = append(queries, object{"wildcard": object{"meta": object{"value": k.token(prefix, pattern)}}})
	}
	return anyOf(queries...), nil
}

func tooLong(op assay.FilterOp, s string, most int) error {
	return fmt.Errorf("filter %s has a string of %d bytes, more than the %d that OpenSearch is asked for: %w", op, len(s), most, assay.ErrInvalid)
}

// ordered returns the query of a comparison by order, of numbers, or of times and dates.
func (k metaKey) ordered(op assay.FilterOp, v assay.Value) object {
	within := func(prefix, value string) object {
		bounds := object{}
		switch op {
		case assay.OpGreaterThan:
			bounds["gt"] = k.token(prefix, value)
		case assay.OpGreaterThanOrEquals:
			bounds["gte"] = k.token(prefix, value)
		case assay.OpLessThan:
			bounds["lt"] = k.token(prefix, value)
		default:
			bounds["lte"] = k.token(prefix, value)
		}
		if op == assay.OpGreaterThan || op == assay.OpGreaterThanOrEquals {
			bounds["lt"] = k.token(prefix, "g") // after all hexadecimal digits
		} else {
			bounds["gte"] = k.token(prefix, "")
		}
		return object{"range": object{"meta": bounds}}
	}
	if v.Kind == assay.KindNumber {
		return within(tokenNumber, orderedNumber(v.Number))
	}
	value := orderedTime(v.Time)
	return anyOf(within(tokenTime, value), within(tokenDate, value))
}
