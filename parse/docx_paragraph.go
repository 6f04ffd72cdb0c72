package parse

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/ooxml"
)

// A docxText collects the text of a paragraph.
type docxText struct {
	s        strings.Builder
	formulas []string
	words    bool // there is text besides formulas
	other    bool // there is text that is not monospaced
	mono     bool // there is monospaced text
	gap      bool // a formula precedes, which a blank separates from a word
	style    *docxStyle
}

// paragraph reads a w:p element.
func (d *docxReader) paragraph(n *ooxml.Node) {
	props := n.Child("w:pPr")
	styleID := props.Child("w:pStyle").Attr("w:val")
	style := d.styles[styleID]
	if style == nil {
		style = &docxStyle{}
	}
	t := &docxText{style: style}
	for _, c := range n.Children {
		d.inline(c, t)
	}
	for i := len(d.fields) - 1; i >= 0 && !d.fields[i]; i-- { // instructions do not span paragraphs
		d.fields = d.fields[:i]
	}
	text := t.s.String()
	if isBlank(text) {
		return
	}
	if !t.words && len(t.formulas) > 0 {
		for _, f := range t.formulas {
			d.write(Formula, 0, f)
		}
		return
	}
	lead, level, listed := d.number(props, style, styleID)
	heading := style.heading
	if o := props.Child("w:outlineLvl"); o != nil {
		heading = outlineLevel(o)
	}
	switch {
	case style.code || t.isCode():
		d.addCode(text)
	case style.title:
		d.title(text)
	case heading > 0:
		d.heading(heading, strings.TrimSpace(lead+" "+trimLines(text)))
	case style.caption:
		d.write(Caption, 0, trimLines(text))
	case listed:
		d.write(ListItem, level+1, strings.Repeat("  ", level)+lead+" "+trimLines(text))
	default:
		d.write(Paragraph, 0, strings.TrimSpace(lead+" "+trimLines(text)))
	}
}

func (d *docxReader) title(text string) {
	text = trimLines(text)
	if d.inNote || d.cell != nil {
		d.write(Paragraph, 0, text)
		return
	}
	if !d.titled {
		d.b.title = text
	}
	d.titled = true
	d.write(Heading, 1, text)
}

// heading writes a heading, one level lower if the document has a title.
func (d *docxReader) heading(level int, text string) {
	if d.titled {
		level++
	}
	d.write(Heading, level, text)
}

// trimLines removes white space around the lines of a text, and tabs.
func trimLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(strings.ReplaceAll(l, "\t", " "))
	}
	return strings.Join(lines, "\n")
}

// addCode adds a paragraph of code to those before it.
func (d *docxReader) addCode(text string) {
	text = strings.TrimRight(text, " \t\n")
	if d.cell != nil {
		d.cell.WriteString(text + "\n")
		return
	}
	d.code = append(d.code, text)
}

// isCode reports whether a paragraph is code by its font and its characters.
func (t *docxText) isCode() bool {
	if !t.mono || t.other {
		return false
	}
	text := t.s.String()
	return strings.ContainsAny(text, "{}();=<>[]#$|\\") || strings.Contains(text, "::") || strings.Contains(text, "->")
}

// number counts a paragraph in its list and returns its number or bullet and its level from 0.
// listed is false if the paragraph is in no list.
func (d *docxReader) number(props *ooxml.Node, style *docxStyle, styleID string) (lead string, level int, listed bool) {
	id, level := style.numID, style.level
	if id != "" {
		level = d.numbering.styleLevel(id, styleID, level)
	}
	if num := props.Child("w:numPr"); num != nil {
		if n := num.Child("w:numId"); n != nil {
			id = n.Attr("w:val")
		}
		if l := num.Child("w:ilvl"); l != nil {
			level = levelOf(l.Attr("w:val"))
		}
	}
	if id == "" || id == "0" {
		return "", 0, false
	}
	lead, bullet, ok := d.numbering.next(id, level)
	if bullet && style.heading > 0 {
		lead = ""
	}
	return lead, level, ok && lead != ""
}

// shown reports whether text at the current place is shown, not part of a field's instruction.
func (d *docxReader) shown() bool {
	for _, result := range d.fields {
		if !result {
			return false
		}
	}
	return true
}

// inline reads an element inside a paragraph.
func (d *docxReader) inline(n *ooxml.Node, t *docxText) {
	switch n.Name {
	case "w:r":
		d.run(n, t)
	case "w:t":
		if d.shown() {
			t.put(n.Text)
		}
	case "m:oMathPara":
		for _, c := range n.All("m:oMath") {
			d.inline(c, t)
		}
	case "m:oMath":
		if f := ommlText(n); f != "" && d.shown() {
			t.formulas = append(t.formulas, f)
			if s := t.s.String(); s != "" && !strings.HasSuffix(s, " ") {
				t.s.WriteByte(' ')
			}
			t.s.WriteString(f)
			t.gap = true
		}
	case "w:pPr":
	default:
		for _, c := range n.Children {
			d.inline(c, t)
		}
	}
}

func (t *docxText) put(s string) {
	if s == "" {
		return
	}
	if r, _ := utf8.DecodeRuneInString(s); t.gap && (unicode.IsLetter(r) || unicode.IsNumber(r)) {
		t.s.WriteByte(' ')
	}
	t.gap = false
	t.s.WriteString(s)
	t.words = t.words || !isBlank(s)
}

// run reads a w:r element.
func (d *docxReader) run(n *ooxml.Node, t *docxText) {
	props := n.Child("w:rPr")
	char := d.styles[props.Child("w:rStyle").Attr("w:val")]
	hidden := t.style.hidden || char != nil && char.hidden
	if v := props.Child("w:vanish"); v != nil {
		hidden = isOn(v)
	}
	if hidden {
		d.fieldMarks(n)
		return
	}
	before := t.s.Len()
	for _, c := range n.Children {
		d.runPart(c, t)
	}
	if isBlank(t.s.String()[before:]) {
		return
	}
	mono := t.style.mono || char != nil && char.mono
	if f := props.Child("w:rFonts"); f != nil && f.Attr("w:ascii") != "" {
		mono = isMonospaced(f)
	}
	t.mono, t.other = t.mono || mono, t.other || !mono
}

// fieldMarks follows the fields in a run whose text is hidden.
func (d *docxReader) fieldMarks(n *ooxml.Node) {
	for _, c := range n.All("w:fldChar") {
		d.field(c, &docxText{style: &docxStyle{}})
	}
}

// runPart reads an element of a run.
func (d *docxReader) runPart(n *ooxml.Node, t *docxText) {
	if n.Name == "w:fldChar" {
		d.field(n, t)
		return
	}
	if !d.shown() {
		return
	}
	switch n.Name {
	case "w:t":
		t.put(n.Text)
	case "w:tab", "w:ptab":
		t.s.WriteByte('\t')
	case "w:br", "w:cr":
		t.s.WriteByte('\n')
	case "w:noBreakHyphen":
		t.put("-")
	case "w:sym":
		t.put(symbol(n.Attr("w:font"), n.Attr("w:char")))
	case "w:footnoteReference":
		d.footnotes++
		d.refer(t, "footnote"+n.Attr("w:id"), "["+strconv.Itoa(d.footnotes)+"]")
	case "w:endnoteReference":
		d.endnotes++
		d.refer(t, "endnote"+n.Attr("w:id"), "["+strings.ToLower(roman(d.endnotes))+"]")
	case "w:commentReference":
		d.refer(t, "comment"+n.Attr("w:id"), "")
	case "w:drawing", "w:pict", "w:object":
		d.drawing(n)
	case "w:r", "w:ruby":
		d.run(n, t)
	}
}

// refer writes the mark of a note and queues the note.
func (d *docxReader) refer(t *docxText, key, mark string) {
	if d.notes[key] == nil {
		return
	}
	t.put(mark)
	d.later = append(d.later, func() error { return d.note(key, mark) })
}

// field follows a w:fldChar element. Check boxes and lists of the form fields of old are their
// value.
func (d *docxReader) field(n *ooxml.Node, t *docxText) {
	const most = 100
	last := len(d.fields) - 1
	switch n.Attr("w:fldCharType") {
	case "begin":
		if last < most {
			if d.shown() {
				t.put(formField(n.Child("w:ffData")))
			}
			d.fields = append(d.fields, false)
		}
	case "separate":
		if last >= 0 {
			d.fields[last] = true
		}
	case "end":
		if last >= 0 {
			d.fields = d.fields[:last]
		}
	}
}

func formField(data *ooxml.Node) string {
	if box := data.Child("w:checkBox"); box != nil {
		state := box.Child("w:checked")
		if state == nil {
			state = box.Child("w:default")
		}
		if isOn(state) {
			return "[x] "
		}
		return "[ ] "
	}
	if list := data.Child("w:ddList"); list != nil {
		entries := list.All("w:listEntry")
		chosen := number(list.Child("w:result").Attr("w:val"), 0)
		if chosen < len(entries) {
			return entries[chosen].Attr("w:val")
		}
	}
	return ""
}

// symbol returns a character of a symbol font as text.
func symbol(font, char string) string {
	code, err := strconv.ParseUint(char, 16, 32)
	if err != nil {
		return ""
	}
	code &= 0xff
	if strings.HasPrefix(strings.ToLower(font), "wingdings") {
		switch code {
		case 0xfe, 0xfd, 0x52, 0x53, 0x54, 0x78:
			return "[x]"
		case 0xa8, 0x6f, 0x71, 0xa3:
			return "[ ]"
		case 0xfc:
			return "✓"
		case 0xfb:
			return "✗"
		case 0xe0, 0xe8, 0xf0:
			return "→"
		}
		return ""
	}
	if strings.EqualFold(font, "symbol") {
		return symbolFont[byte(code)]
	}
	return ""
}

// symbolFont has the letters and the most usual signs of the font Symbol.
var symbolFont = map[byte]string{
	'a': "α", 'b': "β", 'c': "χ", 'd': "δ", 'e': "ε", 'f': "φ", 'g': "γ", 'h': "η", 'i': "ι", 'j': "ϕ", 'k': "κ", 'l': "λ", 'm': "μ", 'n': "ν", 'o': "ο",
	'p': "π", 'q': "θ", 'r': "ρ", 's': "σ", 't': "τ", 'u': "υ", 'v': "ϖ", 'w': "ω", 'x': "ξ", 'y': "ψ", 'z': "ζ", 'C': "Χ", 'D': "Δ", 'F': "Φ", 'G': "Γ",
	'L': "Λ", 'P': "Π", 'Q': "Θ", 'S': "Σ", 'W': "Ω", 'X': "Ξ", 'Y': "Ψ", 0xa3: "≤", 0xb3: "≥", 0xb1: "±", 0xb4: "×", 0xb7: "•", 0xb9: "≠", 0xbb: "≈",
	0xa5: "∞", 0xae: "→", 0xac: "←", 0xb0: "°", 0xd7: "⋅", 0xe5: "∑", 0xf2: "∫", 0xd6: "√", 0xb6: "∂", 0xce: "∈", 0xd2: "®", 0xd3: "©", 0xd4: "™", 0x2d: "−",
}

// drawing queues the pictures, text boxes, charts and embedded files of a drawing.
func (d *docxReader) drawing(n *ooxml.Node) {
	w := drawingWalk{d: d, rels: d.part, seen: map[string]bool{}}
	n.Walk(w.visit)
	w.flush()
}

// A drawingWalk is the state of reading a drawing.
type drawingWalk struct {
	d    *docxReader
	rels ooxml.Relationships
	alt  string // alternative text whose picture may follow
	seen map[string]bool
}

// text remembers an alternative text that is not a repetition.
func (w *drawingWalk) text(alt string) {
	if alt == "" || w.seen[alt] {
		return
	}
	w.flush()
	w.seen[alt], w.alt = true, alt
}

// flush queues an alternative text without a picture.
func (w *drawingWalk) flush() {
	if alt := w.alt; alt != "" {
		w.alt = ""
		w.d.figure(alt)
	}
}

// image queues a picture with the alternative text before it.
func (w *drawingWalk) image(id string) {
	d, rels, alt := w.d, w.rels, w.alt
	w.alt = ""
	if d.cell != nil {
		d.figure(alt)
		alt = ""
	}
	d.later = append(d.later, func() error { d.picture(rels, id, alt, nil); return nil })
}

// figure writes an alternative text into the open cell, or queues it.
func (d *docxReader) figure(alt string) {
	if d.cell != nil {
		d.write(Figure, 0, alt)
		return
	}
	d.later = append(d.later, func() error { d.write(Figure, 0, alt); return nil })
}

func (w *drawingWalk) visit(c *ooxml.Node) bool {
	d, rels := w.d, w.rels
	later := func(f func() error) {
		w.flush()
		d.later = append(d.later, f)
	}
	switch c.Name {
	case "w:txbxContent":
		later(func() error { return d.box(c) })
		return false
	case "wp:docPr", "pic:cNvPr", "wps:cNvPr", "wpg:cNvPr":
		w.text(altText(c))
	case "v:shape", "v:rect":
		if alt := strings.TrimSpace(c.Attr("alt")); !isFileName(alt) {
			w.text(alt)
		}
	case "v:textpath":
		w.text(strings.TrimSpace(c.Attr("string")))
	case "a:blip":
		w.image(c.Attr("r:embed"))
	case "v:imagedata":
		w.image(c.Attr("r:id"))
	case "c:chart":
		later(func() error { return d.chart(rels, c.Attr("r:id")) })
	case "cx:chart":
		later(func() error { return d.chartEx(rels, c.Attr("r:id")) })
	case "dgm:relIds":
		later(func() error { return d.diagram(rels, c.Attr("r:dm")) })
	case "o:OLEObject":
		d.addEmbedded(rels, c.Attr("r:id"))
	}
	return true
}

// box writes the content of a text box.
func (d *docxReader) box(n *ooxml.Node) error {
	fields := d.fields
	d.fields = nil
	err := d.blocks(n.Children)
	d.flushCode()
	d.fields = fields
	return err
}
