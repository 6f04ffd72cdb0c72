package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// A Reference names a document: a version of it by ID, or its URI.
type Reference struct {
	Document   string `json:"document,omitempty"` // ID, with Version
	Version    string `json:"version,omitempty"`
	URI        string `json:"uri,omitempty"`        // if Document is empty
	Collection string `json:"collection,omitempty"` // of the URI; empty: any readable collection
}

// A Page is a part of a document's text.
type Page struct {
	Document   string `json:"document"`
	Version    string `json:"version"`
	Collection string `json:"collection"`
	URI        string `json:"uri"`
	Title      string `json:"title"`
	Language   string `json:"language,omitempty"`
	Line       int    `json:"line,omitempty"` // source line of Start, from 1; 0: not known
	Number     int    `json:"page,omitempty"` // source page of Start, from 1; 0: the format has none
	Start      int    `json:"start"`
	End        int    `json:"end"`
	Total      int    `json:"total"` // bytes of the document's text
	Text       string `json:"text"`  // the document's text[Start:End]
}

// PageOf returns the page of d that starts at offset. It has at most limit bytes and ends at a line
// break if one is in its second half. An offset inside a character is moved back to its start.
func PageOf(d assay.Document, offset, limit int) Page {
	start := min(max(offset, 0), len(d.Text))
	for start > 0 && start < len(d.Text) && !utf8.RuneStart(d.Text[start]) {
		start--
	}
	end := min(start+max(limit, 0), len(d.Text))
	for end > start && end < len(d.Text) && !utf8.RuneStart(d.Text[end]) {
		end--
	}
	if end < len(d.Text) {
		if i := strings.LastIndexByte(d.Text[start:end], '\n'); i > (end-start)/2 {
			end = start + i + 1
		}
	}
	language := ""
	if v, ok := d.Metadata["language"]; ok && v.Kind == assay.KindString {
		language = v.String
	}
	line, page := d.Position(start)
	return Page{
		Document: d.ID, Version: d.Version, Collection: d.Collection, URI: d.URI, Title: d.Title, Language: language,
		Line: line, Number: page, Start: start, End: end, Total: len(d.Text), Text: d.Text[start:end],
	}
}

// Hit returns the page as a hit with the given relevance. Its chunk is not in the index.
func (p Page) Hit(relevance float64) assay.Hit {
	return assay.Hit{
		Chunk: assay.Chunk{
			ID:       fmt.Sprintf("page/%s/%s/%d-%d", p.Document, p.Version, p.Start, p.End),
			Document: p.Document, Version: p.Version, Kind: assay.ChunkProse, Start: p.Start, End: p.End, Headings: []string{},
		},
		Text: p.Text, Collection: p.Collection, URI: p.URI, Title: p.Title, Language: p.Language, Line: p.Line, Page: p.Number,
		Scores: assay.Scores{Relevance: relevance},
	}
}
