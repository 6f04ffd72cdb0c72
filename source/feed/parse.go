package feed

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/assay-rag/assay"
)

// An entry is an entry of a feed.
type entry struct {
	id       string
	link     string // absolute; empty: none
	title    string
	content  string
	media    string // text/html or text/plain
	author   string
	created  time.Time
	modified time.Time
}

// maxEntries bounds the entries of a feed.
const maxEntries = 5000

var errNoFeed = errors.New("it is neither RSS, Atom nor a JSON feed")

// parse parses a feed at an address.
func parse(data []byte, base *url.URL) ([]entry, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if bytes.HasPrefix(data, []byte("{")) {
		return parseJSON(data, base)
	}
	return parseXML(data, base)
}

// jsonFeed is a JSON feed.
//
// Source: jsonfeed.org, version 1.1.
type jsonFeed struct {
	Version string `json:"version"`
	Items   []struct {
		ID        any    `json:"id"`
		URL       string `json:"url"`
		Title     string `json:"title"`
		HTML      string `json:"content_html"`
		Text      string `json:"content_text"`
		Summary   string `json:"summary"`
		Published string `json:"date_published"`
		Modified  string `json:"date_modified"`
		Author    struct {
			Name string `json:"name"`
		} `json:"author"`
		Authors []struct {
			Name string `json:"name"`
		} `json:"authors"`
	} `json:"items"`
}

func parseJSON(data []byte, base *url.URL) ([]entry, error) {
	var f jsonFeed
	if err := json.Unmarshal(data, &f); err != nil || !strings.Contains(f.Version, "jsonfeed.org") {
		return nil, errNoFeed
	}
	if len(f.Items) > maxEntries {
		return nil, fmt.Errorf("the feed has more than %d entries", maxEntries)
	}
	var entries []entry
	for _, i := range f.Items {
		e := entry{link: absolute(base, i.URL), title: line(i.Title), content: i.HTML, media: "text/html", author: i.Author.Name}
		if i.ID != nil {
			e.id = fmt.Sprint(i.ID)
		}
		if e.content == "" {
			e.content, e.media = cmp.Or(i.Text, i.Summary), "text/plain"
		}
		if len(i.Authors) > 0 {
			e.author = cmp.Or(e.author, i.Authors[0].Name)
		}
		e.created, e.modified = date(i.Published), date(cmp.Or(i.Modified, i.Published))
		entries = append(entries, e)
	}
	return entries, nil
}

// An element is an element of a feed in XML.
type element struct {
	XMLName xml.Name
	Text    string `xml:",chardata"`
	Inner   string `xml:",innerxml"`
	Type    string `xml:"type,attr"`
	Href    string `xml:"href,attr"`
	Rel     string `xml:"rel,attr"`
	Name    string `xml:"name"` // of an author
}

// An xmlEntry is an item of RSS or an entry of Atom.
//
// Sources: RSS 2.0 specification; RSS 1.0 with its module content; RFC 4287.
type xmlEntry struct {
	ID          []element `xml:"id"`
	GUID        []element `xml:"guid"`
	Title       []element `xml:"title"`
	Link        []element `xml:"link"`
	Description []element `xml:"description"`
	Summary     []element `xml:"summary"`
	Content     []element `xml:"content"`
	Encoded     []element `xml:"encoded"`
	PubDate     []element `xml:"pubDate"`
	Date        []element `xml:"date"`
	Published   []element `xml:"published"`
	Updated     []element `xml:"updated"`
	Author      []element `xml:"author"`
	Creator     []element `xml:"creator"`
}

func parseXML(data []byte, base *url.URL) ([]entry, error) {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Strict = false
	d.Entity = xml.HTMLEntity
	d.CharsetReader = charsetReader
	var entries []entry
	known := false
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the feed is damaged: %w", err)
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "rss", "RDF", "feed":
			known = true
		case "item", "entry":
			var e xmlEntry
			if err := d.DecodeElement(&e, &start); err != nil {
				return nil, fmt.Errorf("the feed is damaged: %w", err)
			}
			if entries = append(entries, e.entry(base)); len(entries) > maxEntries {
				return nil, fmt.Errorf("the feed has more than %d entries", maxEntries)
			}
		}
	}
	if !known {
		return nil, errNoFeed
	}
	return entries, nil
}

func charsetReader(label string, r io.Reader) (io.Reader, error) {
	e, err := htmlindex.Get(label)
	if err != nil {
		return nil, fmt.Errorf("the encoding %q is not known", label)
	}
	return e.NewDecoder().Reader(r), nil
}

// own returns the first of the elements that belongs to the feed's format rather than to an
// extension such as Media RSS.
func own(elements []element) element {
	for _, e := range elements {
		if e.isOwn() {
			return e
		}
	}
	return element{}
}

func (e element) isOwn() bool {
	switch e.XMLName.Space {
	case "", "http://www.w3.org/2005/Atom", "http://purl.org/rss/1.0/":
		return true
	}
	return false
}

// first returns the text of the first element that has some, of any namespace.
func first(lists ...[]element) string {
	for _, list := range lists {
		for _, e := range list {
			if text := strings.TrimSpace(cmp.Or(e.Name, e.Text)); text != "" {
				return text
			}
		}
	}
	return ""
}

func (x xmlEntry) entry(base *url.URL) entry {
	e := entry{
		id: cmp.Or(own(x.ID).Text, own(x.GUID).Text), title: line(own(x.Title).Text), author: line(first(x.Author, x.Creator)),
		created: date(first(x.Published, x.PubDate, x.Date)), modified: date(first(x.Updated, x.PubDate, x.Date, x.Published)),
		media: "text/html",
	}
	e.id = strings.TrimSpace(e.id)
	for _, l := range x.Link {
		if !l.isOwn() || l.Rel != "" && l.Rel != "alternate" {
			continue
		}
		if e.link = absolute(base, cmp.Or(l.Href, strings.TrimSpace(l.Text))); e.link != "" {
			break
		}
	}
	body := own(x.Content)
	switch {
	case len(x.Encoded) > 0:
		e.content = x.Encoded[0].Text
	case body.XMLName.Local != "":
		e.content, e.media = body.body()
	case own(x.Summary).XMLName.Local != "":
		e.content, e.media = own(x.Summary).body()
	default:
		e.content = own(x.Description).Text
	}
	return e
}

// body returns the content of an Atom text and its media type.
func (e element) body() (content, media string) {
	switch e.Type {
	case "html", "text/html":
		return e.Text, "text/html"
	case "xhtml":
		return e.Inner, "text/html"
	}
	return e.Text, "text/plain"
}

// line returns a text on one line, without the character references that titles often have twice.
func line(text string) string {
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}

// absolute returns the address that a feed at base refers to, or "".
func absolute(base *url.URL, ref string) string {
	const most = 2048
	if ref == "" || len(ref) > most || !utf8.ValidString(ref) {
		return ""
	}
	u, err := base.Parse(ref)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.String()
}

// date parses a date of RSS (RFC 822, with its variations) or RFC 3339. It returns the zero time for
// any other text.
func date(text string) time.Time {
	text = strings.TrimSpace(text)
	for _, layout := range []string{
		time.RFC3339Nano, time.RFC1123Z, time.RFC1123, "Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 MST",
		"2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05 MST", "Mon, 2 Jan 2006 15:04 -0700",
	} {
		if t, err := time.Parse(layout, text); err == nil && assay.ValidTime(t) {
			return t.UTC()
		}
	}
	if t, ok := assay.ParseDate(text); ok {
		return t
	}
	return time.Time{}
}
