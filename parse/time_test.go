package parse

import (
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pdftest"
)

// TestUntil checks that a PDF keeps the pages that were read in time, and that each page is a step.
func TestUntil(t *testing.T) {
	var f pdftest.File
	for i := range 6 {
		words := []string{"A hare ran", "The fox slept", "Snow fell early", "Rivers rose again", "Bread was dear", "Ships left late"}
		f.Page(595, 842).Text(72, 200+40*float64(i), 12, false, fmt.Sprintf("%s on page %d of this book.", words[i], i+1))
	}
	src := newSource(Input{Name: "a.pdf", Data: f.Bytes()})
	b := newBuilder(t.Context())
	steps := 0
	b.progress = func() {
		if steps++; len(b.pages) == 3 {
			b.until = time.Now().Add(-time.Hour)
		}
	}
	if !parsePDF(src, b) || b.err != nil {
		t.Fatal(b.err)
	}
	doc := b.document("pdf")
	if !strings.Contains(doc.Text, "page 3") || strings.Contains(doc.Text, "page 4") || len(doc.Pages) != 6 {
		t.Errorf("%d pages, text %q", len(doc.Pages), doc.Text)
	}
	for _, p := range doc.Pages {
		want := assay.Page{Outcome: assay.PageText}
		if p.Number > 3 {
			want = assay.Page{Outcome: assay.PageFailed, Detail: notRead}
		}
		if p.Outcome != want.Outcome || p.Detail != want.Detail {
			t.Errorf("page %d: %s %q, want %s %q", p.Number, p.Outcome, p.Detail, want.Outcome, want.Detail)
		}
	}
	if steps < 6 {
		t.Errorf("%d steps, want one for each page", steps)
	}
	if _, err := Parse(t.Context(), Input{Name: "a.pdf", Data: f.Bytes(), Until: time.Unix(1, 0)}); !errors.Is(err, ErrLimit) {
		t.Errorf("no page is read in time: %v", err)
	}
}

// TestSlowRecognition checks that a program that hangs costs only its image, and that no more images
// are tried after some.
func TestSlowRecognition(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	program := filepath.Join(t.TempDir(), "tesseract")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	b := newBuilder(t.Context())
	b.ocr, b.imageTime = &OCR{Program: program}, 50*time.Millisecond
	steps := 0
	b.progress = func() { steps++ }
	img := image.NewGray(image.Rect(0, 0, 50, 50))
	for i := range maxSlowImages + 2 {
		_, err := b.recognize(img, 0)
		if !errors.Is(err, ErrLimit) || strings.Contains(err.Error(), "not tried") != (i >= maxSlowImages) {
			t.Errorf("image %d: %v", i, err)
		}
	}
	if steps != maxSlowImages {
		t.Errorf("%d steps, want %d", steps, maxSlowImages)
	}
}

// TestLargeTable checks that a table that is removed from the tree as it is written is complete, and
// that the text around it stays.
func TestLargeTable(t *testing.T) {
	var text strings.Builder
	text.WriteString("<p>before</p><table><caption>One <b>two</b> <i>three</i></caption><thead><tr><th>name</th><th>value</th></tr></thead>\n<tbody>\n")
	for i := range largeTable + 10 {
		fmt.Fprintf(&text, "<tr>\n<td>row <b>%d</b></td>\n<td>value %d</td>\n</tr>\n", i, i)
	}
	text.WriteString("</tbody></table><p>after</p>")
	doc, err := Parse(t.Context(), Input{Name: "a.html", Data: []byte("<html><body>" + text.String() + "</body></html>")})
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, doc, text.String())
	last := largeTable + 9
	for _, want := range []string{"before\n", "One two three", "name | value\nrow 0 | value 0\n", fmt.Sprintf("\nrow %d | value %d\n\nafter", last, last)} {
		if !strings.Contains(doc.Text, want) {
			t.Errorf("the text has no %q", want)
		}
	}
	if cells := len(doc.Tables[0].Cells); cells != 2*(largeTable+11) {
		t.Errorf("%d cells, want %d", cells, 2*(largeTable+11))
	}
}
