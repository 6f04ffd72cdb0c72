package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/webfetch"
	"github.com/assay-rag/assay/source"
)

// A page is a response.
type page struct {
	status   int
	url      *url.URL // after redirects
	media    string   // media type
	data     []byte   // in UTF-8 if the response names its encoding
	modified time.Time
	cached   // what is remembered of the page; without links for a status other than 200
}

// A cached page is what is remembered of a page for the next sweep.
type cached struct {
	ETag         string   `json:"etag,omitempty"`
	LastModified string   `json:"last_modified,omitempty"`
	Version      string   `json:"version"` // hash of the content
	Media        string   `json:"media"`
	Links        []string `json:"links,omitempty"` // absolute
	Canonical    string   `json:"canonical,omitempty"`
	NoIndex      bool     `json:"no_index,omitempty"`
}

// get requests an address, conditionally if known has the validators of an earlier response. A
// response that is too large is a *source.Skip.
func (s *site) get(ctx context.Context, u *url.URL, known cached) (page, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return page{}, fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	r.Header.Set("User-Agent", userAgent)
	if known.ETag != "" {
		r.Header.Set("If-None-Match", known.ETag)
	}
	if known.LastModified != "" {
		r.Header.Set("If-Modified-Since", known.LastModified)
	}
	res, err := s.config.Do(r)
	if err != nil {
		return page{}, err
	}
	p := page{status: res.StatusCode, url: normal(res.Request.URL), cached: known}
	if p.status == http.StatusNotModified {
		return p, res.Body.Close()
	}
	p.cached = cached{ETag: res.Header.Get("ETag"), LastModified: res.Header.Get("Last-Modified")}
	if p.modified, err = http.ParseTime(p.LastModified); err != nil {
		p.modified = time.Time{}
	}
	media, params, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err == nil {
		p.media, p.Media = media, media
	}
	if p.status != http.StatusOK || !readable(p.media) {
		return p, res.Body.Close()
	}
	if p.data, err = s.config.ReadBody(u.String(), res); err != nil {
		return page{}, err
	}
	sum := sha256.Sum256(p.data)
	p.Version = hex.EncodeToString(sum[:16])
	if strings.HasPrefix(p.media, "text/") {
		if p.data, err = webfetch.InUTF8(p.data, params["charset"]); err != nil {
			return page{}, &source.Skip{URI: u.String(), Reason: source.Unsupported, Detail: err.Error()}
		}
	}
	p.NoIndex = directive(res.Header.Get("X-Robots-Tag"), "noindex")
	if isHTML(p.media) {
		readHTML(&p)
	}
	return p, nil
}

func isHTML(media string) bool { return media == "text/html" || media == "application/xhtml+xml" }

// readable reports whether documents have this media type. Pictures, styles and programs do not.
func readable(media string) bool {
	switch {
	case media == "text/css", media == "text/javascript":
		return false
	case strings.HasPrefix(media, "text/"), media == "application/xhtml+xml", media == "application/pdf",
		media == "application/epub+zip", media == "application/rtf", media == "application/msword":
		return true
	}
	return strings.HasPrefix(media, "application/vnd.openxmlformats-officedocument.") ||
		strings.HasPrefix(media, "application/vnd.oasis.opendocument.")
}

// directive reports whether a list of directives to robots has one.
func directive(list, name string) bool {
	list = strings.ToLower(list)
	return slices.ContainsFunc(strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == ':' }),
		func(d string) bool { return d == name || d == "none" })
}

// maxLinks bounds the links of a page.
const maxLinks = 10_000

// readHTML finds the links of a page, its canonical address and its directives to robots.
func readHTML(p *page) {
	base, follow := p.url, true
	z := html.NewTokenizer(bytes.NewReader(p.data))
	z.SetMaxBuf(1 << 20)
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		t := z.Token()
		switch t.DataAtom {
		case atom.Base:
			if u, ok := resolve(base, attribute(t, "href")); ok {
				base = u
			}
		case atom.Meta:
			if name := strings.ToLower(attribute(t, "name")); name == "robots" || name == userAgent {
				p.NoIndex = p.NoIndex || directive(attribute(t, "content"), "noindex")
				follow = follow && !directive(attribute(t, "content"), "nofollow")
			}
		case atom.Link:
			if u, ok := resolve(base, attribute(t, "href")); ok && strings.EqualFold(attribute(t, "rel"), "canonical") {
				p.Canonical = u.String()
			}
		case atom.A, atom.Area, atom.Frame, atom.Iframe:
			address := attribute(t, "href") + attribute(t, "src")
			u, ok := resolve(base, address)
			if ok && len(p.Links) < maxLinks && !directive(attribute(t, "rel"), "nofollow") {
				p.Links = append(p.Links, u.String())
			}
		}
	}
	if !follow {
		p.Links = nil
	}
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return strings.TrimSpace(a.Val)
		}
	}
	return ""
}

// maxAddress is the most bytes of an address.
const maxAddress = 2048

// resolve returns the address that a page at base refers to.
func resolve(base *url.URL, ref string) (*url.URL, bool) {
	if ref == "" || len(ref) > maxAddress {
		return nil, false
	}
	u, err := base.Parse(ref)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, false
	}
	return normal(u), true
}

// item describes a page.
func (p page) item() source.Item {
	address := p.url.String()
	name := path.Base(p.url.Path)
	if name == "/" || name == "." {
		name = "index"
	}
	if isHTML(p.Media) && !strings.Contains(name, ".htm") {
		name += ".html"
	}
	item := source.Item{URI: address, Ref: address, Name: name, Type: p.Media, Version: p.Version, Metadata: assay.Metadata{}}
	if t, err := http.ParseTime(p.LastModified); err == nil {
		item.Metadata[assay.MetaModified] = assay.TimeValue(t)
	}
	return item
}
