package ground

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/surface"
)

// A Row is a table's row as a claim.
type Row struct {
	Columns  []string `json:"columns"`  // the heads
	Cells    []string `json:"cells"`    // one for each column
	Sentence string   `json:"sentence"` // what the row says, by whoever wrote it; may be empty
}

// A RowVerifier is a Verifier that judges a row by its parts, and not by a text made of
// them.
type RowVerifier interface {
	VerifyRow(ctx context.Context, row Row, cited []Passage) (Judgement, error)
}

// VerifyRow implements RowVerifier. A row is supported when its sentence is, and when
// the same cited words hold every word, number and name of its cells. Without a
// sentence the cells are judged, one after the other, as if they were one.
//
// The heads of columns are labels, and are not judged: sources seldom hold them
// ("Price"). That a cell stands under the right head Local cannot tell.
func (l Local) VerifyRow(ctx context.Context, row Row, cited []Passage) (Judgement, error) {
	cells := strings.Join(row.Cells, "; ")
	if strings.TrimSpace(row.Sentence) == "" {
		return l.Verify(ctx, cells, cited)
	}
	best := Judgement{Verdict: assay.Unsupported, Reason: "cites nothing"}
	for i, p := range cited {
		j, err := l.Verify(ctx, row.Sentence, []Passage{p})
		if err != nil {
			return Judgement{}, err
		}
		if lacks := lacking(cells, p); j.Verdict == assay.Supported && lacks != "" {
			j = Judgement{Verdict: assay.Unsupported, Reason: fmt.Sprintf("the cells' %q is not in the source", lacks)}
		}
		if i == 0 || better(j, best) {
			best = j
		}
	}
	return best, nil
}

// lacking returns a word, number or name of a text that a passage does not hold; empty:
// it holds all.
func lacking(text string, p Passage) string {
	around := p.Quote + "\n" + strings.Join(p.Heading, "\n")
	if number, ok := missing(surface.Numbers(text), surface.Numbers(around)); !ok {
		return number
	}
	held := termSet(around)
	for _, name := range surface.Names(text) {
		if !covers(held, name) {
			return name
		}
	}
	for _, word := range strings.Fields(text) {
		for term := range termSet(word) {
			if !held[term] {
				return word
			}
		}
	}
	return ""
}
