package parse

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
)

// isNotebook reports whether src is JSON with the members of a Jupyter notebook.
func isNotebook(src *source) bool {
	if src.ext != ".ipynb" && !strings.Contains(src.text, `"nbformat"`) {
		return false
	}
	return strings.HasPrefix(strings.TrimSpace(head(src.text)), "{")
}

// parseNotebook parses a Jupyter notebook: cells of Markdown as Markdown, code with the text of its
// outputs. Images in outputs are left out; a long output is cut with a note.
//
// Source: nbformat 4 and 3, https://nbformat.readthedocs.io/en/latest/format_description.html
func parseNotebook(src *source, b *builder) bool {
	values, err := jsonValues(b, src.text, 1, nil)
	if err != nil || len(values) != 1 || values[0].kind != jsonObject || values[0].member("nbformat") == nil {
		return false
	}
	n := &notebook{b: b}
	top := values[0]
	n.metadata(top.member("metadata"))
	cells := top.member("cells")
	if sheets := top.member("worksheets"); cells == nil && sheets != nil { // version 3
		for _, sheet := range sheets.members {
			n.cells(sheet.member("cells"))
		}
	}
	n.cells(cells)
	if b.title == "" {
		b.title = firstTitle(b)
	}
	return true
}

// maxOutput is the most bytes of one output of a cell that are kept.
const maxOutput = 8_000

type notebook struct{ b *builder }

func (n *notebook) metadata(v *jsonValue) {
	if v == nil {
		return
	}
	if t := v.member("title"); t != nil && t.kind == jsonScalar {
		n.b.title = t.text
	}
	if authors := v.member("authors"); authors != nil {
		var names []string
		for _, a := range authors.members {
			if name := a.member("name"); name != nil && name.text != "" {
				names = append(names, name.text)
			}
		}
		switch len(names) {
		case 0:
		case 1:
			n.b.set(assay.MetaAuthor, assay.StringValue(names[0]))
		default:
			n.b.set(assay.MetaAuthor, assay.ListValue(names...))
		}
	}
	for _, path := range [][2]string{{"language_info", "name"}, {"kernelspec", "language"}} {
		if info := v.member(path[0]); info != nil {
			if name := info.member(path[1]); name != nil && name.kind == jsonScalar && name.text != "" {
				n.b.set("programming_language", assay.StringValue(name.text))
			}
		}
	}
}

func (n *notebook) cells(cells *jsonValue) {
	if cells == nil {
		return
	}
	for _, cell := range cells.members {
		if n.b.canceled() {
			return
		}
		n.cell(cell)
	}
}

func (n *notebook) cell(cell *jsonValue) {
	kind := cell.member("cell_type")
	source := cell.member("source", "input")
	if kind == nil || source == nil {
		return
	}
	switch kind.text {
	case "markdown":
		n.markdown(source)
	case "heading": // version 3
		level := 1
		if l := cell.member("level"); l != nil {
			if v, err := strconv.Atoi(l.text); err == nil {
				level = min(max(v, 1), 6)
			}
		}
		n.b.heading(level, strings.TrimSpace(noteText(source)), source.line)
	default:
		n.code(source)
		if outputs := cell.member("outputs"); outputs != nil {
			for _, o := range outputs.members {
				n.output(o)
			}
		}
	}
}

// noteText returns a string, or the strings of a list joined.
func noteText(v *jsonValue) string {
	if v == nil {
		return ""
	}
	if v.kind == jsonScalar {
		return v.text
	}
	var out strings.Builder
	end := lineEnds(v)
	for i, m := range v.members {
		if i > 0 {
			out.WriteString(end)
		}
		out.WriteString(m.text)
	}
	return out.String()
}

// lineEnds returns the end of a line that has to be put between the strings of a list. Version 2
// has lines without their ends.
func lineEnds(v *jsonValue) string {
	for _, m := range v.members {
		if strings.HasSuffix(m.text, "\n") {
			return ""
		}
	}
	return "\n"
}

// code writes the lines of a cell, each at its own source line if it is a string of its own.
func (n *notebook) code(source *jsonValue) {
	parts := source.members
	if source.kind == jsonScalar {
		parts = []*jsonValue{source}
	}
	n.b.begin(Code)
	end := lineEnds(source)
	for i, p := range parts {
		if i > 0 && end != "" {
			n.b.newline()
		}
		for l := range strings.SplitAfterSeq(tidy(p.text), "\n") {
			line := strings.TrimSuffix(l, "\n")
			n.b.put(line, p.line)
			if len(line) < len(l) {
				n.b.newline()
			}
		}
	}
	n.b.end()
}

func (n *notebook) markdown(source *jsonValue) {
	text := tidy(noteText(source))
	n.b.embed(firstLine(source), 0, func() {
		if tangled(text) {
			n.b.puts(Paragraph, text, 1)
			return
		}
		writeMarkdown(newText(text), 0, n.b)
	})
}

func firstLine(v *jsonValue) int {
	if len(v.members) > 0 {
		return v.members[0].line
	}
	return v.line
}

// output writes an output of a cell by the most readable of its forms.
func (n *notebook) output(o *jsonValue) {
	if ename := o.member("ename"); ename != nil {
		n.result(ename.text+": "+noteText(o.member("evalue")), ename.line)
		return
	}
	data := o.member("data")
	if data == nil {
		data = o // streams, and version 3
	}
	plain := data.member("text/plain", "text")
	for _, form := range []string{"text/markdown", "text/html", "html"} {
		v := data.member(form)
		if v == nil || form != "text/markdown" && plain != nil {
			continue
		}
		text := tidy(noteText(v))
		n.b.embed(firstLine(v), 0, func() {
			switch {
			case len(text) > maxOutput || tangled(text):
				n.result(text, 1)
			case form == "text/markdown":
				writeMarkdown(newText(text), 0, n.b)
			default:
				writeHTMLFragment(n.b, text, 1)
			}
		})
		return
	}
	if plain != nil {
		n.result(noteText(plain), firstLine(plain))
	}
}

// result writes the text of an output. A line that only names a picture is left out.
func (n *notebook) result(text string, line int) {
	text = strings.Trim(tidy(stripTerminal(text)), "\n")
	if strings.HasPrefix(text, "<") && strings.HasSuffix(text, ">") && !strings.Contains(text, "\n") {
		return // the name of an object, such as <Figure size 640x480 with 1 Axes>
	}
	rest := 0
	if len(text) > maxOutput {
		at := maxOutput
		for at > 0 && text[at]&0xc0 == 0x80 {
			at--
		}
		text, rest = text[:at], len(text)-at
	}
	n.b.begin(Code)
	putOnLine(n.b, text, line)
	if rest > 0 {
		n.b.newline()
		n.b.put(fmt.Sprintf("… %d more bytes of output are left out", rest), line)
	}
	n.b.end()
}

// stripTerminal removes the escape sequences that colour text in a terminal.
func stripTerminal(s string) string {
	if !strings.Contains(s, "\x1b[") {
		return s
	}
	var out bytes.Buffer
	for {
		before, after, ok := strings.Cut(s, "\x1b[")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		end := slices.IndexFunc([]byte(after[:min(len(after), 40)]), func(c byte) bool { return c >= '@' && c <= '~' })
		s = after[end+1:]
	}
}
