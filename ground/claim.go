package ground

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
)

// A Claim is one checkable statement of a draft.
type Claim struct {
	Text     string
	Start    int // of Text in the statement, in bytes
	End      int
	Evidence []int // numbers that it cites, as the draft gave them
	Item     bool  // begins an item of a list

	// Lead is what the rest of its sentence lends a part of one: the subject "The Pro plan"
	// of "includes 100 GB". Empty: it needs nothing.
	Lead string

	// From and To are the bytes of the statement that the sentence has of which Text is
	// all or a part; several claims may have the same. Cut leaves them zero.
	From, To int
}

// Alone is the claim as a sentence by itself, with its Lead: what to show of a sentence of
// which another part fell. Of a whole sentence it is Text.
func (c Claim) Alone() string {
	if c.From == c.Start && c.End == c.To || c.From == c.To {
		return c.Text
	}
	text := strings.TrimRight(c.Text, " ,;:–—-")
	if c.Lead != "" {
		text = c.Lead + " " + text
	} else if plainWord(text) {
		text = upperFirst(text)
	}
	if last, _ := utf8.DecodeLastRuneInString(text); unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune(")%°€$\"”’'", last) {
		text += "."
	}
	return text
}

// plainWord reports whether a text begins with a word in lower case, and not with an
// identifier.
func plainWord(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return strings.IndexFunc(strings.TrimRight(word, ",'’"), func(r rune) bool { return !unicode.IsLower(r) }) < 0
}

// Cut cuts a statement into claims, one a sentence, each resting on all of the
// statement's evidence. A statement of several lines is code or a table row and
// stays whole. What holds no letter or digit claims nothing and is left out.
// Runs from before there was [Claims] are replayed with it.
func Cut(statement string, evidence []int) []Claim {
	whole := strings.TrimSpace(statement)
	from := strings.Index(statement, whole)
	spans := []sentence.Span{{Start: from, End: from + len(whole)}}
	if !strings.Contains(whole, "\n") {
		spans = sentence.Spans(statement)
	}
	var claims []Claim
	for _, sp := range spans {
		if text := statement[sp.Start:sp.End]; speaks(text) {
			claims = append(claims, Claim{Text: text, Start: sp.Start, End: sp.End, Evidence: evidence})
		}
	}
	return claims
}

// Claims cuts a statement into checkable ones, each resting on all of the statement's
// evidence: of a sentence that says two things of which each could stand by itself, "A
// costs 3 euros and includes B", two. Text is always the bytes [Start, End) of statement,
// and claims neither overlap nor change their order.
//
// Headings, questions and what commits to nothing ("I hope this helps.") are no claims and
// left out. A row of a table is one, and so is code, whatever it has of lines. A sentence
// is only cut in English, and only where that is sure: a condition, an introduction or a
// denied subject that may hold for both parts keeps it whole.
func Claims(statement string, evidence []int) []Claim {
	var claims []Claim
	for _, sp := range sentencesOf(statement) {
		text := statement[sp.Start:sp.End]
		if !speaks(text) || asks(text) || noncommittal(text) {
			continue
		}
		for _, part := range parts(text) {
			claims = append(claims, Claim{
				Text: text[part.Start:part.End], Start: sp.Start + part.Start, End: sp.Start + part.End,
				Lead: part.lead, From: sp.Start, To: sp.End, Evidence: evidence,
			})
		}
	}
	return claims
}

// speaks reports whether a text holds a letter or digit.
func speaks(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

var (
	fence = regexp.MustCompile("(?m)^\\s*(?:```|~~~)")
	rule  = regexp.MustCompile(`^[\s|:+=-]*$`)
	mdRow = regexp.MustCompile(`^\s*\|.*\|\s*$|^[^|]+(?: \| [^|]+){2,}$`)
	title = regexp.MustCompile(`^\s*(?:#{1,6}\s|(?:\*\*|__)[^*_]+(?:\*\*|__):?\s*$)|^\s*[\p{Lu}\d][^.!?]{0,78}:\s*$`)
)

// sentencesOf returns the sentences of a statement, the rows of its tables, and its code
// in one piece; its headings are left out.
func sentencesOf(statement string) []sentence.Span {
	whole := strings.TrimSpace(statement)
	from := strings.Index(statement, whole)
	if whole == "" {
		return nil
	}
	if !strings.Contains(whole, "\n") {
		switch {
		case mdRow.MatchString(whole):
			return []sentence.Span{{Start: from, End: from + len(whole)}}
		case title.MatchString(whole):
			return nil
		}
		return sentence.Spans(statement)
	}
	if fence.MatchString(whole) || surface.Code(proseOf(whole)) {
		return []sentence.Span{{Start: from, End: from + len(whole)}}
	}
	var out []sentence.Span
	prose := -1 // where the lines of prose began
	flush := func(to int) {
		if prose >= 0 {
			for _, sp := range sentence.Spans(statement[prose:to]) {
				out = append(out, sentence.Span{Start: prose + sp.Start, End: prose + sp.End})
			}
		}
		prose = -1
	}
	at := 0
	for line := range strings.SplitAfterSeq(statement, "\n") {
		trimmed := strings.TrimSpace(line)
		start := at + strings.Index(line, trimmed)
		switch {
		case mdRow.MatchString(trimmed) && !rule.MatchString(trimmed):
			flush(at)
			out = append(out, sentence.Span{Start: start, End: start + len(trimmed)})
		case title.MatchString(trimmed) || rule.MatchString(trimmed) && trimmed != "":
			flush(at)
		case prose < 0:
			prose = at
		}
		at += len(line)
	}
	flush(len(statement))
	return out
}

// proseOf is a text without its headings and the rows of its tables.
func proseOf(text string) string {
	var prose []string
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); !mdRow.MatchString(trimmed) && !rule.MatchString(trimmed) && !title.MatchString(trimmed) {
			prose = append(prose, line)
		}
	}
	return strings.Join(prose, "")
}
