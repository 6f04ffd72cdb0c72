package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// documentPageRoutes show the files that documents were read from, and what is known of them.
func documentPageRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/documents/{id}/versions", "documents.versions", "DocumentVersions", "List the versions of a document that are kept", listVersions),
		route("GET", "/api/v1/documents/{id}/runs", "documents.runs", "CitedBy", "List your runs that cite a document", listCiting),
		raw("GET", "/api/v1/documents/{id}/pages/{page}", "documents.page", "PageImage", "Show a page of a document as a picture", showPage).with(func(r *Route) {
			r.Media = []string{typePNG}
		}),
		raw("GET", "/api/v1/documents/{id}/original", "documents.original", "Original", "Download the file that a document was read from", downloadOriginal).with(func(r *Route) {
			r.Media = []string{typeBytes}
		}),
	}
}

// typeBytes is the media type of files that a browser stores and does not show.
const typeBytes = "application/octet-stream"

// A VersionList lists the versions of a document that are kept, the current one first.
type VersionList struct {
	Versions []engine.DocumentVersion `json:"versions"`
}

func listVersions(ctx context.Context, s *engine.Session, in documentIn) (VersionList, error) {
	all, err := s.DocumentVersions(ctx, in.ID)
	return VersionList{all}, err
}

type listCitingIn struct {
	ID    string `path:"id"`
	Limit int    `query:"limit"` // 1 to 500; default 50
}

// A CitingList lists runs that cite a document, newest first.
type CitingList struct {
	Runs []engine.RunSummary `json:"runs"`
}

func listCiting(ctx context.Context, s *engine.Session, in listCitingIn) (CitingList, error) {
	limit, err := pageSize(in.Limit)
	if err != nil {
		return CitingList{}, err
	}
	all, err := s.CitedBy(ctx, in.ID, limit)
	return CitingList{all}, err
}

type showPageIn struct {
	ID      string   `path:"id"`
	Page    int      `path:"page"`     // from 1
	Version string   `query:"version"` // default the current one
	Width   int      `query:"width"`   // pixels, at most 2000; default 1000
	Boxes   []string `query:"boxes"`   // START-END: offsets into the text, as in citations, whose blocks are marked
}

func showPage(x *exchange, in showPageIn) error {
	spans, err := ParseSpans(in.Boxes)
	if err != nil {
		return fieldErrors{{Parameter: "boxes", Detail: err.Error()}}
	}
	version, err := x.version(in.ID, in.Version)
	if err != nil {
		return err
	}
	return SendPage(x.w, x.r, x.session, in.ID, version, in.Page, engine.PageImageOptions{Width: in.Width, Spans: spans})
}

// version returns a version that was named, or the current one.
func (x *exchange) version(id, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	d, err := x.session.Document(x.r.Context(), id)
	return d.Version, err
}

// ParseSpans reads spans as in "120-180", separated by commas or in several values.
func ParseSpans(values []string) ([]engine.Span, error) {
	var spans []engine.Span
	for _, text := range values {
		for part := range strings.SplitSeq(text, ",") {
			from, to, ok := strings.Cut(part, "-")
			start, err := strconv.Atoi(from)
			end, err2 := strconv.Atoi(to)
			if !ok || err != nil || err2 != nil || start < 0 || end < start {
				return nil, fmt.Errorf("%q is no span as in 120-180", part)
			}
			spans = append(spans, engine.Span{Start: start, End: end})
		}
	}
	return spans, nil
}

// SendPage answers a request with the picture of a page. A browser keeps it and asks each time whether
// it may still show it.
func SendPage(w http.ResponseWriter, r *http.Request, s *engine.Session, id, version string, page int, o engine.PageImageOptions) error {
	for _, tag := range r.Header.Values("If-None-Match") {
		if tag = strings.TrimPrefix(tag, "W/"); len(tag) > 2 {
			o.Unless = strings.Trim(tag, `"`)
		}
	}
	img, err := s.PageImage(r.Context(), id, version, page, o)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", `"`+img.Tag+`"`)
	if img.PNG == nil {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", typePNG)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(img.PNG)))
	_, _ = w.Write(img.PNG) // the client may be gone
	return nil
}

type downloadOriginalIn struct {
	ID      string `path:"id"`
	Version string `query:"version"` // default the current one
}

func downloadOriginal(x *exchange, in downloadOriginalIn) error {
	d, err := x.session.DocumentVersion(x.r.Context(), in.ID, in.Version)
	if err != nil {
		return err
	}
	return SendOriginal(x.w, x.r, x.session, d)
}

// SendOriginal answers a request with the file that a version of a document was read from. A browser
// stores it and never shows it.
func SendOriginal(w http.ResponseWriter, r *http.Request, s *engine.Session, d assay.Document) error {
	o, err := s.Original(r.Context(), d.ID, d.Version)
	if err != nil {
		return err
	}
	x := &exchange{w: w, r: r}
	x.attach(originalName(d.URI, o.Media))
	h := w.Header()
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Content-Type", typeBytes)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(o.Data)))
	_, _ = w.Write(o.Data) // the client may be gone
	return nil
}

// originalName returns the name under which a browser stores the file of a document.
func originalName(uri, media string) string {
	return downloadName(uri) + plainName(cmp.Or(path.Ext(uri), "."+path.Base(media)))
}

// SendText answers a request with the text of a document, as a file.
func SendText(w http.ResponseWriter, d assay.Document) {
	x := &exchange{w: w}
	x.attach(downloadName(d.URI) + ".txt")
	h := w.Header()
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Content-Type", typeText+"; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(d.Text)))
	_, _ = w.Write([]byte(d.Text)) // the client may be gone
}
