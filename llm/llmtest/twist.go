package llmtest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// marshal returns the JSON of a value that has one.
func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // what was decoded from JSON, with JSON put in
	}
	return string(data)
}

// marshalInner returns a text as it stands within a JSON string.
func marshalInner(text string) string { return strings.Trim(marshal(text), `"`) }

// values returns what replaces the values of a JSON document that are no object, the
// innermost first; a text that is none is left as it is.
func values(replace func(any) any) func(string) string {
	return func(text string) string {
		var doc any
		if json.Unmarshal([]byte(text), &doc) != nil {
			return text
		}
		return marshal(within(doc, replace))
	}
}

func within(doc any, replace func(any) any) any {
	switch v := doc.(type) {
	case map[string]any:
		for k, inner := range v {
			v[k] = within(inner, replace)
		}
		return v
	case []any:
		for i, inner := range v {
			v[i] = within(inner, replace)
		}
	}
	return replace(doc)
}

// object returns what changes a JSON object; a text that is none is left as it is.
func object(change func(map[string]any)) func(string) string {
	return func(text string) string {
		var doc map[string]any
		if json.Unmarshal([]byte(text), &doc) != nil || doc == nil {
			return text
		}
		change(doc)
		return marshal(doc)
	}
}

// otherType returns a value of another type.
func otherType(v any) any {
	switch v := v.(type) {
	case string:
		return map[string]any{"value": v}
	case float64:
		return "about " + strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return 1
	}
	return "none"
}

func replaceText(text string) func(any) any {
	return func(v any) any {
		if _, ok := v.(string); ok {
			return text
		}
		return v
	}
}

func replaceNumber(n float64) func(any) any {
	return func(v any) any {
		if _, ok := v.(float64); ok {
			return n
		}
		return v
	}
}

// leaveOut drops the first field.
func leaveOut(m map[string]any) {
	if keys := slices.Sorted(maps.Keys(m)); len(keys) > 0 {
		delete(m, keys[0])
	}
}

// capitals writes the names of the fields in capitals.
func capitals(m map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		v := m[k]
		delete(m, k)
		m[strings.ToUpper(k)] = v
	}
}
