package strategy

import (
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

// refuseSwappedCells refuses rows of a table whose sentences name two cells in another order than
// those of most rows. One of these cells is then in a wrong column, and the source does not tell
// which. If both orders are equally frequent, all rows are refused. A cell that its sentence does
// not name exactly once is ignored.
func refuseSwappedCells(claims []checkedClaim) {
	columns := 0
	for _, c := range claims {
		if c.row != nil && c.Verdict == assay.Supported {
			columns = len(c.row.Cells)
		}
	}
	var wrong []int
	for i := range columns {
		for j := range i {
			var before, after []int
			for k, c := range claims {
				if c.row == nil || c.Verdict != assay.Supported {
					continue
				}
				switch a, b := cellOffset(c.row, j), cellOffset(c.row, i); {
				case a < 0 || b < 0 || a == b:
				case a < b:
					before = append(before, k)
				default:
					after = append(after, k)
				}
			}
			if len(before) > 0 && len(before) <= len(after) {
				wrong = append(wrong, before...)
			}
			if len(after) > 0 && len(after) <= len(before) {
				wrong = append(wrong, after...)
			}
		}
	}
	for _, k := range wrong {
		claims[k].Judgement = ground.Judgement{Verdict: assay.Unsupported, Reason: "its cells are in different columns than those of the other rows"}
	}
}

// cellOffset returns the offset of a cell in its row's sentence, or -1 if it occurs there not at
// all or more than once.
func cellOffset(row *ground.Row, cell int) int {
	sentence, text := strings.ToLower(row.Sentence), strings.ToLower(row.Cells[cell])
	if text == "" || strings.Count(sentence, text) != 1 {
		return -1
	}
	return strings.Index(sentence, text)
}
