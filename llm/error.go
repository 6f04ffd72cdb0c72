package llm

import (
	"fmt"
	"time"

	"github.com/assay-rag/assay"
)

// An ErrorKind says what kind of failure a call to a provider met.
type ErrorKind string

// The kinds. The temporary ones may pass by themselves; the others need somebody
// to change something.
const (
	RateLimited ErrorKind = "rate limited"       // temporary: too many calls or tokens
	Overloaded  ErrorKind = "overloaded"         // temporary: the provider has no room (503, 529)
	ServerError ErrorKind = "server error"       // temporary: any other 5xx
	Unreachable ErrorKind = "unreachable"        // temporary: no connection, or it broke before the reply began
	TimedOut    ErrorKind = "timed out"          // temporary: no reply, or none of it for too long
	BrokeOff    ErrorKind = "broke off"          // temporary: the reply ended before its end
	Open        ErrorKind = "circuit open"       // temporary: it failed too often to be asked now
	BadKey      ErrorKind = "not authorised"     // the credentials are missing, wrong or not allowed to do this
	NoModel     ErrorKind = "no such model"      // the provider, or its region, does not have it
	BadRequest  ErrorKind = "refused request"    // the provider does not take the request
	TooLong     ErrorKind = "too long"           // the request does not fit into the model's window
	NoQuota     ErrorKind = "no quota"           // the account has no money or quota left
	Filtered    ErrorKind = "filtered"           // the provider's filter refused to answer
	TooLarge    ErrorKind = "too large"          // the reply is larger than a reply can be
	BadReply    ErrorKind = "not understandable" // the reply is not of the provider's format
)

// Temporary reports whether the same call may succeed later.
func (k ErrorKind) Temporary() bool {
	switch k {
	case RateLimited, Overloaded, ServerError, Unreachable, TimedOut, BrokeOff, Open:
		return true
	}
	return false
}

// An Error is how a call to a provider failed. It is assay.ErrUnavailable: whoever
// asked has to do without the provider, for now or until somebody changes
// something. Its text never holds a credential.
type Error struct {
	Model      string // as Model.Model; of a service that is no model, its name
	Kind       ErrorKind
	Status     int           // of HTTP; 0: there was none
	Message    string        // the provider's own words, shortened; or what went wrong
	RetryAfter time.Duration // that the provider asks to wait; 0: it does not say
	Usage      assay.Usage   // what was spent all the same
	Attempts   []Attempt     // those before this one, that failed too
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
