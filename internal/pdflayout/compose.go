package pdflayout

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// A composer joins lines to blocks.
type composer struct {
	words  map[string]int
	style  style
	blocks []Block

	// The paragraph that the next column may continue.
	tail      int   // its index in blocks, plus 1; 0: none
	tailLine  *line // its last line
	tailFull  bool  // which fills its column
	tailAngle int   // of the column
}

// page appends the blocks of a page.
func (c *composer) page(p page) {
	for i := range p.areas {
		a := &p.areas[i]
		if a.table != nil {
			c.blocks = append(c.blocks, Block{Kind: assay.BlockTableRow, Table: a.table, Boxes: []Box{{p.number, a.box}}})
			continue
		}
		c.area(p, a)
	}
}

// area appends the blocks of a column of lines.
func (c *composer) area(p page, a *area) {
	kept := slices.DeleteFunc(slices.Clone(a.lines), func(l *line) bool { return l.drop })
	if len(kept) == 0 {
		return
	}
	f := flow{area: a, page: p, leading: leadingOf(kept), first: true}
	f.measure(kept)
	f.unfix(kept)
	for len(kept) > 0 {
		n := c.contents(kept)
		if n == 0 {
			n = f.group(kept, &c.style)
			c.group(&f, kept[:n], next(kept, n))
		}
		kept = kept[n:]
		f.first = false
	}
}

func next(lines []*line, n int) *line {
	if n < len(lines) {
		return lines[n]
	}
	return nil
}

// A flow is a column of lines.
type flow struct {
	*area
	page    page
	leading float32
	x0, x1  float32   // of lines
	levels  []float32 // x of the markers of list items, by level
	first   bool      // no block was written
}

func (f *flow) measure(lines []*line) {
	f.x0, f.x1 = lines[0].X0, lines[0].X1
	for _, l := range lines {
		f.x0, f.x1 = min(f.x0, l.X0), max(f.x1, l.X1)
	}
}

// unfix takes a line of fixed width that continues a sentence, without a gap around it, as prose.
func (f *flow) unfix(lines []*line) {
	for i, l := range lines {
		if !l.fixed || i == 0 || i+1 == len(lines) || lines[i+1].fixed {
			continue
		}
		last, next := lines[i-1], lines[i+1]
		tight := l.base-last.base < 1.2*f.leading*l.size && next.base-l.base < 1.2*f.leading*l.size
		if tight && !last.fixed && !endsSentence(last.text) {
			l.fixed = false
		}
	}
}

// leadingOf returns the median distance of consecutive baselines in lines of one size.
func leadingOf(lines []*line) float32 {
	var gaps []float32
	for i := 1; i < len(lines); i++ {
		a, b := lines[i-1], lines[i]
		if d := b.base - a.base; d > 0 && abs(a.size-b.size) < 0.1*a.size {
			gaps = append(gaps, d/b.size)
		}
	}
	if len(gaps) == 0 {
		return 1.2
	}
	slices.Sort(gaps)
	// The lower quartile, because many lines are paragraphs of their own in some columns.
	return min(max(gaps[len(gaps)/4], 0.9), 2.2)
}

// group returns how many lines from the first on are one block.
func (f *flow) group(lines []*line, s *style) int {
	if n := s.outline.lines(lines); n > 0 {
		return n
	}
	n := 1
	for n < len(lines) && f.continues(lines[:n], lines[n], s) {
		n++
	}
	return n
}

// continues reports whether a line belongs to the block of the lines before it.
func (f *flow) continues(block []*line, l *line, s *style) bool {
	last, first := block[len(block)-1], block[0]
	if first.tag.element != nil && l.tag.element != nil {
		return first.tag.element == l.tag.element && marker(l.text) == ""
	}
	gap := l.base - last.base
	size := max(last.size, l.size)
	switch {
	case first.fixed != l.fixed, s.outline.level(l.text, l) > 0:
		return false
	case first.fixed:
		return gap < 3*f.leading*size && gap > 0
	case gap > 1.3*f.leading*size || gap < 0:
		return false
	case abs(last.size-l.size) > 0.1*size && l.chars > 3 && last.chars > 3:
		return false
	case (last.bold != l.bold || last.italic != l.italic || last.font != l.font) && !f.full(last, l):
		return false
	case f.startsItem(first, last, l), captionName.MatchString(l.text) && f.breaksEarly(last, l):
		return false
	case hasLeader(l.text), last.trailing != "" && l.trailing != "":
		return false
	}
	if m := marker(first.text); m != "" {
		return f.start(l) > f.start(first)+0.4*l.size || !f.breaksEarly(last, l)
	}
	return !f.startsParagraph(block, l)
}

// start and end return where a line starts and ends in reading direction, growing in it.
func (f *flow) start(l *line) float32 {
	if l.rtl {
		return -l.X1
	}
	return l.X0
}

func (f *flow) end(l *line) float32 {
	if l.rtl {
		return -l.X0
	}
	return l.X1
}

// edge returns the end of the column in the reading direction of a line.
func (f *flow) edge(l *line) float32 {
	if l.rtl {
		return -f.x0
	}
	return f.x1
}

// full reports whether a line ends where the next word did not fit.
func (f *flow) full(last, l *line) bool { return !f.breaksEarly(last, l) }

// breaksEarly reports whether a line ends although the first word of the next one would have fitted.
func (f *flow) breaksEarly(last, l *line) bool {
	word, _, _ := strings.Cut(l.text, " ")
	em := (l.X1 - l.X0) / float32(max(1, utf8.RuneCountInString(l.text)))
	room := f.edge(last) - f.end(last)
	if f.centered(last) {
		room *= 2
	}
	return room > em*float32(utf8.RuneCountInString(word)+1)+0.5*l.size
}

// startsItem reports whether a line is a new item of a list.
func (f *flow) startsItem(first, last, l *line) bool {
	m := marker(l.text)
	switch {
	case m == "":
		return false
	case isBullet(m) && m != "-" && m != "–" && m != "—" && m != "*":
		return true
	case marker(first.text) != "" && abs(f.start(first)-f.start(l)) < 0.5*l.size:
		return true
	}
	return f.breaksEarly(last, l) || endsSentence(last.text)
}

// startsParagraph reports whether a line starts a paragraph after lines of the same style: it is
// indented, or the last line ends a sentence early.
func (f *flow) startsParagraph(block []*line, l *line) bool {
	last := block[len(block)-1]
	indent := f.start(l) - f.start(last)
	early := f.breaksEarly(last, l)
	if len(block) > 1 && indent > 0.8*l.size && indent < 4*l.size && !f.centered(l) {
		return true
	}
	if len(block) == 1 && indent > 0.8*l.size && early && !f.centered(l) {
		return true
	}
	return early && endsSentence(last.text)
}

// centered reports whether a line is in the middle of its column.
func (f *flow) centered(l *line) bool {
	left, right := l.X0-f.x0, f.x1-l.X1
	return left > l.size && abs(left-right) < 0.5*l.size
}

// endsSentence reports whether a text ends with a mark that ends a sentence.
func endsSentence(s string) bool {
	s = strings.TrimRight(s, `"'”’»)]`)
	last, _ := utf8.DecodeLastRuneInString(s)
	return strings.ContainsRune(".!?:。！？：؟۔…;", last)
}

var footnoteMark = lazyregexp.New(`^([0-9]{1,3}|[*†‡§¶]{1,3}|[¹²³⁴-⁹]{1,3})\s*[\pL"“(]`)

// group appends the block of consecutive lines.
func (c *composer) group(f *flow, lines []*line, next *line) {
	first := lines[0]
	if first.fixed && !c.style.fixed && !isWord(first.text) {
		c.add(f, c.code(f, lines))
		return
	}
	b := c.join(f, lines)
	m := marker(b.Text)
	switch level := c.style.level(lines, b.Text, next); {
	case level != 0:
		b.Kind, b.Level, b.size = assay.BlockHeading, level, first.size
		b.Text = strings.ReplaceAll(b.Text, "\n", " ")
	case first.tag.kind == assay.BlockCaption || c.isCaption(b.Text, first):
		b.Kind = assay.BlockCaption
	case first.tag.kind == assay.BlockFootnote || c.isFootnote(f, b.Text, first):
		b.Kind = assay.BlockFootnote
	case m != "" || first.tag.kind == assay.BlockListItem:
		b.Kind, b.Level = assay.BlockListItem, max(first.tag.list, f.level(first))
		if isBullet(m) {
			b.retext("- " + strings.TrimLeft(strings.TrimPrefix(b.Text, m), " "))
		}
	case f.first && c.tailAngle == f.angle && c.continuesTail(first):
		c.extend(b, lines)
		return
	}
	c.add(f, b)
	c.setTail(f, b.Kind, lines)
}

// retext replaces the text of a block whose start has changed.
func (b *Block) retext(text string) {
	shift := len(text) - len(b.Text)
	for i := range b.Starts {
		if b.Starts[i].Offset > 0 {
			b.Starts[i].Offset = max(0, b.Starts[i].Offset+shift)
		}
	}
	b.Text = text
}

// isWord reports whether a text is a single word, which a fixed font does not make code.
func isWord(s string) bool {
	return !strings.Contains(s, " ") && !strings.ContainsAny(s, "(){}[];=<>/")
}

// add appends a block.
func (c *composer) add(f *flow, b Block) {
	if b.Text != "" {
		n := len(c.blocks)
		b.Tight = b.Kind == assay.BlockListItem && n > 0 && c.blocks[n-1].Kind == assay.BlockListItem
		c.blocks = append(c.blocks, b)
	}
}

// setTail records whether the block that was added last may continue in the next column.
func (c *composer) setTail(f *flow, kind assay.BlockKind, lines []*line) {
	last := lines[len(lines)-1]
	switch kind {
	case assay.BlockParagraph, assay.BlockListItem:
		c.tail, c.tailLine = len(c.blocks), last
		c.tailAngle = f.angle
		c.tailFull = f.edge(last)-f.end(last) < 0.2*(f.x1-f.x0)
	case assay.BlockHeading:
		c.tail = 0
	}
}

// continuesTail reports whether the first line of a column continues the paragraph of the column
// before: that ends in the middle of a sentence, and the line does not begin one.
func (c *composer) continuesTail(l *line) bool {
	if c.tail == 0 || abs(c.tailLine.size-l.size) > 0.1*l.size || c.tailLine.bold != l.bold || !c.tailFull {
		return false
	}
	if c.tailLine.hyphen {
		return true
	}
	if endsSentence(c.tailLine.text) {
		return false
	}
	first, _ := utf8.DecodeRuneInString(l.text)
	return unicode.IsLower(first) || unicode.IsLetter(first) && !unicode.IsUpper(first)
}

// extend appends a block to the paragraph at the tail.
func (c *composer) extend(b Block, lines []*line) {
	t := &c.blocks[c.tail-1]
	t.Text += c.glue(c.tailLine, lines[0].text)
	if c.tailLine.hyphen && c.joins(c.tailLine.text, lines[0].text) {
		t.Text = strings.TrimSuffix(t.Text, "-")
	}
	for _, s := range b.Starts {
		t.Starts = append(t.Starts, PageStart{s.Offset + len(t.Text), s.Page})
	}
	t.Text += b.Text
	t.Boxes = append(t.Boxes, b.Boxes...)
	c.tailLine = lines[len(lines)-1]
}

// glue returns the separator of two lines of a paragraph.
func (c *composer) glue(last *line, next string) string {
	if last.hyphen || isHyphenated(last.text, next) {
		return ""
	}
	a, _ := utf8.DecodeLastRuneInString(last.text)
	b, _ := utf8.DecodeRuneInString(next)
	if isWide(a) && isWide(b) {
		return ""
	}
	return " "
}

// isWide reports whether a character is of a script without blanks between words.
func isWide(c rune) bool {
	return unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana) || 0x3000 <= c && c <= 0x303f || 0xff00 <= c && c <= 0xffef
}

// isHyphenated reports whether a line ends with a hyphen after a letter and the next goes on in lower
// case.
func isHyphenated(text, next string) bool {
	before, ok := strings.CutSuffix(text, "-")
	a, _ := utf8.DecodeLastRuneInString(before)
	b, _ := utf8.DecodeRuneInString(next)
	return ok && unicode.IsLetter(a) && unicode.IsLower(b)
}

// joins reports whether the hyphen at the end of a line is removed: unless the document has the
// compound with the hyphen elsewhere, and not without it.
func (c *composer) joins(text, next string) bool {
	left := text[strings.LastIndexAny(text, " \t")+1:]
	right, _, _ := strings.Cut(next, " ")
	left = strings.ToLower(strings.TrimSuffix(trimPunct(left), "-"))
	right = strings.ToLower(trimPunct(right))
	return c.words[left+right] > 0 || c.words[left+"-"+right] == 0
}

func trimPunct(s string) string {
	return strings.TrimFunc(s, func(c rune) bool { return unicode.IsPunct(c) && c != '-' })
}

// count counts the words of a line, to resolve hyphens.
func (a *Analyzer) count(text string) {
	for w := range strings.FieldsSeq(text) {
		if w = strings.ToLower(trimPunct(w)); len(w) < 40 && w != "" {
			a.words[w]++
		}
	}
}

// join returns the paragraph of lines.
func (c *composer) join(f *flow, lines []*line) Block {
	b := Block{Kind: assay.BlockParagraph}
	var text strings.Builder
	for i, l := range lines {
		s := l.text
		if i+1 < len(lines) && (l.hyphen || isHyphenated(s, lines[i+1].text)) && c.joins(s, lines[i+1].text) {
			s = strings.TrimSuffix(s, "-")
		}
		if i > 0 {
			sep := c.glue(lines[i-1], l.text)
			if sep == " " && f.breaksEarly(lines[i-1], l) {
				sep = "\n"
			}
			text.WriteString(sep)
		}
		b.place(text.Len(), l)
		text.WriteString(s)
	}
	b.Text = text.String()
	return b
}

// place records the page and the box of a line at an offset of the text.
func (b *Block) place(offset int, l *line) {
	if n := len(b.Starts); n == 0 || b.Starts[n-1].Page != l.page {
		b.Starts = append(b.Starts, PageStart{offset, l.page})
		b.Boxes = append(b.Boxes, Box{l.page, l.shown})
		return
	}
	last := &b.Boxes[len(b.Boxes)-1]
	last.Box = union(last.Box, l.shown)
}

// code returns the block of lines in a fixed font. Their indentation is kept.
func (c *composer) code(f *flow, lines []*line) Block {
	b := Block{Kind: assay.BlockCode}
	left := lines[0].X0
	for _, l := range lines {
		left = min(left, l.X0)
	}
	var text strings.Builder
	for i, l := range lines {
		if i > 0 {
			text.WriteByte('\n')
			if l.base-lines[i-1].base > 1.7*f.leading*l.size {
				text.WriteByte('\n')
			}
		}
		text.WriteString(strings.Repeat(" ", min(80, int((l.X0-left)/(0.6*max(l.size, 1))+0.5))))
		b.place(text.Len(), l)
		text.WriteString(l.text)
	}
	b.Text = text.String()
	return b
}

// level returns the level of a list item in its column, by the place of its marker.
func (f *flow) level(l *line) int {
	x := f.start(l)
	for i, at := range f.levels {
		if abs(x-at) < 0.7*l.size {
			f.levels = f.levels[:i+1]
			return i + 1
		}
		if x < at {
			f.levels = append(f.levels[:i], x)
			return i + 1
		}
	}
	f.levels = append(f.levels, x)
	return len(f.levels)
}

// isCaption reports whether a text begins like a caption: with a name and number that a mark follows,
// or in another style than the text.
func (c *composer) isCaption(text string, l *line) bool {
	m := captionName.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	return m[4] != "" || l.size < 0.97*c.style.body || l.bold || l.italic || len(m[0]) == len(text)
}

// isFootnote reports whether a text in the lower part of a page is a footnote: smaller than the text,
// it begins with a number or mark.
func (c *composer) isFootnote(f *flow, text string, l *line) bool {
	return l.size < 0.93*c.style.body && l.shown.Y0 > 0.5*f.page.height && footnoteMark.MatchString(text)
}
