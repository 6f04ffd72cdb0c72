package pgvector

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/assay-rag/assay"
)

// arguments are the parameters of a statement. Everything that comes from a query is one.
type arguments []any

// add adds a parameter and returns its name in the statement.
func (a *arguments) add(value any) string {
	*a = append(*a, value)
	return "$" + strconv.Itoa(len(*a))
}

// A scope is the set of chunks that a search may find: those of visible classes in the query's
// collections, whose documents the filter keeps.
type scope struct {
	classes []int32
	filter  assay.Filter // checked

	// documents are the numbers of the documents of the scope, if the caller sees few of all or a filter
	// keeps few; else nil. They let the planner begin with them.
	documents []int64
}

// maxDocuments is the largest number of scope.documents.
const maxDocuments = 5_000

// scope returns the scope of a query in the snapshot of tx. The filter must have passed
// checkFilter.
func (v *sight) scope(ctx context.Context, tx pgx.Tx, q assay.Query) (scope, error) {
	s := scope{classes: v.within(q.Collections), filter: q.Filter}
	if q.Filter.IsZero() && !v.few {
		return s, nil
	}
	var a arguments
	query := `SELECT d.no FROM document d WHERE ` + filterSQL(s.filter, &a)
	key := fmt.Sprintf("%s %q %q", query, a, q.Collections)
	v.mu.Lock()
	known, ok := v.kept[key]
	v.mu.Unlock()
	if ok {
		s.documents = known
		return s, nil
	}
	query += ` AND d.class = ANY(` + a.add(s.classes) + `::int[]) LIMIT ` + a.add(maxDocuments+1)
	rows, err := tx.Query(ctx, query, a...)
	if err != nil {
		return s, err
	}
	if s.documents, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return s, err
	}
	if len(s.documents) > maxDocuments {
		s.documents = nil
	} else if s.documents == nil {
		s.documents = []int64{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.kept) >= maxKept {
		clear(v.kept)
	}
	v.kept[key] = s.documents
	return s, nil
}

// where returns the condition that a row of the table chunk or passage, with the given alias, is in
// the scope. Every statement that reads such rows for a search has it, or whereVector.
func (s scope) where(alias string, a *arguments) string {
	condition := alias + `.class = ANY(` + a.add(s.classes) + `::int[])`
	switch {
	case s.documents != nil:
		return condition + ` AND ` + alias + `.document = ANY(` + a.add(s.documents) + `::bigint[])`
	case s.filter.IsZero():
		return condition
	}
	return condition + ` AND EXISTS (SELECT FROM document d WHERE d.no = ` + alias + `.document AND ` + filterSQL(s.filter, a) + `)`
}

// whereVector returns the condition that a row v of a table vector_NO is in the scope.
func (s scope) whereVector(a *arguments) string {
	if s.documents != nil {
		return `v.document = ANY(` + a.add(s.documents) + `::bigint[])`
	}
	return `EXISTS (SELECT FROM document d WHERE d.no = v.document AND d.class = ANY(` + a.add(s.classes) + `::int[]) AND ` + filterSQL(s.filter, a) + `)`
}

// filterSQL returns the condition that f.Match is true for the metadata of document d. It is never
// null.
func filterSQL(f assay.Filter, a *arguments) string {
	switch f.Op {
	case "":
		return "true"
	case assay.OpNot:
		return "NOT " + filterSQL(f.Filters[0], a)
	case assay.OpNotEquals:
		f.Op = assay.OpEquals
		return "NOT " + filterSQL(f, a)
	case assay.OpNotIn:
		f.Op = assay.OpIn
		return "NOT " + filterSQL(f, a)
	case assay.OpAndAll, assay.OpOrAll:
		parts := make([]string, len(f.Filters))
		for i, part := range f.Filters {
			parts[i] = filterSQL(part, a)
		}
		word := " AND "
		if f.Op == assay.OpOrAll {
			word = " OR "
		}
		return "(" + strings.Join(parts, word) + ")"
	}
	return comparisonSQL(f, a)
}

// orders are the SQL operators of comparisons by order.
var orders = map[assay.FilterOp]string{
	assay.OpGreaterThan: ">", assay.OpGreaterThanOrEquals: ">=", assay.OpLessThan: "<", assay.OpLessThanOrEquals: "<=",
}

// comparisonSQL returns the condition of a comparison other than notEquals and notIn.
func comparisonSQL(f assay.Filter, a *arguments) string {
	key := a.add(encode(f.Key)) + "::text"
	value := "(d.metadata -> " + key + ")"
	kind := "jsonb_typeof" + value
	time := "(d.times -> " + key + ")"
	text := "(d.metadata ->> " + key + ")"
	switch f.Op {
	case assay.OpEquals:
		return equalsSQL(f.Value, value, time, kind, a)
	case assay.OpGreaterThan, assay.OpGreaterThanOrEquals, assay.OpLessThan, assay.OpLessThanOrEquals:
		if f.Value.Kind == assay.KindTime {
			return fmt.Sprintf("coalesce(%s %s %s::jsonb, false)", time, orders[f.Op], a.add(string(nanoseconds(f.Value.Time))))
		}
		return fmt.Sprintf("CASE WHEN %s = 'number' THEN %s %s %s::jsonb ELSE false END", kind, value, orders[f.Op], a.add(jsonOf(f.Value)))
	case assay.OpIn:
		return fmt.Sprintf("CASE WHEN %s IN ('string', 'array') THEN %s ?| %s::text[] ELSE false END", kind, value, a.add(encodeAll(f.Value.List)))
	case assay.OpListContains:
		return fmt.Sprintf("CASE WHEN %s IN ('string', 'array') THEN %s ? %s::text ELSE false END", kind, value, a.add(encode(f.Value.String)))
	case assay.OpStartsWith:
		return fmt.Sprintf("CASE WHEN %s = 'string' THEN starts_with(%s, %s::text) ELSE false END", kind, text, a.add(encode(f.Value.String)))
	case assay.OpStringContains:
		part := a.add(encode(f.Value.String)) + "::text"
		return fmt.Sprintf(`CASE %[1]s WHEN 'string' THEN strpos(%[3]s, %[4]s) > 0
			WHEN 'array' THEN EXISTS (SELECT FROM jsonb_array_elements_text(%[2]s) AS member WHERE strpos(member, %[4]s) > 0) ELSE false END`,
			kind, value, text, part)
	}
	return "false" // an operator that Check rejects
}

// equalsSQL returns the condition that a value equals v.
func equalsSQL(v assay.Value, value, time, kind string, a *arguments) string {
	if v.Kind == assay.KindTime {
		return fmt.Sprintf("coalesce(%s = %s::jsonb, false)", time, a.add(string(nanoseconds(v.Time))))
	}
	same := fmt.Sprintf("coalesce(%s = %s::jsonb, false)", value, a.add(jsonOf(v)))
	date, ok := assay.ParseDate(v.String)
	if v.Kind != assay.KindString || !ok {
		return same
	}
	return fmt.Sprintf("(%s OR CASE WHEN %s = 'null' THEN %s = %s::jsonb ELSE false END)", same, kind, time, a.add(string(nanoseconds(date))))
}

// jsonOf returns the JSON of a value as in document.metadata.
func jsonOf(v assay.Value) string {
	var encoded any
	switch v.Kind {
	case assay.KindString:
		encoded = encode(v.String)
	case assay.KindNumber:
		encoded = v.Number
	case assay.KindBoolean:
		encoded = v.Boolean
	case assay.KindList:
		encoded = encodeAll(v.List)
	}
	data, err := json.Marshal(encoded)
	if err != nil {
		return "null" // a number that is not finite, which Check rejects
	}
	return string(data)
}
