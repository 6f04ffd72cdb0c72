package parseworker

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/assay-rag/assay/internal/pdftest"
)

// A member is a file of an archive.
type member struct {
	name string
	data io.Reader
}

// archive returns a ZIP archive.
func archive(t *testing.T, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		method := zip.Deflate
		if m.name == "mimetype" {
			method = zip.Store
		}
		out, err := w.CreateHeader(&zip.FileHeader{Name: m.name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(out, m.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// repeated reads a unit n times.
type repeated struct {
	unit string
	left int // bytes
}

func repeat(unit string, n int) io.Reader { return &repeated{unit, n * len(unit)} }

// Read implements io.Reader.
func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && r.left > 0 {
		at := (len(r.unit) - r.left%len(r.unit)) % len(r.unit)
		k := copy(p[n:], r.unit[at:])
		k = min(k, r.left)
		n, r.left = n+k, r.left-k
	}
	return n, nil
}

func gzipped(t *testing.T, r io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.Copy(w, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// emptyPNG returns the header of a PNG of a size, without pixels.
func emptyPNG(width, height uint32) []byte {
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("IHDR"), width), height)
	header = append(header, 8, 0, 0, 0, 0)
	out := binary.BigEndian.AppendUint32([]byte("\x89PNG\r\n\x1a\n"), 13)
	return binary.BigEndian.AppendUint32(append(out, header...), crc32.ChecksumIEEE(header))
}

// noise returns an image of black and white pixels, in which a recogniser sees much.
func noise(width, height int) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, width, height))
	n := uint32(1)
	for i := range img.Pix {
		n = n*1664525 + 1013904223
		img.Pix[i] = byte(int32(n) >> 31)
	}
	return img
}

func encoded(t *testing.T, encode func(io.Writer, image.Image) error, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// mainPart links an Office document to its main part.
func mainPart(target string) member {
	return member{"_rels/.rels", strings.NewReader(`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="` + target + `"/></Relationships>`)}
}

const (
	wordTypes  = `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`
	sheetTypes = `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>`
	wordStart  = `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>`
	sheetStart = `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>`
	workbook   = `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" r:id="r1"/></sheets></workbook>`
	sheetLink  = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`
	odsStart   = `<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet><table:table table:name="S">`
)

// wordBomb returns a DOCX whose main part is a start and a repetition.
func wordBomb(t *testing.T, unit string, n int, more ...member) []byte {
	t.Helper()
	return archive(t, append([]member{
		{"[Content_Types].xml", strings.NewReader(wordTypes)}, mainPart("word/document.xml"),
		{"word/document.xml", io.MultiReader(strings.NewReader(wordStart), repeat(unit, n), strings.NewReader("</w:body></w:document>"))},
	}, more...)...)
}

func sheetBomb(t *testing.T, unit string, n int) []byte {
	t.Helper()
	return archive(t, member{"[Content_Types].xml", strings.NewReader(sheetTypes)}, mainPart("xl/workbook.xml"), member{"xl/workbook.xml", strings.NewReader(workbook)}, member{"xl/_rels/workbook.xml.rels", strings.NewReader(sheetLink)},
		member{"xl/worksheets/sheet1.xml", io.MultiReader(strings.NewReader(sheetStart), repeat(unit, n), strings.NewReader("</sheetData></worksheet>"))})
}

func odsBomb(t *testing.T, rows string) []byte {
	t.Helper()
	return archive(t, member{"mimetype", strings.NewReader("application/vnd.oasis.opendocument.spreadsheet")},
		member{"content.xml", strings.NewReader(odsStart + rows + "</table:table></office:spreadsheet></office:body></office:document-content>")})
}

// bombs returns files that need much more time or memory than their size suggests.
func bombs(t *testing.T) []seed {
	t.Helper()
	text := func(s string, n int, tail string) []byte { return []byte(strings.Repeat(s, n) + tail) }
	entities := "<!ENTITY a0 \"words \">"
	for i := range 12 {
		entities += fmt.Sprintf("<!ENTITY a%d \"%s\">", i+1, strings.Repeat(fmt.Sprintf("&a%d;", i), 10))
	}
	aliases := "a0: &a0 [words, words]\n"
	for i := range 12 {
		aliases += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	laughs := "<?xml version=\"1.0\"?><!DOCTYPE a [" + entities + "]>"
	zeros := member{"zeros.txt", repeat("\x00", 1<<30)}
	quine := archive(t, member{"a.txt", repeat("words ", 12<<20)})
	for range 4 {
		var copies []member
		for i := range 10 {
			copies = append(copies, member{fmt.Sprintf("%d.zip", i), bytes.NewReader(quine)})
		}
		quine = archive(t, copies...)
	}
	var many []member
	for i := range 30_000 {
		many = append(many, member{fmt.Sprintf("%d.txt", i), strings.NewReader("some words")})
	}
	list := []seed{
		{"zeros.zip", archive(t, zeros)}, {"nested.zip", quine}, {"many.zip", archive(t, many...)},
		{"text.gz", gzipped(t, repeat("words ", 100<<20))}, {"twice.gz", gzipped(t, bytes.NewReader(gzipped(t, repeat("words ", 100<<20))))},
		{"entities.xml", []byte(laughs + "<a>&a12;</a>")}, {"entities.html", []byte(laughs + "<html><body>&a12;</body></html>")},
		{"entities.docx", archive(t, member{"[Content_Types].xml", strings.NewReader(wordTypes)}, mainPart("word/document.xml"), member{"word/document.xml", strings.NewReader(laughs + wordStart + "<w:p><w:r><w:t>&a12;</w:t></w:r></w:p></w:body></w:document>")})},
		{"deep.xml", text("<a>", 5<<20, "x")}, {"deep.html", text("<div>", 3<<20, "x")}, {"tables.html", text("<table><tr><td>", 1<<20, "x")},
		{"aliases.md", []byte("---\n" + aliases + "---\n# One\n")}, {"deep.md", text("> ", 8<<20, "x")}, {"list.md", text("- ", 8<<20, "x")},
		{"deep.json", text("[", 16<<20, "")}, {"objects.json", text(`{"a":`, 4<<20, "")}, {"deep.ipynb", text(`{"cells":[`, 1<<20, "")},
		{"deep.rtf", append([]byte(`{\rtf1 `), text("{", 16<<20, "x")...)}, {"binary.rtf", []byte(`{\rtf1 \bin2147483647 x}`)}, {"rows.rtf", append([]byte(`{\rtf1 `), text(`\trowd\cellx1 x\cell\row`, 1<<20, "}")...)},
		{"macro.tex", []byte(`\documentclass{a}\def\a{\a\a}\newcommand{\b}{\b\b}\begin{document}` + strings.Repeat(`\a\b`, 1000) + `\end{document}`)}, {"deep.tex", append([]byte(`\documentclass{a}\begin{document}`), text("{", 16<<20, "x")...)},
		{"wide.csv", text("a,", 15<<20, "\n1\n")}, {"quotes.csv", text("\"", 16<<20, "")}, {"include.adoc", text("include::a.adoc[]\n====\n", 1<<18, "")},
		{"mails.mbox", text("From a@b.c Tue Jan  2 10:20:30 2024\nSubject: x\n\nwords\n\n", 1<<18, "")}, {"deep.eml", text("Content-Type: multipart/mixed; boundary=x\n\n--x\n", 1<<16, "words")},
		{"headers.eml", append([]byte("From: a@b.c\n"), text("X-A: "+strings.Repeat("b", 60)+"\n", 1<<18, "\nwords")...)},
		{"zeros.docx", wordBomb(t, " ", 1<<30)}, {"deep.docx", wordBomb(t, "<w:p>", 4<<20)}, {"runs.docx", wordBomb(t, "<w:p><w:r><w:t>x</w:t></w:r></w:p>", 1<<20)},
		{"huge picture.docx", wordBomb(t, "<w:p/>", 1, member{"word/media/a.png", bytes.NewReader(emptyPNG(60000, 60000))})},
		{"rows.xlsx", sheetBomb(t, "<row><c><v>1</v></c></row>", 1<<20)}, {"columns.xlsx", sheetBomb(t, `<row>`+strings.Repeat(`<c t="inlineStr"><is><t>some words</t></is></c>`, 16)+"</row>", 1<<20)},
		{"cells.xlsx", sheetBomb(t, `<row>`+strings.Repeat(`<c><v>1</v></c>`, 16384)+"</row>", 200)},
		{"repeated.ods", odsBomb(t, `<table:table-row table:number-rows-repeated="1048576"><table:table-cell table:number-columns-repeated="16384"><text:p>x</text:p></table:table-cell></table:table-row>`)},
		{"rows.ods", odsBomb(t, strings.Repeat(`<table:table-row><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row>`, 1<<20))},
		{"deep.ods", odsBomb(t, strings.Repeat(`<table:table-row><table:table-cell><table:table>`, 1<<18))},
		{"huge.png", emptyPNG(60000, 60000)}, {"empty.png", emptyPNG(6000, 6000)}, {"noise.png", encoded(t, png.Encode, noise(3000, 4000))},
		{"deep.7z", []byte("7z\xbc\xaf\x27\x1c\x00\x04" + strings.Repeat("\xff", 24) + "x")},
	}
	return append(append(list, pdfBombs(t)...), tarBomb(t))
}

func pdfBombs(t *testing.T) []seed {
	t.Helper()
	pages := pdftest.File{Compress: true}
	for i := range 20_000 {
		pages.Page(595, 842).Text(72, 72, 12, false, fmt.Sprintf("word %d", i))
	}
	huge := pdftest.File{Compress: true}
	for range 3 {
		huge.Page(14400, 14400).Rectangle(0, 0, 14000, 14000, true)
	}
	operators := pdftest.File{Compress: true}
	operators.Page(595, 842).Raw(strings.Repeat("q ", 16<<20))
	paths := pdftest.File{Compress: true}
	paths.Page(595, 842).Raw(strings.Repeat("0 0 m 500 700 l S ", 2<<20))
	letters := pdftest.File{Compress: true}
	for range 3 {
		page := letters.Page(595, 842)
		page.Raw("BT /F1 1 Tf 10 10 Td " + strings.Repeat("(words of a line) Tj ", 1<<18) + "ET")
	}
	rules := pdftest.File{Compress: true}
	page := rules.Page(595, 842)
	for i := range 4000 {
		at := float64(i) / 7
		page.Line(at, 0, at, 842)
		page.Line(0, at, 595, at)
	}
	page.Text(72, 72, 12, false, "words")
	cycle := []byte("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 100000/Kids[2 0 R 2 0 R]/Parent 2 0 R>>endobj\ntrailer<</Root 1 0 R/Size 3>>\n")
	return []seed{
		{"pages.pdf", pages.Bytes()}, {"huge.pdf", huge.Bytes()}, {"operators.pdf", operators.Bytes()}, {"paths.pdf", paths.Bytes()},
		{"letters.pdf", letters.Bytes()}, {"rules.pdf", rules.Bytes()}, {"cycle.pdf", cycle},
	}
}

func tarBomb(t *testing.T) seed {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := range 20_000 {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d.txt", i), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return seed{"many.tar", b.Bytes()}
}

// pictures returns a small image in each format, a PDF and other files.
func pictures(t *testing.T) []seed {
	t.Helper()
	img := noise(200, 100)
	var pdf pdftest.File
	pdf.Page(595, 842).Text(72, 72, 12, false, "Some words of a page.")
	pdf.Page(595, 842).Rectangle(72, 72, 300, 300, true)
	pdf.Attach("a.csv", []byte("a,b\n1,2\n"))
	return []seed{
		{"a.pdf", pdf.Bytes()},
		{"a.png", encoded(t, png.Encode, img)}, {"a.tif", encoded(t, func(w io.Writer, img image.Image) error { return tiff.Encode(w, img, nil) }, img)},
		{"a.jpg", encoded(t, func(w io.Writer, img image.Image) error { return jpeg.Encode(w, img, nil) }, img)},
		{"a.gif", encoded(t, func(w io.Writer, img image.Image) error { return gif.Encode(w, img, nil) }, img)},
		{"a.bmp", encoded(t, bmp.Encode, img)},
		{"a.rtf", []byte(`{\rtf1\ansi{\fonttbl{\f0 Times;}}{\info{\title T}}\pard Some \b words\b0 .\par\trowd\cellx100\cellx200 a\cell b\cell\row{\footnote x}}`)},
		{"a.tex", []byte("\\documentclass{article}\n\\begin{document}\n\\section{One}\nSome \\emph{words} $x^2$.\n\\begin{itemize}\\item a\\item b\\end{itemize}\n\\begin{tabular}{ll}a&b\\\\1&2\\end{tabular}\n\\end{document}\n")},
		{"a.ipynb", []byte(`{"nbformat":4,"metadata":{},"cells":[{"cell_type":"markdown","source":["# One\n","words"]},{"cell_type":"code","source":"print(1)","outputs":[{"output_type":"stream","text":["1\n"]}]}]}`)},
		{"a.xml", []byte(`<?xml version="1.0"?><doc><title>T</title><p>Some words.</p><list><item>a</item><item>b</item></list></doc>`)},
		{"a.srt", []byte("1\n00:00:01,000 --> 00:00:02,000\nSome words\n\n2\n00:00:03,000 --> 00:00:04,000\nmore\n")},
		{"a.vtt", []byte("WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Some words\n")},
	}
}
