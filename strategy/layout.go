package strategy

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
)

// write writes the text of an answer: the claims, each followed by its citation
// numbers, in the order of the draft.
func write(a *assay.Answer, draft role.Draft, claims []checkedClaim) {
	columns := columnsOf(draft)
	var text strings.Builder
	for i := 0; i < len(claims); {
		n := 1 // claims of one sentence, which stands as a whole
		for claims[i].whole && i+n < len(claims) && claims[i+n].sameSentence(claims[i]) {
			n++
		}
		var before *checkedClaim
		if i > 0 {
			before = &claims[i-1]
		}
		text.WriteString(lead(before, claims[i], columns, draft.Shape))
		writeSentence(a, &text, claims[i:i+n])
		i += n
	}
	a.Text = text.String()
	slices.SortStableFunc(a.Citations, func(x, y assay.Citation) int {
		return cmp.Or(cmp.Compare(x.Claim, y.Claim), cmp.Compare(x.Number, y.Number), cmp.Compare(x.Start, y.Start))
	})
}

// writeSentence writes claims of one sentence, or one alone, and the citation numbers of
// all of them behind it. Of a sentence of which a part fell what stands is said by itself.
func writeSentence(a *assay.Answer, text *strings.Builder, claims []checkedClaim) {
	first, at := claims[0], text.Len()
	switch {
	case first.row != nil:
		text.WriteString("| " + strings.Join(first.row.Cells, " | ") + " |")
	case first.whole:
		text.WriteString(withoutMarks(first.sentence))
	default:
		text.WriteString(withoutMarks(first.Alone()))
	}
	var numbers []int
	for _, c := range claims {
		claim := assay.Claim{Start: at, End: text.Len(), Verdict: c.Verdict, Score: c.Score, Citations: []int{}, Repaired: c.repaired}
		if first.whole { // marks keep their length
			claim.Start, claim.End = at+c.Start-c.From, at+c.End-c.From
		}
		for _, cit := range c.cited {
			cit.Claim = len(a.Claims)
			a.Citations = append(a.Citations, cit)
			if !slices.Contains(claim.Citations, cit.Number) {
				claim.Citations = append(claim.Citations, cit.Number)
			}
		}
		slices.Sort(claim.Citations)
		numbers = append(numbers, claim.Citations...)
		a.Claims = append(a.Claims, claim)
	}
	slices.Sort(numbers)
	for j, n := range slices.Compact(numbers) {
		if j == 0 {
			text.WriteByte(' ')
		}
		text.WriteString("[" + strconv.Itoa(n) + "]")
	}
	if first.row != nil {
		text.WriteString(" |")
	}
}

// sameSentence reports whether two claims are parts of one sentence.
func (c checkedClaim) sameSentence(o checkedClaim) bool {
	return c.statement >= 0 && c.statement == o.statement && c.row == nil && o.row == nil && c.From < c.To && c.From == o.From && c.To == o.To
}

// lead is what stands before a claim: what sets it apart from the one before, the
// heading where its section begins, and before a table's first row the table's head. A
// table has one column more than the draft's, for the citation numbers.
func lead(before *checkedClaim, c checkedClaim, columns []string, shape role.AnswerShape) string {
	first := before == nil
	begins := !first && before.section != c.section || first && c.section != ""
	gap := ""
	if !first {
		gap = "\n\n"
	}
	switch {
	case begins && c.section != "":
		if c.Item {
			shape = role.List // it is one under its heading
		}
		return gap + "## " + c.section + "\n\n" + lead(nil, checkedClaim{Claim: c.Claim, row: c.row}, columns, shape)
	case c.row != nil && !first && !begins && before.row != nil:
		return "\n"
	case c.row != nil:
		return gap + "| " + strings.Join(columns, " | ") + " | Sources |\n" + strings.Repeat("| --- ", len(columns)+1) + "|\n"
	case c.Item && (first && shape == role.List || begins || !first && before.row != nil):
		return gap + "- "
	case first:
		return ""
	case begins || before.row != nil:
		return gap
	}
	return separator(before.Claim, c.Claim)
}

// separator is what stands between two claims: list items, code and table rows
// keep their own lines.
func separator(before, after ground.Claim) string {
	if after.Item {
		return "\n- "
	}
	if before.Item {
		return "\n\n"
	}
	if strings.Contains(before.Text, "\n") || strings.Contains(after.Text, "\n") {
		return "\n\n"
	}
	return " "
}

// mark matches what reads like a citation number of the answer: digits in brackets
// that no word is joined to, as an index (args[1]) or a type ([4]byte) has one.
var mark = regexp.MustCompile(`\B\[(\d+(?:(?:, ?|[-–])\d+)*)\]\B`)

// withoutMarks writes a source's own note marks in parentheses, so that nothing in
// a document passes for a citation that the engine has minted. Code, which has
// lines or signs that prose has not, stays as it is.
func withoutMarks(claim string) string {
	if strings.ContainsAny(claim, "\n={};`") {
		return claim
	}
	return mark.ReplaceAllString(claim, "($1)")
}
