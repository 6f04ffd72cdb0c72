package lexical

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// maxPlaceWords is the largest number of words of a name that is recognized as a place.
const maxPlaceWords = 4

// placed matches the words before a name that make it the place where something is.
var placed = lazyregexp.New(`(?i)(?:^|[\s(,])((?:in|within|inside|of|from|for|at|im|von|aus)\s+(?:(?:the|our|my)\s+)?(?:collection\s+)?|(?:the\s+)?collection\s+)$`)

// maxPlacedBytes bounds the text before a name that placed reads.
const maxPlacedBytes = 64

// goesOnAfter matches the text after a complete name: the end, a mark, or a word that is not
// part of a name.
var goesOnAfter = lazyregexp.New(`(?i)^(?:\s+collection\b)?(?:\s*$|\s*[?!.,;:)]|\s+(?:\p{L}+ed|works?|runs?|applies|apply|starts?|looks?|stands?)\b)`)

var wordThere = lazyregexp.New(`^(?:\s+collection\b)?\s+([\p{L}']+)`)

// A place is the byte range [start, end) of a name that denotes a place, with the words that
// introduce it.
type place struct{ start, end int }

// places returns the occurrences of name as a place in a text.
func places(text, name string) []place {
	of := split(name)
	if !contentful(name) {
		return nil
	}
	var found []place
	spans := wordSpans(text)
	for i := range spans {
		var words []string
		for j := i; j < len(spans) && len(words) < len(of); j++ {
			word := text[spans[j].start:spans[j].end]
			bare := strings.TrimSuffix(strings.TrimSuffix(word, "'s"), "’s")
			words = append(words, split(bare)...)
			if !slices.Equal(words, of) {
				continue
			}
			if p, ok := placeAt(text, spans[i].start, spans[j].start+len(bare)); ok {
				found = append(found, p)
			}
		}
	}
	return found
}

// placeAt returns the place if the name from start to end denotes one.
func placeAt(text string, start, end int) (place, bool) {
	before, after := text[:start], text[end:]
	if strings.HasSuffix(before, "(") && strings.HasPrefix(after, ")") { // "(Start (orion))", "Start (orion)"
		p := place{start - 1, end + 1}
		if open := strings.LastIndex(text[:p.start], "("); open >= 0 && strings.HasPrefix(text[p.end:], ")") {
			p = place{open, p.end + 1}
		}
		return p, true
	}
	if strings.HasPrefix(after, "'s ") || strings.HasPrefix(after, "’s ") {
		return place{start, end + strings.Index(after, " ")}, true
	}
	skipped := 0
	if start > maxPlacedBytes { // a question may be long, and this is called for each of its words
		skipped = start - maxPlacedBytes
		i := strings.IndexAny(before[skipped:], " \t\n\r(,")
		if i < 0 {
			return place{}, false
		}
		skipped += i
	}
	m := placed.FindStringSubmatchIndex(before[skipped:])
	if m == nil {
		return place{}, false
	}
	next := wordThere.FindStringSubmatch(after)
	beforeFunction := next != nil && Function(strings.ToLower(next[1]))
	if !beforeFunction && !goesOnAfter.MatchString(after) {
		return place{}, false
	}
	if strings.HasPrefix(strings.ToLower(after), " collection") {
		end += len(" collection")
	}
	return place{skipped + m[2], end}, true
}

// Place reports whether a text has a name as a place: "in orion", "of the handbook",
// "orion's", "the collection orion", or in brackets, "Getting started (orion)". Part of a
// longer name does not count: "in orion groups".
func Place(text, name string) bool { return len(places(text, name)) > 0 }

// OutOf returns a text without the name as a place: "How is it set, and why?" for "How is it
// set in orion, and why?". If no content word would be left, it returns the text unchanged.
func OutOf(text, name string) string {
	left := text
	for _, p := range slices.Backward(places(text, name)) {
		with := ""
		if strings.HasSuffix(text[:p.end], "'s") || strings.HasSuffix(text[:p.end], "’s") {
			with = "the"
		}
		left = left[:p.start] + with + left[p.end:]
	}
	left = tidy(left)
	if !slices.ContainsFunc(Words(strings.ToLower(left)), func(w string) bool { return !Function(w) }) {
		return text
	}
	return left
}

var (
	blanks      = lazyregexp.New(`\s+`)
	loose       = lazyregexp.New(`(?i)(?:[,:;]|\s|\band|\bor)+([?!.]|$)`) // nothing follows these
	blankBefore = lazyregexp.New(`\s+([?!.,;:)])`)
)

// tidy corrects spaces, marks and capitals of a text from which words were removed.
func tidy(text string) string {
	text = loose.ReplaceAllString(text, "$1")
	text = strings.Trim(blankBefore.ReplaceAllString(blanks.ReplaceAllString(text, " "), "$1"), " ,;:")
	if r := []rune(text); len(r) > 0 {
		text = strings.ToUpper(string(r[:1])) + string(r[1:])
	}
	return text
}

// Places returns the possible names of places in a text: the words after those that introduce
// a place, up to the length of a name.
func Places(text string) []string {
	var found []string
	spans := wordSpans(text)
	for i := range spans {
		for j := i; j < min(len(spans), i+maxPlaceWords); j++ {
			name := strings.TrimSuffix(strings.TrimSuffix(text[spans[i].start:spans[j].end], "'s"), "’s")
			if strings.ContainsAny(name, "?!.,;:()") || !slices.ContainsFunc(split(name), func(w string) bool { return !Function(w) }) {
				continue
			}
			if _, ok := placeAt(text, spans[i].start, spans[i].start+len(name)); ok && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	return found
}
