package parse_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pdftest"
	"github.com/assay-rag/assay/parse"
)

// rendered returns the picture of a page, or the error.
func rendered(t *testing.T, in parse.Input) ([]byte, error) {
	t.Helper()
	var got parse.Parsed
	n := 0
	err := parse.Walk(t.Context(), in, func(p parse.Parsed) error { got, n = p, n+1; return nil })
	if err != nil || n != 1 || got.Path != "" || got.Document.Text != "" {
		t.Fatalf("Walk yields %d times, %q, %v", n, got.Path, err)
	}
	return got.Data, got.Err
}

func TestRender(t *testing.T) {
	t.Parallel()
	var f pdftest.File
	f.Page(200, 100).Text(20, 50, 12, false, "one")
	f.Attach("two.txt", []byte("an attachment"))
	wide := image.NewRGBA(image.Rect(0, 0, 400, 100))
	var picture bytes.Buffer
	if err := png.Encode(&picture, wide); err != nil {
		t.Fatal(err)
	}
	marks := []assay.Rectangle{{Page: 1, X0: 10, Y0: 10, X1: 60, Y1: 40}, {Page: 2, X1: 200, Y1: 100}, {Page: 1, X0: -1e30, Y0: 90, X1: 1e30, Y1: 95}}
	for name, c := range map[string]struct {
		data   []byte
		width  int
		size   image.Point
		marked image.Point
	}{
		"a PDF":                      {f.Bytes(), 400, image.Pt(400, 200), image.Pt(60, 40)},
		"an image":                   {picture.Bytes(), 200, image.Pt(200, 50), image.Pt(20, 15)},
		"an image is not enlarged":   {picture.Bytes(), 2000, image.Pt(400, 100), image.Pt(30, 30)},
		"the narrowest is one pixel": {f.Bytes(), 1, image.Pt(1, 1), image.Point{}},
	} {
		data, err := rendered(t, parse.Input{Data: c.data, Render: &parse.Rendering{Page: 1, Width: c.width, Marks: marks}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if img.Bounds().Size() != c.size {
			t.Errorf("%s: %v, want %v", name, img.Bounds().Size(), c.size)
		}
		if r, _, b, _ := img.At(c.marked.X, c.marked.Y).RGBA(); c.width > 1 && r == b {
			t.Errorf("%s: no mark at %v, which is %v", name, c.marked, img.At(c.marked.X, c.marked.Y))
		}
		if got := img.At(c.size.X-1, 0); c.width > 1 && got != (color.RGBA{255, 255, 255, 255}) && got != (color.NRGBA{255, 255, 255, 255}) {
			t.Errorf("%s: the corner is %v, want white", name, got)
		}
	}
}

func TestRenderFails(t *testing.T) {
	t.Parallel()
	var f pdftest.File
	f.Page(200, 100).Text(20, 50, 12, false, "one")
	good := f.Bytes()
	for name, c := range map[string]struct {
		data []byte
		r    parse.Rendering
		want error
	}{
		"no page 2":      {good, parse.Rendering{Page: 2, Width: 100}, parse.ErrEmpty},
		"page 0":         {good, parse.Rendering{Page: 0, Width: 100}, parse.ErrLimit},
		"too wide":       {good, parse.Rendering{Page: 1, Width: parse.MaxRenderWidth + 1}, parse.ErrLimit},
		"half a PDF":     {[]byte("%PDF-1.7\n1 0 obj <<"), parse.Rendering{Page: 1, Width: 100}, parse.ErrDamaged},
		"text":           {[]byte("just text"), parse.Rendering{Page: 1, Width: 100}, parse.ErrBinary},
		"half an image":  {[]byte("\x89PNG\r\n\x1a\n\x00\x00"), parse.Rendering{Page: 1, Width: 100}, parse.ErrDamaged},
		"an empty file":  {nil, parse.Rendering{Page: 1, Width: 100}, parse.ErrBinary},
		"page of images": {[]byte("\x89PNG\r\n\x1a\n\x00\x00"), parse.Rendering{Page: 9, Width: 100}, parse.ErrEmpty},
	} {
		data, err := rendered(t, parse.Input{Data: c.data, Render: &c.r})
		if !errors.Is(err, c.want) || data != nil {
			t.Errorf("%s: %d bytes, %v, want %v", name, len(data), err, c.want)
		}
	}
}
