package gemini

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A fault is an error in the format of Google's APIs (google.rpc.Status), in the body of a failed
// response or within a stream.
type fault struct {
	Message string   `json:"message"`
	Status  string   `json:"status"`
	Details []detail `json:"details"`
}

// A detail is one of the relevant google.rpc error details: ErrorInfo, RetryInfo, QuotaFailure.
type detail struct {
	Reason     string `json:"reason"`
	RetryDelay string `json:"retryDelay"`
	Violations []struct {
		QuotaID string `json:"quotaId"`
	} `json:"violations"`
}

// explain parses the body of a failed response. A service in front of the API may have wrapped it
// in a list.
func explain(_ int, _ http.Header, body []byte) wire.Fault {
	type failure struct {
		Error fault `json:"error"`
	}
	var one failure
	if json.Unmarshal(body, &one) != nil {
		var list []failure
		if json.Unmarshal(body, &list) != nil || len(list) == 0 {
			return wire.Fault{}
		}
		one = list[0]
	}
	return wire.Fault{Kind: one.Error.kind(), Message: one.Error.Message, RetryAfter: one.Error.wait()}
}

// kind returns the kind of a fault, or "" if its status is unknown.
//
// Source: "Troubleshooting guide" at ai.google.dev/gemini-api/docs, and the canonical codes of
// google.rpc.Code.
func (f fault) kind() llm.ErrorKind {
	message := strings.ToLower(f.Message)
	switch f.Status {
	case "UNAUTHENTICATED", "PERMISSION_DENIED":
		return llm.BadKey
	case "NOT_FOUND":
		return llm.NoModel
	case "RESOURCE_EXHAUSTED":
		if f.used() || strings.Contains(message, "credits are depleted") {
			return llm.NoQuota
		}
		return llm.RateLimited
	case "INTERNAL", "UNKNOWN":
		return llm.ServerError
	case "UNAVAILABLE":
		return llm.Overloaded
	case "DEADLINE_EXCEEDED":
		return llm.TimedOut
	case "FAILED_PRECONDITION":
		if strings.Contains(message, "billing") {
			return llm.NoQuota
		}
		return llm.BadRequest
	case "INVALID_ARGUMENT":
		return f.invalid(message)
	}
	return ""
}

// used reports whether a daily quota is exhausted, in which case a retry is futile.
func (f fault) used() bool {
	for _, d := range f.Details {
		for _, v := range d.Violations {
			if strings.Contains(v.QuotaID, "PerDay") {
				return true
			}
		}
	}
	return false
}

// invalid returns the kind of an invalid argument. An invalid key is one, too.
func (f fault) invalid(message string) llm.ErrorKind {
	for _, d := range f.Details {
		if strings.HasPrefix(d.Reason, "API_KEY_") {
			return llm.BadKey
		}
	}
	switch {
	case strings.Contains(message, "api key"):
		return llm.BadKey
	case strings.Contains(message, "token count") && strings.Contains(message, "exceed"):
		return llm.TooLong
	}
	return llm.BadRequest
}

// wait returns the wait that a fault requests, or 0 if it requests none.
func (f fault) wait() time.Duration {
	for _, d := range f.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			return wait
		}
	}
	return 0
}
