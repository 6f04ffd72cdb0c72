package parse

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/google/go-cmp/cmp"
)

// packZIP returns a ZIP package of names and contents in turn. The first member is not compressed.
func packZIP(t testing.TB, members ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := 0; i < len(members); i += 2 {
		method := zip.Deflate
		if i == 0 {
			method = zip.Store
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: members[i], Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(members[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const odfNames = `xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" ` +
	`xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" ` +
	`xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" ` +
	`xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0" xmlns:xlink="http://www.w3.org/1999/xlink" ` +
	`xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0" ` +
	`xmlns:chart="urn:oasis:names:tc:opendocument:xmlns:chart:1.0" xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"`

// odfPackage returns a package of a kind with a body and further members.
func odfPackage(t testing.TB, kind, body string, more ...string) []byte {
	t.Helper()
	styles := `<office:automatic-styles><style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>` +
		`<style:style style:name="H" style:family="text"><style:text-properties text:display="none"/></style:style>` +
		`<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1" text:start-value="3"/><text:list-level-style-bullet text:level="2"/></text:list-style>` +
		`</office:automatic-styles>`
	members := []string{"mimetype", "application/vnd.oasis.opendocument." + kind,
		"content.xml", `<?xml version="1.0" encoding="UTF-8"?><office:document-content ` + odfNames + `>` + styles +
			`<office:body><office:` + kind + `>` + body + `</office:` + kind + `></office:body></office:document-content>`,
		"meta.xml", `<office:document-meta ` + odfNames + `><office:meta><dc:title>The Title</dc:title><dc:creator>Ann</dc:creator>` +
			`<meta:creation-date>2024-05-06T07:08:09</meta:creation-date><dc:language>de-DE</dc:language><meta:keyword>k1</meta:keyword><meta:keyword>k2</meta:keyword></office:meta></office:document-meta>`}
	return packZIP(t, append(members, more...)...)
}

func parseBytes(t testing.TB, name string, data []byte) Document {
	t.Helper()
	doc, err := Parse(t.Context(), Input{Name: name, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, doc, string(data))
	return doc
}

const odtBody = `<text:tracked-changes><text:changed-region><text:deletion><text:p>deleted</text:p></text:deletion></text:changed-region></text:tracked-changes>
<text:p text:style-name="P1">Big Title</text:p><text:h text:outline-level="1">One</text:h>
<text:p>A<text:s text:c="2"/>b<text:tab/>c<text:span text:style-name="H">hidden</text:span> note<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>The note.</text:p></text:note-body></text:note> end
 line.<office:annotation><dc:creator>Bob</dc:creator><text:p>Why?</text:p></office:annotation></text:p>
<text:list text:style-name="L1"><text:list-item><text:p>i1</text:p><text:list><text:list-item><text:p>i2</text:p></text:list-item></text:list></text:list-item><text:list-item><text:p>i3</text:p></text:list-item></text:list>
<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>A</text:p></table:table-cell><table:table-cell><text:p>B</text:p></table:table-cell></table:table-row></table:table-header-rows>
<table:table-row><table:table-cell table:number-columns-spanned="2"><text:p>wide</text:p></table:table-cell><table:covered-table-cell/></table:table-row></table:table>
<text:p><draw:frame><draw:image xlink:href="Pictures/1.png"/><svg:title>Fox</svg:title><svg:desc>A red fox</svg:desc></draw:frame></text:p>
<text:p text:style-name="Illustration">Figure 1</text:p>
<text:p><draw:frame><draw:object xlink:href="./Object 1"/></draw:frame></text:p>
<text:p><draw:frame><draw:object xlink:href="./Object 2"/></draw:frame></text:p>
<text:table-of-content><text:index-body><text:p>contents</text:p></text:index-body></text:table-of-content>`

func TestODT(t *testing.T) {
	data := odfPackage(t, "text", odtBody,
		"Object 1/content.xml", `<math xmlns="http://www.w3.org/1998/Math/MathML"><mrow><mi>E</mi><mo>=</mo><mfrac><mi>m</mi><mn>2</mn></mfrac><msup><mi>c</mi><mn>2</mn></msup><annotation>E</annotation></mrow></math>`,
		"Object 2/content.xml", `<office:document-content `+odfNames+`><office:body><office:chart><chart:chart chart:class="chart:bar"><chart:title><text:p>Sales</text:p></chart:title>`+
			`<table:table><table:table-header-rows><table:table-row><table:table-cell/><table:table-cell><text:p>Q1</text:p></table:table-cell></table:table-row></table:table-header-rows>`+
			`<table:table-row><table:table-cell><text:p>North</text:p></table:table-cell><table:table-cell><text:p>7</text:p></table:table-cell></table:table-row></table:table></chart:chart></office:chart></office:body></office:document-content>`)
	doc := parseBytes(t, "a.odt", data)
	want := `heading1 "Big Title"
heading2 "One"
paragraph "A  b\tc note[1] end line."
footnote "[1] The note."
footnote "Comment by Bob: Why?"
list_item1 "3. i1"
list_item2 "  - i2"
list_item1 "4. i3"
table_head "A | B"
table_row "wide"
figure "Fox. A red fox"
caption "Figure 1"
formula "E = m/2c^2"
figure "Bar chart. Sales"
table_head "Q1"
table_row "North | 7"
`
	if diff := cmp.Diff(want, outline(doc)); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}
	meta := doc.Metadata
	if doc.Type != "odt" || doc.Title != "The Title" || meta[assay.MetaAuthor].Text() != "Ann" || meta[assay.MetaLanguage].Text() != "de" || meta[assay.MetaCreated].Kind != assay.KindTime {
		t.Errorf("%s %q %v", doc.Type, doc.Title, meta)
	}
	flat := `<?xml version="1.0"?><office:document ` + odfNames + ` office:mimetype="application/vnd.oasis.opendocument.text"><office:body><office:text><text:p>flat</text:p></office:text></office:body></office:document>`
	if got := parseBytes(t, "a.fodt", []byte(flat)); got.Type != "odt" || got.Text != "flat" {
		t.Errorf("%s %q", got.Type, got.Text)
	}
}

// TestODSRepetition checks that rows and cells that repeat to the end of the sheet are not
// expanded, and that those with text are, up to a limit.
func TestODSRepetition(t *testing.T) {
	cell := func(attrs, text string) string {
		return `<table:table-cell ` + attrs + `><text:p>` + text + `</text:p></table:table-cell>`
	}
	body := `<table:table table:name="Data"><table:table-column table:number-columns-repeated="16384"/>
<table:table-row>` + cell(`office:value-type="string"`, "Name") + cell(`office:value-type="string"`, "Value") + `<table:table-cell table:number-columns-repeated="16382"/></table:table-row>
<table:table-row table:number-rows-repeated="2">` + cell("", "x") + cell(`office:value-type="float" office:value="1"`, "1") + `</table:table-row>
<table:table-row table:number-rows-repeated="1048570"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>
<table:table-row table:number-rows-repeated="1000000">` + cell(`table:number-columns-repeated="16000"`, "y") + `</table:table-row></table:table>`
	doc := parseBytes(t, "a.ods", odfPackage(t, "spreadsheet", body))
	if len(doc.Text) > 200_000 || len(doc.Tables) != 2 {
		t.Fatalf("%d bytes, %d tables", len(doc.Text), len(doc.Tables))
	}
	start := "heading1 \"Data\"\ntable_head \"Name | Value\"\ntable_row \"x | 1\"\ntable_row \"x | 1\"\n"
	if got := outline(doc); !strings.HasPrefix(got, start) {
		t.Errorf("blocks %.200s", got)
	}
	if c := doc.Tables[1].Cells[0]; c.RowSpan != 1_000_000 {
		t.Errorf("the repeated row spans %d", c.RowSpan)
	}
}

func TestODP(t *testing.T) {
	body := `<draw:page draw:name="p1"><draw:frame presentation:class="outline" svg:x="1cm" svg:y="3cm" svg:width="10cm" svg:height="5cm"><draw:text-box><text:list><text:list-item><text:p>point</text:p></text:list-item></text:list></draw:text-box></draw:frame>
<draw:frame presentation:class="title" svg:x="1cm" svg:y="1cm" svg:width="10cm" svg:height="1in"><draw:text-box><text:p>Slide One</text:p></draw:text-box></draw:frame>
<draw:frame presentation:class="footer"><draw:text-box><text:p>footer</text:p></draw:text-box></draw:frame>
<presentation:notes><draw:frame presentation:class="notes"><draw:text-box><text:p>Say it.</text:p></draw:text-box></draw:frame></presentation:notes></draw:page><draw:page/>`
	doc := parseBytes(t, "a.odp", odfPackage(t, "presentation", body))
	want := "heading1 \"Slide One\"\nlist_item1 \"- point\"\nparagraph \"Notes:\"\nparagraph \"Say it.\"\n"
	if diff := cmp.Diff(want, outline(doc)); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}
	if len(doc.Pages) != 2 || doc.Pages[1].Outcome != assay.PageNoText || len(doc.Boxes) != 2 || doc.Boxes[0].Y1 < 100 || doc.Anchors[0].Page != 1 {
		t.Errorf("pages %+v boxes %+v anchors %+v", doc.Pages, doc.Boxes, doc.Anchors)
	}
}

// TestPackagesRefused checks encrypted, damaged and hostile packages.
func TestPackagesRefused(t *testing.T) {
	good := odfPackage(t, "text", odtBody)
	deep := odfPackage(t, "text", strings.Repeat("<text:section>", 10_000)+strings.Repeat("</text:section>", 10_000))
	large := odfPackage(t, "text", "<text:p>"+strings.Repeat(" ", maxMemberBytes)+"</text:p>")
	entity := odfPackage(t, "text", "<text:p>&undeclared;</text:p>")
	locked := packZIP(t, "mimetype", "application/epub+zip", "META-INF/container.xml", `<container><rootfile full-path="a.opf"/></container>`,
		"a.opf", `<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="c" href="c.xhtml"/></manifest><spine><itemref idref="c"/></spine></package>`,
		"c.xhtml", "xx", "META-INF/rights.xml", "<rights/>", "META-INF/encryption.xml", `<encryption><EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#"><CipherData><CipherReference URI="c.xhtml"/></CipherData></EncryptedData></encryption>`)
	lost := packZIP(t, "mimetype", "application/epub+zip", "a.opf", `<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="c" href="c.xhtml"/></manifest><spine><itemref idref="c"/></spine></package>`)
	for _, tt := range []struct {
		name string
		data []byte
		want error
	}{
		{"encrypted", odfPackage(t, "text", "", "META-INF/manifest.xml", `<m:manifest xmlns:m="x"><m:encryption-data/></m:manifest>`), ErrPassword},
		{"truncated", good[:len(good)/2], ErrDamaged},
		{"no content", packZIP(t, "mimetype", "application/vnd.oasis.opendocument.text"), ErrDamaged},
		{"deep", deep, ErrLimit},
		{"large", large, ErrLimit},
		{"entity", entity, ErrDamaged},
		{"DRM", locked, ErrPassword},
		{"no chapter", lost, ErrDamaged},
		{"no package", packZIP(t, "mimetype", "application/epub+zip"), ErrDamaged},
	} {
		if _, err := Parse(t.Context(), Input{Name: "a.odt", Data: tt.data}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// TestFlippedBytes checks that packages with a changed byte give a document or an error of a
// documented kind.
func TestFlippedBytes(t *testing.T) {
	kinds := []error{ErrBinary, ErrDamaged, ErrEmpty, ErrLimit, ErrPassword, ErrEncoding}
	for name, data := range map[string][]byte{"a.odt": odfPackage(t, "text", odtBody), "a.epub": epubPackage(t)} {
		for i := 0; i < len(data); i += 3 {
			bad := bytes.Clone(data)
			bad[i] ^= 0x55
			doc, err := Parse(t.Context(), Input{Name: name, Data: bad})
			known := err == nil
			for _, k := range kinds {
				known = known || errors.Is(err, k)
			}
			if !known {
				t.Fatalf("%s, byte %d: %v", name, i, err)
			}
			if err == nil {
				checkDocument(t, doc, string(bad))
			}
		}
	}
}

// TestTextsCanceled checks that parsing ends with the context's error.
func TestTextsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	long := strings.Repeat("<text:p>words</text:p>", 10_000)
	for name, data := range map[string][]byte{
		"a.odt": odfPackage(t, "text", long), "a.epub": epubPackage(t), "a.rtf": []byte(`{\rtf1 ` + strings.Repeat(`a\par `, 10_000) + "}"),
		"a.tex": []byte(strings.Repeat("words\n\n", 10_000)), "a.adoc": []byte(strings.Repeat("words\n\n", 10_000)),
	} {
		if _, err := Parse(ctx, Input{Name: name, Data: data}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		b := newBuilder(ctx)
		for _, f := range formats {
			src := newSource(Input{Name: name, Data: data})
			if f.is(src) {
				f.parse(src, b)
				if len(b.text) > 100 {
					t.Errorf("%s: %s wrote %d bytes after the end of its context", name, f.name, len(b.text))
				}
				break
			}
		}
	}
}

func epubPackage(t testing.TB) []byte {
	t.Helper()
	return packZIP(t, "mimetype", "application/epub+zip",
		"META-INF/container.xml", `<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OPS/a.opf"/></rootfiles></container>`,
		"OPS/a.opf", `<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Book</dc:title><dc:creator>Ann</dc:creator><dc:creator>Bob</dc:creator><dc:language>fr</dc:language></metadata>
<manifest><item id="n" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/><item id="one" href="text/one%20.xhtml" media-type="application/xhtml+xml"/><item id="two" href="text/two.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="n"/><itemref idref="two"/><itemref idref="one"/></spine></package>`,
		"OPS/nav.xhtml", `<html><body><nav>contents</nav></body></html>`,
		"OPS/text/one .xhtml", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x"/></head><body><h2>Last</h2><p>end<a id="x"/> words</p></body></html>`,
		"OPS/text/two.xhtml", `<html><body><h2>First</h2><p>start</p><table><tr><td>a</td><td>b</td></tr></table></body></html>`)
}

func TestEPUB(t *testing.T) {
	doc := parseBytes(t, "a.epub", epubPackage(t))
	want := "heading2 \"First\"\nparagraph \"start\"\ntable_row \"a | b\"\nheading2 \"Last\"\nparagraph \"end words\"\n"
	if diff := cmp.Diff(want, outline(doc)); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}
	if doc.Type != "epub" || doc.Title != "Book" || fmt.Sprint(doc.Metadata[assay.MetaAuthor].List) != "[Ann Bob]" || doc.Metadata[assay.MetaLanguage].Text() != "fr" || len(doc.Anchors) > 0 {
		t.Errorf("%s %q %v %v", doc.Type, doc.Title, doc.Metadata, doc.Anchors)
	}
}

// TestPackageImages checks that the images of packages are kept for a model if they are asked for,
// and not read otherwise.
func TestPackageImages(t *testing.T) {
	var buffer bytes.Buffer
	if err := png.Encode(&buffer, image.NewGray(image.Rect(0, 0, 100, 100))); err != nil {
		t.Fatal(err)
	}
	pic := buffer.String()
	odt := odfPackage(t, "text", `<text:p>before<draw:frame><draw:image xlink:href="Pictures/1.png"/></draw:frame></text:p>`, "Pictures/1.png", pic)
	epub := packZIP(t, "mimetype", "application/epub+zip", "a.opf", `<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="c" href="t/c.xhtml"/></manifest><spine><itemref idref="c"/></spine></package>`,
		"t/c.xhtml", `<html><body><p>before</p><section><img src="../i.png"/></section><p>after</p></body></html>`, "i.png", pic)
	for name, data := range map[string][]byte{"a.odt": odt, "a.epub": epub} {
		doc, err := Parse(t.Context(), Input{Name: name, Data: data, Images: true})
		if err != nil || len(doc.Images) != 1 || doc.Images[0].After != 0 {
			t.Errorf("%s: %d images, %v", name, len(doc.Images), err)
		}
		if plain := parseBytes(t, name, data); len(plain.Images) != 0 || plain.Text != doc.Text {
			t.Errorf("%s: without images %q, with them %q", name, plain.Text, doc.Text)
		}
	}
}

func FuzzODF(f *testing.F) {
	fuzzBytes(f, "a.odt", odfPackage(f, "text", odtBody), odfPackage(f, "spreadsheet", "<table:table table:name='a'><table:table-row><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>"), epubPackage(f))
}

// FuzzODFContent gives the reader of OpenDocument other bodies.
func FuzzODFContent(f *testing.F) {
	f.Add(odtBody)
	f.Add(`<draw:page><draw:frame svg:x="1cm" svg:y="1cm" svg:width="1cm" svg:height="1cm"><draw:text-box><text:p>a</text:p></draw:text-box></draw:frame></draw:page>`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, kind := range []string{"text", "spreadsheet", "presentation"} {
			text := `<?xml version="1.0"?><office:document ` + odfNames + ` office:mimetype="application/vnd.oasis.opendocument.` + kind + `"><office:body><office:` + kind + `>` + body + `</office:` + kind + `></office:body></office:document>`
			if doc, err := Parse(t.Context(), Input{Name: "a", Data: []byte(text)}); err == nil {
				checkDocument(t, doc, text)
			}
		}
	})
}
