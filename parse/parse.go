// Package parse turns a source's bytes into a Document: normalised text, its
// structure as blocks, anchors back to the source's lines, and what the format
// says of itself. It picks the format by the content; a name is only a hint.
//
// It reads Markdown, HTML, plain text, reStructuredText, Go and other source
// code, CSV and JSON. It does not fetch, store or cut anything: package chunk
// cuts.
package parse

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/assay-rag/assay"
)

// Version names what Parse makes of an input. It changes whenever the same bytes
// would give another Document; a stored document of another version is parsed
// again.
const Version = "parse-2"

// Kinds of input that Parse refuses. The error says what was found.
var (
	// ErrBinary: not a text, or a format that is not read yet (PDF, DOCX, …).
	ErrBinary = errors.New("not a readable text")

	// ErrEncoding: a text in an encoding that cannot be told or is not read.
	ErrEncoding = errors.New("unreadable text encoding")

	// ErrMinified: code that a program wrote for programs, on a few endless lines.
	ErrMinified = errors.New("minified code")

	// ErrEmpty: nothing but blanks, or markup without any text.
	ErrEmpty = errors.New("no text")
)

// Input is one source's bytes and what is known of them from outside.
type Input struct {
	Name string // file name or last part of the URL; a hint for the format, never trusted over the content
	Data []byte
}

// A Document is a source's text with its structure. Every byte of Text that is
// not blank lies in exactly one block.
type Document struct {
	Type     string  // "markdown", "html", "text", "rst", "go", "source", "csv", "json", "jsonl"
	Title    string  // empty when the source names none; one beyond 300 bytes is cut, and ends in "…"
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

// Parse reads in. What claims a format and is broken is read as what it still
// is, in the end as plain text. The error is of one of the kinds above, or
// ctx's.
func Parse(ctx context.Context, in Input) (Document, error) {
	if err := ctx.Err(); err != nil {
		return Document{}, err
	}
	text, err := decode(in)
	if err != nil {
		return Document{}, fmt.Errorf("parse %s: %w", displayName(in.Name), err)
	}
	if isBlank(text) {
		return Document{}, fmt.Errorf("parse %s: the file is empty or blank: %w", displayName(in.Name), ErrEmpty)
	}
	src := newSource(in.Name, text)
	for _, f := range formats(src) {
		if f.name == "source" && minified(src) {
			return Document{}, fmt.Errorf("parse %s: its lines are %d bytes long on average: %w", displayName(in.Name), len(src.text)/len(src.at), ErrMinified)
		}
		b := &builder{ctx: ctx}
		ok := f.parse(src, b)
		if err := ctx.Err(); err != nil {
			return Document{}, err
		}
		if !ok {
			continue
		}
		if doc := b.document(f.name); doc.Text != "" {
			return doc, nil
		}
		break
	}
	return Document{}, fmt.Errorf("parse %s: it has markup but no words: %w", displayName(in.Name), ErrEmpty)
}

// minified reports whether a script or style sheet is not for people: 10 KB or
// more, with lines of 1,000 bytes or more on average.
func minified(src *source) bool {
	const size, line = 10_000, 1_000
	switch src.ext {
	case ".js", ".mjs", ".cjs", ".css":
	default:
		return false
	}
	return len(src.text) >= size && len(src.text) >= line*len(src.at)
}

func displayName(name string) string {
	if name == "" {
		return "input"
	}
	return name
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// A source is a decoded input: valid UTF-8 in NFC, lines ended by "\n", free of
// invisible characters, with its lines numbered.
type source struct {
	name string
	ext  string // of name, in lower case, with its dot
	text string
	at   []int // offset of each line's start
}

func newSource(name, text string) *source {
	s := &source{text: text}
	if name != "" {
		s.name = path.Base(strings.ReplaceAll(name, "\\", "/"))
		s.ext = strings.ToLower(path.Ext(s.name))
	}
	s.at = append(make([]int, 0, 1+strings.Count(text, "\n")), 0)
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' {
			s.at = append(s.at, i+1)
		}
	}
	return s
}

// line returns the number, from 1, of the line that holds offset.
func (s *source) line(offset int) int {
	lo, hi := 0, len(s.at) // at[lo] <= offset < at[hi]
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; s.at[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + 1
}

// lines returns the text of each line without its "\n". The last is empty when
// the text ends with "\n".
func (s *source) lines() []string { return strings.Split(s.text, "\n") }
