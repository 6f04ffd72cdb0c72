package strategy

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/visible"
)

// What a role writes is not taken as it is: a model may have been told by a document
// to show a link, and what it writes is read by people in a browser and a terminal.

// maxLine is how many bytes a line has at most that a role says in passing: what is
// missing, what to search for, what went wrong. More is no line.
const maxLine = 1000

// line returns a text of a role as one line to show: without line breaks, invisible
// characters, links, images and tags, nor addresses that nobody named. One that is
// longer than a line is cut, and ends in an ellipsis.
func (s sources) line(text string) string {
	text, _ = s.clean(text)
	return short(strings.NewReplacer("\n", " ", "\t", " ").Replace(text))
}

// lines returns those of the texts of a role that say something, as lines.
func (s sources) lines(texts []string) []string {
	var out []string
	for _, t := range texts {
		if t = s.line(t); t != "" {
			out = append(out, t)
		}
	}
	return out
}

// asked are the sources of what is said about a question: what that names may be named.
func asked(question string) sources {
	return sources{words: []string{strings.Join(strings.Fields(question), " ")}}
}

// remark returns what a role says of itself as one line to show. It may name
// addresses: those of services that failed.
func remark(text string) string {
	text = visible.Line(text)
	text = image.ReplaceAllString(text, "$1")
	text = link.ReplaceAllString(text, "$1 ($2)")
	return short(tag.ReplaceAllString(text, ""))
}

func short(line string) string {
	if len(line) <= maxLine {
		return line
	}
	return strings.ToValidUTF8(line[:maxLine], "") + " …"
}

// Sources are what a statement rests on: what it may show besides words has to be
// found there.
type sources struct {
	uris  []string // of the cited documents
	words []string // of the cited passages
}

// What is not words: images and links in Markdown, tags of HTML, addresses.
var (
	image   = lazyregexp.New(`!\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])`)
	link    = lazyregexp.New(`\[([^\[\]]*)\]\(\s*<?([^)>\s]*)>?[^)]*\)`)
	tag     = lazyregexp.New(`(?s)<!--.*?(?:-->|$)|</?[A-Za-z][^<>]*>|<[A-Za-z][^<>=]*=[^<>]*$`)
	address = lazyregexp.New(`(?i)(?:\b[a-z][a-z0-9+.-]{1,20}://|\bwww\.|\bmailto:|\bjavascript:|\bvbscript:|\bdata:[a-z]+/)[^\s<>"'\x60)\]|]+`)
)

// maxPasses is how often text is cleaned until nothing is left to go: what goes may
// leave something else behind. Text in which there is still more is an attack.
const maxPasses = 8

// clean returns text with nothing in it that could be followed or loaded, but for
// links to the cited documents and addresses that the cited passages name. Images go
// always. It reports whether anything had to go. Text that the passages hold as it
// stands keeps its tags and what looks like a link to nowhere: it may be code.
func (s sources) clean(text string) (cleaned string, dropped bool) {
	text = visible.Text(text)
	for range maxPasses {
		before := text
		var gone bool
		if text, gone = s.cleanOnce(text); !gone && text == before {
			return text, dropped
		}
		dropped = dropped || gone
	}
	return "", true
}

func (s sources) cleanOnce(text string) (cleaned string, dropped bool) {
	verbatim := s.holds(text)
	drop := func(keep string) string {
		dropped = true
		return keep
	}
	text = image.ReplaceAllStringFunc(text, func(m string) string { return drop(image.FindStringSubmatch(m)[1]) })
	text = link.ReplaceAllStringFunc(text, func(m string) string {
		parts := link.FindStringSubmatch(m)
		switch label, target := parts[1], parts[2]; {
		case slices.Contains(s.uris, target), verbatim && !address.MatchString(target):
			return m
		case label == target || !s.holds(target):
			return drop(label)
		default:
			return drop(label + " (" + target + ")")
		}
	})
	if !verbatim {
		text = tag.ReplaceAllStringFunc(text, func(m string) string {
			if a := strings.Trim(m, "<>"); address.FindString(a) == a {
				return a // an address in angle brackets
			}
			if s.named(m) {
				return m
			}
			return drop("")
		})
	}
	text = address.ReplaceAllStringFunc(text, func(m string) string {
		if named := strings.TrimRight(m, ".,;:!?"); s.names(named) {
			return m
		}
		return drop("")
	})
	return strings.TrimSpace(text), dropped
}

// garbled reports whether text is not the same without what may not be shown of it.
func (s sources) garbled(text string) bool {
	verbatim := s.holds(text)
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if target := m[2]; !s.names(target) && !(verbatim && !address.MatchString(target)) {
			return true
		}
	}
	unlinked := link.ReplaceAllString(text, "$1")
	foreign := func(m string) bool {
		a := strings.Trim(m, "<>")
		return address.FindString(a) != a && !s.named(m)
	}
	if image.MatchString(text) || !verbatim && slices.ContainsFunc(tag.FindAllString(unlinked, -1), foreign) {
		return true
	}
	return slices.ContainsFunc(address.FindAllString(unlinked, -1), func(a string) bool {
		return !s.names(strings.TrimRight(a, ".,;:!?"))
	})
}

// named reports whether a tag is one that a passage speaks of, as of a type with a
// parameter, and does nothing by itself.
func (s sources) named(tag string) bool { return !strings.ContainsAny(tag, "=!/") && s.holds(tag) }

// names reports whether an address is that of a cited document, or stands in a cited
// passage.
func (s sources) names(address string) bool {
	return slices.Contains(s.uris, address) || s.holds(address)
}

// holds reports whether one of the passages holds a text, however its blanks are
// broken into lines.
func (s sources) holds(text string) bool {
	text = strings.Join(strings.Fields(text), " ")
	return text != "" && slices.ContainsFunc(s.words, func(w string) bool { return strings.Contains(w, text) })
}

// ownMark matches a citation number that a role wrote itself.
var ownMark = lazyregexp.New(`\s*\B\[\d+(?:(?:, ?|[-–])\d+)*\]`)

// heading matches what makes a heading or a quotation of a line in Markdown.
var heading = lazyregexp.New(`^(?:#{1,6}|>+)\s+`)

// statement returns a statement's text as it may be shown: clean, and without
// citation numbers but those that its sources have themselves. Nothing is left of one
// with an image, a link, a tag or an address that may not be shown: without that it says
// something else.
func (s sources) statement(text string) (shown string, dropped bool) {
	text = heading.ReplaceAllString(strings.TrimSpace(text), "")
	if s.garbled(visible.Text(text)) {
		return "", true
	}
	text, dropped = s.clean(text)
	for range maxPasses {
		unmarked := strings.TrimSpace(ownMark.ReplaceAllString(text, ""))
		if unmarked == text || s.holds(text) {
			return text, dropped
		}
		var gone bool
		text, gone = s.clean(unmarked)
		dropped = dropped || gone
	}
	return "", true
}

// sourcesOf returns what the evidence of these numbers allows to show.
func sourcesOf(numbers []int, uri func(n int) string, passages []passage) sources {
	var s sources
	for _, n := range numbers {
		if n < 1 || n > len(passages) || passages[n-1].Text == "" {
			continue
		}
		s.uris = append(s.uris, uri(n))
		s.words = append(s.words, strings.Join(strings.Fields(passages[n-1].Text), " "))
	}
	return s
}
