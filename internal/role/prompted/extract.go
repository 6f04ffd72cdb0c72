package prompted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/kaptinlin/jsonrepair"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// Limits of a reply.
const (
	maxReply   = 256 << 10 // bytes
	maxObjects = 32        // tried per reply
	maxNesting = 64        // depth of brackets; our own schemas have 4
)

// errNoObject means that a reply contains no JSON object.
var errNoObject = errors.New("there is no JSON object in it")

// extract returns the one JSON object in a reply that has the form of out: the reply itself, or the
// rest of it without a fence, surrounding prose and a model's thoughts. Text that is nearly JSON is
// repaired. Two different objects are an error: it is unknown which one is meant, and one may be
// copied from a document.
func extract(text string, out output) (json.RawMessage, error) {
	if len(text) > maxReply {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", len(text), maxReply)
	}
	text = withoutThoughts(text)
	var found json.RawMessage
	problem := errNoObject
	for _, piece := range objects(text) {
		raw, err := read(piece, out)
		switch {
		case err != nil:
			if found == nil {
				problem = err
			}
		case found != nil && !bytes.Equal(found, raw):
			return nil, errors.New("it has two different JSON objects; want exactly one")
		default:
			found = raw
		}
	}
	if found == nil {
		return nil, problem
	}
	return found, nil
}

// thought matches the tags around the thoughts that reasoning models put before their reply.
var thought = lazyregexp.New(`</?(?:think|thinking|reasoning)>`)

// withoutThoughts returns the text after a model's thoughts. Some servers omit the opening tag. If
// the thoughts do not end, the result is empty.
func withoutThoughts(text string) string {
	marks := thought.FindAllStringIndex(text, -1)
	for i := len(marks) - 1; i >= 0; i-- {
		switch at := marks[i]; {
		case text[at[0]+1] == '/':
			return text[at[1]:]
		case strings.TrimSpace(text[:at[0]]) == "":
			return ""
		}
	}
	return text
}

// objects returns the outermost pieces of a reply between matching braces. The last one may be
// unterminated.
func objects(text string) []string {
	var pieces []string
	for len(pieces) < maxObjects {
		start := strings.IndexByte(text, '{')
		if start < 0 {
			break
		}
		end := objectEnd(text[start:])
		pieces = append(pieces, text[start:start+end])
		text = text[start+end:]
	}
	return pieces
}

// objectEnd returns the end of the object that text begins with, ignoring braces in strings. It
// returns len(text) if the object does not end.
func objectEnd(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// read returns the canonical JSON of a piece that has, or can be coerced to, the form of out.
func read(piece string, out output) (json.RawMessage, error) {
	if nesting(piece) > maxNesting {
		return nil, fmt.Errorf("its brackets nest deeper than %d", maxNesting)
	}
	if !json.Valid([]byte(piece)) {
		repaired, err := repair(piece)
		if err != nil {
			return nil, fmt.Errorf("it is not valid JSON: %w", err)
		}
		piece = repaired
	}
	if err := checkKeys(piece); err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal([]byte(piece), &value); err != nil {
		return nil, fmt.Errorf("it is not valid JSON: %w", err)
	}
	value = coerce(value, out.tree)
	if err := mismatch("the reply", value, out.tree); err != nil {
		return nil, err
	}
	if err := out.held.Validate(value); err != nil {
		return nil, errors.New("it does not follow the schema")
	}
	return json.Marshal(value)
}

// mismatch returns an error that describes the first place, in the order of the schema's fields, at
// which value does not follow s. The text is deterministic, because it becomes part of a prompt.
func mismatch(at string, value any, s *jsonschema.Schema) error {
	switch s.Type {
	case "object":
		fields, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %s; want an object", at, kindOf(value))
		}
		for _, name := range s.PropertyOrder {
			v, there := fields[name]
			if !there {
				if slices.Contains(s.Required, name) {
					return fmt.Errorf("%s lacks the field %q", at, name)
				}
				continue
			}
			if err := mismatch(fmt.Sprintf("%q", name), v, s.Properties[name]); err != nil {
				return err
			}
		}
	case "array":
		list, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s is %s; want a list", at, kindOf(value))
		}
		for i, v := range list {
			if err := mismatch(fmt.Sprintf("entry %d of %s", i+1, at), v, s.Items); err != nil {
				return err
			}
		}
	case "string":
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("%s is %s; want text", at, kindOf(value))
		}
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, any(text)) {
			return fmt.Errorf("%s is %q; want one of %q", at, shorten(line(text), 60), s.Enum)
		}
	case "integer":
		if n, ok := value.(float64); !ok || n != math.Trunc(n) || math.Abs(n) > 1e9 {
			return fmt.Errorf("%s is %s; want a whole number", at, kindOf(value))
		}
	case "number":
		if _, ok := value.(float64); !ok {
			return fmt.Errorf("%s is %s; want a number", at, kindOf(value))
		}
	case "boolean":
		if _, ok := value.(bool); !ok {
			return fmt.Errorf("%s is %s; want true or false", at, kindOf(value))
		}
	}
	return nil
}

// kindOf describes the kind of a value.
func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("the text %q", shorten(line(v), 60))
	default:
		return fmt.Sprint(v)
	}
}

// nesting returns the maximum depth of brackets in a text, including those in strings. Parsers
// recurse once per level.
func nesting(text string) int {
	depth, most := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth = max(0, depth-1)
		}
	}
	return most
}

// repair turns text that is nearly JSON into JSON: wrong quotes, trailing commas, a missing
// bracket. The library is third-party and the text is untrusted, so a panic becomes an error.
func repair(text string) (repaired string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be repaired: %v", p)
		}
	}()
	repaired, err = jsonrepair.Repair(text)
	if err == nil && len(repaired) > 2*maxReply {
		err = errors.New("repairing it makes it longer")
	}
	return repaired, err
}

// checkKeys rejects an object with a duplicate field, since decoders would take the last one and
// hide the first.
func checkKeys(text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	type level struct {
		keys map[string]bool // nil: a list
		key  bool            // the next token is a key
	}
	var levels []level
	for {
		t, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is not valid JSON: %w", err)
		}
		if n := len(levels); n > 0 && levels[n-1].key {
			if name, ok := t.(string); ok {
				if levels[n-1].keys[name] {
					return fmt.Errorf("it has the field %q twice", name)
				}
				levels[n-1].keys[name], levels[n-1].key = true, false
				continue
			}
		}
		switch t {
		case json.Delim('{'):
			levels = append(levels, level{keys: map[string]bool{}, key: true})
			continue
		case json.Delim('['):
			levels = append(levels, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:len(levels)-1]
		}
		if n := len(levels); n > 0 && levels[n-1].keys != nil {
			levels[n-1].key = true // a value has ended
		}
	}
}

// coerce adapts a value to a schema if its meaning is clear: unknown fields and null are dropped, a
// single value becomes a list of one, "2" becomes 2, and "Sufficient" becomes "sufficient".
func coerce(value any, s *jsonschema.Schema) any {
	if s == nil {
		return value
	}
	switch s.Type {
	case "object":
		fields, ok := value.(map[string]any)
		if !ok {
			return value
		}
		kept := map[string]any{}
		for name, field := range s.Properties {
			if v, ok := fields[name]; ok {
				kept[name] = coerce(v, field)
			}
		}
		return kept
	case "array":
		list, ok := value.([]any)
		if !ok {
			if value == nil || value == "" {
				return []any{}
			}
			list = []any{value}
		}
		for i := range list {
			list[i] = coerce(list[i], s.Items)
		}
		return list
	case "string":
		return coerceString(value, s.Enum)
	case "integer", "number":
		if text, ok := value.(string); ok {
			if n, err := strconv.ParseFloat(strings.Trim(text, "[]#() "), 64); err == nil {
				return n
			}
		}
	case "boolean":
		if text, ok := value.(string); ok {
			if b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(text))); err == nil {
				return b
			}
		}
	}
	return value
}

func coerceString(value any, enum []any) any {
	switch v := value.(type) {
	case nil:
		if len(enum) == 0 {
			return ""
		}
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		for _, e := range enum {
			if name, ok := e.(string); ok && strings.EqualFold(strings.TrimSpace(v), name) {
				return name
			}
		}
	}
	return value
}
