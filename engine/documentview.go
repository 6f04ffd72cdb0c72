package engine

import (
	"time"

	"github.com/assay-rag/assay"
)

// A DocumentSummary is a document in a list, without its text.
type DocumentSummary struct {
	ID         string            `json:"id"`
	Version    string            `json:"version"`
	Collection string            `json:"collection"`
	URI        string            `json:"uri"`
	Container  string            `json:"container,omitempty"` // see assay.Document
	Aliases    []string          `json:"aliases,omitempty"`   // see assay.Document
	Title      string            `json:"title"`
	Metadata   assay.Metadata    `json:"metadata"`
	ACL        assay.ACL         `json:"acl"`
	Pages      *assay.PageCounts `json:"pages,omitempty"`   // nil: the format has no pages
	SizeBytes  int64             `json:"size_bytes"`        // of the source
	Modified   time.Time         `json:"modified,omitzero"` // of the source; zero: not known
}

// SummaryOfDocument returns the summary of a document.
func SummaryOfDocument(d assay.Document) DocumentSummary {
	s := DocumentSummary{
		ID: d.ID, Version: d.Version, Collection: d.Collection, URI: d.URI, Container: d.Container, Aliases: d.Aliases, Title: d.Title,
		Metadata: d.Metadata, ACL: d.ACL, SizeBytes: d.Source.SizeBytes, Modified: d.Source.Modified.UTC(),
	}
	if s.Metadata == nil {
		s.Metadata = assay.Metadata{}
	}
	if d.Pages.Total > 0 {
		s.Pages = &d.Pages
	}
	return s
}

// A DocumentView is a document with its text.
type DocumentView struct {
	DocumentSummary
	Text      string          `json:"text"`
	Anchors   []assay.Anchor  `json:"anchors"`
	Structure assay.Structure `json:"structure"`
}

// ViewOfDocument returns the view of a document.
func ViewOfDocument(d assay.Document) DocumentView {
	v := DocumentView{SummaryOfDocument(d), d.Text, d.Anchors, d.Structure}
	if v.Anchors == nil {
		v.Anchors = []assay.Anchor{}
	}
	return v
}
