package parse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/ooxml"
	"github.com/assay-rag/assay/internal/visible"
)

// The kinds of Office documents, which are also the names of their formats.
const (
	kindDOCX = "docx"
	kindPPTX = "pptx"
	kindXLSX = "xlsx"
	kindXLSB = "xlsb" // a workbook in binary parts, which a program converts
)

// An officeFile is the detected format of a source that may be an Office document.
type officeFile struct {
	kind   string // empty: it is none
	data   []byte // the package, decrypted
	err    error  // it is one and cannot be read
	legacy string // doc, xls, ppt or msg: the format of a compound file
	locked bool   // the compound file is encrypted
}

// officeFile looks at the source once.
func (s *source) officeFile() *officeFile {
	if s.office == nil {
		s.office = detectOffice(s)
	}
	return s.office
}

// detectOffice determines the kind of a source by its content.
func detectOffice(src *source) *officeFile {
	switch {
	case bytes.HasPrefix(src.data, []byte("PK\x03\x04")):
		return detectPackage(src.data, officeExtension(src.ext) || officeEntries(src.data))
	case isCFB(src.data):
		return detectCFB(src)
	}
	return &officeFile{}
}

// detectCFB determines the kind of a compound file: an encrypted package or a document in a format of
// old.
func detectCFB(src *source) *officeFile {
	kind, locked := cfbKind(src.data)
	if kind != kindEncrypted {
		return &officeFile{legacy: kind, locked: locked}
	}
	data, err := decryptOffice(src.data, src.passwords)
	if err != nil {
		return &officeFile{err: err}
	}
	return detectPackage(data, true)
}

// detectPackage determines the kind of a ZIP file. Damage is an error only if the file is named or
// starts as an Office document, because other formats are ZIP files too.
func detectPackage(data []byte, named bool) *officeFile {
	if !ooxml.Is(data) {
		return &officeFile{}
	}
	pkg, err := ooxml.Open(context.Background(), data)
	if err != nil {
		return badPackage(err, named)
	}
	main, err := mainPart(pkg)
	if err != nil {
		return badPackage(err, named)
	}
	return &officeFile{kind: officeKind(pkg.Type(main)), data: data}
}

// officeEntries reports whether the first entries of a ZIP file are in the folders of Office documents.
func officeEntries(data []byte) bool {
	switch signature(data) {
	case "DOCX", "PPTX", "XLSX":
		return true
	}
	return false
}

// badPackage returns the detection of a ZIP file that is no intact package.
func badPackage(err error, named bool) *officeFile {
	if !named || errors.Is(err, ooxml.ErrNotPackage) {
		return &officeFile{}
	}
	return &officeFile{err: officeError(err)}
}

// officeExtension reports whether ext is an extension of Office Open XML documents.
func officeExtension(ext string) bool {
	switch ext {
	case ".docx", ".docm", ".dotx", ".dotm", ".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm", ".xlsx", ".xlsm", ".xltx", ".xltm", ".xlsb":
		return true
	}
	return false
}

// mainPart returns the name of the document, presentation or workbook of a package.
func mainPart(pkg *ooxml.Package) (string, error) {
	rels, err := pkg.Relationships("")
	if err != nil {
		return "", err
	}
	if r, ok := pkg.First(rels, "officeDocument"); ok {
		return r.Target, nil
	}
	return "", fmt.Errorf("%w: it has no main part", ooxml.ErrDamaged)
}

// officeKind returns the kind of a document whose main part has a media type.
func officeKind(mediaType string) string {
	mediaType = strings.ToLower(mediaType)
	switch {
	case strings.Contains(mediaType, "wordprocessingml"), strings.Contains(mediaType, "ms-word"):
		return kindDOCX
	case strings.Contains(mediaType, "presentationml"), strings.Contains(mediaType, "ms-powerpoint"):
		return kindPPTX
	case strings.Contains(mediaType, "ms-excel.sheet.binary"):
		return kindXLSB
	case strings.Contains(mediaType, "spreadsheetml"), strings.Contains(mediaType, "ms-excel"):
		return kindXLSX
	}
	return ""
}

// officeError gives an error of a package the kind of this package.
func officeError(err error) error {
	switch {
	case errors.Is(err, ooxml.ErrLimit):
		return fmt.Errorf("%w: %w", err, ErrLimit)
	case errors.Is(err, ooxml.ErrDamaged):
		return fmt.Errorf("%w: %w", err, ErrDamaged)
	}
	return err
}

// isOffice returns the detection of a kind.
func isOffice(kind string) func(*source) bool {
	return func(src *source) bool { return src.officeFile().kind == kind }
}

// isBadOffice reports whether src is an Office document that cannot be opened.
func isBadOffice(src *source) bool { return src.officeFile().err != nil }

func parseBadOffice(src *source, b *builder) bool {
	b.err = src.officeFile().err
	return true
}

// An officeReader is the state that the readers of all kinds of Office documents share.
type officeReader struct {
	b    *builder
	pkg  *ooxml.Package
	main string // the name of the main part
	rels ooxml.Relationships

	embedded map[string]bool // parts that are added as documents
}

// openOffice opens the document of src and reads its properties.
func openOffice(src *source, b *builder) (*officeReader, error) {
	pkg, err := ooxml.Open(b.ctx, src.officeFile().data)
	if err != nil {
		return nil, err
	}
	main, err := mainPart(pkg)
	if err != nil {
		return nil, err
	}
	rels, err := pkg.Relationships(main)
	if err != nil {
		return nil, err
	}
	o := &officeReader{b: b, pkg: pkg, main: main, rels: rels}
	return o, o.properties()
}

// tree returns the root of the first related part of a type, or nil if there is none.
func (o *officeReader) tree(rels ooxml.Relationships, kind string) (*ooxml.Node, error) {
	r, ok := o.pkg.First(rels, kind)
	if !ok {
		return nil, nil
	}
	return o.pkg.Tree(r.Target)
}

// optional notes that a part without which the document can be read is damaged. Other errors are
// returned.
func (o *officeReader) optional(name string, err error) error {
	if errors.Is(err, ooxml.ErrDamaged) && !o.b.canceled() {
		o.b.note(name + " cannot be read: " + err.Error())
		return nil
	}
	return err
}

// properties reads the core properties into the metadata.
func (o *officeReader) properties() error {
	rels, err := o.pkg.Relationships("")
	if err != nil {
		return err
	}
	core, err := o.tree(rels, "core-properties")
	if err != nil || core == nil {
		return o.optional("the properties", err)
	}
	for _, n := range core.Children {
		v, ok := metaValue(strings.TrimSpace(n.Text))
		if !ok || n.Text == "" {
			continue
		}
		switch n.Name {
		case "dc:title":
			if !isStockTitle(n.Text) {
				o.b.title = n.Text
			}
		case "dc:creator":
			setField(o.b, "author", v)
		case "dcterms:created":
			setTime(o.b, assay.MetaCreated, v)
		case "dcterms:modified":
			setTime(o.b, assay.MetaModified, v)
		case "dc:language":
			setField(o.b, "language", v)
		case "cp:keywords", "dc:subject", "dc:description", "cp:category":
			_, name, _ := strings.Cut(n.Name, ":")
			setField(o.b, name, assay.StringValue(visible.Line(n.Text)))
		}
	}
	return nil
}

func setTime(b *builder, key string, v assay.Value) {
	if v.Kind == assay.KindTime {
		b.set(key, v)
	}
}

// isStockTitle reports whether a title in the properties was set by a program rather than a person.
func isStockTitle(title string) bool {
	switch strings.ToLower(strings.TrimSpace(title)) {
	case "powerpoint presentation", "powerpoint-präsentation", "présentation powerpoint", "word document", "document", "untitled", "slide 1", "title", "presentation", "präsentation", "présentation":
		return true
	}
	return strings.HasPrefix(title, "Microsoft Word - ") || strings.HasPrefix(title, "Microsoft PowerPoint - ")
}

// alternative returns the content of a mc:AlternateContent element: its first choice that needs
// understood extensions only, else its fallback.
func alternative(n *ooxml.Node) []*ooxml.Node {
	for _, c := range n.All("mc:Choice") {
		if understood(c.Attr("Requires")) {
			return c.Children
		}
	}
	if fallback := n.Child("mc:Fallback"); fallback != nil {
		return fallback.Children
	}
	return nil
}

// understood reports whether all of the extensions, which are prefixes of namespaces as producers
// write them, are read.
func understood(requires string) bool {
	for prefix := range strings.FieldsSeq(requires) {
		switch prefix {
		case "wps", "wpg", "wpc", "w14", "w15", "wp14", "a14", "c14", "p14", "p15", "x14", "x15", "xdr", "dgm", "cx", "cx1", "cx2", "cx3", "cx4", "cx5", "cx6", "cx7", "cx8", "a16", "v", "m":
		default:
			return false
		}
	}
	return true
}

// addEmbedded adds the part that a relationship refers to as a document inside this one.
func (o *officeReader) addEmbedded(rels ooxml.Relationships, id string) {
	r, ok := o.pkg.ID(rels, id)
	if !ok || o.embedded[r.Target] {
		return
	}
	if o.embedded == nil {
		o.embedded = map[string]bool{}
	}
	o.embedded[r.Target] = true
	pkg, name := o.pkg, r.Target
	base, mediaType := path.Base(name), pkg.Type(name)
	read := func(ctx context.Context, limit int64) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		data, err := pkg.Read(name, limit)
		return data, officeError(err)
	}
	if strings.HasSuffix(mediaType, "oleObject") {
		if file, data := oleFile(o.readSmall(name)); data != nil {
			base, mediaType = file, ""
			read = func(ctx context.Context, limit int64) ([]byte, error) {
				if int64(len(data)) > limit {
					return nil, fmt.Errorf("%s has %d bytes, more than %d: %w", file, len(data), limit, ErrLimit)
				}
				return data, ctx.Err()
			}
		}
	}
	o.b.addPart(Part{Name: base, Type: mediaType, Read: read})
}

// readSmall returns the bytes of a part that is no larger than parts may be, or nil.
func (o *officeReader) readSmall(name string) []byte {
	data, err := o.pkg.Read(name, maxPartBytes)
	if err != nil {
		return nil
	}
	return data
}

// maxPicture is the largest picture that is searched for text.
const maxPicture = 32 << 20

// picture writes a picture, given the relationship to its part, which may be none.
func (o *officeReader) picture(rels ooxml.Relationships, id, alt string, box func()) {
	p := picture{alt: alt, box: box}
	if r, ok := o.pkg.ID(rels, id); ok && (o.b.ocr != nil || o.b.wantImages) {
		data, err := o.pkg.Read(r.Target, maxPicture)
		if err != nil {
			o.b.note("a picture is not read: " + err.Error())
		} else {
			p.data = data
		}
	}
	o.b.picture(p)
}

// altText returns the alternative text of a picture or shape, given its non-visual properties. File
// names, which programs put there, are not text.
func altText(n *ooxml.Node) string {
	if n == nil || n.Find("adec:decorative").Attr("val") == "1" {
		return ""
	}
	title, text := visible.Line(n.Attr("title")), visible.Line(n.Attr("descr"))
	for _, remark := range altRemarks {
		text = strings.TrimSpace(strings.TrimSuffix(text, remark))
	}
	if isFileName(text) || stockAlt.MatchString(text) {
		text = ""
	}
	if isFileName(title) || stockAlt.MatchString(title) || title == text {
		title = ""
	}
	return strings.TrimSpace(title + "\n" + text)
}

// stockAlt matches the names that programs give to pictures and shapes.
var stockAlt = lazyregexp.New(`(?i)^(picture|image|graphic|chart|shape|bild|grafik|immagine|imagen|picture placeholder) ?\d*$|^chart type: `)

// altRemarks are the remarks that Office appends to the alternative texts that it makes.
var altRemarks = []string{"AI-generated content may be incorrect.", "Description automatically generated", "Description automatically generated with low confidence", "Description automatically generated with medium confidence"}

func isFileName(s string) bool {
	if strings.Contains(s, "://") && !strings.Contains(s, " ") {
		return true
	}
	switch strings.ToLower(path.Ext(s)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".emf", ".wmf", ".svg", ".webp":
		return true
	}
	return false
}

// comment writes a reviewer's comment, on a cell or, if on is empty, on the text before it.
func (o *officeReader) comment(on, author, date, text string) {
	if isBlank(text) {
		return
	}
	var about []string
	for _, field := range [][2]string{{"author", author}, {"time", date}, {"cell", on}} {
		if v := visible.Line(field[1]); v != "" {
			about = append(about, field[0]+": "+v)
		}
	}
	lead := "Comment"
	if len(about) > 0 {
		lead = "[" + strings.Join(about, ", ") + "]"
	}
	o.b.puts(Footnote, lead+": "+strings.TrimSpace(text), 0)
}
