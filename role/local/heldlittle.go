package local

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// little is how many chunks a collection has at least in which it means something that a
// passage stands out. In one of a page or two every question about its subject finds the same
// few passages, and they stand out whether they hold the answer or not.
const little = 40

// beside says why what was found of a little collection is beside the question, though it has
// its words; empty: it may well answer it.
func beside(q question, in role.GradeInput) string {
	if chunksOf(in.Terms) >= little {
		return ""
	}
	if word := undone(q, in); word != "" {
		return fmt.Sprintf("no document says that anybody or anything does %q", word)
	}
	if measure := unmeasured(q, in); measure != "" {
		return fmt.Sprintf("no passage says how %s anything is", measure)
	}
	if name := inPassing(q, in); name != "" {
		return fmt.Sprintf("%s is named in passing, in what is said of something else", name)
	}
	return ""
}

var doing = regexp.MustCompile(`(?i)\b(?:do|does|did)\b(.*)`)

// undone is a word of what a question asks that somebody with a name does or did, which no
// document has, nor one that begins alike; empty: there is none.
func undone(q question, in role.GradeInput) string {
	m := doing.FindStringSubmatch(q.text)
	if m == nil || !slices.ContainsFunc(q.names, func(name string) bool { return strings.HasPrefix(strings.TrimSpace(m[1]), name) }) {
		return ""
	}
	done := surface.Words(m[1])
	for _, t := range q.terms {
		if t.Chunks > 0 || !slices.Contains(done, t.Text) || t.Text != strings.ToLower(t.Text) {
			continue
		}
		alike := func(w string) bool { return kin(w, t.Text) }
		said := false
		for _, h := range in.Hits {
			said = said || slices.ContainsFunc(surface.Words(h.Text), alike)
		}
		if !said {
			return t.Text
		}
	}
	return ""
}

// measures are the words that ask for a measure of one kind, and what a text has that gives one.
var measures = []struct{ asks, gives *regexp.Regexp }{
	{regexp.MustCompile(`(?i)\bhow (heavy)\b`), regexp.MustCompile(`(?i)\b(?:weigh\w*|heav\w*|\d+(?:[.,]\d+)? ?(?:kg|g|mg|t|lbs?|oz|kilos?|kilograms?|grams?|pounds?|ounces?|tons?|tonnes?))\b`)},
	{regexp.MustCompile(`(?i)\bhow (tall|high|deep|wide)\b`), regexp.MustCompile(`(?i)\b(?:tall|high|height|deep|depth|wide|width|\d+(?:[.,]\d+)? ?(?:mm|cm|m|km|ft|met(?:re|er)s?|feet|foot|inch(?:es)?|miles?))\b`)},
	{regexp.MustCompile(`(?i)\bhow (fast)\b`), regexp.MustCompile(`(?i)\b(?:fast\w*|speed\w*|\w+ (?:an|per) (?:hour|minute|second)|mph|\w+/[hs])\b`)},
	{regexp.MustCompile(`(?i)\bhow (hot|cold|warm)\b`), regexp.MustCompile(`(?i)\b(?:hot\w*|cold\w*|warm\w*|temperatures?|degrees?|celsius|fahrenheit)\b|°`)},
}

// unmeasured is the measure that a question asks for, where no hit gives one of its kind.
func unmeasured(q question, in role.GradeInput) string {
	for _, of := range measures {
		m := of.asks.FindStringSubmatch(q.text)
		if m == nil {
			continue
		}
		for _, h := range in.Hits {
			if of.gives.MatchString(h.Text) {
				return ""
			}
		}
		return m[1]
	}
	return ""
}

var opensWithPronoun = regexp.MustCompile(`(?i)^(?:it|he|she|they|this|these)\b`)

// inPassing is a name of the question that the hits have in passing only: in sentences about
// what a pronoun stands for, which is not it, and after a word that the question does not have.
// "It was released in 2019 and replaced the Kestrel" says what replaced the Kestrel, and not
// when that was released.
func inPassing(q question, in role.GradeInput) string {
	for _, name := range q.names {
		held, passing := 0, 0
		for _, h := range in.Hits {
			before := strings.Join(append(slices.Clone(h.Chunk.Headings), h.Title), " ")
			for _, sp := range sentence.Spans(h.Text) {
				text := h.Text[sp.Start:sp.End]
				if strings.Contains(text, name) {
					held++
					if opensWithPronoun.MatchString(strings.TrimSpace(text)) && !strings.Contains(before, name) && !q.ledTo(text, name) {
						passing++
					}
				}
				before = text
			}
		}
		if held > 0 && passing == held {
			return name
		}
	}
	return ""
}

// ledTo reports whether the word of content before a name in a text is one of the question.
func (q question) ledTo(text, name string) bool {
	words := surface.Words(text[:strings.Index(text, name)])
	for i := len(words) - 1; i >= 0; i-- {
		if word := strings.ToLower(words[i]); !surface.Function(word) {
			return slices.ContainsFunc(surface.Words(q.text), func(w string) bool { return strings.EqualFold(w, word) || kin(w, word) })
		}
	}
	return false
}
