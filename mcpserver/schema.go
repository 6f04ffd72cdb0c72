package mcpserver

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// jsonName returns the name of a field in JSON.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// bound applies the tags enum, min and max of a field to its schema.
func bound(schema *jsonschema.Schema, f reflect.StructField) {
	if values := f.Tag.Get("enum"); values != "" {
		for _, v := range strings.Split(values, ",") {
			schema.Enum = append(schema.Enum, v)
		}
	}
	for _, tag := range []string{"min", "max"} {
		text := f.Tag.Get(tag)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			panic(fmt.Sprintf("mcpserver: field %s: %v", f.Name, err))
		}
		limit(schema, tag == "min", n)
	}
}

// limit sets a bound of a number, or of the length of a text or list.
func limit(schema *jsonschema.Schema, least bool, n int) {
	value := float64(n)
	switch {
	case schema.Type == "string" && least:
		schema.MinLength = &n
	case schema.Type == "string":
		schema.MaxLength = &n
	case schema.Type == "array" && least:
		schema.MinItems = &n
	case schema.Type == "array":
		schema.MaxItems = &n
	case least:
		schema.Minimum = &value
	default:
		schema.Maximum = &value
	}
}
