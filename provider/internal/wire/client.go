// Package wire implements HTTP for providers: requests and replies in JSON, replies as streams of
// server-sent events, and failures as *llm.Error of the right kind.
//
// It does not trust servers. It limits the size of a reply, abandons a server that stalls, rejects
// redirects, which must not receive a credential, and redacts server text in errors. It makes one
// attempt per call; package resilient retries.
package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
)

// A Secret is a credential that is hidden when printed.
type Secret = secret.Secret

// NewSecret returns text as a Secret.
func NewSecret(text string) Secret { return secret.New(text) }

// Redact returns text without credentials, on one line and shortened, as
// secret.Redact does.
func Redact(text string, secrets ...Secret) string { return secret.Redact(text, secrets...) }

// The defaults of a Client.
const (
	DefaultIdle     = time.Minute
	DefaultFirst    = 10 * time.Minute
	DefaultMaxBytes = 8 << 20
)

// maxErrorBytes is the number of bytes read of an error reply.
const maxErrorBytes = 64 << 10

// A Client makes calls to one service. It is a value: a provider copies it for each model and sets
// Name. All fields but Name are optional.
type Client struct {
	Name    string                // the model's name in errors, as in llm.Error.Model
	HTTP    *http.Client          // nil: every call fails
	Header  func(r *http.Request) // sets the headers of the service, including credentials
	Secrets []Secret              // removed from errors and replies

	Idle     time.Duration // longest silence within a reply; 0: DefaultIdle
	First    time.Duration // longest wait for the start of a reply; 0: DefaultFirst
	MaxBytes int64         // largest reply; 0: DefaultMaxBytes

	// Explain parses the body of a reply whose status is not 2xx. Zero fields of the Fault are
	// filled in from status and headers. It may be nil.
	Explain func(status int, header http.Header, body []byte) Fault
}

// A Fault is a service's description of a failure.
type Fault struct {
	Kind       llm.ErrorKind // empty: derived from the status
	Message    string        // empty: Message of the body
	RetryAfter time.Duration // 0: from the headers
}

// errSilent ends a call whose server has stalled.
var errSilent = errors.New("timed out without a reply")

// JSON calls url with in as JSON, or without a body if in is nil, and decodes the reply into out,
// unless out is nil. An error is an *llm.Error with a usage of one call, or wraps the context's
// error if the context has ended.
func (c *Client) JSON(ctx context.Context, method, url string, in, out any) error {
	return c.call(ctx, method, url, in, "application/json", func(r *reply) error {
		body, err := io.ReadAll(r)
		if err != nil {
			return c.broken(r.ctx, err)
		}
		if out == nil {
			return nil
		}
		return c.Decode(body, out)
	})
}

// Decode decodes the complete JSON of a reply into out. Truncated JSON is an *llm.Error of kind
// BrokeOff. Invalid or unexpected JSON is one of kind BadReply.
func (c *Client) Decode(body []byte, out any) error {
	err := json.Unmarshal(body, out)
	if _, ok := errors.AsType[*json.SyntaxError](err); ok && endsEarly(body) {
		return c.Fail(llm.BrokeOff, "the reply is truncated JSON")
	}
	return c.notJSON(err, body)
}

// DecodeEvent decodes the data of an event into out. Since the event is complete, truncated JSON is
// also of kind BadReply.
func (c *Client) DecodeEvent(data []byte, out any) error {
	return c.notJSON(json.Unmarshal(data, out), data)
}

func (c *Client) notJSON(err error, body []byte) error {
	if err == nil {
		return nil
	}
	return c.Fail(llm.BadReply, "unexpected reply (%v): %s", err, body)
}

// endsEarly reports whether body is truncated JSON.
func endsEarly(body []byte) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	for {
		if _, err := d.Token(); err != nil {
			return err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
}

// Fail returns an error of the given kind with a usage of one call. Its message contains no
// credential.
func (c *Client) Fail(kind llm.ErrorKind, format string, args ...any) *llm.Error {
	return &llm.Error{Model: c.Name, Kind: kind, Message: Redact(fmt.Sprintf(format, args...), c.Secrets...), Usage: assay.Usage{Calls: 1}}
}

// call makes the request and calls read for a successful reply. When it returns, no goroutine or
// connection of the call is left in use.
func (c *Client) call(ctx context.Context, method, url string, in any, accept string, read func(*reply) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := c.request(ctx, method, url, in)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", accept)
	if c.Header != nil {
		c.Header(req)
	}
	timer := time.AfterFunc(cmp.Or(c.First, DefaultFirst), func() { cancel(errSilent) })
	defer timer.Stop()
	res, err := c.client().Do(req)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer res.Body.Close()
	idle := cmp.Or(c.Idle, DefaultIdle)
	timer.Reset(idle)
	r := &reply{ctx: ctx, body: res.Body, header: res.Header, timer: timer, idle: idle, left: cmp.Or(c.MaxBytes, DefaultMaxBytes)}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return c.refused(r, res)
	}
	return read(r)
}

func (c *Client) request(ctx context.Context, method, url string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(in); err != nil {
			return nil, c.Fail(llm.BadRequest, "encode the request: %v", err)
		}
		body = &b
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, c.Fail(llm.BadRequest, "invalid service address: %v", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "assay")
	// Local servers close connections that they announce as kept: llama.cpp closes every one on
	// which it has streamed. A new connection is cheap there. A request on a connection that is
	// being closed would have to be repeated, which cannot be distinguished from making it twice.
	req.Close = req.URL.Scheme == "http"
	return req, nil
}

// HTTP returns the client of a service at a base URL if its configuration names none: one that
// reaches the host of the URL alone.
func HTTP(base string) *http.Client {
	var guard *egress.Guard
	hosts := egress.List{}
	if r, ok := egress.HostOf(base); ok {
		hosts = append(hosts, r)
	}
	return guard.Scope(egress.Scope{Purpose: egress.Provider, Hosts: hosts, Private: true, Proxy: true}).Client(0)
}

// closed is the transport of a client without one.
type closed struct{}

func (closed) RoundTrip(*http.Request) (*http.Response, error) { return nil, egress.ErrRefused }

// client returns the HTTP client, which does not follow redirects.
func (c *Client) client() *http.Client {
	h := http.Client{Transport: closed{}} //nolint:egress // reaches nothing
	if c.HTTP != nil {
		h = *c.HTTP
	}
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &h
}

// unreachable returns the error of a request without a reply.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ended := c.ended(ctx); ended != nil {
		return ended
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the URL, which may hold a credential
	}
	kind := llm.Unreachable
	dial, _ := errors.AsType[*net.OpError](err)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && (dial == nil || dial.Op != "dial") {
		kind = llm.TimedOut
	}
	return c.Fail(kind, "%v", err)
}

// broken returns the error of a reply that could not be read completely.
func (c *Client) broken(ctx context.Context, err error) error {
	if ended := c.ended(ctx); ended != nil {
		return ended
	}
	if large, ok := errors.AsType[*tooLargeError](err); ok {
		return c.Fail(llm.TooLarge, "%v", large)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return c.Fail(llm.TimedOut, "%v", err)
	}
	return c.Fail(llm.BrokeOff, "%v", err)
}

// ended returns the error of a call whose context has ended: the caller's error, or that of a
// stalled server. It is nil if the context has not ended.
func (c *Client) ended(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return nil
	case errors.Is(cause, errSilent):
		return c.Fail(llm.TimedOut, "%v", cause)
	default:
		return fmt.Errorf("ask %s: %w", c.Name, ctx.Err())
	}
}

// A reply is the body of a reply with a size limit and an idle timeout.
type reply struct {
	ctx    context.Context
	body   io.Reader
	header http.Header
	timer  *time.Timer
	idle   time.Duration
	left   int64 // bytes left to read
}

// A tooLargeError reports a reply over its size limit.
type tooLargeError struct{}

func (*tooLargeError) Error() string { return "the reply exceeds the size limit" }

// Read implements io.Reader.
func (r *reply) Read(p []byte) (int, error) {
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1]
	}
	n, err := r.body.Read(p)
	if n > 0 {
		r.timer.Reset(r.idle)
	}
	if r.left -= int64(n); r.left < 0 {
		return 0, new(tooLargeError)
	}
	return n, err
}
