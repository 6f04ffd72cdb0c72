package slack

import (
	"cmp"
	"html"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// threadHTML writes the messages of a thread.
func threadHTML(channel string, thread []message, users *directory) string {
	var b strings.Builder
	title := "#" + channel
	if line := firstLine(thread[0], users); line != "" {
		title += ": " + line
	}
	b.WriteString("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>" + html.EscapeString(title) + "</title></head><body><main>\n")
	for _, m := range thread {
		b.WriteString("<p><strong>" + html.EscapeString(users.author(m)) + "</strong> " + timeOf(m.TS).Format("2006-01-02 15:04") + "</p>\n")
		b.WriteString(textHTML(m.words(), users))
		for _, f := range m.Files {
			if shown := cmp.Or(f.Title, f.Name); shown != "" {
				b.WriteString("<p>" + html.EscapeString(shown) + "</p>\n")
			}
		}
	}
	b.WriteString("</main></body></html>\n")
	return b.String()
}

// firstLine returns the start of a message for a title.
func firstLine(m message, users *directory) string {
	const most = 80
	line, _, _ := strings.Cut(strings.TrimSpace(m.words()), "\n")
	line = entity.ReplaceAllStringFunc(line, func(s string) string {
		_, shown := reference(s[1:len(s)-1], users)
		return shown
	})
	runes := []rune(html.UnescapeString(line))
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(runes)
}

// entity matches a reference in a text: a user, a channel, a group, a date or a link.
var entity = lazyregexp.New(`<[^<>\n]+>`)

// textHTML converts Slack's markup to HTML.
//
// Source: "Formatting text for app surfaces".
func textHTML(text string, users *directory) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "```") {
		switch {
		case i%2 == 1:
			b.WriteString("<pre>" + html.EscapeString(plainText(strings.Trim(part, "\n"), users)) + "</pre>\n")
		case strings.TrimSpace(part) != "":
			lines(&b, strings.Trim(part, "\n"), users)
		}
	}
	return b.String()
}

// plainText returns the words of a text without its markup of references.
func plainText(text string, users *directory) string {
	return html.UnescapeString(entity.ReplaceAllStringFunc(text, func(s string) string {
		_, shown := reference(s[1:len(s)-1], users)
		return shown
	}))
}

// lines writes lines of text: those of a quotation, and others, as paragraphs.
func lines(b *strings.Builder, text string, users *directory) {
	open := ""
	for _, line := range strings.Split(text, "\n") {
		quoted, isQuote := strings.CutPrefix(line, "&gt;")
		tag := "p"
		if isQuote {
			tag, line = "blockquote", strings.TrimPrefix(quoted, " ")
		}
		switch {
		case strings.TrimSpace(line) == "":
			tag = ""
		case open == tag:
			b.WriteString("<br>")
		}
		if open != tag {
			end(b, open)
			if tag != "" {
				b.WriteString("<" + tag + ">")
			}
			open = tag
		}
		if tag != "" {
			inline(b, line, users)
		}
	}
	end(b, open)
}

func end(b *strings.Builder, tag string) {
	if tag != "" {
		b.WriteString("</" + tag + ">\n")
	}
}

// inline writes a line with its references and emphasis.
func inline(b *strings.Builder, line string, users *directory) {
	rest := line
	for {
		at := entity.FindStringIndex(rest)
		if at == nil {
			b.WriteString(emphasis(rest))
			return
		}
		b.WriteString(emphasis(rest[:at[0]]))
		address, shown := reference(rest[at[0]+1:at[1]-1], users)
		words := html.EscapeString(html.UnescapeString(shown))
		if address != "" {
			words = `<a href="` + html.EscapeString(html.UnescapeString(address)) + `">` + words + "</a>"
		}
		b.WriteString(words)
		rest = rest[at[1]:]
	}
}

// reference returns the address and the text of a reference without its brackets.
func reference(text string, users *directory) (address, shown string) {
	target, label, _ := strings.Cut(text, "|")
	switch {
	case strings.HasPrefix(target, "@"):
		if label == "" {
			label = users.name(target[1:])
		}
		return "", "@" + strings.TrimPrefix(label, "@")
	case strings.HasPrefix(target, "#"):
		return "", "#" + cmp.Or(label, target[1:])
	case strings.HasPrefix(target, "!"):
		name, _, _ := strings.Cut(target[1:], "^")
		return "", cmp.Or(label, "@"+name)
	}
	return target, cmp.Or(label, target)
}

// marked are the forms of emphasis: at the start of a line or after a blank or a bracket, and up to
// its end or a blank or punctuation.
var marked = []struct {
	form *lazyregexp.Regexp
	tag  string
}{
	{lazyregexp.New("(^|[\\s(])`([^`]+)`"), "code"},
	{lazyregexp.New(`(^|[\s(>])\*([^\s*](?:[^*]*[^\s*])?)\*`), "strong"},
	{lazyregexp.New(`(^|[\s(>])_([^\s_](?:[^_]*[^\s_])?)_`), "em"},
	{lazyregexp.New(`(^|[\s(>])~([^\s~](?:[^~]*[^\s~])?)~`), "s"},
}

// emphasis escapes text and converts its emphasis.
func emphasis(text string) string {
	text = html.EscapeString(html.UnescapeString(text))
	for _, m := range marked {
		text = m.form.ReplaceAllString(text, "${1}<"+m.tag+">${2}</"+m.tag+">")
	}
	return text
}
