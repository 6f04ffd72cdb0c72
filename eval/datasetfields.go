package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// An UnknownFieldError is a field of a set that nothing reads: a slip of the pen there
// would let a question be asked without its filter, or without its gold.
type UnknownFieldError struct {
	Field string
	Known []string // what stands in its place
}

// Error implements error.
func (e *UnknownFieldError) Error() string { return fmt.Sprintf("there is no field %q", e.Field) }

// knownFields refuses an object with fields that a struct has not, the first by its name.
// What is no object is none of its business.
func knownFields(data []byte, of any) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil
	}
	known := fieldsOf(reflect.TypeOf(of))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			return &UnknownFieldError{Field: name, Known: known}
		}
	}
	return nil
}

// fieldsOf lists the names that a struct's fields have in JSON.
func fieldsOf(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// readable says in words of a set's author what is wrong with the kind of a value; other
// errors stay as they are.
func readable(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	found, _, _ := strings.Cut(e.Value, " ")
	said := fmt.Sprintf("want %s, not %s", kindWords(e.Type.Kind()), map[string]string{
		"string": "a text", "number": "a number", "bool": "true or false", "array": "a list", "object": "an object",
	}[found])
	if e.Field != "" {
		said = e.Field + ": " + said
	}
	return errors.New(strings.Replace(err.Error(), e.Error(), said, 1))
}

// kindWords names what is wanted.
func kindWords(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a whole number"
}
