package server

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// A FieldProblem names one part of a request that is wrong.
type FieldProblem struct {
	Pointer   string `json:"pointer,omitempty"`   // a place in the JSON body (RFC 6901)
	Parameter string `json:"parameter,omitempty"` // of the URL, or the name of a header
	Detail    string `json:"detail"`
}

// fieldErrors are the parts of a request that are wrong. It wraps assay.ErrInvalid.
type fieldErrors []FieldProblem

func (e fieldErrors) Error() string {
	parts := make([]string, len(e))
	for i, f := range e {
		parts[i] = strings.TrimSpace(f.Pointer+f.Parameter+": ") + " " + f.Detail
		if f.Pointer == "" && f.Parameter == "" {
			parts[i] = "the body: " + f.Detail
		}
	}
	return strings.Join(parts, "; ")
}

func (e fieldErrors) Unwrap() error { return assay.ErrInvalid }

// Bounds of a JSON body: how deep its values lie inside each other, and how many problems are
// reported.
const (
	maxDepth    = 64
	maxProblems = 20
)

// A bodyDecoder is a body that decodes itself. It may have members that its type does not have.
type bodyDecoder interface {
	decodeBody(data []byte) error
}

// decodeJSON decodes one JSON value into out. The names of fields are compared exactly. Duplicate and
// unknown fields, values of a wrong type, text that is not UTF-8 and anything after the value are
// fieldErrors.
func decodeJSON(data []byte, out any) error {
	if !utf8.Valid(data) {
		return fieldErrors{{Detail: "it is not valid UTF-8"}}
	}
	if own, ok := out.(bodyDecoder); ok {
		return own.decodeBody(data)
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return fieldErrors{{Detail: plainJSON(err)}}
	}
	c := &jsonChecker{data: data, d: json.NewDecoder(bytes.NewReader(data))}
	c.d.UseNumber()
	c.check(reflect.TypeOf(out).Elem())
	if len(c.found) > 0 {
		return c.found
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fieldErrors{{Detail: plainJSON(err)}}
	}
	return nil
}

// A jsonChecker collects the problems of a valid JSON value. It reads the value once, so that its time
// is in proportion to the size.
type jsonChecker struct {
	data  []byte
	d     *json.Decoder // of data
	path  []string      // the names and indexes that lead to the present value
	stop  bool          // nothing else is read
	found fieldErrors
}

func (c *jsonChecker) add(detail string) {
	if len(c.found) == maxProblems {
		return
	}
	pointer := ""
	for _, name := range c.path {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	c.found = append(c.found, FieldProblem{Pointer: pointer, Detail: detail})
}

// check reads the next value and checks it against a type; nil: any.
func (c *jsonChecker) check(t reflect.Type) {
	if len(c.path) > maxDepth {
		c.add(fmt.Sprintf("it is more than %d levels deep", maxDepth))
		c.stop = true
		return
	}
	for t != nil && t.Kind() == reflect.Pointer && !decodesItself(t) {
		t = t.Elem()
	}
	own := t == nil || decodesItself(t) || t.Kind() == reflect.Interface
	before := len(c.found)
	raw := bytes.TrimLeft(c.data[c.d.InputOffset():], " \t\r\n:,")
	begin := len(c.data) - len(raw)
	switch {
	case raw[0] == '{' && (own || t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		c.checkObject(t, own)
	case raw[0] == '[' && (own || t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		c.checkList(t, own)
	default:
		c.skip()
		own = own || !c.stop
	}
	if own && t != nil && !c.stop && len(c.found) == before {
		c.decodes(c.data[begin:c.d.InputOffset()], t)
	}
}

// skip reads the next value.
func (c *jsonChecker) skip() {
	var value json.RawMessage
	if err := c.d.Decode(&value); err != nil {
		c.invalid()
	}
}

// invalid ends the check of a value that the decoder refuses.
func (c *jsonChecker) invalid() {
	c.add("it is not valid JSON")
	c.stop = true
}

// token reads a bracket, a brace or the name of a member.
func (c *jsonChecker) token() json.Token {
	token, err := c.d.Token()
	if err != nil {
		c.invalid()
	}
	return token
}

// decodes checks that a value decodes as a type.
func (c *jsonChecker) decodes(raw json.RawMessage, t reflect.Type) {
	if err := json.Unmarshal(raw, reflect.New(t).Interface()); err != nil {
		c.add(plainJSON(err))
	}
}

// checkObject checks the members of an object.
func (c *jsonChecker) checkObject(t reflect.Type, own bool) {
	c.token()
	seen := map[string]bool{}
	var fields map[string]reflect.Type
	if !own && t.Kind() == reflect.Struct {
		fields = fieldsOf(t)
	}
	for !c.stop && c.d.More() {
		name, _ := c.token().(string)
		c.path = append(c.path, name)
		of, known := fields[name]
		switch {
		case c.stop:
		case seen[name]:
			c.add("it is given twice")
			c.skip()
		case fields != nil && !known:
			c.add("unknown field")
			c.skip()
		case fields != nil || own:
			c.check(of)
		default:
			c.check(t.Elem())
		}
		seen[name] = true
		c.path = c.path[:len(c.path)-1]
	}
	if !c.stop {
		c.token()
	}
}

// checkList checks the elements of a list.
func (c *jsonChecker) checkList(t reflect.Type, own bool) {
	c.token()
	var of reflect.Type
	if !own {
		of = t.Elem()
	}
	for i := 0; !c.stop && c.d.More(); i++ {
		c.path = append(c.path, strconv.Itoa(i))
		c.check(of)
		c.path = c.path[:len(c.path)-1]
	}
	if !c.stop {
		c.token()
	}
}

// decodesItself reports whether a type has its own JSON form.
func decodesItself(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		return t.Implements(reflect.TypeFor[json.Unmarshaler]()) || t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// fieldsOf returns the types of a struct's fields by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Tag.Get("json") == "-", f.Anonymous && name == "", !f.IsExported():
		case name == "":
			fields[f.Name] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	return fields
}

// plainJSON describes an error of package json without the names of Go.
func plainJSON(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(wrong.Value, " ") // "number 1.5"
		return fmt.Sprintf("it is a %s, want %s", kind, spoken(wrong.Type))
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		if syntax.Offset == 0 || strings.Contains(syntax.Error(), "unexpected end") {
			return "it is not complete JSON"
		}
		return fmt.Sprintf("it is not valid JSON, at byte %d: %s", syntax.Offset, syntax.Error())
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it is not complete JSON"
	}
	return strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error())
}

// spoken names the JSON form of a type.
func spoken(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer in range"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a string"
}
