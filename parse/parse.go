// Package parse converts a source's bytes to a Document, which is normalised text with its
// structure as blocks, anchors to the source's lines, and the format's own metadata. It detects the
// format from the content; the name and the media type are only hints.
//
// It parses PDF, images, Word, PowerPoint, Excel, OpenDocument, EPUB, RTF, Markdown, HTML, XML,
// AsciiDoc, reStructuredText, LaTeX, Jupyter notebooks, subtitles, plain text, Go and other source
// code, CSV, JSON and mail. LibreOffice, if installed, converts the old Office formats. Archives, mail
// folders and attachments are documents inside others, which Walk parses.
// Each format is a row of one table and gets the source's bytes; formats of text share the decoding.
// The package does not fetch, store or split documents; package chunk splits them.
package parse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// Version is the version of the parser. It changes whenever the same bytes would produce a
// different Document. Stored documents of another version are parsed again.
const Version = "parse-4"

// Kinds of input that Parse rejects. The error message describes the input.
var (
	// ErrBinary means that the input is not text, or is in an unsupported format (DOCX, ZIP, …).
	ErrBinary = errors.New("not a readable text")

	// ErrEncoding means that the text has an unknown or unsupported encoding.
	ErrEncoding = errors.New("unreadable text encoding")

	// ErrMinified means that the input is minified code in a few very long lines.
	ErrMinified = errors.New("minified code")

	// ErrEmpty means that the input is blank or has markup but no text.
	ErrEmpty = errors.New("no text")

	// ErrDamaged means that the input is in a supported format and cannot be read in it.
	ErrDamaged = errors.New("damaged")

	// ErrPassword means that the input is encrypted and that no given password opens it.
	ErrPassword = errors.New("password required")

	// ErrLimit means that parsing the input exceeded a limit: size, expansion, nesting, time or
	// memory.
	ErrLimit = errors.New("over a limit")

	// ErrNeedsProgram means that the format is parsed by a program that is not installed. The
	// message names it.
	ErrNeedsProgram = errors.New("needs a program")

	// ErrCrash means that the parser has a defect that this input triggers. The message is that of
	// the panic.
	ErrCrash = errors.New("the parser crashed")
)

// Kinds returns the kinds of error above.
func Kinds() []error {
	return []error{
		ErrBinary, ErrEncoding, ErrMinified, ErrEmpty, ErrDamaged, ErrPassword, ErrLimit,
		ErrNeedsProgram, ErrCrash,
	}
}

// Input is the bytes of a source, with hints for the format. The content overrides the hints.
type Input struct {
	Name string // file name or last part of the URL
	Type string // media type without parameters, which counts more than the extension of Name; may be empty
	Data []byte

	Passwords []string // tried in order if the source is encrypted
	OCR       *OCR     // recognises text in images and on pages without text; nil: they have none
	Images    bool     // return Document.Images

	// Render asks Walk for the picture of a page instead of the text: Parsed.Data of the source is then
	// the picture, a RenderedType, and Document is empty. nil: the source is parsed.
	Render *Rendering `json:",omitempty"`

	// Progress is called between the steps of a document that can take long, such as its pages. A
	// caller that limits the time may start the clock again: a step has a limit of its own, which is
	// 25 s. It may be nil.
	Progress func() `json:"-"`

	// Until is the time after which no more pages are read; their outcome says so. The zero time is
	// no limit.
	Until time.Time `json:"-"`
}

// A Document is the text of a source with its structure. Every byte of Text that is not white space
// lies in exactly one block.
type Document struct {
	Type     string // the name of the format, such as "markdown", "pdf" or "csv"
	Title    string // empty if the source has none; truncated after 300 bytes, ending in "…"
	Text     string // normalised as described at assay.Document.Text; may be empty if there are Parts
	Anchors  []assay.Anchor
	Metadata assay.Metadata // front matter and the format's own metadata (author, created, …), without the title
	assay.Structure

	// Parts are the documents inside the source, such as attachments and the files of an archive,
	// in the source's order.
	Parts []Part

	Images []Image  // for descriptions, if Input.Images asks for them
	Notes  []string // human-readable, on content that was left out
}

// A Part is a document inside another.
type Part struct {
	Name string // relative slash path inside the containing source, unique in it, without "." and ".."
	Type string // media type, if the source states it

	// Read returns the bytes of the part, at most limit of them; a larger part is an ErrLimit.
	Read func(ctx context.Context, limit int64) ([]byte, error)
}

// The block types of package assay, under the names that parsers use.
type (
	BlockKind = assay.BlockKind
	Block     = assay.Block
)

// The kinds of block.
const (
	Heading   = assay.BlockHeading
	Paragraph = assay.BlockParagraph
	ListItem  = assay.BlockListItem
	Code      = assay.BlockCode
	TableHead = assay.BlockTableHead
	TableRow  = assay.BlockTableRow
	Caption   = assay.BlockCaption
	Figure    = assay.BlockFigure
	Formula   = assay.BlockFormula
	Footnote  = assay.BlockFootnote
)

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
		b := newBuilder(ctx)
		b.ocr, b.wantImages, b.progress, b.until = s.ocr, s.images, s.progress, s.until
		b.reserve(len(s.text))
		fits := f.parse(s, b)
		if err := cmp.Or(ctx.Err(), b.err); err != nil {
			return Document{}, err
		}
		if !fits {
			continue
		}
		if doc := b.document(f.name); doc.Text != "" || len(doc.Parts) > 0 || len(doc.Images) > 0 {
			return doc, nil
		}
		return Document{}, fmt.Errorf("it has markup but no words: %w", ErrEmpty)
	}
	return Document{}, s.err
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// A source is an input. Formats of text read it after decoded has returned true.
type source struct {
	name      string // without folders
	ext       string // in lower case, with the dot; of the media type if that is known, else of name
	data      []byte
	passwords []string
	ocr       *OCR
	images    bool
	progress  func() // Input.Progress
	until     time.Time
	office    *officeFile // nil until looked at

	tried bool     // to decode
	err   error    // why data is not text; nil until tried
	text  string   // valid UTF-8 in NFC, with "\n" line ends, without invisible characters
	at    []uint32 // offset of each line's start in text
}

func newSource(in Input) *source {
	s := &source{data: in.Data, passwords: in.Passwords, ocr: in.OCR, images: in.Images, progress: in.Progress, until: in.Until}
	if in.Name != "" {
		s.name = path.Base(strings.ReplaceAll(in.Name, "\\", "/"))
	}
	s.ext = cmp.Or(extensions[strings.ToLower(in.Type)], strings.ToLower(path.Ext(s.name)))
	return s
}

// extensions maps media types to the extensions of their files.
var extensions = map[string]string{
	"application/atom+xml":                           ".atom",
	"application/json":                               ".json",
	"application/mbox":                               ".mbox",
	"application/msword":                             ".doc",
	"application/pdf":                                ".pdf",
	"application/rss+xml":                            ".rss",
	"application/rtf":                                ".rtf",
	"application/vnd.ms-excel":                       ".xls",
	"application/vnd.ms-excel.sheet.macroenabled.12": ".xlsm",
	"application/vnd.ms-powerpoint":                  ".ppt",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         ".xlsx",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   ".docx",
	"application/x-ipynb+json": ".ipynb",
	"application/x-ndjson":     ".ndjson",
	"application/x-subrip":     ".srt",
	"application/x-tex":        ".tex",
	"application/xhtml+xml":    ".xhtml",
	"application/xml":          ".xml",
	"image/svg+xml":            ".svg",
	"message/rfc822":           ".eml",
	"text/asciidoc":            ".adoc",
	"text/csv":                 ".csv",
	"text/html":                ".html",
	"text/markdown":            ".md",
	"text/plain":               ".txt",
	"text/rtf":                 ".rtf",
	"text/vtt":                 ".vtt",
	"text/x-rst":               ".rst",
	"text/x-tex":               ".tex",
	"text/xml":                 ".xml",
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
	if len(s.text) > math.MaxUint32 {
		s.err = fmt.Errorf("it has more than 4 GiB: %w", ErrLimit)
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
func lineStarts(text string) []uint32 {
	at := append(make([]uint32, 0, 1+strings.Count(text, "\n")), 0)
	for i := range len(text) {
		if text[i] == '\n' {
			at = append(at, uint32(i+1))
		}
	}
	return at
}

// line returns the number, from 1, of the line that contains offset.
func (s *source) line(offset int) int {
	lo, hi := 0, len(s.at) // at[lo] <= offset < at[hi]
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; int(s.at[mid]) <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + 1
}

// lines returns the lines without their "\n". The last is empty if the text ends with "\n".
func (s *source) lines() []string { return strings.Split(s.text, "\n") }
