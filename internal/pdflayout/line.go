package pdflayout

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/pdfium"
)

// A line is a line of text in a column.
type line struct {
	pdfium.Box
	base     float32
	size     float32
	text     string
	chars    int
	bold     bool // most characters
	italic   bool
	fixed    bool
	rtl      bool
	hyphen   bool // ends in a hyphen that splits a word
	hidden   bool
	artifact bool
	color    uint32
	font     string  // of the longest fragment
	indent   float32 // x of the text after a list marker, or X0
	page     int
	mcids    []int
	seq      int // of the first fragment in the stream
	tag      tag
	drop     bool       // furniture
	figure   bool       // inside a figure
	trailing string     // the last fragment if it is a page number after a wide gap
	shown    pdfium.Box // as shown on the page
}

// lines joins the fragments of a column to lines, from top to bottom.
func lines(frags []fragment) []*line {
	var out []*line
	for _, row := range rowsOf(frags) {
		out = append(out, lineOf(row))
	}
	return out
}

// rowsOf groups fragments by baseline, from top to bottom. The order of the fragments of a row is
// from left to right.
func rowsOf(frags []fragment) [][]fragment {
	sorted := slices.Clone(frags)
	slices.SortStableFunc(sorted, func(a, b fragment) int { return compare(a.base, b.base) })
	var rows [][]fragment
	for _, f := range sorted {
		if n := len(rows); n > 0 && sharesRow(rows[n-1], f) {
			rows[n-1] = append(rows[n-1], f)
			continue
		}
		rows = append(rows, []fragment{f})
	}
	for _, row := range rows {
		slices.SortStableFunc(row, func(a, b fragment) int { return compare(a.X0, b.X0) })
	}
	return rows
}

func compare(a, b float32) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// sharesRow reports whether a fragment is on the line of a row: its characters cover at least half of
// the height of the largest fragment of the row, or the other way around.
func sharesRow(row []fragment, f fragment) bool {
	for i := len(row) - 1; i >= max(0, len(row)-8); i-- {
		r := row[i]
		overlap := min(r.Y1, f.Y1) - max(r.Y0, f.Y0)
		if overlap > 0.55*min(r.Y1-r.Y0, f.Y1-f.Y0) && abs(r.base-f.base) < 0.5*max(r.size, f.size) {
			return true
		}
	}
	return false
}

// lineOf joins the fragments of a row, which are sorted from left to right.
func lineOf(row []fragment) *line {
	l := &line{Box: row[0].Box, seq: row[0].seq}
	var bold, italic, fixed, rtl, hidden, artifact int
	most := 0
	for _, f := range row {
		l.Box = union(l.Box, f.Box)
		l.chars += f.chars
		bold += f.bold
		italic += f.italic
		fixed += f.fixed
		rtl += f.rtl
		if f.hidden {
			hidden += f.chars
		}
		if f.artifact {
			artifact += f.chars
		}
		if f.chars > most {
			most, l.size, l.base, l.color, l.font = f.chars, f.size, f.base, f.color, f.font
		}
		if f.mcid >= 0 && !slices.Contains(l.mcids, f.mcid) {
			l.mcids = append(l.mcids, f.mcid)
		}
		l.seq = min(l.seq, f.seq)
	}
	l.bold, l.italic, l.fixed = 2*bold > l.chars, 2*italic > l.chars, 4*fixed > 3*l.chars
	l.hidden, l.artifact = 2*hidden > l.chars, 2*artifact > l.chars
	l.rtl = 3*rtl > l.chars
	if l.rtl {
		turnRow(row)
	}
	if l.text = joinRow(row); l.rtl {
		l.text = mirrored(l.text)
	}
	l.hyphen = row[len(row)-1].hyphen
	if n := len(row); n > 1 && pageNumber.MatchString(row[n-1].text) && max(row[n-1].X0-row[n-2].X1, row[n-2].X0-row[n-1].X1) > 2*l.size {
		l.trailing = row[n-1].text
	}
	l.indent = l.X0
	if i := row[0].indent; i > 0 && !l.rtl {
		l.indent = i
	}
	return l
}

// turnRow sorts a row from right to left. Fragments of one number, or of another word that runs to the
// right, keep their order.
func turnRow(row []fragment) {
	slices.Reverse(row)
	for i := 0; i < len(row); {
		n := 1
		for i+n < len(row) && row[i].rtl == 0 && row[i+n].rtl == 0 && row[i+n-1].X0-row[i+n].X1 < 0.15*row[i].size {
			n++
		}
		slices.Reverse(row[i : i+n])
		i += n
	}
}

// joinRow joins the texts of a row in reading order, with a blank where there is a gap.
func joinRow(row []fragment) string {
	var b strings.Builder
	for i, f := range row {
		if i > 0 {
			last := row[i-1]
			gap := max(f.X0-last.X1, last.X0-f.X1)
			if last.space || gap > 0.15*max(f.size, last.size) || changesScript(last.text, f.text) {
				b.WriteByte(' ')
			}
		}
		b.WriteString(f.text)
	}
	return b.String()
}

// mirrored returns a line that runs to the left with its brackets exchanged if the first one closes and
// the last one opens: then their codes are of the shapes, not of the characters.
func mirrored(s string) string {
	const opening, closing = "([{«", ")]}»"
	first, last := strings.IndexAny(s, opening+closing), strings.LastIndexAny(s, opening+closing)
	if first < 0 || !strings.ContainsAny(closing, firstRune(s[first:])) || !strings.ContainsAny(opening, firstRune(s[last:])) {
		return s
	}
	return strings.NewReplacer("(", ")", ")", "(", "[", "]", "]", "[", "{", "}", "}", "{", "«", "»", "»", "«").Replace(s)
}

func firstRune(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

// changesScript reports whether a letter that runs to the left meets a Latin one. The blank between
// them may be on the other side of the word in the file.
func changesScript(a, b string) bool {
	last, _ := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	return isRTL(last) && unicode.Is(unicode.Latin, first) || unicode.Is(unicode.Latin, last) && isRTL(first)
}

// bullets are the characters that list items begin with. Fonts of symbols give private codes.
const bullets = "•‣⁃●○◦▪▫■□◆◇❖➢➤✓✔·∙–—-*◼◻☐☑☒➔►▶\uf0b7\uf0a7\uf0d8\uf0fc\uf076\uf06e\uf0a8\uf0fe"

var (
	enumerator = lazyregexp.New(`^(\(?[0-9]{1,3}[.)]|\(?[A-Za-z][.)]|\(?[ivxIVX]{1,5}[.)])$`)
	startItem  = lazyregexp.New(`^(\(?[0-9]{1,3}[.)]|\(?[A-Za-z][)]|[a-z]\.|\([ivx]{1,5}\)|[ivx]{1,5}[.)])\s+\S`)
)

// isMarker reports whether a text is the marker of a list item.
func isMarker(s string) bool { return isBullet(s) || enumerator.MatchString(s) }

func isBullet(s string) bool {
	first := true
	for _, c := range s {
		if !first || !strings.ContainsRune(bullets, c) && !(c >= 0xf000 && c <= 0xf0ff) {
			return false
		}
		first = false
	}
	return !first
}

// marker returns the marker of a list item that a text begins with, or "".
func marker(s string) string {
	word, rest, found := strings.Cut(s, " ")
	if found && rest != "" && isBullet(word) {
		return word
	}
	if startItem.MatchString(s) {
		return word
	}
	if c := []rune(s); len(c) > 2 && c[0] != '-' && c[0] != '–' && c[0] != '—' && c[0] != '*' && isBullet(string(c[0])) && !unicode.IsSpace(c[1]) {
		return string(c[0])
	}
	return ""
}
