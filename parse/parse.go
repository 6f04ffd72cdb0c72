// Package parse converts a source's bytes to a Document, which is normalised text with its
// structure as blocks, anchors to the source's lines, and the format's own metadata. It detects the
// format from the content; the name and the media type are only hints.
//
// It parses Markdown, HTML, plain text, reStructuredText, Go and other source code, CSV and JSON.
// Each format is a row of one table and gets the source's bytes; formats of text share the decoding.
// The package does not fetch, store or split documents; package chunk splits them.
package parse

import (
	"cmp"
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

// Input is the bytes of a source, with hints for the format. The content overrides the hints.
type Input struct {
	Name string // file name or last part of the URL
	Type string // media type without parameters, which counts more than the extension of Name; may be empty
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

// Parse parses in. It tries the formats that in may have, the likeliest first and plain text last,
// until one fits. The error is of one of the kinds above or ctx's.
func Parse(ctx context.Context, in Input) (Document, error) { return parseAs(ctx, in, formats) }

func parseAs(ctx context.Context, in Input, formats []format) (Document, error) {
	if err := ctx.Err(); err != nil {
		return Document{}, err
	}
	doc, err := newSource(in).parse(ctx, formats)
	if err == nil || ctx.Err() != nil {
		return doc, err
	}
	return Document{}, fmt.Errorf("parse %s: %w", cmp.Or(in.Name, "input"), err)
}

// parse parses the source in the first of the formats that it conforms to.
func (s *source) parse(ctx context.Context, formats []format) (Document, error) {
	for _, f := range formats {
		if !f.is(s) {
			continue
		}
		b := &builder{ctx: ctx}
		fits := f.parse(s, b)
		if err := cmp.Or(ctx.Err(), b.err); err != nil {
			return Document{}, err
		}
		if !fits {
			continue
		}
		if doc := b.document(f.name); doc.Text != "" {
			return doc, nil
		}
		return Document{}, fmt.Errorf("it has markup but no words: %w", ErrEmpty)
	}
	return Document{}, s.err
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// A source is an input. Formats of text read it after decoded has returned true.
type source struct {
	name string // without folders
	ext  string // in lower case, with the dot; of the media type if that is known, else of name
	data []byte

	tried bool   // to decode
	err   error  // why data is not text; nil until tried
	text  string // valid UTF-8 in NFC, with "\n" line ends, without invisible characters
	at    []int  // offset of each line's start in text
}

func newSource(in Input) *source {
	s := &source{data: in.Data}
	if in.Name != "" {
		s.name = path.Base(strings.ReplaceAll(in.Name, "\\", "/"))
	}
	s.ext = cmp.Or(extensions[strings.ToLower(in.Type)], strings.ToLower(path.Ext(s.name)))
	return s
}

// extensions maps media types to the extensions of their files.
var extensions = map[string]string{
	"application/json":      ".json",
	"application/xhtml+xml": ".xhtml",
	"application/x-ndjson":  ".ndjson",
	"text/csv":              ".csv",
	"text/html":             ".html",
	"text/markdown":         ".md",
	"text/plain":            ".txt",
	"text/x-rst":            ".rst",
}

// decoded reports whether the source is text that is not blank. It decodes it at the first call.
func (s *source) decoded() bool {
	if s.tried {
		return s.err == nil
	}
	s.tried = true
	if s.text, s.err = decode(s.data); s.err != nil {
		return false
	}
	if isBlank(s.text) {
		s.err = fmt.Errorf("the file is empty or blank: %w", ErrEmpty)
		return false
	}
	s.at = lineStarts(s.text)
	return true
}

// newText returns a source of text that was decoded before.
func newText(text string) *source { return &source{tried: true, text: text, at: lineStarts(text)} }

// lineStarts returns the offset of each line's start.
func lineStarts(text string) []int {
	at := append(make([]int, 0, 1+strings.Count(text, "\n")), 0)
	for i := range len(text) {
		if text[i] == '\n' {
			at = append(at, i+1)
		}
	}
	return at
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
