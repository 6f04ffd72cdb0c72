package pdfium

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"math"

	"github.com/tetratelabs/wazero/api"
)

// maxPixels is the most pixels of a rendered page: A2 at 300 dpi. Larger pages are rendered at a
// lower resolution.
const maxPixels = 35_000_000

// A Rendering is a page as an image.
type Rendering struct {
	Image *image.Gray
	Scale float32 // pixels per point
}

// A ColorRendering is a page as a coloured image.
type ColorRendering struct {
	Image *image.RGBA // opaque
	Scale float32     // pixels per point
}

// Render renders a page, with its annotations, in grey on white. The index starts at 0; dpi is at
// least 1. The resolution is lower for a page that would have more than 35 million pixels.
func (d *Document) Render(ctx context.Context, index int, dpi float32) (out Rendering, err error) {
	err = d.renderPage(ctx, index, dpi, maxPixels, func(ctx context.Context, in *instance, page handle, width, height int, scale float32) (err error) {
		out.Scale = scale
		out.Image, err = in.render(ctx, page, width, height)
		return err
	})
	return out, err
}

// RenderColor is Render in colour, for a page of at most a quarter of the pixels.
func (d *Document) RenderColor(ctx context.Context, index int, dpi float32) (out ColorRendering, err error) {
	err = d.renderPage(ctx, index, dpi, maxPixels/4, func(ctx context.Context, in *instance, page handle, width, height int, scale float32) (err error) {
		out.Scale = scale
		out.Image, err = in.renderColor(ctx, page, width, height)
		return err
	})
	return out, err
}

// RenderWidth is RenderColor for a picture that is width pixels wide, or less if it would have more than
// most pixels.
func (d *Document) RenderWidth(ctx context.Context, index, width, most int) (out ColorRendering, err error) {
	fit := func(points float32) float32 { return float32(max(width, 1)) / points }
	err = d.renderScaled(ctx, index, fit, min(float32(most), maxPixels/4), func(ctx context.Context, in *instance, page handle, width, height int, scale float32) (err error) {
		out.Scale = scale
		out.Image, err = in.renderColor(ctx, page, width, height)
		return err
	})
	return out, err
}

// renderPage calls draw with a page, its size in pixels and the pixels per point.
func (d *Document) renderPage(ctx context.Context, index int, dpi, most float32, draw func(context.Context, *instance, handle, int, int, float32) error) error {
	return d.renderScaled(ctx, index, func(float32) float32 { return max(dpi, 1) / 72 }, most, draw)
}

// renderScaled is renderPage for the pixels per point that scaleOf returns for a width in points.
func (d *Document) renderScaled(ctx context.Context, index int, scaleOf func(width float32) float32, most float32, draw func(context.Context, *instance, handle, int, int, float32) error) error {
	return d.withPage(ctx, index, func(ctx context.Context, in *instance, page handle) error {
		width := api.DecodeF32(in.get("FPDF_GetPageWidthF", uint64(page)))
		height := api.DecodeF32(in.get("FPDF_GetPageHeightF", uint64(page)))
		area := float64(width) * float64(height)
		if !(area > 0) || math.IsInf(area, 0) {
			return fmt.Errorf("%w: it is %g × %g points large", ErrPage, width, height)
		}
		scale := min(scaleOf(width), float32(math.Sqrt(float64(most)/area)))
		err := draw(ctx, in, page, pixels(width*scale), pixels(height*scale), scale)
		return cmp.Or(in.err, err)
	})
}

func pixels(n float32) int { return max(1, min(int(math.Round(float64(n))), maxPixels)) }

// Formats and flags of FPDFBitmap_CreateEx and FPDF_RenderPageBitmap.
const (
	formatGray      = 1
	formatBGRx      = 3
	withAnnotations = 0x01
	inGray          = 0x08
)

// render draws a page on a grey bitmap.
func (in *instance) render(ctx context.Context, page handle, width, height int) (*image.Gray, error) {
	img := image.NewGray(image.Rectangle{})
	err := in.bitmap(ctx, page, width, height, formatGray, withAnnotations|inGray, func(data []byte, stride int) {
		img = image.NewGray(image.Rect(0, 0, width, height))
		for y := range height {
			copy(img.Pix[y*img.Stride:], data[y*stride:y*stride+width])
		}
	})
	return img, err
}

// renderColor draws a page on a coloured bitmap.
func (in *instance) renderColor(ctx context.Context, page handle, width, height int) (*image.RGBA, error) {
	img := image.NewRGBA(image.Rectangle{})
	err := in.bitmap(ctx, page, width, height, formatBGRx, withAnnotations, func(data []byte, stride int) {
		img = image.NewRGBA(image.Rect(0, 0, width, height))
		for y := range height {
			from, to := data[y*stride:y*stride+4*width], img.Pix[y*img.Stride:]
			for x := 0; x < len(from); x += 4 {
				to[x], to[x+1], to[x+2], to[x+3] = from[x+2], from[x+1], from[x], 0xff
			}
		}
	})
	return img, err
}

// bitmap draws a page on a white bitmap in a format and passes its lines to take, each of stride
// bytes.
func (in *instance) bitmap(ctx context.Context, page handle, width, height, format, flags int, take func(data []byte, stride int)) error {
	const white = 0xffffffff
	if int64(width)*int64(height) > 2*maxPixels {
		return fmt.Errorf("%w: an image of %d × %d pixels", ErrTooLarge, width, height)
	}
	bitmap := in.call(ctx, "FPDFBitmap_CreateEx", uint64(width), uint64(height), uint64(format), 0, 0)
	if bitmap == 0 {
		return cmp.Or(in.err, ErrMemory)
	}
	in.call(ctx, "FPDFBitmap_FillRect", bitmap, 0, 0, uint64(width), uint64(height), white)
	in.call(ctx, "FPDF_RenderPageBitmap", bitmap, uint64(page), 0, 0, uint64(width), uint64(height), 0, uint64(flags))
	stride := int(in.get("FPDFBitmap_GetStride", bitmap))
	from := handle(in.get("FPDFBitmap_GetBuffer", bitmap))
	least := width
	if format == formatBGRx {
		least = 4 * width
	}
	if data := in.read(from, stride*height); in.err == nil && stride >= least {
		take(data, stride)
	}
	in.call(ctx, "FPDFBitmap_Destroy", bitmap)
	return in.err
}
