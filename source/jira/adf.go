package jira

import (
	"html"
	"strconv"
	"strings"
	"time"
)

// maxDepth bounds the nesting of elements that are written. Deeper nodes keep their text.
const maxDepth = 200

// isDocument reports whether a value is in the Atlassian Document Format.
func isDocument(value any) bool {
	node, ok := value.(map[string]any)
	return ok && node["type"] == "doc" && node["content"] != nil
}

// documentHTML converts the Atlassian Document Format to HTML. A string is a paragraph. The words of
// unknown nodes are kept.
//
// Source: "Atlassian Document Format", version 1.
func documentHTML(value any) string {
	if text, ok := value.(string); ok {
		return "<p>" + html.EscapeString(text) + "</p>"
	}
	var w adfWriter
	w.node(value, 0)
	return w.b.String()
}

type adfWriter struct{ b strings.Builder }

// elements are the elements of HTML for nodes with content.
var elements = map[string]string{
	"paragraph": "p", "bulletList": "ul", "orderedList": "ol", "listItem": "li", "taskList": "ul", "decisionList": "ul", "decisionItem": "li",
	"codeBlock": "pre", "blockquote": "blockquote", "panel": "div", "table": "table", "tableRow": "tr", "layoutSection": "div",
	"layoutColumn": "div", "caption": "p", "mediaSingle": "div", "mediaGroup": "div", "bodiedExtension": "div",
}

// texts are the attributes that hold words or an address, in the order in which they are written.
var texts = []string{"text", "title", "alt", "url"}

// node writes a node and its content.
func (w *adfWriter) node(value any, depth int) {
	node, ok := value.(map[string]any)
	if !ok {
		return
	}
	kind, _ := node["type"].(string)
	attrs, _ := node["attrs"].(map[string]any)
	content, _ := node["content"].([]any)
	switch kind {
	case "text":
		w.text(node)
		return
	case "hardBreak":
		w.b.WriteString("<br>")
		return
	case "rule":
		w.b.WriteString("<hr>")
		return
	case "emoji":
		w.words(attrs, "text", "shortName")
		return
	case "date":
		w.date(attrs)
		return
	case "heading":
		level, _ := attrs["level"].(float64)
		w.element("h"+strconv.Itoa(int(min(max(level, 1), 6))), "", content, depth)
		return
	case "tableCell", "tableHeader":
		w.cell(kind, attrs, content, depth)
		return
	case "taskItem":
		w.b.WriteString("<li>")
		w.words(attrs, "state")
		w.b.WriteString(" ")
		w.children(content, depth)
		w.b.WriteString("</li>")
		return
	case "expand", "nestedExpand":
		w.b.WriteString("<p><strong>")
		w.words(attrs, "title")
		w.b.WriteString("</strong></p>")
		w.element("div", "", content, depth)
		return
	}
	if tag := elements[kind]; tag != "" {
		w.element(tag, "", content, depth)
		return
	}
	for _, key := range texts {
		if text, ok := attrs[key].(string); ok && text != "" {
			w.b.WriteString(html.EscapeString(text) + " ")
		}
	}
	if text, ok := node["text"].(string); ok {
		w.b.WriteString(html.EscapeString(text))
	}
	w.children(content, depth)
}

func (w *adfWriter) children(content []any, depth int) {
	for _, child := range content {
		w.node(child, depth+1)
	}
}

// element writes an element with its attributes, or its content alone if it is too deep.
func (w *adfWriter) element(tag, attributes string, content []any, depth int) {
	if depth > maxDepth {
		w.children(content, depth)
		w.b.WriteString("\n")
		return
	}
	w.b.WriteString("<" + tag + attributes + ">")
	w.children(content, depth)
	w.b.WriteString("</" + tag + ">")
	if tag != "li" {
		w.b.WriteString("\n")
	}
}

func (w *adfWriter) cell(kind string, attrs map[string]any, content []any, depth int) {
	tag, spans := "td", ""
	if kind == "tableHeader" {
		tag = "th"
	}
	for _, key := range []string{"colspan", "rowspan"} {
		if n, ok := attrs[key].(float64); ok && n > 1 && n <= 1000 {
			spans += " " + key + `="` + strconv.Itoa(int(n)) + `"`
		}
	}
	w.element(tag, spans, content, depth)
}

// words writes the first attribute that is set.
func (w *adfWriter) words(attrs map[string]any, keys ...string) {
	for _, key := range keys {
		if text, ok := attrs[key].(string); ok && text != "" {
			w.b.WriteString(html.EscapeString(text))
			return
		}
	}
}

// date writes a date, which is stated in milliseconds since 1970.
func (w *adfWriter) date(attrs map[string]any) {
	text, _ := attrs["timestamp"].(string)
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		w.b.WriteString(html.EscapeString(text))
		return
	}
	w.b.WriteString(html.EscapeString(time.UnixMilli(ms).UTC().Format(time.DateOnly)))
}

// marks are the elements of HTML for marks of text.
var marks = map[string]string{"strong": "strong", "em": "em", "code": "code", "strike": "s", "underline": "u"}

// text writes a text with its marks.
func (w *adfWriter) text(node map[string]any) {
	text, _ := node["text"].(string)
	list, _ := node["marks"].([]any)
	var closing string
	const most = 10
	for _, m := range list[:min(len(list), most)] {
		mark, _ := m.(map[string]any)
		kind, _ := mark["type"].(string)
		if tag := marks[kind]; tag != "" {
			w.b.WriteString("<" + tag + ">")
			closing = "</" + tag + ">" + closing
			continue
		}
		attrs, _ := mark["attrs"].(map[string]any)
		if href, ok := attrs["href"].(string); ok && kind == "link" {
			w.b.WriteString(`<a href="` + html.EscapeString(href) + `">`)
			closing = "</a>" + closing
		}
	}
	w.b.WriteString(html.EscapeString(text) + closing)
}
