package parse

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/assay-rag/assay"
)

// isRTF reports whether src starts as Rich Text Format does.
func isRTF(src *source) bool {
	return bytes.HasPrefix(bytes.TrimLeft(src.data[:min(len(src.data), 64)], "\xef\xbb\xbf \t\r\n"), []byte(`{\rtf`))
}

// parseRTF parses Rich Text Format: paragraphs, headings by outline level or style, lists, tables,
// footnotes and the metadata. Deleted and hidden text, headers and footers are left out.
//
// Source: Microsoft, "Rich Text Format (RTF) Specification", version 1.9.1.
func parseRTF(src *source, b *builder) bool {
	b.unlined = true
	r := &rtf{b: b, data: src.data, out: &strings.Builder{}, fonts: map[int]int{}, styles: map[int]rtfStyle{}, codePage: 1252}
	r.state = rtfState{uc: 1, outline: -1, font: -1}
	if err := r.read(); err != nil {
		b.err = err
		return true
	}
	r.endParagraph()
	r.endTable()
	if b.title == "" {
		b.title = firstTitle(b)
	}
	return true
}

// maxRTFGroups is the greatest nesting depth of groups.
const maxRTFGroups = 500

// An rtf is the state of reading RTF.
type rtf struct {
	b    *builder
	data []byte
	at   int

	state rtfState
	stack []rtfState

	codePage int // of the document
	fonts    map[int]int
	styles   map[int]rtfStyle

	raw       []byte             // text in a code page, not yet decoded
	high      uint16             // first half of a surrogate pair
	skipBytes int                // characters that follow \u as its replacement
	out       *strings.Builder   // of the innermost destination that collects text
	sinks     []*strings.Builder // of those around it
	marker    string             // of the list item
	notes     int
	after     []rtfBlock // footnotes and figures of the open paragraph
	name      string     // of the last property of a shape

	cells  []gridCell // of the open table
	row    []rtfCell
	defs   []rtfCellDef
	cell   strings.Builder
	header bool
	rows   int
}

type rtfBlock struct {
	kind BlockKind
	text string
}

type rtfCell struct{ text string }

// An rtfCellDef is the definition of a cell by the row's properties.
type rtfCellDef struct{ first, merged, vfirst, vmerged bool }

// An rtfState is what a group inherits and its end restores.
type rtfState struct {
	dest     string // destination that collects text; "": the document
	skip     bool   // the group's text is left out
	ignore   bool   // after \*: an unknown destination is left out
	uc       int
	font     int
	hidden   bool
	raised   bool
	style    int
	outline  int // level of a heading from 0, -1: none
	table    bool
	list     bool
	level    int
	collects bool           // the group is the destination's, not one inside it
	date     map[string]int // of a destination with a time
}

type rtfStyle struct {
	name    string
	outline int
}

// read reads all groups.
func (r *rtf) read() error {
	for steps := 0; r.at < len(r.data); steps++ {
		if steps%4096 == 0 && r.b.canceled() {
			return nil
		}
		c := r.data[r.at]
		r.at++
		switch c {
		case '{':
			r.flush()
			r.skipBytes = 0
			if len(r.stack) >= maxRTFGroups {
				return fmt.Errorf("it has more than %d groups in groups: %w", maxRTFGroups, ErrLimit)
			}
			r.stack = append(r.stack, r.state)
			r.state.collects = false
		case '}':
			r.flush()
			r.skipBytes = 0
			if len(r.stack) == 0 {
				continue // some writers close a group too many
			}
			r.endGroup()
			if len(r.stack) == 0 {
				return nil
			}
		case '\\':
			r.control()
		case '\r', '\n':
		default:
			r.byte(c)
		}
	}
	if len(r.stack) > 0 {
		return fmt.Errorf("it ends inside a group: %w", ErrDamaged)
	}
	return nil
}

// byte adds a byte of text in the current code page.
func (r *rtf) byte(c byte) {
	if r.skipBytes > 0 {
		r.skipBytes--
		return
	}
	if !r.state.skip && !r.state.hidden {
		r.raw = append(r.raw, c)
	}
}

// text adds decoded text.
func (r *rtf) text(s string) {
	r.flush()
	if !r.state.skip && !r.state.hidden {
		r.out.WriteString(s)
	}
}

// flush decodes the bytes collected so far.
func (r *rtf) flush() {
	if r.high != 0 && len(r.raw) > 0 {
		r.high = 0
	}
	if len(r.raw) == 0 {
		return
	}
	page, ok := r.fonts[r.state.font]
	if !ok || page == 0 {
		page = r.codePage
	}
	text, err := rtfEncoding(page).NewDecoder().Bytes(r.raw)
	if err != nil { // not of the code page: keep what is ASCII
		text = bytes.ToValidUTF8(r.raw, []byte("\uFFFD"))
	}
	r.out.Write(text)
	r.raw = r.raw[:0]
}

// control reads a control word or symbol after its backslash.
func (r *rtf) control() {
	if r.at >= len(r.data) {
		return
	}
	c := r.data[r.at]
	r.at++
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
		r.at--
		word, param, has := r.word()
		r.do(word, param, has)
		return
	}
	switch c {
	case '\'':
		if r.at+2 > len(r.data) {
			return
		}
		v, err := strconv.ParseUint(string(r.data[r.at:r.at+2]), 16, 8)
		r.at += 2
		if err == nil {
			r.byte(byte(v))
		}
	case '\\', '{', '}':
		r.byte(c)
	case '~':
		r.text(" ")
	case '_':
		r.text("-")
	case '*':
		r.state.ignore = true
	case '\r', '\n':
		r.do("par", 0, false)
	}
}

// word reads the letters and the number of a control word and the space after it.
func (r *rtf) word() (word string, param int, has bool) {
	start := r.at
	for r.at < len(r.data) && (r.data[r.at] >= 'a' && r.data[r.at] <= 'z' || r.data[r.at] >= 'A' && r.data[r.at] <= 'Z') {
		r.at++
	}
	word = string(r.data[start:min(r.at, start+40)])
	start = r.at
	if r.at < len(r.data) && r.data[r.at] == '-' {
		r.at++
	}
	for r.at < len(r.data) && r.data[r.at] >= '0' && r.data[r.at] <= '9' {
		r.at++
	}
	if number := string(r.data[start:min(r.at, start+12)]); number != "" {
		if v, err := strconv.Atoi(number); err == nil {
			param, has = v, true
		}
	}
	if r.at < len(r.data) && r.data[r.at] == ' ' {
		r.at++
	}
	return word, param, has
}

// rtfChars are control words that stand for text.
var rtfChars = map[string]string{
	"tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "emspace": " ", "enspace": " ", "qmspace": " ", "bullet": "•",
	"lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "zwj": "", "zwnj": "", "softline": "\n",
}

// rtfSkipped are the destinations whose text is not the document's.
var rtfSkipped = tagSet("colortbl filetbl listtable listoverridetable revtbl rsidtbl generator pict objdata header headerl headerr headerf " +
	"footer footerl footerr footerf fldinst themedata colorschememapping datastore latentstyles xmlnstbl bkmkstart bkmkend " +
	"nonshppict shprslt xe tc tcn rxe template passwordhash wgrffmtfilter mmathPict pnseclvl operator company category manager " +
	"private atnid atnicn atntime atndate atnref atrfstart atrfend ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn listpicture pgptbl " +
	"mmathPr docvar userprops")

// rtfCollected are the destinations whose text is collected apart from the document's.
var rtfCollected = tagSet("title author subject keywords doccomm fonttbl stylesheet footnote annotation atnauthor listtext pntext sn sv shptxt dptxbxtext creatim revtim")

// rtfShown are the destinations that \* marks and whose text is the document's.
var rtfShown = tagSet("shppict shpinst shptxt do ud moMath moMathPara picprop shpgrp cs tscfirstrow")

// do carries out a control word.
func (r *rtf) do(word string, param int, has bool) {
	if word == "u" {
		r.unicode(param)
		return
	}
	if s, ok := rtfChars[word]; ok {
		if r.skipBytes > 0 {
			r.skipBytes--
			return
		}
		r.text(s)
		return
	}
	if word == "bin" {
		r.at = min(r.at+max(param, 0), len(r.data))
		return
	}
	r.flush()
	if r.destination(word) || r.table(word) {
		return
	}
	on := !has || param != 0
	switch word {
	case "par", "sect", "page", "column", "cell", "row", "nestcell", "nestrow":
		r.paragraphEnd()
	case "pard":
		r.state.style, r.state.outline, r.state.table, r.state.list, r.state.level = 0, -1, false, false, 0
	case "plain":
		r.state.hidden, r.state.raised = false, false
	case "s":
		r.state.style = param
		if r.state.dest == "stylesheet" {
			r.state.outline = -1
		}
	case "outlinelevel":
		r.state.outline = min(max(param, -1), 20)
	case "ls", "pnlvlbody", "pnlvlblt":
		r.state.list = word != "ls" || param != 0
	case "ilvl":
		r.state.level = min(max(param, 0), 20)
	case "v", "deleted":
		r.state.hidden = on
	case "super":
		r.state.raised = on
	case "nosupersub":
		r.state.raised = false
	case "uc":
		r.state.uc = min(max(param, 0), 100)
	case "f":
		r.state.font = param
	case "deff":
		if r.state.font < 0 {
			r.state.font = param
		}
	case "fcharset", "cpg":
		r.fontPage(word, param)
	case "ansicpg":
		r.codePage = param
	case "mac":
		r.codePage = 10000
	case "pc", "pca":
		r.codePage = 437
	case "chftn":
		r.noteMark()
	case "yr", "mo", "dy", "hr", "min":
		if r.state.date != nil {
			r.state.date[word] = param
		}
	}
}

// unicode adds the character of \u and skips its replacement.
func (r *rtf) unicode(param int) {
	u := uint16(param)
	r.flush()
	r.skipBytes = r.state.uc
	switch {
	case u >= 0xd800 && u < 0xdc00:
		r.high = u
		return
	case u >= 0xdc00 && u < 0xe000:
		if r.high != 0 {
			r.text(string(utf16.DecodeRune(rune(r.high), rune(u))))
		}
	case u >= 0xf020 && u < 0xf100: // a symbol font's private characters: bullets and dingbats
		r.text("•")
	case u != 0:
		r.text(string(rune(u)))
	}
	r.high = 0
}

// destination starts the destination that a control word names. It reports whether there is one.
func (r *rtf) destination(word string) bool {
	marked := r.state.ignore
	r.state.ignore = false
	switch {
	case rtfSkipped[word]:
		r.state.skip = true
		return true
	case word == "upr": // followed by a form in Unicode
		r.state.skip = true
		return true
	case marked && (word == "ud" || word == "picprop"):
		r.state.skip = len(r.stack) > 1 && r.stack[len(r.stack)-2].skip
		return true
	case rtfCollected[word]:
		if r.state.skip {
			return true
		}
		if r.state.collects {
			return true
		}
		r.state.dest = word
		r.state.collects = true
		r.sinks, r.out = append(r.sinks, r.out), &strings.Builder{}
		if word == "creatim" || word == "revtim" {
			r.state.date = map[string]int{}
		}
		if word == "footnote" || word == "annotation" {
			r.state.table = false
		}
		return true
	case marked && !rtfShown[word]:
		r.state.skip = true
		return true
	}
	return rtfShown[word] && marked || len(word) > 3 && word[0] == 'm' && strings.HasSuffix(word, "Pr")
}

// fontPage sets the code page of the font that is being defined.
func (r *rtf) fontPage(word string, param int) {
	if r.state.dest != "fonttbl" {
		return
	}
	if word == "fcharset" {
		param = rtfCharsets[param]
	}
	if param != 0 && len(r.fonts) < 10_000 {
		r.fonts[r.state.font] = param
	}
}

// endGroup ends the current group and its destination.
func (r *rtf) endGroup() {
	ended := r.state
	r.state = r.stack[len(r.stack)-1]
	r.stack = r.stack[:len(r.stack)-1]
	if ended.dest == "stylesheet" && r.state.dest == "stylesheet" {
		r.addStyle(ended)
		return
	}
	if !ended.collects || len(r.sinks) == 0 {
		return
	}
	text := r.out.String()
	r.out = r.sinks[len(r.sinks)-1]
	r.sinks = r.sinks[:len(r.sinks)-1]
	r.collected(ended, strings.Join(strings.Fields(text), " "))
}

// addStyle adds the style whose definition a group is, such as {\s1 heading 1;}.
func (r *rtf) addStyle(ended rtfState) {
	name, _, ok := strings.Cut(r.out.String(), ";")
	if !ok {
		return // a group inside the definition
	}
	r.out.Reset()
	if len(r.styles) < 10_000 {
		r.styles[ended.style] = rtfStyle{strings.ToLower(strings.TrimSpace(name)), ended.outline}
	}
}

// collected uses the text of a destination.
func (r *rtf) collected(ended rtfState, text string) {
	switch ended.dest {
	case "creatim", "revtim":
		key := assay.MetaCreated
		if ended.dest == "revtim" {
			key = assay.MetaModified
		}
		d := ended.date
		if t := time.Date(d["yr"], time.Month(d["mo"]), d["dy"], d["hr"], d["min"], 0, 0, time.UTC); d["yr"] > 0 && assay.ValidTime(t) {
			r.b.set(key, assay.TimeValue(t))
		}
		return
	case "listtext", "pntext":
		r.marker = text
		r.state.list = true
		return
	case "sn":
		r.name = text
		return
	}
	if text == "" {
		return
	}
	switch ended.dest {
	case "title":
		r.b.title = text
	case "author":
		r.b.set(assay.MetaAuthor, assay.StringValue(text))
	case "subject", "keywords":
		r.b.set(ended.dest, assay.StringValue(text))
	case "doccomm":
		r.b.set("description", assay.StringValue(text))
	case "footnote":
		r.after = append(r.after, rtfBlock{Footnote, "[" + strconv.Itoa(r.notes) + "] " + text})
	case "shptxt", "dptxbxtext":
		r.after = append(r.after, rtfBlock{Paragraph, text})
	case "annotation":
		r.after = append(r.after, rtfBlock{Footnote, "Comment: " + text})
	case "sv":
		if r.name == "wzDescription" {
			r.after = append(r.after, rtfBlock{Figure, text})
		}
	}
}

// noteMark adds the number of a footnote where the text refers to it.
func (r *rtf) noteMark() {
	if r.state.dest == "" && !r.state.skip {
		r.notes++
		r.text("[" + strconv.Itoa(r.notes) + "]")
	}
}

// paragraphEnd ends a paragraph of the document, or a line in a destination or a cell.
func (r *rtf) paragraphEnd() {
	switch {
	case r.state.dest != "":
		r.out.WriteString(" ")
	case r.state.table:
		r.cell.WriteString(r.out.String() + "\n")
		r.out.Reset()
		r.marker = ""
	default:
		r.endParagraph()
	}
}

// endParagraph writes the open paragraph and the footnotes and figures in it.
func (r *rtf) endParagraph() {
	r.flush()
	text := strings.Trim(r.out.String(), " \t\n")
	r.out.Reset()
	marker := r.marker
	r.marker = ""
	if text == "" && len(r.after) == 0 {
		return
	}
	r.endTable()
	kind, level := r.kind()
	if kind == ListItem {
		if !strings.ContainsAny(marker, "0123456789") && (utf8.RuneCountInString(marker) != 2 || !strings.ContainsAny(marker, ".)")) {
			marker = "-"
		}
		text = strings.Repeat("  ", min(level-1, 8)) + marker + " " + text
	} else if marker != "" && kind == Heading {
		text = marker + " " + text
	}
	last := len(r.b.blocks) - 1
	if kind == ListItem && last >= 0 && r.b.blocks[last].Kind == ListItem {
		r.b.beginTight(kind)
	} else {
		r.b.begin(kind)
	}
	r.b.cur.Level = level
	r.b.put(text, 0)
	r.b.end()
	r.putAfter()
}

// putAfter writes the footnotes and figures of the paragraph or table before.
func (r *rtf) putAfter() {
	for _, a := range r.after {
		r.b.puts(a.kind, a.text, 0)
	}
	r.after = nil
}

// kind returns the kind and level of the open paragraph.
func (r *rtf) kind() (BlockKind, int) {
	style := r.styles[r.state.style]
	outline := r.state.outline
	if outline < 0 && r.state.style != 0 {
		outline = style.outline
	}
	if number, ok := strings.CutPrefix(style.name, "heading "); ok && outline < 0 {
		if n, err := strconv.Atoi(number); err == nil && n > 0 && n < 10 {
			outline = n - 1
		}
	}
	switch {
	case r.state.style == 0 && outline < 0:
	case style.name == "title":
		return Heading, 1
	case style.name == "caption":
		return Caption, 0
	case outline >= 0 && outline < 9:
		return Heading, outline + 1
	}
	if r.state.list {
		return ListItem, r.state.level + 1
	}
	return Paragraph, 0
}

// rtfCharsets are the code pages of the character sets of fonts.
var rtfCharsets = map[int]int{
	0: 1252, 77: 10000, 128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256, 186: 1257,
	204: 1251, 222: 874, 238: 1250, 254: 437, 255: 850,
}

// rtfEncoding returns the encoding of a code page, or Windows-1252 for one that is not known.
func rtfEncoding(page int) encoding.Encoding {
	switch page {
	case 437:
		return charmap.CodePage437
	case 850:
		return charmap.CodePage850
	case 852:
		return charmap.CodePage852
	case 866:
		return charmap.CodePage866
	case 874:
		return charmap.Windows874
	case 932:
		return japanese.ShiftJIS
	case 936:
		return simplifiedchinese.GBK
	case 949:
		return korean.EUCKR
	case 950:
		return traditionalchinese.Big5
	case 1250:
		return charmap.Windows1250
	case 1251:
		return charmap.Windows1251
	case 1253:
		return charmap.Windows1253
	case 1254:
		return charmap.Windows1254
	case 1255:
		return charmap.Windows1255
	case 1256:
		return charmap.Windows1256
	case 1257:
		return charmap.Windows1257
	case 1258:
		return charmap.Windows1258
	case 10000:
		return charmap.Macintosh
	case 65001:
		return encoding.Nop
	}
	return charmap.Windows1252
}
