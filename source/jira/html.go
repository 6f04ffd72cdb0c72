package jira

import (
	"cmp"
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// A wholeIssue is an issue with all fields and their names.
type wholeIssue struct {
	Key    string
	Fields map[string]any
	Names  map[string]string
}

// unwritten are fields that are written in another way, that hold no words, or that may hold words
// that not all readers of the issue may see.
var unwritten = map[string]bool{
	"summary": true, "description": true, "comment": true, "attachment": true, "worklog": true, "thumbnail": true, "watches": true,
	"votes": true, "progress": true, "aggregateprogress": true, "timetracking": true, "workratio": true, "lastViewed": true,
	"issuerestriction": true, "security": true, "statuscategorychangedate": true, "statusCategory": true, "timespent": true, "timeestimate": true,
	"timeoriginalestimate": true, "aggregatetimespent": true, "aggregatetimeestimate": true, "aggregatetimeoriginalestimate": true,
}

// rank matches the values of fields that order issues.
var rank = lazyregexp.New(`^\d+\|[0-9a-z]+:`)

// issueHTML writes an issue: its fields, its texts and its comments.
func issueHTML(i wholeIssue, comments []comment) string {
	var b strings.Builder
	summary, _ := i.Fields["summary"].(string)
	b.WriteString("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>" + html.EscapeString(strings.TrimSpace(i.Key+" "+summary)) + "</title></head><body><main>\n")
	fields := slices.SortedFunc(maps.Keys(i.Fields), func(x, y string) int {
		return cmp.Or(cmp.Compare(i.label(x), i.label(y)), cmp.Compare(x, y))
	})
	var short, long strings.Builder
	for _, key := range fields {
		value := i.Fields[key]
		if unwritten[key] || value == nil {
			continue
		}
		if isDocument(value) {
			section(&long, i.label(key), documentHTML(value))
		} else if text := plain(value); text != "" && !rank.MatchString(text) {
			short.WriteString("<li>" + html.EscapeString(i.label(key)+": "+text) + "</li>\n")
		}
	}
	switch d := i.Fields["description"].(type) {
	case string:
		section(&b, i.label("description"), "<p>"+html.EscapeString(d)+"</p>")
	case map[string]any:
		section(&b, i.label("description"), documentHTML(d))
	}
	b.WriteString(long.String())
	if short.Len() > 0 {
		section(&b, "Fields", "<ul>\n"+short.String()+"</ul>")
	}
	if len(comments) > 0 {
		b.WriteString("<h2>Comments</h2>\n")
	}
	for _, c := range comments {
		b.WriteString("<h3>" + html.EscapeString(strings.TrimSpace(c.Author.DisplayName+" "+c.Created)) + "</h3>\n")
		b.WriteString(documentHTML(c.Body) + "\n")
	}
	b.WriteString("</main></body></html>\n")
	return b.String()
}

func section(b *strings.Builder, heading, body string) {
	b.WriteString("<h2>" + html.EscapeString(heading) + "</h2>\n" + body + "\n")
}

// label returns the name of a field.
func (i wholeIssue) label(key string) string { return cmp.Or(i.Names[key], key) }

// plain returns the value of a field as text: the name of an object, and the members of a list
// separated by commas. Of linked issues it returns only the keys, because a reader of the issue may
// not be allowed to see their summaries.
func plain(value any) string {
	switch v := value.(type) {
	case string:
		return strings.TrimSpace(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		var parts []string
		for _, member := range v {
			if text := plain(member); text != "" {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		return plainObject(v)
	}
	return ""
}

func plainObject(v map[string]any) string {
	if key, ok := v["key"].(string); ok && v["fields"] != nil {
		return key
	}
	for _, direction := range []string{"inward", "outward"} {
		if linked, ok := v[direction+"Issue"].(map[string]any); ok {
			kind, _ := v["type"].(map[string]any)
			label, _ := kind[direction].(string)
			key, _ := linked["key"].(string)
			return strings.TrimSpace(label + " " + key)
		}
	}
	for _, key := range []string{"displayName", "name", "value", "text", "key"} {
		text, ok := v[key].(string)
		if !ok || text == "" {
			continue
		}
		if child, ok := v["child"].(map[string]any); ok { // of a cascading select
			text += " / " + plain(child)
		}
		return text
	}
	return ""
}
