package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A fault is an error in the API's format, in the body of a failed response or within a stream.
type fault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// explain parses the body of a failed response.
func explain(status int, _ http.Header, body []byte) wire.Fault {
	var reply struct {
		Error fault `json:"error"`
	}
	if json.Unmarshal(body, &reply) != nil {
		return wire.Fault{}
	}
	return wire.Fault{Kind: reply.Error.kind(), Message: reply.Error.Message}
}

// kind returns the kind of a fault, or "" if its type is unknown.
//
// Source: "Errors" at platform.claude.com/docs/en/api/errors. The messages of errors of type
// invalid_request_error are those reported by users.
func (f fault) kind() llm.ErrorKind {
	switch f.Type {
	case "authentication_error", "permission_error":
		return llm.BadKey
	case "billing_error":
		return llm.NoQuota
	case "not_found_error":
		return llm.NoModel
	case "request_too_large":
		return llm.TooLong
	case "rate_limit_error":
		return llm.RateLimited
	case "timeout_error":
		return llm.TimedOut
	case "overloaded_error":
		return llm.Overloaded
	case "api_error":
		return llm.ServerError
	case "invalid_request_error":
		return invalid(strings.ToLower(f.Message))
	}
	return ""
}

// invalid returns the kind of an invalid request, according to its message.
func invalid(message string) llm.ErrorKind {
	switch {
	case strings.Contains(message, "prompt is too long"), strings.Contains(message, "exceed context limit"), strings.Contains(message, "context window"):
		return llm.TooLong
	case strings.Contains(message, "credit balance"), strings.Contains(message, "usage limits"):
		return llm.NoQuota
	}
	return llm.BadRequest
}
