package pdfium

import (
	"slices"
	"unicode"
)

// A Page is what a page of a PDF shows. The unit of all lengths is the point (1/72 inch); the
// origin is the top left corner of the page as shown, that is after its rotation and within its
// crop box. Slices are in the order of the page's content stream unless said otherwise.
type Page struct {
	Number   int // from 1
	Width    float32
	Height   float32
	Rotation int // of the page, in quarter turns clockwise; already applied to all coordinates

	Chars       []Char // in PDFium's reading order
	Runs        []Run
	Rules       []Rule
	Drawings    []Box // of paths that are not rules, such as curves of figures
	Images      []Image
	Links       []Link
	Annotations []Annotation
	Structure   []*Element // roots of the page's part of the structure tree; nil if the file is not tagged
}

// A Box is a rectangle with X0 <= X1 and Y0 <= Y1.
type Box struct{ X0, Y0, X1, Y1 float32 }

// A Char is a character of the page's text.
type Char struct {
	Rune rune
	Run  int32 // index in Page.Runs; -1 for generated characters before any run
	Box  Box   // of the glyph's cell: its advance width and the font's ascent and descent; zero if generated

	X, Y float32 // origin of the glyph, which is on the baseline

	// Generated is set for blanks and line ends that PDFium adds between words and lines. A line end
	// is one "\n".
	Generated bool

	// Hyphen is set for a hyphen at the end of a line in the middle of a word. PDFium adds no line
	// end after it.
	Hyphen bool
}

// A Run is a text object: characters that are drawn together in one style.
type Run struct {
	Font   string  // base name, without the prefix of a subset: "Times-BoldItalic"
	Size   float32 // height of an em as shown, in points
	Weight int     // 400 is regular, 700 bold; 0 not known
	Italic bool
	Fixed  bool // all characters have the same width
	Serif  bool

	// Angle is the direction of the baseline as shown, in degrees clockwise in [0, 360): 0 for
	// horizontal text, 90 for text that runs downwards.
	Angle float32

	Invisible bool   // render mode 3, as in the text layers of scans
	Color     uint32 // of the fill, 0xRRGGBBAA
	MCID      int    // marked content identifier, which the structure tree refers to; -1: none
	Artifact  bool   // marked as not being content: headers, footers, watermarks
}

// A Rule is a horizontal or vertical line, or an edge of a rectangle.
type Rule struct {
	Box       // X0 == X1 or Y0 == Y1
	Width     float32
	Filled    bool   // an edge of a filled rectangle without a stroked outline
	Color     uint32 // 0xRRGGBBAA
	Rectangle int32  // edges of the same rectangle have the same number, from 1; 0: a line
}

// An Image is an image on the page.
type Image struct {
	Box
	MCID int // -1: none
}

// A Link is an area of the page that leads elsewhere.
type Link struct {
	Box
	URI  string // empty for a place in this document
	Page int    // from 1; 0: not known, or another document
}

// An Annotation is a note, a text box or a form field.
type Annotation struct {
	Box
	Kind  AnnotationKind
	Name  string // of a form field: the label for people if there is one, else the name
	Text  string // contents of a note, value of a field
	Field FieldKind
}

// An AnnotationKind is the kind of an annotation. The others are their numbers in PDFium.
type AnnotationKind int

// Kinds of annotation.
const (
	AnnotationText           AnnotationKind = 1
	AnnotationLink           AnnotationKind = 2
	AnnotationFreeText       AnnotationKind = 3
	AnnotationPopup          AnnotationKind = 16
	AnnotationFileAttachment AnnotationKind = 17
	AnnotationWidget         AnnotationKind = 20
)

// A FieldKind is the kind of a form field.
type FieldKind int

// Kinds of form field.
const (
	FieldNone FieldKind = iota
	FieldPushButton
	FieldCheckBox // Text is "checked" or empty
	FieldRadioButton
	FieldComboBox
	FieldListBox
	FieldText
	FieldSignature
)

// An Element is a node of the structure tree of a tagged PDF.
type Element struct {
	Type       string // standard or own type: "H1", "P", "Table", "TD", "Figure"
	Title      string
	Alt        string // alternative description
	ActualText string
	Language   string
	ID         string
	Scope      string // of a header cell: "Row", "Column" or "Both"
	RowSpan    int    // 0: not given
	ColSpan    int    // 0: not given
	Children   []Child
}

// A Child is a child of an Element: another element or marked content.
type Child struct {
	Element *Element // nil for marked content
	MCID    int      // of runs and images of this page if Element is nil
}

// An OutlineItem is a bookmark.
type OutlineItem struct {
	Title string
	Level int     // from 1
	Page  int     // from 1; 0: not known
	Y     float32 // of the target on the page, from its top; negative: not known
}

// Properties are the entries of the document information dictionary. Dates have the form of PDF,
// see ParseDate.
type Properties struct {
	Title, Author, Subject, Keywords, Creator, Producer string
	Created, Modified                                   string

	Language string // BCP 47 tag of the catalog
	Tagged   bool   // the document has a structure tree
}

// An Attachment is a file embedded in the document.
type Attachment struct {
	Index int
	Name  string
}

// Union returns the rectangle around b and c. A zero Box has no area and is left out.
func (b Box) Union(c Box) Box {
	switch (Box{}) {
	case b:
		return c
	case c:
		return b
	}
	return Box{min(b.X0, c.X0), min(b.Y0, c.Y0), max(b.X1, c.X1), max(b.Y1, c.Y1)}
}

// HasText reports whether the page has characters that are not blank.
func (p *Page) HasText() bool {
	return slices.ContainsFunc(p.Chars, func(c Char) bool { return unicode.IsGraphic(c.Rune) && !unicode.IsSpace(c.Rune) })
}
