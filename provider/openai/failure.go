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

// An apiError is an error reported by a server, in place of a reply or within one.
type apiError struct {
	Message string
	Type    string
	Param   string
	Code    string // a word, or for some servers the HTTP status as a number
}

// UnmarshalJSON implements json.Unmarshaler. Some servers send only a string.
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
		e.Message += ": " + raw // the message of the model's own provider
	}
	return nil
}

// word returns the value of a JSON string, "" for null, and other JSON unchanged.
func word(data json.RawMessage) string {
	var s string
	if json.Unmarshal(data, &s) == nil {
		return s
	}
	return string(data)
}

// fail returns the error as that of a call whose HTTP status was that of success.
func (e *apiError) fail(c *wire.Client) *llm.Error {
	status, _ := strconv.Atoi(e.Code)
	if status < 400 || status > 599 {
		status = http.StatusInternalServerError
	}
	return c.Fail(e.kind(status), "%s", e.Message)
}

// kindOf maps the words that servers use as code or type.
//
// Sources: OpenAI, "Error codes"; OpenAI's OpenAPI file, ResponseErrorCode; llama.cpp,
// tools/server, format_error_response; Microsoft Learn, "Azure OpenAI content filtering"; vLLM,
// ErrorResponse.
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

// tooLong lists phrases in the messages of servers that have no code for a request that is too
// long.
var tooLong = []string{"context length", "context size", "context window", "maximum context", "context_length", "input length exceeds"}

// kind returns the kind of the error, given its HTTP status.
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

// explain parses the body of an error.
func explain(status int, _ http.Header, body []byte) wire.Fault {
	e := readError(body)
	f := wire.Fault{Kind: e.kind(status), Message: e.Message}
	if status == http.StatusNotFound && f.Kind == llm.BadRequest {
		f.Message = strings.TrimSpace(f.Message + " (check the base URL: it must be the parent of the server's OpenAI paths)")
	}
	return f
}

// readError returns the error in a body of any format, or at least its text.
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
