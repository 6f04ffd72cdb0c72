package strategy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/role"
)

// write writes the text of an answer: the claims in the order of the draft, each followed by its
// citation numbers.
func write(a *assay.Answer, draft role.Draft, claims []checkedClaim) {
	columns := columnsOf(draft)
	var text strings.Builder
	for i, c := range claims {
		var before *checkedClaim
		if i > 0 {
			before = &claims[i-1]
		}
		text.WriteString(lead(before, c, columns, draft.Shape))
		writeClaim(a, &text, c)
	}
	a.Text = text.String()
	sortCitations(a.Citations)
}

// sortCitations sorts citations by claim, number and place.
func sortCitations(citations []assay.Citation) {
	slices.SortStableFunc(citations, func(x, y assay.Citation) int {
		return cmp.Or(cmp.Compare(x.Claim, y.Claim), cmp.Compare(x.Number, y.Number), cmp.Compare(x.Start, y.Start))
	})
}

// writeClaim writes a claim and its citation numbers.
func writeClaim(a *assay.Answer, text *strings.Builder, c checkedClaim) {
	claim := assay.Claim{Start: text.Len(), Verdict: c.Verdict, Score: c.Score, Citations: []int{}, Repaired: c.repaired, Quoted: c.quoted}
	if c.decides != "" && c.row == nil {
		text.WriteString(string(c.decides) + ". ")
		claim.Start = text.Len()
	}
	if c.row != nil {
		text.WriteString("| " + strings.Join(c.row.Cells, " | ") + " |")
	} else {
		text.WriteString(withoutMarks(c.Text))
	}
	claim.End = text.Len()
	for _, cit := range c.cited {
		cit.Claim = len(a.Claims)
		a.Citations = append(a.Citations, cit)
		claim.Citations = append(claim.Citations, cit.Number)
	}
	slices.Sort(claim.Citations)
	claim.Citations = slices.Compact(claim.Citations)
	a.Claims = append(a.Claims, claim)
	for j, n := range claim.Citations {
		if j == 0 {
			text.WriteByte(' ')
		}
		text.WriteString("[" + strconv.Itoa(n) + "]")
	}
	if c.row != nil {
		text.WriteString(" |")
	}
}

// lead returns the text before a claim: the separator from the claim before, the heading if a
// section begins, and the head of a table before its first row. A table has one more column than
// the draft's, for the citation numbers.
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
			shape = role.List // an item after a heading begins a list
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
	case !begins && c.inItem && c.statement == before.statement:
		return " "
	case !c.Item && (before.inItem || c.statement != before.statement && strings.HasSuffix(c.Text, ":")):
		return gap // the introduction of a list begins a paragraph
	case begins || before.row != nil:
		return gap
	}
	return separator(before.Claim, c.Claim)
}

// separator returns the text between two claims. List items, code and table rows keep their own
// lines.
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

// mark matches text that looks like a citation number of the answer: digits in brackets that are
// not part of an index (args[1]) or a type ([4]byte).
var mark = lazyregexp.New(`\B\[(\d+(?:(?:, ?|[-–])\d+)*)\]\B`)

// withoutMarks puts a source's own note marks in parentheses, so that they are not taken for
// citation numbers of the answer. Code, recognised by line breaks and symbols that prose lacks, is
// not changed.
func withoutMarks(claim string) string {
	if strings.ContainsAny(claim, "\n={};`") {
		return claim
	}
	return mark.ReplaceAllString(claim, "($1)")
}
