package llmtest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// marshal returns the JSON of a value. It panics if there is none.
func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // v is decoded JSON or made of it
	}
	return string(data)
}

// marshalInner returns the JSON string of a text without its quotes.
func marshalInner(text string) string { return strings.Trim(marshal(text), `"`) }

// values returns a function that replaces the values of a JSON document other than objects,
// innermost first. It returns text that is not JSON unchanged.
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

// object returns a function that modifies a JSON object. It returns other text unchanged.
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

// otherType returns a value of a type different from v's.
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

// leaveOut removes the first field.
func leaveOut(m map[string]any) {
	if keys := slices.Sorted(maps.Keys(m)); len(keys) > 0 {
		delete(m, keys[0])
	}
}

// capitals converts the field names to upper case.
func capitals(m map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		v := m[k]
		delete(m, k)
		m[strings.ToUpper(k)] = v
	}
}
