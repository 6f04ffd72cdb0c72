package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// A checker validates requests and responses against the OpenAPI document, in which the schemas of
// responses are closed.
type checker struct {
	document *openapi3.T
	mux      *http.ServeMux // finds the pattern of a request
}

var newChecker = sync.OnceValues(func() (*checker, error) {
	d, err := describe(Routes(), true)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	for _, media := range []string{"text/html", "text/markdown", typeLines} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.PlainBodyDecoder)
	}
	c := &checker{mux: http.NewServeMux()}
	for _, r := range Routes() {
		c.mux.Handle(r.Method+" "+r.Path, http.NotFoundHandler())
	}
	c.document, err = openapi3.NewLoader().LoadFromData(data)
	return c, err
})

// checked returns a handler that does what h does, and reports each response that is not as the OpenAPI
// document says, and each request that is not and succeeds nevertheless.
func checked(t testing.TB, h http.Handler) http.Handler { return checkedIf(t, h, true) }

// checkedIf is checked with a choice of whether requests are validated too.
func checkedIf(t testing.TB, h http.Handler, requests bool) http.Handler {
	t.Helper()
	c, err := newChecker()
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		seen := &seenResponse{ResponseWriter: w}
		h.ServeHTTP(seen, r)
		if err := c.check(r, body, seen, requests); err != nil {
			t.Errorf("%s %s, status %d, differs from the OpenAPI document: %.2000v\n%.2000s", r.Method, r.URL.Path, seen.status, err, seen.body.Bytes())
		}
	})
}

// A seenResponse keeps a copy of a response.
type seenResponse struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (s *seenResponse) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *seenResponse) Write(data []byte) (int, error) {
	if s.status == 0 {
		s.status = http.StatusOK
	}
	s.body.Write(data)
	return s.ResponseWriter.Write(data)
}

func (s *seenResponse) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// check validates an exchange. Requests that no route takes are not in the document.
func (c *checker) check(r *http.Request, body []byte, seen *seenResponse, requests bool) error {
	_, pattern := c.mux.Handler(r)
	method, path, found := strings.Cut(pattern, " ")
	if !found {
		return nil
	}
	path = plainPath(path)
	item := c.document.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		return fmt.Errorf("%s is not in the document", pattern)
	}
	request := r.Clone(r.Context())
	request.Body = io.NopCloser(bytes.NewReader(body))
	input := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: pathValues(path, r.URL.Path),
		Route:   &routers.Route{Spec: c.document, Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method)},
		Options: &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if requests && seen.status < 300 {
		if err := openapi3filter.ValidateRequest(r.Context(), input); err != nil {
			return fmt.Errorf("a request that succeeds: %w", err)
		}
	}
	media, _, _ := mime.ParseMediaType(seen.Header().Get("Content-Type"))
	if media == typeEvents {
		return c.checkEvents(input, seen.body.String())
	}
	response := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: seen.status, Header: seen.Header(), Options: input.Options,
		Body: io.NopCloser(bytes.NewReader(seen.body.Bytes())),
	}
	return openapi3filter.ValidateResponse(r.Context(), response)
}

// checkEvents validates the data of server-sent events.
func (c *checker) checkEvents(input *openapi3filter.RequestValidationInput, stream string) error {
	for block := range strings.SplitSeq(stream, "\n\n") {
		kind, data := "", ""
		for line := range strings.SplitSeq(block, "\n") {
			if text, ok := strings.CutPrefix(line, "event: "); ok {
				kind = text
			}
			if text, ok := strings.CutPrefix(line, "data: "); ok {
				data += text
			}
		}
		if data == "" || data == "[DONE]" && strings.HasPrefix(input.Route.Path, "/v1/chat/") {
			continue
		}
		schema := c.document.Components.Schemas["Problem"].Value
		if kind != "error" {
			content := input.Route.Operation.Responses.Value("200").Value.Content.Get(typeEvents)
			if content == nil {
				return fmt.Errorf("%s has no events", input.Route.Path)
			}
			schema = content.Schema.Value
		}
		var v any
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			return fmt.Errorf("event %s: %w", kind, err)
		}
		if err := schema.VisitJSON(v, openapi3.EnableJSONSchema2020(), openapi3.VisitAsResponse()); err != nil {
			return fmt.Errorf("event %s: %w", kind, err)
		}
	}
	return nil
}

// pathValues returns the values of the variables of a path.
func pathValues(pattern, path string) map[string]string {
	values := map[string]string{}
	variables := strings.Split(pattern, "/")
	parts := strings.SplitN(path, "/", len(variables)) // the last one may have slashes
	for i, part := range variables {
		if name, ok := strings.CutPrefix(part, "{"); ok && i < len(parts) {
			values[strings.TrimSuffix(name, "}")] = parts[i]
		}
	}
	return values
}

// TestChecked checks that the checker finds what differs from the document.
func TestChecked(t *testing.T) {
	t.Parallel()
	c, err := newChecker()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		method, path, send string
		status             int
		media, body        string
		want               string
	}{
		"a response":             {"GET", "/healthz", "", 200, typeJSON, `{"status": "alive"}`, ""},
		"a wrong type":           {"GET", "/healthz", "", 200, typeJSON, `{"status": 1}`, "string"},
		"another status":         {"GET", "/healthz", "", 302, typeJSON, `{}`, "status"},
		"another media type":     {"GET", "/healthz", "", 200, "text/plain", `x`, "Content-Type"},
		"an unknown member":      {"GET", "/api/v1/stops", "", 200, typeJSON, `{"stops": [], "more": 1}`, "more"},
		"a missing member":       {"GET", "/api/v1/stops", "", 200, typeJSON, `{}`, "stops"},
		"null for a list":        {"GET", "/api/v1/stops", "", 200, typeJSON, `{"stops": null}`, "array"},
		"a problem":              {"GET", "/api/v1/stops", "", 403, typeProblem, `{"type": "about:blank", "title": "Forbidden", "status": 403}`, ""},
		"no problem":             {"GET", "/api/v1/stops", "", 403, typeProblem, `{"error": "no"}`, "type"},
		"a bad request accepted": {"POST", "/api/v1/stop", `{"why": 1}`, 204, "", ``, "why"},
		"an event":               {"POST", "/api/v1/vectors/embed", "", 200, typeEvents, "event: progress\ndata: {\"progress\": {\"model\": \"m\", \"stored\": 1, \"left\": 2}}\n\n", ""},
		"a bad event":            {"POST", "/api/v1/vectors/embed", "", 200, typeEvents, "event: progress\ndata: {\"progress\": {\"model\": 1}}\n\n", "model"},
	} {
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.send))
		r.Header.Set("Content-Type", typeJSON)
		w := httptest.NewRecorder()
		seen := &seenResponse{ResponseWriter: w}
		if tt.media != "" {
			w.Header().Set("Content-Type", tt.media)
		}
		seen.WriteHeader(tt.status)
		_, _ = seen.Write([]byte(tt.body))
		err := c.check(r, []byte(tt.send), seen, true)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
