package ground

import (
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/sentence"
)

// A Claim is one checkable statement of a draft.
type Claim struct {
	Text     string
	Start    int // of Text in the statement, in bytes
	End      int
	Evidence []int // evidence numbers given by the draft
	Item     bool  // begins an item of a list
}

// Cut cuts a statement into claims: one for each sentence, list item, table row and block of
// code. Each claim rests on all of the statement's evidence. Text is the bytes [Start, End) of
// the statement; claims are in order and do not overlap. Headings, questions and text without
// a letter or digit are left out.
func Cut(statement string, evidence []int) []Claim {
	var claims []Claim
	for _, u := range unitsOf(statement) {
		text := statement[u.Start:u.End]
		if !hasWord(text) || isQuestion(text) || isHeading(text) {
			continue
		}
		claims = append(claims, Claim{Text: text, Start: u.Start, End: u.End, Evidence: evidence})
	}
	return claims
}

var (
	codeFence   = lazyregexp.New("^\\s*(?:```|~~~)")
	tableRow    = lazyregexp.New(`^\s*\|.*\|\s*$|^[^|]+(?: \| [^|]+){1,}$`)
	tableRule   = lazyregexp.New(`^[\s|:+=-]+$`)
	headingLine = lazyregexp.New(`^\s*(?:#{1,6}\s.*|(?:\*\*|__)[^*_]+(?:\*\*|__):?\s*|[\p{Lu}\d][^.!?]{0,78}:\s*)$`)
	itemMark    = lazyregexp.New(`^\s*(?:[-*•+–◦▪‣]|\d{1,2}[.)]|\(?[a-z]\))\s+`)
)

// isHeading reports whether a text is a heading or the lead-in of a list.
func isHeading(text string) bool {
	return headingLine.MatchString(text) && !strings.Contains(text, "\n")
}

// isQuestion reports whether a sentence is a question.
func isQuestion(text string) bool {
	return strings.HasSuffix(strings.TrimRight(text, " \t\n\"'”’»)*_"), "?")
}

// hasWord reports whether a text has a letter or digit.
func hasWord(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// A unit is a sentence, a list item, a table row or a block of code: the bytes [Start, End) of a
// text. Lead is the sentence that introduces its list, or the header of its table.
type unit struct {
	sentence.Span
	Lead sentence.Span // empty if there is none
}

// maxUnits bounds the units of a text; the rest of a longer text is one unit.
const maxUnits = 2000

// unitsOf cuts a text into its units, in order.
func unitsOf(text string) []unit {
	c := cutter{text: text, prose: -1}
	fenced := -1 // start of a fenced block of code
	at := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		start, next := at, at+len(line)
		at = next
		trimmed := strings.TrimSpace(line)
		switch {
		case codeFence.MatchString(line) && fenced < 0:
			c.endProse(start)
			fenced = start
		case codeFence.MatchString(line):
			c.add(sentence.Span{Start: fenced, End: next}, sentence.Span{})
			fenced = -1
		case fenced >= 0:
		case trimmed != "" && tableRule.MatchString(trimmed) && strings.ContainsAny(trimmed, "|-="):
			c.endProse(start)
		case isRow(trimmed):
			c.endProse(start)
			c.row(start, next)
			continue
		case isHeading(trimmed) && !itemMark.MatchString(trimmed):
			c.endProse(start)
			c.add(sentence.Span{Start: start, End: next}, sentence.Span{})
			if strings.HasSuffix(trimmed, ":") {
				c.lead = c.units[len(c.units)-1].Span
			}
		case c.prose < 0:
			c.prose = start
		}
		if !tableRule.MatchString(trimmed) {
			c.header = sentence.Span{}
		}
	}
	if fenced >= 0 {
		c.add(sentence.Span{Start: fenced, End: len(text)}, sentence.Span{})
	}
	c.endProse(len(text))
	return c.units
}

// isRow reports whether a line is a row of a table: bars separate its cells. Lines of code
// also have bars and are not rows.
func isRow(line string) bool {
	return tableRow.MatchString(line) && (line[0] == '|' || !strings.ContainsAny(line, ";{}=`$"))
}

// A cutter is the state of unitsOf.
type cutter struct {
	text   string
	units  []unit
	prose  int           // start of the current run of prose; -1: none
	lead   sentence.Span // introduces the list items that follow
	header sentence.Span // of the current table
}

// add appends the unit of a span, without the blanks around it.
func (c *cutter) add(sp, lead sentence.Span) {
	text := c.text[sp.Start:sp.End]
	sp.Start += len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	sp.End -= len(text) - len(strings.TrimRightFunc(text, unicode.IsSpace))
	switch {
	case sp.Start >= sp.End:
	case len(c.units) >= maxUnits:
		c.units[len(c.units)-1].End = sp.End
	default:
		c.units = append(c.units, unit{sp, lead})
	}
}

// row appends a row of a table. The first row of a table is its header.
func (c *cutter) row(start, end int) {
	lead := c.header
	c.add(sentence.Span{Start: start, End: end}, lead)
	if lead == (sentence.Span{}) {
		c.header = c.units[len(c.units)-1].Span
	}
}

// endProse appends the sentences of the current run of prose, which ends at end.
func (c *cutter) endProse(end int) {
	if c.prose < 0 {
		return
	}
	start := c.prose
	c.prose = -1
	for _, sp := range blocksOf(c.text[start:end]) {
		sp.Start, sp.End = start+sp.Start, start+sp.End
		text := c.text[sp.Start:sp.End]
		if !itemMark.MatchString(text) {
			c.lead = sentence.Span{}
		}
		c.add(sp, c.lead)
		if strings.HasSuffix(text, ":") {
			c.lead = sp
		}
	}
}

// blocksOf returns the sentences of prose. A paragraph that is code stays whole.
func blocksOf(text string) []sentence.Span {
	var spans []sentence.Span
	at := 0
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if strings.Contains(strings.TrimSpace(paragraph), "\n") && lexical.Code(paragraph) {
			spans = append(spans, sentence.Span{Start: at, End: at + len(paragraph)})
		} else {
			for _, sp := range sentence.Spans(paragraph) {
				spans = append(spans, sentence.Span{Start: at + sp.Start, End: at + sp.End})
			}
		}
		at += len(paragraph) + len("\n\n")
	}
	return spans
}
