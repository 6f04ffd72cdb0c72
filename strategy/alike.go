package strategy

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/surface"
)

// A Likeness says how far two questions are one by their words.
type Likeness int

// The likenesses.
const (
	Different Likeness = iota // they may ask different things
	Near                      // they differ in words that carry nothing of their own: whether they are one is for their vectors to say
	Same                      // they are the same words
)

// Alike compares two questions by their words, and would rather take one question for
// two than two for one: vectors do not tell "Does Alice report to Bob?" from "Does Bob
// report to Alice?" (cosine 0.998), nor "who approves" from "why approves" (0.98).
//
// Same are questions that differ in case (not within a word: newReader is not
// NewReader), white space and what ends them. Near are those in English that have the
// same words in the same order beside articles, politeness and other small change, and
// the same numbers, negations and signs; "A of B" counts as "B A" and "B's A", "which" as
// "what", "we" as "I", and "may I" as "can I". I and you are two: what we may do you need
// not.
func Alike(one, other string) Likeness { return AlikeTo(one)(other) }

// AlikeTo returns Alike for comparing one question with many.
func AlikeTo(one string) func(other string) Likeness {
	plain, marks, words := plainly(one), marked(one), bearing(one)
	negations, numbers := surface.Negations(one), surface.Numbers(one)
	content := slices.DeleteFunc(slices.Clone(words), surface.Function)
	return func(other string) Likeness {
		otherPlain := plainly(other)
		if plain != otherPlain {
			text := strings.ReplaceAll(otherPlain, "’", "'")
			lacks := func(w string) bool { return !strings.Contains(text, w) }
			if len(words) == 0 || slices.ContainsFunc(content, lacks) {
				return Different // soon, as nearly all are
			}
		}
		switch {
		case !slices.Equal(marks, marked(other)):
			return Different
		case plain == otherPlain:
			return Same
		case !slices.Equal(words, bearing(other)) || negations != surface.Negations(other) || !slices.Equal(numbers, surface.Numbers(other)):
			return Different
		}
		return Near
	}
}

// plainly is a question without case, white space and what ends it.
func plainly(question string) string {
	folded := strings.ToLower(strings.Join(strings.Fields(question), " "))
	return strings.TrimRight(folded, " ?.!")
}

// marked returns what of a question has to be there letter by letter: words with a
// capital or an underscore inside, and what is neither letter, digit, space nor the
// punctuation of prose, as in code.
func marked(question string) []string {
	var found []string
	for _, w := range surface.Words(question) {
		if inside := []rune(w)[1:]; slices.ContainsFunc(inside, func(r rune) bool { return unicode.IsUpper(r) || r == '_' }) {
			found = append(found, strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s"))
		}
	}
	for _, r := range question {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !unicode.IsSpace(r) && !strings.ContainsRune(".,;:!?'’", r) {
			found = append(found, string(r))
		}
	}
	return found
}

var (
	// courtesy opens a question and asks nothing.
	courtesy = regexp.MustCompile(`^(?:(?:hi|hello|hey|please|kindly|so|and|well|ok|okay)[,!.]?\s+|(?:(?:could|can|would|will) you )?(?:please )?(?:tell|explain)(?: to)?(?: me| us)?\s+|do you know\s+|i(?: would|'d) like to know\s+|i want to know\s+|i wonder\s+)+`)

	// howTo is "how to" in all the ways that it is asked.
	howTo = regexp.MustCompile(`^how (?:to|(?:do|can|could|may|might) (?:i|we|one)) `)

	// asksInEnglish is how a question begins whose small change is known.
	asksInEnglish = regexp.MustCompile(`^(?:what|which|who|whom|whose|when|where|why|how|is|are|do|does|did|can|could|may|might|must|should|shall|will|would|has|have|had)\b(?:'s\b)?`)

	thanks = regexp.MustCompile(`[\s,]+(?:please|thanks|thank you)$`)
)

// bearing returns the words of a question that bear on what it asks, in order; none: it
// is not one in English.
func bearing(question string) []string {
	text := strings.ReplaceAll(plainly(question), "’", "'")
	text = thanks.ReplaceAllString(courtesy.ReplaceAllString(text, ""), "")
	if !asksInEnglish.MatchString(text) {
		return nil
	}
	words := surface.Words(howTo.ReplaceAllString(text, "how to "))
	var kept []string
	asked := false // a "do" was met
	for i, w := range words {
		last := i == len(words)-1
		owner, owned := strings.CutSuffix(w, "'s")
		switch {
		case owned && (i == 0 || !last && !surface.Function(words[i+1])):
			kept = append(kept, sameAs(owner))
		case smallChange[w], articles[w] && (last || !amounts[words[i+1]]):
		case (w == "do" || w == "does") && !asked && !last:
			asked = true
		case w == "may" && !last && asksFor[words[i+1]]:
			kept = append(kept, "can")
		default:
			kept = append(kept, sameAs(w))
		}
	}
	return ofTurned(kept)
}

func sameAs(word string) string {
	switch word {
	case "which":
		return "what"
	case "does":
		return "do"
	case "we":
		return "i"
	case "us":
		return "me"
	case "our":
		return "my"
	}
	return word
}

// ofTurned turns "A of B" round, from the end: "the head of the department of law" has
// the words of "law department head". A is one word, and B goes as far as content does.
func ofTurned(words []string) []string {
	for i := len(words) - 2; i > 0; i-- {
		if words[i] != "of" || surface.Function(words[i-1]) || i > 1 && !surface.Function(words[i-2]) {
			continue
		}
		end := i + 1
		for end < len(words) && !surface.Function(words[end]) {
			end++
		}
		if end == i+1 {
			continue
		}
		turned := append(slices.Clone(words[i+1:end]), words[i-1])
		words = slices.Concat(words[:i-1], turned, words[end:])
	}
	return words
}

// smallChange are words that a question may have or not and ask the same, as are
// articles, but of amounts: a few are not few. Past tenses are none: who is the chair
// need not be who was.
var (
	smallChange = wordSet(`please is are`)
	articles    = wordSet(`a an the`)
	amounts     = wordSet(`few little lot bit number couple`)
)

// asksFor are those for whom "may" asks what "can" does.
var asksFor = wordSet(`i you we`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}
