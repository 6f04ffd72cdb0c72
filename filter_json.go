package assay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// filterComparison is the operand of a comparison in JSON.
type filterComparison struct {
	Key   string `json:"key"`
	Value Value  `json:"value"`
}

// MarshalJSON writes f as an object with its operator as the one field, as in
// {"equals": {"key": "team", "value": "legal"}}, {"andAll": [...]} and
// {"not": {...}}; the zero Filter is {}. A filter that Check(nil) refuses is
// ErrInvalid.
func (f Filter) MarshalJSON() ([]byte, error) {
	if err := f.Check(nil); err != nil {
		return nil, err
	}
	return json.Marshal(f.plain())
}

// plain returns f in the shape of its JSON form.
func (f Filter) plain() map[FilterOp]any {
	switch f.Op {
	case "":
		return map[FilterOp]any{}
	case OpNot:
		return map[FilterOp]any{OpNot: f.Filters[0].plain()}
	case OpAndAll, OpOrAll:
		parts := make([]any, len(f.Filters))
		for i, part := range f.Filters {
			parts[i] = part.plain()
		}
		return map[FilterOp]any{f.Op: parts}
	}
	return map[FilterOp]any{f.Op: filterComparison{f.Key, f.Value}}
}

// UnmarshalJSON reads what MarshalJSON writes, and null as the zero Filter. The
// list of in and notIn may also hold numbers, booleans and times: it becomes an
// orAll of equals, for notIn inside a not. Anything else, an operator or field
// that does not exist included, is ErrInvalid and is named.
func (f *Filter) UnmarshalJSON(data []byte) error {
	if len(data) > maxFilterBytes {
		return fmt.Errorf("filter has %d bytes, at most %d are read: %w", len(data), maxFilterBytes, ErrInvalid)
	}
	if s := bytes.TrimSpace(data); string(s) == "null" {
		*f = Filter{}
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("filter: %w: %w", ErrInvalid, err)
	}
	if len(fields) == 0 {
		*f = Filter{}
		return nil
	}
	read, err := readFilter(data, 1)
	if err != nil {
		return err
	}
	if err := read.Check(nil); err != nil {
		return err
	}
	*f = read
	return nil
}

func readFilter(data []byte, depth int) (Filter, error) {
	if depth > maxFilterDepth {
		return Filter{}, fmt.Errorf("filter has over %d operators inside each other: %w", maxFilterDepth, ErrInvalid)
	}
	var fields map[FilterOp]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return Filter{}, fmt.Errorf("filter %s: want an object: %w: %w", excerpt(string(data)), ErrInvalid, err)
	}
	if len(fields) != 1 {
		return Filter{}, fmt.Errorf("filter has the operators %q, want exactly one: %w", slices.Sorted(maps.Keys(fields)), ErrInvalid)
	}
	for op, operand := range fields {
		switch op {
		case OpAndAll, OpOrAll:
			var parts []json.RawMessage
			if err := json.Unmarshal(operand, &parts); err != nil {
				return Filter{}, fmt.Errorf("filter %s: want a list of filters: %w: %w", op, ErrInvalid, err)
			}
			f := Filter{Op: op}
			for _, part := range parts {
				sub, err := readFilter(part, depth+1)
				if err != nil {
					return Filter{}, err
				}
				f.Filters = append(f.Filters, sub)
			}
			return f, nil
		case OpNot:
			sub, err := readFilter(operand, depth+1)
			return Filter{Op: OpNot, Filters: []Filter{sub}}, err
		}
		if _, _, ok := op.operands(); !ok {
			return Filter{}, fmt.Errorf("filter operator %q does not exist: %w", string(op), ErrInvalid)
		}
		return readComparison(op, operand)
	}
	panic("unreachable: one field was counted")
}

func readComparison(op FilterOp, data []byte) (Filter, error) {
	var operand struct {
		Key   *string          `json:"key"`
		Value *json.RawMessage `json:"value"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&operand); err != nil {
		return Filter{}, fmt.Errorf("filter %s: %w: %w", op, ErrInvalid, err)
	}
	if operand.Key == nil || operand.Value == nil {
		return Filter{}, fmt.Errorf("filter %s: want \"key\" and \"value\": %w", op, ErrInvalid)
	}
	if op == OpIn || op == OpNotIn {
		var list []Value
		if err := json.Unmarshal(*operand.Value, &list); err != nil {
			return Filter{}, fmt.Errorf("filter %s on key %q: want a list: %w: %w", op, *operand.Key, ErrInvalid, err)
		}
		return memberOf(*operand.Key, list, op == OpNotIn), nil
	}
	f := Filter{Op: op, Key: *operand.Key}
	if err := json.Unmarshal(*operand.Value, &f.Value); err != nil {
		return Filter{}, fmt.Errorf("filter %s on key %q: %w", op, f.Key, err)
	}
	return f, nil
}

// memberOf returns the filter that keeps a key whose value is among these, or,
// when not is true, is not.
func memberOf(key string, values []Value, not bool) Filter {
	strings := make([]string, 0, len(values))
	parts := make([]Filter, 0, len(values))
	for _, v := range values {
		if v.Kind == KindString {
			strings = append(strings, v.String)
		}
		parts = append(parts, Filter{Op: OpEquals, Key: key, Value: v})
	}
	if len(strings) == len(values) {
		op := OpIn
		if not {
			op = OpNotIn
		}
		return Filter{Op: op, Key: key, Value: ListValue(strings...)}
	}
	one := Filter{Op: OpOrAll, Filters: parts}
	if len(parts) == 1 {
		one = parts[0]
	}
	if not {
		return Filter{Op: OpNot, Filters: []Filter{one}}
	}
	return one
}

// excerpt shortens what a message shows of its input.
func excerpt(s string) string {
	const most = 40
	for i := range s {
		if i > most {
			return s[:i] + "…"
		}
	}
	return s
}
