package vertex

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// Filters of Vertex AI Search are expressions of conditions on strings (key: ANY("a", "b")), numbers
// and times (key >= 1), with AND, OR, NOT and parentheses. startsWith, stringContains, and comparisons
// of booleans and lists are assay.ErrInvalid. None is weakened.

// key matches the names of keys, and paths of nested ones.
var key = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]{0,127}(\.[A-Za-z_][A-Za-z0-9_-]{0,127})*$`)

func checkFilter(f assay.Filter) error {
	_, err := compile(f)
	return err
}

// compile returns f as an expression; "" for the zero Filter.
func compile(f assay.Filter) (string, error) {
	if err := f.Check(nil); err != nil || f.IsZero() {
		return "", err
	}
	return expression(f)
}

func expression(f assay.Filter) (string, error) {
	switch f.Op {
	case assay.OpAndAll, assay.OpOrAll:
		word := map[assay.FilterOp]string{assay.OpAndAll: " AND ", assay.OpOrAll: " OR "}[f.Op]
		parts := make([]string, len(f.Filters))
		for i, part := range f.Filters {
			text, err := expression(part)
			if err != nil {
				return "", err
			}
			parts[i] = text
		}
		return "(" + strings.Join(parts, word) + ")", nil
	case assay.OpNot:
		text, err := expression(f.Filters[0])
		return "NOT (" + text + ")", err
	}
	if !key.MatchString(f.Key) {
		return "", fmt.Errorf("filter key %q is not the name of a key of Vertex AI Search: %w", f.Key, assay.ErrInvalid)
	}
	return condition(f)
}

// comparisons maps operators to those of numbers and times.
var comparisons = map[assay.FilterOp]string{
	assay.OpEquals: "=", assay.OpNotEquals: "=", assay.OpGreaterThan: ">", assay.OpGreaterThanOrEquals: ">=",
	assay.OpLessThan: "<", assay.OpLessThanOrEquals: "<=",
}

// condition returns the condition of one comparison.
func condition(f assay.Filter) (string, error) {
	v, text := f.Value, ""
	op, compares := comparisons[f.Op]
	switch {
	case f.Op == assay.OpStartsWith || f.Op == assay.OpStringContains:
		return "", fmt.Errorf("filter %s on key %q: Vertex AI Search does not support it: %w", f.Op, f.Key, assay.ErrInvalid)
	case (f.Op == assay.OpIn || f.Op == assay.OpNotIn) && len(v.List) > 0:
		text = f.Key + ": ANY(" + literals(v.List) + ")"
	case v.Kind == assay.KindString:
		text = f.Key + ": ANY(" + literals([]string{v.String}) + ")"
	case compares && v.Kind == assay.KindNumber:
		text = f.Key + " " + op + " " + strconv.FormatFloat(v.Number, 'f', -1, 64)
	case compares && v.Kind == assay.KindTime:
		text = f.Key + " " + op + ` "` + v.Time.UTC().Format(time.RFC3339Nano) + `"`
	default:
		return "", fmt.Errorf("filter %s on key %q compares with %q, a %s, which Vertex AI Search does not support: %w", f.Op, f.Key, v.Text(), v.Kind, assay.ErrInvalid)
	}
	if f.Op == assay.OpNotEquals || f.Op == assay.OpNotIn {
		text = "NOT " + text
	}
	return text, nil
}

// literals returns strings as quoted literals.
func literals(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(v) + `"`
	}
	return strings.Join(quoted, ", ")
}
