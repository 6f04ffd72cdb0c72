// Package feed reads the entries of an RSS, Atom or JSON feed as a source.
package feed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
)

// Kind returns the kind of source.
func Kind() source.Kind {
	return source.Kind{
		Name: "feed", Short: "the entries of an RSS, Atom or JSON feed", Target: "https://HOST/FEED",
		Help: `Reads one document from each entry: its own text or, with content=page, the page that it
links to. An entry is read again if it changes. Entries that the feed no longer lists stay.`,
		Options: []source.Option{
			{Name: "content", Default: "entry", Help: "entry: the text of the entry; page: the page that it links to"},
			source.AllowPrivateOption,
		},
		Credentials:  []source.Credential{{Name: "authorization", Env: "FEED_AUTHORIZATION", Help: `value of the header Authorization, such as "Bearer TOKEN"`, Optional: true}},
		KeepsMissing: true,
		Open:         open,
	}
}

type feed struct {
	config        source.Config
	address       *url.URL
	page          bool
	authorization string

	mu      sync.Mutex
	entries map[string]entry // of the last listing, by ID
}

func open(_ context.Context, c source.Config) (source.Source, error) {
	f := &feed{config: c.WithDefaults(), entries: map[string]entry{}}
	u, ok := source.WebAddress(c.Target)
	if !ok {
		return nil, fmt.Errorf("target %q is not the address of a feed: %w", c.Target, assay.ErrInvalid)
	}
	f.address = u
	switch c.Options["content"] {
	case "entry":
	case "page":
		f.page = true
	default:
		return nil, fmt.Errorf("option content is %q, want entry or page: %w", c.Options["content"], assay.ErrInvalid)
	}
	var err error
	f.authorization, err = f.config.Credential("authorization")
	return f, err
}

// A cursor is the state of the feed at the end of a listing.
type cursor struct {
	ETag         string            `json:"etag,omitempty"`
	LastModified string            `json:"last_modified,omitempty"`
	Versions     map[string]string `json:"versions"` // of the entries that were listed, by URI
}

func (f *feed) Changes(ctx context.Context, from string) iter.Seq2[source.Change, error] {
	return func(yield func(source.Change, error) bool) {
		var before cursor
		if from != "" && json.Unmarshal([]byte(from), &before) != nil {
			yield(source.Change{}, fmt.Errorf("feed %s: %w", f.address.Host, source.ErrCursor))
			return
		}
		entries, after, err := f.read(ctx, before)
		if err != nil {
			yield(source.Change{}, f.failed(ctx, err))
			return
		}
		for _, e := range entries {
			item := e.item(f.page)
			if before.Versions[item.URI] == item.Version {
				continue
			}
			if !yield(source.Change{Item: item}, nil) {
				return
			}
		}
		next, err := json.Marshal(after)
		yield(source.Change{Cursor: string(next)}, err)
	}
}

// Sweep yields the entries that the feed lists.
func (f *feed) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		entries, _, err := f.read(ctx, cursor{})
		if err != nil {
			yield(source.Item{}, f.failed(ctx, err))
			return
		}
		for _, e := range entries {
			if !yield(e.item(f.page), nil) {
				return
			}
		}
	}
}

func (f *feed) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("feed %s: %w", f.address.Host, err)
}

// read reads the feed, in its order and each entry once. If it has not changed since the cursor, it
// returns no entry and the same cursor.
func (f *feed) read(ctx context.Context, before cursor) ([]entry, cursor, error) {
	res, err := f.get(ctx, f.address.String(), before)
	if err != nil {
		return nil, before, err
	}
	if res.StatusCode == http.StatusNotModified && before.Versions != nil {
		return nil, before, res.Body.Close()
	}
	if res.StatusCode != http.StatusOK {
		if err := source.StatusError(res); err != nil {
			return nil, before, err
		}
		return nil, before, fmt.Errorf("HTTP %d: %w", res.StatusCode, assay.ErrUnavailable)
	}
	after := cursor{ETag: res.Header.Get("ETag"), LastModified: res.Header.Get("Last-Modified"), Versions: map[string]string{}}
	base := res.Request.URL
	data, err := f.config.ReadBody(f.address.String(), res)
	if skip, ok := source.AsSkip(err); ok {
		err = fmt.Errorf("%s: %w", skip.Detail, assay.ErrUnavailable)
	}
	if err != nil {
		return nil, before, err
	}
	all, err := parse(data, base)
	if err != nil {
		return nil, before, fmt.Errorf("%w: %w", err, assay.ErrUnavailable)
	}
	var entries []entry
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.entries)
	for _, e := range all {
		item := e.item(f.page)
		if _, twice := after.Versions[item.URI]; twice || item.URI == "" {
			continue
		}
		after.Versions[item.URI] = item.Version
		entries = append(entries, e)
		f.entries[item.URI] = e
	}
	return entries, after, nil
}

// get requests an address. Credentials are sent to the host of the feed only.
func (f *feed) get(ctx context.Context, address string, known cursor) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	r.Header.Set("User-Agent", "assay")
	if f.authorization != "" && r.URL.Scheme == f.address.Scheme && r.URL.Host == f.address.Host {
		r.Header.Set("Authorization", f.authorization)
	}
	if known.ETag != "" {
		r.Header.Set("If-None-Match", known.ETag)
	}
	if known.LastModified != "" {
		r.Header.Set("If-Modified-Since", known.LastModified)
	}
	return f.config.Do(r)
}

func (f *feed) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	if err := ctx.Err(); err != nil {
		return source.Content{}, err
	}
	if f.page {
		return f.fetchPage(ctx, item)
	}
	f.mu.Lock()
	e, ok := f.entries[item.URI]
	f.mu.Unlock()
	if !ok { // an item of an earlier listing
		if _, _, err := f.read(ctx, cursor{}); err != nil {
			return source.Content{}, f.failed(ctx, err)
		}
		f.mu.Lock()
		e, ok = f.entries[item.URI]
		f.mu.Unlock()
	}
	if !ok {
		return source.Content{}, &source.Skip{URI: item.URI, Reason: source.Vanished, Detail: "is no longer in the feed"}
	}
	return source.Content{Data: []byte(e.content), Type: e.media, Modified: item.Metadata[assay.MetaModified].Time, Read: f.config.Now()}, nil
}

// fetchPage returns the page that an entry links to.
func (f *feed) fetchPage(ctx context.Context, item source.Item) (source.Content, error) {
	res, err := f.get(ctx, item.Ref, cursor{})
	if err != nil {
		return source.Content{}, f.failed(ctx, err)
	}
	if res.StatusCode != http.StatusOK {
		skip := &source.Skip{URI: item.URI, Reason: source.Unreadable, Detail: fmt.Sprintf("its page answers HTTP %d", res.StatusCode)}
		if res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusGone {
			skip.Reason = source.Vanished
		}
		skip.Err = res.Body.Close()
		return source.Content{}, skip
	}
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	data, err := f.config.ReadBody(item.URI, res)
	return source.Content{Data: data, Type: strings.ToLower(strings.TrimSpace(media)), Read: f.config.Now()}, err
}

func (f *feed) Close() error { return nil }

// item describes an entry. Its URI is empty if the entry has neither an address nor an identity.
func (e entry) item(page bool) source.Item {
	item := source.Item{URI: cmp.Or(e.link, e.id), Ref: e.link, Name: "entry.html", Type: e.media, Metadata: assay.Metadata{}}
	if page {
		if item.URI = e.link; item.URI == "" {
			return source.Item{}
		}
		item.Type = ""
	} else if e.media == "text/plain" {
		item.Name = "entry.txt"
	}
	h := sha256.New()
	for _, part := range []string{e.title, e.link, e.media, e.content, e.author, e.modified.String()} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	item.Version = hex.EncodeToString(h.Sum(nil)[:16])
	if e.title != "" {
		item.Metadata[assay.MetaTitle] = assay.StringValue(e.title)
	}
	if e.author != "" {
		item.Metadata[assay.MetaAuthor] = assay.StringValue(e.author)
	}
	if !e.created.IsZero() {
		item.Metadata[assay.MetaCreated] = assay.TimeValue(e.created)
	}
	if !e.modified.IsZero() {
		item.Metadata[assay.MetaModified] = assay.TimeValue(e.modified)
	}
	return item
}
