package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/secret"
)

// The bounds of Retry.
const (
	MaxAttempts = 6                // of one operation
	MaxWait     = 15 * time.Minute // between all attempts of one operation
)

// A TransientError is a failure that may not happen again, such as a service that limits its rate.
type TransientError struct {
	After time.Duration // the service asks to wait this long; 0: it does not say
	Err   error
}

func (e *TransientError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *TransientError) Unwrap() error { return e.Err }

// Retry calls do until its error is nil or not a *TransientError. It waits as long as the error
// asks, or 1 s, 2 s, 4 s and so on. After MaxAttempts, or if the waits would exceed MaxWait, the
// error is assay.ErrUnavailable with the last cause.
func (c Config) Retry(ctx context.Context, do func(context.Context) error) error {
	c = c.WithDefaults()
	var waited time.Duration
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := do(ctx)
		var again *TransientError
		if !errors.As(err, &again) {
			return err
		}
		pause := again.After
		if pause <= 0 {
			pause = time.Second << (attempt - 1)
		}
		if attempt == MaxAttempts || waited+pause > MaxWait {
			return fmt.Errorf("after %d attempts: %w: %w", attempt, again.Err, assay.ErrUnavailable)
		}
		waited += pause
		if err := c.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Do sends a request with the retries of Retry. A connection that breaks and the statuses 408, 429,
// 500, 502, 503 and 504 are transient; every other response is returned, for the caller to close.
// The request's body must be nil or have GetBody.
func (c Config) Do(r *http.Request) (*http.Response, error) {
	c = c.WithDefaults()
	var res *http.Response
	err := c.Retry(r.Context(), func(ctx context.Context) error {
		attempt := r.Clone(ctx)
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return err
			}
			attempt.Body = body
		}
		got, err := c.HTTP.Do(attempt)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				err = got.Body.Close()
			}
			return errors.Join(ctx.Err(), err)
		case errors.Is(err, egress.ErrRefused):
			return err
		case err != nil:
			return &TransientError{Err: err}
		case transientStatus(got.StatusCode):
			after := c.RetryAfter(got.Header)
			return &TransientError{After: after, Err: StatusError(got)}
		}
		res = got
		return nil
	})
	return res, err
}

func transientStatus(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// RetryAfter returns the wait that a response asks for, in seconds or as a date, or 0.
//
// Source: RFC 9110, 10.2.3.
func (c Config) RetryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		return min(time.Duration(seconds), MaxWait/time.Second+1) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(c.Now()))
	}
	return 0
}

// StatusError closes a response and returns nil for a status of 2xx, ErrCredentials for 401 and
// 403, and assay.ErrUnavailable for any other, with the beginning of the body.
func StatusError(r *http.Response) error {
	body, readErr := io.ReadAll(io.LimitReader(r.Body, 2<<10))
	closeErr := r.Body.Close()
	kind := assay.ErrUnavailable
	switch {
	case 200 <= r.StatusCode && r.StatusCode <= 299:
		return errors.Join(readErr, closeErr)
	case r.StatusCode == http.StatusUnauthorized, r.StatusCode == http.StatusForbidden:
		kind = ErrCredentials
	}
	host := ""
	if r.Request != nil {
		host = r.Request.URL.Host + ": "
	}
	return fmt.Errorf("%sHTTP %d %s: %w", host, r.StatusCode, secret.Redact(string(body)), kind)
}

// ReadBody reads and closes the body of a response of at most c.MaxBytes; a larger one is a *Skip of
// uri.
func (c Config) ReadBody(uri string, r *http.Response) ([]byte, error) {
	limit := c.WithDefaults().MaxBytes
	data, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if closeErr := r.Body.Close(); err == nil {
		err = closeErr
	}
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, &Skip{URI: uri, Reason: Unreadable, Detail: "its content broke off: " + err.Error(), Err: err}
	case int64(len(data)) > limit:
		return nil, Config{MaxBytes: limit}.TooLarge(uri, -1)
	}
	return data, nil
}

// AsSkip returns the *Skip in err.
func AsSkip(err error) (*Skip, bool) { return errors.AsType[*Skip](err) }
