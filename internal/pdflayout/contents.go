package pdflayout

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

var (
	leader   = lazyregexp.New(`([.·…_]\s?){5,}`)
	contents = lazyregexp.New(`^(.*?\S)\s*([.·…]\s?){4,}\s*([0-9]{1,4}|[ivxlcIVXLC]{1,7}|[A-Z]?-?[0-9]{1,3}([.-][0-9]{1,3})?)$`)
)

// hasLeader reports whether a text has a row of dots that leads to a page number.
func hasLeader(s string) bool { return leader.MatchString(s) && strings.Contains(s, ".") }

// entry returns the title and the page number of an entry of a table of contents. An entry without a
// leader must be beside one that has one, because any line may end with a number.
func entry(l *line, leaders bool) (title, page string) {
	if hasLeader(l.text) {
		if m := contents.FindStringSubmatch(l.text); m != nil {
			return m[1], m[3]
		}
	}
	if leaders && l.trailing != "" {
		return strings.TrimSpace(strings.TrimSuffix(l.text, l.trailing)), l.trailing
	}
	return "", ""
}

// contents appends a table of contents at the start of lines: at least three entries, each with a page
// number. It returns how many lines it took.
func (c *composer) contents(lines []*line) int {
	n := 0
	t := &Table{}
	leaders := slices.ContainsFunc(lines[:min(8, len(lines))], func(l *line) bool { return hasLeader(l.text) })
	for n < len(lines) {
		title, page := entry(lines[n], leaders)
		if page == "" {
			break
		}
		t.Cells = append(t.Cells,
			Cell{Text: title, Row: n, RowSpan: 1, ColSpan: 1},
			Cell{Text: page, Row: n, Col: 1, RowSpan: 1, ColSpan: 1})
		t.Rows = append(t.Rows, Box{lines[n].page, lines[n].shown})
		n++
	}
	if n < 3 {
		return 0
	}
	box := t.Rows[0]
	for _, r := range t.Rows[1:] {
		box.Box = union(box.Box, r.Box)
	}
	c.blocks = append(c.blocks, Block{Kind: assay.BlockTableRow, Table: t, Boxes: []Box{box}})
	return n
}
