package parse

import (
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

var adItem = lazyregexp.New(`^[ \t]*(\*{1,6}|-|\.{1,6}|\d{1,4}\.|[a-zA-Z]\.|[ivxIVX]{1,6}\)|<(?:\d+|\.)>)[ \t]+(\S.*)$`)

// item reads a list item with the lines that continue it.
func (a *asciiDoc) item(l string, end int) bool {
	m := adItem.FindStringSubmatch(l)
	if m == nil {
		return false
	}
	a.putTitle(Paragraph)
	level := a.listLevel(m[1], indentOf(l))
	marker := "- "
	switch m[1][0] {
	case '*', '-':
	case '<':
		marker = m[1] + " "
	default:
		a.counts[level-1]++
		marker = formatNumber(m[1], a.counts[level-1])
	}
	marker = strings.Repeat("  ", min(level-1, 8)) + marker
	a.lines[a.at] = m[2]
	from := a.at
	for a.at++; a.at < end && !a.endsText(a.at); a.at++ {
	}
	a.putLines(ListItem, marker, from, a.at)
	return true
}

// formatNumber returns the marker of the item with a number in a list that uses marker.
func formatNumber(marker string, n int) string {
	if marker[0] != '.' {
		return marker + " "
	}
	digits := ""
	for ; n > 0; n /= 10 {
		digits = string(rune('0'+n%10)) + digits
	}
	return digits + ". "
}

// listLevel returns the level of a list with a marker, from 1, and makes it the innermost.
func (a *asciiDoc) listLevel(marker string, indent int) int {
	kind := marker
	switch c := marker[0]; {
	case c >= '0' && c <= '9':
		kind = "1."
	case c != '*' && c != '.' && c != '-' && c != '<' && c != ':' && c != ';':
		kind = "a" + marker[len(marker)-1:]
	}
	if marker[0] != ':' && marker[0] != ';' {
		kind += strings.Repeat(" ", min(indent/2, 10))
	}
	if a.blank(a.at-1) && a.blank(a.at-2) { // two blank lines are often between lists
		a.lists = a.lists[:0]
	}
	for i, open := range a.lists {
		if open == kind {
			a.lists, a.counts = a.lists[:i+1], a.counts[:i+1]
			return i + 1
		}
	}
	if len(a.lists) < maxAsciiDocDepth {
		a.lists, a.counts = append(a.lists, kind), append(a.counts[:len(a.lists)], 0)
	} else {
		a.lists[len(a.lists)-1], a.counts[len(a.counts)-1] = kind, 0
	}
	return len(a.lists)
}

// endsText reports whether line i ends the text of a list item.
func (a *asciiDoc) endsText(i int) bool {
	l := a.get(i)
	return l == "" || l == "+" || adItem.MatchString(l) || adTerm.MatchString(l) || isAsciiDocFence(l) ||
		strings.HasPrefix(l, "[") && strings.HasSuffix(l, "]") || adCondition.MatchString(l) || adInclude.MatchString(l) || adMacro.MatchString(l)
}

// isAsciiDocFence reports whether l starts or ends a delimited block.
func isAsciiDocFence(l string) bool {
	return l == "--" || l == "|===" || strings.HasPrefix(l, "```") ||
		len(l) >= 4 && strings.IndexByte("-.=*_+/", l[0]) >= 0 && strings.Trim(l, l[:1]) == ""
}

var adTerm = lazyregexp.New(`^[ \t]*([^ \t].*?)(:{2,4}|;;)(?:[ \t]+(.*))?$`)

// term reads the terms of a description list and the first paragraph of their description as one
// block.
func (a *asciiDoc) term(l string, end int) bool {
	m := adTerm.FindStringSubmatch(l)
	if m == nil || strings.HasPrefix(m[1], "//") {
		return false
	}
	a.putTitle(Paragraph)
	a.listLevel(m[2], 0)
	if last := len(a.b.blocks) - 1; last >= 0 && a.b.blocks[last].Kind == ListItem {
		a.b.beginTight(ListItem)
	} else {
		a.b.begin(ListItem)
	}
	a.b.cur.Level = len(a.lists)
	indent := strings.Repeat("  ", min(len(a.lists)-1, 8))
	for i := 0; m != nil; i++ {
		if i > 0 {
			a.b.newline()
		}
		a.putInline(indent, m[1], a.at+1)
		delimiter := m[2]
		if m[3] != "" {
			a.lines[a.at] = m[3]
			break
		}
		next := a.at + 1
		for next < end && a.blank(next) {
			next++
		}
		a.at = next
		if next >= end {
			break
		}
		if m = adTerm.FindStringSubmatch(a.get(next)); m != nil && m[2] != delimiter {
			m = nil
		}
	}
	notes := a.description(indent, end)
	a.b.end()
	for _, n := range notes {
		a.b.puts(Footnote, n, a.at)
	}
	return true
}

// description puts the paragraph that describes a term, if one follows.
func (a *asciiDoc) description(indent string, end int) []string {
	from := a.at
	if from >= end || a.endsText(from) && !strings.HasPrefix(a.get(from), "[") || a.blank(from) {
		return nil
	}
	if l := a.get(from); strings.HasPrefix(l, "[") && strings.HasSuffix(l, "]") || a.underline(l, end) > 0 || asciiDocLevel(l) > 0 {
		return nil
	}
	for a.at++; a.at < end && !a.endsText(a.at); a.at++ {
	}
	var text strings.Builder
	for i := from; i < a.at; i++ {
		if i > from {
			text.WriteString("\n")
		}
		text.WriteString(strings.TrimSuffix(strings.TrimSpace(a.get(i)), " +"))
	}
	a.b.newline()
	return a.putInline(indent+"  ", text.String(), from+1)
}
