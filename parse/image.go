package parse

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/gif"  // image.Decode
	_ "image/jpeg" // image.Decode
	_ "image/png"  // image.Decode
	"io"
	"strings"

	_ "golang.org/x/image/bmp"  // image.Decode
	_ "golang.org/x/image/tiff" // image.Decode
	_ "golang.org/x/image/webp" // image.Decode

	"github.com/assay-rag/assay"
)

// Bounds of an image.
const (
	maxPixels     = 40 << 20 // of one page; a page of A3 at 400 dpi has 31 million
	maxImagePages = 1000
	smallestText  = 8 // pixels of each side, below which an image cannot contain text
)

// isImage reports whether src is an image in a supported format.
func isImage(src *source) bool { return imageKind(src.data) != "" }

// imageKind returns the name of the image format that data starts with, or "".
func imageKind(data []byte) string {
	start := string(data[:min(len(data), 16)])
	switch {
	case strings.HasPrefix(start, "\x89PNG\r\n\x1a\n"):
		return "png"
	case strings.HasPrefix(start, "\xff\xd8\xff"):
		return "jpeg"
	case strings.HasPrefix(start, "GIF87a"), strings.HasPrefix(start, "GIF89a"):
		return "gif"
	case strings.HasPrefix(start, "II*\x00"), strings.HasPrefix(start, "MM\x00*"):
		return "tiff"
	case strings.HasPrefix(start, "BM") && len(start) == 16 && start[6:10] == "\x00\x00\x00\x00":
		return "bmp"
	case len(start) >= 12 && start[:4] == "RIFF" && start[8:12] == "WEBP":
		return "webp"
	}
	return ""
}

// parseImage recognises the text of an image, page by page.
func parseImage(src *source, b *builder) bool {
	if src.ocr == nil && !src.images {
		b.err = fmt.Errorf("an image; %s: %w", NeedsOCR, ErrNeedsProgram)
		return true
	}
	pages, err := imagePages(src.data)
	if err != nil {
		b.err = err
		return true
	}
	var failure error
	failed := 0
	for i, page := range pages {
		outcome, err := imagePage(b, page, i+1)
		if b.canceled() {
			return true
		}
		if err != nil {
			outcome.Outcome, outcome.Detail = assay.PageFailed, err.Error()
			failed, failure = failed+1, cmp.Or(failure, err)
		}
		b.addPage(outcome)
	}
	b.page = 0
	switch {
	case failed == len(pages):
		b.err = failure
	case len(b.blocks) == 0 && len(b.images) == 0:
		b.err = fmt.Errorf("no text is recognised in the image: %w", ErrEmpty)
	}
	return true
}

// imagePage writes the recognised text of a page.
func imagePage(b *builder, data io.ReadSeeker, number int) (assay.Page, error) {
	page := assay.Page{Number: number, Outcome: assay.PageNoText}
	if b.outOfTime() {
		return page, fmt.Errorf("%s: %w", notRead, ErrLimit)
	}
	img, err := decodeImage(data)
	if err != nil {
		return page, err
	}
	page.Width, page.Height = float32(img.Bounds().Dx()), float32(img.Bounds().Dy())
	if min(page.Width, page.Height) < smallestText {
		return page, nil
	}
	b.page = number
	if b.ocr != nil {
		words, err := b.recognize(toGray(img), 0)
		if err != nil {
			return page, err
		}
		if b.recognized(words, number, 1) {
			page.Outcome = assay.PageRecognized
		}
	}
	if b.wantImages {
		kind, data, err := encodeForModel(scaleForModel(img))
		if err != nil {
			return page, err
		}
		b.images = append(b.images, Image{After: len(b.blocks) - 1, Page: number, Type: kind, Data: data,
			Boxes: []assay.Rectangle{{Page: number, X1: page.Width, Y1: page.Height}}})
	}
	return page, nil
}

// decodeImage decodes an image within the limit of its size.
func decodeImage(data io.ReadSeeker) (image.Image, error) {
	config, format, err := image.DecodeConfig(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the image cannot be read: %v: %w", err, ErrDamaged)
	case config.Width <= 0 || config.Height <= 0 || config.Width > maxPixels/config.Height:
		return nil, fmt.Errorf("the image has %d × %d pixels, more than %d million: %w", config.Width, config.Height, maxPixels>>20, ErrLimit)
	}
	if _, err := data.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	img, _, err := image.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("the %s image cannot be read: %v: %w", format, err, ErrDamaged)
	}
	size := img.Bounds().Size()
	if size.X <= 0 || size.Y <= 0 || size.X > maxPixels/size.Y {
		return nil, fmt.Errorf("the image has %d × %d pixels: %w", size.X, size.Y, ErrLimit)
	}
	return img, nil
}

// toGray converts an image to grey, on white where it is transparent.
func toGray(img image.Image) *image.Gray {
	gray := image.NewGray(image.Rectangle{Max: img.Bounds().Size()})
	draw.Draw(gray, gray.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(gray, gray.Rect, img, img.Bounds().Min, draw.Over)
	return gray
}

// imagePages returns readers of the pages of an image, as images of one page each.
func imagePages(data []byte) ([]io.ReadSeeker, error) {
	if imageKind(data) != "tiff" {
		return []io.ReadSeeker{bytes.NewReader(data)}, nil
	}
	return tiffPages(data)
}

// tiffPages returns the pages of a TIFF: the same data with another offset of the first image file
// directory in the header (TIFF Revision 6.0, section 2).
func tiffPages(data []byte) ([]io.ReadSeeker, error) {
	if len(data) < 8 {
		return nil, fmt.Errorf("the TIFF ends in its header: %w", ErrDamaged)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if data[0] == 'M' {
		order = binary.BigEndian
	}
	var pages []io.ReadSeeker
	seen := map[uint32]bool{}
	at := order.Uint32(data[4:])
	for at != 0 && !seen[at] && uint64(at)+2 <= uint64(len(data)) {
		if len(pages) == maxImagePages {
			return nil, fmt.Errorf("the TIFF has more than %d pages: %w", maxImagePages, ErrLimit)
		}
		seen[at] = true
		page := &tiffPage{data: data, header: [8]byte(data)}
		order.PutUint32(page.header[4:], at)
		pages = append(pages, page)
		next := uint64(at) + 2 + 12*uint64(order.Uint16(data[at:]))
		if next+4 > uint64(len(data)) {
			break
		}
		at = order.Uint32(data[next:])
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("the TIFF has no pages: %w", ErrDamaged)
	}
	return pages, nil
}

// A tiffPage reads data with another header.
type tiffPage struct {
	header [8]byte
	data   []byte
	at     int64
}

// Read implements io.Reader.
func (p *tiffPage) Read(into []byte) (int, error) {
	n, err := p.ReadAt(into, p.at)
	p.at += int64(n)
	return n, err
}

// ReadAt implements io.ReaderAt, by which the decoder reads instead of copying the data.
func (p *tiffPage) ReadAt(into []byte, at int64) (int, error) {
	if at < 0 || at >= int64(len(p.data)) {
		return 0, io.EOF
	}
	n := copy(into, p.data[at:])
	if at < int64(len(p.header)) {
		copy(into[:n], p.header[at:])
	}
	if n < len(into) {
		return n, io.EOF
	}
	return n, nil
}

// Seek implements io.Seeker for io.SeekStart.
func (p *tiffPage) Seek(offset int64, whence int) (int64, error) {
	if whence != io.SeekStart || offset < 0 {
		return 0, errors.ErrUnsupported
	}
	p.at = offset
	return offset, nil
}
