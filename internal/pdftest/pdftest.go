// Package pdftest writes small PDF files for tests.
package pdftest

import (
	"bytes"
	"compress/zlib"
	"crypto/md5"
	"crypto/rc4"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// A File is a PDF in the making. Coordinates are in points, from the top left corner of the page.
type File struct {
	Info     map[string]string // document properties, such as "Title" and "CreationDate"
	Password string            // that opens the file, of ASCII; empty: the file is not encrypted
	Language string            // of the catalog
	Compress bool              // the streams

	pages       []*Page
	attachments []attachment
	outline     []bookmark
	objects     []object
}

type attachment struct {
	name string
	data []byte
}

type bookmark struct {
	title string
	page  int
	y     float64
}

// A Page is a page of a File.
type Page struct {
	Rotate int        // degrees clockwise
	Crop   [4]float64 // X0, Y0, X1, Y1; zero: the whole page
	Broken bool       // the page is no page

	width, height float64
	content       bytes.Buffer
	runes         map[rune]bool
	annotations   []string
	fields        []string
	tags          []string // by marked content identifier
}

// An object is an indirect object, which write builds with a function that encrypts its strings and
// streams.
type object struct {
	write func(seal func([]byte) []byte) []byte
}

// Page adds a page of a size.
func (f *File) Page(width, height float64) *Page {
	p := &Page{width: width, height: height, runes: map[rune]bool{}}
	f.pages = append(f.pages, p)
	return p
}

// Attach embeds a file.
func (f *File) Attach(name string, data []byte) {
	f.attachments = append(f.attachments, attachment{name, data})
}

// Bookmark adds a bookmark to a page, from 1, at a height.
func (f *File) Bookmark(title string, page int, y float64) {
	f.outline = append(f.outline, bookmark{title, page, y})
}

// Text draws s with its baseline starting at (x, y). The font is Helvetica, or Helvetica-Bold if
// bold is set; s is of ASCII.
func (p *Page) Text(x, y, size float64, bold bool, s string) {
	font := "F1"
	if bold {
		font = "F2"
	}
	s = strings.NewReplacer("\\", "\\\\", "(", "\\(", ")", "\\)").Replace(s)
	fmt.Fprintf(&p.content, "BT /%s %g Tf 1 0 0 1 %g %g Tm (%s) Tj ET\n", font, size, x, p.height-y, s)
}

// Hidden draws s as Text does, but without showing it, as in the text layers of scans.
func (p *Page) Hidden(x, y, size float64, s string) {
	p.content.WriteString("3 Tr\n")
	p.Text(x, y, size, false, s)
	p.content.WriteString("0 Tr\n")
}

// Unicode draws runes of the Basic Multilingual Plane from left to right, each half an em wide.
func (p *Page) Unicode(x, y, size float64, s string) {
	fmt.Fprintf(&p.content, "BT /F3 %g Tf 1 0 0 1 %g %g Tm <", size, x, p.height-y)
	for _, r := range s {
		p.runes[r] = true
		fmt.Fprintf(&p.content, "%04X", r)
	}
	p.content.WriteString("> Tj ET\n")
}

// Tagged draws s as Text does, as marked content of an element of the structure tree.
func (p *Page) Tagged(tag string, x, y, size float64, bold bool, s string) {
	fmt.Fprintf(&p.content, "/%s <</MCID %d>> BDC\n", tag, len(p.tags))
	p.Text(x, y, size, bold, s)
	p.content.WriteString("EMC\n")
	p.tags = append(p.tags, tag)
}

// Artifact draws s as Text does, marked as an artifact.
func (p *Page) Artifact(x, y, size float64, s string) {
	p.content.WriteString("/Artifact BMC\n")
	p.Text(x, y, size, false, s)
	p.content.WriteString("EMC\n")
}

// Line draws a line.
func (p *Page) Line(x0, y0, x1, y1 float64) {
	fmt.Fprintf(&p.content, "%g %g m %g %g l S\n", x0, p.height-y0, x1, p.height-y1)
}

// Rectangle draws a rectangle, filled or in outline.
func (p *Page) Rectangle(x0, y0, x1, y1 float64, filled bool) {
	paint := "S"
	if filled {
		paint = "f"
	}
	fmt.Fprintf(&p.content, "%g %g %g %g re %s\n", x0, p.height-y1, x1-x0, y1-y0, paint)
}

// Image draws an image of one grey pixel.
func (p *Page) Image(x0, y0, x1, y1 float64) {
	fmt.Fprintf(&p.content, "q %g 0 0 %g %g %g cm BI /W 1 /H 1 /BPC 8 /CS /G ID x\nEI Q\n", x1-x0, y1-y0, x0, p.height-y1)
}

// Raw adds operators to the content of the page.
func (p *Page) Raw(operators string) { p.content.WriteString(operators + "\n") }

// Table draws the lines and the texts of a table with columns of a width and rows 20 points high.
func (p *Page) Table(x, y, width float64, rows [][]string) {
	const height = 20
	for i, row := range rows {
		for j, cell := range row {
			p.Text(x+float64(j)*width+4, y+float64(i)*height+14, 10, i == 0, cell)
		}
	}
	right, bottom := x+width*float64(len(rows[0])), y+height*float64(len(rows))
	for i := range len(rows) + 1 {
		p.Line(x, y+float64(i)*height, right, y+float64(i)*height)
	}
	for j := range len(rows[0]) + 1 {
		p.Line(x+float64(j)*width, y, x+float64(j)*width, bottom)
	}
}

// Note adds a note.
func (p *Page) Note(x0, y0, x1, y1 float64, text string) {
	p.annotations = append(p.annotations, fmt.Sprintf("<</Type/Annot/Subtype/Text/Rect%s/Contents %s>>", p.rect(x0, y0, x1, y1), hexString(text)))
}

// Link adds a link.
func (p *Page) Link(x0, y0, x1, y1 float64, uri string) {
	p.annotations = append(p.annotations, fmt.Sprintf("<</Type/Annot/Subtype/Link/Rect%s/A<</S/URI/URI(%s)>>>>", p.rect(x0, y0, x1, y1), uri))
}

// Field adds a text field with a value.
func (p *Page) Field(x0, y0, x1, y1 float64, name, value string) {
	p.fields = append(p.fields, fmt.Sprintf("<</Type/Annot/Subtype/Widget/FT/Tx/Rect%s/T %s/V %s>>", p.rect(x0, y0, x1, y1), hexString(name), hexString(value)))
}

func (p *Page) rect(x0, y0, x1, y1 float64) string {
	return fmt.Sprintf("[%g %g %g %g]", x0, p.height-y1, x1, p.height-y0)
}

// hexString returns s as a string of PDF in UTF-16.
func hexString(s string) string {
	var b strings.Builder
	b.WriteString("<FEFF")
	for _, u := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, "%04X", u)
	}
	b.WriteString(">")
	return b.String()
}

// add adds an object without strings to encrypt and returns its number.
func (f *File) add(body string) int {
	f.objects = append(f.objects, object{func(func([]byte) []byte) []byte { return []byte(body) }})
	return len(f.objects)
}

// stream adds a stream. The dictionary has no delimiters.
func (f *File) stream(dictionary string, data []byte) int {
	if f.Compress {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		z.Write(data) // a bytes.Buffer takes all
		z.Close()
		dictionary, data = dictionary+"/Filter/FlateDecode", b.Bytes()
	}
	f.objects = append(f.objects, object{func(seal func([]byte) []byte) []byte {
		sealed := seal(data)
		return fmt.Appendf(nil, "<<%s/Length %d>>\nstream\n%s\nendstream", dictionary, len(sealed), sealed)
	}})
	return len(f.objects)
}

// strings adds a dictionary of strings.
func (f *File) strings(values map[string]string) int {
	f.objects = append(f.objects, object{func(seal func([]byte) []byte) []byte {
		var b bytes.Buffer
		b.WriteString("<<")
		keys := []string{}
		for key := range values {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			encoded := []byte{0xfe, 0xff}
			for _, u := range utf16.Encode([]rune(values[key])) {
				encoded = binary.BigEndian.AppendUint16(encoded, u)
			}
			fmt.Fprintf(&b, "/%s<%X>", key, seal(encoded))
		}
		b.WriteString(">>")
		return b.Bytes()
	}})
	return len(f.objects)
}

// Bytes returns the file. It is called once.
func (f *File) Bytes() []byte {
	const catalog, tree = 1, 2 // numbers of these objects
	f.objects = make([]object, tree)
	helvetica := f.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	bold := f.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold>>")
	fonts := fmt.Sprintf("/F1 %d 0 R/F2 %d 0 R/F3 %d 0 R", helvetica, bold, f.unicodeFont())
	var kids, fields strings.Builder
	var pages []int
	for i, p := range f.pages {
		n := f.page(p, i, tree, fonts, &fields)
		pages = append(pages, n)
		fmt.Fprintf(&kids, "%d 0 R ", n)
	}
	extra := f.outlines(pages) + f.embedded() + f.structure(pages)
	if fields.Len() > 0 {
		extra += fmt.Sprintf("/AcroForm<</Fields[%s]>>", &fields)
	}
	if f.Language != "" {
		extra += "/Lang(" + f.Language + ")"
	}
	info := f.strings(f.Info)
	f.set(tree, fmt.Sprintf("<</Type/Pages/Count %d/Kids[%s]>>", len(pages), &kids))
	f.set(catalog, fmt.Sprintf("<</Type/Catalog/Pages %d 0 R%s>>", tree, extra))
	return f.assemble(catalog, info)
}

func (f *File) set(n int, body string) {
	f.objects[n-1] = object{func(func([]byte) []byte) []byte { return []byte(body) }}
}

// page adds a page and returns its number.
func (f *File) page(p *Page, index, tree int, fonts string, fields *strings.Builder) int {
	if p.Broken {
		return f.add("null")
	}
	content := f.stream("", p.content.Bytes())
	var annotations strings.Builder
	for _, a := range p.annotations {
		fmt.Fprintf(&annotations, "%d 0 R ", f.add(a))
	}
	for _, a := range p.fields {
		n := f.add(a)
		fmt.Fprintf(&annotations, "%d 0 R ", n)
		fmt.Fprintf(fields, "%d 0 R ", n)
	}
	extra := ""
	if p.Crop != ([4]float64{}) {
		extra = "/CropBox" + p.rect(p.Crop[0], p.Crop[1], p.Crop[2], p.Crop[3])
	}
	if len(p.tags) > 0 {
		extra += fmt.Sprintf("/StructParents %d", index)
	}
	return f.add(fmt.Sprintf("<</Type/Page/Parent %d 0 R/MediaBox[0 0 %g %g]/Rotate %d%s/Resources<</Font<<%s>>>>/Contents %d 0 R/Annots[%s]>>",
		tree, p.width, p.height, p.Rotate, extra, fonts, content, &annotations))
}

// unicodeFont adds a font whose codes are the runes.
func (f *File) unicodeFont() int {
	used := map[rune]bool{}
	for _, p := range f.pages {
		for r := range p.runes {
			used[r] = true
		}
	}
	var runes []rune
	for r := range used {
		runes = append(runes, r)
	}
	slices.Sort(runes)
	var b bytes.Buffer
	b.WriteString("/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n1 begincodespacerange <0000> <FFFF> endcodespacerange\n")
	for chunk := range slices.Chunk(runes, 100) {
		fmt.Fprintf(&b, "%d beginbfchar\n", len(chunk))
		for _, r := range chunk {
			fmt.Fprintf(&b, "<%04X> <%04X>\n", r, r)
		}
		b.WriteString("endbfchar\n")
	}
	b.WriteString("endcmap end end")
	unicode := f.stream("", b.Bytes())
	descriptor := f.add("<</Type/FontDescriptor/FontName/Any/Flags 4/FontBBox[0 -200 500 800]/Ascent 800/Descent -200/CapHeight 700/ItalicAngle 0/StemV 80>>")
	descendant := f.add(fmt.Sprintf("<</Type/Font/Subtype/CIDFontType2/BaseFont/Any/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/DW 500/FontDescriptor %d 0 R>>", descriptor))
	return f.add(fmt.Sprintf("<</Type/Font/Subtype/Type0/BaseFont/Any/Encoding/Identity-H/DescendantFonts[%d 0 R]/ToUnicode %d 0 R>>", descendant, unicode))
}

func (f *File) outlines(pages []int) string {
	if len(f.outline) == 0 {
		return ""
	}
	root := len(f.objects) + 1
	f.add(fmt.Sprintf("<</Type/Outlines/First %d 0 R/Last %d 0 R/Count %d>>", root+1, root+len(f.outline), len(f.outline)))
	for i, b := range f.outline {
		next := ""
		if i+1 < len(f.outline) {
			next = fmt.Sprintf("/Next %d 0 R", root+i+2)
		}
		f.add(fmt.Sprintf("<</Title %s/Parent %d 0 R%s/Dest[%d 0 R/XYZ 0 %g 0]>>", hexString(b.title), root, next, pages[b.page-1], f.pages[b.page-1].height-b.y))
	}
	return fmt.Sprintf("/Outlines %d 0 R", root)
}

func (f *File) embedded() string {
	if len(f.attachments) == 0 {
		return ""
	}
	var names strings.Builder
	for _, a := range f.attachments {
		data := f.stream("/Type/EmbeddedFile", a.data)
		file := f.add(fmt.Sprintf("<</Type/Filespec/F %s/UF %s/EF<</F %d 0 R>>>>", hexString(a.name), hexString(a.name), data))
		fmt.Fprintf(&names, "%s %d 0 R ", hexString(a.name), file)
	}
	return fmt.Sprintf("/Names<</EmbeddedFiles<</Names[%s]>>>>", &names)
}

// structure adds the structure tree of the pages with tagged text.
func (f *File) structure(pages []int) string {
	var kids, parents strings.Builder
	root := 0
	for i, p := range f.pages {
		if len(p.tags) == 0 {
			continue
		}
		if root == 0 {
			root = f.add("")
		}
		var elements strings.Builder
		for mcid, tag := range p.tags {
			fmt.Fprintf(&elements, "%d 0 R ", f.add(fmt.Sprintf("<</Type/StructElem/S/%s/P %d 0 R/Pg %d 0 R/K %d>>", tag, root, pages[i], mcid)))
		}
		kids.WriteString(elements.String())
		fmt.Fprintf(&parents, "%d[%s]", i, &elements)
	}
	if root == 0 {
		return ""
	}
	f.set(root, fmt.Sprintf("<</Type/StructTreeRoot/K[%s]/ParentTree<</Nums[%s]>>>>", &kids, &parents))
	return fmt.Sprintf("/MarkInfo<</Marked true>>/StructTreeRoot %d 0 R", root)
}

// assemble writes the objects, the cross-reference table and the trailer.
func (f *File) assemble(catalog, info int) []byte {
	trailer := fmt.Sprintf("/Root %d 0 R/Info %d 0 R", catalog, info)
	var key []byte
	if f.Password != "" {
		var entry string
		key, entry = encryption(f.Password)
		trailer += entry
	}
	var out bytes.Buffer
	out.WriteString("%PDF-1.7\n")
	var offsets []int
	for i, o := range f.objects {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o.write(func(data []byte) []byte { return seal(key, i+1, data) }))
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&out, "trailer\n<</Size %d%s>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, trailer, start)
	return out.Bytes()
}

// padding completes passwords. Source: ISO 32000-1, algorithm 2.
const padding = "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A"

// encryption returns the key of a file with a password for users and owners, and the entries of
// the trailer: RC4 with 40 bits, ISO 32000-1, algorithms 2 to 4.
func encryption(password string) (key []byte, entry string) {
	const id = "0123456789abcdef"
	padded := []byte((password + padding)[:32])
	owner := md5.Sum(padded)
	o := crypt(owner[:5], padded)
	all := slices.Concat(padded, o, []byte{0xfc, 0xff, 0xff, 0xff}, []byte(id))
	sum := md5.Sum(all)
	key = sum[:5]
	u := crypt(key, []byte(padding))
	return key, fmt.Sprintf("/ID[<%X><%X>]/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<%X>/U<%X>>>", id, id, o, u)
}

// seal encrypts data of the object with a number. Source: ISO 32000-1, algorithm 1.
func seal(key []byte, number int, data []byte) []byte {
	if key == nil {
		return data
	}
	sum := md5.Sum(slices.Concat(key, []byte{byte(number), byte(number >> 8), byte(number >> 16), 0, 0}))
	return crypt(sum[:len(key)+5], data)
}

func crypt(key, data []byte) []byte {
	c, err := rc4.NewCipher(key)
	if err != nil {
		panic(err)
	}
	out := make([]byte, len(data))
	c.XORKeyStream(out, data)
	return out
}
