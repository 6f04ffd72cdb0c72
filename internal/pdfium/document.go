package pdfium

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Kinds of error.
var (
	// ErrFormat means that the data is not a PDF or too damaged to be opened.
	ErrFormat = errors.New("not a readable PDF")

	// ErrPassword means that the document is encrypted and that no given password opens it.
	ErrPassword = errors.New("the PDF is encrypted and needs a password")

	// ErrSecurity means that the document is encrypted in an unsupported way.
	ErrSecurity = errors.New("the PDF is encrypted in an unsupported way")

	// ErrPage means that a page cannot be read.
	ErrPage = errors.New("the page is damaged")

	// ErrCrashed means that PDFium failed on the input. The document can still be used.
	ErrCrashed = errors.New("PDFium failed")

	// ErrMemory means that PDFium needs more than its memory of 512 MiB.
	ErrMemory = errors.New("it needs more than 512 MiB of memory")

	// ErrTime means that PDFium needs longer than PageTime for a page, or for the document without
	// its pages.
	ErrTime = errors.New("it takes longer than 25 s")

	// ErrTooLarge means that the input exceeds a limit of this package.
	ErrTooLarge = errors.New("over a limit")
)

// PageTime is the most time that a call takes.
const PageTime = 25 * time.Second

// Limits.
const (
	maxData  = 256 << 20 // bytes of a file, which PDFium needs in its memory
	maxPages = 100_000
)

// A Document is an open PDF. If PDFium fails on a page, the Document continues in a new instance.
// A Document is not safe for concurrent use.
type Document struct {
	engine   *engine
	data     []byte
	password string // that opened it
	pages    int
	limit    time.Duration // of a call

	in   *instance // nil after a failure
	doc  handle
	form handle // of the form environment; 0: no form
}

// Open opens a PDF with the first of the passwords that fits, which are tried after the empty one.
// The caller must not change data before Close. The error is one of the kinds above or ctx's.
func Open(ctx context.Context, data []byte, passwords ...string) (*Document, error) {
	if len(data) > maxData {
		return nil, fmt.Errorf("%w: a PDF of %d MiB, want at most %d", ErrTooLarge, len(data)>>20, maxData>>20)
	}
	e, err := shared.get(ctx)
	if err != nil {
		return nil, err
	}
	d := &Document{engine: e, data: data, limit: PageTime}
	err = d.within(ctx, func(ctx context.Context) error { return d.open(ctx, append([]string{""}, passwords...)) })
	if err != nil {
		d.Close()
		return nil, err
	}
	if d.pages > maxPages {
		d.Close()
		return nil, fmt.Errorf("%w: a PDF of %d pages, want at most %d", ErrTooLarge, d.pages, maxPages)
	}
	return d, nil
}

// Close releases the document's memory. It may be called more than once.
func (d *Document) Close() {
	if d.in != nil {
		d.in.close()
		d.in = nil
	}
}

// PageCount returns the number of pages.
func (d *Document) PageCount() int { return d.pages }

// within calls f with a deadline. It gives up the instance if that has failed.
func (d *Document) within(ctx context.Context, f func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	err := f(limited)
	if d.in != nil && (d.in.err != nil || limited.Err() != nil) {
		err = cmp.Or(d.in.err, err)
		d.Close()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && limited.Err() != nil:
		return ErrTime
	}
	return err
}

// open starts an instance and loads the document into it with one of the passwords.
func (d *Document) open(ctx context.Context, passwords []string) error {
	in, err := newInstance(ctx, d.engine)
	if err != nil {
		return err
	}
	d.in, d.form = in, 0
	p := in.alloc(ctx, max(len(d.data), 1))
	in.write(p, d.data)
	for _, password := range passwords {
		secret := in.alloc(ctx, len(password)+1)
		in.write(secret, append([]byte(password), 0))
		d.doc = handle(in.call(ctx, "FPDF_LoadMemDocument64", uint64(p), uint64(len(d.data)), uint64(secret)))
		in.free(secret)
		if in.err != nil {
			return in.err
		}
		if d.doc != 0 {
			d.password = password
			d.pages = int(int32(in.call(ctx, "FPDF_GetPageCount", uint64(d.doc))))
			d.openForm(ctx)
			return in.err
		}
		if err := d.lastError(); !errors.Is(err, ErrPassword) {
			return err
		}
	}
	return ErrPassword
}

// openForm gives access to the values of form fields.
func (d *Document) openForm(ctx context.Context) {
	const acroForm = 1
	if d.in.call(ctx, "FPDF_GetFormType", uint64(d.doc)) != acroForm {
		return
	}
	info := d.in.call(ctx, "PDFiumExt_OpenFormFillInfo")
	d.form = handle(d.in.call(ctx, "PDFiumExt_InitFormFillEnvironment", uint64(d.doc), info))
}

// lastError returns the reason why the document could not be loaded.
func (d *Document) lastError() error {
	const (
		password = 4
		security = 5
	)
	switch d.in.get("FPDF_GetLastError") {
	case password:
		return ErrPassword
	case security:
		return ErrSecurity
	default:
		return cmp.Or(d.in.err, ErrFormat)
	}
}

// do calls f with a live instance in which the document is open.
func (d *Document) do(ctx context.Context, f func(ctx context.Context, in *instance) error) error {
	return d.within(ctx, func(ctx context.Context) error {
		if d.in == nil {
			if err := d.open(ctx, []string{d.password}); err != nil {
				return err
			}
		}
		return f(ctx, d.in)
	})
}

// withPage calls f with a loaded page. The index starts at 0.
func (d *Document) withPage(ctx context.Context, index int, f func(ctx context.Context, in *instance, page handle) error) error {
	if index < 0 || index >= d.pages {
		return fmt.Errorf("%w: page %d of %d", ErrPage, index+1, d.pages)
	}
	return d.do(ctx, func(ctx context.Context, in *instance) error {
		page := handle(in.call(ctx, "FPDF_LoadPage", uint64(d.doc), uint64(index)))
		if page == 0 {
			return cmp.Or(in.err, ErrPage)
		}
		err := f(ctx, in, page)
		in.call(ctx, "FPDF_ClosePage", uint64(page))
		return err
	})
}

// PageSize returns the width and height of a page as shown, without reading its content. The index
// starts at 0.
func (d *Document) PageSize(ctx context.Context, index int) (width, height float32, err error) {
	err = d.do(ctx, func(ctx context.Context, in *instance) error {
		if in.call(ctx, "FPDF_GetPageSizeByIndexF", uint64(d.doc), uint64(index), in.at(0)) == 0 {
			return cmp.Or(in.err, ErrPage)
		}
		width, height = in.float(0), in.float(4)
		return in.err
	})
	return width, height, err
}

// Page reads a page. The index starts at 0.
func (d *Document) Page(ctx context.Context, index int) (*Page, error) {
	r := &pageReader{index: index, form: d.form}
	err := d.withPage(ctx, index, func(ctx context.Context, in *instance, page handle) error {
		r.ctx, r.in, r.page, r.doc, r.form = ctx, in, page, d.doc, d.form
		return r.read()
	})
	if err != nil {
		return nil, err
	}
	return &r.out, nil
}

// Properties returns the document's properties.
func (d *Document) Properties(ctx context.Context) (p Properties, err error) {
	err = d.do(ctx, func(ctx context.Context, in *instance) error {
		for tag, value := range map[string]*string{"Title": &p.Title, "Author": &p.Author, "Subject": &p.Subject,
			"Keywords": &p.Keywords, "Creator": &p.Creator, "Producer": &p.Producer, "CreationDate": &p.Created, "ModDate": &p.Modified} {
			name := in.alloc(ctx, len(tag)+1)
			in.write(name, append([]byte(tag), 0))
			*value = in.utf16(ctx, "FPDF_GetMetaText", uint64(d.doc), uint64(name))
			in.free(name)
		}
		p.Language = in.utf16(ctx, "FPDFCatalog_GetLanguage", uint64(d.doc))
		p.Tagged = in.call(ctx, "FPDFCatalog_IsTagged", uint64(d.doc)) != 0
		return in.err
	})
	return p, err
}

// Attachments returns the files that are embedded in the document as a whole.
func (d *Document) Attachments(ctx context.Context) (list []Attachment, err error) {
	const most = 10_000
	err = d.do(ctx, func(ctx context.Context, in *instance) error {
		n := int(int32(in.call(ctx, "FPDFDoc_GetAttachmentCount", uint64(d.doc))))
		if n > most {
			return fmt.Errorf("%w: %d attachments, want at most %d", ErrTooLarge, n, most)
		}
		for i := range n {
			a := in.call(ctx, "FPDFDoc_GetAttachment", uint64(d.doc), uint64(i))
			if a == 0 {
				continue
			}
			list = append(list, Attachment{Index: i, Name: in.utf16(ctx, "FPDFAttachment_GetName", a)})
		}
		return in.err
	})
	return list, err
}

// Attachment returns the bytes of an attachment, at most limit of them.
func (d *Document) Attachment(ctx context.Context, a Attachment, limit int64) (data []byte, err error) {
	err = d.do(ctx, func(ctx context.Context, in *instance) error {
		h := in.call(ctx, "FPDFDoc_GetAttachment", uint64(d.doc), uint64(a.Index))
		if h == 0 {
			return cmp.Or(in.err, ErrFormat)
		}
		data, err = in.stream(ctx, limit, "FPDFAttachment_GetFile", h)
		return cmp.Or(in.err, err)
	})
	return data, err
}

// stream returns the bytes of a stream, at most limit of them.
func (in *instance) stream(ctx context.Context, limit int64, name string, h uint64) ([]byte, error) {
	in.clear(4)
	if in.call(ctx, name, h, 0, 0, in.at(0)) == 0 {
		return nil, cmp.Or(in.err, ErrFormat)
	}
	n := in.integer(0)
	if int64(n) > limit {
		return nil, fmt.Errorf("%w: a file of %d bytes, want at most %d", ErrTooLarge, n, limit)
	}
	if n == 0 {
		return []byte{}, in.err
	}
	p := in.alloc(ctx, int(n))
	defer in.free(p)
	if in.call(ctx, name, h, uint64(p), uint64(n), in.at(0)) == 0 {
		return nil, cmp.Or(in.err, ErrFormat)
	}
	return append([]byte(nil), in.read(p, int(n))...), in.err
}

// Outline returns the bookmarks in reading order.
func (d *Document) Outline(ctx context.Context) (items []OutlineItem, err error) {
	err = d.do(ctx, func(ctx context.Context, in *instance) error {
		o := outliner{ctx: ctx, in: in, doc: d.doc, seen: map[handle]bool{}}
		o.children(0, 1)
		items = o.items
		return in.err
	})
	return items, err
}

// An outliner walks the bookmarks of a document.
type outliner struct {
	ctx   context.Context
	in    *instance
	doc   handle
	seen  map[handle]bool // bookmarks visited; the tree of a damaged file may have circles
	items []OutlineItem
}

// Limits of the outline. Items over a limit are left out. No text is lost, since the outline only
// repeats headings of the pages.
const (
	maxOutlineDepth = 16
	maxOutlineItems = 20_000
)

func (o *outliner) children(parent handle, level int) {
	b := handle(o.in.call(o.ctx, "FPDFBookmark_GetFirstChild", uint64(o.doc), uint64(parent)))
	for b != 0 && !o.seen[b] && len(o.items) < maxOutlineItems {
		o.seen[b] = true
		o.items = append(o.items, o.item(b, level))
		if level < maxOutlineDepth {
			o.children(b, level+1)
		}
		b = handle(o.in.call(o.ctx, "FPDFBookmark_GetNextSibling", uint64(o.doc), uint64(b)))
	}
}

func (o *outliner) item(b handle, level int) OutlineItem {
	item := OutlineItem{Title: o.in.utf16(o.ctx, "FPDFBookmark_GetTitle", uint64(b)), Level: level, Y: -1}
	dest := o.in.call(o.ctx, "FPDFBookmark_GetDest", uint64(o.doc), uint64(b))
	if dest == 0 {
		if action := o.in.call(o.ctx, "FPDFBookmark_GetAction", uint64(b)); action != 0 {
			dest = o.in.call(o.ctx, "FPDFAction_GetDest", uint64(o.doc), action)
		}
	}
	if dest == 0 {
		return item
	}
	index := int(int32(o.in.get("FPDFDest_GetDestPageIndex", uint64(o.doc), dest)))
	if index < 0 {
		return item
	}
	item.Page = index + 1
	o.in.clear(24)
	ok := o.in.get("FPDFDest_GetLocationInPage", dest, o.in.at(0), o.in.at(4), o.in.at(8), o.in.at(12), o.in.at(16), o.in.at(20)) != 0
	hasY, y := o.in.integer(4) != 0, o.in.float(16)
	if ok && hasY && o.in.call(o.ctx, "FPDF_GetPageSizeByIndexF", uint64(o.doc), uint64(index), o.in.at(0)) != 0 {
		item.Y = max(0, o.in.float(4)-y)
	}
	return item
}
