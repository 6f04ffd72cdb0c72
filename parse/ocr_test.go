package parse

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/tiff"

	"github.com/assay-rag/assay"
)

// installedOCR returns the installed tesseract, or skips the test.
func installedOCR(t testing.TB) *OCR {
	t.Helper()
	ocr, err := FindOCR(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if ocr == nil {
		t.Skip("tesseract is not installed")
	}
	return ocr
}

// drawText returns an image of lines of text in a size in pixels.
func drawText(t testing.TB, size float64, lines ...string) *image.RGBA {
	t.Helper()
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		t.Fatal(err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72})
	if err != nil {
		t.Fatal(err)
	}
	img := image.NewRGBA(image.Rect(0, 0, 1200, 120+int(size*1.5)*len(lines)))
	draw.Draw(img, img.Rect, image.White, image.Point{}, draw.Src)
	d := font.Drawer{Dst: img, Src: image.Black, Face: face}
	for i, line := range lines {
		d.Dot = fixed.P(60, 90+int(size*1.5)*i)
		d.DrawString(line)
	}
	return img
}

func encodePNG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestImage recognises a text in each format of image, with boxes inside the image.
func TestImage(t *testing.T) {
	ocr := installedOCR(t)
	img := drawText(t, 36, "Employees receive thirty days of leave each", "year. Unused days lapse in March.")
	var asJPEG, asTIFF bytes.Buffer
	if err := jpeg.Encode(&asJPEG, img, nil); err != nil {
		t.Fatal(err)
	}
	if err := tiff.Encode(&asTIFF, img, nil); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"a.png": encodePNG(t, img), "a.jpg": asJPEG.Bytes(), "a.tif": asTIFF.Bytes()} {
		t.Run(name, func(t *testing.T) {
			doc, err := Parse(t.Context(), Input{Name: name, Data: data, OCR: ocr})
			if err != nil {
				t.Fatal(err)
			}
			const want = "Employees receive thirty days of leave each year. Unused days lapse in March."
			if doc.Text != want || doc.Type != "image" {
				t.Errorf("%s %q, want %q", doc.Type, doc.Text, want)
			}
			if len(doc.Pages) != 1 || doc.Pages[0].Outcome != assay.PageRecognized {
				t.Errorf("pages %+v", doc.Pages)
			}
			if len(doc.Provenance) != 1 || doc.Provenance[0].Confidence < .5 || doc.Provenance[0].End != len(doc.Text) {
				t.Errorf("provenance %+v", doc.Provenance)
			}
			if len(doc.Boxes) != 1 || doc.Boxes[0].X0 < 40 || doc.Boxes[0].X1 > 1200 || doc.Boxes[0].Page != 1 {
				t.Errorf("boxes %+v", doc.Boxes)
			}
			if len(doc.Anchors) != 1 || doc.Anchors[0].Page != 1 {
				t.Errorf("anchors %+v", doc.Anchors)
			}
		})
	}
}

func TestImageWithout(t *testing.T) {
	data := encodePNG(t, drawText(t, 36, "text"))
	_, err := Parse(t.Context(), Input{Name: "a.png", Data: data})
	if !errors.Is(err, ErrNeedsProgram) || !strings.Contains(err.Error(), "tesseract") {
		t.Errorf("without tesseract: %v", err)
	}
	ocr := installedOCR(t)
	blank := image.NewGray(image.Rect(0, 0, 300, 300))
	draw.Draw(blank, blank.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
	if _, err := Parse(t.Context(), Input{Name: "a.png", Data: encodePNG(t, blank), OCR: ocr}); !errors.Is(err, ErrEmpty) {
		t.Errorf("a blank image: %v", err)
	}
	if _, err := Parse(t.Context(), Input{Name: "a.png", Data: data[:len(data)/2], OCR: ocr}); !errors.Is(err, ErrDamaged) {
		t.Errorf("half an image: %v", err)
	}
	huge := bytes.Clone(data)
	binary.BigEndian.PutUint32(huge[16:], 1<<20) // the width in IHDR
	if _, err := Parse(t.Context(), Input{Name: "a.png", Data: huge, OCR: ocr}); !errors.Is(err, ErrLimit) && !errors.Is(err, ErrDamaged) {
		t.Errorf("a huge image: %v", err)
	}
}

// multiPageTIFF returns a TIFF whose pages share an image's data and have a directory each.
func multiPageTIFF(t testing.TB, img image.Image, pages int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tiff.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	order := binary.LittleEndian
	first := order.Uint32(data[4:])
	size := 2 + 12*uint32(order.Uint16(data[first:]))
	directory := bytes.Clone(data[first : first+size])
	for link := first + size; pages > 1; pages-- {
		order.PutUint32(data[link:], uint32(len(data)))
		link = uint32(len(data)) + size
		data = append(append(data, directory...), 0, 0, 0, 0)
	}
	return data
}

func TestTIFFPages(t *testing.T) {
	img := drawText(t, 36, "Each page says the same words.")
	doc, err := Parse(t.Context(), Input{Name: "a.tiff", Data: multiPageTIFF(t, img, 3), OCR: installedOCR(t)})
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Pages) != 3 || strings.Count(doc.Text, "same words") != 3 {
		t.Errorf("%d pages: %q", len(doc.Pages), doc.Text)
	}
	d := assay.Document{Text: doc.Text, Anchors: doc.Anchors}
	if _, page := d.Position(len(doc.Text) - 1); page != 3 {
		t.Errorf("the end is on page %d, want 3", page)
	}
	loop := multiPageTIFF(t, img, 2)
	first := binary.LittleEndian.Uint32(loop[4:])
	binary.LittleEndian.PutUint32(loop[len(loop)-4:], first)
	if pages, err := tiffPages(loop); err != nil || len(pages) != 2 {
		t.Errorf("directories in a loop: %d pages, %v", len(pages), err)
	}
}

func TestParseTSV(t *testing.T) {
	const table = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n" +
		"1\t1\t0\t0\t0\t0\t0\t0\t100\t50\t-1\t\n" +
		"5\t1\t1\t1\t1\t1\t10\t20\t30\t12\t96.5\tnot-\n" +
		"5\t1\t1\t1\t2\t1\t10\t40\t30\t12\t90\twithstanding\n" +
		"5\t1\t1\t1\t2\t2\t45\t40\t9\t12\t40\tthe\n" +
		"5\t1\t2\t1\t1\t1\t10\t80\t30\t12\t20\t~|\n"
	words, err := parseTSV([]byte(table))
	if err != nil || len(words) != 4 {
		t.Fatalf("%d words, %v", len(words), err)
	}
	b := newBuilder(t.Context())
	if !b.recognized(words, 1, .5) {
		t.Fatal("no text")
	}
	doc := b.document("image")
	if doc.Text != "notwithstanding the" {
		t.Errorf("text %q", doc.Text)
	}
	if got, want := doc.Boxes[0], (assay.Box{Page: 1, X0: 5, Y0: 10, X1: 27, Y1: 26}); got != want {
		t.Errorf("box %v, want %v", got, want)
	}
	if got := doc.Provenance[0].Confidence; got < .83 || got > .85 {
		t.Errorf("confidence %v, want the mean by letters, .838", got)
	}
	for _, bad := range []string{"5\t1\tx\t1\t1\t1\t10\t20\t30\t12\t96.5\tword\n", "5\t1\t1\t1\t1\t1\t10\t20\t30\t12\tnone\tword\n"} {
		if _, err := parseTSV([]byte(bad)); !errors.Is(err, errTSV) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// fakeOCR returns a program that runs a shell script.
func fakeOCR(t *testing.T, script string) *OCR {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	path := filepath.Join(t.TempDir(), "tesseract")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return &OCR{Program: path, Languages: []string{"eng"}}
}

// TestHostileOCR checks that a program that fails, hangs or floods costs only its document.
func TestHostileOCR(t *testing.T) {
	data := encodePNG(t, drawText(t, 36, "text"))
	for name, script := range map[string]string{
		"fails":   "echo no model >&2; exit 1",
		"killed":  "kill -9 $$",
		"garbage": "cat >/dev/null; printf '5\\tx\\t1\\t1\\t1\\t1\\t1\\t1\\t1\\t1\\t1\\ta\\n'",
		"floods":  "cat >/dev/null; yes 0123456789012345678901234567890123456789 | head -c 40000000",
	} {
		if doc, err := Parse(t.Context(), Input{Name: "a.png", Data: data, OCR: fakeOCR(t, script)}); err == nil {
			t.Errorf("%s: %q", name, doc.Text)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(t.TempDir(), "started")
	ocr := fakeOCR(t, "touch "+started+"; sleep 600")
	done := make(chan error, 1)
	go func() {
		_, err := Parse(ctx, Input{Name: "a.png", Data: data, OCR: ocr})
		done <- err
	}()
	for {
		if _, err := os.Stat(started); err == nil {
			break
		}
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func FuzzImage(f *testing.F) {
	small := image.NewGray(image.Rect(0, 0, 12, 12))
	f.Add(encodePNG(f, small))
	var b bytes.Buffer
	if err := tiff.Encode(&b, small, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(multiPageTIFF(f, small, 3))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 || imageKind(data) == "" {
			return
		}
		pages, err := imagePages(data)
		if err != nil {
			return
		}
		for _, p := range pages[:min(len(pages), 4)] {
			_, _ = decodeImage(p)
		}
	})
}
