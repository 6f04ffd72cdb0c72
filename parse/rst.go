package parse

import (
	"strings"

	"github.com/assay-rag/assay"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// parseRST parses reStructuredText or similar text: underlined titles, directives, literal blocks,
// lists and tables. Roles, references and emphasis are reduced to their words. Comments, link
// targets, images and the processor's own directives are dropped.
func parseRST(src *source, b *builder) bool {
	r := &rst{plainText: plainText{b: b, lines: src.lines()}, budget: maxSubstitution}
	r.substitutions = rstSubstitutions(r.lines)
	r.words = r.inline
	r.fields(0)
	r.body(len(r.lines), 0)
	if b.title == "" {
		b.title = firstTitle(b)
	}
	return true
}

// An rst is read line by line, like plain text.
type rst struct {
	plainText
	options       map[string]string // of the directive that is read
	substitutions map[string]string // texts of |names|
	budget        int               // bytes that substitutions may still add
	indents       []int             // of the open lists, outermost first
	level         int               // of the list item that is written
}

// deepestRST is the greatest nesting depth of directives that is parsed.
const deepestRST = 20

// body reads the lines up to end, which are nested in depth directives.
func (r *rst) body(end, depth int) {
	for r.at < end && !r.b.canceled() {
		l := strings.TrimSpace(r.line(r.at))
		switch {
		case l == "":
			r.at++
		case strings.HasPrefix(l, ".. ") || l == "..":
			r.explicit(depth)
		case strings.HasPrefix(l, "__ "):
			r.at++
		case depth == 0 && r.title():
		case strings.HasPrefix(l, ">>> "):
			r.put(Code, r.run(end))
		case isGridRule(l):
			r.gridTable(end)
		case isSimpleRule(l):
			r.simpleTable(end)
		case isRule(l):
			r.at++ // a transition
		case isRSTItem(l):
			r.item(end)
		default:
			r.paragraph(end)
		}
	}
}

// fields reads the ":name: value" lines at the start of a document or after its title as metadata.
func (r *rst) fields(from int) {
	at := from
	for at < len(r.lines) && r.blank(at) {
		at++
	}
	if at > from+1 || !fieldLine.MatchString(r.line(at)) {
		return
	}
	for ; at < len(r.lines); at++ {
		m := fieldLine.FindStringSubmatch(r.line(at))
		if m == nil {
			break
		}
		key := strings.ToLower(strings.Join(strings.Fields(m[1]), "_"))
		if v, ok := metaValue(strings.TrimSpace(m[2])); ok && (v.Kind != assay.KindString || v.String != "") {
			setField(r.b, key, v)
		}
	}
	r.at = at
}

var fieldLine = lazyregexp.New(`^:([A-Za-z][\w -]*):(?:\s+(.*))?$`)

// title reads a section title. After the first title it also reads the document's fields.
func (r *rst) title() bool {
	first := len(r.b.blocks) == 0
	if !r.underlined() {
		return false
	}
	if first {
		r.fields(r.at)
	}
	return true
}

// run returns the number of lines from the current one up to a blank line or end.
func (r *rst) run(end int) int {
	n := 1
	for r.at+n < end && !r.blank(r.at+n) {
		n++
	}
	return n
}

// write writes n lines as one block.
func (r *rst) write(kind BlockKind, n int) {
	if k := len(r.b.blocks); kind == ListItem && k > 0 && r.b.blocks[k-1].Kind == ListItem && !r.blank(r.at-1) {
		r.b.beginTight(kind)
	} else {
		r.b.begin(kind)
	}
	r.b.cur.Level = r.level
	if r.level == 0 {
		r.indents = r.indents[:0]
	}
	indent := indentOf(r.line(r.at))
	for i := range n {
		l := strings.TrimRight(r.line(r.at+i), " \t")
		if i > 0 {
			r.b.newline()
		}
		if kind == Paragraph {
			l = strings.TrimLeft(l, " \t")
		} else {
			l = l[min(indent, indentOf(l)):]
		}
		if i == n-1 && strings.HasSuffix(l, "::") {
			l = strings.TrimRight(strings.TrimSuffix(l, ":"), " ")
			if strings.HasSuffix(l, " :") || l == ":" {
				l = strings.TrimSuffix(l, ":")
			}
		}
		r.b.put(r.inline(l), r.at+i+1)
	}
	r.b.end()
	r.at += n
}

// paragraph reads a paragraph, or a term with its definition. A literal block follows a paragraph
// that ends with "::".
func (r *rst) paragraph(end int) {
	indent := indentOf(r.line(r.at))
	n := 1
	for r.at+n < end && !r.blank(r.at+n) && indentOf(r.line(r.at+n)) >= indent {
		if n == 1 && indentOf(r.line(r.at+1)) > indent {
			r.definition(end, indent)
			return
		}
		n++
	}
	literal := strings.HasSuffix(strings.TrimRight(r.line(r.at+n-1), " \t"), "::")
	r.write(Paragraph, n)
	if literal {
		r.literal(end, indent)
	}
}

// definition reads a term and the indented lines below it up to a blank line.
func (r *rst) definition(end, indent int) {
	n := 1
	for r.at+n < end && !r.blank(r.at+n) && indentOf(r.line(r.at+n)) > indent {
		n++
	}
	literal := strings.HasSuffix(strings.TrimRight(r.line(r.at+n-1), " \t"), "::")
	inner := indentOf(r.line(r.at + n - 1))
	r.write(ListItem, n)
	if literal {
		r.literal(end, inner)
	}
}

// item reads a list item with its indented continuation lines.
func (r *rst) item(end int) {
	indent := indentOf(r.line(r.at))
	n := 1
	for r.at+n < end && !r.blank(r.at+n) && indentOf(r.line(r.at+n)) > indent && !isRSTItem(strings.TrimSpace(r.line(r.at+n))) {
		n++
	}
	literal := strings.HasSuffix(strings.TrimRight(r.line(r.at+n-1), " \t"), "::")
	for len(r.indents) > 0 && r.indents[len(r.indents)-1] >= indent {
		r.indents = r.indents[:len(r.indents)-1]
	}
	r.indents = append(r.indents, indent)
	r.level = min(len(r.indents), deepestRST)
	r.write(ListItem, n)
	r.level = 0
	if literal {
		r.literal(end, indent)
	}
}

func isRSTItem(l string) bool {
	return isDocItem(l) || strings.HasPrefix(l, "#. ") || strings.HasPrefix(l, "| ")
}

// literal writes the following lines that are indented more than indent as code.
func (r *rst) literal(end, indent int) {
	from, to := r.indented(end, indent)
	r.at = from
	if from < to {
		r.put(Code, to-from)
	}
}

// indented returns the range of the following lines that are indented more than indent, without
// surrounding blank lines.
func (r *rst) indented(end, indent int) (from, to int) {
	from = r.at
	for from < end && r.blank(from) {
		from++
	}
	to = from
	for i := from; i < end; i++ {
		if r.blank(i) {
			continue
		}
		if indentOf(r.line(i)) <= indent {
			break
		}
		to = i + 1
	}
	if from == to {
		return r.at, r.at
	}
	return from, to
}

var directive = lazyregexp.New(`^\.\. +(?:\|[^|]+\| +)?([A-Za-z][\w:+.-]*)::(?: +(.*))?$`)

// explicit reads a construct that starts with "..": a directive, a footnote, a target or a comment.
func (r *rst) explicit(depth int) {
	l := strings.TrimSpace(r.line(r.at))
	indent := indentOf(r.line(r.at))
	m := directive.FindStringSubmatch(l)
	if m == nil {
		if strings.HasPrefix(l, ".. [") { // a footnote or citation
			r.footnote(l, indent)
			return
		}
		r.at++
		_, r.at = r.indented(len(r.lines), indent)
		return
	}
	name, argument := strings.ToLower(m[1]), strings.TrimSpace(m[2])
	line := r.at + 1
	r.at++
	body, end := r.indented(len(r.lines), indent)
	r.options = map[string]string{}
	for body < end && isOption(r.line(body)) {
		key, value, _ := strings.Cut(strings.TrimSpace(r.line(body))[1:], ":")
		r.options[key] = strings.TrimSpace(value)
		body++
	}
	r.directive(name, argument, line, depth, body, end)
	r.at = max(r.at, end)
}

// footnote reads a footnote or citation, whose text is indented.
func (r *rst) footnote(l string, indent int) {
	from := r.at
	r.at++
	_, end := r.indented(len(r.lines), indent)
	r.b.begin(Footnote)
	r.b.put(r.inline(strings.TrimPrefix(l, ".. ")), from+1)
	for i := from + 1; i < end; i++ {
		if !r.blank(i) {
			r.b.newline()
			r.b.put(r.inline(strings.TrimSpace(r.line(i))), i+1)
		}
	}
	r.b.end()
	r.at = max(end, from+1)
}

func (r *rst) caption(text string, line int) { r.b.puts(Caption, r.inline(text), line) }

// figureCaption reads the first paragraph of a figure, which is its caption.
func (r *rst) figureCaption(end int) {
	for r.at < end && r.blank(r.at) {
		r.at++
	}
	if r.at >= end || strings.HasPrefix(strings.TrimSpace(r.line(r.at)), "..") {
		return
	}
	r.write(Caption, r.run(end))
}

func isOption(l string) bool {
	l = strings.TrimSpace(l)
	return len(l) > 2 && l[0] == ':' && strings.IndexByte(l[1:], ':') > 0 && !strings.Contains(l[:strings.IndexByte(l[1:], ':')+1], " ")
}

// directive writes a directive whose body is the lines [body, end).
func (r *rst) directive(name, argument string, line, depth, body, end int) {
	r.at = body
	switch name {
	case "code", "code-block", "sourcecode", "parsed-literal", "math", "highlight", "productionlist", "prompt", "doctest", "testcode", "testoutput", "graphviz", "mermaid", "literalinclude", "raw":
		r.literal(end, -1)
		return
	case "image":
		r.b.puts(Figure, r.inline(r.options["alt"]), line)
		r.at = end
		return
	case "include":
		r.b.puts(Paragraph, "include: "+argument, line)
		r.at = end
		return
	case "list-table":
		r.caption(argument, line)
		r.listTable(end)
		return
	case "csv-table":
		r.caption(argument, line)
		r.csvTable(end, line)
		return
	case "table":
		r.caption(argument, line)
	case "figure":
		r.b.puts(Figure, r.inline(r.options["alt"]), line)
		r.figureCaption(end)
	case "toctree", "contents", "index", "module", "currentmodule", "meta", "sectionauthor", "moduleauthor",
		"default-domain", "role", "tabularcolumns", "autosummary", "replace", "unicode", "only", "ifconfig", "cssclass", "rst-class", "py:module", "py:currentmodule", "target-notes":
		if name != "only" && name != "ifconfig" {
			r.at = end
			return
		}
	case "container", "class", "note", "warning", "tip", "important", "caution", "danger", "attention", "hint", "error", "seealso",
		"topic", "sidebar", "admonition", "rubric", "epigraph", "highlights", "pull-quote", "glossary", "tab", "tabs", "details", "dropdown":
		if argument != "" && name != "container" && name != "class" {
			r.b.puts(Paragraph, r.inline(argument), line)
		}
	case "versionadded", "versionchanged", "versionremoved", "deprecated":
		r.b.puts(Paragraph, name+" "+r.inline(argument), line)
	default: // objects of a documentation generator: a function, an option, …
		r.b.puts(Code, argument, line)
	}
	if depth < deepestRST {
		r.body(end, depth+1)
	} else {
		r.literal(end, -1)
	}
}

var (
	gridRule   = lazyregexp.New(`^\+([-=]+\+)+$`)
	simpleRule = lazyregexp.New(`^={2,}( +={2,})+$`)
)

func isGridRule(l string) bool   { return len(l) > 4 && l[0] == '+' && gridRule.MatchString(l) }
func isSimpleRule(l string) bool { return len(l) > 4 && l[0] == '=' && simpleRule.MatchString(l) }

// columnStops returns the start offsets of the columns under a rule.
func columnStops(rule string) []int {
	var stops []int
	for i := range len(rule) {
		if rule[i] == '=' && (i == 0 || rule[i-1] == ' ') {
			stops = append(stops, i)
		}
	}
	return stops
}

// cutAt splits l before the stops, which are byte offsets, but only after a space.
func cutAt(l string, stops []int) []string {
	var cells []string
	from := 0
	for _, s := range stops[1:] {
		if s >= len(l) || s <= from {
			break
		}
		if l[s-1] != ' ' {
			continue
		}
		cells = append(cells, l[from:s])
		from = s
	}
	return append(cells, l[from:])
}

var (
	rstLiteral  = lazyregexp.New("``([^`]+(?:`[^`]+)*)``")
	rstRole     = lazyregexp.New("(?::[A-Za-z][\\w:+.-]*:)`[~!]?([^`<]+?)(?:\\s*<[^>`]*>)?`")
	rstLink     = lazyregexp.New("`([^`<]+?)(?:\\s*<[^>`]*>)?`_{0,2}")
	rstStrong   = lazyregexp.New(`\*\*([^*\s](?:[^*]*[^*\s])?)\*\*`)
	rstEmphasis = lazyregexp.New(`(^|[\s(\["'])\*([^*\s](?:[^*]*[^*\s])?)\*`)
	rstNote     = lazyregexp.New(`(\[[#\w*]+\])_`)
	rstNamed    = lazyregexp.New(`\b([A-Za-z][\w.-]*[A-Za-z0-9])__?(\s|[.,;:)]|$)`)
)

// maxSubstitution is the most bytes that substitutions may add to a document.
const maxSubstitution = 1 << 20

var rstSubstitution = lazyregexp.New(`^\s*\.\. \|([^|]+)\| replace::\s*(.*)$`)

// rstSubstitutions returns the texts that the document defines for |names|.
func rstSubstitutions(lines []string) map[string]string {
	const longest = 1_000 // bytes of a text
	texts := map[string]string{}
	for _, l := range lines {
		if !strings.Contains(l, "| replace::") {
			continue
		}
		if m := rstSubstitution.FindStringSubmatch(l); m != nil && len(m[2]) <= longest {
			texts[m[1]] = m[2]
		}
	}
	return texts
}

var rstReference = lazyregexp.New(`\|([^\s|](?:[^|]*[^\s|])?)\|`)

// inline returns a line without inline markup and with its substitutions.
func (r *rst) inline(l string) string {
	if len(r.substitutions) > 0 && strings.Count(l, "|") > 1 {
		l = rstReference.ReplaceAllStringFunc(l, func(ref string) string {
			text, ok := r.substitutions[ref[1:len(ref)-1]]
			if r.budget -= len(text); !ok || r.budget < 0 {
				return ref
			}
			return text
		})
	}
	return inlineRST(l)
}

// inlineRST returns a line without inline markup.
func inlineRST(l string) string {
	if !strings.ContainsAny(l, "`*_|\\") {
		return l
	}
	var out strings.Builder
	at := 0
	for _, m := range rstLiteral.FindAllStringSubmatchIndex(l, -1) {
		out.WriteString(inlineMarks(l[at:m[0]]))
		out.WriteString(l[m[2]:m[3]]) // code is kept unchanged
		at = m[1]
	}
	out.WriteString(inlineMarks(l[at:]))
	return out.String()
}

func inlineMarks(s string) string {
	s = rstRole.ReplaceAllString(s, "$1")
	s = rstLink.ReplaceAllString(s, "$1")
	s = rstStrong.ReplaceAllString(s, "$1")
	s = rstEmphasis.ReplaceAllString(s, "$1$2")
	s = rstNote.ReplaceAllString(s, "$1")
	s = rstNamed.ReplaceAllString(s, "$1$2")
	return strings.ReplaceAll(s, `\ `, "")
}
