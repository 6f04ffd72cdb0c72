package ground

import (
	"regexp"
	"strings"

	"github.com/assay-rag/assay/internal/surface"
)

// refusal matches words that announce what is not so, beside those that negate.
var refusal = regexp.MustCompile(`(?i)\b(?:avoid|forbidden|forbids?|prohibited|prohibits?|refrain|except|exceptions?|exclud(?:e|es|ed|ing)|exclusions?|without|nobody|don['’]?ts?|wrong(?:ly)?|mistakes?|myths?|disallowed|banned|unsupported)\b`)

// announcesNot reports whether a line says of what follows it that it is not so.
func announcesNot(line string) bool {
	return surface.Negations(line)%2 == 1 || refusal.MatchString(line)
}

// unlisted returns the passages, by index, without those in which the words nearest to a claim are an
// item of a list that a denial announces ("Never do this:"), while the claim itself denies
// nothing: there the item says the opposite of what it reads.
func unlisted(claim string, cited []Passage) []int {
	var rest []int
	for i, p := range cited {
		if start, end := Locate(claim, p.Context); start == end || announcesNot(claim) || !listedAgainst(p, start) {
			rest = append(rest, i)
		}
	}
	return rest
}

// listedAgainst reports whether the bytes at start stand in an item of a list that a
// denial announces: the line above the list that ends in a colon, or the heading where
// nothing but the list stands above it.
func listedAgainst(p Passage, start int) bool {
	lines := strings.Split(p.Context[:start], "\n")
	last := len(lines) - 1
	current, _, _ := strings.Cut(p.Context[start:], "\n")
	if !itemMark.MatchString(strings.TrimSpace(lines[last] + current)) {
		return false
	}
	for i := last - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		switch {
		case line == "", itemMark.MatchString(line), strings.TrimLeft(lines[i], " \t") != lines[i]:
			continue // an item, or what goes on with one
		case strings.HasSuffix(strings.TrimRight(line, "*_ "), ":"):
			return announcesNot(line)
		}
		return false
	}
	return len(p.Heading) > 0 && announcesNot(p.Heading[len(p.Heading)-1])
}
