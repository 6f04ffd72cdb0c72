package ui

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// A shownSource is one numbered source of an answer with the words that were quoted from it.
type shownSource struct {
	Number     int
	Title      string
	Heading    string
	Collection string
	From       string // where it comes from, unless it is a document
	Document   string // path of its page; empty: it has none, or the user may not open it
	Original   string // its address on the web; empty: none
	Aliases    []string
	Quotes     []quote
	Claims     string // numbers of the claims that cite it, separated by spaces
}

// A quote is the words of a source that support claims, within the passage that they are in.
type quote struct {
	Before, Text, After string
	Claims              string // numbers of the claims that rest on it, separated by spaces
	Place               string // "page 3"
	Link                string // path of the document's page at the words
	Obtained            string // how the words were obtained, if the source does not contain them as text
	Image               string // path of a picture of the page with the words marked; empty: none
	ImageText           string
	Preformatted        bool
}

// sourcesOf returns the sources of an answer by number. Passages around the quotes are those that the
// run's searches returned. open says that the user may open documents.
func sourcesOf(a assay.Answer, found passages, open bool) []shownSource {
	claims := claimsByQuote(a)
	var all []shownSource
	for _, cited := range a.Sources() {
		first := cited[0]
		s := shownSource{
			Number: first.Number, Title: titleOf(first.Title, first.URI), Heading: headingOf(first.Title, first.Heading), Collection: first.Collection,
			From: fromOf(first.Origin), Aliases: first.Aliases, Original: webAddress(first.URI, first.Page),
		}
		for _, c := range cited {
			q := quoteOf(c, found, open)
			q.Claims = claims.within(c)
			s.Quotes = append(s.Quotes, q)
		}
		s.Document, s.Claims = s.Quotes[0].Link, claims.of(first.Number)
		all = append(all, s)
	}
	return all
}

// quoteOf returns the quote of a citation.
func quoteOf(c assay.Citation, found passages, open bool) quote {
	q := quote{Text: c.Quote, Place: placeOf(c.Page, c.Line), Obtained: obtainedOf(c.Provenance, c.Confidence, c.Model)}
	q.Before, q.After = found.around(c)
	q.Preformatted = strings.Contains(strings.TrimSpace(c.Quote), "\n")
	if c.Origin != assay.FromDocuments || !open {
		return q
	}
	q.Link = documentPath(c.Document, c.Version, c.Start, c.End)
	if c.Page > 0 && len(c.Boxes) > 0 {
		page := c.Boxes[0].Page
		q.Image = fmt.Sprintf("/documents/%s/versions/%s/pages/%d?boxes=%d-%d", url.PathEscape(c.Document), url.PathEscape(c.Version), page, c.Start, c.End)
		q.ImageText = fmt.Sprintf("Page %d of %s with the quoted passage marked", page, titleOf(c.Title, c.URI))
	}
	return q
}

// documentPath returns the path of the page of a document's version at a span of its text.
func documentPath(id, version string, start, end int) string {
	query := url.Values{"version": {version}, "start": {strconv.Itoa(start)}, "end": {strconv.Itoa(end)}}
	return "/documents/" + url.PathEscape(id) + "?" + query.Encode() + "#span"
}

// titleOf returns the title of a document, or the last part of its URI.
func titleOf(title, uri string) string {
	if title != "" {
		return title
	}
	return uri[strings.LastIndexByte(uri, '/')+1:]
}

// headingOf returns the headings above a passage, without one that repeats the title.
func headingOf(title string, headings []string) string {
	var shown []string
	for _, h := range headings {
		if h != "" && h != title {
			shown = append(shown, h)
		}
	}
	return strings.Join(shown, " › ")
}

// placeOf names a place in a document; empty: it is not known.
func placeOf(page, line int) string {
	switch {
	case page > 0:
		return fmt.Sprintf("page %d", page)
	case line > 0:
		return fmt.Sprintf("line %d", line)
	}
	return ""
}

// fromOf says where a source comes from; empty: from the stored documents.
func fromOf(o assay.Origin) string {
	return map[assay.Origin]string{assay.FromWeb: "From the web", assay.FromService: "From a managed service"}[o]
}

// obtainedOf says how words were obtained that the source does not contain as text.
func obtainedOf(kind assay.ProvenanceKind, confidence float32, model string) string {
	switch kind {
	case assay.ProvenanceRecognized:
		return fmt.Sprintf("Recognised in an image, confidence %s", percent(float64(confidence)))
	case assay.ProvenanceDescribed:
		return fmt.Sprintf("Description of an image by %s, not words of the document", model)
	}
	return ""
}

// webAddress returns the address of a document that is on the web; empty: it is not.
func webAddress(uri string, page int) string {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Contains(uri, assay.PartSeparator) {
		return ""
	}
	if link := assay.PageLink(uri, page); link != "" {
		return link
	}
	return uri
}

// A quoteClaims finds the claims that rest on words.
type quoteClaims []assay.Citation

func claimsByQuote(a assay.Answer) quoteClaims { return a.Citations }

// within returns the numbers of the claims that rest on a part of the words of a citation.
func (q quoteClaims) within(c assay.Citation) string {
	return q.numbers(func(o assay.Citation) bool {
		return o.Number == c.Number && o.Document == c.Document && o.Start < c.End && c.Start < o.End || o.Number == c.Number && o.Start == c.Start && o.End == c.End
	})
}

// of returns the numbers of the claims that cite a source.
func (q quoteClaims) of(number int) string {
	return q.numbers(func(o assay.Citation) bool { return o.Number == number })
}

func (q quoteClaims) numbers(rests func(assay.Citation) bool) string {
	var words []string
	last := -1
	for _, o := range q { // by claim
		if rests(o) && o.Claim != last {
			words, last = append(words, strconv.Itoa(o.Claim+1)), o.Claim
		}
	}
	return strings.Join(words, " ")
}

// passages are the hits of a run's searches by document version.
type passages map[string][]assay.Hit

// passagesOf returns the hits of the searches among steps. Steps that are withheld have none.
func passagesOf(steps []engine.Step) passages {
	found := passages{}
	for _, s := range steps {
		if s.Kind != assay.StepSearch || len(s.Output) == 0 {
			continue
		}
		var r assay.Results
		if json.Unmarshal(s.Output, &r) != nil {
			continue // a passage is shown without the words around it
		}
		for _, h := range r.Hits {
			key := h.Chunk.Document + "/" + h.Chunk.Version
			found[key] = append(found[key], h)
		}
	}
	return found
}

// maxAround is how many bytes are shown before and after a quote.
const maxAround = 280

// around returns the words of the passage before and after a quote; empty: they are not known.
func (p passages) around(c assay.Citation) (before, after string) {
	for _, h := range p[c.Document+"/"+c.Version] {
		start, end := c.Start-h.Chunk.Start, c.End-h.Chunk.Start
		if start < 0 || end > len(h.Text) || start > end || h.Text[start:end] != c.Quote {
			continue
		}
		b, a := tail(h.Text[:start]), head(h.Text[end:])
		if len(b)+len(a) > len(before)+len(after) {
			before, after = b, a
		}
	}
	return before, after
}

// tail returns the end of a text, from the beginning of a word on.
func tail(text string) string {
	if len(text) <= maxAround {
		return strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	text = text[len(text)-maxAround:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		text = text[i:]
	}
	return "…" + text
}

// head returns the beginning of a text up to the end of a word.
func head(text string) string {
	if len(text) <= maxAround {
		return strings.TrimRightFunc(text, unicode.IsSpace)
	}
	text = strings.ToValidUTF8(text[:maxAround], "")
	if i := strings.LastIndexFunc(text, unicode.IsSpace); i >= 0 {
		text = text[:i]
	}
	return text + " …"
}

// A closest is a passage that came near to a question without answering it.
type closest struct {
	assay.Closest
	Name, Under, Place, Obtained, Link string
}

// closestOf returns the passages that came nearest, each with a link if a search of the run shows which
// version of which document it is from.
func closestOf(a assay.Answer, found passages, open bool) []closest {
	var all []closest
	for _, c := range a.Closest {
		one := closest{c, titleOf(c.Title, c.URI), headingOf(c.Title, c.Heading), placeOf(0, c.Line), obtainedOf(c.Provenance, c.Confidence, c.Model), ""}
		if open {
			one.Link = found.linkTo(c)
		}
		all = append(all, one)
	}
	return all
}

func (p passages) linkTo(c assay.Closest) string {
	for _, hits := range p {
		for _, h := range hits {
			at := strings.Index(h.Text, c.Quote)
			if h.URI == c.URI && h.Origin == assay.FromDocuments && at >= 0 {
				return documentPath(h.Chunk.Document, h.Chunk.Version, h.Chunk.Start+at, h.Chunk.Start+at+len(c.Quote))
			}
		}
	}
	return ""
}
