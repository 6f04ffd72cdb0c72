package ui

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/server"
)

// documentPageRoutes show one document.
func documentPageRoutes() []Route {
	return []Route{
		page("/documents/{document}", "document", "DocumentVersion", showDocument),
		page("/documents/{document}/text", "document.text", "DocumentVersion", downloadText),
		page("/documents/{document}/original", "document.original", "Original", downloadOriginal),
		page("/documents/{document}/versions/{version}/pages/{page}", "document.page", "PageImage", showPageImage),
		action("/documents/{document}/delete", "document.delete", "DeleteDocuments", deleteDocument),
	}
}

// Lists of the page are shown up to these lengths.
const (
	shownRuns     = 20
	shownHeadings = 300
	shownOutcomes = 200
	shownPictures = 60 // pages of a part
	shownVersions = 50
)

// A documentPage is the data of the page of one document.
type documentPage struct {
	Document   engine.DocumentSummary
	Address    string // URL of a document on the web; empty: another address
	Access     []string
	Everyone   bool
	Metadata   []metadataRow
	Versions   []engine.DocumentVersion
	Replaced   time.Time // of the version that is shown; zero: it is the current one
	Deleted    bool      // there is no current version
	CitedBy    []engine.RunSummary
	Blocks     []docBlock
	Parts      partPlace
	Contents   []contentsEntry
	MorePlaces bool // there are headings that Contents leaves out
	Pages      pagesView
	Quoted     bool
	Lost       bool // the place that the link names is not in this version
	Original   string
	Bytes      int // of the text
}

// A metadataRow is one value of a document's metadata.
type metadataRow struct{ Name, Value string }

// A partPlace says which part of a document is shown.
type partPlace struct {
	Number, Of           int
	Previous, Next       string // paths; empty: there is none
	FirstPage, LastPage  int    // 0: it has no pages
	TotalPages           int
	QuotedPath, StartsAt string // path of the part with the quoted span, if that is another one
}

// A contentsEntry is a heading in the list of contents.
type contentsEntry struct {
	Text  string
	Path  string
	Depth int
}

// A pagesView is the pages of a document: their pictures, and what was found on them.
type pagesView struct {
	Pictures []pagePicture
	More     bool // the part has more pages than Pictures
	Outcomes []pageOutcome
	Good     int // pages with a text layer, which Outcomes leaves out
	NotShown int // pages that Outcomes leaves out although they have no text layer
}

// A pagePicture is the picture of a page.
type pagePicture struct {
	Number        int
	Path          string
	Width, Height int // in any unit; 0: not known
	Current       bool
}

// A pageOutcome says what was found on a page.
type pageOutcome struct {
	Number                    int
	Class, Icon, Word, Detail string
	Path                      string
}

// showDocument shows a document: what is known of it, and a part of its text.
func showDocument(q *request) error {
	d, err := q.session.DocumentVersion(q.ctx(), q.path("document"), q.query("version"))
	if err != nil {
		return err
	}
	data, err := q.documentPage(&d)
	if err != nil {
		return err
	}
	v := q.view("Documents", data.Document.Title, data)
	v.Wide = true
	return q.render("document.html", v)
}

// documentPage collects the data of the page.
func (q *request) documentPage(d *assay.Document) (*documentPage, error) {
	p := &documentPage{Document: engine.SummaryOfDocument(*d), Everyone: !d.ACL.Restricted, Access: accessNames(d.ACL), Metadata: metadataRows(d), Bytes: len(d.Text)}
	p.Document.Title = titleOf(d.Title, d.URI)
	p.Address = webAddress(d.URI, 0)
	if err := q.versionsOf(p, d); err != nil {
		return nil, err
	}
	if q.may("CitedBy") {
		var err error
		if p.CitedBy, err = q.session.CitedBy(q.ctx(), d.ID, shownRuns); err != nil {
			return nil, err
		}
	}
	return p, q.showText(p, d)
}

// versionsOf adds the versions that are kept.
func (q *request) versionsOf(p *documentPage, d *assay.Document) error {
	all, err := q.session.DocumentVersions(q.ctx(), d.ID)
	if err != nil {
		return err
	}
	p.Deleted = len(all) > 0 && !all[0].Replaced.IsZero()
	for _, v := range all {
		if v.Version == d.Version {
			p.Replaced, p.Original = v.Replaced, v.Original
		}
	}
	p.Versions = all[:min(len(all), shownVersions)]
	return nil
}

// showText adds the part of the text that the request asks for.
func (q *request) showText(p *documentPage, d *assay.Document) error {
	starts := cutParts(d.Text, d.Structure.Blocks)
	quoted, lost := q.quotedSpan(d)
	p.Quoted, p.Lost = quoted.start < quoted.end, lost
	at, err := q.place(d, quoted)
	if err != nil {
		return err
	}
	i := partAt(starts, at)
	from, to := starts[i], len(d.Text)
	if i+1 < len(starts) {
		to = starts[i+1]
	}
	_, before := 0, 0
	if from > 0 {
		_, before = d.Position(from - 1)
	}
	p.Blocks = showPart(d, from, to, quoted, before)
	link := func(offset int, anchor string) string { return q.partPath(d, quoted, offset, anchor) }
	p.Parts = partPlace{Number: i + 1, Of: len(starts), TotalPages: len(d.Structure.Pages)}
	if i > 0 {
		p.Parts.Previous = link(starts[i-1], "text")
	}
	if i+1 < len(starts) {
		p.Parts.Next = link(starts[i+1], "text")
	}
	if p.Quoted && partAt(starts, quoted.start) != i {
		p.Parts.QuotedPath = link(quoted.start, "span")
	}
	p.contents(d, link)
	p.pages(d, from, to, quoted, q.atoi("page"), link)
	return nil
}

// atoi returns a number of the query; 0: there is none.
func (q *request) atoi(name string) int {
	n, err := strconv.Atoi(q.query(name))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// quotedSpan returns the span that the link names. lost means that it is not in the text.
func (q *request) quotedSpan(d *assay.Document) (s markedSpan, lost bool) {
	from, to := q.query("start"), q.query("end")
	if from == "" && to == "" {
		return s, false
	}
	start, err := strconv.Atoi(from)
	end, err2 := strconv.Atoi(to)
	if err != nil || err2 != nil || start == end || !isTextSpan(d.Text, start, end) {
		return s, true
	}
	return markedSpan{start, end}, false
}

// place returns the offset that the request wants to see: of from, of a page, or of the quoted span.
func (q *request) place(d *assay.Document, quoted markedSpan) (int, error) {
	if text := q.query("from"); text != "" {
		at, err := strconv.Atoi(text)
		if err != nil || at < 0 || at > len(d.Text) {
			return 0, fmt.Errorf("the text has no place %q: %w", cut(text, 40), assay.ErrInvalid)
		}
		return at, nil
	}
	if text := q.query("page"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > len(d.Structure.Pages) {
			return 0, fmt.Errorf("the document has no page %q: %w", cut(text, 40), assay.ErrNotFound)
		}
		return pageStart(d, n), nil
	}
	return quoted.start, nil
}

// pageStart returns the offset of the text of a page, or of the last text before it.
func pageStart(d *assay.Document, page int) int {
	at := 0
	for _, a := range d.Anchors {
		if a.Page > page {
			break
		}
		if a.Page == page {
			return a.Start
		}
		at = a.Start
	}
	return at
}

// partPath returns the path of the part at an offset, with the quoted span.
func (q *request) partPath(d *assay.Document, quoted markedSpan, offset int, anchor string) string {
	values := url.Values{}
	if v := q.query("version"); v != "" {
		values.Set("version", v)
	}
	if quoted.start < quoted.end {
		values.Set("start", strconv.Itoa(quoted.start))
		values.Set("end", strconv.Itoa(quoted.end))
	}
	values.Set("from", strconv.Itoa(offset))
	return "/documents/" + url.PathEscape(d.ID) + "?" + values.Encode() + "#" + anchor
}

// anchorOf returns the name of a heading in the page.
func anchorOf(b assay.Block) string { return "h-" + strconv.Itoa(b.Start) }

// contents adds the headings of the whole document.
func (p *documentPage) contents(d *assay.Document, link func(int, string) string) {
	for _, b := range d.Structure.Blocks {
		if b.Kind != assay.BlockHeading {
			continue
		}
		if len(p.Contents) == shownHeadings {
			p.MorePlaces = true
			return
		}
		start, end := labelIn(d.Text, b)
		p.Contents = append(p.Contents, contentsEntry{cut(d.Text[start:end], 200), link(b.Start, anchorOf(b)), min(max(1, b.Level), 6)})
	}
}

// pages adds the pages of the part and what was found on all pages. wanted is the page that the request
// asks for; 0: none.
func (p *documentPage) pages(d *assay.Document, from, to int, quoted markedSpan, wanted int, link func(int, string) string) {
	all := d.Structure.Pages
	if len(all) == 0 {
		return
	}
	_, first := d.Position(from)
	last := len(all)
	if to < len(d.Text) {
		_, last = d.Position(to - 1)
	}
	if from == 0 || first < 1 {
		first = 1
	}
	last = max(first, min(last, len(all)))
	p.Parts.FirstPage, p.Parts.LastPage = first, last
	if p.Original != "" {
		p.pictures(d, first, last, quoted, wanted)
	}
	for _, one := range all {
		o := outcomeOf(one)
		switch {
		case one.Outcome == assay.PageText:
			p.Pages.Good++
			continue
		case len(p.Pages.Outcomes) == shownOutcomes:
			p.Pages.NotShown++
			continue
		}
		o.Path = link(pageStart(d, one.Number), pageAnchor(one.Number))
		p.Pages.Outcomes = append(p.Pages.Outcomes, o)
	}
}

// pageAnchor returns the name of the picture of a page.
func pageAnchor(n int) string { return "picture-" + strconv.Itoa(n) }

// pictures adds the pictures of the pages from first to last: those around the wanted or quoted one if
// there are many.
func (p *documentPage) pictures(d *assay.Document, first, last int, quoted markedSpan, wanted int) {
	boxes := ""
	if quoted.start < quoted.end {
		boxes = fmt.Sprintf("?boxes=%d-%d", quoted.start, quoted.end)
		if marks := d.Structure.Rectangles(quoted.start, quoted.end); wanted == 0 && len(marks) > 0 {
			wanted = marks[0].Page
		}
	}
	if wanted < first || wanted > last {
		wanted = first
	}
	if last-first >= shownPictures {
		p.Pages.More = true
		first = max(first, min(wanted-shownPictures/2, last-shownPictures+1))
		last = first + shownPictures - 1
	}
	for _, one := range d.Structure.Pages {
		if one.Number < first || one.Number > last {
			continue
		}
		path := fmt.Sprintf("/documents/%s/versions/%s/pages/%d%s", url.PathEscape(d.ID), url.PathEscape(d.Version), one.Number, boxes)
		p.Pages.Pictures = append(p.Pages.Pictures, pagePicture{one.Number, path, int(one.Width + .5), int(one.Height + .5), one.Number == wanted})
	}
}

// outcomeOf returns the words for what was found on a page.
func outcomeOf(p assay.Page) pageOutcome {
	o := pageOutcome{Number: p.Number, Detail: p.Detail}
	switch p.Outcome {
	case assay.PageRecognized:
		o.Class, o.Icon, o.Word = "wait", "search", "Recognised from an image"
	case assay.PageNoText:
		o.Class, o.Icon, o.Word = "warn", "dash", "No text"
	case assay.PageFailed:
		o.Class, o.Icon, o.Word = "bad", "cross", "Could not be read"
	default:
		o.Class, o.Icon, o.Word = "good", "check", "Text"
	}
	return o
}

// accessNames returns who may see a document, one name for each.
func accessNames(a assay.ACL) []string {
	words := []string{}
	for _, name := range a.Allow {
		kind, who, _ := strings.Cut(name, ":")
		switch kind {
		case "user":
			words = append(words, "the user "+who)
		case "group":
			words = append(words, "the group "+who)
		default:
			words = append(words, "every user")
		}
	}
	return words
}

// metadataRows returns the metadata that the page does not show elsewhere, by name.
func metadataRows(d *assay.Document) []metadataRow {
	rows := []metadataRow{}
	for name, value := range d.Metadata {
		if text := value.Text(); name != assay.MetaTitle && text != "" {
			rows = append(rows, metadataRow{name, text})
		}
	}
	slices.SortFunc(rows, func(a, b metadataRow) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

// showPageImage sends the picture of a page.
func showPageImage(q *request) error {
	n, err := strconv.Atoi(q.path("page"))
	if err != nil {
		return fmt.Errorf("there is no page %q: %w", q.path("page"), assay.ErrNotFound)
	}
	o := engine.PageImageOptions{}
	if text := q.query("width"); text != "" {
		if o.Width, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%q is no width: %w", cut(text, 40), assay.ErrInvalid)
		}
	}
	if values := q.r.URL.Query()["boxes"]; len(values) > 0 {
		if o.Spans, err = server.ParseSpans(values); err != nil {
			return errors.Join(err, assay.ErrInvalid)
		}
	}
	return server.SendPage(q.w, q.r, q.session, q.path("document"), q.path("version"), n, o)
}

// downloadText sends the text of a document as it was read.
func downloadText(q *request) error {
	d, err := q.session.DocumentVersion(q.ctx(), q.path("document"), q.query("version"))
	if err != nil {
		return err
	}
	server.SendText(q.w, d)
	return nil
}

// downloadOriginal sends the file that a document was read from.
func downloadOriginal(q *request) error {
	d, err := q.session.DocumentVersion(q.ctx(), q.path("document"), q.query("version"))
	if err != nil {
		return err
	}
	return server.SendOriginal(q.w, q.r, q.session, d)
}

// deleteDocument deletes a document.
func deleteDocument(q *request) error {
	confirmed, err := q.form("confirm")
	if err != nil {
		return err
	}
	d, err := q.session.Document(q.ctx(), q.path("document"))
	if err != nil {
		return err
	}
	if confirmed != "yes" {
		return q.redirect("/documents/"+url.PathEscape(d.ID), "Nothing was deleted: tick the box to confirm.")
	}
	if err := q.session.DeleteDocuments(q.ctx(), d.ID); err != nil {
		return err
	}
	return q.redirect("/documents", fmt.Sprintf("“%s” is deleted.", cut(titleOf(d.Title, d.URI), 200)))
}
