// Package pdflayout finds the structure of PDF pages: headings, paragraphs, lists, tables, captions,
// footnotes and code in reading order. It works on the characters, rules and structure trees that
// package pdfium delivers, and on nothing else: the same pages give the same blocks.
//
// A page is divided as follows:
//
//   - Characters become fragments: text on one baseline without a wide gap (fragment.go).
//   - Rules that cross form the grids of tables (ruled.go), after A. Nurminen, Algorithmic Extraction
//     of Data in Tables in PDF Documents, Tampere 2013, section 6, as in Tabula.
//   - The other fragments are divided recursively into columns and rows by white space (order.go): the
//     XY-cut of G. Nagy and S. Seth, Hierarchical Representation of Optically Scanned Documents, ICPR
//     1984, on bounding boxes as by J. Ha, R. Haralick and I. Phillips, ICDAR 1995. A column section
//     ends where a line crosses its gutter.
//   - Rows with common gaps are a table without rules if their cells were written row by row
//     (grid.go).
//   - Lines of a column are joined to paragraphs (compose.go).
//
// The document decides the rest: repeated lines at the edges of pages are furniture and are left out
// (furniture.go), and headings stand out from the most frequent style (heading.go). If the document
// is tagged, its structure tree says which lines are headings and artifacts (tags.go); the outline
// says which lines are headings and how deep.
package pdflayout

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pdfium"
)

// A Block is a structural unit of the document's text.
type Block struct {
	Kind  assay.BlockKind
	Level int    // of headings and list items, from 1; else 0
	Text  string // lines of code are separated by "\n"; empty for tables

	// Starts gives the page of Text from an offset on. The first offset is 0. It has several
	// elements if a paragraph continues on another page.
	Starts []PageStart

	Boxes []Box // one for each page
	Table *Table
	Tight bool // it begins on the next line, without a blank line

	size float32 // of a heading
}

// A PageStart is a place in a text where a page begins.
type PageStart struct {
	Offset int
	Page   int // from 1
}

// A Box is a rectangle on a page, in the coordinates of pdfium.Page.
type Box struct {
	Page int // from 1
	pdfium.Box
}

// A Table is a grid of cells.
type Table struct {
	Cells []Cell // by row, then column
	Rows  []Box  // by row
}

// A Cell is a cell of a table. Empty cells are given too.
type Cell struct {
	Text             string
	Row, Col         int // from 0
	RowSpan, ColSpan int // from 1
	Header           bool
}

// An Analyzer collects the pages of a document. It keeps their lines, not their characters.
type Analyzer struct {
	pages []page
	words map[string]int // how often words occur, to resolve hyphens
}

// New returns an Analyzer without pages.
func New() *Analyzer { return &Analyzer{words: map[string]int{}} }

// A page is the lines and tables of a page in reading order.
type page struct {
	number        int
	width, height float32
	areas         []area
}

// An area is a column of lines, or a table.
type area struct {
	x0, x1 float32 // of the column
	lines  []*line
	table  *Table
	box    pdfium.Box // of the table
	size   float32    // of most characters of the table
	chars  int        // of the table
	angle  int        // quarter turns of the text
}

// Add analyses the next page. Pages are added in order.
func (a *Analyzer) Add(ctx context.Context, p *pdfium.Page) error {
	out := page{number: p.Number, width: p.Width, height: p.Height}
	views := viewsOf(p)
	for i := range views { // the first may take text of the others
		areas, err := views[i].areas(ctx)
		if err != nil {
			return err
		}
		out.areas = append(out.areas, areas...)
	}
	tags := tagsOf(p)
	for i := range out.areas {
		for _, l := range out.areas[i].lines {
			l.page = p.Number
			l.tag = tags.of(l)
			a.count(l.text)
		}
	}
	a.pages = append(a.pages, out)
	return ctx.Err()
}

// Blocks returns the blocks of all pages. The outline may be nil.
func (a *Analyzer) Blocks(ctx context.Context, outline []pdfium.OutlineItem) ([]Block, error) {
	a.markFurniture()
	s := a.measure()
	s.outline = newOutline(outline)
	c := composer{words: a.words, style: s}
	for _, p := range a.pages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.page(p)
	}
	c.style.rank(c.blocks)
	return c.blocks, ctx.Err()
}
