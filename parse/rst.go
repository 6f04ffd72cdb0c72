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
	r := &rst{plainText: plainText{b: b, lines: src.lines(), words: inlineRST}}
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
		r.b.put(inlineRST(l), r.at+i+1)
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
	r.write(ListItem, n)
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
			r.b.puts(Paragraph, inlineRST(strings.TrimPrefix(l, ".. ")), r.at+1)
			r.at++
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
	for body < end && isOption(r.line(body)) {
		body++
	}
	r.directive(name, argument, line, depth, body, end)
	r.at = max(r.at, end)
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
	case "image", "toctree", "include", "contents", "index", "module", "currentmodule", "meta", "sectionauthor", "moduleauthor",
		"default-domain", "role", "tabularcolumns", "autosummary", "replace", "unicode", "only", "ifconfig", "cssclass", "rst-class", "py:module", "py:currentmodule", "target-notes":
		if name != "only" && name != "ifconfig" {
			r.at = end
			return
		}
	case "figure", "container", "class", "table", "list-table", "note", "warning", "tip", "important", "caution", "danger", "attention", "hint", "error", "seealso",
		"topic", "sidebar", "admonition", "rubric", "epigraph", "highlights", "pull-quote", "glossary", "tab", "tabs", "details", "dropdown":
		if argument != "" && name != "figure" && name != "container" && name != "class" {
			r.b.puts(Paragraph, inlineRST(argument), line)
		}
	case "csv-table":
		for ; r.at < end; r.at++ {
			r.b.beginTight(TableRow)
			r.b.put(strings.TrimSpace(r.line(r.at)), r.at+1)
			r.b.end()
		}
		return
	case "versionadded", "versionchanged", "versionremoved", "deprecated":
		r.b.puts(Paragraph, name+" "+inlineRST(argument), line)
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

// gridTable reads a table drawn with "+---+" and "|". The lines of a cell are joined.
func (r *rst) gridTable(end int) {
	first := true
	for r.at < end && isGridRule(strings.TrimSpace(r.line(r.at))) {
		from := r.at + 1
		to := from
		for to < end && strings.HasPrefix(strings.TrimSpace(r.line(to)), "|") {
			to++
		}
		if to == from {
			r.at++
			break
		}
		kind := TableRow
		if strings.Contains(r.line(to), "=") && isGridRule(strings.TrimSpace(r.line(to))) {
			kind = TableHead
		}
		r.gridRow(kind, from, to, first)
		first = false
		r.at = to
	}
	if first && r.at < end && isGridRule(strings.TrimSpace(r.line(r.at))) {
		r.at++
	}
}

// gridRow writes the lines [from, to) as one row, cell by cell.
func (r *rst) gridRow(kind BlockKind, from, to int, first bool) {
	if first {
		r.b.begin(kind)
	} else {
		r.b.beginTight(kind)
	}
	rows := make([][]string, 0, to-from)
	columns := 0
	for i := from; i < to; i++ {
		cells := strings.Split(strings.Trim(strings.TrimSpace(r.line(i)), "|"), "|")
		rows = append(rows, cells)
		columns = max(columns, len(cells))
	}
	for c := range min(columns, 200) {
		if c > 0 {
			r.b.glue(" | ")
		}
		written := false
		for i, cells := range rows {
			if c >= len(cells) || isBlank(cells[c]) {
				continue
			}
			if written {
				r.b.glue(" ")
			}
			r.b.put(inlineRST(strings.TrimSpace(cells[c])), from+i+1)
			written = true
		}
	}
	r.b.end()
}

// simpleTable reads a table with "=== ===" rules and one row per line.
func (r *rst) simpleTable(end int) {
	stops := columnStops(r.line(r.at))
	r.at++
	rules, first := 1, true
	// A table with column names has three rules, a table without has two.
	last := r.at
	for i := r.at; i < end && rules < 3; i++ {
		if l := strings.TrimSpace(r.line(i)); isSimpleRule(l) {
			rules++
			last = i
			if r.blank(i + 1) {
				break
			}
		} else if l == "" && rules > 1 && r.blank(i+1) {
			break
		}
	}
	head := rules == 3
	for ; r.at < last; r.at++ {
		l := r.line(r.at)
		if isSimpleRule(strings.TrimSpace(l)) {
			head = false
			continue
		}
		if isBlank(l) {
			continue
		}
		kind := TableRow
		if head {
			kind = TableHead
		}
		if first {
			r.b.begin(kind)
		} else {
			r.b.beginTight(kind)
		}
		first = false
		for c, cell := range cutAt(l, stops) {
			if c > 0 {
				r.b.glue(" | ")
			}
			r.b.put(inlineRST(strings.TrimSpace(cell)), r.at+1)
		}
		r.b.end()
	}
	if r.at < end && isSimpleRule(strings.TrimSpace(r.line(r.at))) {
		r.at++
	}
}

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
