package stepfn

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/strategy"
)

// Schemas returns the JSON Schemas (draft 2020-12) of the messages by name: call, start, state and answer.
func Schemas() (map[string]*jsonschema.Schema, error) {
	object := func(about string) *jsonschema.Schema { return &jsonschema.Schema{Type: "object", Description: about} }
	options := &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[assay.Filter]():    object("a filter in the form of the HTTP interface"),
		reflect.TypeFor[*assay.Answer]():   object("an answer in the form of the HTTP interface"),
		reflect.TypeFor[json.RawMessage](): object("a start or a state"),
		reflect.TypeFor[strategy.Node]():   {Type: "string", Enum: enum(nodes...)},
		reflect.TypeFor[strategy.Mode]():   {Type: "string", Enum: enum(strategy.Quick, strategy.Thorough)},
		reflect.TypeFor[Verdict]():         {Type: "string", Enum: enum("", Completed, Incomplete)},
	}}
	schemas := map[string]*jsonschema.Schema{}
	for name, t := range map[string]reflect.Type{
		"call": reflect.TypeFor[Call](), "start": reflect.TypeFor[Start](), "state": reflect.TypeFor[State](), "answer": reflect.TypeFor[Answer](),
	} {
		s, err := jsonschema.ForType(t, options)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w: %w", name, assay.ErrInvalid, err)
		}
		s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", "assay reflect: "+name
		schemas[name] = s
	}
	state := schemas["state"].Properties
	for _, s := range []*jsonschema.Schema{schemas["start"].Properties["run"], state["run"]} {
		s.Pattern = runIDPattern
	}
	state["node"].Enum = enum(nodes[:len(nodes)-1]...)
	state["route_count"].Minimum, state["route_count"].Maximum = new(0.0), new(float64(strategy.MaxRoutes))
	state["coverage"].Minimum, state["coverage"].Maximum = new(0.0), new(1.0)
	state["evidence"].MaxItems = new(MaxReferences)
	state["steps"].Minimum = new(0.0)
	schemas["start"].Properties["request"].Properties["question"].MaxLength = new(engine.MaxQuestionBytes)
	schemas["answer"].Properties["node"].Enum = enum(strategy.FinaliserNode)
	return schemas, nil
}

// enum returns the values of an enumeration.
func enum[T ~string](values ...T) []any {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}
