package assay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// filterComparison is the operand of a comparison in JSON.
type filterComparison struct {
	Key   string `json:"key"`
	Value Value  `json:"value"`
}

// MarshalJSON writes f as an object with its operator as the only field, as in {"equals": {"key":
// "team", "value": "legal"}}, {"andAll": [...]} and {"not": {...}}. The zero Filter is {}. A filter
// that Check(nil) refuses is ErrInvalid.
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

// UnmarshalJSON reads the form that MarshalJSON writes, and null as the zero Filter. The list of in
// and notIn may also hold numbers, booleans and times: it becomes an orAll of equals, inside a not
// for notIn. Anything else is ErrInvalid, including an unknown operator or field. The error names
// it.
func (f *Filter) UnmarshalJSON(data []byte) error {
	if len(data) > maxFilterBytes {
		return fmt.Errorf("filter has %d bytes, at most %d are read: %w", len(data), maxFilterBytes, ErrInvalid)
	}
	if s := bytes.TrimSpace(data); string(s) == "null" || string(bytes.Join(bytes.Fields(s), nil)) == "{}" {
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
	fields, err := objectFields(data)
	if err != nil {
		return Filter{}, fmt.Errorf("filter %s: %w", excerpt(string(data)), err)
	}
	if len(fields) != 1 {
		names := make([]string, len(fields))
		for i, field := range fields {
			names[i] = field.name
		}
		return Filter{}, fmt.Errorf("filter has the operators %q, want exactly one: %w", names, ErrInvalid)
	}
	op, operand := FilterOp(fields[0].name), fields[0].value
	switch op {
	case OpAndAll, OpOrAll:
		return readParts(op, operand, depth)
	case OpNot:
		sub, err := readFilter(operand, depth+1)
		return Filter{Op: OpNot, Filters: []Filter{sub}}, err
	}
	if _, _, ok := op.operands(); !ok {
		return Filter{}, fmt.Errorf("filter operator %q does not exist: %w", string(op), ErrInvalid)
	}
	return readComparison(op, operand)
}

func readParts(op FilterOp, data []byte, depth int) (Filter, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
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
}

func readComparison(op FilterOp, data []byte) (Filter, error) {
	fields, err := objectFields(data)
	if err != nil {
		return Filter{}, fmt.Errorf("filter %s: %w", op, err)
	}
	operand := make(map[string]json.RawMessage)
	for _, field := range fields {
		if field.name != "key" && field.name != "value" {
			return Filter{}, fmt.Errorf("filter %s has the field %q, want \"key\" and \"value\": %w", op, field.name, ErrInvalid)
		}
		operand[field.name] = field.value
	}
	if len(fields) != 2 || len(operand) != 2 {
		return Filter{}, fmt.Errorf("filter %s: want \"key\" and \"value\", once each: %w", op, ErrInvalid)
	}
	f := Filter{Op: op}
	if err := json.Unmarshal(operand["key"], &f.Key); err != nil {
		return Filter{}, fmt.Errorf("filter %s: key: %w: %w", op, ErrInvalid, err)
	}
	if op == OpIn || op == OpNotIn {
		var list []Value
		if err := json.Unmarshal(operand["value"], &list); err != nil {
			return Filter{}, fmt.Errorf("filter %s on key %q: want a list: %w: %w", op, f.Key, ErrInvalid, err)
		}
		if list == nil { // null
			return Filter{}, fmt.Errorf("filter %s on key %q: want a list: %w", op, f.Key, ErrInvalid)
		}
		return memberOf(f.Key, list, op == OpNotIn), nil
	}
	if err := f.Value.UnmarshalJSON(operand["value"]); err != nil {
		return Filter{}, fmt.Errorf("filter %s on key %q: %w", op, f.Key, err)
	}
	return f.dated(), nil
}

// A jsonField is one field of an object, undecoded.
type jsonField struct {
	name  string
	value json.RawMessage
}

// objectFields returns the fields of an object in their order, including fields with the same name.
// Decoding into a struct or map would hide those.
func objectFields(data []byte) ([]jsonField, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("want an object: %w", ErrInvalid)
	}
	var fields []jsonField
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		fields = append(fields, jsonField{name.(string), value}) // a key is a string, or Token fails
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("the object does not end: %w: %w", ErrInvalid, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something comes after the object: %w", ErrInvalid)
	}
	return fields, nil
}

// memberOf returns the filter that keeps documents whose value for key is among values or, if not
// is true, is not among them.
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

// excerpt shortens the input that a message quotes.
func excerpt(s string) string {
	const most = 40
	for i := range s {
		if i > most {
			return s[:i] + "…"
		}
	}
	return s
}
