package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
)

// openaiRoutes are about the interface of OpenAI's clients, which docs/openai.md describes.
func openaiRoutes() []Route {
	chatStreams := func(r *Route) { r.Stream, r.Events = true, []reflect.Type{reflect.TypeFor[chatChunk]()} }
	responseStreams := func(r *Route) { r.Stream, r.Events = true, []reflect.Type{reflect.TypeFor[responseEvent]()} }
	routes := []Route{
		route("GET", "/v1/models", "openai.models", "Collections", "List the models of OpenAI's interface", listModels),
		route("GET", "/v1/models/{id...}", "openai.model", "Collections", "Show a model of OpenAI's interface", showModel),
		returning[chatCompletion](raw("POST", "/v1/chat/completions", "openai.chat", "Begin", "Answer the last message of a chat", chat)).with(chatStreams),
		returning[response](raw("POST", "/v1/responses", "openai.respond", "Begin", "Answer the last message of an input", respond)).with(responseStreams),
		returning[response](raw("GET", "/v1/responses/{id}", "openai.response", "Run", "Show a response", showResponse)),
		route("DELETE", "/v1/responses/{id}", "openai.delete", "DeleteRun", "Erase the run of a response", deleteResponse),
		returning[response](raw("POST", "/v1/responses/{id}/cancel", "openai.cancel", "Cancel", "Cancel a response in the background", cancelResponse)),
		route("POST", "/v1/embeddings", "openai.embed", "EmbedTexts", "Make the vectors of texts", embedTexts),
	}
	for i := range routes {
		routes[i].fail = failOpenAI
	}
	return routes
}

// isOpenAI reports whether a request is one of OpenAI's interface.
func isOpenAI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/") }

// An openaiError describes an error as OpenAI's clients read it.
type openaiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// An openaiFailure is the body of an error.
type openaiFailure struct {
	Error openaiError `json:"error"`
}

// A parameterError is an error in one parameter of a request.
type parameterError struct {
	param string // as in "messages[2].content"
	code  string // empty: none
	text  string
	kind  error // assay.ErrInvalid or assay.ErrNotFound
}

func (e *parameterError) Error() string { return e.text }

// Unwrap returns the kind of error.
func (e *parameterError) Unwrap() error { return e.kind }

func invalidParameter(param, format string, args ...any) error {
	return &parameterError{param: param, text: fmt.Sprintf(format, args...), kind: assay.ErrInvalid}
}

// openaiErrorOf returns an error as OpenAI's clients read it, with its problem details.
func (x *exchange) openaiErrorOf(err error) (Problem, openaiError) {
	if errors.Is(err, context.Canceled) && x.server.draining() {
		err = fmt.Errorf("the server is stopping: %w", fs.ErrClosed)
	}
	p := x.problem(err)
	e := openaiError{Message: p.Detail}
	if e.Message == "" {
		e.Message = p.Title
	}
	code := ""
	switch status := p.Status; {
	case errors.Is(err, assay.ErrSuspended): // a client would take 202 for an answer
		p.Status, e.Type = http.StatusConflict, "invalid_request_error"
	case status == http.StatusUnauthorized:
		e.Type, code = "invalid_request_error", "invalid_api_key"
	case status == http.StatusForbidden:
		e.Type = "permission_error"
	case status == http.StatusTooManyRequests:
		e.Type, code = "rate_limit_exceeded", "rate_limit_exceeded"
		if p.Limit != nil && isPeriodic(p.Limit) {
			e.Type, code = "insufficient_quota", "insufficient_quota"
		}
	case status >= http.StatusInternalServerError:
		e.Type = "server_error"
	default:
		e.Type = "invalid_request_error"
	}
	if wrong, ok := errors.AsType[*parameterError](err); ok {
		e.Message, code = wrong.text, wrong.code
		if wrong.param != "" {
			e.Param = &wrong.param
		}
	}
	if code != "" {
		e.Code = &code
	}
	return p, e
}

// isPeriodic reports whether a limit is one of a day or month.
func isPeriodic(e *limit.Error) bool {
	return e.Measure.Period() == "day" || e.Measure.Period() == "month"
}

// failOpenAI writes the response for an error. OpenAI's clients repeat requests that fail with the
// statuses 408, 409, 429 and from 500 on. The header X-Should-Retry stops that where a repetition
// cannot help or would pay for another run.
func failOpenAI(x *exchange, err error) {
	p, e := x.openaiErrorOf(err)
	h := x.w.Header()
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	if p.Run != "" {
		h.Set("X-Assay-Run", p.Run)
	}
	spent := p.Limit != nil && isPeriodic(p.Limit)
	if p.Run != "" || spent || errors.Is(err, assay.ErrStopped) {
		h.Set("X-Should-Retry", "false")
	}
	x.challenge(err, p.Status)
	data, err := json.Marshal(openaiFailure{e})
	if err != nil {
		panic(err) // it has only strings
	}
	h.Set("Content-Type", typeJSON)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	x.w.WriteHeader(p.Status)
	_, _ = x.w.Write(append(data, '\n')) // the client may be gone
}
