package parse

import (
	"bytes"
	"context"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"golang.org/x/text/unicode/norm"
)

// A builder makes a Document block by block: begin, put as often as needed, end. It guarantees that
// the text is normalised, that no block is empty or starts or ends blank, and that the anchors give
// every byte its source line.
type builder struct {
	ctx      context.Context // of Parse; long loops stop when it ends
	title    string
	metadata assay.Metadata
	err      error // why the source cannot be parsed in its format; nil: no error
	page     int   // source page, from 1, of the text that is put next; 0: the format has no pages

	text    []byte
	blocks  []Block
	anchors []assay.Anchor
	line    int // source line of the byte at len(text) according to the anchors; 0: not known
	onPage  int // source page of that byte according to the anchors; -1: not known

	open    bool
	cur     Block
	sep     int    // len(text) before the separator of the open block
	pending string // glued, but not yet in text

	// Set inside an embedded string of another format, see embed:
	fixed  int // the source line of the whole string; 0: not inside one
	deeper int // added to the levels of headings
}

// canceled reports whether the current Parse should stop.
func (b *builder) canceled() bool { return b.ctx.Err() != nil }

// begin starts a block of a kind after a blank line.
func (b *builder) begin(kind BlockKind) { b.start(kind, "\n\n") }

// beginTight starts a block of a kind on the next line, for consecutive list items and rows.
func (b *builder) beginTight(kind BlockKind) { b.start(kind, "\n") }

func (b *builder) start(kind BlockKind, separator string) {
	b.end()
	b.open = true
	b.sep = len(b.text)
	if b.sep > 0 {
		b.raw(separator)
	}
	b.cur = Block{Kind: kind, Start: len(b.text)}
}

// put appends s, whose first byte is on the given source line; each "\n" in s starts the next
// source line. The line is 0 if the format has no lines. Leading blank lines of a block are dropped.
func (b *builder) put(s string, line int) {
	s = visible.Text(s)
	if len(b.text) == b.cur.Start {
		blank := len(s) - len(strings.TrimLeft(s, " \t\n"))
		cut := strings.LastIndexByte(s[:blank], '\n') + 1
		if line > 0 {
			line += strings.Count(s[:cut], "\n")
		}
		s = s[cut:]
		if blank == cut+len(s) && b.cur.Kind != Code {
			return
		}
	}
	if s == "" {
		return
	}
	if b.fixed == 0 {
		b.append(s, line)
		return
	}
	for i, l := range strings.Split(s, "\n") {
		if i > 0 {
			b.raw("\n")
		}
		if l != "" {
			b.append(l, b.fixed)
		}
	}
}

func (b *builder) append(s string, line int) {
	if line != b.line || b.page != b.onPage {
		b.anchor(line)
	}
	b.raw(s)
}

// embed calls write to write the blocks of a document embedded as a string on one source line,
// under a heading of the given level.
func (b *builder) embed(line, level int, write func()) {
	b.end()
	b.fixed, b.deeper = line, level
	write()
	b.end()
	b.fixed, b.deeper = 0, 0
}

// glue inserts s, which has no source position of its own (a space, a separator between cells),
// before the text of the block's next put. s must not contain "\n".
func (b *builder) glue(s string) { b.pending += s }

// puts writes a complete block.
func (b *builder) puts(kind BlockKind, s string, line int) {
	b.begin(kind)
	b.put(s, line)
	b.end()
}

// heading writes a heading of a level from 1.
func (b *builder) heading(level int, s string, line int) {
	b.begin(Heading)
	b.cur.Level = level
	b.put(s, line)
	b.end()
}

// newline appends a line break, unless the block has no text yet.
func (b *builder) newline() {
	if len(b.text) > b.cur.Start {
		b.raw("\n")
	}
}

// raw appends the glued text and s.
func (b *builder) raw(s string) {
	b.text = append(b.text, b.pending...)
	b.text = append(b.text, s...)
	b.pending = ""
	if b.line > 0 {
		b.line += strings.Count(s, "\n")
	}
}

// anchor records that the byte at len(text) is on the given source line and the current page.
func (b *builder) anchor(line int) {
	at := len(b.text)
	for n := len(b.anchors); n > 0 && b.anchors[n-1].Start >= at; n-- {
		b.anchors = b.anchors[:n-1]
	}
	b.anchors = append(b.anchors, assay.Anchor{Start: at, Line: line, Page: b.page})
	b.line, b.onPage = line, b.page
}

// end ends the open block and drops it if it has no text.
func (b *builder) end() {
	if !b.open {
		return
	}
	b.open, b.pending = false, ""
	b.normalise()
	body := bytes.TrimRight(b.text[b.cur.Start:], " \t\n")
	b.truncate(b.cur.Start + len(body))
	if len(body) == 0 {
		b.truncate(b.sep)
		return
	}
	b.cur.End = len(b.text)
	if len(body) > longestHeading && b.cur.Kind == Heading {
		b.cur.Kind, b.cur.Level = Paragraph, 0
	}
	if b.cur.Kind == Heading {
		b.cur.Level += b.deeper
		b.cur.Label = strings.Join(strings.Fields(string(body)), " ")
	}
	b.blocks = append(b.blocks, b.cur)
}

// longestHeading is the most bytes of a heading, because every chunk below repeats it. A longer
// heading becomes a paragraph.
const longestHeading = 300

// truncate removes the text from n on and its anchors.
func (b *builder) truncate(n int) {
	if n == len(b.text) {
		return
	}
	if b.line > 0 {
		b.line -= bytes.Count(b.text[n:], []byte("\n"))
	}
	b.text = b.text[:n]
	for k := len(b.anchors); k > 0 && b.anchors[k-1].Start >= n; k-- {
		b.anchors = b.anchors[:k-1]
		b.line, b.onPage = 0, -1
	}
}

// normalise converts the open block's text to NFC if the pieces together are not in NFC, and moves
// the anchors accordingly.
func (b *builder) normalise() {
	body := b.text[b.cur.Start:]
	if isASCII(body) || norm.NFC.IsNormal(body) {
		return
	}
	body = bytes.Clone(body)
	first := len(b.anchors)
	for first > 0 && b.anchors[first-1].Start >= b.cur.Start {
		first--
	}
	b.text = b.text[:b.cur.Start]
	var it norm.Iter
	it.Init(norm.NFC, body)
	for next := first; !it.Done(); {
		for next < len(b.anchors) && b.anchors[next].Start <= b.cur.Start+it.Pos() {
			b.anchors[next].Start = len(b.text)
			next++
		}
		b.text = append(b.text, it.Next()...)
	}
	b.dropStackedAnchors(first)
}

// dropStackedAnchors removes, from first on, all but the last of the anchors with the same start,
// and anchors beyond the text.
func (b *builder) dropStackedAnchors(first int) {
	kept := b.anchors[:first]
	for _, a := range b.anchors[first:] {
		if n := len(kept); n > 0 && kept[n-1].Start == a.Start {
			kept = kept[:n-1]
		}
		if a.Start < len(b.text) {
			kept = append(kept, a)
		}
	}
	b.anchors = kept
	b.line, b.onPage = 0, -1
}

// document returns the finished Document.
func (b *builder) document(format string) Document {
	b.end()
	return Document{
		Type:     format,
		Title:    shorten(strings.Join(strings.Fields(visible.Text(b.title)), " ")),
		Text:     string(b.text),
		Blocks:   b.blocks,
		Anchors:  b.anchors,
		Metadata: b.metadata,
	}
}

// shorten truncates a title that is too long.
func shorten(title string) string {
	if len(title) <= longestHeading {
		return title
	}
	at := longestHeading
	for !utf8.RuneStart(title[at]) {
		at--
	}
	return title[:at] + "…"
}

// set sets metadata unless the key already has a value.
func (b *builder) set(key string, v assay.Value) {
	if _, ok := b.metadata[key]; ok || key == "" {
		return
	}
	if b.metadata == nil {
		b.metadata = assay.Metadata{}
	}
	b.metadata[key] = v
}

func isASCII[T string | []byte](s T) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
