package strategy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/layout"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/role"
)

// claimsOf cuts a draft into claims, each with its citations in the evidence. The text of a claim
// is shown, so it is cleaned first. Unusable holds the indexes of statements that cannot be shown
// after that. Statements that assert nothing are in neither result. Quoted means that the draft was
// not written by a model: its sentences are those of the documents.
func (e Env) claimsOf(draft role.Draft, quoted bool, evidence []assay.Evidence, passages []passage, notes *noteList) (claims []checkedClaim, unusable []int) {
	columns := columnsOf(draft)
	uri := func(n int) string { return evidence[n-1].Hit.URI }
	for i, st := range draft.Statements {
		if slices.ContainsFunc(st.Evidence, func(n int) bool { return n < 1 || n > len(evidence) }) {
			notes.say(assay.NoteRole, "generator: an unknown citation number was left out")
		}
		if quoted && quotesDescription(st, evidence, passages) {
			unusable = append(unusable, i)
			notes.say(assay.NoteLeftOut, "a model's description of an image is not quoted as the words of the document")
			continue
		}
		from := sourcesOf(st.Evidence, uri, passages)
		var cut []ground.Claim
		var text string
		var row *ground.Row
		var dropped bool
		switch {
		case st.Cells != nil && len(st.Cells) != len(columns):
			unusable = append(unusable, i)
			notes.say(assay.NoteLeftOut, "generator: a table's row that does not fit its columns was left out")
		case st.Cells != nil:
			var cells []string
			if cells, dropped = cellsOf(st.Cells, from); !dropped && strings.Join(cells, "") != "" {
				sentence, _ := from.statement(st.Text) // judged, not shown
				if lexical.Negations(sentence) != lexical.Negations(strings.Join(cells, "; ")) {
					sentence = "" // the cells do not have the same negations
				}
				row = &ground.Row{Columns: columns, Cells: cells, Sentence: sentence}
				cut = []ground.Claim{{Text: rowText(columns, cells), Evidence: st.Evidence}}
			}
		default:
			text, dropped = from.statement(st.Text)
			cut = ground.Cut(text, st.Evidence)
			if announces := strings.HasSuffix(strings.TrimSpace(text), ":"); quoted && announces && len(cut) == 0 {
				cut = []ground.Claim{{Text: text, End: len(text), Evidence: st.Evidence}} // the items after it need it
			}
		}
		switch {
		case dropped && len(cut) == 0:
			unusable = append(unusable, i)
			notes.say(assay.NoteLeftOut, "generator: a statement with a link, an image or markup that is not of the cited sources was left out")
		case dropped:
			notes.say(assay.NoteLeftOut, "generator: a link that is not of the cited sources was left out of a statement")
		}
		for j, c := range cut {
			c.Item = st.Item && j == 0
			claim := cite(c, wordsOf(c, row), evidence, passages)
			claim.statement, claim.row, claim.section, claim.inItem = i, row, sources{}.line(st.Section), st.Item
			if quoted && j == 0 && (st.Decides == role.Yes || st.Decides == role.No) {
				claim.decides = st.Decides
			}
			claims = append(claims, claim)
		}
	}
	return bySection(claims), unusable
}

// quotesDescription reports whether the words of a statement are in a model's description of an image,
// or rest on one.
func quotesDescription(st role.Statement, evidence []assay.Evidence, passages []passage) bool {
	return slices.ContainsFunc(st.Evidence, func(n int) bool {
		if n < 1 || n > len(evidence) {
			return false
		}
		start, end := ground.Locate(st.Text, passages[n-1].Text)
		return passages[n-1].describes(evidence[n-1].Hit, start, end)
	})
}

// resolve sets the standalone form of each claim, given the question and the claim before it.
func resolve(question string, claims []checkedClaim) {
	before := ""
	for i := range claims {
		c := &claims[i]
		if c.row != nil {
			continue
		}
		if said := ground.Standalone(question, before, c.Text); said != c.Text {
			c.standalone = said
		}
		before = c.Text
	}
}

// bySection groups claims by section: those without one first, then the sections in order of first
// appearance.
func bySection(claims []checkedClaim) []checkedClaim {
	at := map[string]int{"": 0}
	for _, c := range claims {
		if _, ok := at[c.section]; !ok {
			at[c.section] = len(at)
		}
	}
	slices.SortStableFunc(claims, func(a, b checkedClaim) int { return cmp.Compare(at[a.section], at[b.section]) })
	return claims
}

// columnsOf returns the column heads of a draft's table in the form in which they are shown.
func columnsOf(draft role.Draft) []string {
	columns := make([]string, len(draft.Columns))
	for i, c := range draft.Columns {
		columns[i], _ = sources{}.cell(c)
	}
	return columns
}

// cellsOf returns a row's cells in the form in which they may be shown. Dropped reports that one of
// them may not be shown.
func cellsOf(cells []string, from sources) (out []string, dropped bool) {
	out = make([]string, len(cells))
	for i, c := range cells {
		gone := false
		out[i], gone = from.cell(c)
		dropped = dropped || gone && out[i] == ""
	}
	return out, dropped
}

// cell returns the text of a table's cell in the form in which it may be shown: on one line, and
// without the character that ends a cell.
func (s sources) cell(text string) (shown string, dropped bool) {
	text, dropped = s.statement(text)
	text = strings.Join(strings.Fields(text), " ")
	return strings.ReplaceAll(text, "|", "/"), dropped
}

// rowText returns a row as text: the head and content of each filled cell. This text is shown and
// judged by the verifier. The local verifier judges the generator's sentence for the row instead if
// that has the words of all cells (see ground.Row.Claim), since sources seldom contain the heads.
func rowText(columns, cells []string) string {
	var pairs []string
	for i, cell := range cells {
		switch {
		case cell == "":
		case columns[i] == "":
			pairs = append(pairs, cell)
		default:
			pairs = append(pairs, columns[i]+": "+cell)
		}
	}
	return strings.Join(pairs, "; ")
}

// wordsOf returns the words by which a claim's citation is located. For a row they are those of its
// sentence, or of its cells if it has none.
func wordsOf(c ground.Claim, row *ground.Row) string {
	if row == nil {
		return c.Text
	}
	if row.Sentence != "" {
		return row.Sentence
	}
	return strings.Join(row.Cells, "; ")
}

// cite locates the words of the evidence that support a claim. If the evidence shares no word with
// the claim, for example because it is in another language, cite cites the whole passage.
func cite(c ground.Claim, words string, evidence []assay.Evidence, passages []passage) checkedClaim {
	claim := checkedClaim{Claim: c}
	var cited []int
	for _, n := range c.Evidence {
		if n < 1 || n > len(evidence) || passages[n-1].Text == "" || slices.Contains(cited, n) {
			continue // unknown number, or the bytes are not those searched
		}
		cited = append(cited, n)
		start, end := ground.Locate(words, passages[n-1].Text)
		if start == end {
			start, end = 0, len(passages[n-1].Text)
		}
		claim.cited = append(claim.cited, citation(evidence[n-1], passages[n-1], start, end))
	}
	return claim
}

// verbatim reports whether a quotation is an item or a row of its cited passages, word for word. It
// is shown with its introduction or its heads.
func verbatim(st role.Statement, passages []passage) bool {
	if !st.Item && (st.Cells == nil || !slices.Equal(st.Cells, layout.Cells(st.Text))) {
		return false
	}
	from := sourcesOf(st.Evidence, func(int) string { return "" }, passages)
	return from.holds(st.Text)
}

// citeHeads makes a table row also cite the line of its passage with the column heads, if there is
// one.
func (c *checkedClaim) citeHeads(evidence []assay.Evidence, passages []passage) {
	if c.row == nil || len(c.cited) == 0 {
		return
	}
	n := c.cited[0].Number
	at := 0
	for line := range strings.Lines(passages[n-1].Text) {
		bare := strings.TrimSpace(line)
		if slices.Equal(layout.Cells(bare), c.row.Columns) {
			start := at + strings.Index(line, bare)
			heads := citation(evidence[n-1], passages[n-1], start, start+len(bare))
			if !slices.ContainsFunc(c.cited, func(o assay.Citation) bool { return o.Number == n && o.Start <= heads.Start && heads.End <= o.End }) {
				c.cited = append(c.cited, heads)
			}
			return
		}
		at += len(line)
	}
}
