package ground

import (
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
)

// A source is a piece of a cited text that says something by itself: a sentence, an
// item of a list, alone and with the words that announce it, a line of a table.
type source struct {
	reading
	text   string
	before *source         // the sentence before it in its passage, if there is one
	around map[string]bool // the terms of the passage
}

// sourcesOf cuts the cited words into sources. What stands before the first of them
// in the passage comes along as what its pronouns stand for.
func sourcesOf(p Passage) []source {
	around := termSet(p.Context)
	var out []source
	var before *source
	if at := strings.Index(p.Context, p.Quote); at > 0 {
		head := p.Context[:at]
		if spans := sentence.Spans(head); len(spans) > 0 && !strings.Contains(head[spans[len(spans)-1].End:], "\n\n") {
			last := spans[len(spans)-1]
			before = &source{reading: read(head[last.Start:last.End])}
		}
	}
	announced := ""
	end := 0
	for _, sp := range sentence.Spans(p.Quote) {
		text := p.Quote[sp.Start:sp.End]
		if strings.Contains(p.Quote[end:sp.Start], "\n\n") {
			before = nil
		}
		end = sp.End
		bare := label.ReplaceAllString(itemMark.ReplaceAllString(text, ""), "")
		s := source{reading: read(bare), text: oneLine(bare), before: before, around: around}
		if len(s.terms) <= maxTerms {
			out = append(out, s)
		}
		if announced != "" {
			out = append(out, source{reading: read(announced + " " + bare), text: oneLine(announced + " " + bare)})
		}
		if strings.HasSuffix(text, ":") {
			announced = strings.TrimSuffix(text, ":") + ": "
		} else if !itemMark.MatchString(text) {
			announced = ""
		}
		if lines := strings.Split(text, "\n"); len(lines) > 1 && (strings.Contains(text, "|") || surface.Code(text)) {
			for _, line := range lines {
				out = append(out, source{reading: read(line), text: oneLine(line)})
			}
		}
		before = &s
	}
	return out
}

// itemMark matches the mark of a list item.
var itemMark = regexp.MustCompile(`^(?:[-*•+–◦▪‣]|\d{1,2}[.)]|\(?[a-z]\))\s+`)

// label matches what the sentences of abstracts begin with.
var label = regexp.MustCompile(`^(?:BACKGROUND|OBJECTIVES?|METHODS|RESULTS|FINDINGS|CONCLUSIONS?(?: AND RELEVANCE)?|INTERPRETATION)\b:?\s+`)

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// A topic is the words of the headings that a passage stands under, a heading each.
type topic [][]term

func topicOf(headings []string) topic {
	var t topic
	for _, h := range headings {
		if r := read(h); len(r.terms) > 0 {
			t = append(t, r.terms)
		}
	}
	return t
}

// named reports whether terms are the last words of one of the headings, or all of it.
func (t topic) named(terms []term) bool {
	return slices.ContainsFunc(t, func(h []term) bool {
		return len(terms) <= len(h) && equal(h[len(h)-len(terms):], terms)
	})
}

// beside reports whether a heading has the two words next to one another.
func (t topic) beside(a, b string) bool {
	return slices.ContainsFunc(t, func(h []term) bool {
		for i := 1; i < len(h); i++ {
			if h[i-1].stem == a && h[i].stem == b {
				return true
			}
		}
		return false
	})
}

// equal reports whether the words of two lists are the same; the first word's small
// words aside.
func equal(a, b []term) bool {
	return slices.EqualFunc(a, b, func(x, y term) bool { return x.stem == y.stem && x.number == y.number })
}

// says reports whether a source says the claim: by itself, with the subject that its
// pronoun stands for, or under its heading.
func (s source) says(claim reading, t topic) bool {
	terms := claim.terms
	if s.asks != claim.asks {
		return false
	}
	if holds(s.terms, terms) || holds(s.terms, s.narrowed(terms, t)) {
		return true
	}
	if len(terms) > 1 && people[terms[0].stem] && terms[0].marks&^isAll == 0 && s.around[terms[0].stem] {
		if a := addressed(s.terms); a != nil {
			you := slices.Clone(terms[1:])
			you[0].marks |= isYou
			return within(a, you)
		}
	}
	for n := 1; n < len(terms) && n <= maxSubject; n++ {
		if rest := terms[n:]; s.about(terms[:n], t) && rest[0].stem == s.opens() && holds(s.terms, rest) {
			return true
		}
	}
	return false
}

// maxSubject bounds the words that a claim may have instead of a pronoun.
const maxSubject = 6

// opens returns the first word of a source.
func (s source) opens() string {
	if len(s.terms) == 0 {
		return ""
	}
	return s.terms[0].stem
}

// about reports whether a source whose subject is a pronoun may be about a subject:
// what the sentence before it begins with, over as many sentences as begin with
// pronouns themselves, or where there is none the heading.
func (s source) about(subject []term, t topic) bool {
	const most = 4 // sentences
	if !s.again || marked(subject, ^(isAnd|isAll)) {
		return false
	}
	b := s.before
	for range most {
		if b == nil {
			return t.named(subject)
		}
		if !b.again {
			return len(b.terms) > len(subject) && equal(b.terms[:len(subject)], subject) && b.terms[len(subject)].marks&hangs == 0
		}
		b = b.before
	}
	return false
}

// narrowed returns a claim without the words that only say under which heading its
// source stands: "unused annual leave" under "Annual leave", of "unused leave".
func (s source) narrowed(claim []term, t topic) []term {
	out := make([]term, 0, len(claim))
	var marks marking
	for i, c := range claim {
		inSource := slices.ContainsFunc(s.terms, func(o term) bool { return o.stem == c.stem })
		if i+1 < len(claim) && !inSource && !c.number && claim[i+1].marks == 0 && t.beside(c.stem, claim[i+1].stem) {
			marks |= c.marks
			continue
		}
		c.marks |= marks
		marks = 0
		out = append(out, c)
	}
	return out
}

// isHeading reports whether text names one of the headings: it, or it and what kind of
// document it is.
func (t topic) isHeading(text string) bool {
	words := read(text).terms
	if n := len(words); n > 1 && documents[words[n-1].stem] {
		words = words[:n-1]
	}
	return len(words) > 0 && !marked(words, ^isIn) && slices.ContainsFunc(t, func(h []term) bool { return equal(h, words) })
}

// documents are the stems of words for kinds of documents and their parts.
var documents = wordSet(`passag document sourc text polici rule handbook guid guidelin manual section chapter page document`)
