package strategy

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/visible"
)

// The output of roles is cleaned before it is shown, because a document may have instructed a model
// to show a link, and the output is read in browsers and terminals.

// maxLine is the maximum length in bytes of a line of role output other than a statement, such as a
// gap, a query or a failure.
const maxLine = 1000

// line returns role output as one line to show: without line breaks, invisible characters, links,
// images, tags, and addresses that s does not contain. A line longer than maxLine is cut and ends
// in an ellipsis.
func (s sources) line(text string) string {
	text, _ = s.clean(text)
	return short(strings.NewReplacer("\n", " ", "\t", " ").Replace(text))
}

// lines returns the texts as lines, without empty ones.
func (s sources) lines(texts []string) []string {
	var out []string
	for _, t := range texts {
		if t = s.line(t); t != "" {
			out = append(out, t)
		}
	}
	return out
}

// questionSources returns the sources of text about a question, which may name only addresses in
// the question.
func questionSources(question string) sources {
	return sources{words: []string{strings.Join(strings.Fields(question), " ")}}
}

// remarkLine returns a message of a role as one line to show. It may contain addresses, such as
// those of services that failed.
func remarkLine(text string) string {
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

// sources are the texts that role output rests on. Links, tags and addresses may be shown only if
// they occur there.
type sources struct {
	uris  []string // of the cited documents
	words []string // of the cited passages
}

// Content that is not plain words: images and links in Markdown, HTML tags, and addresses.
var (
	image   = lazyregexp.New(`!\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])`)
	link    = lazyregexp.New(`\[([^\[\]]*)\]\(\s*<?([^)>\s]*)>?[^)]*\)`)
	tag     = lazyregexp.New(`(?s)<!--.*?(?:-->|$)|</?[A-Za-z][^<>]*>|<[A-Za-z][^<>=]*=[^<>]*$`)
	address = lazyregexp.New(`(?i)(?:\b[a-z][a-z0-9+.-]{1,20}://|\bwww\.|\bmailto:|\bjavascript:|\bvbscript:|\bdata:[a-z]+/)[^\s<>"'\x60)\]|]+`)
)

// maxPasses is the maximum number of cleaning passes. Removing one construct may form another; text
// that is still not clean after the last pass is an attack.
const maxPasses = 8

// clean removes everything that could be followed or loaded, except links to the cited documents
// and addresses in the cited passages. It always removes images. It reports whether it removed
// anything. Text that occurs verbatim in the passages keeps its tags and anything that looks like a
// link without an address, since it may be code.
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

// alteredByCleaning reports whether removing the parts that may not be shown would alter the text.
func (s sources) alteredByCleaning(text string) bool {
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

// named reports whether a tag occurs in a passage and is inert, like a type parameter.
func (s sources) named(tag string) bool { return !strings.ContainsAny(tag, "=!/") && s.holds(tag) }

// names reports whether an address is that of a cited document or occurs in a cited passage.
func (s sources) names(address string) bool {
	return slices.Contains(s.uris, address) || s.holds(address)
}

// holds reports whether one of the passages contains a text, ignoring differences in white space.
func (s sources) holds(text string) bool {
	text = strings.Join(strings.Fields(text), " ")
	return text != "" && slices.ContainsFunc(s.words, func(w string) bool { return strings.Contains(w, text) })
}

// ownMark matches a citation number written by a role.
var ownMark = lazyregexp.New(`\s*\B\[\d+(?:(?:, ?|[-–])\d+)*\]`)

// heading matches the prefix of a Markdown heading or block quotation.
var heading = lazyregexp.New(`^(?:#{1,6}|>+)\s+`)

// statement returns a statement's text in the form in which it may be shown: clean, and without
// citation numbers except those of its sources. It returns "" for a statement with an image, link,
// tag or address that may not be shown, because removing it would change the meaning.
func (s sources) statement(text string) (shown string, dropped bool) {
	text = heading.ReplaceAllString(strings.TrimSpace(text), "")
	if s.alteredByCleaning(visible.Text(text)) {
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

// sourcesOf returns the sources for the evidence with the given numbers.
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
