package engine

import (
	"cmp"
	linked "container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
)

// Bounds of the pictures of pages.
const (
	DefaultPageWidth = 1000 // pixels
	MaxPageWidth     = parse.MaxRenderWidth
	maxPageSpans     = 50
	pagesAtOnce      = 2        // pictures that an engine draws at a time
	pageCacheBytes   = 16 << 20 // of pictures that an engine keeps
)

// PageImageOptions are the options of PageImage. The zero value is a picture without marks.
type PageImageOptions struct {
	Width int // pixels, at most MaxPageWidth; 0: DefaultPageWidth

	// Spans are parts of the text of the version. The blocks that they lie in are marked.
	Spans []Span

	// Unless is the Tag of a picture that the caller has. If that is the same one, PNG is nil.
	Unless string
}

// A Span is the bytes [Start, End) of a text.
type Span struct{ Start, End int }

// A PageImage is the picture of a page.
type PageImage struct {
	PNG []byte
	Tag string // identifies the picture
}

// PageImage returns a picture of a page of a PDF or an image, as the file was when the version of the
// document was read. The page is drawn by Config.Walk, within its limits of time and memory.
//
// The error is assay.ErrNotFound if principal may not see the document now, there is no such version or
// page, or the page cannot be drawn, and then says why; and assay.ErrInvalid if the options are wrong.
func (e *Engine) PageImage(ctx context.Context, principal assay.Principal, id, version string, page int, opts PageImageOptions) (PageImage, error) {
	if err := e.checkVisible(ctx, principal, id); err != nil {
		return PageImage{}, err
	}
	opts.Width = cmp.Or(opts.Width, DefaultPageWidth)
	if err := opts.check(page); err != nil {
		return PageImage{}, err
	}
	key := pageKey(id, version, page, opts)
	if opts.Unless == key {
		return PageImage{Tag: key}, nil
	}
	png, err := e.pageImages.get(ctx, key, func() ([]byte, error) { return e.drawPage(ctx, id, version, page, opts) })
	return PageImage{PNG: png, Tag: key}, err
}

func (o PageImageOptions) check(page int) error {
	switch {
	case page < 1:
		return fmt.Errorf("page %d: the first is 1: %w", page, assay.ErrInvalid)
	case o.Width < 1 || o.Width > MaxPageWidth:
		return fmt.Errorf("a picture %d pixels wide, want 1 to %d: %w", o.Width, MaxPageWidth, assay.ErrInvalid)
	case len(o.Spans) > maxPageSpans:
		return fmt.Errorf("%d spans to mark, want at most %d: %w", len(o.Spans), maxPageSpans, assay.ErrInvalid)
	case slices.ContainsFunc(o.Spans, func(s Span) bool { return s.Start < 0 || s.End < s.Start }):
		return fmt.Errorf("a span to mark ends before it starts: %w", assay.ErrInvalid)
	}
	return nil
}

// pageKey identifies a picture among those of a tenant.
func pageKey(id, version string, page int, o PageImageOptions) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s %q %q %d %d %v", parse.Version, id, version, page, o.Width, o.Spans))
	return hex.EncodeToString(h[:16])
}

// errNoPicture is the reason that there is no picture of a page. It is kept like the picture.
type errNoPicture struct{ reason error }

func (e errNoPicture) Error() string { return e.reason.Error() }

func (e errNoPicture) Is(target error) bool { return target == assay.ErrNotFound }

// drawPage draws a page.
func (e *Engine) drawPage(ctx context.Context, id, version string, page int, o PageImageOptions) ([]byte, error) {
	d, err := e.content.Version(ctx, id, version)
	if err != nil {
		return nil, err
	}
	original, err := e.content.Original(ctx, id, version)
	if errors.Is(err, assay.ErrNotFound) {
		return nil, errNoPicture{errors.New("there are no pictures of the pages of this version, because its file is not kept")}
	}
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(d.Structure.Pages, func(p assay.Page) bool { return p.Number == page }) {
		return nil, errNoPicture{fmt.Errorf("there is no page %d of %d", page, len(d.Structure.Pages))}
	}
	r := parse.Rendering{Page: page, Width: o.Width}
	for _, s := range o.Spans {
		r.Marks = append(r.Marks, d.Structure.Rectangles(s.Start, s.End)...)
	}
	r.Marks = slices.DeleteFunc(r.Marks, func(m assay.Rectangle) bool { return m.Page != page })
	return e.render(ctx, original, &r)
}

// render draws a page of an original, by the function that parses documents.
func (e *Engine) render(ctx context.Context, original assay.Original, r *parse.Rendering) (png []byte, err error) {
	walk := e.config.Walk
	if walk == nil {
		walk = parse.Walk
	}
	failed := errors.New("the page was not drawn") // by a Config.Walk that knows nothing of pictures
	err = walk(ctx, parse.Input{Type: original.Media, Data: original.Data, Render: r}, func(p parse.Parsed) error {
		if p.Path == "" {
			png, failed = p.Data, p.Err
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case failed != nil:
		return nil, errNoPicture{failed}
	case len(png) == 0:
		return nil, errNoPicture{fmt.Errorf("page %d has no picture", r.Page)}
	}
	return png, nil
}

// pageImages are the pictures of pages that were drawn last, with the reasons of those that could not
// be. It is safe for concurrent use.
type pageImages struct {
	turns chan struct{} // one element for each picture that is being drawn

	mu    sync.Mutex
	bytes int
	order *linked.List // of *pageEntry, the last used first
	byKey map[string]*linked.Element
}

type pageEntry struct {
	key string
	png []byte
	err error // an errNoPicture, or nil
	at  time.Time
}

// failureKept is how long the reason is kept that a page could not be drawn, which may be the load of
// this machine.
const failureKept = 5 * time.Minute

// size is what an entry counts in the limit of bytes.
func (p *pageEntry) size() int { return len(p.png) + 1<<10 }

func newPageImages() *pageImages {
	return &pageImages{turns: make(chan struct{}, pagesAtOnce), order: linked.New(), byKey: map[string]*linked.Element{}}
}

// get returns the picture with a key, which draw makes unless it is kept. It waits while too many are
// drawn.
func (p *pageImages) get(ctx context.Context, key string, draw func() ([]byte, error)) ([]byte, error) {
	if e := p.kept(key); e != nil {
		return e.png, e.err
	}
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.turns }()
	if e := p.kept(key); e != nil { // drawn while this call waited
		return e.png, e.err
	}
	png, err := draw()
	if _, final := errors.AsType[errNoPicture](err); err == nil || final {
		p.keep(&pageEntry{key, png, err, time.Now()})
	}
	return png, err
}

func (p *pageImages) kept(key string) *pageEntry {
	p.mu.Lock()
	defer p.mu.Unlock()
	element := p.byKey[key]
	if element == nil {
		return nil
	}
	e := element.Value.(*pageEntry)
	if e.err != nil && time.Since(e.at) > failureKept {
		p.drop(element)
		return nil
	}
	p.order.MoveToFront(element)
	return e
}

// keep keeps an entry and drops those that were used least recently.
func (p *pageImages) keep(e *pageEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey[e.key] != nil || e.size() > pageCacheBytes {
		return
	}
	p.byKey[e.key] = p.order.PushFront(e)
	for p.bytes += e.size(); p.bytes > pageCacheBytes; {
		p.drop(p.order.Back())
	}
}

// drop forgets an entry.
func (p *pageImages) drop(element *linked.Element) {
	e := p.order.Remove(element).(*pageEntry)
	delete(p.byKey, e.key)
	p.bytes -= e.size()
}

// PageImage is Engine.PageImage.
func (s *Session) PageImage(ctx context.Context, id, version string, page int, opts PageImageOptions) (PageImage, error) {
	return call(ctx, s, "PageImage", func(c *sessionCall) (PageImage, error) {
		return c.engine.PageImage(ctx, c.principal, id, version, page, opts)
	})
}
