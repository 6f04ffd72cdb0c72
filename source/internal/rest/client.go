package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/source"
)

// Limits of a request.
const (
	maxJSONBytes   = 32 << 20
	maxErrorBytes  = 64 << 10
	maxRedirects   = 5
	jsonTimeout    = 2 * time.Minute
	contentTimeout = 15 * time.Minute
)

// A Config configures a Client.
type Config struct {
	Name     string   // of the source, for errors
	Base     string   // address that relative references are resolved against
	Trusted  []string // further origins that get the credentials, such as "https://files.example.com"
	Settings source.Config

	// Authorize sets the credentials of a request. It is not called for other origins.
	Authorize func(ctx context.Context, r *http.Request) error

	// Renew is called once after a 401, before the request is repeated. It may be nil.
	Renew func()

	// Throttled reports that a response other than 429 and 503 asks to try again later. It may be
	// nil.
	Throttled func(status int, body []byte) bool

	// Headers are set on each request that gets the credentials.
	Headers map[string]string

	// Secrets are masked in errors, besides the credentials of the request itself.
	Secrets []string
}

// A Client sends requests to a service. It is safe for concurrent use.
type Client struct {
	config Config
	base   *url.URL
	api    *http.Client
}

// New returns a Client. The error is assay.ErrInvalid.
func New(c Config) (*Client, error) {
	base, err := url.Parse(c.Base)
	usable := err == nil && base.Host != "" && base.User == nil && (base.Scheme == "https" || base.Scheme == "http")
	if !usable {
		return nil, fmt.Errorf("%s: %q is no address of a service: %w", c.Name, c.Base, assay.ErrInvalid)
	}
	if base.Scheme == "http" && !isLoopback(base.Hostname()) {
		return nil, fmt.Errorf("%s: %q would send the credentials unencrypted: %w", c.Name, c.Base, assay.ErrInvalid)
	}
	c.Settings = c.Settings.WithDefaults()
	client := &Client{config: c, base: base}
	client.api = &http.Client{Transport: c.Settings.HTTP.Transport, Timeout: c.Settings.HTTP.Timeout, CheckRedirect: client.redirect}
	return client, nil
}

// isLoopback reports whether host is this machine.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Now returns the time of the client's clock.
func (c *Client) Now() time.Time { return c.config.Settings.Now() }

// MaxBytes returns the size above which an item is skipped.
func (c *Client) MaxBytes() int64 { return c.config.Settings.MaxBytes }

// Close closes idle connections.
func (c *Client) Close() error {
	c.api.CloseIdleConnections()
	return nil
}

// Address resolves a reference against the base, and adds the query. The error is for an address
// that does not get the credentials, such as a link to the next page on another host.
func (c *Client) Address(ref string, query url.Values) (string, error) {
	u, err := c.base.Parse(ref)
	if err != nil {
		return "", c.failure("", &Error{Message: "an invalid address in a reply"})
	}
	if !c.trusts(u) {
		return "", c.failure("", &Error{Message: "a link in a reply leads to another host, " + u.Host + ", which must not get the credentials"})
	}
	if len(query) > 0 {
		all := u.Query()
		for name, values := range query {
			all[name] = values
		}
		u.RawQuery = all.Encode()
	}
	return u.String(), nil
}

// trusts reports whether the credentials may be sent to u.
func (c *Client) trusts(u *url.URL) bool {
	if u.User != nil {
		return false
	}
	origin := u.Scheme + "://" + u.Host
	return origin == c.base.Scheme+"://"+c.base.Host || slices.Contains(c.config.Trusted, origin)
}

// Get decodes a JSON object. ref is relative to the base.
func (c *Client) Get(ctx context.Context, ref string, query url.Values, into any) error {
	return c.exchange(ctx, http.MethodGet, ref, query, nil, "", into)
}

// Post sends a JSON object and decodes another. The request must be safe to repeat.
func (c *Client) Post(ctx context.Context, ref string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.exchange(ctx, http.MethodPost, ref, nil, data, "application/json", into)
}

// PostForm sends a form and decodes a JSON object. The request must be safe to repeat.
func (c *Client) PostForm(ctx context.Context, ref string, form url.Values, into any) error {
	return c.exchange(ctx, http.MethodPost, ref, nil, []byte(form.Encode()), "application/x-www-form-urlencoded", into)
}

func (c *Client) exchange(ctx context.Context, method, ref string, query url.Values, body []byte, kind string, into any) error {
	address, err := c.Address(ref, query)
	if err != nil {
		return err
	}
	a := ask{method: method, address: address, body: body, kind: kind, limit: maxJSONBytes, timeout: jsonTimeout, accept: "application/json"}
	got, err := c.send(ctx, a)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(got.Data, into); err != nil {
		return c.failure(address, &Error{Message: "the reply is not the expected JSON: " + err.Error(), Malformed: true})
	}
	return nil
}

// Content is the body of a download.
type Content struct {
	Data []byte
	Type string // media type of the response, with parameters
}

// Download returns the body of an address, up to MaxBytes. An address that is not trusted gets no
// credentials.
func (c *Client) Download(ctx context.Context, ref string, query url.Values) (Content, error) {
	u, err := c.base.Parse(ref)
	if err != nil || u.User != nil || u.Scheme != "https" && u.Scheme != c.base.Scheme {
		return Content{}, c.failure("", &Error{Message: "an invalid address of a file in a reply", Malformed: true})
	}
	if len(query) > 0 {
		u.RawQuery = query.Encode()
	}
	return c.send(ctx, ask{method: http.MethodGet, address: u.String(), limit: c.MaxBytes(), timeout: contentTimeout, foreign: true})
}

// An ask is a request that can be repeated.
type ask struct {
	method, address string
	body            []byte
	kind, accept    string // media types
	limit           int64  // of the response's body
	timeout         time.Duration
	foreign         bool // redirects may lead to other origins
}

// send sends a request, with the retries of source.Config.Retry. After a 401 it renews the
// credentials once.
func (c *Client) send(ctx context.Context, a ask) (Content, error) {
	got, err := c.retried(ctx, a)
	if Status(err) == http.StatusUnauthorized && c.config.Renew != nil {
		c.config.Renew()
		return c.retried(ctx, a)
	}
	return got, err
}

func (c *Client) retried(ctx context.Context, a ask) (Content, error) {
	var got Content
	err := c.config.Settings.Retry(ctx, func(ctx context.Context) error {
		var err error
		got, err = c.once(ctx, a)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if failed, ok := errors.AsType[*Error](err); ok && failed.transient {
			return &source.TransientError{After: failed.after, Err: failed}
		}
		return err
	})
	return got, err
}

// once sends a request once.
func (c *Client) once(ctx context.Context, a ask) (Content, error) {
	limited, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(limited, a.method, a.address, bytes.NewReader(a.body))
	if err != nil {
		return Content{}, c.failure(a.address, &Error{Message: "an invalid request"})
	}
	if err := c.prepare(ctx, r, a); err != nil {
		return Content{}, err
	}
	client := *c.api
	if !a.foreign {
		client.CheckRedirect = c.redirectWithin
	}
	res, err := client.Do(r)
	if err != nil {
		return Content{}, c.unreachable(r, a, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return Content{}, c.refusal(r, a, res)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, a.limit+1)) // after decompression
	if err != nil {
		return Content{}, c.unreachable(r, a, err)
	}
	if int64(len(data)) > a.limit {
		return Content{}, c.failure(a.address, &Error{Message: fmt.Sprintf("larger than the limit of %d bytes", a.limit), TooLarge: true})
	}
	if t := c.config.Throttled; t != nil && a.accept != "" && t(res.StatusCode, data) {
		return Content{}, c.failure(a.address, &Error{Status: http.StatusTooManyRequests, Message: "too many requests", transient: true, after: c.retryAfter(res.Header)})
	}
	return Content{data, res.Header.Get("Content-Type")}, nil
}

// prepare sets the headers of a request.
func (c *Client) prepare(ctx context.Context, r *http.Request, a ask) error {
	r.Header.Set("User-Agent", "assay")
	if a.accept != "" {
		r.Header.Set("Accept", a.accept)
	}
	if a.kind != "" {
		r.Header.Set("Content-Type", a.kind)
	}
	if !c.trusts(r.URL) {
		return nil
	}
	for name, value := range c.config.Headers {
		r.Header.Set(name, value)
	}
	if c.config.Authorize == nil {
		return nil
	}
	return c.config.Authorize(ctx, r)
}

// errRedirect is the cause of a request whose redirect is not followed.
var errRedirect = errors.New("a redirect that is not followed")

// redirect removes the credentials from a request to another origin.
func (c *Client) redirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("%w: more than %d", errRedirect, maxRedirects)
	}
	r.Header.Del("Referer")
	if c.trusts(r.URL) {
		return nil
	}
	if r.URL.Scheme != "https" && r.URL.Scheme != c.base.Scheme {
		return fmt.Errorf("%w: it is not encrypted", errRedirect)
	}
	r.Header.Del("Authorization")
	for name := range c.config.Headers {
		r.Header.Del(name)
	}
	return nil
}

// redirectWithin refuses redirects to other origins.
func (c *Client) redirectWithin(r *http.Request, via []*http.Request) error {
	if !c.trusts(r.URL) {
		return fmt.Errorf("%w: it leads to another host, %s", errRedirect, r.URL.Host)
	}
	return c.redirect(r, via)
}

// unreachable returns the error for a request without a complete response.
func (c *Client) unreachable(r *http.Request, a ask, err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the address, which may hold a signature
	}
	again := !errors.Is(err, egress.ErrRefused) && !errors.Is(err, errRedirect)
	return c.failure(a.address, &Error{Message: c.clean(r, err.Error()), transient: again})
}

// refusal returns the error for a response with a status other than 200.
func (c *Client) refusal(r *http.Request, a ask, res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
	if err != nil {
		body = nil
	}
	e := &Error{Status: res.StatusCode, Body: body, Message: fmt.Sprintf("HTTP %d", res.StatusCode), after: c.retryAfter(res.Header)}
	if said := c.clean(r, explanation(body)); said != "" {
		e.Message += ": " + said
	}
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.transient = true
	default:
		e.transient = c.config.Throttled != nil && c.config.Throttled(res.StatusCode, body)
	}
	if e.transient && res.StatusCode == http.StatusForbidden {
		e.Status = http.StatusTooManyRequests
	}
	return c.failure(a.address, e)
}

// clean removes secrets from foreign text.
func (c *Client) clean(r *http.Request, text string) string {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	secrets := []secret.Secret{secret.New(token)}
	for _, s := range c.config.Secrets {
		secrets = append(secrets, secret.New(s))
	}
	return secret.Redact(text, secrets...)
}

// explanation returns the message in the body of a failure, in the forms that services use.
func explanation(body []byte) string {
	var said struct {
		Message          string          `json:"message"`
		ErrorMessages    []string        `json:"errorMessages"`
		ErrorDescription string          `json:"error_description"`
		Error            json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	var inner struct{ Message, Code any }
	var plain string
	if json.Unmarshal(said.Error, &inner) == nil && inner.Message != nil {
		plain = fmt.Sprint(inner.Message)
	} else if json.Unmarshal(said.Error, &plain) != nil {
		plain = ""
	}
	return cmp.Or(said.Message, strings.Join(said.ErrorMessages, "; "), said.ErrorDescription, plain)
}

// retryAfter returns the time that a response asks to wait, or 0.
//
// Source: "Rate limiting" of Atlassian's cloud (X-RateLimit-Reset, a date in ISO 8601).
func (c *Client) retryAfter(h http.Header) time.Duration {
	if after := c.config.Settings.RetryAfter(h); after > 0 {
		return after
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(layout, h.Get("X-RateLimit-Reset")); err == nil {
			return max(at.Sub(c.Now()), 0)
		}
	}
	return 0
}
