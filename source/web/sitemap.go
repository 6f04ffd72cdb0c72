package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/assay-rag/assay"
)

// Limits of sitemaps.
//
// Source: sitemaps.org, protocol.
const (
	maxSitemapBytes = 50 << 20
	maxSitemapURLs  = 50_000
	maxSitemaps     = 500
)

// readSitemaps queues the pages of the sitemaps that robots.txt names, of /sitemap.xml, and of the
// sitemaps that these list. A sitemap that cannot be read completely is a part that was not seen.
func (c *crawl) readSitemaps(named []string) error {
	addresses := append(named, "/sitemap.xml")
	guess := len(named) // is not named by the site
	read := map[string]bool{}
	for i := 0; i < len(addresses); i++ {
		u, ok := resolve(c.start, addresses[i])
		if !ok || u.Host != c.start.Host || read[u.String()] {
			continue
		}
		if limit := c.sitemapLimit(len(read)); limit != "" {
			c.miss(limit)
			return nil
		}
		read[u.String()] = true
		if err := c.pause(); err != nil {
			return err
		}
		found, err := c.sitemap(u, i == guess)
		if err != nil {
			return err
		}
		addresses = append(addresses, found.sitemaps[:min(len(found.sitemaps), maxSitemaps)]...)
		for _, address := range found.pages {
			if u, ok := resolve(c.start, address); ok {
				c.add(u, 0)
			}
		}
	}
	return nil
}

// sitemapLimit returns the limit that was reached after some sitemaps, or "".
func (c *crawl) sitemapLimit(read int) string {
	if read >= maxSitemaps {
		return fmt.Sprintf("the site has more than %d sitemaps", maxSitemaps)
	}
	return c.exhausted(0)
}

// sitemap reads one sitemap. The error ends the crawl.
func (c *crawl) sitemap(u *url.URL, guess bool) (found sitemap, err error) {
	r, err := http.NewRequestWithContext(c.ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return sitemap{}, fmt.Errorf("sitemap %s: %w: %w", u, err, assay.ErrInvalid)
	}
	r.Header.Set("User-Agent", userAgent)
	res, err := c.config.Do(r)
	if err != nil {
		return sitemap{}, fmt.Errorf("sitemap %s: %w", u, err)
	}
	defer res.Body.Close()
	status := res.StatusCode
	absent := status == http.StatusNotFound || status == http.StatusGone || 300 <= status && status < 400
	switch {
	case absent, guess && status != http.StatusOK:
		return sitemap{}, nil
	case status != http.StatusOK:
		c.miss(fmt.Sprintf("the sitemap %s answers HTTP %d", u, status))
		return sitemap{}, nil
	}
	found, err = readSitemap(res.Body)
	c.read += found.bytes
	if c.ctx.Err() != nil {
		return sitemap{}, c.ctx.Err()
	}
	if err != nil && !(guess && errors.Is(err, errNoSitemap)) {
		c.miss(fmt.Sprintf("the sitemap %s cannot be read completely: %v", u, err))
	}
	return found, nil
}

// A sitemap is the addresses that a sitemap or an index of sitemaps lists.
type sitemap struct {
	pages, sitemaps []string
	bytes           int64 // that were read, after decompression
}

// limited counts the bytes read and fails after maxSitemapBytes.
type limited struct {
	r io.Reader
	n int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.n >= maxSitemapBytes {
		return 0, fmt.Errorf("it has more than %d MB", maxSitemapBytes>>20)
	}
	n, err := l.r.Read(p[:min(int64(len(p)), maxSitemapBytes-l.n)])
	l.n += int64(n)
	return n, err
}

// errNoSitemap means that a response is something else, such as a page that says that there is none.
var errNoSitemap = errors.New("it is no sitemap")

// readSitemap reads a sitemap, which may be compressed, or a list of addresses, one on each line. The
// error is errNoSitemap, or means that there is more than was read.
func readSitemap(r io.Reader) (sitemap, error) {
	body := bufio.NewReader(r)
	var plain io.Reader = body
	if start, err := body.Peek(2); err == nil && bytes.Equal(start, []byte{0x1f, 0x8b}) {
		if plain, err = gzip.NewReader(body); err != nil {
			return sitemap{}, err
		}
	}
	l := &limited{r: plain}
	text := bufio.NewReader(l)
	if start, err := text.Peek(4); err == nil && string(start) == "http" {
		found, err := readAddresses(text)
		found.bytes = l.n
		return found, err
	}
	p := sitemapParser{decoder: xml.NewDecoder(text)}
	p.decoder.Strict = false
	err := p.run()
	p.found.bytes = l.n
	if _, syntax := errors.AsType[*xml.SyntaxError](err); syntax && !p.isSitemap {
		err = errNoSitemap
	}
	return p.found, err
}

// readAddresses reads a sitemap in plain text.
func readAddresses(r io.Reader) (found sitemap, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if len(found.pages) >= maxSitemapURLs {
			return found, errTooLong
		}
		if address := strings.TrimSpace(lines.Text()); address != "" {
			found.pages = append(found.pages, address)
		}
	}
	return found, lines.Err()
}

var errTooLong = fmt.Errorf("it lists more than %d addresses", maxSitemapURLs)

// A sitemapParser reads the elements of a sitemap.
type sitemapParser struct {
	decoder   *xml.Decoder
	found     sitemap
	hasRoot   bool
	isSitemap bool   // the root is that of a sitemap or of an index
	kind      string // of the entry that is open: url or sitemap
	inLoc     bool
	loc       strings.Builder
}

func (p *sitemapParser) run() error {
	for {
		t, err := p.decoder.Token()
		switch {
		case errors.Is(err, io.EOF) && p.hasRoot:
			return nil
		case errors.Is(err, io.EOF):
			return errNoSitemap
		case err != nil:
			return err
		case len(p.found.pages)+len(p.found.sitemaps) >= maxSitemapURLs:
			return errTooLong
		}
		switch t := t.(type) {
		case xml.StartElement:
			p.open(t.Name.Local)
		case xml.CharData:
			if p.inLoc && p.loc.Len() <= maxAddress {
				p.loc.Write(t[:min(len(t), maxAddress+1)])
			}
		case xml.EndElement:
			p.close(t.Name.Local)
		}
	}
}

func (p *sitemapParser) open(name string) {
	p.hasRoot = true
	switch name {
	case "urlset", "sitemapindex":
		p.isSitemap = true
	case "url", "sitemap":
		p.kind = name
	case "loc":
		p.inLoc = p.kind != ""
		p.loc.Reset()
	}
}

func (p *sitemapParser) close(name string) {
	switch {
	case name == "loc" && p.inLoc:
		p.inLoc = false
		address := strings.TrimSpace(p.loc.String())
		if p.kind == "sitemap" {
			p.found.sitemaps = append(p.found.sitemaps, address)
		} else {
			p.found.pages = append(p.found.pages, address)
		}
	case name == p.kind:
		p.kind = ""
	}
}
