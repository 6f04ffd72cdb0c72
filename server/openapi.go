package server

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/assay-rag/assay/engine"
)

// openapiRoutes serve the description of the interface.
func openapiRoutes() []Route {
	return []Route{
		raw("GET", "/openapi.json", "service.openapi", "", "The OpenAPI document of this interface", openapi).with(func(r *Route) {
			r.Out = reflect.TypeFor[json.RawMessage]()
		}),
	}
}

func openapi(x *exchange, _ none) error {
	document, err := x.server.document()
	if err != nil {
		return err
	}
	return x.reply(document)
}

// encodeDocument returns the document of routes in JSON.
func encodeDocument(routes []Route) (json.RawMessage, error) {
	d, err := describe(routes, false)
	if err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

// The parts of an OpenAPI 3.1.1 document that are used here.
type (
	apiDocument struct {
		OpenAPI    string                              `json:"openapi"`
		Info       apiInfo                             `json:"info"`
		Servers    []apiServer                         `json:"servers"`
		Tags       []apiTag                            `json:"tags"`
		Paths      map[string]map[string]*apiOperation `json:"paths"` // by path and method
		Components apiComponents                       `json:"components"`
	}
	apiInfo struct {
		Title       string     `json:"title"`
		Version     string     `json:"version"`
		Description string     `json:"description"`
		License     apiLicense `json:"license"`
	}
	apiLicense struct {
		Name       string `json:"name"`
		Identifier string `json:"identifier"`
	}
	apiServer struct {
		URL         string `json:"url"`
		Description string `json:"description"`
	}
	apiTag struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	apiComponents struct {
		Schemas         map[string]*jsonschema.Schema `json:"schemas"`
		Responses       map[string]apiResponse        `json:"responses"`
		SecuritySchemes map[string]map[string]string  `json:"securitySchemes"`
	}
	apiOperation struct {
		OperationID string                 `json:"operationId"`
		Summary     string                 `json:"summary"`
		Tags        []string               `json:"tags"`
		Scope       string                 `json:"x-scope,omitempty"`
		PerCollect  bool                   `json:"x-scope-per-collection,omitempty"`
		Security    []map[string][]string  `json:"security"`
		Parameters  []apiParameter         `json:"parameters,omitempty"`
		RequestBody *apiBody               `json:"requestBody,omitempty"`
		Responses   map[string]apiResponse `json:"responses"`
	}
	apiParameter struct {
		Name        string             `json:"name"`
		In          string             `json:"in"`
		Required    bool               `json:"required,omitempty"`
		Description string             `json:"description,omitempty"`
		Schema      *jsonschema.Schema `json:"schema"`
	}
	apiBody struct {
		Required bool                `json:"required"`
		Content  map[string]apiMedia `json:"content"`
	}
	apiResponse struct {
		Ref         string               `json:"$ref,omitempty"`
		Description string               `json:"description,omitempty"`
		Headers     map[string]apiHeader `json:"headers,omitempty"`
		Content     map[string]apiMedia  `json:"content,omitempty"`
	}
	apiHeader struct {
		Description string             `json:"description"`
		Schema      *jsonschema.Schema `json:"schema"`
	}
	apiMedia struct {
		Schema   *jsonschema.Schema    `json:"schema"`
		Examples map[string]apiExample `json:"examples,omitempty"`
	}
	apiExample struct {
		Value json.RawMessage `json:"value"`
	}
)

const apiDescription = "The interface of assay. Errors are problem details (RFC 9457). " +
	"A response may get more members in later versions; a request has no others than those listed. " +
	"Times are in the form of RFC 3339, members that end in _ns are nanoseconds, and offsets into texts count bytes of UTF-8. " +
	"A server that only its own machine reaches may need no credential."

// describe returns the OpenAPI document of routes. If closed is set, the schemas of responses allow no
// other members than those listed.
func describe(routes []Route, closed bool) (*apiDocument, error) {
	docs, err := readTypeDocs()
	if err != nil {
		return nil, err
	}
	schemas := newSchemaSet(docs, closed)
	d := &apiDocument{
		OpenAPI: "3.1.1",
		Info:    apiInfo{Title: "assay", Version: "1", Description: apiDescription, License: apiLicense{"Apache License 2.0", "Apache-2.0"}},
		Servers: []apiServer{{"/", "the server of this document"}},
		Paths:   map[string]map[string]*apiOperation{},
	}
	b := &apiBuilder{schemas: schemas}
	for _, r := range routes { // first, so that the plain names are those of responses
		if err := b.outputs(r); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	for _, r := range routes {
		op, err := b.operation(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		path := plainPath(r.Path)
		if d.Paths[path] == nil {
			d.Paths[path] = map[string]*apiOperation{}
		}
		d.Paths[path][strings.ToLower(r.Method)] = op
	}
	d.Tags = tagsOf(routes)
	if d.Components, err = b.components(); err != nil {
		return nil, err
	}
	return d, nil
}

// plainPath returns a path as OpenAPI writes it.
func plainPath(pattern string) string { return strings.ReplaceAll(pattern, "...}", "}") }

// tagTexts describe the groups of routes, which are the first parts of their names.
var tagTexts = map[string]string{
	"ask": "Questions.", "runs": "Runs of questions, with their traces.", "search": "Search without an answer.",
	"documents": "Documents.", "jobs": "Uploads that were queued.", "collections": "Collections of documents.", "service": "The server itself.",
	"openai": "The interface of OpenAI's clients.",
}

func groupOf(r Route) string {
	tag, _, _ := strings.Cut(r.Name, ".")
	return tag
}

func tagsOf(routes []Route) []apiTag {
	var tags []apiTag
	for _, r := range routes {
		tag := groupOf(r)
		if !slices.ContainsFunc(tags, func(t apiTag) bool { return t.Name == tag }) {
			tags = append(tags, apiTag{tag, cmp.Or(tagTexts[tag], upperFirst(tag)+".")})
		}
	}
	return tags
}

type apiBuilder struct{ schemas *schemaSet }

// outputs makes the schemas of a route's responses.
func (b *apiBuilder) outputs(r Route) error {
	failure := reflect.TypeFor[Problem]()
	if r.fail != nil {
		failure = reflect.TypeFor[openaiFailure]()
	}
	for _, t := range append([]reflect.Type{failure, r.Out}, eventTypes(r)...) {
		if t == nil {
			continue
		}
		if _, err := b.schemas.of(t, false); err != nil {
			return err
		}
	}
	return nil
}

// eventsOf returns the type of all events of a route.
func eventsOf[T any]() []reflect.Type { return []reflect.Type{reflect.TypeFor[T]()} }

// eventTypes returns the types of the events of a route.
func eventTypes(r Route) []reflect.Type {
	switch {
	case !r.Stream:
		return nil
	case len(r.Events) == 0:
		return eventsOf[engine.Event]()
	}
	return r.Events
}

// methodOf returns the method of engine.Session that a route calls.
func methodOf(r Route) (m engine.SessionMethod, ok bool) {
	i := slices.IndexFunc(engine.SessionMethods, func(m engine.SessionMethod) bool { return m.Name == r.Call })
	if i < 0 {
		return m, false
	}
	return engine.SessionMethods[i], true
}

func (b *apiBuilder) operation(r Route) (*apiOperation, error) {
	op := &apiOperation{
		OperationID: r.Name, Summary: r.Summary, Tags: []string{groupOf(r)},
		Security: []map[string][]string{}, Responses: map[string]apiResponse{},
	}
	if m, ok := methodOf(r); ok {
		op.Scope, op.PerCollect = string(m.Scope), m.PerCollection
		op.Security = []map[string][]string{{"bearer": {}}, {"apiKey": {}}}
	}
	if err := b.inputs(r, op); err != nil {
		return nil, err
	}
	success, err := b.success(r)
	if err != nil {
		return nil, err
	}
	op.Responses[strconv.Itoa(r.Status)] = success
	for _, status := range r.Statuses {
		if op.Responses[strconv.Itoa(status)], err = b.other(status, success); err != nil {
			return nil, err
		}
	}
	if r.Method == http.MethodGet && r.Status == http.StatusOK && len(success.Content) > 0 {
		op.Responses["304"] = apiResponse{Description: "The client has it, by If-None-Match"}
	}
	for _, status := range refusalsOf(r) {
		if op.Responses[status], err = b.refusal(r, status); err != nil {
			return nil, err
		}
	}
	return op, nil
}

// refusal returns the response of a route for an error.
func (b *apiBuilder) refusal(r Route, status string) (apiResponse, error) {
	if r.fail == nil {
		return apiResponse{Ref: "#/components/responses/" + status}, nil
	}
	s, err := b.schemas.of(reflect.TypeFor[openaiFailure](), false)
	return apiResponse{Description: "An error in OpenAI's form", Content: map[string]apiMedia{typeJSON: {Schema: s}}}, err
}

// refusalsOf returns the error statuses of a route.
func refusalsOf(r Route) []string {
	if r.Call == "" {
		return []string{"4XX", "5XX"}
	}
	return []string{"401", "403", "429", "4XX", "5XX"}
}

// inputs adds the parameters and the body of a route.
func (b *apiBuilder) inputs(r Route, op *apiOperation) error {
	doc := b.schemas.docs[docName(r.In)]
	for i := range r.In.NumField() {
		f := r.In.Field(i)
		text := doc.Fields[f.Name]
		for _, in := range []string{"path", "query", "header"} {
			name := f.Tag.Get(in)
			if name == "" || slices.Contains([]string{"Accept", "Content-Type", "Authorization"}, name) { // which OpenAPI has elsewhere
				continue
			}
			s, err := b.schemas.of(f.Type, true)
			if err != nil {
				return err
			}
			op.Parameters = append(op.Parameters, apiParameter{name, in, in == "path", text, s})
		}
		media := f.Tag.Get("body")
		if media == "" {
			continue
		}
		s := &jsonschema.Schema{Type: "string", Format: "binary"}
		if media == typeJSON {
			var err error
			if s, err = b.schemas.of(f.Type, true); err != nil {
				return err
			}
		}
		op.RequestBody = &apiBody{Required: f.Tag.Get("optional") != "true", Content: map[string]apiMedia{media: {Schema: s}}}
	}
	return nil
}

// examples are responses that the tests have seen. TestRouteExamples makes them.
//
//go:embed testdata/examples
var examples embed.FS

// maxExample is the most bytes of an example in the document.
const maxExample = 6 << 10

// exampleOf returns the example of a route's response; nil: it has none.
func exampleOf(r Route) map[string]apiExample {
	data, err := examples.ReadFile("testdata/examples/" + r.Name + ".json")
	if err != nil || len(data) > maxExample {
		return nil
	}
	return map[string]apiExample{"response": {Value: data}}
}

// other returns the response with another status of success.
func (b *apiBuilder) other(status int, success apiResponse) (apiResponse, error) {
	success.Description = strings.Replace(success.Description, http.StatusText(http.StatusOK), http.StatusText(status), 1)
	switch status {
	case http.StatusNoContent:
		success = apiResponse{Description: "No Content"}
	case http.StatusAccepted:
		accepted, err := b.schemas.of(reflect.TypeFor[Accepted](), false)
		if err != nil {
			return success, err
		}
		success = apiResponse{Description: "Accepted. The run goes on", Content: map[string]apiMedia{typeJSON: {Schema: accepted}}}
	}
	return success, nil
}

// success returns the response of a route that did what was asked.
func (b *apiBuilder) success(r Route) (apiResponse, error) {
	response := apiResponse{Description: http.StatusText(r.Status), Content: map[string]apiMedia{}}
	if r.Out != nil {
		s, err := b.schemas.of(r.Out, false)
		if err != nil {
			return response, err
		}
		response.Content[typeJSON] = apiMedia{Schema: s, Examples: exampleOf(r)}
	}
	for _, media := range r.Media {
		response.Content[media] = apiMedia{Schema: &jsonschema.Schema{Type: "string"}}
	}
	var events []*jsonschema.Schema
	for _, t := range eventTypes(r) {
		s, err := b.schemas.of(t, false)
		if err != nil {
			return response, err
		}
		events = append(events, s)
	}
	switch len(events) {
	case 0:
		return response, nil
	case 1:
		response.Content[typeEvents] = apiMedia{Schema: events[0]}
	default:
		response.Content[typeEvents] = apiMedia{Schema: &jsonschema.Schema{AnyOf: events}}
	}
	if r.fail != nil {
		response.Description += ". A stream is a sequence of server-sent events; the schema is that of the data of one"
		return response, nil
	}
	response.Description += `. A stream is a sequence of server-sent events; the schema is that of the data of one. The data of an event "error", which ends a stream, is a Problem`
	return response, nil
}

func (b *apiBuilder) components() (apiComponents, error) {
	problem, err := b.schemas.of(reflect.TypeFor[Problem](), false)
	if err != nil {
		return apiComponents{}, err
	}
	content := map[string]apiMedia{typeProblem: {Schema: problem}}
	text := func(description string) apiHeader {
		return apiHeader{description, &jsonschema.Schema{Type: "string"}}
	}
	c := apiComponents{
		Schemas: maps.Clone(b.schemas.defs),
		Responses: map[string]apiResponse{
			"401": {Description: "The credential is missing or not valid", Content: content, Headers: map[string]apiHeader{"WWW-Authenticate": text("How to authenticate")}},
			"403": {Description: "The credential does not give the right", Content: content},
			"429": {Description: "A limit is reached", Content: content, Headers: map[string]apiHeader{"Retry-After": text("Seconds after which a retry may succeed")}},
			"4XX": {Description: "The request cannot be fulfilled", Content: content},
			"5XX": {Description: "The server or a service that it uses failed, or was stopped", Content: content},
		},
		SecuritySchemes: map[string]map[string]string{
			"bearer": {"type": "http", "scheme": "bearer", "description": "An access token of a configured issuer, or an API key"},
			"apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key"},
		},
	}
	return c, nil
}
