// Package schema adapts JSON schemas to the subset that a provider supports, and describes them in
// words for models without schema support.
//
// It keeps the order of members, because models generate the members of an object in the order of
// its schema.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/assay-rag/assay/llm"
)

// A Dialect is the subset of JSON schema that a provider supports.
type Dialect struct {
	// Keep reports whether the provider supports a keyword with this value. Unsupported keywords
	// are moved to the description, as information for the model.
	Keep func(keyword string, value json.RawMessage) bool

	// Rename maps keywords to equivalents that the provider supports.
	Rename map[string]string

	// Closed requires objects with named members to forbid additional ones.
	Closed bool
}

// maxDepth is the deepest nesting of a schema. No provider supports deeper ones, and they could
// exhaust the stack.
const maxDepth = 64

// Fit returns the part of a schema that d supports.
func Fit(schema json.RawMessage, d Dialect) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	v, err := decode(dec, maxDepth)
	if err == nil && dec.More() {
		err = errors.New("there is data after it")
	}
	if err != nil {
		return nil, fmt.Errorf("JSON schema: %w", err)
	}
	return encode(d.fit(v)), nil
}

// InWords returns an instruction to reply with JSON that follows a schema.
func InWords(s llm.Schema) string {
	return "Reply with JSON alone, with no other text before or after it. It has to follow this JSON schema:\n" + string(s.Schema)
}

// An object is a JSON object with ordered members.
type object []member

type member struct {
	key   string
	value any // object, []any, or a value decoded by encoding/json
}

func decode(dec *json.Decoder, depth int) (any, error) {
	if depth == 0 {
		return nil, errors.New("it is nested too deeply")
	}
	token, err := dec.Token()
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		o := object{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			value, err := decode(dec, depth-1)
			if err != nil {
				return nil, err
			}
			o = append(o, member{fmt.Sprint(key), value})
		}
		_, err := dec.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			value, err := decode(dec, depth-1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := dec.Token()
		return list, err
	}
	return token, nil
}

func encode(v any) json.RawMessage {
	var b bytes.Buffer
	write(&b, v)
	return b.Bytes()
}

func write(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case object:
		b.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, m.key)
			b.WriteByte(':')
			write(b, m.value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, item)
		}
		b.WriteByte(']')
	default: // a decoder's token: it can be encoded
		raw, _ := json.Marshal(v)
		b.Write(raw)
	}
}

// fit returns the part of a subschema that d supports. A subschema may be true or false.
func (d Dialect) fit(v any) any {
	o, ok := v.(object)
	if !ok {
		return v
	}
	var kept object
	var told []string
	description := -1
	closed := d.Closed && slices.ContainsFunc(o, func(m member) bool { return m.key == "properties" })
	for _, m := range o {
		if to, ok := d.Rename[m.key]; ok {
			m.key = to
			if to == "enum" {
				m.value = []any{m.value}
			}
		}
		if !d.Keep(m.key, encode(m.value)) {
			if !strings.HasPrefix(m.key, "$") {
				told = append(told, m.key+": "+string(encode(m.value)))
			}
			continue
		}
		m.value = d.fitIn(m.key, m.value)
		if closed && m.key == "additionalProperties" {
			continue // set below
		}
		if m.key == "description" {
			description = len(kept)
		}
		kept = append(kept, m)
	}
	if closed {
		kept = append(kept, member{"additionalProperties", false})
	}
	if len(told) == 0 {
		return kept
	}
	note := "(" + strings.Join(told, "; ") + ")"
	if description < 0 {
		return append(kept, member{"description", note})
	}
	kept[description].value = strings.TrimSpace(fmt.Sprint(kept[description].value) + " " + note)
	return kept
}

// fitIn fits the subschemas in the value of a keyword.
func (d Dialect) fitIn(keyword string, value any) any {
	switch keyword {
	case "properties", "$defs", "definitions":
		if o, ok := value.(object); ok {
			fitted := make(object, len(o))
			for i, m := range o {
				fitted[i] = member{m.key, d.fit(m.value)}
			}
			return fitted
		}
	case "items", "additionalProperties":
		return d.fit(value)
	case "anyOf", "oneOf", "allOf", "prefixItems":
		if list, ok := value.([]any); ok {
			fitted := make([]any, len(list))
			for i, item := range list {
				fitted[i] = d.fit(item)
			}
			return fitted
		}
	}
	return value
}
