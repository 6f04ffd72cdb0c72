package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"sync"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/internal/pdftest"
	"github.com/assay-rag/assay/parse"
)

func boilerPDF() []byte {
	var f pdftest.File
	p := f.Page(300, 400)
	p.Text(30, 360, 18, true, "The boiler")
	p.Text(30, 200, 11, false, "The boiler is called Hestia.")
	f.Page(300, 400).Text(30, 360, 11, false, "The second page.")
	return f.Bytes()
}

// putPDF stores a document with an original as an editor, and returns it.
func putPDF(t *testing.T, s *Session, name string, data []byte, sidecar string) assay.Document {
	t.Helper()
	u := Upload{Collection: "c", Name: name, Body: bytes.NewReader(data)}
	if sidecar != "" {
		u.Sidecar = []byte(sidecar)
	}
	done, err := s.Upload(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Document(t.Context(), done.Documents[len(done.Documents)-1].ID)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func decodePage(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestPageImage(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme", "globex")
	staff := assay.Principal{User: "ann", Groups: []string{"staff"}}
	ann := mustSession(t, h, roleGrant("acme", staff, identity.Editor))
	bob := mustSession(t, h, roleGrant("acme", assay.Principal{User: "bob"}, identity.Editor))
	zed := mustSession(t, h, roleGrant("globex", staff, identity.Admin))
	d := putPDF(t, ann, "boiler.pdf", boilerPDF(), `{"acl": ["group:staff"]}`)
	ctx := t.Context()

	at := strings.Index(d.Text, "is called")
	plain, err := ann.PageImage(ctx, d.ID, d.Version, 1, PageImageOptions{Width: 600})
	if err != nil {
		t.Fatal(err)
	}
	marked, err := ann.PageImage(ctx, d.ID, d.Version, 1, PageImageOptions{Width: 600, Spans: []Span{{at, at + 9}}})
	if err != nil {
		t.Fatal(err)
	}
	a, b := decodePage(t, plain.PNG), decodePage(t, marked.PNG)
	if a.Bounds() != image.Rect(0, 0, 600, 800) || b.Bounds() != a.Bounds() {
		t.Errorf("the pictures are %v and %v", a.Bounds(), b.Bounds())
	}
	var changed image.Rectangle
	for y := range 800 {
		for x := range 600 {
			if a.At(x, y) != b.At(x, y) {
				changed = changed.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	if line := image.Rect(50, 370, 400, 420); changed.Empty() || !changed.In(line) {
		t.Errorf("the mark is at %v, want it within %v", changed, line)
	}
	if again, err := ann.PageImage(ctx, d.ID, d.Version, 1, PageImageOptions{Width: 600, Unless: plain.Tag}); err != nil || again.PNG != nil || again.Tag != plain.Tag {
		t.Errorf("a picture that the caller has: %d bytes, %v", len(again.PNG), err)
	}
	for name, c := range map[string]struct {
		s       *Session
		version string
		page    int
		opts    PageImageOptions
		want    error
	}{
		"another user":      {bob, d.Version, 1, PageImageOptions{Width: 600}, assay.ErrNotFound},
		"another tenant":    {zed, d.Version, 1, PageImageOptions{Width: 600}, assay.ErrNotFound},
		"with the tag":      {bob, d.Version, 1, PageImageOptions{Width: 600, Unless: plain.Tag}, assay.ErrNotFound},
		"no version":        {ann, "none", 1, PageImageOptions{}, assay.ErrNotFound},
		"no page":           {ann, d.Version, 3, PageImageOptions{}, assay.ErrNotFound},
		"page 0":            {ann, d.Version, 0, PageImageOptions{}, assay.ErrInvalid},
		"too wide":          {ann, d.Version, 1, PageImageOptions{Width: MaxPageWidth + 1}, assay.ErrInvalid},
		"a span backwards":  {ann, d.Version, 1, PageImageOptions{Spans: []Span{{5, 2}}}, assay.ErrInvalid},
		"a span far behind": {ann, d.Version, 1, PageImageOptions{Spans: []Span{{1 << 40, 1 << 41}}}, nil},
		"too many spans":    {ann, d.Version, 1, PageImageOptions{Spans: make([]Span, maxPageSpans+1)}, assay.ErrInvalid},
	} {
		if _, err := c.s.PageImage(ctx, d.ID, c.version, c.page, c.opts); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if o, err := ann.Original(ctx, d.ID, d.Version); err != nil || !bytes.Equal(o.Data, boilerPDF()) || o.Media != "application/pdf" {
		t.Errorf("the original: %d bytes of %s, %v", len(o.Data), o.Media, err)
	}

	// A picture of an old version, after the document was replaced, then hidden, then deleted.
	putPDF(t, ann, "boiler.pdf", []byte("# no pages any more"), `{"acl": ["group:staff"]}`)
	if _, err := ann.PageImage(ctx, d.ID, d.Version, 2, PageImageOptions{}); err != nil {
		t.Errorf("an old version: %v", err)
	}
	if list, err := ann.DocumentVersions(ctx, d.ID); err != nil || len(list) != 2 || list[1].Original != "application/pdf" || list[0].Original != "" {
		t.Errorf("versions: %v, %v", list, err)
	}
	if err := ann.DeleteDocuments(ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := ann.PageImage(ctx, d.ID, d.Version, 1, PageImageOptions{Width: 600}); err != nil {
		t.Errorf("a version of a deleted document: %v", err)
	}
	if _, err := bob.PageImage(ctx, d.ID, d.Version, 1, PageImageOptions{Width: 600}); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("another user, after it was deleted: %v", err)
	}
}

// TestPageImageFails checks that a file on which the drawing fails gives an error that says so, and that
// it is not drawn again at once.
func TestPageImageFails(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	draws := 0
	walk := func(ctx context.Context, in parse.Input, yield func(parse.Parsed) error) error {
		if in.Render == nil {
			return parse.Walk(ctx, in, yield)
		}
		mu.Lock()
		defer mu.Unlock()
		draws++
		if draws > 1 {
			return parse.Walk(ctx, in, yield)
		}
		return yield(parse.Parsed{Err: fmt.Errorf("drawing took more than 30s: %w", parse.ErrLimit)})
	}
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true, Walk: walk}}, "acme")
	ann := mustSession(t, h, roleGrant("acme", assay.Principal{User: "ann"}, identity.Editor))
	d := putPDF(t, ann, "boiler.pdf", boilerPDF(), "")
	for range 2 {
		_, err := ann.PageImage(t.Context(), d.ID, d.Version, 1, PageImageOptions{})
		if !errors.Is(err, assay.ErrNotFound) || !strings.Contains(err.Error(), "more than 30s") {
			t.Errorf("a page that cannot be drawn: %v", err)
		}
	}
	if draws != 1 {
		t.Errorf("drawn %d times, want 1", draws)
	}
	if _, err := ann.PageImage(t.Context(), d.ID, d.Version, 2, PageImageOptions{}); err != nil {
		t.Errorf("another page: %v", err)
	}
}

func TestPageImagesKept(t *testing.T) {
	t.Parallel()
	p := newPageImages()
	draws := 0
	get := func(key string, size int) {
		t.Helper()
		if png, err := p.get(t.Context(), key, func() ([]byte, error) { draws++; return make([]byte, size), nil }); err != nil || len(png) != size {
			t.Fatalf("%s: %d bytes, %v", key, len(png), err)
		}
	}
	get("a", 6<<20)
	get("b", 6<<20)
	get("a", 6<<20)
	get("c", 6<<20) // drops b
	get("a", 6<<20)
	if draws != 3 {
		t.Errorf("drawn %d times, want 3", draws)
	}
	get("b", 6<<20)
	get("large", pageCacheBytes+1)
	get("large", pageCacheBytes+1)
	if draws != 6 || p.bytes > pageCacheBytes || p.order.Len() != len(p.byKey) {
		t.Errorf("drawn %d times, %d bytes are kept", draws, p.bytes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.turns <- struct{}{}
	p.turns <- struct{}{}
	if _, err := p.get(ctx, "d", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a turn: %v", err)
	}
}
