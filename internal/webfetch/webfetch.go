// Package webfetch fetches pages whose addresses come from others: a search engine's
// results. A [Fetcher] takes no connection to anything but the public internet, and
// reads no more of a page than it may have.
//
// What an address resolves to is checked where the connection is made, on every one,
// those of redirects included: a name that changes what it stands for between a check
// and the connection has nothing to gain. The package neither parses nor stores.
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

// maxRedirects is how many redirects of a page are followed, and maxURL the length of
// the longest address, in bytes.
const (
	maxRedirects = 5
	maxURL       = 2048
)

// A Config says how pages are fetched. Its zero value has the defaults.
type Config struct {
	Timeout  time.Duration // of a page, from its name to its last byte; 0: DefaultTimeout
	MaxBytes int64         // of a page, once it is decompressed; 0: DefaultMaxBytes

	// Resolver finds addresses of names; nil: the system's.
	Resolver *net.Resolver

	// Permit lets a connection through that the guard would refuse. It is for tests,
	// whose servers are on loopback, and nil everywhere else: nothing that a user can
	// configure sets it.
	Permit func(netip.AddrPort) bool
}

// A Fetcher fetches pages. It is safe for concurrent use.
type Fetcher struct {
	config Config
	guard  *ssrf.Guardian
	client *http.Client
}

// A Page is what was fetched.
type Page struct {
	URL  string // of the page itself, behind all redirects
	Type string // media type: "text/html", "text/plain", "text/markdown", "application/xhtml+xml"
	Data []byte // in UTF-8 where the server said in which encoding it is
}

// ErrRefused is the reason of an error where the guard has refused an address. Such an
// error is assay.ErrInvalid.
var ErrRefused = fmt.Errorf("refused: pages are read from the public internet alone: %w", assay.ErrInvalid)

// metadata are addresses of cloud metadata services that lie in public ranges. The
// others lie in ranges that are refused anyway.
//
// Source: Microsoft, "What is IP address 168.63.129.16?".
var metadata = []netip.Prefix{netip.MustParsePrefix("168.63.129.16/32")}

// New returns a Fetcher.
func New(c Config) *Fetcher {
	c.Timeout, c.MaxBytes = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.MaxBytes, DefaultMaxBytes)
	f := &Fetcher{config: c, guard: ssrf.New(ssrf.WithDeniedV4Prefixes(metadata...))}
	dialer := &net.Dialer{Timeout: c.Timeout, Resolver: c.Resolver, ControlContext: f.control}
	f.client = &http.Client{
		Transport: &http.Transport{
			// No proxy: of a connection to one the guard would see the proxy's address and
			// not the page's.
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

// control lets a connection be made, or not. It is called with the address that a
// name was resolved to.
func (f *Fetcher) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err == nil && f.config.Permit != nil && f.config.Permit(at) {
		return nil
	}
	if f.guard.Safe(network, address, nil) != nil {
		return ErrRefused // what a name stands for inside of a network is nobody's business
	}
	return nil
}

// redirect checks where a redirect leads. No page learns which one led to it.
func (f *Fetcher) redirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	r.Header.Del("Referer")
	_, err := f.check(r.URL.String())
	return err
}

// Check reports, as assay.ErrInvalid, an address that no page can be fetched from: one
// that is none of HTTP, has a user or password in it, names a port other than 80 and
// 443, or an IP address that is not of the public internet. What a name stands for is
// found out when it is fetched.
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

// shown is foreign text as an error may have it.
func shown(text string) string {
	const most = 200
	if text = visible.Line(text); len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// types are the media types that are read.
var types = map[string]bool{"text/html": true, "application/xhtml+xml": true, "text/plain": true, "text/markdown": true}

// Fetch fetches a page. An address that the guard refuses is assay.ErrInvalid, and
// nothing is sent to it. Everything else that goes wrong (no connection, a status other
// than 200, a page that is too large, too slow or no text) is assay.ErrUnavailable;
// where ctx has ended, its error.
func (f *Fetcher) Fetch(ctx context.Context, address string) (Page, error) {
	u, err := f.check(address)
	if err != nil {
		return Page{}, err
	}
	limited, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	page, err := f.fetch(limited, u)
	switch {
	case err == nil:
		return page, nil
	case ctx.Err() != nil:
		return Page{}, fmt.Errorf("read %s: %w", shown(u.Host), ctx.Err())
	case errors.Is(err, ErrRefused):
		return Page{}, fmt.Errorf("read %s: %w", shown(u.Host), err)
	case limited.Err() != nil:
		return Page{}, fmt.Errorf("read %s: it took longer than %v: %w", shown(u.Host), f.config.Timeout, assay.ErrUnavailable)
	}
	return Page{}, fmt.Errorf("read %s: %s: %w", shown(u.Host), shown(err.Error()), assay.ErrUnavailable)
}

func (f *Fetcher) fetch(ctx context.Context, u *url.URL) (Page, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Page{}, err
	}
	r.Header.Set("User-Agent", "assay")
	r.Header.Set("Accept", "text/html, application/xhtml+xml, text/plain, text/markdown;q=0.9")
	res, err := f.client.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the address, which may be long
		}
		return Page{}, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return Page{}, fmt.Errorf("HTTP %d", res.StatusCode)
	}
	kind, params, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil || !types[kind] {
		return Page{}, fmt.Errorf("it is no page of text but %q", shown(res.Header.Get("Content-Type")))
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, f.config.MaxBytes+1)) // of what is decompressed
	if err != nil {
		return Page{}, err
	}
	if int64(len(data)) > f.config.MaxBytes {
		return Page{}, fmt.Errorf("it is larger than %d bytes", f.config.MaxBytes)
	}
	if data, err = inUTF8(data, params["charset"]); err != nil {
		return Page{}, err
	}
	return Page{URL: res.Request.URL.String(), Type: kind, Data: data}, nil
}

// inUTF8 returns data, which is in the named encoding, in UTF-8. Where none is named it
// is left as it is.
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
