package prompted

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// An output is the form of a role's reply.
type output struct {
	// sent is the schema for models: every field is required, no other is allowed, and lengths are
	// unbounded. The strict modes of all providers accept that.
	sent *llm.Schema

	// tree and held are the schema for checking replies: optional fields ("omitempty") may be
	// missing.
	tree *jsonschema.Schema
	held *jsonschema.Resolved
}

// outputOf returns a function that builds the form of T's JSON on first use. The function panics if
// T has no schema, which is a programming error.
func outputOf[T any](name string) func() output {
	return sync.OnceValue(func() output {
		tree, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: enums()})
		if err != nil {
			panic(fmt.Sprintf("schema of %s: %v", name, err))
		}
		plain(tree, false)
		held, err := tree.Resolve(nil)
		if err != nil {
			panic(fmt.Sprintf("schema of %s: %v", name, err))
		}
		strict := tree.CloneSchemas()
		plain(strict, true)
		raw, err := json.Marshal(strict)
		if err != nil {
			panic(fmt.Sprintf("schema of %s: %v", name, err))
		}
		return output{sent: &llm.Schema{Name: name, Schema: raw}, tree: tree, held: held}
	})
}

// plain removes null from the type lists of a schema and, if strict, requires every field.
func plain(s *jsonschema.Schema, strict bool) {
	if s == nil {
		return
	}
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1-i], nil
	}
	if strict && s.Type == "object" {
		s.Required = slices.Clone(s.PropertyOrder)
	}
	plain(s.Items, strict)
	for _, p := range s.Properties {
		plain(p, strict)
	}
}

// enums returns the schemas of the enumerated types.
func enums() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[assay.GradeVerdict]():    enum(assay.Sufficient, assay.Partly, assay.Insufficient),
		reflect.TypeFor[assay.Verdict]():         enum(assay.Supported, assay.Contradicted, assay.Unsupported),
		reflect.TypeFor[role.RevisionDecision](): enum(role.Keep, role.Replace),
		reflect.TypeFor[role.PlanShape]():        enum(role.Single, role.Conjunction, role.Comparison, role.Chain),
		reflect.TypeFor[role.AnswerShape]():      enum(role.Prose, role.List, role.Table),
		reflect.TypeFor[operator]():              enum(operators...),
		reflect.TypeFor[role.Complexity]():       enum(role.Simple, role.Moderate, role.Complex),
		reflect.TypeFor[role.Relevance]():        enum(role.Relevant, role.PartlyRelevant, role.NotRelevant),
		reflect.TypeFor[role.Support]():          enum(role.FullySupported, role.PartlySupported, role.NotSupported),
		reflect.TypeFor[role.JudgeVerdict]():     enum(role.Accept, role.Revise),
		reflect.TypeFor[role.Rating]():           enum(role.Good, role.Fair, role.Poor),
		reflect.TypeFor[role.Flaw]():             enum(role.FlawUnsupported, role.FlawContradicted, role.FlawOffTopic, role.FlawMissing, role.FlawUnclear),
		reflect.TypeFor[role.Relation]():         enum(role.Agree, role.Differ, role.Conflict, role.Silent),

		reflect.TypeFor[role.ReflectionStatus](): enum(role.CompletedStatus, role.IncompleteStatus),
	}
}

// enum returns the schema of a string that is one of values.
func enum[T ~string](values ...T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, v := range values {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}
