// Package webfetch fetches pages from untrusted addresses, such as a search engine's results. A
// [Fetcher] connects only to the public internet, and limits the size of a page.
//
// The resolved address is checked at each connection, including those of redirects, so that a name
// whose address changes between the check and the connection is still refused. The package neither
// parses nor stores.
package webfetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
)

// The defaults of a Config.
const (
	DefaultTimeout  = 10 * time.Second
	DefaultMaxBytes = 2 << 20
)

// maxRedirects is the largest number of redirects of a page, and maxURL the largest length of an
// address in bytes.
const (
	maxRedirects = 5
	maxURL       = 2048
)

// A Config configures a Fetcher. Zero fields select the defaults.
type Config struct {
	Timeout  time.Duration // for a page, from name resolution to the last byte; 0: DefaultTimeout
	MaxBytes int64         // of a page after decompression; 0: DefaultMaxBytes

	// Resolver resolves names; nil: the system's.
	Resolver *net.Resolver

	// Permit allows a connection that the guard would refuse. It is for tests, whose servers are on
	// loopback, and must be nil otherwise. No user configuration sets it.
	Permit func(netip.AddrPort) bool
}

// A Fetcher fetches pages. It implements assay.PageFetcher.
type Fetcher struct {
	config Config
	guard  *ssrf.Guardian
	client *http.Client
}

// ErrRefused is wrapped by the error for an address that the guard refused. It is an
// assay.ErrInvalid.
var ErrRefused = fmt.Errorf("refused: pages are read from the public internet alone: %w", assay.ErrInvalid)

// metadata lists addresses of cloud metadata services in public ranges. Those in other ranges are
// refused anyway.
//
// Source: Microsoft, "What is IP address 168.63.129.16?".
var metadata = []netip.Prefix{netip.MustParsePrefix("168.63.129.16/32")}

var _ assay.PageFetcher = (*Fetcher)(nil)

// New returns a Fetcher.
func New(c Config) *Fetcher {
	c.Timeout, c.MaxBytes = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.MaxBytes, DefaultMaxBytes)
	f := &Fetcher{config: c, guard: ssrf.New(ssrf.WithDeniedV4Prefixes(metadata...))}
	dialer := &net.Dialer{Timeout: c.Timeout, Resolver: c.Resolver, ControlContext: f.control}
	f.client = &http.Client{
		Transport: &http.Transport{
			// No proxy, since the guard would check the proxy's address instead of the page's.
			Proxy:                  nil,
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true,
			TLSHandshakeTimeout:    c.Timeout,
			ResponseHeaderTimeout:  c.Timeout,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: f.redirect,
	}
	return f
}

// control allows or refuses a connection. It is called with the address that a name was resolved
// to.
func (f *Fetcher) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err == nil && f.config.Permit != nil && f.config.Permit(at) {
		return nil
	}
	if f.guard.Safe(network, address, nil) != nil {
		return ErrRefused // do not reveal how a name resolves inside a network
	}
	return nil
}

// redirect checks the target of a redirect, and removes the Referer header.
func (f *Fetcher) redirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	r.Header.Del("Referer")
	_, err := f.check(r.URL.String())
	return err
}

// Check returns assay.ErrInvalid for an address that cannot be fetched. Such an address is not
// HTTP, has a user or password, a port other than 80 and 443, or an IP address outside the public
// internet. Names are resolved only when fetched.
func (f *Fetcher) Check(address string) error {
	_, err := f.check(address)
	return err
}

func (f *Fetcher) check(address string) (*url.URL, error) {
	if len(address) > maxURL {
		return nil, fmt.Errorf("an address of %d bytes: %w", len(address), ErrRefused)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Opaque != "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is no address of HTTP: %w", shown(address), ErrRefused)
	}
	if u.User != nil {
		return nil, fmt.Errorf("the address of %s has a user in it: %w", shown(u.Host), ErrRefused)
	}
	host, port := u.Hostname(), u.Port()
	if host == "" || strings.ContainsAny(host, "% \\") {
		return nil, fmt.Errorf("%s names no host: %w", shown(address), ErrRefused)
	}
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return nil, fmt.Errorf("%s names no port: %w", shown(u.Host), ErrRefused)
		}
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	literal, literalErr := netip.ParseAddr(host)
	if literalErr == nil {
		if at, err := netip.ParseAddrPort(net.JoinHostPort(host, port)); err == nil && f.config.Permit != nil && f.config.Permit(at) {
			return u, nil
		}
		if err := f.guard.SafeAddr(literal); err != nil {
			return nil, fmt.Errorf("%s: %w", shown(u.Host), ErrRefused)
		}
	}
	if port != "80" && port != "443" {
		return nil, fmt.Errorf("%s: port %s is not one of the web's: %w", shown(host), shown(port), ErrRefused)
	}
	return u, nil
}

// shown returns foreign text in a form fit for an error.
func shown(text string) string {
	const most = 200
	if text = visible.Line(text); len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// types are the media types that are accepted.
var types = map[string]bool{"text/html": true, "application/xhtml+xml": true, "text/plain": true, "text/markdown": true}

// Fetch fetches a page. An address that the guard refuses gives assay.ErrInvalid, and nothing is
// sent to it. All other failures give assay.ErrUnavailable: no connection, a status other than 200,
// or a page that is too large, too slow or not text. If ctx has ended, Fetch returns its error.
func (f *Fetcher) Fetch(ctx context.Context, address string) (assay.WebPage, error) {
	u, err := f.check(address)
	if err != nil {
		return assay.WebPage{}, err
	}
	limited, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	page, err := f.fetch(limited, u)
	switch {
	case err == nil:
		return page, nil
	case ctx.Err() != nil:
		return assay.WebPage{}, fmt.Errorf("read %s: %w", shown(u.Host), ctx.Err())
	case errors.Is(err, ErrRefused):
		return assay.WebPage{}, fmt.Errorf("read %s: %w", shown(u.Host), err)
	case limited.Err() != nil:
		return assay.WebPage{}, fmt.Errorf("read %s: it took longer than %v: %w", shown(u.Host), f.config.Timeout, assay.ErrUnavailable)
	}
	return assay.WebPage{}, fmt.Errorf("read %s: %s: %w", shown(u.Host), shown(err.Error()), assay.ErrUnavailable)
}

func (f *Fetcher) fetch(ctx context.Context, u *url.URL) (assay.WebPage, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return assay.WebPage{}, err
	}
	r.Header.Set("User-Agent", "assay")
	r.Header.Set("Accept", "text/html, application/xhtml+xml, text/plain, text/markdown;q=0.9")
	res, err := f.client.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the address, which may be long
		}
		return assay.WebPage{}, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return assay.WebPage{}, fmt.Errorf("HTTP %d", res.StatusCode)
	}
	kind, params, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil || !types[kind] {
		return assay.WebPage{}, fmt.Errorf("it is no page of text but %q", shown(res.Header.Get("Content-Type")))
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, f.config.MaxBytes+1)) // after decompression
	if err != nil {
		return assay.WebPage{}, err
	}
	if int64(len(data)) > f.config.MaxBytes {
		return assay.WebPage{}, fmt.Errorf("it is larger than %d bytes", f.config.MaxBytes)
	}
	if data, err = inUTF8(data, params["charset"]); err != nil {
		return assay.WebPage{}, err
	}
	return assay.WebPage{URL: res.Request.URL.String(), Type: kind, Data: data}, nil
}

// inUTF8 converts data from the named encoding to UTF-8. If charset is empty it returns data
// unchanged.
func inUTF8(data []byte, charset string) ([]byte, error) {
	if charset == "" || strings.EqualFold(charset, "utf-8") {
		return data, nil
	}
	e, err := htmlindex.Get(charset)
	if err != nil {
		return nil, fmt.Errorf("it is in the encoding %q, which is not known", shown(charset))
	}
	return e.NewDecoder().Bytes(data)
}
