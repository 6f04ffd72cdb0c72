package openai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// An apiError is the error that a server reports, in place of a reply or inside of
// one.
type apiError struct {
	Message string
	Type    string
	Param   string
	Code    string // a word; of some servers the HTTP status as a number
}

// UnmarshalJSON implements json.Unmarshaler. Some servers have only a text there.
func (e *apiError) UnmarshalJSON(data []byte) error {
	var v struct {
		Message json.RawMessage `json:"message"`
		Type    json.RawMessage `json:"type"`
		Param   json.RawMessage `json:"param"`
		Code    json.RawMessage `json:"code"`
		Inner   struct {
			Code string `json:"code"`
		} `json:"innererror"` // Azure's
		Metadata struct {
			Raw     json.RawMessage `json:"raw"`
			Reasons []string        `json:"reasons"`
		} `json:"metadata"` // OpenRouter's
	}
	if err := json.Unmarshal(data, &v); err != nil {
		*e = apiError{Message: word(data)}
		return nil
	}
	*e = apiError{Message: word(v.Message), Type: word(v.Type), Param: word(v.Param), Code: word(v.Code)}
	if v.Inner.Code == "ResponsibleAIPolicyViolation" || len(v.Metadata.Reasons) > 0 {
		e.Code = "content_filter"
	}
	if raw := word(v.Metadata.Raw); raw != "" {
		e.Message += ": " + raw // what the model's own provider said
	}
	return nil
}

// word returns a JSON text as what it says; other JSON as it is, null as nothing.
func word(data json.RawMessage) string {
	var s string
	if json.Unmarshal(data, &s) == nil {
		return s
	}
	return string(data)
}

// fail returns the error as that of a call, when the reply's status was that of a
// success.
func (e *apiError) fail(c *wire.Client) *llm.Error {
	status, _ := strconv.Atoi(e.Code)
	if status < 400 || status > 599 {
		status = http.StatusInternalServerError
	}
	return c.Fail(e.kind(status), "%s", e.Message)
}

// kindOf are the kinds of the words that servers use as code or type.
//
// Sources: OpenAI, "Error codes"; OpenAI's OpenAPI file, ResponseErrorCode;
// llama.cpp, tools/server, format_error_response; Microsoft Learn, "Azure OpenAI
// content filtering"; vLLM, ErrorResponse.
var kindOf = map[string]llm.ErrorKind{
	"insufficient_quota":         llm.NoQuota,
	"billing_hard_limit_reached": llm.NoQuota,
	"billing_not_active":         llm.NoQuota,
	"rate_limit_exceeded":        llm.RateLimited,
	"context_length_exceeded":    llm.TooLong,
	"exceed_context_size_error":  llm.TooLong,
	"model_not_found":            llm.NoModel,
	"deploymentnotfound":         llm.NoModel,
	"invalid_api_key":            llm.BadKey,
	"authentication_error":       llm.BadKey,
	"permission_error":           llm.BadKey,
	"content_filter":             llm.Filtered,
	"content_policy_violation":   llm.Filtered,
	"invalid_prompt":             llm.Filtered, // a prompt against the usage policy
	"unavailable_error":          llm.Overloaded,
	"server_error":               llm.ServerError,
	"slow_down":                  llm.Overloaded,
}

// tooLong are words by which servers without a code for it say that a request does
// not fit.
var tooLong = []string{"context length", "context size", "context window", "maximum context", "context_length", "input length exceeds"}

// kind returns what kind of failure the error is when it came with an HTTP status.
func (e *apiError) kind(status int) llm.ErrorKind {
	for _, w := range []string{e.Code, e.Type} {
		if kind, ok := kindOf[strings.ToLower(w)]; ok {
			return kind
		}
	}
	message := strings.ToLower(e.Message)
	for _, words := range tooLong {
		if strings.Contains(message, words) {
			return llm.TooLong
		}
	}
	if status == http.StatusNotFound && !strings.Contains(message, "model") && !strings.Contains(message, "deployment") {
		return llm.BadRequest
	}
	return wire.KindOf(status)
}

// explain reads the body of an error.
func explain(status int, _ http.Header, body []byte) wire.Fault {
	e := readError(body)
	f := wire.Fault{Kind: e.kind(status), Message: e.Message}
	if status == http.StatusNotFound && f.Kind == llm.BadRequest {
		f.Message = strings.TrimSpace(f.Message + " (is the base URL the one below which the server has its OpenAI paths?)")
	}
	return f
}

// readError returns the error that a body holds, in whichever form; at least its
// words.
func readError(body []byte) apiError {
	var v struct {
		Error *apiError `json:"error"`
	}
	if json.Unmarshal(body, &v) == nil && v.Error != nil && v.Error.Message != "" {
		return *v.Error
	}
	var e apiError
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) || json.Unmarshal(body, &e) != nil || e.Message == "" {
		e.Message = wire.Message(body)
	}
	return e
}
