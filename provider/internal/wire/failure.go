package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay/llm"
)

// maxRetryAfter is the longest wait that is passed on. A longer one is a mistake or as good as
// infinite.
const maxRetryAfter = 24 * time.Hour

// refused returns the error of a reply whose status is not 2xx.
func (c *Client) refused(r *reply, res *http.Response) error {
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		e := c.Fail(llm.BadRequest, "it redirects to %s, and redirects are not followed; configure the final address", res.Header.Get("Location"))
		e.Status = res.StatusCode
		return e
	}
	body, err := io.ReadAll(io.LimitReader(r, maxErrorBytes))
	if err != nil && (len(body) == 0 || !errors.Is(context.Cause(r.ctx), errSilent)) {
		if ended := c.ended(r.ctx); ended != nil {
			return ended
		}
	}
	var f Fault
	if c.Explain != nil {
		f = c.Explain(res.StatusCode, res.Header, body)
	}
	message := cmp.Or(f.Message, Message(body), http.StatusText(res.StatusCode))
	e := c.Fail(cmp.Or(f.Kind, KindOf(res.StatusCode)), "%s", message)
	e.Status = res.StatusCode
	e.RetryAfter = cmp.Or(min(max(0, f.RetryAfter), maxRetryAfter), RetryAfter(res.Header, time.Now()))
	return e
}

// KindOf returns the default kind for an HTTP status.
func KindOf(status int) llm.ErrorKind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return llm.BadKey
	case http.StatusPaymentRequired:
		return llm.NoQuota
	case http.StatusNotFound:
		return llm.NoModel
	case http.StatusRequestEntityTooLarge:
		return llm.TooLong
	case http.StatusTooManyRequests:
		return llm.RateLimited
	case http.StatusRequestTimeout, http.StatusGatewayTimeout, 522, 524: // the last two are Cloudflare's
		return llm.TimedOut
	case http.StatusServiceUnavailable, 529: // the last is Anthropic's
		return llm.Overloaded
	}
	if status >= 500 {
		return llm.ServerError
	}
	return llm.BadRequest
}

// RetryAfter returns the wait that the headers of a reply request, at most a day, or 0 if there is
// none. A date is relative to the reply's own Date, or else to now.
//
// Source: RFC 9110, section 10.2.3; retry-after-ms is OpenAI's and Azure's.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return wait(ms / 1000)
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return wait(s)
	}
	if at, err := http.ParseTime(value); err == nil {
		if date, err := http.ParseTime(h.Get("Date")); err == nil {
			now = date
		}
		return wait(at.Sub(now).Seconds())
	}
	return 0
}

// wait converts a server's number of seconds to a duration in [0, a day].
func wait(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 {
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
}

// Message returns the message in the body of an error, for the JSON formats that services commonly
// use, or else the body as text. It is not redacted.
func Message(body []byte) string {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return strings.TrimSpace(string(body))
	}
	if m := message(v, 4); m != "" {
		return m
	}
	return strings.TrimSpace(string(body))
}

// message searches for the message of an error, a string or a field known to contain it, in at most
// depth levels.
func message(v any, depth int) string {
	if depth == 0 {
		return ""
	}
	switch v := v.(type) {
	case string:
		return v
	case []any:
		if len(v) > 0 {
			return message(v[0], depth-1)
		}
	case map[string]any:
		for _, field := range []string{"error", "message", "detail", "msg", "error_description", "errors"} {
			if m := message(v[field], depth-1); m != "" {
				return m
			}
		}
	}
	return ""
}
