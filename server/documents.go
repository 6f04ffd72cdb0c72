package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/markdown"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/source"
)

// documentRoutes show and delete documents.
func documentRoutes() []Route {
	return []Route{
		returning[DocumentPage](raw("GET", "/api/v1/documents", "documents.list", "Documents", "List documents by collection and URI", listDocuments)),
		route("GET", "/api/v1/documents/failed", "documents.failed", "FailedDocuments", "List the documents that could not be parsed",
			func(ctx context.Context, s *engine.Session, in failedIn) (FailedList, error) {
				list, err := s.FailedDocuments(ctx, in.Collection...)
				if list == nil {
					list = []engine.FailedDocument{}
				}
				return FailedList{list}, err
			}),
		route("GET", "/api/v1/documents/coverage", "documents.coverage", "Coverage", "Count the visible documents and the vectors of their passages",
			func(ctx context.Context, s *engine.Session, _ none) (engine.CoverageReport, error) {
				return s.Coverage(ctx)
			}),
		returning[engine.DocumentView](raw("GET", "/api/v1/documents/{id}", "documents.show", "Document", "Show a document with its text and structure", showDocument)),
		raw("GET", "/api/v1/documents/{id}/text", "documents.text", "Document", "Read the text of a document, or a part of it", documentText).with(func(r *Route) {
			r.Media, r.Statuses = []string{typeText, typeMarkdown}, []int{http.StatusPartialContent}
		}),
		raw("DELETE", "/api/v1/documents/{id}", "documents.delete", "DeleteDocuments", "Delete a document", deleteDocument).with(func(r *Route) { r.Status = http.StatusNoContent }),
	}
}

const typeText = "text/plain"

type listDocumentsIn struct {
	Collection []string `query:"collection"`
	Cursor     string   `query:"cursor"`
	Limit      int      `query:"limit"` // 1 to 500; default 50
}

// A DocumentPage is a part of a list of documents.
type DocumentPage struct {
	Documents []engine.DocumentSummary `json:"documents"`
	Next      string                   `json:"next,omitempty"` // cursor of the next part; empty: there is none
}

// A documentPlace is the place of a document in a list.
type documentPlace struct {
	Collection string `json:"c"`
	URI        string `json:"u"`
}

func (p documentPlace) before(d assay.Document) bool {
	if p.Collection != d.Collection {
		return p.Collection < d.Collection
	}
	return p.URI < d.URI
}

func listDocuments(x *exchange, in listDocumentsIn) error {
	limit, err := pageSize(in.Limit)
	if err != nil {
		return err
	}
	var after *documentPlace
	if err := x.place(in.Cursor, &after); err != nil {
		return err
	}
	page := DocumentPage{Documents: []engine.DocumentSummary{}}
	for d, err := range x.session.Documents(x.r.Context(), in.Collection...) {
		if err != nil {
			return err
		}
		if after != nil && !after.before(d) {
			continue
		}
		if len(page.Documents) == limit {
			last := page.Documents[limit-1]
			if page.Next, err = x.cursor(documentPlace{last.Collection, last.URI}); err != nil {
				return err
			}
			x.linkNext(page.Next)
			break
		}
		page.Documents = append(page.Documents, engine.SummaryOfDocument(d))
	}
	return x.reply(page)
}

type failedIn struct {
	Collection []string `query:"collection"`
}

// A FailedList lists documents that could not be parsed.
type FailedList struct {
	Documents []engine.FailedDocument `json:"documents"`
}

type documentIn struct {
	ID string `path:"id"`
}

func showDocument(x *exchange, in documentIn) error {
	d, err := x.session.Document(x.r.Context(), in.ID)
	if err != nil {
		return err
	}
	if err := x.setDocumentTag(d); err != nil {
		return err
	}
	return x.reply(engine.ViewOfDocument(d))
}

// documentTag returns the entity tag of a document, which changes with its content, metadata, ACL and
// source. Its text and structure follow from its version.
func documentTag(d assay.Document) (string, error) {
	data, err := json.Marshal(engine.SummaryOfDocument(d))
	return tagOf(data), err
}

func (x *exchange) setDocumentTag(d assay.Document) error {
	tag, err := documentTag(d)
	if err == nil {
		x.w.Header().Set("ETag", tag)
	}
	return err
}

type documentTextIn struct {
	ID       string `path:"id"`
	Start    *int   `query:"start"`    // offset of the first byte; default 0
	End      *int   `query:"end"`      // offset after the last byte; default the end of the text
	Download bool   `query:"download"` // as a file
}

// documentText sends the text of a document, byte for byte as citations point into it, or as Markdown.
// Start and end, as in citations, select a part of it; the header Range does not.
func documentText(x *exchange, in documentTextIn) error {
	d, err := x.session.Document(x.r.Context(), in.ID)
	if err != nil {
		return err
	}
	name := downloadName(d.URI)
	if x.media == typeMarkdown {
		if in.Start != nil || in.End != nil {
			return fmt.Errorf("offsets are those of the text, not of its Markdown: %w", assay.ErrInvalid)
		}
		if in.Download {
			x.attach(name + ".md")
		}
		return x.write(typeMarkdown+"; charset=utf-8", []byte(markdown.Render(d.Text, d.Structure)))
	}
	start, end := 0, len(d.Text)
	set(&start, in.Start)
	set(&end, in.End)
	if !isSpan(d.Text, start, end) {
		x.w.Header().Set("Content-Range", "bytes */"+strconv.Itoa(len(d.Text)))
		return fmt.Errorf("%d to %d of %d bytes: %w", start, end, len(d.Text), errRange)
	}
	if in.Download {
		x.attach(name + ".txt")
	}
	if in.Start != nil || in.End != nil {
		x.route.Status = http.StatusPartialContent
		x.w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, end-1, len(d.Text)))
	}
	x.w.Header().Set("Document-Version", d.Version)
	return x.write(typeText+"; charset=utf-8", []byte(d.Text[start:end]))
}

// downloadName returns the name of a document's file without its extension, in characters that all file
// systems take.
func downloadName(uri string) string {
	name := path.Base(strings.TrimPrefix(uri, source.UploadURI("")))
	return cmp.Or(strings.TrimSpace(plainName(strings.TrimSuffix(name, path.Ext(name)))), "document")
}

// plainName replaces what file systems do not allow in a name, and characters that change how it is shown.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if visible.Steers(r) || strings.ContainsRune(`<>:"/\|?*`, r) {
			return '_'
		}
		return r
	}, name)
}

// isSpan reports whether [start, end) is a part of text, not empty unless the text is, between
// characters.
func isSpan(text string, start, end int) bool {
	if start < 0 || start > end || end > len(text) {
		return false
	}
	if start == end && text != "" {
		return false
	}
	return (start == len(text) || utf8.RuneStart(text[start])) && (end == len(text) || utf8.RuneStart(text[end]))
}

type deleteDocumentIn struct {
	ID      string   `path:"id"`
	IfMatch []string `header:"If-Match"`
}

func deleteDocument(x *exchange, in deleteDocumentIn) error {
	if len(in.IfMatch) > 0 {
		d, err := x.session.Document(x.r.Context(), in.ID)
		if err != nil {
			return err
		}
		if err := checkMatch(in.IfMatch, nil, &d); err != nil {
			return err
		}
	}
	if err := x.session.DeleteDocuments(x.r.Context(), in.ID); err != nil {
		return err
	}
	return x.reply(nil)
}

// checkMatch checks the conditions If-Match and If-None-Match on the stored document; nil: there is
// none.
func checkMatch(match, noneMatch []string, stored *assay.Document) error {
	tag := ""
	if stored != nil {
		var err error
		if tag, err = documentTag(*stored); err != nil {
			return err
		}
	}
	switch {
	case len(match) > 0 && (stored == nil || !matches(match, tag)):
		return fmt.Errorf("the document is not the one of If-Match: %w", assay.ErrChanged)
	case len(noneMatch) > 0 && stored != nil && matches(noneMatch, tag):
		return fmt.Errorf("there is a document of this name: %w", assay.ErrChanged)
	}
	return nil
}
