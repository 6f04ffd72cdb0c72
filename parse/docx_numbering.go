package parse

import (
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/ooxml"
)

// A docxNumbering computes the numbers of paragraphs (ECMA-376 part 1, 17.9).
type docxNumbering struct {
	nums     map[string]*docxNum // by numId
	abstract map[string]*docxList
}

// A docxNum is an instance of a list, which may override levels.
type docxNum struct {
	list    *docxList
	levels  map[int]*docxLevel
	restart map[int]int // the start of a level at the first use of this instance
}

// A docxList is a list: its levels and the numbers of its last paragraph.
type docxList struct {
	levels [9]*docxLevel
	count  [9]int
	used   [9]bool
}

type docxLevel struct {
	start  int
	format string // "decimal", "bullet", …
	text   string // with %1 to %9 for the numbers of levels
	style  string // the paragraph style linked to the level
	legal  bool   // all numbers are decimal
}

// readNumbering reads a w:numbering element, which may be nil.
func readNumbering(root *ooxml.Node) *docxNumbering {
	n := &docxNumbering{nums: map[string]*docxNum{}, abstract: map[string]*docxList{}}
	styleLinks, links := map[string]*docxList{}, map[string]string{}
	for _, a := range root.All("w:abstractNum") {
		id, list := a.Attr("w:abstractNumId"), &docxList{}
		for _, l := range a.All("w:lvl") {
			list.levels[levelOf(l.Attr("w:ilvl"))] = readLevel(l)
		}
		n.abstract[id] = list
		if style := a.Child("w:styleLink"); style != nil {
			styleLinks[style.Attr("w:val")] = list
		}
		if style := a.Child("w:numStyleLink"); style != nil {
			links[id] = style.Attr("w:val")
		}
	}
	for id, style := range links {
		if list := styleLinks[style]; list != nil {
			n.abstract[id] = list
		}
	}
	for _, num := range root.All("w:num") {
		n.readNum(num)
	}
	return n
}

func (n *docxNumbering) readNum(num *ooxml.Node) {
	list := n.abstract[num.Child("w:abstractNumId").Attr("w:val")]
	if list == nil {
		return
	}
	d := &docxNum{list: list, levels: map[int]*docxLevel{}, restart: map[int]int{}}
	for _, o := range num.All("w:lvlOverride") {
		at := levelOf(o.Attr("w:ilvl"))
		if l := o.Child("w:lvl"); l != nil {
			d.levels[at] = readLevel(l)
		}
		if s := o.Child("w:startOverride"); s != nil {
			d.restart[at] = number(s.Attr("w:val"), 1)
		}
	}
	n.nums[num.Attr("w:numId")] = d
}

func readLevel(n *ooxml.Node) *docxLevel {
	l := &docxLevel{start: 1, format: "decimal", legal: isOn(n.Child("w:isLgl"))}
	if s := n.Child("w:start"); s != nil {
		l.start = number(s.Attr("w:val"), 1)
	}
	if f := n.Child("w:numFmt"); f != nil {
		l.format = f.Attr("w:val")
	}
	l.text = n.Child("w:lvlText").Attr("w:val")
	l.style = n.Child("w:pStyle").Attr("w:val")
	return l
}

// number returns the number in s, or other if s is none or is out of the range of lists.
func number(s string, other int) int {
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 || v > 32767 {
		return other
	}
	return v
}

func (d *docxNum) level(at int) *docxLevel {
	if l := d.levels[at]; l != nil {
		return l
	}
	return d.list.levels[at]
}

// styleLevel returns the level that is linked to a paragraph style, or other.
func (n *docxNumbering) styleLevel(numID, style string, other int) int {
	d := n.nums[numID]
	if d == nil || style == "" {
		return other
	}
	for i := range d.list.levels {
		if l := d.level(i); l != nil && l.style == style {
			return i
		}
	}
	return other
}

// next counts a paragraph and returns its number or bullet, which is "" if the level has none.
// ok is false if there is no such list.
func (n *docxNumbering) next(numID string, at int) (lead string, bullet, ok bool) {
	d := n.nums[numID]
	if d == nil || d.level(at) == nil {
		return "", false, false
	}
	l := d.level(at)
	d.count(at)
	if l.format == "bullet" {
		return "-", true, true
	}
	if l.format == "none" {
		return strings.TrimSpace(withoutFields(l.text)), false, true
	}
	return strings.TrimSpace(d.text(l)), false, true
}

func (d *docxNum) count(at int) {
	list := d.list
	for i := range at { // levels above that have no paragraph yet
		if l := d.level(i); !list.used[i] && l != nil {
			list.count[i], list.used[i] = l.start, true
		}
	}
	start, again := d.restart[at]
	switch {
	case again:
		delete(d.restart, at)
		list.count[at] = start
	case list.used[at]:
		list.count[at]++
	default:
		list.count[at] = d.level(at).start
	}
	list.used[at] = true
	for i := at + 1; i < len(list.used); i++ {
		list.used[i] = false
	}
}

// text returns the text of a level with the current numbers.
func (d *docxNum) text(l *docxLevel) string {
	var out strings.Builder
	for i := 0; i < len(l.text); i++ {
		if l.text[i] != '%' || i+1 == len(l.text) || l.text[i+1] < '1' || l.text[i+1] > '9' {
			out.WriteByte(l.text[i])
			continue
		}
		i++
		at := int(l.text[i] - '1')
		of := d.level(at)
		switch {
		case of == nil || of.format == "bullet" || of.format == "none":
		case l.legal:
			out.WriteString(strconv.Itoa(d.list.count[at]))
		default:
			out.WriteString(numeral(d.list.count[at], of.format))
		}
	}
	return out.String()
}

// withoutFields returns the text of a level without its numbers.
func withoutFields(s string) string {
	for i := '1'; i <= '9'; i++ {
		s = strings.ReplaceAll(s, "%"+string(i), "")
	}
	return s
}

// numeral returns n in a format of numbers of Office.
func numeral(n int, format string) string {
	switch format {
	case "upperRoman", "romanUc":
		return roman(n)
	case "lowerRoman", "romanLc":
		return strings.ToLower(roman(n))
	case "upperLetter", "alphaUc":
		return alphabetic(n)
	case "lowerLetter", "alphaLc":
		return strings.ToLower(alphabetic(n))
	case "decimalZero":
		if n < 10 {
			return "0" + strconv.Itoa(n)
		}
	case "ordinal":
		return ordinal(n)
	}
	return strconv.Itoa(n)
}

func roman(n int) string {
	if n <= 0 || n > 3999 {
		return strconv.Itoa(n)
	}
	values := []int{1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1}
	names := []string{"M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"}
	var out strings.Builder
	for i, v := range values {
		for ; n >= v; n -= v {
			out.WriteString(names[i])
		}
	}
	return out.String()
}

// alphabetic returns A to Z, then AA, BB and so on.
func alphabetic(n int) string {
	const most = 26 * 20
	if n <= 0 || n > most {
		return strconv.Itoa(n)
	}
	return strings.Repeat(string(rune('A'+(n-1)%26)), (n-1)/26+1)
}

func ordinal(n int) string {
	teens := []int{11, 12, 13}
	switch {
	case slices.Contains(teens, n%100):
		return strconv.Itoa(n) + "th"
	case n%10 == 1:
		return strconv.Itoa(n) + "st"
	case n%10 == 2:
		return strconv.Itoa(n) + "nd"
	case n%10 == 3:
		return strconv.Itoa(n) + "rd"
	}
	return strconv.Itoa(n) + "th"
}
