package rest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
)

// An Error is the failure of a request. It wraps source.ErrCredentials for the statuses 401 and
// 403, and otherwise assay.ErrUnavailable. Its text holds no secret and no query of an address.
type Error struct {
	Source    string // name of the source
	Path      string // of the address
	Status    int    // of HTTP; 0 if there was no complete response
	Message   string
	Body      []byte // of the response, at most 64 KiB
	Malformed bool   // the response is not in the expected form
	TooLarge  bool   // the response is over its limit

	transient bool
	after     time.Duration // as the service asks; 0: it does not
}

func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s: %s", e.Source, e.Message)
	}
	return fmt.Sprintf("%s: %s: %s", e.Source, e.Path, e.Message)
}

// Unwrap returns the kind of the failure.
func (e *Error) Unwrap() error {
	if e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
		return source.ErrCredentials
	}
	return assay.ErrUnavailable
}

func (c *Client) failure(address string, e *Error) *Error {
	e.Source = c.config.Name
	if u, err := url.Parse(address); err == nil {
		e.Path = u.Path
	}
	return e
}

// Fail returns an error of the source.
func (c *Client) Fail(format string, args ...any) *Error {
	return c.failure("", &Error{Message: fmt.Sprintf(format, args...)})
}

// Failed returns an error of the source as if a response had the status.
func (c *Client) Failed(status int, format string, args ...any) *Error {
	return c.failure("", &Error{Status: status, Message: fmt.Sprintf(format, args...)})
}

// Malformed returns an error for a reply that is not in the expected form.
func (c *Client) Malformed(format string, args ...any) *Error {
	return c.failure("", &Error{Malformed: true, Message: fmt.Sprintf(format, args...)})
}

// Status returns the HTTP status of an error, or 0.
func Status(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return 0
}

// Gone reports whether the object of a request does not exist.
func Gone(err error) bool {
	s := Status(err)
	return s == http.StatusNotFound || s == http.StatusGone
}

// NoACL returns the skip of an item because it is not known who may read it. why may be nil.
func NoACL(uri, detail string, why error) *source.Skip {
	return &source.Skip{URI: uri, Reason: source.UnknownACL, Detail: "it is not known who may read it: " + detail, Err: why}
}

// Skipped returns the error of a request about one item as a *source.Skip if it concerns the item
// alone, and otherwise unchanged. Vanished items, refused access, items that are too large and
// replies that cannot be read concern the item; refused credentials (401), a service that cannot be
// reached and ended contexts do not.
func Skipped(uri string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	s := &source.Skip{URI: uri, Reason: source.Unreadable, Detail: "cannot be read: " + e.Message, Err: err}
	switch {
	case Gone(err):
		s.Reason, s.Detail = source.Vanished, "was removed before it could be read"
	case e.TooLarge:
		s.Reason, s.Detail = source.TooLarge, e.Message
	case e.Malformed, e.Status == http.StatusForbidden, e.Status == http.StatusInternalServerError:
	case e.Status >= 400 && e.Status < 500 && e.Status != http.StatusUnauthorized && e.Status != http.StatusTooManyRequests:
	default:
		return err
	}
	return s
}

// TooLarge returns the skip of an item whose stated size is over the limit, or nil.
func (c *Client) TooLarge(uri string, size int64) error {
	if size <= c.MaxBytes() {
		return nil
	}
	return c.config.Settings.TooLarge(uri, size)
}

// Body returns the body of the response that an error reports, or nil.
func Body(err error) []byte {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Body
	}
	return nil
}
