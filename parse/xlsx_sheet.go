package parse

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/ooxml"
)

// An xlsxCell is a cell with text, or one that a merged cell covers.
type xlsxCell struct {
	row, col int32
	owner    int32 // the index of the cell that covers it, or its own
	text     string
}

// An area is a rectangle of cells, including its last row and column.
type area struct{ row0, col0, row1, col1 int32 }

func (a area) contains(row, col int32) bool {
	return row >= a.row0 && row <= a.row1 && col >= a.col0 && col <= a.col1
}

// An xlsxGrid is the cells of a sheet.
type xlsxGrid struct {
	cells  []xlsxCell
	merged []area
	heads  []area // rows of column names of defined tables
	spans  map[int32]area
}

// readSheet reads the cells of a sheet that have text.
func (x *xlsxReader) readSheet(part string, grid *xlsxGrid) error {
	d, err := x.pkg.Decoder(part, maxSheetBytes)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Root(); err != nil {
		return err
	}
	row := int32(-1)
	return d.Children(func(n *ooxml.Node) error {
		switch n.Name {
		case "sheetData":
			return d.Children(func(n *ooxml.Node) error {
				if n.Name != "row" {
					return nil
				}
				row++
				return x.readRow(d, n, &row, grid)
			})
		case "mergeCells":
			return d.Children(func(n *ooxml.Node) error {
				if a, ok := parseArea(n.Attr("ref")); ok && len(grid.merged) < maxMerged {
					grid.merged = append(grid.merged, a)
				}
				return nil
			})
		}
		return nil
	})
}

// readRow reads a row, which is at *row unless it says otherwise.
func (x *xlsxReader) readRow(d *ooxml.Decoder, n *ooxml.Node, row *int32, grid *xlsxGrid) error {
	if err := x.b.ctx.Err(); err != nil {
		return err
	}
	if r := n.Attr("r"); r != "" {
		v, err := strconv.Atoi(r)
		if err != nil || v < 1 || v > maxRow {
			return fmt.Errorf("%w: a row has the number %q", ooxml.ErrDamaged, r)
		}
		*row = int32(v - 1)
	}
	col := int32(-1)
	return d.Children(func(n *ooxml.Node) error {
		if n.Name != "c" {
			return nil
		}
		col++
		at := *row
		if r := n.Attr("r"); r != "" {
			var ok bool
			if at, col, ok = parseCell(r); !ok {
				return fmt.Errorf("%w: a cell is at %q", ooxml.ErrDamaged, r)
			}
		}
		if *row >= maxRow || col >= maxCol {
			return fmt.Errorf("%w: a sheet has too many rows or columns", ooxml.ErrDamaged)
		}
		n, err := d.Tree(n)
		if err != nil {
			return err
		}
		return x.addCell(grid, at, col, x.value(n))
	})
}

func (x *xlsxReader) addCell(grid *xlsxGrid, row, col int32, text string) error {
	if isBlank(text) {
		return nil
	}
	x.cells++
	x.text += len(text)
	switch {
	case x.cells > maxCells:
		return fmt.Errorf("it has more than %d cells with text: %w", maxCells, ErrLimit)
	case x.text > maxCellText:
		return fmt.Errorf("its cells have more than %d MiB of text: %w", maxCellText>>20, ErrLimit)
	}
	grid.cells = append(grid.cells, xlsxCell{row: row, col: col, text: text})
	return nil
}

// value returns the text of a c element. A formula without a stored result is the formula.
func (x *xlsxReader) value(n *ooxml.Node) string {
	v := n.Child("v").String()
	if formula := n.Child("f"); v == "" && formula.String() != "" {
		return "=" + formula.Text
	}
	switch n.Attr("t") {
	case "s":
		i, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil || i < 0 || i >= len(x.strings) {
			return ""
		}
		return x.strings[i]
	case "inlineStr":
		if is := n.Child("is"); is != nil {
			return richText(is)
		}
		return ""
	case "str", "e":
		return unescape(v)
	case "d":
		return strings.TrimSuffix(strings.Replace(v, "T", " ", 1), " 00:00:00")
	case "b":
		if v == "1" || v == "true" {
			return "TRUE"
		}
		return "FALSE"
	}
	style, err := strconv.Atoi(n.Attr("s"))
	if err != nil {
		style = 0
	}
	return x.formats.display(v, style)
}

// parseCell reads a reference such as "AB12".
func parseCell(s string) (row, col int32, ok bool) {
	i := 0
	for ; i < len(s) && s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z'; i++ {
		if col = col*26 + int32(s[i]|0x20-'a') + 1; col > maxCol {
			return 0, 0, false
		}
	}
	n, err := strconv.Atoi(s[i:])
	if err != nil || col == 0 || n < 1 || n > maxRow {
		return 0, 0, false
	}
	return int32(n - 1), col - 1, true
}

// parseArea reads a reference such as "A1:B2".
func parseArea(s string) (area, bool) {
	from, to, two := strings.Cut(strings.ReplaceAll(s, "$", ""), ":")
	var a area
	var ok bool
	if a.row0, a.col0, ok = parseCell(from); !ok {
		return a, false
	}
	if a.row1, a.col1 = a.row0, a.col0; !two {
		return a, true
	}
	a.row1, a.col1, ok = parseCell(to)
	return a, ok && a.row1 >= a.row0 && a.col1 >= a.col0
}
