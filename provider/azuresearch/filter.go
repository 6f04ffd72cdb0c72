package azuresearch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// Filters are compiled to OData. Azure AI Search has no operators for startsWith and stringContains:
// search.ismatch matches analysed words, not bytes. They are assay.ErrInvalid, as is every filter that
// OData cannot express; none is weakened. null compares like a missing key: only ne and not hold.
//
// Source: Microsoft, "OData $filter syntax in Azure AI Search", "OData search.in function" and "OData
// collection operators".

// fieldName matches the names of fields, and paths to those of complex types.
var fieldName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_]{0,127}(/[A-Za-z][A-Za-z0-9_]{0,127})*$`)

// maxFilter is the largest expression in bytes. The service limits a request to 16 MB.
const maxFilter = 1 << 20

func (r *Retriever) check(f assay.Filter) error {
	_, err := r.compile(f)
	return err
}

// compile returns f as OData; "" for the zero Filter.
func (r *Retriever) compile(f assay.Filter) (string, error) {
	if err := f.Check(nil); err != nil || f.IsZero() {
		return "", err
	}
	text, err := r.expression(f)
	if err == nil && len(text) > maxFilter {
		return "", fmt.Errorf("filter has over %d bytes as OData: %w", maxFilter, assay.ErrInvalid)
	}
	return text, err
}

func (r *Retriever) expression(f assay.Filter) (string, error) {
	switch f.Op {
	case assay.OpAndAll, assay.OpOrAll:
		word := map[assay.FilterOp]string{assay.OpAndAll: " and ", assay.OpOrAll: " or "}[f.Op]
		parts := make([]string, len(f.Filters))
		for i, part := range f.Filters {
			text, err := r.expression(part)
			if err != nil {
				return "", err
			}
			parts[i] = text
		}
		return "(" + strings.Join(parts, word) + ")", nil
	case assay.OpNot:
		text, err := r.expression(f.Filters[0])
		return "not (" + text + ")", err
	}
	if !fieldName.MatchString(f.Key) {
		return "", fmt.Errorf("filter key %q is not the name of a field of Azure AI Search: %w", f.Key, assay.ErrInvalid)
	}
	return r.comparison(f)
}

// comparisons maps operators to those of OData.
var comparisons = map[assay.FilterOp]string{
	assay.OpEquals: "eq", assay.OpNotEquals: "ne", assay.OpGreaterThan: "gt", assay.OpGreaterThanOrEquals: "ge",
	assay.OpLessThan: "lt", assay.OpLessThanOrEquals: "le",
}

func (r *Retriever) comparison(f assay.Filter) (string, error) {
	list := r.isList(f.Key)
	switch f.Op {
	case assay.OpListContains:
		if list {
			return f.Key + "/any(x: x eq " + quoted(f.Value.String) + ")", nil
		}
		return f.Key + " eq " + quoted(f.Value.String), nil
	case assay.OpIn, assay.OpNotIn:
		text, err := oneOf(f, list)
		if err == nil && f.Op == assay.OpNotIn {
			text = "not (" + text + ")"
		}
		return text, err
	}
	op, ok := comparisons[f.Op]
	if !ok {
		return "", fmt.Errorf("filter %s on key %q: Azure AI Search does not support it: %w", f.Op, f.Key, assay.ErrInvalid)
	}
	if list {
		return "", fmt.Errorf("filter %s on key %q, which holds lists: Azure AI Search compares no lists: %w", f.Op, f.Key, assay.ErrInvalid)
	}
	value, err := literal(f)
	return f.Key + " " + op + " " + value, err
}

// isList reports whether a field holds lists of strings.
func (r *Retriever) isList(key string) bool {
	s := r.config.Sharing
	return key != "" && (slices.Contains(r.config.Fields.Lists, key) || key == s.UsersKey || key == s.GroupsKey || key == s.ACLKey)
}

// oneOf returns the condition that a field has one of the values of f.
func oneOf(f assay.Filter, list bool) (string, error) {
	if len(f.Value.List) == 0 {
		return "false", nil
	}
	delimiter, ok := unused(f.Value.List)
	if !ok {
		return "", fmt.Errorf("filter %s on key %q has values with all of the delimiters of search.in: %w", f.Op, f.Key, assay.ErrInvalid)
	}
	values := quoted(strings.Join(f.Value.List, delimiter)) + ", " + quoted(delimiter)
	if list {
		return f.Key + "/any(x: search.in(x, " + values + "))", nil
	}
	return "search.in(" + f.Key + ", " + values + ")", nil
}

// unused returns a delimiter that occurs in none of the values.
func unused(values []string) (string, bool) {
	for _, d := range []string{"|", ";", ",", "~", "^", "\t"} {
		if !slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, d) }) {
			return d, true
		}
	}
	return "", false
}

// literal returns the value of a comparison.
func literal(f assay.Filter) (string, error) {
	switch v := f.Value; v.Kind {
	case assay.KindString:
		return quoted(v.String), nil
	case assay.KindNumber:
		return strconv.FormatFloat(v.Number, 'f', -1, 64), nil
	case assay.KindBoolean:
		return strconv.FormatBool(v.Boolean), nil
	case assay.KindTime:
		return v.Time.UTC().Format(time.RFC3339Nano), nil
	}
	return "", fmt.Errorf("filter %s on key %q compares a %s, which Azure AI Search does not support: %w", f.Op, f.Key, f.Value.Kind, assay.ErrInvalid)
}

// quoted returns a string as a literal, in which a quote is doubled.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// keysOf returns the keys of a filter.
func keysOf(f assay.Filter) []string {
	var keys []string
	if f.Key != "" {
		keys = append(keys, f.Key)
	}
	for _, part := range f.Filters {
		keys = append(keys, keysOf(part)...)
	}
	return keys
}

// joined returns distinct names, sorted and joined by commas.
func joined(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}
