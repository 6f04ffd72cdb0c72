package openai

import (
	"bytes"
	"encoding/json"
	"slices"
)

// maxSchemaDepth is the maximum depth of a strict schema.
const maxSchemaDepth = 10

// decoration lists keywords that are not allowed in a strict schema. They can be dropped, because
// the caller validates the reply against the full schema.
var decoration = []string{
	"$schema", "$id", "$comment", "title", "default", "examples", "deprecated", "readOnly", "writeOnly",
	"minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties", "contentEncoding", "contentMediaType",
}

// strictKeywords lists the keywords allowed in a strict schema.
//
// Source: OpenAI, "Structured model outputs", section "Supported schemas".
var strictKeywords = []string{
	"type", "description", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "$defs", "definitions",
	"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
}

// strictSchema returns the strict form of a schema and true. OpenAI guarantees that a reply follows
// a strict schema. If there is no strict form, it returns the schema unchanged and false.
//
// A strict schema has only certain keywords, and its objects require all of their properties and
// allow no others. Keywords that only restrict values are dropped, and objects that do not mention
// additional properties are closed. A document that follows the strict schema can violate the
// original only in such values. An object with optional properties has no strict form that keeps
// them optional.
func strictSchema(schema json.RawMessage) (json.RawMessage, bool) {
	strict, ok := strictly(schema, 0)
	if !ok {
		return schema, false
	}
	var root struct {
		Type  string          `json:"type"`
		AnyOf json.RawMessage `json:"anyOf"`
	}
	if json.Unmarshal(strict, &root) != nil || root.Type != "object" || root.AnyOf != nil {
		return schema, false
	}
	return strict, true
}

// strictly returns the strict form of a subschema, if there is one.
func strictly(schema json.RawMessage, depth int) (json.RawMessage, bool) {
	fields, ok := members(schema)
	if !ok || depth > maxSchemaDepth {
		return nil, false
	}
	var properties, required []string
	isObject, closed := false, false
	kept := fields[:0]
	for _, f := range fields {
		if slices.Contains(decoration, f.name) {
			continue
		}
		if !slices.Contains(strictKeywords, f.name) {
			return nil, false
		}
		switch f.name {
		case "type":
			isObject = isObject || bytes.Contains(f.value, []byte(`"object"`))
		case "properties":
			isObject = true
			f.value, properties, ok = strictMembers(f.value, depth+1)
		case "$defs", "definitions":
			f.value, _, ok = strictMembers(f.value, depth)
		case "items":
			f.value, ok = strictly(f.value, depth+1)
		case "anyOf":
			f.value, ok = strictList(f.value, depth)
		case "required":
			ok = json.Unmarshal(f.value, &required) == nil
		case "additionalProperties":
			closed = true
			ok, f.value = isFalse(f.value), json.RawMessage("false")
		}
		if !ok {
			return nil, false
		}
		kept = append(kept, f)
	}
	if isObject {
		if !closed {
			kept = append(kept, member{"additionalProperties", json.RawMessage("false")})
		}
		for _, p := range properties {
			if !slices.Contains(required, p) {
				return nil, false
			}
		}
		if properties == nil { // any object
			return nil, false
		}
	}
	return object(kept), true
}

// isFalse reports whether a schema allows no value: false or {"not": {}}.
func isFalse(schema json.RawMessage) bool {
	var b bytes.Buffer
	return json.Compact(&b, schema) == nil && (b.String() == "false" || b.String() == `{"not":{}}`)
}

// strictMembers makes the subschemas in the members of an object strict, and returns the members'
// names.
func strictMembers(data json.RawMessage, depth int) (json.RawMessage, []string, bool) {
	fields, ok := members(data)
	if !ok {
		return nil, nil, false
	}
	names := []string{}
	for i, f := range fields {
		if fields[i].value, ok = strictly(f.value, depth); !ok {
			return nil, nil, false
		}
		names = append(names, f.name)
	}
	return object(fields), names, true
}

// strictList makes the subschemas of a list strict.
func strictList(data json.RawMessage, depth int) (json.RawMessage, bool) {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		return nil, false
	}
	for i := range list {
		var ok bool
		if list[i], ok = strictly(list[i], depth); !ok {
			return nil, false
		}
	}
	encoded, err := json.Marshal(list)
	return encoded, err == nil
}

// A member is a name and a value in a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of a JSON object in their order, which is the order in which a model
// generates them.
func members(data json.RawMessage) ([]member, bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var list []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		m := member{name: name.(string)} // the names of an object are strings
		if d.Decode(&m.value) != nil {
			return nil, false
		}
		list = append(list, m)
	}
	_, err := d.Token()
	return list, err == nil
}

// object returns a JSON object with the given members.
func object(list []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(m.name) // a string cannot fail
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}
