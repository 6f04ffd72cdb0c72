package notion

import (
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// titleOf returns the title of a page.
func titleOf(properties map[string]any) string {
	for _, key := range sortedKeys(properties) {
		if p, ok := properties[key].(map[string]any); ok && p["type"] == "title" {
			return plainText(p["title"])
		}
	}
	return ""
}

// plainText returns rich text without its form.
func plainText(rich any) string {
	var b strings.Builder
	parts, _ := rich.([]any)
	for _, p := range parts {
		part, _ := p.(map[string]any)
		b.WriteString(text(part, "plain_text"))
	}
	return b.String()
}

// pageHTML writes a page: its properties and its blocks.
func pageHTML(properties map[string]any, blocks []block) string {
	var w writer
	w.WriteString("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>" + html.EscapeString(titleOf(properties)) + "</title></head><body><main>\n")
	var list strings.Builder
	for _, key := range sortedKeys(properties) {
		p, _ := properties[key].(map[string]any)
		if p["type"] == "title" {
			continue
		}
		if value := property(p); value != "" {
			list.WriteString("<li>" + html.EscapeString(key+": "+value) + "</li>\n")
		}
	}
	if list.Len() > 0 {
		w.WriteString("<ul>\n" + list.String() + "</ul>\n")
	}
	w.blocks(blocks)
	w.WriteString("</main></body></html>\n")
	return w.String()
}

// property returns the value of a property as text, also of a formula or a member of a rollup.
//
// Source: "Page properties".
func property(p map[string]any) string {
	kind := text(p, "type")
	return value(p[kind], kind)
}

func value(v any, kind string) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		if kind == "rich_text" || kind == "title" {
			return strings.TrimSpace(plainText(v))
		}
		var parts []string
		for _, member := range v {
			if s := value(member, ""); s != "" {
				parts = append(parts, s)
			}
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		return objectValue(v)
	}
	return ""
}

// objectValue returns the value of an option, a person, a date, a file, an id, a formula or a
// rollup.
func objectValue(v map[string]any) string {
	if n := text(v, "name"); n != "" {
		return n
	}
	if start := text(v, "start"); start != "" {
		if end := text(v, "end"); end != "" {
			return start + " – " + end
		}
		return start
	}
	if number, ok := v["number"].(float64); ok {
		s := strconv.FormatFloat(number, 'f', -1, 64)
		if prefix := text(v, "prefix"); prefix != "" {
			return prefix + "-" + s
		}
		return s
	}
	if text(v, "type") != "" {
		return property(v)
	}
	return ""
}

// A writer writes blocks as HTML.
type writer struct{ strings.Builder }

// blocks writes blocks. Items of lists that follow each other are one list.
func (w *writer) blocks(blocks []block) {
	open := ""
	for _, b := range blocks {
		if b.Trashed {
			continue
		}
		tag := map[string]string{"bulleted_list_item": "ul", "to_do": "ul", "numbered_list_item": "ol"}[b.Type]
		if tag != open {
			w.close(open)
			if tag != "" {
				w.WriteString("<" + tag + ">\n")
			}
			open = tag
		}
		w.block(b)
	}
	w.close(open)
}

func (w *writer) close(tag string) {
	if tag != "" {
		w.WriteString("</" + tag + ">\n")
	}
}

// block writes a block and its children. The words of unknown blocks are kept.
func (w *writer) block(b block) {
	switch b.Type {
	case "paragraph", "heading_1", "heading_2", "heading_3", "template":
		w.element(map[string]string{"heading_1": "h2", "heading_2": "h3", "heading_3": "h4"}[b.Type], b)
	case "bulleted_list_item", "numbered_list_item":
		w.item("", b)
	case "to_do":
		state := "[ ] "
		if b.body["checked"] == true {
			state = "[x] "
		}
		w.item(state, b)
	case "quote", "callout":
		w.WriteString("<blockquote><p>" + html.EscapeString(icon(b.body)) + rich(b.body["rich_text"]) + "</p>\n")
		w.blocks(b.children)
		w.WriteString("</blockquote>\n")
	case "code":
		w.WriteString("<pre>" + html.EscapeString(plainText(b.body["rich_text"])) + "</pre>\n")
		w.caption(b)
	case "equation":
		w.WriteString("<p><code>" + html.EscapeString(text(b.body, "expression")) + "</code></p>\n")
	case "divider":
		w.WriteString("<hr>\n")
	case "table":
		w.table(b)
	case "child_page", "child_database":
		w.WriteString("<p>" + html.EscapeString(text(b.body, "title")) + "</p>\n")
	case "image", "file", "pdf", "video", "audio":
		w.file(b)
	default:
		w.other(b)
	}
}

func (w *writer) element(tag string, b block) {
	if tag == "" {
		tag = "p"
	}
	w.WriteString("<" + tag + ">" + rich(b.body["rich_text"]) + "</" + tag + ">\n")
	w.blocks(b.children)
}

func (w *writer) item(state string, b block) {
	w.WriteString("<li>" + state + rich(b.body["rich_text"]))
	if len(b.children) > 0 {
		w.WriteString("\n")
		w.blocks(b.children)
	}
	w.WriteString("</li>\n")
}

// icon returns the emoji of a callout.
func icon(body map[string]any) string {
	if i, ok := body["icon"].(map[string]any); ok && text(i, "emoji") != "" {
		return text(i, "emoji") + " "
	}
	return ""
}

func (w *writer) caption(b block) {
	if c := rich(b.body["caption"]); c != "" {
		w.WriteString("<p>" + c + "</p>\n")
	}
}

func (w *writer) table(b block) {
	w.WriteString("<table>\n")
	for i, row := range b.children {
		cells, _ := row.body["cells"].([]any)
		w.WriteString("<tr>")
		for j, cell := range cells {
			tag := "td"
			if i == 0 && b.body["has_column_header"] == true || j == 0 && b.body["has_row_header"] == true {
				tag = "th"
			}
			w.WriteString("<" + tag + ">" + rich(cell) + "</" + tag + ">")
		}
		w.WriteString("</tr>\n")
	}
	w.WriteString("</table>\n")
}

// file writes the name and caption of a file.
func (w *writer) file(b block) {
	held, external := fileAddress(b.body)
	shown := text(b.body, "name")
	switch {
	case shown != "":
	case held != "":
		shown = fileNameOf(held) // the address is signed
	default:
		shown = external
	}
	if shown != "" {
		w.WriteString("<p>" + html.EscapeString(shown) + "</p>\n")
	}
	w.caption(b)
}

// other writes a block that only groups others, a link, or one of an unknown type.
func (w *writer) other(b block) {
	line := rich(b.body["rich_text"])
	for _, key := range []string{"title", "name", "expression", "url"} {
		if s := text(b.body, key); s != "" {
			line += " " + html.EscapeString(s)
		}
	}
	if line != "" {
		w.WriteString("<p>" + strings.TrimSpace(line) + "</p>\n")
	}
	w.caption(b)
	w.blocks(b.children)
}

// rich converts rich text to HTML.
//
// Source: "Rich text": the annotations, and plain_text for mentions and equations.
func rich(value any) string {
	var b strings.Builder
	parts, _ := value.([]any)
	for _, p := range parts {
		part, _ := p.(map[string]any)
		words := strings.ReplaceAll(html.EscapeString(text(part, "plain_text")), "\n", "<br>")
		annotations, _ := part["annotations"].(map[string]any)
		for _, a := range [][2]string{{"code", "code"}, {"bold", "strong"}, {"italic", "em"}, {"strikethrough", "s"}, {"underline", "u"}} {
			if annotations[a[0]] == true {
				words = "<" + a[1] + ">" + words + "</" + a[1] + ">"
			}
		}
		if href := text(part, "href"); href != "" {
			words = `<a href="` + html.EscapeString(href) + `">` + words + "</a>"
		}
		b.WriteString(words)
	}
	return b.String()
}
