// Package parse converts a source's bytes to a Document, which is normalised text with its
// structure as blocks, anchors to the source's lines, and the format's own metadata. It detects the
// format from the content; the name is only a hint.
//
// It parses Markdown, HTML, plain text, reStructuredText, Go and other source code, CSV and JSON.
// It does not fetch, store or split documents; package chunk splits them.
package parse

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/assay-rag/assay"
)

// Version is the version of the parser. It changes whenever the same bytes would produce a
// different Document. Stored documents of another version are parsed again.
const Version = "parse-2"

// Kinds of input that Parse rejects. The error message describes the input.
var (
	// ErrBinary means that the input is not text, or is in an unsupported format (PDF, DOCX, …).
	ErrBinary = errors.New("not a readable text")

	// ErrEncoding means that the text has an unknown or unsupported encoding.
	ErrEncoding = errors.New("unreadable text encoding")

	// ErrMinified means that the input is minified code in a few very long lines.
	ErrMinified = errors.New("minified code")

	// ErrEmpty means that the input is blank or has markup but no text.
	ErrEmpty = errors.New("no text")
)

// Input is the bytes of a source and its name.
type Input struct {
	Name string // file name or last part of the URL; a hint for the format that never overrides the content
	Data []byte
}

// A Document is the text of a source with its structure. Every byte of Text that is not white space
// lies in exactly one block.
type Document struct {
	Type     string  // "markdown", "html", "text", "rst", "go", "source", "csv", "json", "jsonl"
	Title    string  // empty if the source has none; truncated after 300 bytes, ending in "…"
	Text     string  // normalised as described at assay.Document.Text
	Blocks   []Block // by Start, not overlapping
	Anchors  []assay.Anchor
	Metadata assay.Metadata // front matter and the format's own metadata (author, created, …), without the title
}

// A BlockKind is the kind of a block.
type BlockKind string

// The kinds of block.
const (
	Heading   BlockKind = "heading"
	Paragraph BlockKind = "paragraph" // prose; may be split between sentences
	ListItem  BlockKind = "list_item"
	Code      BlockKind = "code"
	TableHead BlockKind = "table_head" // column names of the following rows
	TableRow  BlockKind = "table_row"
)

// A Block is a structural unit: the bytes [Start, End) of Text, without surrounding blank lines.
type Block struct {
	Kind  BlockKind
	Start int
	End   int
	Level int    // headings: 1 (outermost) and up; else 0
	Label string // headings: the text for heading paths, without markup; else empty
}

// Parse parses in. If the input does not conform to the format that it seems to have, other formats
// are tried, with plain text last. The error is of one of the kinds above or ctx's.
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

// minified reports whether a script or style sheet is minified: at least 10 KB with an average line
// length of at least 1,000 bytes.
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

// A source is a decoded input: valid UTF-8 in NFC, with "\n" line ends, without invisible
// characters, and with an index of its lines.
type source struct {
	name string
	ext  string // of name, in lower case, with the dot
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

// line returns the number, from 1, of the line that contains offset.
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

// lines returns the lines without their "\n". The last is empty if the text ends with "\n".
func (s *source) lines() []string { return strings.Split(s.text, "\n") }
