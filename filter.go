package assay

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A FilterOp is the operator of a Filter.
type FilterOp string

// The operators of a filter. The names are those of its JSON form.
const (
	OpEquals              FilterOp = "equals"
	OpNotEquals           FilterOp = "notEquals"
	OpGreaterThan         FilterOp = "greaterThan"
	OpGreaterThanOrEquals FilterOp = "greaterThanOrEquals"
	OpLessThan            FilterOp = "lessThan"
	OpLessThanOrEquals    FilterOp = "lessThanOrEquals"
	OpIn                  FilterOp = "in"
	OpNotIn               FilterOp = "notIn"
	OpStartsWith          FilterOp = "startsWith"
	OpStringContains      FilterOp = "stringContains"
	OpListContains        FilterOp = "listContains"
	OpAndAll              FilterOp = "andAll"
	OpOrAll               FilterOp = "orAll"
	OpNot                 FilterOp = "not"
)

// A Filter keeps the documents whose metadata it matches. The zero Filter keeps everything.
//
// A comparison holds for a document if the value of Key has the right kind and compares as the
// operator requires:
//
//	equals                          the same kind and value, or a time and a string with its date
//	greaterThan, lessThan, …        numbers, or times and strings that are dates, by their order
//	in                              a string that is in Value, or a list with a member that is
//	startsWith                      a string that starts with Value
//	stringContains                  a string that contains Value, or a list with a member that does
//	listContains                    a list with the member Value, or the string Value itself
//
// If the key is missing or its value has another kind, a comparison does not hold. The operators
// notEquals and notIn hold exactly if equals and in do not, so they hold for a missing key too.
// Strings compare byte by byte, case included.
//
// The JSON form is the filter grammar of Bedrock knowledge bases plus "not". ParseFilter and String
// use a form for people.
type Filter struct {
	Op      FilterOp
	Key     string   // of comparisons
	Value   Value    // of comparisons; for in and notIn a list
	Filters []Filter // of andAll, orAll (one or more) and not (exactly one)
}

// Limits of an accepted filter. They are far above the filters that people write and keep a hostile
// one cheap.
const (
	maxFilterDepth   = 32      // nesting of operators
	maxFilterNodes   = 1_000   // operators in total
	maxFilterMembers = 10_000  // list members in total
	maxFilterBytes   = 1 << 20 // of its text or JSON form
)

// And returns a filter that keeps the documents that all of the filters keep. Zero filters are
// skipped.
func And(filters ...Filter) Filter {
	var parts []Filter
	for _, f := range filters {
		if !f.IsZero() {
			parts = append(parts, f)
		}
	}
	switch len(parts) {
	case 0:
		return Filter{}
	case 1:
		return parts[0]
	}
	return Filter{Op: OpAndAll, Filters: parts}
}

// IsZero reports whether f is the zero Filter.
func (f Filter) IsZero() bool {
	return f.Op == "" && f.Key == "" && f.Value.Kind == "" && f.Filters == nil
}

// Match reports whether f keeps a document with this metadata. The result is undefined for a filter
// that Check refuses.
func (f Filter) Match(m Metadata) bool {
	switch f.Op {
	case "":
		return true
	case OpAndAll:
		for _, part := range f.Filters {
			if !part.Match(m) {
				return false
			}
		}
		return true
	case OpOrAll:
		for _, part := range f.Filters {
			if part.Match(m) {
				return true
			}
		}
		return false
	case OpNot:
		return len(f.Filters) == 1 && !f.Filters[0].Match(m)
	}
	v, ok := m[f.Key]
	return f.Holds(v, ok)
}

// Holds reports whether the comparison f holds for a document whose value for f.Key is v. If
// present is false, the document has no such key.
func (f Filter) Holds(v Value, present bool) bool {
	switch f.Op {
	case OpNotEquals:
		return !present || !v.sameAs(f.Value)
	case OpNotIn:
		return !present || !v.isIn(f.Value.List)
	}
	if !present {
		return false
	}
	switch f.Op {
	case OpEquals:
		return v.sameAs(f.Value)
	case OpGreaterThan:
		n, ok := v.compare(f.Value)
		return ok && n > 0
	case OpGreaterThanOrEquals:
		n, ok := v.compare(f.Value)
		return ok && n >= 0
	case OpLessThan:
		n, ok := v.compare(f.Value)
		return ok && n < 0
	case OpLessThanOrEquals:
		n, ok := v.compare(f.Value)
		return ok && n <= 0
	case OpIn:
		return v.isIn(f.Value.List)
	case OpStartsWith:
		return v.Kind == KindString && strings.HasPrefix(v.String, f.Value.String)
	case OpStringContains:
		return slices.ContainsFunc(v.members(), func(s string) bool { return strings.Contains(s, f.Value.String) })
	case OpListContains:
		return slices.Contains(v.members(), f.Value.String)
	}
	return false
}

// members returns the members of a list, or a string as its only member.
func (v Value) members() []string {
	switch v.Kind {
	case KindList:
		return v.List
	case KindString:
		return []string{v.String}
	}
	return nil
}

func (v Value) isIn(list []string) bool {
	return slices.ContainsFunc(v.members(), func(s string) bool { return slices.Contains(list, s) })
}

// compare orders v and w, which are two numbers, or times and dates. ok is false for anything else.
func (v Value) compare(w Value) (order int, ok bool) {
	if w.Kind == KindTime {
		t, ok := v.when()
		return t.Compare(w.Time), ok
	}
	switch {
	case v.Kind != w.Kind:
		return 0, false
	case v.Kind == KindNumber && v.Number < w.Number:
		return -1, true
	case v.Kind == KindNumber && v.Number > w.Number:
		return 1, true
	}
	return 0, v.Kind == KindNumber
}

// operands returns the kinds of Value that an operator accepts and the kinds of key that it can
// hold for. nil keys are the same kinds as values.
func (op FilterOp) operands() (values, keys []ValueKind, ok bool) {
	switch op {
	case OpEquals, OpNotEquals:
		return []ValueKind{KindString, KindNumber, KindBoolean, KindTime, KindList}, nil, true
	case OpGreaterThan, OpGreaterThanOrEquals, OpLessThan, OpLessThanOrEquals:
		return []ValueKind{KindNumber, KindTime}, nil, true
	case OpIn, OpNotIn:
		return []ValueKind{KindList}, []ValueKind{KindString, KindList}, true
	case OpStartsWith:
		return []ValueKind{KindString}, nil, true
	case OpStringContains, OpListContains:
		return []ValueKind{KindString}, []ValueKind{KindString, KindList}, true
	}
	return nil, nil, false
}

// Check reports an invalid filter as ErrInvalid: an unknown or incomplete operator, a filter above
// the limits, or a comparison that can hold for no document. kinds returns the kinds of value that
// a key has in the documents, none for a key that no document has. A nil kinds skips the last
// check.
func (f Filter) Check(kinds func(key string) []ValueKind) error {
	if f.IsZero() {
		return nil
	}
	nodes, members := 0, 0
	var check func(f Filter, depth int) error
	check = func(f Filter, depth int) error {
		nodes++
		members += len(f.Value.List)
		if depth > maxFilterDepth || nodes > maxFilterNodes || members > maxFilterMembers {
			return fmt.Errorf("filter has over %d operators, %d inside each other or %d list members: %w", maxFilterNodes, maxFilterDepth, maxFilterMembers, ErrInvalid)
		}
		switch f.Op {
		case OpAndAll, OpOrAll, OpNot:
			if err := f.checkParts(); err != nil {
				return err
			}
			for _, part := range f.Filters {
				if err := check(part, depth+1); err != nil {
					return err
				}
			}
			return nil
		}
		if err := f.checkComparison(); err != nil || kinds == nil {
			return err
		}
		return f.checkKey(kinds(f.Key))
	}
	return check(f, 1)
}

// dated returns f with a date string converted to a time, if f compares by order.
func (f Filter) dated() Filter {
	switch f.Op {
	case OpGreaterThan, OpGreaterThanOrEquals, OpLessThan, OpLessThanOrEquals:
		if t, ok := f.Value.when(); ok {
			f.Value = TimeValue(t)
		}
	}
	return f
}

func (f Filter) checkParts() error {
	switch {
	case f.Op == OpNot && len(f.Filters) != 1:
		return fmt.Errorf("filter not has %d filters, want exactly one: %w", len(f.Filters), ErrInvalid)
	case len(f.Filters) == 0:
		return fmt.Errorf("filter %s has no filters: %w", f.Op, ErrInvalid)
	case f.Key != "" || f.Value.Kind != "":
		return fmt.Errorf("filter %s has a key or a value, which only comparisons have: %w", f.Op, ErrInvalid)
	}
	return nil
}

func (f Filter) checkComparison() error {
	values, _, ok := f.Op.operands()
	switch {
	case f.IsZero():
		return fmt.Errorf("filter is empty where an operator is wanted: %w", ErrInvalid)
	case !ok:
		return fmt.Errorf("filter operator %q does not exist: %w", f.Op, ErrInvalid)
	case f.Key == "":
		return fmt.Errorf("filter %s has no key: %w", f.Op, ErrInvalid)
	case len(f.Filters) > 0:
		return fmt.Errorf("filter %s on key %q has filters, which only andAll, orAll and not have: %w", f.Op, f.Key, ErrInvalid)
	case !slices.Contains(values, f.Value.Kind):
		return fmt.Errorf("filter %s on key %q has %s, want %s: %w", f.Op, f.Key, f.Value.Kind.indefinite(), kindList(values), ErrInvalid)
	case f.Value.Kind == KindNumber && (math.IsNaN(f.Value.Number) || math.IsInf(f.Value.Number, 0)):
		return fmt.Errorf("filter %s on key %q has the number %v: %w", f.Op, f.Key, f.Value.Number, ErrInvalid)
	case f.Value.Kind == KindTime && (f.Value.Time.UTC().Year() < 0 || f.Value.Time.UTC().Year() > 9999):
		return fmt.Errorf("filter %s on key %q has a time outside the years 0 to 9999: %w", f.Op, f.Key, ErrInvalid)
	}
	return nil
}

// checkKey checks that f can hold for a key whose values have the kinds in has.
func (f Filter) checkKey(has []ValueKind) error {
	if len(has) == 0 {
		return fmt.Errorf("filter key %q, compared with %s, is a key of no document: %w", f.Key, f.Value.Kind.indefinite(), ErrInvalid)
	}
	_, keys, _ := f.Op.operands()
	if keys == nil {
		keys = []ValueKind{f.Value.Kind}
		if _, isDate := f.Value.when(); isDate {
			keys = []ValueKind{KindTime, KindString}
		}
	}
	for _, k := range keys {
		if slices.Contains(has, k) {
			return nil
		}
	}
	return fmt.Errorf("filter key %q is %s, but %s compares it with %s: %w", f.Key, kindList(has), f.Op, f.Value.Kind.indefinite(), ErrInvalid)
}

// indefinite returns the kind with its article, for a message: "a string".
func (k ValueKind) indefinite() string {
	if k == "" {
		return "no value"
	}
	return "a " + string(k)
}

// kindList joins kinds for a message: "a string or a list".
func kindList(kinds []ValueKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.indefinite()
	}
	return strings.Join(names, " or ")
}
