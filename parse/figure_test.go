package parse

import (
	"image"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// pictured returns the document that write makes.
func pictured(t *testing.T, ocr *OCR, write func(b *builder)) Document {
	t.Helper()
	b := newBuilder(t.Context())
	b.ocr, b.wantImages = ocr, true
	write(b)
	return b.document("test")
}

// TestPicture checks that a figure has its alternative text and the text in it, once for images
// that occur again.
func TestPicture(t *testing.T) {
	data := encodePNG(t, drawText(t, 36, "Revenue grew by nine percent"))
	doc := pictured(t, installedOCR(t), func(b *builder) {
		b.puts(Paragraph, "Before.", 1)
		for range 2 {
			b.picture(picture{alt: "A chart", data: data, line: 2, box: func() { b.box(3, 1, 2, 30, 40) }})
		}
		b.picture(picture{alt: "A logo", data: encodePNG(t, image.NewGray(image.Rect(0, 0, 20, 20)))})
		b.puts(Paragraph, "After.", 5)
	})
	want := "Before.\n\nA chart\n\nRevenue grew by nine percent\n\nA chart\n\nA logo\n\nAfter."
	if doc.Text != want {
		t.Errorf("text %q, want %q", doc.Text, want)
	}
	if len(doc.Images) != 1 || doc.Images[0].Type != "image/png" || !strings.Contains(doc.Images[0].Caption, "nine percent") {
		t.Errorf("%d images: %+v", len(doc.Images), doc.Images)
	}
	if len(doc.Provenance) != 1 || doc.Text[doc.Provenance[0].Start:doc.Provenance[0].End] != "Revenue grew by nine percent" {
		t.Errorf("provenance %+v", doc.Provenance)
	}
	if len(doc.Boxes) != 3 || doc.Boxes[1].Block != 2 {
		t.Errorf("boxes %+v", doc.Boxes)
	}
}

func TestForModel(t *testing.T) {
	wide := image.NewRGBA(image.Rect(0, 0, 4000, 100))
	kind, data, err := forModel(encodePNG(t, wide))
	if err != nil || kind != "image/png" {
		t.Fatalf("%s, %v", kind, err)
	}
	config, _, err := image.DecodeConfig(strings.NewReader(string(data)))
	if err != nil || config.Width != maxModelSide || config.Height != 39 {
		t.Errorf("%d × %d, %v", config.Width, config.Height, err)
	}
}

// TestDescribe checks that inserting descriptions moves everything else along.
func TestDescribe(t *testing.T) {
	doc := pictured(t, nil, func(b *builder) {
		b.puts(Heading, "Report", 1)
		b.page = 1
		b.begin(Paragraph)
		b.put("First\nlines.", 3)
		b.box(1, 0, 0, 10, 10)
		b.end()
		b.table([]gridCell{{text: "Year", header: true, line: 6}, {text: "Sum", col: 1, header: true, line: 6}, {text: "2025", row: 1, line: 7}, {text: "9", row: 1, col: 1, line: 7}}, nil)
		b.page = 2
		b.from = &assay.Provenance{Kind: assay.ProvenanceRecognized, Confidence: .5}
		b.puts(Paragraph, "Last words.", 9)
	})
	doc.Images = []Image{{After: -1, Page: 1}, {After: -1}, {After: 1}, {After: 2}, {After: len(doc.Blocks) - 1, Page: 2}}
	got := Describe(doc, []Description{{0, "Cover.", "m"}, {1, " ", "m"}, {2, "A line\nof two.", "m"}, {3, "In the table.", "m"}, {4, "The end.", "m"}})
	want := "Cover.\n\nReport\n\nFirst\nlines.\n\nA line\nof two.\n\nYear | Sum\n2025 | 9\n\nIn the table.\n\nLast words.\n\nThe end."
	if got.Text != want {
		t.Fatalf("text %q, want %q", got.Text, want)
	}
	checkStructure(t, got)
	words := func(start, end int) string { return got.Text[start:end] }
	var cells, marks []string
	for _, c := range got.Tables[0].Cells {
		cells = append(cells, words(c.Start, c.End))
	}
	for _, p := range got.Provenance {
		marks = append(marks, string(p.Kind)+": "+words(p.Start, p.End))
	}
	if !slices.Equal(cells, []string{"Year", "Sum", "2025", "9"}) {
		t.Errorf("cells %q", cells)
	}
	if !slices.Equal(marks, []string{"described: Cover.", "described: A line\nof two.", "described: In the table.", "recognized: Last words.", "described: The end."}) {
		t.Errorf("provenance %q", marks)
	}
	if b := got.Blocks[got.Boxes[0].Block]; words(b.Start, b.End) != "First\nlines." {
		t.Errorf("the box is that of %q", words(b.Start, b.End))
	}
	at := assay.Document{Text: got.Text, Anchors: got.Anchors}
	for text, want := range map[string][2]int{
		"Report": {1, 0}, "First": {3, 1}, "lines.": {4, 1}, "of two.": {4, 1}, "Year": {6, 1}, "9": {7, 1}, "Last": {9, 2}, "The end": {9, 2},
	} {
		line, page := at.Position(strings.Index(got.Text, text))
		if [2]int{line, page} != want {
			t.Errorf("%q is on line %d, page %d, want %v", text, line, page, want)
		}
	}
	if empty := Describe(Document{Images: []Image{{After: -1, Page: 1}}}, []Description{{0, "A cat.", "m"}}); empty.Text != "A cat." || len(empty.Blocks) != 1 {
		t.Errorf("a document without text: %+v", empty)
	}
}

// checkStructure checks that blocks, tables and provenance lie in the text and that anchors are
// sorted.
func checkStructure(t *testing.T, doc Document) {
	t.Helper()
	end := 0
	for _, b := range doc.Blocks {
		if b.Start < end || b.End <= b.Start || strings.TrimSpace(doc.Text[end:b.Start]) != "" {
			t.Errorf("block %+v after %d", b, end)
		}
		end = b.End
	}
	if strings.TrimSpace(doc.Text[end:]) != "" {
		t.Errorf("text outside blocks: %q", doc.Text[end:])
	}
	if !slices.IsSortedFunc(doc.Anchors, func(a, b assay.Anchor) int { return a.Start - b.Start }) {
		t.Errorf("anchors %+v", doc.Anchors)
	}
}
