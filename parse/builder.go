package parse

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

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
	err      error             // why the source cannot be parsed in its format; nil: no error
	from     *assay.Provenance // Kind, Confidence and Model of the blocks that begin next; nil: the source contains their text
	unlined  bool              // the format has no lines; those that put gets are ignored
	page     int               // source page, from 1, of the text that is put next; 0: the format has no pages

	text       []byte
	blocks     []Block
	anchors    []assay.Anchor
	parts      []Part
	pages      []assay.Page
	tables     []assay.Table
	boxes      []assay.Box
	provenance []assay.Provenance
	line       int // source line of the byte at len(text) according to the anchors; 0: not known
	onPage     int // source page of that byte according to the anchors; -1: not known

	open     bool
	cur      Block
	curBoxes []assay.Box       // of the open block
	curFrom  *assay.Provenance // of the open block

	partNames map[string]int

	progress   func() // Input.Progress
	until      time.Time
	ocr        *OCR          // nil: images are not searched for text
	imageTime  time.Duration // that the OCR program may take for an image
	slowImages int           // that took longer
	wantImages bool          // Input.Images
	images     []Image
	seenImages map[[32]byte]bool // by SHA-256, searched for text
	keptImages map[[32]byte]bool // by SHA-256, in images
	notes      []string
	sep        int    // len(text) before the separator of the open block
	pending    string // glued, but not yet in text

	// Set inside an embedded string of another format, see embed:
	fixed  int // the source line of the whole string; 0: not inside one
	deeper int // added to the levels of headings
}

func newBuilder(ctx context.Context) *builder {
	return &builder{ctx: ctx, onPage: -1, imageTime: imageTime}
}

// reserve makes room for the text of a large source of n bytes, so that it is not copied as it grows.
func (b *builder) reserve(n int) {
	const large = 1 << 20
	if n > large {
		b.text = make([]byte, 0, n+n/8)
	}
}

// reserveBlocks makes room for n blocks, each on a line of its own. Slices that grow need twice their
// memory for a moment.
func (b *builder) reserveBlocks(n int) {
	const large = 100_000
	if n > large {
		b.blocks = slices.Grow(b.blocks, n)
		b.anchors = slices.Grow(b.anchors, n)
	}
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
	b.curBoxes, b.curFrom = nil, b.from
}

// box adds the rectangle of the open block on a page. It ignores an empty one.
func (b *builder) box(page int, x0, y0, x1, y1 float32) {
	if x0 < x1 && y0 < y1 {
		b.curBoxes = append(b.curBoxes, assay.Box{Page: page, X0: x0, Y0: y0, X1: x1, Y1: y1})
	}
}

// addPage records the outcome of a page.
func (b *builder) addPage(p assay.Page) {
	b.pages = append(b.pages, p)
	b.step()
}

// step reports the end of a step that has a limit of time of its own.
func (b *builder) step() {
	if b.progress != nil {
		b.progress()
	}
}

// outOfTime reports whether no more pages should be read.
func (b *builder) outOfTime() bool { return !b.until.IsZero() && time.Now().After(b.until) }

// notRead is the detail of a page after outOfTime.
const notRead = "not read, because the pages before it took too long"

// addPart adds a document that is inside this one. It makes the name a relative path that is unique
// in this document.
func (b *builder) addPart(p Part) {
	p.Name = partName(p.Name)
	if b.partNames == nil {
		b.partNames = map[string]int{}
	}
	name := p.Name
	ext := path.Ext(name)
	for b.partNames[p.Name] > 0 {
		b.partNames[name]++
		p.Name = fmt.Sprintf("%s (%d)%s", strings.TrimSuffix(name, ext), b.partNames[name], ext)
	}
	b.partNames[p.Name] = 1
	b.parts = append(b.parts, p)
}

// partName returns a relative slash path without "." and ".." elements, without invisible
// characters and without the separator of Parsed.Path.
func partName(name string) string {
	name = strings.ReplaceAll(visible.Text(strings.ToValidUTF8(name, "\uFFFD")), "\\", "/")
	name = strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(name, "\n", " ")), "/")
	name = strings.ReplaceAll(name, "!/", "/")
	return cmp.Or(name, "unnamed")
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
	if b.unlined {
		line = 0
	}
	placed := line > 0 || b.page > 0 || len(b.anchors) > 0 // a format without lines and pages has no anchors
	if placed && (line != b.line || b.page != b.onPage) {
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
	for _, box := range b.curBoxes {
		box.Block = len(b.blocks)
		b.boxes = append(b.boxes, box)
	}
	if b.curFrom != nil {
		mark := *b.curFrom
		mark.Start, mark.End = b.cur.Start, b.cur.End
		b.provenance = append(b.provenance, mark)
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

// document returns the finished Document. The builder cannot be used afterwards, because they share
// the text.
func (b *builder) document(format string) Document {
	b.end()
	b.addCaptions()
	return Document{
		Type:     format,
		Title:    shorten(strings.Join(strings.Fields(visible.Text(b.title)), " ")),
		Text:     unsafe.String(unsafe.SliceData(b.text), len(b.text)),
		Anchors:  b.anchors,
		Metadata: b.metadata,
		Structure: assay.Structure{
			Blocks: b.blocks, Tables: b.tables, Boxes: b.boxes, Pages: b.pages, Provenance: b.provenance,
		},
		Parts:  b.parts,
		Images: b.images,
		Notes:  b.notes,
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
