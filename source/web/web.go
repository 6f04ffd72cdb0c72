// Package web reads the pages of a web site as a source. It obeys robots.txt and stays on the host of
// its start page.
package web

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/temoto/robotstxt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
)

// Kind returns the kind of source.
func Kind() source.Kind {
	return source.Kind{
		Name: "web", Short: "the pages of a web site", Target: "https://HOST/PATH",
		Help: `Reads the page at the address, and the pages of the same host that sitemaps and links lead to.
robots.txt with its crawl delay, noindex, nofollow and canonical addresses are obeyed. A page
is read again if its content changes; the site is asked by ETag and Last-Modified. Pages that
are gone are removed only if the whole site could be read within the limits.`,
		Options: []source.Option{
			{Name: "prefix", Default: "/", Help: "read only pages whose path begins with this"},
			{Name: "depth", Default: "10", Help: "follow links this far from the start page and the sitemaps"},
			{Name: "pages", Default: "10000", Help: "most pages of one sync"},
			{Name: "megabytes", Default: "1024", Help: "most megabytes of one sync"},
			{Name: "minutes", Default: "120", Help: "most minutes of one sync"},
			{Name: "sitemaps", Default: "true", Help: "false: do not read sitemaps"},
			{Name: "links", Default: "true", Help: "false: read only the pages of the sitemaps"},
			{Name: "queries", Default: "false", Help: "true: also read addresses with a query"},
			{Name: "delay", Default: "200ms", Help: "least time between two requests"},
			source.AllowPrivateOption,
		},
		SweepOnly: true,
		Open:      open,
	}
}

// userAgent is the name by which robots.txt addresses this crawler.
const userAgent = "assay"

type site struct {
	config   source.Config
	start    *url.URL
	prefix   string
	depth    int
	pages    int
	bytes    int64
	duration time.Duration
	sitemaps bool
	links    bool
	queries  bool
	delay    time.Duration

	robot atomic.Pointer[robotstxt.Group] // of the last sweep; nil: none is known

	mu     sync.Mutex
	recent map[string]page // pages of the last sweep that were not fetched yet, by URL
	kept   int             // bytes of recent
}

func open(_ context.Context, c source.Config) (source.Source, error) {
	s := &site{config: c.WithDefaults(), prefix: c.Options["prefix"], recent: map[string]page{}}
	u, ok := source.WebAddress(c.Target)
	if !ok {
		return nil, fmt.Errorf("target %q is not the address of a page: %w", c.Target, assay.ErrInvalid)
	}
	s.start = normal(u)
	numbers := map[string]*int{"depth": &s.depth, "pages": &s.pages}
	var err error
	megabytes, minutes := 0, 0
	numbers["megabytes"], numbers["minutes"] = &megabytes, &minutes
	for name, into := range numbers {
		if *into, err = strconv.Atoi(c.Options[name]); err != nil || *into < 0 || *into > 1e6 {
			return nil, fmt.Errorf("option %s is %q, want a number: %w", name, c.Options[name], assay.ErrInvalid)
		}
	}
	s.bytes, s.duration = int64(megabytes)<<20, time.Duration(minutes)*time.Minute
	for name, into := range map[string]*bool{"sitemaps": &s.sitemaps, "links": &s.links, "queries": &s.queries} {
		if *into, err = strconv.ParseBool(c.Options[name]); err != nil {
			return nil, fmt.Errorf("option %s is %q, want true or false: %w", name, c.Options[name], assay.ErrInvalid)
		}
	}
	if s.delay, err = time.ParseDuration(c.Options["delay"]); err != nil || s.delay < 0 {
		return nil, fmt.Errorf("option delay is %q, want a duration such as 1s: %w", c.Options["delay"], assay.ErrInvalid)
	}
	client := *s.config.HTTP
	client.CheckRedirect = s.redirect
	s.config.HTTP = &client
	return s, nil
}

// redirect stays on the host and outside of what robots.txt excludes. The last response is then the
// redirect itself.
func (s *site) redirect(r *http.Request, via []*http.Request) error {
	const most = 5
	robot := s.robot.Load()
	excluded := robot != nil && !robot.Test(r.URL.RequestURI())
	if r.URL.Host != s.start.Host || excluded || len(via) > most {
		return http.ErrUseLastResponse
	}
	r.Header.Del("Referer")
	return nil
}

func (s *site) Changes(ctx context.Context, _ string) iter.Seq2[source.Change, error] {
	return source.ChangesOf(s.Sweep(ctx))
}

// Sweep crawls the site. The content of pages that changed is kept for Fetch, as far as memory
// allows.
func (s *site) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		c := &crawl{site: s, ctx: ctx, began: s.config.Now(), seen: map[string]bool{}, cache: s.loadCache(), next: map[string]cached{}}
		if err := c.begin(); err != nil {
			yield(source.Item{}, s.failed(ctx, err))
			return
		}
		stopped, err := c.run(yield)
		if stopped {
			return
		}
		if err == nil {
			err = s.saveCache(c.next)
		}
		switch {
		case err != nil:
			yield(source.Item{}, s.failed(ctx, err))
		case c.partial != "":
			yield(source.Item{}, &source.Skip{URI: s.start.String(), Reason: source.Unreadable, Folder: true, Detail: c.partial})
		}
	}
}

// failed returns the error of a crawl.
func (s *site) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("site %s: %w", s.start.Host, err)
}

func (s *site) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	if err := ctx.Err(); err != nil {
		return source.Content{}, err
	}
	s.mu.Lock()
	p, ok := s.recent[item.Ref]
	if ok {
		delete(s.recent, item.Ref)
		s.kept -= len(p.data)
	}
	s.mu.Unlock()
	if !ok {
		u, err := url.Parse(item.Ref)
		if err != nil {
			return source.Content{}, fmt.Errorf("page %s: %w: %w", item.URI, err, assay.ErrDamaged)
		}
		if p, err = s.get(ctx, u, cached{}); err != nil {
			return source.Content{}, err
		}
	}
	if p.status == http.StatusNotFound || p.status == http.StatusGone {
		return source.Content{}, &source.Skip{URI: item.URI, Reason: source.Vanished, Detail: "is gone"}
	}
	if p.status != http.StatusOK {
		return source.Content{}, &source.Skip{URI: item.URI, Reason: source.Unreadable, Detail: fmt.Sprintf("the site answers HTTP %d", p.status)}
	}
	return source.Content{Data: p.data, Read: s.config.Now(), Type: p.media, Modified: p.modified}, nil
}

// maxKept bounds the bytes of pages that are kept between Sweep and Fetch.
const maxKept = 32 << 20

// keep keeps a page for Fetch.
func (s *site) keep(address string, p page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept+len(p.data) > maxKept {
		clear(s.recent)
		s.kept = 0
	}
	s.recent[address] = p
	s.kept += len(p.data)
}

func (s *site) Close() error { return nil }

// normal returns the form of an address in which it is compared: without fragment and default port,
// with a path and in lower case up to the path.
func normal(u *url.URL) *url.URL {
	n := *u
	n.Fragment, n.RawFragment, n.User = "", "", nil
	n.Scheme, n.Host = strings.ToLower(n.Scheme), strings.ToLower(n.Host)
	if n.Scheme == "http" {
		n.Host = strings.TrimSuffix(n.Host, ":80")
	} else {
		n.Host = strings.TrimSuffix(n.Host, ":443")
	}
	if n.Path == "" {
		n.Path = "/"
	}
	n.ForceQuery = false
	return &n
}
