package server

import (
	"cmp"
	_ "embed"
	"encoding"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/webhook"
)

// typeDocs is what the sources of the types of routes say about them. TestTypeDocs makes it.
//
//go:embed testdata/types.json
var typeDocs []byte

// A typeDoc is the documentation of a type.
type typeDoc struct {
	Text   string            `json:"text,omitempty"`
	Fields map[string]string `json:"fields,omitempty"` // of a struct, by the name of the field
	Values []string          `json:"values,omitempty"` // the constants of a string type
}

// readTypeDocs returns the documentation by the name of the type with its import path.
var readTypeDocs = sync.OnceValues(func() (docs map[string]typeDoc, err error) {
	err = json.Unmarshal(typeDocs, &docs)
	return docs, err
})

// required lists the members that a request must have, of types that are also used outside of requests.
// Other types of package server need those without omitempty.
var required = map[reflect.Type][]string{
	reflect.TypeFor[engine.Request]():     {"question"},
	reflect.TypeFor[engine.NewSource]():   {"name", "kind"},
	reflect.TypeFor[engine.NewCanary]():   {},
	reflect.TypeFor[engine.EgressRules](): {},
	reflect.TypeFor[assay.Query]():        {"text"},
	reflect.TypeFor[store.Hold]():         {"reason"},
	reflect.TypeFor[review.Policy]():      {},
	reflect.TypeFor[webhook.Target]():     {"url"},
}

// A schemaSet holds the schemas of types as components of the OpenAPI document. Those of inputs are
// closed and those of outputs open, because later versions may add members.
type schemaSet struct {
	docs   map[string]typeDoc
	closed bool // outputs are closed too, for tests
	defs   map[string]*jsonschema.Schema
	names  map[schemaKey]string
}

type schemaKey struct {
	of    reflect.Type
	input bool
}

func newSchemaSet(docs map[string]typeDoc, closed bool) *schemaSet {
	return &schemaSet{docs: docs, closed: closed, defs: map[string]*jsonschema.Schema{}, names: map[schemaKey]string{}}
}

// known are the schemas of types with an encoding of their own.
var known = sync.OnceValue(func() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[time.Duration]():   {Type: "integer", Format: "int64"},
		reflect.TypeFor[json.RawMessage](): anySchema(),
		reflect.TypeFor[any]():             anySchema(),
		reflect.TypeFor[secret.Secret]():   {Type: "string"},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[tlog.Hash]():       {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[assay.Filter]():    filterSchema(),
		reflect.TypeFor[assay.Value]():     valueSchema(),
	}
})

func anySchema() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"null", "boolean", "number", "string", "array", "object"}, Description: "Any JSON value."}
}

func filterSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object", MaxProperties: jsonschema.Ptr(1),
		Description: `A condition on metadata: an object with one operator, as in {"equals": {"key": "team", "value": "legal"}}, {"andAll": [...]} or {"not": {...}}. An empty object keeps all documents.`,
	}
}

func valueSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		AnyOf: []*jsonschema.Schema{
			{Type: "string"}, {Type: "number"}, {Type: "boolean"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}},
			{Type: "object", Properties: map[string]*jsonschema.Schema{"time": {Type: "string", Format: "date-time"}}, Required: []string{"time"}},
		},
		Description: "The value of a metadata key.",
	}
}

// of returns the schema of a type, which refers to a component if the type has a name.
func (s *schemaSet) of(t reflect.Type, input bool) (*jsonschema.Schema, error) {
	if t.Kind() == reflect.Pointer {
		return s.of(t.Elem(), input)
	}
	if known, ok := known()[t]; ok && t.Name() == "" || ok && !inComponents(t) {
		return known.CloneSchemas(), nil
	}
	if !s.isComponent(t) {
		return s.plain(t, input)
	}
	key := schemaKey{t, input && t.Kind() == reflect.Struct && !inComponents(t)}
	if _, ok := s.names[key]; !ok {
		name := s.nameFor(key)
		s.names[key] = name
		s.defs[name] = nil // the type may contain itself
		def, err := s.plain(t, key.input)
		if err != nil {
			return nil, err
		}
		def.Description = cmp.Or(s.docs[docName(t)].Text, def.Description)
		s.defs[name] = def
	}
	return &jsonschema.Schema{Ref: "#/components/schemas/" + s.names[key]}, nil
}

// inComponents reports whether a known schema is a component.
func inComponents(t reflect.Type) bool {
	return t == reflect.TypeFor[assay.Filter]() || t == reflect.TypeFor[assay.Value]()
}

func (s *schemaSet) isComponent(t reflect.Type) bool {
	if t.Name() == "" || t.PkgPath() == "" {
		return false
	}
	return t.Kind() == reflect.Struct || len(s.docs[docName(t)].Values) > 0
}

func docName(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// nameFor returns a name for a component: that of the type, with that of its package if it is taken.
func (s *schemaSet) nameFor(key schemaKey) string {
	t := key.of
	name := upperFirst(t.Name())
	if key.input && s.names[schemaKey{t, false}] != "" {
		name += "Input"
	}
	if _, taken := s.defs[name]; taken {
		name = upperFirst(path.Base(t.PkgPath())) + name
	}
	return name
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// plain returns the schema of a type itself.
func (s *schemaSet) plain(t reflect.Type, input bool) (*jsonschema.Schema, error) {
	if k, ok := known()[t]; ok {
		return k.CloneSchemas(), nil
	}
	if t == reflect.TypeFor[limit.Error]() {
		return s.limitError()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil, fmt.Errorf("%s has an encoding of its own, and no known schema", t)
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return &jsonschema.Schema{Type: "string"}, nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return s.object(t, input)
	case reflect.Slice, reflect.Array:
		items, err := s.of(t.Elem(), input)
		list := &jsonschema.Schema{Type: "array", Items: items}
		if t.Kind() == reflect.Array {
			list.MinItems, list.MaxItems = jsonschema.Ptr(t.Len()), jsonschema.Ptr(t.Len())
		}
		return list, err
	case reflect.Map:
		values, err := s.of(t.Elem(), input)
		return &jsonschema.Schema{Type: "object", AdditionalProperties: values}, err
	}
	leaf, err := jsonschema.ForType(t, nil)
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case reflect.String:
		for _, v := range s.docs[docName(t)].Values {
			leaf.Enum = append(leaf.Enum, v)
		}
	case reflect.Int, reflect.Int64:
		leaf.Format = "int64"
	}
	return leaf, nil
}

// limitError returns the schema of a limit.Error, whose encoding adds members to its fields.
func (s *schemaSet) limitError() (*jsonschema.Schema, error) {
	o, err := s.object(reflect.TypeFor[limit.Error](), false)
	if err != nil {
		return nil, err
	}
	for _, added := range []struct{ name, kind, text string }{
		{"error", "string", "the kind of error, quota"}, {"message", "string", "for people"}, {"retry_after", "integer", "seconds to wait, rounded up"},
	} {
		o.Properties[added.name] = &jsonschema.Schema{Type: added.kind, Description: added.text}
		o.PropertyOrder, o.Required = append(o.PropertyOrder, added.name), append(o.Required, added.name)
	}
	return o, nil
}

// object returns the schema of a struct.
func (s *schemaSet) object(t reflect.Type, input bool) (*jsonschema.Schema, error) {
	o := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	open := input && reflect.PointerTo(t).Implements(reflect.TypeFor[bodyDecoder]())
	if !open && (input || s.closed) {
		o.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}} // written as false
	}
	for _, f := range jsonFields(t) {
		p, err := s.of(f.Type, input)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		nullable := f.Type.Kind() == reflect.Pointer && !f.optional
		if nullable {
			p = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{p, {Type: "null"}}}
		}
		p.Description = cmp.Or(s.docs[docName(f.owner)].Fields[f.Name], p.Description)
		o.Properties[f.name] = p
		o.PropertyOrder = append(o.PropertyOrder, f.name)
		if !f.optional && !input || input && t.PkgPath() == packagePath && !f.optional {
			o.Required = append(o.Required, f.name)
		}
	}
	if input && len(required[t]) > 0 {
		o.Required = required[t]
	}
	return o, nil
}

var packagePath = reflect.TypeFor[Server]().PkgPath()

// A jsonField is a field of a struct that has a member in JSON.
type jsonField struct {
	reflect.StructField
	owner    reflect.Type // the struct, or one that it embeds
	name     string
	optional bool
}

// jsonFields returns the fields of a struct as encoding/json sees them, without duplicates of one
// depth, which do not occur.
func jsonFields(t reflect.Type) []jsonField {
	var own, promoted []jsonField
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			for _, p := range jsonFields(embedded) {
				p.optional = p.optional || f.Type.Kind() == reflect.Pointer
				promoted = append(promoted, p)
				own = append(own, p)
			}
		case f.IsExported():
			optional := slices.ContainsFunc(strings.Split(options, ","), func(o string) bool { return o == "omitempty" || o == "omitzero" })
			own = append(own, jsonField{f, t, cmp.Or(name, f.Name), optional})
		}
	}
	return slices.DeleteFunc(own, func(f jsonField) bool { // a field hides a promoted one of its name
		isPromoted := slices.ContainsFunc(promoted, func(p jsonField) bool { return p.owner == f.owner && p.Name == f.Name })
		return isPromoted && slices.ContainsFunc(own, func(o jsonField) bool { return o.name == f.name && o.owner == t })
	})
}
