package assay

import (
	"cmp"
	"fmt"
	"sort"
)

// A Structure is the structure of a document's text and where the text lies on the source's pages.
// All offsets are byte offsets into Document.Text.
type Structure struct {
	Blocks     []Block      `json:"blocks"`               // by Start, not overlapping
	Tables     []Table      `json:"tables,omitempty"`     // by Start, not overlapping
	Boxes      []Box        `json:"boxes,omitempty"`      // by Block, then Page
	Pages      []Page       `json:"pages,omitempty"`      // by Number; empty if the format has no pages
	Provenance []Provenance `json:"provenance,omitempty"` // by Start, not overlapping
}

// A BlockKind is the kind of a block.
type BlockKind string

// The kinds of block.
const (
	BlockHeading   BlockKind = "heading"
	BlockParagraph BlockKind = "paragraph" // prose; may be split between sentences
	BlockListItem  BlockKind = "list_item"
	BlockCode      BlockKind = "code"
	BlockTableHead BlockKind = "table_head" // column names of the following rows
	BlockTableRow  BlockKind = "table_row"
	BlockCaption   BlockKind = "caption" // of the table or figure next to it
	BlockFigure    BlockKind = "figure"  // its alternative text, recognised text or description
	BlockFormula   BlockKind = "formula"
	BlockFootnote  BlockKind = "footnote"
)

// A Block is a structural unit: the bytes [Start, End), without surrounding blank lines.
type Block struct {
	Kind  BlockKind `json:"kind"`
	Start int       `json:"start"`
	End   int       `json:"end"`
	Level int       `json:"level,omitempty"` // headings: 1 (outermost) and up; list items: 1 and up, 0 not known; else 0
	Label string    `json:"label,omitempty"` // headings: the text for heading paths, without markup; else empty
}

// A Table is the bytes [Start, End) of consecutive table blocks. Cells is empty if a format yields
// rows without knowing their cells.
type Table struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Cells []Cell `json:"cells,omitempty"` // by Row, then Col
}

// A Cell is a cell of a table: the bytes [Start, End), which are empty for an empty cell.
type Cell struct {
	Start   int  `json:"start"`
	End     int  `json:"end"`
	Row     int  `json:"row"`                // from 0
	Col     int  `json:"col"`                // from 0
	RowSpan int  `json:"row_span,omitempty"` // 0 means 1
	ColSpan int  `json:"col_span,omitempty"` // 0 means 1
	Header  bool `json:"header,omitempty"`   // it names a column or a row
}

// A Box is the rectangle that a block covers on a page. A block that continues on another page has
// one box for each. The unit is the point (1/72 inch), for images the pixel; the origin is the top
// left corner of the page as shown.
type Box struct {
	Block int     `json:"block"` // index in Blocks
	Page  int     `json:"page"`  // from 1
	X0    float32 `json:"x0"`
	Y0    float32 `json:"y0"`
	X1    float32 `json:"x1"` // > X0
	Y1    float32 `json:"y1"` // > Y0
}

// A PageOutcome is what a parser found on a page.
type PageOutcome string

// The outcomes of a page.
const (
	PageText       PageOutcome = "text"       // a text layer
	PageRecognized PageOutcome = "recognized" // text only by optical character recognition
	PageNoText     PageOutcome = "no_text"
	PageFailed     PageOutcome = "failed" // Detail has the reason; the other pages are parsed
)

// A Page is a page, slide or image of the source.
type Page struct {
	Number  int         `json:"number"` // from 1
	Outcome PageOutcome `json:"outcome"`
	Width   float32     `json:"width,omitempty"` // in the unit of Box; 0: not known
	Height  float32     `json:"height,omitempty"`
	Detail  string      `json:"detail,omitempty"` // human-readable, of pages without text
}

// A ProvenanceKind is how a parser obtained text that the source does not contain as text.
type ProvenanceKind string

// The kinds of provenance.
const (
	ProvenanceRecognized ProvenanceKind = "recognized" // optical character recognition of an image
	ProvenanceDescribed  ProvenanceKind = "described"  // a model's description of an image, never quoted as the document's words
)

// Label states in words how text was obtained: "recognised text, confidence 62 %" or "description by
// MODEL". It is empty for text that the source contains.
func (k ProvenanceKind) Label(confidence float32, model string) string {
	switch k {
	case ProvenanceRecognized:
		return fmt.Sprintf("recognised text, confidence %.0f %%", 100*confidence)
	case ProvenanceDescribed:
		return "description by " + cmp.Or(model, "a model")
	}
	return ""
}

// A Provenance marks the bytes [Start, End) as text that the source does not contain as text.
type Provenance struct {
	Start      int            `json:"start"`
	End        int            `json:"end"`
	Kind       ProvenanceKind `json:"kind"`
	Confidence float32        `json:"confidence,omitempty"` // of recognition, in [0, 1]; the mean of its words
	Model      string         `json:"model,omitempty"`      // of a description
}

// In returns the blocks with boxes, the boxes and the provenance of Text[start:end], with offsets
// relative to start and cut to the span. Tables and pages are left out.
func (s Structure) In(start, end int) Structure {
	var in Structure
	cut := func(from, to int) (int, int, bool) {
		from, to = max(from, start), min(to, end)
		return from - start, to - start, from < to
	}
	for _, p := range s.Provenance {
		var ok bool
		if p.Start, p.End, ok = cut(p.Start, p.End); ok {
			in.Provenance = append(in.Provenance, p)
		}
	}
	last := -1 // block of the last box taken
	for _, box := range s.Boxes {
		if box.Block < 0 || box.Block >= len(s.Blocks) {
			continue
		}
		b := s.Blocks[box.Block]
		var ok bool
		if b.Start, b.End, ok = cut(b.Start, b.End); !ok {
			continue
		}
		if box.Block != last {
			in.Blocks, last = append(in.Blocks, b), box.Block
		}
		box.Block = len(in.Blocks) - 1
		in.Boxes = append(in.Boxes, box)
	}
	return in
}

// Rectangles returns the rectangles of the blocks that Text[start:end] lies in, in the order of
// Boxes.
func (s Structure) Rectangles(start, end int) []Rectangle {
	var all []Rectangle
	for _, box := range s.Boxes {
		if box.Block < 0 || box.Block >= len(s.Blocks) {
			continue
		}
		if b := s.Blocks[box.Block]; b.Start < end && start < b.End {
			all = append(all, Rectangle{Page: box.Page, X0: box.X0, Y0: box.Y0, X1: box.X1, Y1: box.Y1})
		}
	}
	return all
}

// ProvenanceOf returns how the text of [start, end) was obtained, as one Provenance with that span.
// A description takes precedence over recognised text, and the lowest Confidence counts. The Kind is
// empty if the source contains all of the text.
func (s Structure) ProvenanceOf(start, end int) Provenance {
	all := Provenance{Start: start, End: end}
	first := sort.Search(len(s.Provenance), func(i int) bool { return s.Provenance[i].End > start })
	for _, p := range s.Provenance[first:] {
		if p.Start >= end {
			break
		}
		if all.Kind == ProvenanceDescribed && p.Kind != ProvenanceDescribed {
			continue
		}
		if all.Kind != p.Kind || p.Confidence < all.Confidence {
			all.Kind, all.Confidence, all.Model = p.Kind, p.Confidence, p.Model
		}
	}
	return all
}

// A Rectangle is a part of a page, in the unit and with the origin of Box.
type Rectangle struct {
	Page int     `json:"page"` // from 1
	X0   float32 `json:"x0"`
	Y0   float32 `json:"y0"`
	X1   float32 `json:"x1"` // > X0
	Y1   float32 `json:"y1"` // > Y0
}

// PageCounts are the numbers of pages by outcome. The pages not counted by name have a text layer.
type PageCounts struct {
	Total      int `json:"total"` // 0: the format has no pages
	Recognized int `json:"recognized,omitempty"`
	NoText     int `json:"no_text,omitempty"`
	Failed     int `json:"failed,omitempty"`
}

// CountPages counts the pages by outcome.
func (s Structure) CountPages() PageCounts {
	n := PageCounts{Total: len(s.Pages)}
	for _, p := range s.Pages {
		switch p.Outcome {
		case PageRecognized:
			n.Recognized++
		case PageNoText:
			n.NoText++
		case PageFailed:
			n.Failed++
		}
	}
	return n
}
