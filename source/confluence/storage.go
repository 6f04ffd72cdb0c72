package confluence

import (
	"errors"
	"html"
	"io"
	"strings"

	xhtml "golang.org/x/net/html"
)

// maxDepth bounds the nesting of elements that are converted. Deeper ones keep their text.
const maxDepth = 500

// kept are the elements of HTML that are written, with their attributes that say something.
var kept = map[string][]string{
	"p": nil, "h1": nil, "h2": nil, "h3": nil, "h4": nil, "h5": nil, "h6": nil, "ul": nil, "ol": {"start"}, "li": nil,
	"table": nil, "thead": nil, "tbody": nil, "tfoot": nil, "tr": nil, "th": {"colspan", "rowspan"}, "td": {"colspan", "rowspan"},
	"a": {"href"}, "strong": nil, "em": nil, "b": nil, "i": nil, "u": nil, "s": nil, "del": nil, "sub": nil, "sup": nil,
	"code": nil, "pre": nil, "blockquote": nil, "br": nil, "hr": nil, "div": nil, "span": nil,
	"dl": nil, "dt": nil, "dd": nil, "caption": nil, "img": {"alt", "src"},
}

// blocks are elements of the storage format that become blocks.
var blocks = map[string]string{
	"ac:rich-text-body": "div", "ac:layout-section": "div", "ac:layout-cell": "div", "ac:adf-content": "div",
	"ac:task-list": "ul", "ac:task": "li", "ac:plain-text-body": "pre",
}

// unread are elements that repeat other content, or hold settings of the editor.
var unread = map[string]bool{
	"ac:adf-fallback": true, "ac:adf-attribute": true, "ac:task-id": true, "ac:task-uuid": true, "ac:placeholder": true,
	"script": true, "style": true,
}

// settings are parameters of macros that hold no words for readers. All other parameters are kept.
var settings = map[string]bool{
	"language": true, "theme": true, "linenumbers": true, "collapse": true, "firstline": true, "icon": true, "colour": true, "color": true,
	"bgcolor": true, "titlebgcolor": true, "titlecolor": true, "bordercolor": true, "borderstyle": true, "borderwidth": true, "width": true,
	"height": true, "maxlevel": true, "minlevel": true, "style": true, "outline": true, "printable": true, "serverid": true, "columnids": true,
	"atlassian-macro-output-type": true, "panelicon": true, "paneliconid": true, "panelicontext": true, "panelcolor": true, "bgimage": true,
}

// A converter writes the storage format as HTML.
type converter struct {
	out   strings.Builder
	open  []element
	tags  map[string]int // of open elements
	words int            // texts written
	users func(id string) (string, error)
}

// An element is an open element of the source.
type element struct {
	tag     string
	written string // element of the output; empty: none
	silent  bool   // its text is not written
	link    bool   // an ac:link
	words   int    // texts written before it
	target  string // of an ac:link: its text without a body
}

// storageHTML converts a page in the storage format to HTML. users names the users that are
// mentioned; its error ends the conversion. The words of unknown elements are kept.
//
// Source: "Confluence Storage Format" of Atlassian.
func storageHTML(title, storage string, users func(id string) (string, error)) ([]byte, error) {
	c := &converter{users: users, tags: map[string]int{}}
	c.out.WriteString("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>" + html.EscapeString(title) + "</title></head><body><main>\n")
	z := xhtml.NewTokenizer(strings.NewReader(storage))
	z.AllowCDATA(true)
	for {
		switch z.Next() {
		case xhtml.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				return nil, z.Err()
			}
			for len(c.open) > 0 {
				c.pop()
			}
			c.out.WriteString("\n</main></body></html>\n")
			return []byte(c.out.String()), nil
		case xhtml.TextToken:
			c.text(z.Token().Data)
		case xhtml.StartTagToken:
			if err := c.start(z.Token(), false); err != nil {
				return nil, err
			}
		case xhtml.SelfClosingTagToken:
			if err := c.start(z.Token(), true); err != nil {
				return nil, err
			}
		case xhtml.EndTagToken:
			c.end(z.Token().Data)
		}
	}
}

// text writes text inside the open elements.
func (c *converter) text(s string) {
	if len(c.open) > 0 && c.open[len(c.open)-1].silent {
		return
	}
	if strings.TrimSpace(s) != "" {
		c.words++
	}
	c.out.WriteString(html.EscapeString(s))
}

func attribute(t xhtml.Token, key string) string {
	for _, a := range t.Attr {
		if a.Key == key || a.Namespace != "" && a.Namespace+":"+a.Key == key {
			return a.Val
		}
	}
	return ""
}

// start handles a start tag.
func (c *converter) start(t xhtml.Token, closed bool) error {
	e := element{tag: t.Data, silent: len(c.open) > 0 && c.open[len(c.open)-1].silent || unread[t.Data]}
	if e.silent {
		c.push(e, closed)
		return nil
	}
	switch t.Data {
	case "ac:parameter":
		c.parameter(attribute(t, "ac:name"), &e)
	case "ac:link":
		e.link, e.target = true, attribute(t, "ac:anchor")
	case "ac:image":
		c.out.WriteString(`<img alt="` + html.EscapeString(attribute(t, "ac:alt")) + `">`)
	case "ac:task-status":
		e.silent = false
		e.written = "span"
		c.out.WriteString("<span>")
	case "ac:emoticon":
		c.text(emoticon(t))
	case "time":
		c.text(attribute(t, "datetime"))
	case "ri:page", "ri:blog-post":
		c.reference(attribute(t, "ri:content-title"))
	case "ri:attachment":
		c.reference(attribute(t, "ri:filename"))
	case "ri:url":
		c.reference(attribute(t, "ri:value"))
	case "ri:space":
		c.reference(attribute(t, "ri:space-key"))
	case "ri:user":
		return c.user(t, e, closed)
	default:
		c.element(t, &e)
	}
	c.push(e, closed)
	return nil
}

// emoticon returns the character or name of an emoticon.
func emoticon(t xhtml.Token) string {
	for _, key := range []string{"ac:emoji-fallback", "ac:emoji-shortname"} {
		if s := attribute(t, key); s != "" {
			return s
		}
	}
	return ":" + attribute(t, "ac:name") + ":"
}

// parameter writes a parameter of a macro as a line, unless it is a setting.
func (c *converter) parameter(name string, e *element) {
	if settings[strings.ToLower(name)] {
		e.silent = true
		return
	}
	e.written = "p"
	c.out.WriteString("<p>")
}

// reference writes the name of a resource, or keeps it for a link without a body.
func (c *converter) reference(name string) {
	if n := len(c.open); n > 0 && c.open[n-1].link {
		if c.open[n-1].target == "" {
			c.open[n-1].target = name
		}
		return
	}
	if name != "" {
		c.text(name + " ")
	}
}

// user writes the name of a user.
func (c *converter) user(t xhtml.Token, e element, closed bool) error {
	id := attribute(t, "ri:account-id")
	if id == "" {
		id = attribute(t, "ri:userkey")
	}
	if id != "" {
		named, err := c.users(id)
		if err != nil {
			return err
		}
		c.reference("@" + named)
	}
	c.push(e, closed)
	return nil
}

// element writes an element of HTML, or one that becomes a block.
func (c *converter) element(t xhtml.Token, e *element) {
	attributes, ok := kept[t.Data]
	tag := t.Data
	if !ok {
		if tag, ok = blocks[t.Data]; !ok {
			return
		}
		attributes = nil
	}
	if len(c.open) >= maxDepth {
		return
	}
	c.out.WriteString("<" + tag)
	for _, key := range attributes {
		if value := attribute(t, key); value != "" {
			c.out.WriteString(" " + key + `="` + html.EscapeString(value) + `"`)
		}
	}
	c.out.WriteString(">")
	if tag != "br" && tag != "hr" && tag != "img" {
		e.written = tag
	}
}

// push opens an element, or writes its end if it is closed.
func (c *converter) push(e element, closed bool) {
	switch e.tag {
	case "br", "hr", "img": // HTML without the slash
		return
	}
	e.words = c.words
	c.open = append(c.open, e)
	c.tags[e.tag]++
	if closed {
		c.pop()
	}
}

// pop ends the last open element.
func (c *converter) pop() {
	e := c.open[len(c.open)-1]
	c.open = c.open[:len(c.open)-1]
	c.tags[e.tag]--
	if e.link && e.words == c.words && e.target != "" {
		c.text(e.target)
	}
	if e.written != "" {
		c.out.WriteString("</" + e.written + ">")
	}
}

// end handles an end tag. One that matches no open element is ignored.
func (c *converter) end(tag string) {
	for found := c.tags[tag] == 0; !found; {
		found = c.open[len(c.open)-1].tag == tag
		c.pop()
	}
}
