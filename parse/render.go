package parse

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"

	"golang.org/x/image/draw"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pdfium"
)

// A Rendering is a picture of a page that Input.Render asks for.
type Rendering struct {
	Page  int // from 1
	Width int // of the picture in pixels, 1 to MaxRenderWidth; the picture of a large page may be narrower

	// Marks are parts of the page that are marked, in the unit of assay.Box.
	Marks []assay.Rectangle
}

// MaxRenderWidth is the most pixels that the picture of a page is wide.
const MaxRenderWidth = 2000

// maxRenderPixels is the most pixels of the picture of a page: that of an A4 page is 2,000 wide and
// 2,830 high.
const maxRenderPixels = 8_000_000

// RenderedType is the media type of the picture of a page.
const RenderedType = "image/png"

// OriginalType returns the media type of the source of a document whose pages can be rendered, or ""
// if they cannot.
func (d *Document) OriginalType(data []byte) string {
	kind := imageKind(data)
	switch {
	case d.Type == "pdf":
		return "application/pdf"
	case d.Type == "image" && kind != "":
		return "image/" + kind
	}
	return ""
}

// render returns the picture of a page as a PNG.
func render(ctx context.Context, in Input) ([]byte, error) {
	r := *in.Render
	if r.Page < 1 || r.Width < 1 || r.Width > MaxRenderWidth {
		return nil, fmt.Errorf("page %d in %d pixels: %w", r.Page, r.Width, ErrLimit)
	}
	draw := renderImage
	if src := newSource(in); isPDF(src) {
		draw = renderPDF
	}
	img, scale, err := draw(ctx, in, r)
	if err != nil {
		return nil, err
	}
	mark(img, r.Marks, scale, r.Page)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// renderPDF draws a page of a PDF, and returns the pixels per point.
func renderPDF(ctx context.Context, in Input, r Rendering) (*image.RGBA, float32, error) {
	doc, err := pdfium.Open(ctx, in.Data, in.Passwords...)
	if err != nil {
		return nil, 0, pdfError(ctx, err)
	}
	defer doc.Close()
	if r.Page > doc.PageCount() {
		return nil, 0, fmt.Errorf("page %d of %d: %w", r.Page, doc.PageCount(), ErrEmpty)
	}
	out, err := doc.RenderWidth(ctx, r.Page-1, r.Width, maxRenderPixels)
	if err != nil {
		return nil, 0, pdfError(ctx, err)
	}
	return out.Image, out.Scale, nil
}

// renderImage draws a page of an image, and returns the pixels per pixel of the source. A page that is
// narrower than wanted is not enlarged.
func renderImage(_ context.Context, in Input, r Rendering) (*image.RGBA, float32, error) {
	if !isImage(newSource(in)) {
		return nil, 0, fmt.Errorf("it has no pages that can be drawn: %w", ErrBinary)
	}
	pages, err := imagePages(in.Data)
	if err != nil {
		return nil, 0, err
	}
	if r.Page > len(pages) {
		return nil, 0, fmt.Errorf("page %d of %d: %w", r.Page, len(pages), ErrEmpty)
	}
	img, err := decodeImage(pages[r.Page-1])
	if err != nil {
		return nil, 0, err
	}
	size := img.Bounds().Size()
	scale := min(1, float64(r.Width)/float64(size.X), math.Sqrt(maxRenderPixels/(float64(size.X)*float64(size.Y))))
	width, height := max(1, int(float64(size.X)*scale+.5)), max(1, int(float64(size.Y)*scale+.5))
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(out, out.Rect, image.White, image.Point{}, draw.Src)
	draw.ApproxBiLinear.Scale(out, out.Rect, img, img.Bounds(), draw.Over, nil)
	return out, float32(scale), nil
}

// The colours of a mark, which is transparent as that of a pen on paper, with an edge that does not
// depend on its colour.
var (
	markColor = color.RGBA{255, 226, 110, 255}
	markEdge  = color.RGBA{176, 116, 0, 255}
)

// mark marks parts of a page.
func mark(img *image.RGBA, marks []assay.Rectangle, scale float32, page int) {
	const margin, thick = 2, 2 // pixels
	var areas []image.Rectangle
	for _, m := range marks {
		if m.Page != page {
			continue
		}
		at := func(v float32, round func(float64) float64, more int) int {
			return int(max(-1e6, min(1e6, round(float64(v*scale))))) + more
		}
		area := image.Rect(at(m.X0, math.Floor, -margin), at(m.Y0, math.Floor, -margin), at(m.X1, math.Ceil, margin), at(m.Y1, math.Ceil, margin))
		if area = area.Intersect(img.Rect); !area.Empty() && !slices.Contains(areas, area) {
			areas = append(areas, area)
		}
	}
	for _, a := range areas {
		tint(img, a)
	}
	for _, a := range areas {
		edge := image.NewUniform(markEdge)
		draw.Draw(img, image.Rect(a.Min.X, a.Min.Y, a.Min.X+thick, a.Max.Y).Intersect(a), edge, image.Point{}, draw.Src)
	}
}

// tint multiplies an area by the colour of a mark, so that dark letters stay dark.
func tint(img *image.RGBA, area image.Rectangle) {
	for y := area.Min.Y; y < area.Max.Y; y++ {
		line := img.Pix[img.PixOffset(area.Min.X, y):img.PixOffset(area.Max.X, y)]
		for x := 0; x < len(line); x += 4 {
			line[x] = uint8(int(line[x]) * int(markColor.R) / 255)
			line[x+1] = uint8(int(line[x+1]) * int(markColor.G) / 255)
			line[x+2] = uint8(int(line[x+2]) * int(markColor.B) / 255)
		}
	}
}
