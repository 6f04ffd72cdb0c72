package parse

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ooxml"
)

// Limits of a workbook.
const (
	maxSheets     = 10_000
	maxCells      = 500_000   // cells with text, in all sheets
	maxMerged     = 200_000   // cells covered by merged ones, in one sheet
	maxSheetBytes = 512 << 20 // of a sheet's XML
	maxStrings    = 64 << 20  // bytes of the shared strings
	maxCellText   = 32 << 20  // bytes of the text of all cells
	maxRow        = 1 << 20
	maxCol        = 1 << 14
)

// parseXLSX parses a workbook sheet by sheet: a heading, each connected region of cells as a table,
// text boxes and charts, and comments. Values are written as displayed, except that dates and times
// are in ISO 8601 form; formulas are their stored results. Hidden sheets are read too; the metadata
// has their names as "hidden_sheets".
func parseXLSX(src *source, b *builder) bool {
	b.err = officeError(readXLSX(src, b))
	return true
}

func readXLSX(src *source, b *builder) error {
	o, err := openOffice(src, b)
	if err != nil {
		return err
	}
	root, err := o.pkg.Tree(o.main)
	if err != nil {
		return err
	}
	x := &xlsxReader{officeReader: o, people: map[string]string{}}
	x.date1904 = isTrue(root.Child("workbookPr").Attr("date1904"))
	if err := x.readStrings(); err != nil {
		return err
	}
	if err := x.readFormats(); err != nil {
		return err
	}
	defer x.formats.close()
	if err := x.readPeople(); err != nil {
		return err
	}
	sheets := root.Child("sheets").All("sheet")
	if len(sheets) > maxSheets {
		return fmt.Errorf("it has %d sheets, more than %d: %w", len(sheets), maxSheets, ErrLimit)
	}
	var hidden []string
	for _, s := range sheets {
		if state := s.Attr("state"); state == "hidden" || state == "veryHidden" {
			hidden = append(hidden, s.Attr("name"))
		}
		if err := x.sheet(s); err != nil {
			return err
		}
	}
	if len(hidden) > 0 {
		b.set("hidden_sheets", assay.ListValue(hidden...))
	}
	return b.ctx.Err()
}

// An xlsxReader is the state of reading a workbook.
type xlsxReader struct {
	*officeReader
	date1904 bool
	strings  []string
	formats  *numberFormats
	people   map[string]string // the authors of threaded comments, by ID
	cells    int               // so far, in all sheets
	text     int               // bytes of their text
}

// readStrings reads the strings that cells share.
func (x *xlsxReader) readStrings() error {
	r, ok := x.pkg.First(x.rels, "sharedStrings")
	if !ok {
		return nil
	}
	d, err := x.pkg.Decoder(r.Target, maxSheetBytes)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Root(); err != nil {
		return err
	}
	size := 0
	return d.Children(func(n *ooxml.Node) error {
		if n.Name != "si" {
			return nil
		}
		n, err := d.Tree(n)
		if err != nil {
			return err
		}
		s := richText(n)
		const header = 16
		if size += len(s) + header; size > maxStrings {
			return fmt.Errorf("its strings have more than %d MiB: %w", maxStrings>>20, ErrLimit)
		}
		x.strings = append(x.strings, s)
		return nil
	})
}

// richText returns the text of a string without its phonetic reading.
func richText(n *ooxml.Node) string {
	if len(n.Children) == 1 && n.Children[0].Name == "t" {
		return unescape(n.Children[0].Text)
	}
	var out strings.Builder
	for _, c := range n.Children {
		switch c.Name {
		case "t":
			out.WriteString(c.Text)
		case "r":
			out.WriteString(c.Child("t").String())
		}
	}
	return unescape(out.String())
}

// unescape replaces the escapes "_x000D_" of characters that XML cannot have.
func unescape(s string) string {
	const size = len("_x000D_")
	at := strings.Index(s, "_x")
	if at < 0 {
		return s
	}
	var out strings.Builder
	for at >= 0 {
		out.WriteString(s[:at])
		s = s[at:]
		code, err := strconv.ParseUint(s[min(2, len(s)):min(6, len(s))], 16, 16)
		if len(s) >= size && s[size-1] == '_' && err == nil {
			out.WriteRune(rune(code))
			s = s[size:]
		} else {
			out.WriteString(s[:2])
			s = s[2:]
		}
		at = strings.Index(s, "_x")
	}
	return out.String() + s
}

func (x *xlsxReader) readFormats() error {
	root, err := x.tree(x.rels, "styles")
	if err != nil {
		return err
	}
	x.formats = newNumberFormats(root, x.date1904)
	return nil
}

func (x *xlsxReader) readPeople() error {
	root, err := x.tree(x.rels, "person")
	if err != nil || root == nil {
		return err
	}
	for _, p := range root.All("person") {
		x.people[p.Attr("id")] = p.Attr("displayName")
	}
	return nil
}

// sheet writes one sheet, unless it is empty.
func (x *xlsxReader) sheet(n *ooxml.Node) error {
	r, ok := x.pkg.ID(x.rels, n.Attr("r:id"))
	if !ok {
		return nil // a macro sheet or a link to another workbook
	}
	rels, err := x.pkg.Relationships(r.Target)
	if err != nil {
		return err
	}
	grid := &xlsxGrid{}
	if r.Type == "worksheet" {
		if err := x.readSheet(r.Target, grid); err != nil {
			return err
		}
		if err := x.readTables(rels, grid); err != nil {
			return err
		}
	}
	_, drawing := x.pkg.First(rels, "drawing")
	_, comments := x.pkg.First(rels, "comments")
	if len(grid.cells) == 0 && !drawing && !comments {
		return nil
	}
	x.b.heading(1, n.Attr("name"), 0)
	if err := grid.write(x.b); err != nil {
		return err
	}
	if err := x.optional("a drawing", x.drawings(rels)); err != nil {
		return err
	}
	for _, r := range rels {
		if r.Type == "oleObject" || r.Type == "package" {
			x.addEmbedded(rels, r.ID)
		}
	}
	return x.optional("comments", x.comments(rels))
}

// readTables reads the places of the tables that a sheet defines.
func (x *xlsxReader) readTables(rels ooxml.Relationships, grid *xlsxGrid) error {
	for _, r := range rels {
		if r.Type != "table" || r.External || !x.pkg.Has(r.Target) {
			continue
		}
		root, err := x.pkg.Tree(r.Target)
		if err != nil {
			return err
		}
		area, ok := parseArea(root.Attr("ref"))
		if ok && root.Attr("headerRowCount") != "0" {
			area.row1 = area.row0
			grid.heads = append(grid.heads, area)
		}
	}
	return nil
}

// drawings writes the text boxes, pictures and charts of a sheet.
func (x *xlsxReader) drawings(rels ooxml.Relationships) error {
	r, ok := x.pkg.First(rels, "drawing")
	if !ok {
		return nil
	}
	root, err := x.pkg.Tree(r.Target)
	if err != nil {
		return err
	}
	inside, err := x.pkg.Relationships(r.Target)
	if err != nil {
		return err
	}
	var failed error
	var visit func(n *ooxml.Node) bool
	visit = func(n *ooxml.Node) bool {
		if failed != nil || x.b.canceled() {
			return false
		}
		switch n.Name {
		case "mc:AlternateContent":
			for _, c := range alternative(n) {
				c.Walk(visit)
			}
			return false
		case "xdr:txBody":
			x.b.puts(Paragraph, trimLines(bodyText(n)), 0)
		case "xdr:pic":
			x.picture(inside, n.Child("xdr:blipFill", "a:blip").Attr("r:embed"), altText(n.Child("xdr:nvPicPr", "xdr:cNvPr")), nil)
			return false
		case "xdr:cNvPr":
			x.b.puts(Figure, altText(n), 0)
		case "c:chart":
			failed = x.chart(inside, n.Attr("r:id"))
		case "cx:chart":
			failed = x.chartEx(inside, n.Attr("r:id"))
		case "dgm:relIds":
			failed = x.diagram(inside, n.Attr("r:dm"))
		}
		return failed == nil
	}
	root.Walk(visit)
	return failed
}

// comments writes the comments on the cells of a sheet. Office keeps a copy of threaded comments for
// older programs, which is left out.
func (x *xlsxReader) comments(rels ooxml.Relationships) error {
	root, err := x.tree(rels, "comments")
	if err != nil {
		return err
	}
	threads, err := x.tree(rels, "threadedComment")
	if err != nil {
		return err
	}
	var authors []string
	for _, a := range root.Child("authors").All("author") {
		authors = append(authors, a.Text)
	}
	for _, c := range root.Child("commentList").All("comment") {
		author := ""
		if i, err := strconv.Atoi(c.Attr("authorId")); err == nil && i >= 0 && i < len(authors) {
			author = authors[i]
		}
		if threads != nil && strings.HasPrefix(author, "tc=") {
			continue
		}
		if text := c.Child("text"); text != nil {
			x.comment(c.Attr("ref"), author, "", richText(text))
		}
	}
	if threads != nil {
		for _, c := range threads.All("threadedComment") {
			x.comment(c.Attr("ref"), x.people[c.Attr("personId")], c.Attr("dT"), c.Child("text").String())
		}
	}
	return nil
}
