package parse

import "github.com/assay-rag/assay"

// Input is one source's bytes and what is known of them from outside.
type Input struct {
	Name string // file name or last part of the URL; a hint for the format, never trusted over the content
	Data []byte
}

// A Document is a source's text with its structure. Every byte of Text that is
// not blank lies in exactly one block.
type Document struct {
	Type     string  // "markdown", "html", "text", "rst", "go", "source", "csv", "json", "jsonl"
	Title    string  // empty when the source names none
	Text     string  // normalised as assay.Document.Text says
	Blocks   []Block // by Start, not overlapping
	Anchors  []assay.Anchor
	Metadata assay.Metadata // front matter and what the format says of itself (author, created, …); no Title
}

// A BlockKind says what a block is.
type BlockKind string

// The kinds of block.
const (
	Heading   BlockKind = "heading"
	Paragraph BlockKind = "paragraph" // prose; may be cut between sentences
	ListItem  BlockKind = "list_item"
	Code      BlockKind = "code"
	TableHead BlockKind = "table_head" // the column names of the rows that follow
	TableRow  BlockKind = "table_row"
)

// A Block is a structural unit: the bytes [Start, End) of Text, without the
// blank lines around it.
type Block struct {
	Kind  BlockKind
	Start int
	End   int
	Level int    // headings: 1 (outermost) and up; else 0
	Label string // headings: the words for heading paths, without markup; else empty
}
