package llm

import (
	"fmt"
	"time"

	"github.com/assay-rag/assay"
)

// An ErrorKind classifies the failure of a call to a provider.
type ErrorKind string

// The kinds. Temporary errors may go away without intervention; the others persist until the
// request, the configuration or the account changes.
const (
	RateLimited ErrorKind = "rate limited"       // temporary: too many calls or tokens
	Overloaded  ErrorKind = "overloaded"         // temporary: the provider has no room (503, 529)
	ServerError ErrorKind = "server error"       // temporary: any other 5xx
	Unreachable ErrorKind = "unreachable"        // temporary: no connection, or it broke before the reply began
	TimedOut    ErrorKind = "timed out"          // temporary: no reply, or the reply stalled
	BrokeOff    ErrorKind = "broke off"          // temporary: the reply is incomplete
	Open        ErrorKind = "circuit open"       // temporary: too many recent failures, so no call was made
	BadKey      ErrorKind = "not authorised"     // the credentials are missing, wrong or lack the permission
	NoModel     ErrorKind = "no such model"      // the provider, or its region, does not offer the model
	BadRequest  ErrorKind = "refused request"    // the provider rejects the request
	TooLong     ErrorKind = "too long"           // the request does not fit into the model's window
	NoQuota     ErrorKind = "no quota"           // the account has no money or quota left
	Filtered    ErrorKind = "filtered"           // the provider's content filter refused to answer
	TooLarge    ErrorKind = "too large"          // the reply exceeds the size limit
	BadReply    ErrorKind = "not understandable" // the reply is not in the provider's format
)

// Temporary reports whether the same call may succeed later.
func (k ErrorKind) Temporary() bool {
	switch k {
	case RateLimited, Overloaded, ServerError, Unreachable, TimedOut, BrokeOff, Open:
		return true
	}
	return false
}

// An Error is a failed call to a provider. It is assay.ErrUnavailable: the caller has to proceed
// without the provider, either for now or until a person intervenes. Its text never contains a
// credential.
type Error struct {
	Model      string // as Model.Model; for a service that is not a model, its name
	Kind       ErrorKind
	Status     int           // HTTP status; 0 if there was none
	Message    string        // the provider's own message, shortened; or a description of the failure
	RetryAfter time.Duration // wait requested by the provider; 0 if unspecified
	Usage      assay.Usage   // consumed in spite of the failure
	Attempts   []Attempt     // earlier attempts, which also failed
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s", e.Model, e.Kind)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.RetryAfter >= time.Second && e.Kind != Open {
		s += fmt.Sprintf("; it asks to wait for %s", e.RetryAfter.Round(time.Second))
	}
	if n := len(e.Attempts); n > 0 {
		s += fmt.Sprintf(" (after %d attempts)", n+1)
	}
	return s
}

// Unwrap returns assay.ErrUnavailable.
func (e *Error) Unwrap() error { return assay.ErrUnavailable }
