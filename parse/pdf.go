package parse

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/pdfium"
	"github.com/assay-rag/assay/internal/pdflayout"
	"github.com/assay-rag/assay/internal/visible"
)

// maxExpensivePages is the number of pages that may run into the deadline or the limit of memory.
// The pages after them are not read, so that a hostile file takes minutes at most.
const maxExpensivePages = 3

// isPDF reports whether src starts with the signature of PDF. Bytes may precede it in a file with
// the extension of PDF, because viewers accept such files.
func isPDF(src *source) bool {
	const signature = "%PDF-"
	start := src.data[:min(len(src.data), 1024)]
	if src.ext == ".pdf" {
		return bytes.Contains(start, []byte(signature))
	}
	return bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\ufeff")), " \t\r\n"), []byte(signature))
}

// parsePDF parses a PDF: its text layer with paragraphs, headings, lists and tables, notes and
// values of form fields, its properties and its attachments. A page without text or that cannot be
// read has an outcome that says so.
func parsePDF(src *source, b *builder) bool {
	err := pdfium.Prepare(b.ctx, b.step)
	var doc *pdfium.Document
	if err == nil {
		b.step()
		doc, err = pdfium.Open(b.ctx, src.data, src.passwords...)
	}
	if err != nil {
		b.err = pdfError(b.ctx, err)
		return true
	}
	defer doc.Close()
	b.step()
	p := pdf{b: b, src: src, doc: doc}
	p.properties()
	p.pages()
	if b.canceled() {
		return true
	}
	p.attachments()
	p.finish()
	const lead = 3 // blocks: logos, dates and running heads may precede the title
	if b.title == "" && slices.ContainsFunc(b.blocks[:min(len(b.blocks), lead)], func(k Block) bool { return k.Kind == Heading }) {
		b.title = firstTitle(b)
	}
	return true
}

// pdfError returns an error of this package for one of package pdfium.
func pdfError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, pdfium.ErrPassword):
		return fmt.Errorf("the PDF is encrypted, and no given password opens it: %w", ErrPassword)
	case errors.Is(err, pdfium.ErrSecurity):
		return fmt.Errorf("the PDF is encrypted in a way that cannot be read: %w", ErrPassword)
	case errors.Is(err, pdfium.ErrTime), errors.Is(err, pdfium.ErrMemory), errors.Is(err, pdfium.ErrTooLarge):
		return fmt.Errorf("%w: %w", err, ErrLimit)
	case errors.Is(err, ErrLimit):
		return err
	default:
		return fmt.Errorf("%w: %w", err, ErrDamaged)
	}
}

// A pdf is the state of parsing a PDF.
type pdf struct {
	b            *builder
	src          *source
	doc          *pdfium.Document
	notes        []pageNotes
	recognized   map[int][]word    // by page, in points
	figures      []pdfFigure       // not yet written
	rendered     *pdfium.Rendering // of renderedPage; nil: none
	renderedPage int
	scans        int                    // pages that are images
	colored      *pdfium.ColorRendering // of coloredPage; nil: none
	coloredPage  int
	expensive    int   // pages that failed by a limit
	failed       error // of the first page that failed
}

// properties writes the title and the metadata. Damaged properties are left out.
func (p *pdf) properties() {
	props, err := p.doc.Properties(p.b.ctx)
	if err != nil {
		return
	}
	if title := visible.Line(props.Title); isPDFTitle(title, p.src.name) {
		p.b.title = title
	}
	if author := visible.Line(props.Author); author != "" {
		p.b.set(assay.MetaAuthor, assay.StringValue(author))
	}
	p.date(assay.MetaCreated, props.Created)
	p.date(assay.MetaModified, props.Modified)
	for _, field := range []struct{ key, value string }{
		{"subject", props.Subject}, {"keywords", props.Keywords}, {"creator", props.Creator}, {"producer", props.Producer},
	} {
		if value := visible.Line(field.value); value != "" {
			p.b.set(field.key, assay.StringValue(value))
		}
	}
}

func (p *pdf) date(key, value string) {
	if t, ok := pdfium.ParseDate(value); ok && assay.ValidTime(t) {
		p.b.set(key, assay.TimeValue(t))
	}
}

// pages reads the pages and writes their text.
func (p *pdf) pages() {
	layout := pdflayout.New()
	for i := range p.doc.PageCount() {
		page, outcome := p.page(i)
		if page != nil {
			if err := layout.Add(p.b.ctx, page); err != nil {
				return
			}
			if outcome.Outcome == assay.PageText {
				p.figures = append(p.figures, figures(page)...)
			}
			if len(page.Annotations) > 0 {
				p.notes = append(p.notes, pageNotes{page.Number, page.Annotations})
			}
		}
		if p.b.canceled() {
			return
		}
		p.b.addPage(outcome)
	}
	outline, err := p.doc.Outline(p.b.ctx)
	if err != nil {
		outline = nil // it only helps to find headings
	}
	blocks, err := layout.Blocks(p.b.ctx, outline)
	if err != nil {
		return
	}
	p.recognizeFigures()
	for _, block := range blocks {
		if len(block.Boxes) > 0 {
			p.writeNotes(block.Boxes[0].Page - 1)
			p.writeFigures(block.Boxes[0])
		}
		p.write(block)
	}
	p.writeNotes(p.doc.PageCount())
	p.writeFigures(pdflayout.Box{Page: p.doc.PageCount() + 1})
}

// page reads a page. It returns nil for one that cannot be read.
func (p *pdf) page(i int) (*pdfium.Page, assay.Page) {
	out := assay.Page{Number: i + 1, Outcome: assay.PageFailed}
	if p.expensive >= maxExpensivePages {
		out.Detail = fmt.Sprintf("not read, because %d pages before it were over a limit", p.expensive)
		return nil, out
	}
	if p.b.outOfTime() {
		p.failed = cmp.Or(p.failed, fmt.Errorf("page %d was %s: %w", i+1, notRead, ErrLimit))
		out.Detail = notRead
		return nil, out
	}
	page, err := p.doc.Page(p.b.ctx, i)
	p.b.step()
	if err != nil {
		if errors.Is(err, pdfium.ErrTime) || errors.Is(err, pdfium.ErrMemory) {
			p.expensive++
		}
		if p.failed == nil {
			p.failed = fmt.Errorf("page %d: %w", i+1, err)
		}
		out.Detail = err.Error()
		return nil, out
	}
	out.Width, out.Height = page.Width, page.Height
	if p.src.ocr != nil && isScan(page) {
		if scan, ok := p.recognizePage(page, &out); ok {
			return scan, out
		}
	}
	if page.HasText() {
		out.Outcome = assay.PageText
	} else if out.Detail == "" {
		out.Outcome, out.Detail = assay.PageNoText, noTextDetail(page)
	}
	return page, out
}

// recognizePage recognises the text of a page and reports whether there is any. If that fails, the
// outcome has the reason.
func (p *pdf) recognizePage(page *pdfium.Page, out *assay.Page) (*pdfium.Page, bool) {
	if p.scans++; p.scans > maxScans {
		out.Detail = fmt.Sprintf("not searched for text, because %d pages before it were", maxScans)
		return nil, false
	}
	scan, err := p.recognize(page)
	if err != nil {
		out.Detail = "its text cannot be recognised: " + err.Error()
		return nil, false
	}
	if len(p.recognized[page.Number]) == 0 {
		return nil, false
	}
	out.Outcome = assay.PageRecognized
	return scan, true
}

// blankPage is the detail of a page that shows nothing.
const blankPage = "blank"

// noTextDetail describes a page without text.
func noTextDetail(page *pdfium.Page) string {
	switch {
	case len(page.Images) > 0:
		return "only images"
	case len(page.Rules)+len(page.Drawings) > 0:
		return "only drawings"
	default:
		return blankPage
	}
}

// write writes a block.
func (p *pdf) write(block pdflayout.Block) {
	b := p.b
	b.from = p.provenance(block.Boxes)
	defer func() { b.from = nil }()
	switch {
	case block.Table != nil:
		if len(block.Boxes) == 0 {
			b.from = p.provenance(block.Table.Rows)
		}
		p.writeTable(block.Table)
		return
	case block.Tight:
		b.beginTight(block.Kind)
	default:
		b.begin(block.Kind)
	}
	b.cur.Level = block.Level
	for i, start := range block.Starts {
		end := len(block.Text)
		if i+1 < len(block.Starts) {
			end = block.Starts[i+1].Offset
		}
		b.page = start.Page
		b.put(letters(block.Text[start.Offset:end]), 0)
	}
	for _, box := range block.Boxes {
		b.box(box.Page, box.X0, box.Y0, box.X1, box.Y1)
	}
	b.end()
}

func (p *pdf) writeTable(t *pdflayout.Table) {
	var grid []gridCell
	for _, c := range t.Cells {
		grid = append(grid, gridCell{text: letters(c.Text), row: c.Row, col: c.Col, rowSpan: c.RowSpan, colSpan: c.ColSpan, header: c.Header})
	}
	if len(t.Rows) > 0 {
		p.b.page = t.Rows[0].Page
	}
	p.b.table(grid, func(row int) {
		if row < len(t.Rows) {
			box := t.Rows[row]
			p.b.box(box.Page, box.X0, box.Y0, box.X1, box.Y1)
		}
	})
}

// pageNotes are the notes and form fields of a page.
type pageNotes struct {
	page        int
	annotations []pdfium.Annotation
}

// writeNotes writes the notes and form fields of the pages up to last that have not been written,
// each after the text of its page.
func (p *pdf) writeNotes(last int) {
	for len(p.notes) > 0 && p.notes[0].page <= last {
		n := p.notes[0]
		p.notes = p.notes[1:]
		p.b.page = n.page
		for _, a := range n.annotations {
			p.b.begin(Paragraph)
			p.b.put(letters(annotationText(a)), 0)
			p.b.box(n.page, a.X0, a.Y0, a.X1, a.Y1)
			p.b.end()
		}
	}
}

// annotationText returns the text of a note, or the name of a form field with its value.
func annotationText(a pdfium.Annotation) string {
	text := strings.Join(strings.Fields(a.Text), " ")
	if name := strings.Join(strings.Fields(a.Name), " "); name != "" {
		return name + ": " + text
	}
	return text
}

// letters returns s with ligatures and other forms of presentation replaced by their letters, such
// as U+FB01 by "fi", so that words are found by their usual spelling. Other compatibility
// characters stay: "x²" is not "x2".
func letters(s string) string {
	if strings.IndexFunc(s, isPresentationForm) < 0 {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		if isPresentationForm(r) {
			out.WriteString(norm.NFKC.String(string(r)))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// isPresentationForm reports whether r is a ligature or a contextual form of Latin, Armenian, Hebrew
// or Arabic letters.
func isPresentationForm(r rune) bool {
	return 0xfb00 <= r && r <= 0xfdff || 0xfe70 <= r && r <= 0xfefe
}

// attachments adds the files that are embedded in the document.
func (p *pdf) attachments() {
	list, err := p.doc.Attachments(p.b.ctx)
	if err != nil {
		p.b.err = fmt.Errorf("read the list of attachments: %w", pdfError(p.b.ctx, err))
		return
	}
	data, passwords := p.src.data, p.src.passwords
	for _, a := range list {
		p.b.addPart(Part{Name: a.Name, Read: func(ctx context.Context, limit int64) ([]byte, error) {
			return readAttachment(ctx, data, passwords, a, limit)
		}})
	}
}

// readAttachment opens the PDF again, because the document is closed when a part is read.
func readAttachment(ctx context.Context, data []byte, passwords []string, a pdfium.Attachment, limit int64) ([]byte, error) {
	doc, err := pdfium.Open(ctx, data, passwords...)
	if err != nil {
		return nil, pdfError(ctx, err)
	}
	defer doc.Close()
	out, err := doc.Attachment(ctx, a, limit)
	if err != nil {
		return nil, pdfError(ctx, err)
	}
	return out, nil
}

// finish sets the error of a document without any text.
func (p *pdf) finish() {
	b := p.b
	if len(b.text) > 0 || len(b.parts) > 0 || len(b.images) > 0 || b.err != nil {
		return
	}
	pages := p.doc.PageCount()
	switch {
	case p.failed != nil:
		b.err = fmt.Errorf("no page has text: %w", pdfError(b.ctx, p.failed))
	case pages == 0:
		b.err = fmt.Errorf("it has no pages: %w", ErrEmpty)
	case p.src.ocr == nil && slices.ContainsFunc(b.pages, func(page assay.Page) bool { return page.Detail != blankPage }):
		b.err = fmt.Errorf("none of its %d pages has a text layer; %s: %w", pages, NeedsOCR, ErrNeedsProgram)
	default:
		b.err = fmt.Errorf("none of its %d pages has text: %w", pages, ErrEmpty)
	}
}

// isPDFTitle reports whether a title in the properties is one that the author gave, not one that a
// program made of a file's name.
func isPDFTitle(title, file string) bool {
	const longest = 250
	lower := strings.ToLower(title)
	switch {
	case len(title) < 3 || len(title) > longest, !strings.ContainsFunc(title, unicode.IsLetter):
		return false
	case madeUpTitle.MatchString(lower), fileTitle.MatchString(lower):
		return false
	}
	stem := strings.ToLower(strings.TrimSuffix(file, path.Ext(file)))
	return stem == "" || lower != stem
}

var (
	madeUpTitle = lazyregexp.New(`^(microsoft (word|powerpoint|excel|office)\b|powerpoint presentation$|(unknown|no title|title|presentation|document|slide|folie|page)\s?\d*$|untitled|unbenannt|sans titre|sin título|print|scan(ned)?\b|about:|https?://|file:)`)
	fileTitle   = lazyregexp.New(`(\.(pdf|docx?|rtf|odt|tex|dvi|ps|eps|indd|qxd|pptx?|xlsx?|html?|txt|pmd|p65|fm|cdr|ai)|[/\\])$|^\S+[_/\\]\S*$|^\S*\d\S*$`)
)
