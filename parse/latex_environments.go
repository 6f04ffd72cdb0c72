package parse

import (
	"strconv"
	"strings"
)

// latexVerbatim are the environments whose text is code.
var latexVerbatim = tagSet("verbatim lstlisting minted Verbatim alltt BVerbatim LVerbatim tikzpicture picture pspicture pgfpicture algorithmic algorithm2e filecontents")

// latexMath are the environments whose text is a formula.
var latexMath = tagSet("equation align gather multline eqnarray displaymath math flalign alignat dmath split")

// latexTables are the environments of tables and the numbers of their arguments.
var latexTables = map[string]int{"tabular": 1, "tabularx": 2, "tabulary": 2, "longtable": 1, "supertabular": 1, "array": 1, "longtabu": 1, "tabu": 1, "tblr": 1}

// environment reads \begin{name}, and all of the environment if its text is not read as usual.
func (l *latex) environment() {
	line := l.line()
	name := strings.TrimSuffix(strings.TrimSpace(l.arg().text), "*")
	switch {
	case name == "comment":
		l.body(name)
	case latexVerbatim[name]:
		l.verbatim(name)
	case latexMath[name]:
		if name == "alignat" {
			l.arg()
		}
		body := l.body(name)
		if name == "math" {
			l.text(strings.Join(strings.Fields(body.text), " "))
			return
		}
		l.putFormula(body.text, line)
	case latexTables[name] > 0:
		l.tabular(name)
	case name == "itemize", name == "enumerate", name == "description", name == "thebibliography", name == "compactitem", name == "compactenum":
		l.finish()
		l.option()
		if name == "thebibliography" {
			l.arg()
			l.b.heading(max(l.sectionLevel(), 1), "References", line)
		}
		if len(l.lists) < maxMacroDepth {
			l.lists = append(l.lists, latexList{ordered: strings.HasSuffix(name, "enumerate") || name == "compactenum"})
		}
	case name == "abstract":
		l.finish()
		l.b.heading(max(l.sectionLevel(), 1), "Abstract", line)
	case name == "frame":
		l.frame(line)
	case name == "document":
	default:
		l.begin(name)
	}
}

// sectionLevel returns the level of \section.
func (l *latex) sectionLevel() int {
	level := 1
	switch {
	case l.shared.parts:
		level = 3
	case l.shared.chapters:
		level = 2
	}
	if l.shared.titled && l.shared.title != "" {
		level++
	}
	return level
}

// begin starts an environment whose text is read as usual. A theorem or proof starts with its
// title.
func (l *latex) begin(name string) {
	l.finish()
	option, ok := l.option()
	switch name {
	case "minipage", "multicols", "wrapfigure", "spacing", "adjustwidth", "subfigure", "column", "block", "exampleblock", "alertblock":
		title := l.arg()
		if strings.HasSuffix(name, "block") {
			l.b.puts(Paragraph, l.render(title), l.line())
		}
		return
	}
	title := l.shared.theorems[name]
	if name == "proof" {
		title = "Proof"
	}
	if title == "" {
		return
	}
	if text := l.render(option); ok && text != "" {
		title += " (" + text + ")"
	}
	l.text(title + ".")
	l.blank = true
}

// frame starts a slide, whose title is a heading.
func (l *latex) frame(line int) {
	l.finish()
	l.option()
	if strings.HasPrefix(l.in.text[l.in.at:], "<") {
		l.other("frame")
	}
	if strings.HasPrefix(l.in.text[l.in.at:], "{") {
		l.b.heading(max(l.sectionLevel()+1, 1), l.render(l.arg()), line)
	}
}

func (l *latex) endEnvironment() {
	name := strings.TrimSuffix(strings.TrimSpace(l.arg().text), "*")
	l.finish()
	switch name {
	case "itemize", "enumerate", "description", "thebibliography", "compactitem", "compactenum":
		if len(l.lists) > 0 {
			l.lists = l.lists[:len(l.lists)-1]
		}
	case "document":
		l.in.at = len(l.in.text)
	}
}

// body reads up to the end of an environment, which may contain others of its name.
func (l *latex) body(name string) latexArg {
	from := l.in.at
	depth := 1
	for at := from; ; {
		i := strings.IndexByte(l.in.text[at:], '\\')
		if i < 0 {
			break
		}
		at += i
		rest := l.in.text[at:]
		switch {
		case isEnvironment(rest, `\begin{`, name):
			depth++
		case isEnvironment(rest, `\end{`, name):
			if depth--; depth == 0 {
				end := strings.IndexByte(rest, '}')
				l.in.at = at + end + 1
				return latexArg{l.in.text[from:at], from}
			}
		}
		at += min(2, len(rest))
	}
	l.in.at = len(l.in.text)
	return latexArg{l.in.text[from:], from}
}

// isEnvironment reports whether s starts with \begin or \end of an environment, starred or not.
func isEnvironment(s, command, name string) bool {
	s, ok := strings.CutPrefix(s, command)
	s, ok2 := strings.CutPrefix(s, name)
	return ok && ok2 && strings.HasPrefix(strings.TrimPrefix(s, "*"), "}")
}

// verbatim writes the text of an environment as code, with a caption from its options.
func (l *latex) verbatim(name string) {
	option, _ := l.option()
	if name == "minted" || name == "filecontents" {
		l.arg()
	}
	body := l.body(name)
	l.finish()
	if _, caption, ok := strings.Cut(option.text, "caption="); ok {
		caption, _, _ = strings.Cut(strings.Trim(caption, "{"), "}")
		caption, _, _ = strings.Cut(caption, ",")
		l.b.puts(Caption, strings.Join(strings.Fields(caption), " "), l.line())
	}
	in := l.sub(body)
	l.b.begin(Code)
	text := body.text
	if name == "alltt" {
		text = allttText(text)
	}
	for i, row := range strings.Split(text, "\n") {
		line := in.line
		if in.base >= 0 {
			line = l.src.line(in.base) + i
		}
		l.b.put(row, line)
		l.b.newline()
	}
	l.b.end()
}

// allttText returns the text of an environment in which only backslashes and braces are markup. It
// keeps the lines.
func allttText(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		switch s[i] {
		case '{', '}':
			i++
		case '\\':
			n := commandLength(s[i:])
			out.WriteString(latexSymbols[s[i+1:i+n]])
			if i += n; strings.HasPrefix(s[i:], "{}") {
				i += 2
			}
		default:
			out.WriteByte(s[i])
			i++
		}
	}
	return out.String()
}

// tabular writes a table.
func (l *latex) tabular(name string) {
	l.option()
	for range latexTables[name] {
		l.arg()
	}
	body := l.body(name)
	l.finish()
	rows, head := splitTabular(body)
	var cells []gridCell
	above := map[int]int{} // rows that cells above still cover, by column
	grid := 0
	for i, row := range rows {
		if l.b.canceled() {
			return
		}
		col := 0
		var written []gridCell
		blank := true
		for _, a := range row {
			c := l.tableCell(a)
			c.row, c.col, c.header = grid, col, i < head
			blank = blank && c.text == ""
			if above[col] > 0 && c.text == "" {
				above[col]--
			} else {
				written = append(written, c)
				above[col] = c.rowSpan - 1
			}
			col += max(c.colSpan, 1)
		}
		if !blank {
			cells = append(cells, written...)
			grid++
		}
	}
	l.b.table(cells, nil)
	notes := l.after
	l.after = nil
	for _, n := range notes {
		l.b.puts(Footnote, n, l.line())
	}
}

// tableCell returns the text and the spans of a cell.
func (l *latex) tableCell(a latexArg) gridCell {
	outer := l.in
	defer func() { l.in = outer }()
	c := gridCell{rowSpan: 1, colSpan: 1, line: l.cellLine(a)}
	for range 2 {
		trimmed := strings.TrimLeft(a.text, " \t\n")
		multi := strings.HasPrefix(trimmed, `\multicolumn`)
		if !multi && !strings.HasPrefix(trimmed, `\multirow`) {
			break
		}
		l.in.at = a.at + len(a.text) - len(trimmed) + commandLength(trimmed)
		l.option()
		span, err := strconv.Atoi(strings.Trim(l.arg().text, "* "))
		if err != nil {
			span = 1
		}
		l.option()
		l.arg()
		l.option()
		end := a.at + len(a.text)
		a = l.arg()
		if l.in.at > end {
			break
		}
		if span = min(max(span, 1), 1000); multi {
			c.colSpan = span
		} else {
			c.rowSpan = span
		}
	}
	l.in = outer
	c.text = l.render(a)
	return c
}

func (l *latex) cellLine(a latexArg) int {
	in := l.sub(a)
	if in.base < 0 {
		return in.line
	}
	blank := len(a.text) - len(strings.TrimLeft(a.text, " \t\n"))
	return l.src.line(min(in.base+blank, max(len(l.src.text)-1, 0)))
}

// splitTabular splits the text of a table into rows of cells and returns the number of rows of
// column names: those above a rule that is not under every row.
func splitTabular(body latexArg) (rows [][]latexArg, head int) {
	s := body.text
	var row []latexArg
	from, depth, rules := 0, 0, 0
	cell := func(end int) {
		row = append(row, latexArg{s[from:end], body.at + from})
	}
	firstRule := -1
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%' && (i == 0 || s[i-1] != '\\'):
			if end := strings.IndexByte(s[i:], '\n'); end >= 0 {
				i += end
			} else {
				i = len(s)
			}
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == '&' && depth == 0:
			cell(i)
			from = i + 1
		case c == '\\' && depth == 0:
			n := commandLength(s[i:])
			switch s[i+1 : i+n] {
			case "\\", "tabularnewline":
				cell(i)
				rows, row = append(rows, row), nil
				from = i + n
			case "hline", "midrule", "endhead", "endfirsthead", "toprule", "bottomrule":
				if len(rows) > 0 {
					rules++
				}
				if len(rows) > 0 && firstRule < 0 {
					firstRule = len(rows)
				}
				if isBlank(s[from:i]) {
					from = i + n
				}
			case "begin":
				depth++
			case "end":
				depth--
			}
			i += n - 1
		case c == '\\':
			if strings.HasPrefix(s[i:], `\end{`) {
				depth--
			} else if strings.HasPrefix(s[i:], `\begin{`) {
				depth++
			}
			i++
		}
	}
	if !isBlank(s[min(from, len(s)):]) {
		cell(len(s))
	}
	if len(row) > 0 {
		rows = append(rows, row)
	}
	if firstRule > 0 && firstRule < len(rows) && rules < len(rows) {
		head = firstRule
	}
	return rows, head
}
