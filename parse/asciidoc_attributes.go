package parse

import (
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

var (
	adCondition = lazyregexp.New(`^(ifdef|ifndef|ifeval|endif)::([^\[\]]*)\[(.*)\]$`)
	adInclude   = lazyregexp.New(`^include::([^\[\]]+)\[.*\]$`)
	adDefine    = lazyregexp.New(`^:(!?[\w][\w-]*!?):(?:[ \t]+(.*))?$`)
)

// processor reads a line for the processor: a comment, a condition, an inclusion or an attribute.
func (a *asciiDoc) processor(l string) bool {
	switch {
	case strings.HasPrefix(l, "////") && strings.Trim(l, "/") == "":
		a.at = min(a.fenceEnd(l, len(a.lines))+1, len(a.lines))
		return true
	case strings.HasPrefix(l, "//") && !strings.HasPrefix(l, "///"):
		a.at++
		return true
	case strings.HasPrefix(l, ":"):
		return a.define(l)
	}
	if m := adInclude.FindStringSubmatch(l); m != nil {
		a.b.puts(Paragraph, "include: "+a.expand(m[1]), a.at+1)
		a.at++
		return true
	}
	m := adCondition.FindStringSubmatch(l)
	if m == nil {
		return false
	}
	_, known := a.attrs[m[2]]
	switch {
	case m[3] != "" && m[1] != "ifeval" && m[1] != "endif":
		a.lines[a.at] = m[3] // the text in brackets is the line
	case m[1] == "ifndef" && known:
		a.skipCondition()
	default:
		a.at++
	}
	return true
}

// skipCondition moves behind the end of the condition that starts on the current line.
func (a *asciiDoc) skipCondition() {
	depth := 0
	for ; a.at < len(a.lines); a.at++ {
		m := adCondition.FindStringSubmatch(a.get(a.at))
		switch {
		case m == nil || m[3] != "" && m[1] != "ifeval":
		case m[1] == "endif":
			depth--
		default:
			depth++
		}
		if depth == 0 {
			a.at++
			return
		}
	}
}

// define reads ":name: value", with the value continued on lines that follow a backslash.
func (a *asciiDoc) define(l string) bool {
	m := adDefine.FindStringSubmatch(l)
	if m == nil {
		return false
	}
	name, value := m[1], m[2]
	a.at++
	for strings.HasSuffix(value, `\`) && !a.blank(a.at) && len(value) < maxAttributeValue {
		value = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(value, `\`), " "), " +") + " " + strings.TrimSpace(a.get(a.at))
		a.at++
	}
	if strings.Contains(name, "!") {
		delete(a.attrs, strings.Trim(name, "!"))
		return true
	}
	if value = a.expand(value); len(value) <= maxAttributeValue {
		a.attrs[name] = value
	}
	switch name {
	case "author", "authors", "lang", "revdate", "keywords", "description":
		if v, ok := metaValue(value); ok && value != "" {
			setField(a.b, strings.Replace(name, "revdate", "date", 1), v)
		}
	}
	return true
}

// attributes reads a line in brackets or a title, which describe the next block.
func (a *asciiDoc) attributes(l string) bool {
	inner, ok := strings.CutPrefix(l, "[")
	inner, ok2 := strings.CutSuffix(inner, "]")
	switch {
	case ok && ok2 && strings.HasPrefix(inner, "["): // an anchor
	case ok && ok2 && !strings.Contains(inner, "]") && !strings.HasPrefix(inner, " "):
		for i, word := range splitQuoted(inner) {
			if i == 0 && !strings.Contains(word, "=") {
				style, options, _ := strings.Cut(word, "%")
				style, _, _ = strings.Cut(style, "#")
				style, _, _ = strings.Cut(style, ".")
				if style != "" {
					a.style = style
				}
				a.opts = append(a.opts, strings.Split(options, "%")...)
				continue
			}
			a.opts = append(a.opts, word)
		}
	case len(l) > 1 && l[0] == '.' && l[1] != '.' && l[1] != ' ' && l[1] != '\t':
		a.putTitle(Paragraph) // of nothing
		a.title, a.line = l[1:], a.at+1
	default:
		return false
	}
	a.at++
	return true
}

// splitQuoted splits a list at commas outside quotes.
func splitQuoted(s string) []string {
	var words []string
	from, quote := 0, false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quote = !quote
		case s[i] == ',' && !quote:
			words = append(words, strings.TrimSpace(s[from:i]))
			from = i + 1
		}
	}
	return append(words, strings.TrimSpace(s[from:]))
}
