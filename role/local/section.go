package local

import (
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/layout"
	"github.com/assay-rag/assay/internal/surface"
)

// openly matches questions that ask for what there is to say about something, or for what
// there is of something, rather than for a number, a place or a name.
var openly = regexp.MustCompile(`(?i)^(?:what(?:'s| is| are| was| were| about)|how (?:do|does|to|can|could|should|must|is|are)|which|tell|explain|describe)\b`)

// ofText are words for the text itself rather than for what it is about: "the vacation
// policy" is what stands under "Vacation".
var ofText = map[string]bool{
	"policy": true, "policies": true, "rule": true, "rules": true, "regulation": true, "regulations": true, "procedure": true, "procedures": true,
	"process": true, "guideline": true, "guidelines": true, "information": true, "info": true, "details": true, "section": true, "chapter": true,
	"overview": true, "summary": true,
}

// namesSection reports whether a question asks openly for what stands under a heading, the
// last of those given: it has the heading's words and no others that the headings above and
// the title do not have.
func namesSection(question, title string, headings []string) bool {
	if !openly.MatchString(question) && asks.MatchString(question) {
		return false
	}
	if len(headings) == 0 {
		return false
	}
	subject := func(text string) map[string]bool {
		words := slices.DeleteFunc(contentWords(text), func(w string) bool { return ofText[strings.ToLower(w)] })
		return stems("", words...)
	}
	asked, last := subject(question), subject(headings[len(headings)-1])
	return len(asked) > 0 && len(last) > 0 && within(asked, last) && within(stems("", append(slices.Clone(headings), title)...), asked)
}

// namesSectionOf reports whether a question asks for the section of a hit.
func namesSectionOf(question string, h assay.Hit) bool {
	return namesSection(question, h.Title, h.Chunk.Headings)
}

// gistWords is how many words of a section answer a question that asks for the section.
const gistWords = 60

// section returns the index of the first passage that a question asks for by its heading;
// of several of one document the earliest. -1: it asks for none.
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

// verb matches a question that "Yes" or "No" answers, and what it asks about.
var verb = regexp.MustCompile(`(?i)^(?:is|are|was|were|do|does|did|can|could|may|might|must|should|will|would|has|have)\s+(.+?)[?. ]*$`)

// asClaim returns a question that "Yes" or "No" answers as a claim, without its verb: "Do
// dogs need a leash?" is "dogs need a leash". Empty: the question is none, negates, or
// offers a choice.
func asClaim(question string) string {
	m := verb.FindStringSubmatch(question)
	if m == nil || surface.Negations(question) > 0 || slices.Contains(strings.Fields(strings.ToLower(question)), "or") {
		return ""
	}
	return m[1] + "."
}
