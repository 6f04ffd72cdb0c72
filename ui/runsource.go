package ui

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
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

// A quote is a passage of a source with the words that support claims.
type quote struct {
	Parts        []quotePart
	Claims       string // numbers of the claims that rest on it, separated by spaces
	Place        string // "page 3"
	Link         string // path of the document's page at the words
	Obtained     string // how the words were obtained, if the source does not contain them as text
	Image        string // path of a picture of the page with the words marked; empty: none
	ImageText    string
	Preformatted bool // line breaks count
}

// A quotePart is words that were quoted, or words around them.
type quotePart struct {
	Text   string
	Quoted bool
	Claims string // as of quote
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
		for len(cited) > 0 {
			h := found.around(cited[0])
			n := 1
			for n < len(cited) && h != nil && withinHit(*h, cited[n]) && cited[n].Start-cited[n-1].End < maxAround && cited[n].Page == first.Page {
				n++
			}
			s.Quotes = append(s.Quotes, quoteOf(cited[:n], h, claims, open))
			cited = cited[n:]
		}
		s.Document, s.Claims = s.Quotes[0].Link, claims.of(first.Number)
		all = append(all, s)
	}
	return all
}

// quoteOf returns the quote of citations of one passage, which may be unknown. They are in text order and
// do not contain each other.
func quoteOf(cited []assay.Citation, in *assay.Hit, claims quoteClaims, open bool) quote {
	c, last := cited[0], cited[len(cited)-1]
	q := quote{Place: placeOf(c.Page, c.Line), Obtained: obtainedOf(c.Provenance, c.Confidence, c.Model), Claims: claims.within(cited...)}
	at := c.Start
	if in != nil {
		q.add(quotePart{Text: tail(in.Text[:c.Start-in.Chunk.Start], maxAround)})
	}
	for _, one := range cited {
		if in != nil && at < one.Start {
			q.add(quotePart{Text: in.Text[at-in.Chunk.Start : one.Start-in.Chunk.Start]})
		}
		text := one.Quote
		if one.Start < at { // it begins in the one before
			text = in.Text[at-in.Chunk.Start : one.End-in.Chunk.Start]
		}
		q.add(quotePart{text, true, claims.within(one)})
		at = one.End
	}
	if in != nil {
		q.add(quotePart{Text: head(in.Text[last.End-in.Chunk.Start:], maxAround)})
	}
	q.Preformatted = slices.ContainsFunc(cited, func(c assay.Citation) bool { return !isProse(c.Quote) })
	if c.Origin != assay.FromDocuments || !open {
		return q
	}
	q.Link = documentPath(c.Document, c.Version, c.Start, last.End)
	if c.Page > 0 && len(c.Boxes) > 0 {
		page := c.Boxes[0].Page
		q.Image = fmt.Sprintf("/documents/%s/versions/%s/pages/%d?boxes=%d-%d", url.PathEscape(c.Document), url.PathEscape(c.Version), page, c.Start, last.End)
		q.ImageText = fmt.Sprintf("Page %d of %s with the quoted passage marked", page, titleOf(c.Title, c.URI))
	}
	return q
}

// add adds a part that is not empty.
func (q *quote) add(p quotePart) {
	if p.Text != "" {
		q.Parts = append(q.Parts, p)
	}
}

// isProse reports whether line breaks in a text do not count: each line but the first begins with a
// letter, a digit or a quotation mark.
func isProse(text string) bool {
	for i, line := range strings.Split(text, "\n") {
		if c, _ := utf8.DecodeRuneInString(line); i > 0 && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("\"'(“‘`„«", c) {
			return false
		}
	}
	return true
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
	if err != nil || u.Host == "" || strings.Contains(uri, assay.PartSeparator) {
		return ""
	}
	if u.Scheme != "https" && u.Scheme != "http" {
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

// within returns the numbers of the claims that rest on a part of the words of citations.
func (q quoteClaims) within(cited ...assay.Citation) string {
	return q.numbers(func(o assay.Citation) bool {
		return slices.ContainsFunc(cited, func(c assay.Citation) bool {
			return o.Number == c.Number && o.Document == c.Document && o.Start < c.End && c.Start < o.End
		})
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

// around returns the longest passage that a quote is in; nil: it is not known.
func (p passages) around(c assay.Citation) *assay.Hit {
	var best *assay.Hit
	hits := p[c.Document+"/"+c.Version]
	for i, h := range hits {
		if withinHit(h, c) && (best == nil || len(h.Text) > len(best.Text)) {
			best = &hits[i]
		}
	}
	return best
}

// withinHit reports whether a hit has the words of a citation.
func withinHit(h assay.Hit, c assay.Citation) bool {
	start, end := c.Start-h.Chunk.Start, c.End-h.Chunk.Start
	return 0 <= start && start <= end && end <= len(h.Text) && h.Text[start:end] == c.Quote
}

// tail returns the end of a text, at most n bytes from the beginning of a word on.
func tail(text string, n int) string {
	if len(text) <= n {
		return strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	text = text[len(text)-n:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		text = text[i:]
	}
	return "…" + text
}

// head returns the beginning of a text, at most n bytes up to the end of a word.
func head(text string, n int) string {
	if len(text) <= n {
		return strings.TrimRightFunc(text, unicode.IsSpace)
	}
	text = cut(text, n)
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
