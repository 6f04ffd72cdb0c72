package review

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/sentence"
)

// A Change is a piece of text that two versions share, or that only one has.
type Change struct {
	Op   string `json:"op"` // "same", "removed" or "added"
	Text string `json:"text"`
}

// maxPieces bounds the sentences that Diff compares; longer texts are compared as a whole.
const maxPieces = 1000

// Diff compares two texts sentence by sentence.
func Diff(before, after string) []Change {
	a, b := pieces(before), pieces(after)
	if len(a) > maxPieces || len(b) > maxPieces {
		a, b = []string{before}, []string{after}
	}
	// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	changes := []Change{}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			changes = append(changes, Change{"same", a[i]})
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			changes = append(changes, Change{"removed", a[i]})
			i++
		default:
			changes = append(changes, Change{"added", b[j]})
			j++
		}
	}
	for _, s := range a[i:] {
		changes = append(changes, Change{"removed", s})
	}
	for _, s := range b[j:] {
		changes = append(changes, Change{"added", s})
	}
	return slices.Clip(changes)
}

// trailer matches what belongs to the sentence before: its citations, or the mark of a reviewer's own.
var trailer = lazyregexp.New(`^(?:(?:\[\d{1,4}\])+|\(statement of the reviewer [^)]*\))\s*`)

// pieces returns the sentences of a text, each with its citations.
func pieces(text string) []string {
	var out []string
	for _, s := range sentence.Spans(text) {
		piece := text[s.Start:s.End]
		if of := trailer.FindString(piece); of != "" && len(out) > 0 {
			out[len(out)-1] += " " + strings.TrimSpace(of)
			piece = piece[len(of):]
		}
		if piece = strings.TrimSpace(piece); piece != "" {
			out = append(out, piece)
		}
	}
	return out
}
