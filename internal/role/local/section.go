package local

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/layout"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
)

// openly matches questions about a topic as a whole, rather than for a number, a place or a
// name.
var openly = lazyregexp.New(`(?i)^(?:what(?:'s| is| are| was| were| about)|how (?:do|does|to|can|could|should|must|is|are)|which|tell|explain|describe)\b`)

// ofText are words for a kind of text rather than its topic: "the vacation policy" is the
// section "Vacation".
var ofText = map[string]bool{
	"policy": true, "policies": true, "rule": true, "rules": true, "regulation": true, "regulations": true, "procedure": true, "procedures": true,
	"process": true, "guideline": true, "guidelines": true, "information": true, "info": true, "details": true, "section": true, "chapter": true,
	"overview": true, "summary": true,
}

// namesSection reports whether a question asks openly for the section under the last of the
// headings: it has all words of this heading, and each of its words is in the headings or the
// title.
func namesSection(question, title string, headings []string) bool {
	isOpen := openly.MatchString(question) || !asks.MatchString(question)
	if !isOpen || len(headings) == 0 {
		return false
	}
	subject := func(text string) map[string]bool {
		words := slices.DeleteFunc(contentWords(text), func(w string) bool { return ofText[strings.ToLower(w)] })
		return stems("", words...)
	}
	asked, last := subject(question), subject(headings[len(headings)-1])
	if len(asked) == 0 || len(last) == 0 {
		return false
	}
	all := stems("", append(slices.Clone(headings), title)...)
	return within(asked, last) && within(all, asked)
}

// namesSectionOf reports whether a question asks for the section of a hit.
func namesSectionOf(question string, h assay.Hit) bool {
	return namesSection(question, h.Title, h.Chunk.Headings)
}

// gistWords is the number of words that are quoted of a section that a question names.
const gistWords = 60

// section returns the index of the first passage whose heading a question names, or of an
// earlier one in the same document. It is -1 if there is no such passage.
func (p passages) section(question string) int {
	best := -1
	for i, h := range p.hits {
		if !namesSectionOf(question, h) {
			continue
		}
		if best < 0 || h.Chunk.Document == p.hits[best].Chunk.Document && h.Chunk.Start < p.hits[best].Chunk.Start {
			best = i
		}
	}
	return best
}

// gist quotes the beginning of a passage, and the likeliest answer in it.
func (p passages) gist(passage int, spots []spot) []layout.Quote {
	out := p.layouts[passage].Gist(gistWords)
	if len(spots) > 0 && spots[0].passage == passage {
		out = append(out, p.quotes(spots[0])...)
	}
	return layout.Distinct(out)
}

// verb matches a yes-no question, and captures its words after the verb.
var verb = lazyregexp.New(`(?i)^(?:is|are|was|were|do|does|did|can|could|may|might|must|should|will|would|has|have)\s+(.+?)[?. ]*$`)

// asClaim returns a yes-no question as a claim, without its verb: "dogs need a leash." for "Do
// dogs need a leash?". It returns nothing for other questions, and for those with a negation
// or a choice.
func asClaim(question string) string {
	m := verb.FindStringSubmatch(question)
	if m == nil || lexical.Negations(question) > 0 || slices.Contains(strings.Fields(strings.ToLower(question)), "or") {
		return ""
	}
	return m[1] + "."
}
