// Package webfetch fetches pages from untrusted addresses, such as a search engine's results. A
// [Fetcher] connects only to what package egress admits for pages, which is at most the public
// internet, and limits the size of a page. It neither parses nor stores.
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
	"net/url"
	"strings"
	"time"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/visible"
)

// The defaults of a Config.
const (
	DefaultTimeout  = 10 * time.Second
	DefaultMaxBytes = 2 << 20
)

// maxURL is the largest length of an address in bytes.
const maxURL = 2048

// A Config configures a Fetcher. Zero fields select the defaults.
type Config struct {
	Timeout  time.Duration // for a page, from name resolution to the last byte; 0: DefaultTimeout
	MaxBytes int64         // of a page after decompression; 0: DefaultMaxBytes
	Guard    *egress.Guard // nil: the default one
}

// A Fetcher fetches pages. It implements assay.PageFetcher.
type Fetcher struct {
	config Config
	scope  *egress.Scope
	client *http.Client
}

var _ assay.PageFetcher = (*Fetcher)(nil)

// New returns a Fetcher.
func New(c Config) *Fetcher {
	c.Timeout, c.MaxBytes = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.MaxBytes, DefaultMaxBytes)
	// No proxy, since the guard would check the proxy's address instead of the page's.
	f := &Fetcher{config: c, scope: c.Guard.Scope(egress.Scope{Purpose: egress.Page, Public: true})}
	transport := f.scope.Transport()
	transport.DisableKeepAlives = true
	transport.TLSHandshakeTimeout, transport.ResponseHeaderTimeout = c.Timeout, c.Timeout
	transport.MaxResponseHeaderBytes = 64 << 10
	f.client = &http.Client{Transport: transport, CheckRedirect: f.redirect}
	return f
}

// redirect checks the target of a redirect, and removes the Referer header.
func (f *Fetcher) redirect(r *http.Request, via []*http.Request) error {
	if err := egress.Redirects(r, via); err != nil {
		return err
	}
	_, err := f.check(r.Context(), r.URL.String())
	return err
}

// Check returns assay.ErrInvalid for an address that cannot be fetched. Such an address is not
// HTTP, has a user or password, a port other than 80 and 443, or is refused by the egress rules.
// Names are resolved only when fetched.
func (f *Fetcher) Check(address string) error {
	_, err := f.check(context.Background(), address)
	return err
}

func (f *Fetcher) check(ctx context.Context, address string) (*url.URL, error) {
	if len(address) > maxURL {
		return nil, fmt.Errorf("an address of %d bytes: %w", len(address), egress.ErrRefused)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Opaque != "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is no address of HTTP: %w", shown(address), egress.ErrRefused)
	}
	return u, f.scope.Check(ctx, u)
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
	u, err := f.check(ctx, address)
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
	case errors.Is(err, egress.ErrRefused):
		return assay.WebPage{}, fmt.Errorf("read %s: %w", shown(u.Host), err)
	case limited.Err() != nil:
		return assay.WebPage{}, fmt.Errorf("read %s: it took longer than %v: %w", shown(u.Host), f.config.Timeout, assay.ErrUnavailable)
	}
	return assay.WebPage{}, fmt.Errorf("read %s: %s: %w", shown(u.Host), shown(reason(err)), assay.ErrUnavailable)
}

// reason describes an error without the address of the resolver, which is of the internal network.
func reason(err error) string {
	if unknown, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("lookup %s: %s", unknown.Name, unknown.Err)
	}
	return err.Error()
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
	if data, err = InUTF8(data, params["charset"]); err != nil {
		return assay.WebPage{}, err
	}
	return assay.WebPage{URL: res.Request.URL.String(), Type: kind, Data: data}, nil
}

// InUTF8 converts data from the encoding that a Content-Type names to UTF-8. If charset is empty it
// returns data unchanged.
func InUTF8(data []byte, charset string) ([]byte, error) {
	if charset == "" || strings.EqualFold(charset, "utf-8") {
		return data, nil
	}
	e, err := htmlindex.Get(charset)
	if err != nil {
		return nil, fmt.Errorf("it is in the encoding %q, which is not known", shown(charset))
	}
	return e.NewDecoder().Bytes(data)
}
