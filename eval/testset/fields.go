package testset

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// An UnknownFieldError reports a field that is not part of the format. A misspelt field must be an
// error, or a question would be asked without its filter or its gold.
type UnknownFieldError struct {
	Field string
	Known []string // the valid field names
}

// Error implements error.
func (e *UnknownFieldError) Error() string { return fmt.Sprintf("there is no field %q", e.Field) }

// knownFields returns an *UnknownFieldError for the first field, by name, of a JSON object that the
// struct does not have. It ignores other JSON values.
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

// fieldsOf returns the JSON names of a struct's fields.
func fieldsOf(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// readable rewrites a JSON type error in words for the author of a set. It returns other errors
// unchanged.
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

// kindWords returns the expected type in words.
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
