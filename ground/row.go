package ground

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
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
// its cells stand together: all in that sentence, or in sentences of the cited words
// about what the first cell names. Without a sentence the cited words have to hold them
// so.
//
// The heads of columns are labels, and their words need not be in the source, which
// seldom has them ("Price"). A head that bounds or denies something is more than a
// label, and no row under it is supported. That a cell stands under the right head is
// told only where the source has the head's words with another cell, or is a table itself:
// a row that is a part of one of its rows, each cell under its own head, is supported.
func (l Local) VerifyRow(ctx context.Context, row Row, cited []Passage) (Judgement, error) {
	if err := ctx.Err(); err != nil {
		return Judgement{}, err
	}
	best := Judgement{Verdict: assay.Unsupported, Reason: "cites nothing"}
	cells := row.read()
	for i, p := range cited {
		j, ok := judgeTableRow(row, p, i)
		if !ok {
			j = judgeRow(row.Sentence, cells, p)
		}
		if i == 0 || better(j, best) {
			best = j
		}
	}
	return best, nil
}

func judgeRow(text string, cells []cell, p Passage) Judgement {
	sources, t := sourcesOf(p), topicOf(p.Heading)
	j := Judgement{Verdict: assay.Supported, Score: 0.9, Reason: "its cells stand together in the source"}
	if strings.TrimSpace(text) != "" {
		if j = judge(text, p); j.Verdict != assay.Supported {
			return j
		}
		sources = append(sources, source{reading: read(text)})
	}
	if !rowHolds(cells, sources, t) {
		return Judgement{Verdict: assay.Unsupported, Score: 0.3, Reason: "its cells do not stand together in the source in these words"}
	}
	return j
}

// read returns the cells that say something, with their heads.
func (r Row) read() []cell {
	var cells []cell
	for i, text := range r.Cells {
		c := cell{text: read(text).terms}
		if i < len(r.Columns) {
			c.head = read(r.Columns[i]).terms
		}
		if len(c.text) > 0 {
			cells = append(cells, c)
		}
	}
	return cells
}

// A cell is one of a table's row, with the head of its column.
type cell struct {
	head, text []term
}

var headed = regexp.MustCompile(`^([^:;]{1,60}):\s+(.+)$`)

// cellsOf reads a claim of the form "head: cell; head: cell", as rows of tables are
// written, an empty head without its colon. It is nil for what is not so.
func cellsOf(claim string) []cell {
	var cells []cell
	heads := 0
	for part := range strings.SplitSeq(strings.TrimSuffix(claim, "."), "; ") {
		c := cell{text: read(part).terms}
		if m := headed.FindStringSubmatch(part); m != nil {
			heads++
			c = cell{head: read(m[1]).terms, text: read(m[2]).terms}
		}
		if !checkable(c.text) {
			return nil
		}
		cells = append(cells, c)
	}
	if len(cells) < 2 || heads == 0 {
		return nil
	}
	return cells
}

// rowHolds reports whether a source holds the first cell of a row, and it, or those
// after it that are about the same, each other cell; or all of them a source under the
// heading that the first cell names.
func rowHolds(cells []cell, sources []source, t topic) bool {
	if len(cells) == 0 || slices.ContainsFunc(cells, func(c cell) bool { return !c.labelled() }) {
		return false
	}
	for i, s := range sources {
		at := placed(s.terms, cells[0].text)
		if at < 0 && !t.named(cells[0].text) {
			continue
		}
		if !slices.ContainsFunc(cells[1:], func(c cell) bool { return !c.stands(sources, i, at) }) {
			return true
		}
	}
	return false
}

// labelled reports whether the head of a cell is no more than a label: a few words that
// neither deny nor bound nor demand anything.
func (c cell) labelled() bool {
	const most = 4
	return len(c.head) <= most && !marked(c.head, ^(isIn|isFor|isTo|isAnd|isBy)) && !numbered(c.head)
}

// stands reports whether a cell stands in source i, whose subject stands at its term at,
// or in one after it that says more of the same.
func (c cell) stands(sources []source, i, at int) bool {
	for j := i; j < len(sources); j++ {
		if j > i && !sources[j].again {
			break
		}
		terms := sources[j].terms
		to := placed(terms, c.text)
		if to < 0 || !c.heads(terms, to) {
			continue
		}
		if j > i || at < 0 || !parted(terms[min(at, to):to], c.text) {
			return true
		}
	}
	return false
}

// heads reports whether what a cell is called does not stand in its sentence with
// another one: a head that the sentence has not says nothing.
func (c cell) heads(terms []term, at int) bool {
	for i, t := range terms {
		if !slices.ContainsFunc(c.head, func(h term) bool { return h.stem == t.stem && h.stem != "" }) {
			continue
		}
		var between []term
		switch end := at + len(c.text); {
		case i < at:
			between = terms[i+1 : at]
		case i >= end:
			between = terms[end:i]
		}
		if parted(between, c.text) {
			return false
		}
	}
	return true
}

// parted reports whether among terms there is another amount of what a cell counts.
func parted(terms, cell []term) bool {
	counted := amounts(cell)
	return slices.ContainsFunc(amounts(terms), func(what string) bool { return slices.Contains(counted, what) })
}

// amounts returns what the numbers among terms count, by its stem; empty where nothing
// follows.
func amounts(terms []term) []string {
	var counted []string
	for i, t := range terms {
		switch {
		case t.number && i+1 < len(terms):
			counted = append(counted, terms[i+1].stem)
		case t.number:
			counted = append(counted, "")
		}
	}
	return counted
}

// placed returns where cell stands in terms, whole and marked alike but for the small
// words before its first; -1 where it does not.
func placed(terms, cell []term) int {
	const bound = isAtMost | isAtLeast | isMore | isLess | isAbout | isNot | isOnly
	for i := 0; i+len(cell) <= len(terms); i++ {
		ok := true
		for j, c := range cell {
			t := terms[i+j]
			if j == 0 {
				t.marks, c.marks, t.be, c.be = t.marks&bound, c.marks&bound, false, false
			}
			ok = ok && same(t, c, false) && (j == 0 || t.edge == c.edge)
		}
		if ok {
			return i
		}
	}
	return -1
}
