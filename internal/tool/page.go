package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
)

// A Reference names a document: a version of it by ID, or its URI.
type Reference struct {
	Document   string `json:"document,omitempty"` // ID, with Version
	Version    string `json:"version,omitempty"`
	URI        string `json:"uri,omitempty"`        // if Document is empty
	Collection string `json:"collection,omitempty"` // of the URI
}

// A Page is a document's text, or one page of it.
type Page struct {
	Document   string `json:"document"`
	Version    string `json:"version"`
	Collection string `json:"collection"`
	URI        string `json:"uri"`
	Title      string `json:"title"`
	Language   string `json:"language,omitempty"`
	Line       int    `json:"line,omitempty"` // source line of Start, from 1; 0: not known
	Number     int    `json:"page,omitempty"` // source page of Start, from 1; 0: the format has none
	Of         int    `json:"of"`             // the page as the tool counts, from 1; 0: the whole document
	Pages      int    `json:"pages"`          // as the tool counts, at least 1
	Start      int    `json:"start"`
	End        int    `json:"end"`
	Total      int    `json:"total"` // bytes of the document's text
	Text       string `json:"text"`  // the document's text[Start:End]

	// Marks are the parts of Text that the source does not contain as text, with offsets in it.
	Marks []assay.Provenance `json:"marks,omitempty"`
}

// Sizes in bytes. A page and its overlaps fit into an observation, however their text is escaped.
const (
	wholeSize   = 6000 // of a document that is read whole
	pageSize    = 3000
	pageOverlap = 250 // most that a page has of the one before it, and of the one after it
)

// PageOn returns the number of the page of a long document that has the byte at offset.
func PageOn(offset int) int { return max(0, offset)/pageSize + 1 }

// PageOf returns the whole of d if it fits into an observation, whatever n is. Otherwise it returns
// page n, from 1; 0 means the first. Each page begins at a multiple of pageSize, and overlaps its
// neighbours so that it begins and ends at a line if one is near. A page after the last one is
// empty.
func PageOf(d assay.Document, n int) Page {
	p := Page{
		Document: d.ID, Version: d.Version, Collection: d.Collection, URI: d.URI, Title: d.Title,
		Pages: PageOn(len(d.Text)), Total: len(d.Text),
	}
	if n = max(1, n); n <= p.Pages && fitsWhole(d.Text) {
		p.End = len(d.Text)
	} else {
		p.Of = n
		p.Start, p.End = pageSpan(d.Text, n)
	}
	p.Text = d.Text[p.Start:p.End]
	p.Marks = d.Structure.In(p.Start, p.End).Provenance
	if v, ok := d.Metadata["language"]; ok && v.Kind == assay.KindString {
		p.Language = v.String
	}
	p.Line, p.Number = d.Position(p.Start)
	return p
}

// fitsWhole reports whether a text is shown whole.
func fitsWhole(text string) bool {
	return len(text) <= wholeSize && len(written(visible.Text(text))) <= MaxObservation-maxHead
}

// pageSpan returns the part of text that is page n.
func pageSpan(text string, n int) (start, end int) {
	if n > PageOn(len(text)) {
		return len(text), len(text)
	}
	start, end = (n-1)*pageSize, min(n*pageSize, len(text))
	if start > 0 {
		from := runeStart(text, start-pageOverlap)
		if i := strings.IndexByte(text[from:start], '\n'); i >= 0 {
			from += i + 1
		}
		start = from
	}
	if end < len(text) {
		to := runeStart(text, min(end+pageOverlap, len(text)))
		if i := strings.LastIndexByte(text[end:to], '\n'); i >= 0 {
			to = end + i + 1
		}
		end = to
	}
	return start, end
}

// runeStart returns the start of the character at byte i of text.
func runeStart(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
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
