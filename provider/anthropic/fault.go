package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A fault is an error as the API describes it, in the body of a failure or in the
// middle of a stream.
type fault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// explain reads the body of a failure.
func explain(status int, _ http.Header, body []byte) wire.Fault {
	var reply struct {
		Error fault `json:"error"`
	}
	if json.Unmarshal(body, &reply) != nil {
		return wire.Fault{}
	}
	return wire.Fault{Kind: reply.Error.kind(), Message: reply.Error.Message}
}

// kind returns what kind of failure a fault is; empty: its type is not known.
//
// Source: "Errors" at platform.claude.com/docs/en/api/errors; the words of errors of
// the type invalid_request_error are those that users report.
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

// invalid returns what kind of invalid request a message speaks of.
func invalid(message string) llm.ErrorKind {
	switch {
	case strings.Contains(message, "prompt is too long"), strings.Contains(message, "exceed context limit"), strings.Contains(message, "context window"):
		return llm.TooLong
	case strings.Contains(message, "credit balance"), strings.Contains(message, "usage limits"):
		return llm.NoQuota
	}
	return llm.BadRequest
}
