// Package client is the Go client of assay serve.
//
// A Client has a method for each route of the native interface. They are generated from the route
// table, with the types that are not in package assay, so that a program with a client does not link
// the engine. AskEvents, Follow and Answer are written by hand: they follow a run over broken
// connections until its answer.
//
// An error of the server is an *Error with its problem details. errors.Is compares it with the kinds
// of package assay: errors.Is(err, assay.ErrNotFound).
package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
)

//go:generate go test -run ^TestGenerated$ . -update

// Defaults of Options.
const (
	DefaultRetries = 3
	DefaultMaxWait = 30 * time.Second
)

// Options configure a Client. The zero value is valid.
type Options struct {
	// Credential is an access token or an API key. Empty: the server needs none. It is in no error
	// and no log of this package.
	Credential string

	// PlainHTTP allows a credential over HTTP without TLS to another machine than this one, for
	// networks that encrypt themselves.
	PlainHTTP bool

	// HTTP sends the requests; nil: a client with http.DefaultTransport. Its Timeout bounds whole
	// responses, and so breaks streams: bound calls by their contexts. Redirects are not followed.
	HTTP *http.Client

	// Retries is how often a call is tried again at most; 0: DefaultRetries, negative: never. Calls
	// are tried again after 429 and 503 with a Retry-After, and after broken connections if a second
	// attempt has no second effect.
	Retries int

	// MaxWait is the longest time to wait for one more attempt; 0: DefaultMaxWait. A response that
	// demands a longer wait is returned as an error.
	MaxWait time.Duration
}

// A Client calls one server. It is safe for concurrent use.
type Client struct {
	base       *url.URL // without a path
	credential secret.Secret
	http       http.Client
	retries    int
	maxWait    time.Duration

	wait func(context.Context, time.Duration) error // replaced by tests
}

// New returns a client of the server at a base URL, such as "https://assay.example.com". A URL with a
// path, a query or a user, and a credential over plain HTTP, are assay.ErrInvalid.
func New(base string, o Options) (*Client, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("client: the base URL has not the form https://HOST: %w", assay.ErrInvalid)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return nil, fmt.Errorf("client: the base URL has more than a scheme and a host: %w", assay.ErrInvalid)
	case o.Credential != "" && u.Scheme == "http" && !o.PlainHTTP && !isLoopback(u.Hostname()):
		return nil, fmt.Errorf("client: a credential would leave this machine without TLS: %w", assay.ErrInvalid)
	case strings.ContainsFunc(o.Credential, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, fmt.Errorf("client: the credential has a character that no credential has: %w", assay.ErrInvalid)
	}
	c := &Client{
		base: &url.URL{Scheme: u.Scheme, Host: u.Host}, credential: secret.New(o.Credential),
		retries: max(cmp.Or(o.Retries, DefaultRetries), 0), maxWait: cmp.Or(o.MaxWait, DefaultMaxWait), wait: sleep,
	}
	if o.HTTP != nil {
		c.http = *o.HTTP
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// sleep waits for a duration or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type keyOfContext struct{}

// WithIdempotencyKey returns a context whose next mutating call has an idempotency key of the caller,
// for calls that a later process may repeat. Without, each call has a random one.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfContext{}, key)
}

func idempotencyKey(ctx context.Context) string {
	if key, ok := ctx.Value(keyOfContext{}).(string); ok {
		return key
	}
	return rand.Text()
}

// send sends a request until it has a response of success, whose body the caller closes, or an error
// that another attempt does not help.
func (c *Client) send(ctx context.Context, q *call) (*http.Response, error) {
	if q.err != nil {
		return nil, q.err
	}
	q.setKey(ctx)
	for attempt := 0; ; attempt++ {
		resp, err := c.attempt(ctx, q)
		if err == nil {
			return resp, nil
		}
		wait, again := c.again(q, err, attempt)
		if !again || ctx.Err() != nil {
			return nil, err
		}
		if c.wait(ctx, wait) != nil {
			return nil, err
		}
		if err := q.rewind(); err != nil {
			return nil, err
		}
	}
}

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, q *call) (*http.Response, error) {
	u := *c.base
	u.RawPath = q.path
	path, err := url.PathUnescape(q.path)
	if err != nil {
		return nil, q.fail(err)
	}
	u.Path, u.RawQuery = path, q.query.Encode()
	req, err := http.NewRequestWithContext(ctx, q.method, u.String(), q.body)
	if err != nil {
		return nil, q.fail(err)
	}
	req.ContentLength = q.length
	if q.body == nil {
		req.ContentLength = 0
	}
	req.Header = q.header.Clone()
	if text := c.credential.Reveal(); text != "" {
		req.Header.Set("Authorization", "Bearer "+text)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, q.broken(ctx, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, q.refused(resp, c.credential)
}

// again returns whether a failed call may be tried again, and after which time.
func (c *Client) again(q *call, err error, attempt int) (time.Duration, bool) {
	if attempt >= c.retries || !q.canRewind() {
		return 0, false
	}
	refused, ok := errors.AsType[*Error](err)
	if !ok {
		return backoff(attempt), q.repeatable && errors.Is(err, errBroken)
	}
	busy := refused.Status == http.StatusTooManyRequests || refused.Status == http.StatusServiceUnavailable
	return refused.RetryAfter, busy && refused.RetryAfter > 0 && refused.RetryAfter <= c.maxWait
}

// backoff returns the wait after a broken connection: 0.1 s, 0.2 s, 0.4 s and so on, at most 5 s.
func backoff(attempt int) time.Duration {
	return min(100*time.Millisecond<<min(attempt, 10), 5*time.Second)
}

// errBroken marks errors of connections.
var errBroken = errors.New("connection failed")

// broken returns the error for a request without a response. It does not contain the URL, whose query
// may have the text of a question.
func (q *call) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return q.fail(ctx.Err())
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return q.fail(fmt.Errorf("%w: %w: %w", errBroken, err, assay.ErrUnavailable))
}

// retryAfter returns the wait that a response demands: seconds or a date (RFC 9110, section 10.2.3);
// 0: none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(time.Duration(seconds)*time.Second, 0)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// maxBody is the most bytes of a JSON response.
const maxBody = 256 << 20

// readAll reads a body of at most maxBody bytes.
func readAll(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("the response has more than %d bytes", most)
	}
	return data, err
}
