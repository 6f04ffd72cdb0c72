package ground

import "strings"

// A Row is a row of the table of a draft.
type Row struct {
	Columns  []string `json:"columns"`
	Cells    []string `json:"cells"`
	Sentence string   `json:"sentence"` // the row in words
}

// Claim returns the claim of the row: its sentence if that has the words of all cells, otherwise
// each cell with the head of its column.
func (r Row) Claim() string {
	have := stemsOf(wordsOf(r.Sentence))
	for _, cell := range r.Cells {
		if coverage(stemsOf(contentOf(wordsOf(cell))), have) < 1 {
			return r.pairs()
		}
	}
	if !hasWord(r.Sentence) {
		return r.pairs()
	}
	return r.Sentence
}

// pairs returns each cell with the head of its column.
func (r Row) pairs() string {
	var pairs []string
	for i, cell := range r.Cells {
		switch {
		case strings.TrimSpace(cell) == "":
		case i < len(r.Columns) && r.Columns[i] != "":
			pairs = append(pairs, r.Columns[i]+": "+cell)
		default:
			pairs = append(pairs, cell)
		}
	}
	return strings.Join(pairs, "; ")
}
