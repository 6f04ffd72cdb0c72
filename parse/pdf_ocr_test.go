package parse

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// scannedPDF returns a PDF with a page for each image. The stamp is a line of text on the image, and
// the caption one below it; both may be empty.
func scannedPDF(t testing.TB, stamp, caption string, images ...image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	var at []int
	object := func(body string) int {
		at = append(at, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(at), body)
		return len(at)
	}
	stream := func(dictionary string, data []byte) int {
		return object(fmt.Sprintf("<<%s /Length %d>>\nstream\n%s\nendstream", dictionary, len(data), data))
	}
	out.WriteString("%PDF-1.7\n")
	catalog := object("<</Type /Catalog /Pages 2 0 R>>")
	var kids []string
	for i := range images {
		kids = append(kids, fmt.Sprintf("%d 0 R", 4+3*i+2))
	}
	object(fmt.Sprintf("<</Type /Pages /Count %d /Kids [%s]>>", len(kids), strings.Join(kids, " ")))
	object("<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>")
	for _, img := range images {
		var data bytes.Buffer
		if err := jpeg.Encode(&data, img, &jpeg.Options{Quality: 90}); err != nil {
			t.Fatal(err)
		}
		size := img.Bounds().Size()
		picture := stream(fmt.Sprintf("/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /DCTDecode", size.X, size.Y), data.Bytes())
		width, height, below := size.X/2, size.Y/2, 0
		if caption != "" {
			below = 60
		}
		content := fmt.Sprintf("q %d 0 0 %d 0 %d cm /I Do Q", width, height, below)
		content += fmt.Sprintf(" BT /F 8 Tf 10 %d Td (%s) Tj ET", below+4, stamp)
		content += fmt.Sprintf(" BT /F 4 Tf 10 20 Td (%s) Tj ET", caption)
		height += below
		text := stream("", []byte(content))
		object(fmt.Sprintf("<</Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents %d 0 R /Resources <</XObject <</I %d 0 R>> /Font <</F 3 0 R>>>>>>", width, height, text, picture))
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, offset := range at {
		fmt.Fprintf(&out, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&out, "trailer\n<</Size %d /Root %d 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, catalog, start)
	return out.Bytes()
}

// TestScan checks that pages without a text layer are recognised, with boxes in points and the
// confidence of each block.
func TestScan(t *testing.T) {
	first := drawText(t, 36, "Employees receive thirty days of leave each", "year. Unused days lapse in March.")
	second := drawText(t, 36, "The second page has other words.")
	for name, stamp := range map[string]string{"scan": "", "stamped scan": "Case 123 Page 1"} {
		t.Run(name, func(t *testing.T) {
			data := scannedPDF(t, stamp, "", first, second)
			doc, err := Parse(t.Context(), Input{Name: "a.pdf", Data: data, OCR: installedOCR(t)})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"Employees receive thirty days of leave each year. Unused days lapse in March.", "The second page has other words."} {
				if !strings.Contains(doc.Text, want) {
					t.Errorf("text %q lacks %q", doc.Text, want)
				}
			}
			if len(doc.Pages) != 2 || doc.Pages[0].Outcome != assay.PageRecognized || doc.Pages[1].Outcome != assay.PageRecognized {
				t.Errorf("pages %+v", doc.Pages)
			}
			if len(doc.Provenance) != len(doc.Blocks) || doc.Provenance[0].Confidence < .5 {
				t.Errorf("provenance %+v of %d blocks", doc.Provenance, len(doc.Blocks))
			}
			d := assay.Document{Text: doc.Text, Anchors: doc.Anchors}
			if _, page := d.Position(strings.Index(doc.Text, "second")); page != 2 {
				t.Errorf("the second page's text is on page %d", page)
			}
			if box := doc.Boxes[0]; box.X0 < 20 || box.X1 > 600 || box.Y1 > 115 {
				t.Errorf("box %+v is not in points", box)
			}
		})
	}
}

// TestScanWithout checks the outcomes of scans without the OCR program and with one that fails.
func TestScanWithout(t *testing.T) {
	img := drawText(t, 36, "Some words.")
	_, err := Parse(t.Context(), Input{Name: "a.pdf", Data: scannedPDF(t, "", "", img)})
	if !errors.Is(err, ErrNeedsProgram) || !strings.Contains(err.Error(), "tesseract") {
		t.Errorf("without a program: %v", err)
	}
	stamped := Input{Name: "a.pdf", Data: scannedPDF(t, "Case 123", "", img)}
	doc, err := Parse(t.Context(), stamped)
	if err != nil || !strings.Contains(doc.Text, "Case 123") || doc.Pages[0].Outcome != assay.PageText {
		t.Errorf("the stamp alone: %q, %+v, %v", doc.Text, doc.Pages, err)
	}
	stamped.OCR = fakeOCR(t, "exit 3")
	doc, err = Parse(t.Context(), stamped)
	if err != nil || !strings.Contains(doc.Text, "Case 123") || !strings.Contains(doc.Pages[0].Detail, "exit status 3") {
		t.Errorf("a program that fails: %q, %+v, %v", doc.Text, doc.Pages, err)
	}
}

// TestPDFFigure checks that a figure on a page of text has the text in it, at its place.
func TestPDFFigure(t *testing.T) {
	img := drawText(t, 36, "Valve chart of pump nine")
	caption := strings.Repeat("The figure above shows the valves of the pump. ", 5)
	doc, err := Parse(t.Context(), Input{Name: "a.pdf", Data: scannedPDF(t, "", caption, img), OCR: installedOCR(t), Images: true})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(doc.Blocks, func(b Block) bool { return b.Kind == Figure })
	if i != 0 || !strings.HasPrefix(doc.Text, "Valve chart of pump nine") {
		t.Fatalf("the figure is block %d of %q", i, doc.Text)
	}
	if len(doc.Provenance) != 1 || doc.Pages[0].Outcome != assay.PageText {
		t.Errorf("provenance %+v, pages %+v", doc.Provenance, doc.Pages)
	}
	if len(doc.Images) != 1 || doc.Images[0].After != 0 || doc.Images[0].Page != 1 {
		t.Errorf("images %+v", doc.Images)
	}
	// Text on an image is in the text layer and is not recognised again.
	doc, err = Parse(t.Context(), Input{Name: "a.pdf", Data: scannedPDF(t, "Text on the picture, in the text layer", caption, img), OCR: installedOCR(t)})
	if err != nil || len(doc.Provenance) != 0 {
		t.Errorf("text on the image: %q, %v", doc.Text, err)
	}
}

// TestRecognizable checks that text is recognised in large figures without text, up to a limit.
func TestRecognizable(t *testing.T) {
	for _, test := range []struct {
		name   string
		figure pdfFigure
		n      int
		want   int
		all    bool
	}{
		{"small", pdfFigure{share: .09}, 10, 0, true},
		{"with text", pdfFigure{share: .5, written: true}, 10, 0, true},
		{"few", pdfFigure{share: .25}, 20, 20, true},
		{"many", pdfFigure{share: .25}, 21, 20, false},
	} {
		list, all := recognizable(slices.Repeat([]pdfFigure{test.figure}, test.n))
		if len(list) != test.want || all != test.all {
			t.Errorf("%s: %d figures, all %v, want %d, %v", test.name, len(list), all, test.want, test.all)
		}
	}
}

// TestPDFFigureForModel checks that a model is given a figure in colour, with its caption and place,
// and that the description has the place.
func TestPDFFigureForModel(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 800, 400))
	draw.Draw(img, img.Rect, image.NewUniform(color.RGBA{200, 30, 30, 255}), image.Point{}, draw.Src)
	caption := "Figure 2: The valves of the pump."
	doc, err := Parse(t.Context(), Input{Name: "a.pdf", Data: scannedPDF(t, "", caption, img), Images: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Images) != 1 || doc.Images[0].Caption != caption || len(doc.Images[0].Boxes) != 1 {
		t.Fatalf("text %q, %d images", doc.Text, len(doc.Images))
	}
	shown, _, err := image.Decode(bytes.NewReader(doc.Images[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	size := shown.Bounds().Size()
	if r, g, _, _ := shown.At(size.X/2, size.Y/2).RGBA(); r < 3*g {
		t.Errorf("the figure is not red: %v", shown.At(size.X/2, size.Y/2))
	}
	if box := doc.Images[0].Boxes[0]; box.Page != 1 || box.Y0 > 1 || box.Y1 < 190 {
		t.Errorf("box %+v", box)
	}
	doc = Describe(doc, []Description{{0, "A red rectangle.", "m"}})
	i := strings.Index(doc.Text, "A red")
	if boxes := doc.Rectangles(i, i+3); len(boxes) != 1 || boxes[0].Page != 1 || !slices.IsSortedFunc(doc.Boxes, func(a, b assay.Box) int { return a.Block - b.Block }) {
		t.Errorf("the description has boxes %+v of %+v", boxes, doc.Boxes)
	}
}

// TestFigureCaption checks which caption an image in a format without places has.
func TestFigureCaption(t *testing.T) {
	figure := func(shade uint8) []byte {
		img := image.NewGray(image.Rect(0, 0, 50, 50))
		draw.Draw(img, img.Rect, image.NewUniform(color.Gray{shade}), image.Point{}, draw.Src)
		return encodePNG(t, img)
	}
	doc := pictured(t, nil, func(b *builder) {
		b.puts(Paragraph, "Words.", 1)
		b.picture(picture{alt: "Alt", data: figure(1)})
		b.puts(Caption, "After.", 2)
		b.puts(Paragraph, "Words.", 3)
		b.puts(Caption, "Before.", 4)
		b.picture(picture{alt: "Alt", data: figure(2)})
		b.puts(Paragraph, "Words.", 5)
		b.picture(picture{data: figure(3)})
	})
	var got []string
	for _, img := range doc.Images {
		got = append(got, img.Caption)
	}
	if want := []string{"Alt\nAfter.", "Alt\nBefore.", ""}; !slices.Equal(got, want) {
		t.Errorf("captions %q, want %q", got, want)
	}
}
