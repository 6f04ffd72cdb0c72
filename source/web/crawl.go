package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/temoto/robotstxt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/durable"
	"github.com/assay-rag/assay/source"
)

// A crawl is the state of one sweep.
type crawl struct {
	*site
	ctx   context.Context
	began time.Time
	wait  time.Duration // between two requests
	queue []queued
	seen  map[string]bool   // addresses that were queued
	cache map[string]cached // of the sweep before, by address
	next  map[string]cached // for the next sweep

	requests int
	read     int64  // bytes
	partial  string // why a part of the site was not seen; empty: all was
}

type queued struct {
	url   *url.URL
	depth int
}

const maxRobotsBytes = 512 << 10

// maxCrawlDelay bounds the crawl delay of robots.txt.
const maxCrawlDelay = time.Minute

// begin reads robots.txt and the sitemaps and fills the queue.
func (c *crawl) begin() error {
	c.robot.Store(nil)
	robots, err := c.robots()
	if err != nil {
		return err
	}
	robot := robots.FindGroup(userAgent)
	c.robot.Store(robot)
	c.wait = max(c.delay, min(robot.CrawlDelay, maxCrawlDelay))
	c.add(c.start, 0)
	if len(c.queue) == 0 {
		return fmt.Errorf("robots.txt or the options exclude the page %s: %w", c.start, assay.ErrInvalid)
	}
	if !c.sitemaps {
		return nil
	}
	return c.readSitemaps(robots.Sitemaps)
}

// robots returns robots.txt. A site that cannot serve it is not crawled.
//
// Source: RFC 9309, 2.3.1.
func (c *crawl) robots() (*robotstxt.RobotsData, error) {
	u := c.start.ResolveReference(&url.URL{Path: "/robots.txt"})
	r, err := http.NewRequestWithContext(c.ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	r.Header.Set("User-Agent", userAgent)
	res, err := c.config.Do(r)
	if err != nil {
		return nil, fmt.Errorf("robots.txt: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxRobotsBytes))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return nil, fmt.Errorf("robots.txt: %w: %w", err, assay.ErrUnavailable)
	}
	status := res.StatusCode
	if 300 <= status && status < 400 { // to another host
		status = http.StatusNotFound
	}
	robots, err := robotstxt.FromStatusAndBytes(status, data)
	if err != nil {
		return nil, fmt.Errorf("robots.txt: %w: %w", err, assay.ErrUnavailable)
	}
	return robots, nil
}

// add queues an address unless it was queued before or is excluded.
func (c *crawl) add(u *url.URL, depth int) {
	address := u.String()
	isStart := address == c.start.String()
	excluded := !strings.HasPrefix(u.Path, c.prefix) || u.RawQuery != "" && !c.queries || isAsset(u.Path)
	switch {
	case c.seen[address], u.Host != c.start.Host:
		return
	case excluded && !isStart:
		return
	case !c.robot.Load().Test(u.RequestURI()):
		return
	case depth > c.depth:
		return
	}
	if len(c.seen) >= 4*c.pages+100 { // what is beyond would be over the limit of pages anyway
		c.miss(c.tooManyPages())
		return
	}
	c.seen[address] = true
	c.queue = append(c.queue, queued{u, depth})
}

// assets are extensions of what is not a document.
var assets = map[string]bool{
	".css": true, ".js": true, ".mjs": true, ".map": true, ".png": true, ".jpg": true, ".jpeg": true, ".gif": true, ".svg": true,
	".webp": true, ".avif": true, ".ico": true, ".woff": true, ".woff2": true, ".ttf": true, ".mp3": true, ".mp4": true, ".webm": true,
	".zip": true, ".gz": true, ".tgz": true, ".xz": true, ".exe": true, ".dmg": true, ".iso": true, ".deb": true, ".rpm": true, ".jar": true,
}

func isAsset(p string) bool { return assets[strings.ToLower(path.Ext(p))] }

// pause waits between two requests.
func (c *crawl) pause() error {
	if c.requests++; c.requests == 1 || c.wait == 0 {
		return c.ctx.Err()
	}
	return c.config.Sleep(c.ctx, c.wait)
}

// run reads the queued pages and yields those that are documents. stopped means that yield ended it.
func (c *crawl) run(yield func(source.Item, error) bool) (stopped bool, err error) {
	for visited := 0; len(c.queue) > 0; visited++ {
		if limit := c.exhausted(visited); limit != "" {
			c.miss(limit)
			return false, nil
		}
		q := c.queue[0]
		c.queue = c.queue[1:]
		if err := c.pause(); err != nil {
			return false, err
		}
		item, err := c.visit(q)
		if _, skipped := source.AsSkip(err); err != nil && !skipped {
			return false, err
		}
		if item.URI == "" && err == nil {
			continue
		}
		if !yield(item, err) {
			return true, nil
		}
	}
	return false, nil
}

// miss records why a part of the site is not seen. The first reason is reported.
func (c *crawl) miss(reason string) { c.partial = cmp.Or(c.partial, reason) }

func (c *crawl) tooManyPages() string {
	return fmt.Sprintf("the site has more than %d pages; see the option pages", c.pages)
}

// exhausted returns the limit that was reached, or "".
func (c *crawl) exhausted(visited int) string {
	switch {
	case visited >= c.pages:
		return c.tooManyPages()
	case c.read >= c.bytes:
		return fmt.Sprintf("the pages have more than %d MB; see the option megabytes", c.bytes>>20)
	case c.config.Now().Sub(c.began) >= c.duration:
		return fmt.Sprintf("reading the site takes more than %v; see the option minutes", c.duration)
	}
	return ""
}

// visit reads one page and queues its links. The item is zero if the page is no document.
func (c *crawl) visit(q queued) (source.Item, error) {
	address := q.url.String()
	known := c.cache[address]
	p, err := c.get(c.ctx, q.url, known)
	skip, skipped := source.AsSkip(err)
	isStart := address == c.start.String()
	switch {
	case skipped && skip.Reason == source.Unreadable:
		return source.Item{}, c.unread(q, known, skip.Detail)
	case skipped:
		return source.Item{}, skip
	case err != nil && (c.ctx.Err() != nil || isStart || errors.Is(err, source.ErrCredentials)):
		return source.Item{}, err
	case err != nil:
		return source.Item{}, c.unread(q, known, err.Error())
	}
	c.read += int64(len(p.data))
	switch {
	case p.status == http.StatusOK, p.status == http.StatusNotModified:
		return c.accept(q, p)
	case isStart:
		return source.Item{}, fmt.Errorf("the start page answers HTTP %d: %w", p.status, assay.ErrUnavailable)
	case p.status == http.StatusNotFound, p.status == http.StatusGone, 300 <= p.status && p.status < 400:
		return source.Item{}, nil // gone, or on another host
	}
	return source.Item{}, c.unread(q, known, fmt.Sprintf("the site answers HTTP %d", p.status))
}

// unread returns the skip of a page that cannot be read now. Its links are those of the sweep before;
// if they are not known, a part of the site is not seen.
func (c *crawl) unread(q queued, known cached, detail string) *source.Skip {
	address := q.url.String()
	if known.Version == "" && c.links {
		return &source.Skip{URI: address, Reason: source.Unreadable, Detail: detail, Folder: true}
	}
	c.next[address] = known
	c.follow(known.Links, q.depth)
	return &source.Skip{URI: address, Reason: source.Unreadable, Detail: detail}
}

func (c *crawl) follow(links []string, depth int) {
	if !c.links {
		return
	}
	for _, link := range links {
		if u, err := url.Parse(link); err == nil {
			c.add(u, depth+1)
		}
	}
}

// accept queues the links of a page and returns its item, or a zero one if the page is not to be
// indexed or is a copy of another.
func (c *crawl) accept(q queued, p page) (source.Item, error) {
	c.next[q.url.String()] = p.cached
	c.follow(p.Links, q.depth)
	if p.url.String() != q.url.String() { // redirected; the target is a page of its own
		c.add(p.url, q.depth)
		return source.Item{}, nil
	}
	if p.NoIndex || !readable(p.Media) {
		return source.Item{}, nil
	}
	if p.Canonical != "" && p.Canonical != p.url.String() {
		if u, err := url.Parse(p.Canonical); err == nil {
			c.add(u, q.depth)
		}
		return source.Item{}, nil
	}
	if p.status == http.StatusOK {
		c.keep(p.url.String(), p)
	}
	return p.item(), nil
}

// cachePath returns the file of the cache, or "" if there is none.
func (s *site) cachePath() string {
	if s.config.Dir == "" {
		return ""
	}
	return filepath.Join(s.config.Dir, "pages.json")
}

// loadCache returns what the sweep before remembered. A cache that cannot be read is lost without
// harm: all pages are then read again.
func (s *site) loadCache() map[string]cached {
	pages := map[string]cached{}
	if s.cachePath() == "" {
		return pages
	}
	data, err := os.ReadFile(s.cachePath())
	if err != nil || json.Unmarshal(data, &pages) != nil {
		return map[string]cached{}
	}
	return pages
}

func (s *site) saveCache(pages map[string]cached) error {
	if s.cachePath() == "" {
		return nil
	}
	if err := os.MkdirAll(s.config.Dir, 0o700); err != nil {
		return err
	}
	return durable.Write(s.cachePath(), 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(pages) })
}
