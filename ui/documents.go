package ui

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// documentRoutes list, show, upload and search documents.
func documentRoutes() []Route {
	return slices.Concat([]Route{
		page("/documents", "documents", "Documents", showDocuments),
		action("/documents/collections", "documents.create", "SetCollection", createCollection),
		page("/documents/failed", "documents.failed", "FailedDocuments", showFailed),
		action("/documents/failed", "documents.retry", "Ingest", retryFailed),
	}, uploadRoutes(), searchRoutes())
}

// documentRows is how many documents a page lists.
const documentRows = 50

// showDocuments shows the collections, or the documents of one.
func showDocuments(q *request) error {
	if q.query("collection") != "" {
		return showCollection(q)
	}
	return q.collectionsPage(http.StatusOK, newCollection{})
}

// A newCollection is the form that makes a collection, with the messages about its fields.
type newCollection struct {
	Name       string
	RequireACL bool
	Error      string
}

// A collectionsView is the data of the page that lists the collections.
type collectionsView struct {
	Collections []engine.CollectionSummary
	Coverage    engine.CoverageReport
	New         newCollection
}

// Percent is the share of the passages that have a vector.
func (v collectionsView) Percent() int {
	if v.Coverage.Chunks == 0 {
		return 0
	}
	return 100 * v.Coverage.Embedded / v.Coverage.Chunks
}

func (q *request) collectionsPage(status int, form newCollection) error {
	list, err := q.session.Collections(q.ctx())
	if err != nil {
		return err
	}
	coverage, err := q.session.Coverage(q.ctx())
	if err != nil {
		return err
	}
	return q.renderStatus(status, "documents.html", q.view("Documents", "Documents", collectionsView{list, coverage, form}))
}

// createCollection makes a collection. One that the user sees is not changed.
func createCollection(q *request) error {
	var form newCollection
	var err error
	if form.Name, err = q.form("name"); err != nil {
		return err
	}
	form.RequireACL = q.r.PostForm.Get("require_acl") != ""
	list, err := q.session.Collections(q.ctx())
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(c engine.CollectionSummary) bool { return c.Name == form.Name }) {
		form.Error = "There is a collection of this name. Choose another one."
		return q.collectionsPage(http.StatusBadRequest, form)
	}
	err = q.session.SetCollection(q.ctx(), store.Collection{Name: form.Name, RequireACL: form.RequireACL})
	if errors.Is(err, assay.ErrInvalid) || errors.Is(err, assay.ErrForbidden) {
		form.Error = q.detail(err)
		return q.collectionsPage(q.pages.config.Server.Problem(q.r, err).Status, form)
	}
	if err != nil {
		return err
	}
	return q.redirect("/documents/upload?"+url.Values{"collection": {form.Name}}.Encode(), "The collection "+form.Name+" is made. Add its first documents.")
}

// A collectionView is the data of the page that lists the documents of a collection.
type collectionView struct {
	Collection string
	Name       string // a part of the names to list; empty: all
	Documents  []documentRow
	After      string // the page begins after this URI
	Next       string // path of the next page; empty: none
}

// A documentRow is a document in a list.
type documentRow struct {
	ID, Version string
	Title, Name string
	Kind        string
	Pages       assay.PageCounts
	Size        int64
	Modified    time.Time
	Access      string
	Open        bool // everyone of the tenant may see it
}

// Lacking is how many of the pages have no text; 0: none.
func (d documentRow) Lacking() int { return d.Pages.NoText + d.Pages.Failed }

// row returns the row of a document.
func (q *request) row(d assay.Document) documentRow {
	name := documentName(d.URI)
	return documentRow{
		ID: d.ID, Version: d.Version, Title: cmp.Or(strings.Join(strings.Fields(d.Title), " "), path.Base(name)), Name: name, Kind: kindOfDocument(d),
		Pages: d.Pages, Size: d.Source.SizeBytes, Modified: d.Source.Modified,
		Access: accessWords(d.ACL, q.grant.Principal), Open: isOpen(d.ACL),
	}
}

// documentName returns a document's URI as people read it: that of an upload is its name.
func documentName(uri string) string {
	if name, uploaded := strings.CutPrefix(uri, source.UploadURI("")); uploaded {
		return source.Path(name)
	}
	return uri
}

// kindOfDocument returns the kind of a document: its type, or the extension of its name.
func kindOfDocument(d assay.Document) string {
	if v := d.Metadata[assay.MetaType]; v.Kind == assay.KindString {
		return v.String
	}
	return strings.ToLower(strings.TrimPrefix(path.Ext(d.URI), "."))
}

// isOpen reports whether everyone of the tenant may see a document with an ACL.
func isOpen(acl assay.ACL) bool { return !acl.Restricted || slices.Contains(acl.Allow, "*") }

// accessWords says in short who may see a document.
func accessWords(acl assay.ACL, reader assay.Principal) string {
	if isOpen(acl) {
		return "everyone"
	}
	const shown = 3
	var names []string
	for _, entry := range acl.Allow {
		if len(names) == shown {
			return strings.Join(names, ", ") + fmt.Sprintf(" and %d more", len(acl.Allow)-shown)
		}
		kind, name, _ := strings.Cut(entry, ":")
		switch {
		case kind == "user" && name == reader.User:
			names = append(names, "you")
		case kind == "group":
			names = append(names, "group "+name)
		default:
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 0:
		return "nobody"
	case slices.Equal(names, []string{"you"}):
		return "only you"
	}
	return strings.Join(names, ", ")
}

// showCollection lists the documents of a collection after a URI, so that documents which are added
// meanwhile neither repeat nor hide others.
func showCollection(q *request) error {
	v := collectionView{Collection: q.query("collection"), Name: strings.TrimSpace(q.query("name")), After: q.query("after")}
	part, last := strings.ToLower(v.Name), ""
	for d, err := range q.session.Documents(q.ctx(), v.Collection) {
		if err != nil {
			return err
		}
		if d.URI <= v.After || !hasPart(d, part) {
			continue
		}
		if len(v.Documents) == documentRows {
			v.Next = "/documents?" + v.query(last).Encode()
			break
		}
		last, v.Documents = d.URI, append(v.Documents, q.row(d))
	}
	return q.render("collection.html", q.view("Documents", v.Collection, v))
}

// query returns the parameters of the page that begins after a URI.
func (v collectionView) query(after string) url.Values {
	values := url.Values{"collection": {v.Collection}}
	for name, value := range map[string]string{"name": v.Name, "after": after} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// First is the path of the first page.
func (v collectionView) First() string { return "/documents?" + v.query("").Encode() }

// hasPart reports whether the name or the title of a document contains a text in small letters.
func hasPart(d assay.Document, part string) bool {
	return part == "" || strings.Contains(strings.ToLower(documentName(d.URI)), part) || strings.Contains(strings.ToLower(d.Title), part)
}

// A failedView is the data of the page that lists the documents that could not be read.
type failedView struct {
	Collection string
	Documents  []failedRow
	Total      int
	From       int    // number of the first one on this page, from 1
	Next       string // path of the next page; empty: none
}

// A failedRow is a document that could not be read.
type failedRow struct {
	Collection string
	URI, Name  string
	Reason     reasonWords
	Detail     string
	Time       time.Time
	Uploaded   bool
	Retry      bool // it is a file that can be read again
}

// failedRows is how many documents that could not be read a page lists.
const failedRows = 100

func showFailed(q *request) error {
	v := failedView{Collection: q.query("collection")}
	var collections []string
	if v.Collection != "" {
		collections = []string{v.Collection}
	}
	all, err := q.session.FailedDocuments(q.ctx(), collections...)
	if err != nil {
		return err
	}
	after := q.query("after")
	start, _ := slices.BinarySearchFunc(all, after, func(d engine.FailedDocument, after string) int {
		if failedKey(d) <= after && after != "" {
			return -1
		}
		return 1
	})
	v.Total, v.From = len(all), start+1
	shown := all[start:]
	if len(shown) > failedRows {
		shown = shown[:failedRows]
		next := url.Values{"after": {failedKey(shown[failedRows-1])}}
		if v.Collection != "" {
			next.Set("collection", v.Collection)
		}
		v.Next = "/documents/failed?" + next.Encode()
	}
	for _, d := range shown {
		v.Documents = append(v.Documents, q.failedRow(d))
	}
	return q.render("failed.html", q.view("Documents", "Documents that could not be read", v))
}

// failedKey orders documents that could not be read as Session.FailedDocuments does.
func failedKey(d engine.FailedDocument) string { return d.Collection + "\x00" + d.URI }

func (q *request) failedRow(d engine.FailedDocument) failedRow {
	return failedRow{
		Collection: d.Collection, URI: d.URI, Name: documentName(d.URI), Reason: wordsOfReason(source.Reason(d.Reason)), Detail: d.Detail, Time: d.Time,
		Uploaded: strings.HasPrefix(d.URI, source.UploadURI("")),
		Retry:    q.may("Ingest") && engine.SessionReadsFile(q.session, source.Path(d.URI)),
	}
}

// retryFailed reads a file of this machine again that could not be read.
func retryFailed(q *request) error {
	uri, err := q.form("uri")
	if err != nil {
		return err
	}
	collection := q.r.PostForm.Get("collection")
	report, err := q.session.Ingest(q.ctx(), engine.IngestRequest{Paths: []string{source.Path(uri)}, Collection: collection, RetryFailed: true})
	if err != nil {
		return err
	}
	notice := documentName(uri) + " was read."
	if len(report.Skipped) > 0 {
		notice = documentName(uri) + " could still not be read."
	}
	return q.redirect("/documents/failed?"+url.Values{"collection": {collection}}.Encode(), notice)
}

// A reasonWords says in words why a document could not be read, and what to do.
type reasonWords struct{ Word, Advice string }

// failureReasons are the words for the reasons of packages source and ingest.
var failureReasons = map[source.Reason]reasonWords{
	"too_large":     {"Too large", "Split it into documents of at most " + size(engine.MaxUploadBytes) + "."},
	"empty":         {"No text", "It has no text that can be searched. If it is a scan, upload one with a text layer, or ask who runs this server to install tesseract."},
	"binary":        {"Not a document", "Upload a PDF, an office document, a web page, mail, Markdown or text."},
	"encoding":      {"Unknown encoding", "Save it as UTF-8 and upload it again."},
	"minified":      {"Minified code", "Upload the source that people wrote."},
	"parser_failed": {"Cannot be read", "Open it in its program, save it again, and upload that file."},
	"damaged":       {"Damaged", "Open it in its program, save it again, and upload that file."},
	"password":      {"Needs a password", "Upload it again with its password, or without protection."},
	"limit":         {"Over a limit", "It takes too long to read, or is nested too deep. Split it, or save it in another format."},
	"needs_program": {"Needs a program", "Ask who runs this server to install the program that the detail names, or save it as PDF or .docx."},
	"no_acl":        {"No access list", "The collection requires one. Choose who may see the document, and upload it again."},
	"acl_in_text":   {"Access list in the text", "An access list inside a document is not used. State it beside the document, and remove it from the text."},
	"bad_sidecar":   {"Wrong metadata", "Correct the metadata, so that it is known who may see the document."},
	"unknown_acl":   {"Access unknown", "The source did not say who may see it. Check what the source's credentials may read."},
	"unreadable":    {"Cannot be opened", "Check that this server may read it, and try again."},
	"changed":       {"Changed while read", "Try again when it does not change any more."},
	"vanished":      {"Gone", "It was removed before it could be read. Nothing is to do."},
	"same_file":     {"Same file", "It is already read under another name. Nothing is to do."},
	"unsupported":   {"Not supported", "It has no content that can be read. Upload what it refers to."},
	"excluded":      {"Excluded", "The source asks not to read it."},
	"taken":         {"Taken", "Another source has a document of this address in the collection. Use another collection."},
	"link_outside":  {"Link leads outside", "Copy the file into the folder."},
	"link_broken":   {"Broken link", "Mend or remove the link."},
	"special_file":  {"Not a file", "It is a device, a socket or a pipe."},
}

// wordsOfReason returns the words for a reason.
func wordsOfReason(r source.Reason) reasonWords {
	if words, ok := failureReasons[r]; ok {
		return words
	}
	return reasonWords{"Could not be read", "The detail says why. Mend that, and upload it again."}
}
