package lexical

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// Mentions reports whether a text contains a name as whole words, in any case and with any
// marks or blanks between them ("hr-handbook"). A name without a content word is never
// mentioned.
func Mentions(text, name string) bool {
	words, of := split(text), split(name)
	if !contentful(name) || len(of) > len(words) {
		return false
	}
	for i := range len(words) - len(of) + 1 {
		if slices.Equal(words[i:i+len(of)], of) {
			return true
		}
	}
	return false
}

// Without removes names from a question, so that the result can be asked about each of them:
//
//	What is the notice period in the contracts and in the handbook?  →  What is the notice period?
//	Compare what hr and legal say about how long files are kept      →  the topic, as a question
//
// A name that is the subject becomes "we". Without returns "" if no content word is left.
func Without(text string, names ...string) string {
	marked := mark(text, names)
	if m := sayAbout.FindStringSubmatch(marked); m != nil {
		marked = about(m[1])
	}
	for _, said := range [][2]string{{"does", "do"}, {"is", "are"}, {"was", "were"}, {"has", "have"}} {
		marked = regexp.MustCompile(`(?i)\b`+said[0]+` `+marker).ReplaceAllString(marked, said[1]+" "+marker)
	}
	marked = doing.ReplaceAllString(marked, "$1 we$2")
	marked = tidy(led.ReplaceAllString(marked, " "))
	if !slices.ContainsFunc(Words(strings.ToLower(marked)), func(w string) bool { return !Function(w) }) {
		return ""
	}
	return marked
}

// marker replaces one or more names that a text mentions.
const marker = "\x00"

var (
	sayAbout = lazyregexp.New(`(?i)^(?:please )?(?:compare )?(?:(?:and|or) )?(?:how|what) (?:(?:do|does|did|can) )?` + marker + `(?: each)?(?: (?:have to|has to|each|both))? (?:says?|said|tells?(?: us)?|states?|writes?|rules?|differ|compare) (?:about|on|of|in|as to|regarding)( .+)$`)
	doing    = lazyregexp.New(`(?i)\b(do|did|can|could|will|would|may|must|should|are|were|have) ` + marker + `( \p{L})`)
	beside   = `\s*(?:,|&|/|\b(?:and|or|vs\.?|versus|nor|than)\b)\s*(?:(?:the|both|our|collections?)\s+)*`
	several  = lazyregexp.New(marker + `(?:\s*(?:,|&|/|\b(?:and|or|vs\.?|versus|nor|than)\b)\s*(?:(?:in|of|from|for|by|the|both|our|a|collections?|whether|those|that)\s+)*` + marker + `)+`)
	led      = lazyregexp.New(`(?i)(?:(?:^|\s)(?:in|of|from|the|a|our|and|or|both|between|by|at|for|within|across|collections?))*\s*` + marker + `(?:\s+collections?\b)?`)
	asksHow  = lazyregexp.New(`(?i)^(?:how|when|where|who|whose|what|which|why|whether)\b`)
)

// mark returns a text with the names that it mentions replaced by markers, adjacent names by
// one. A name without a content word counts only beside another name.
func mark(text string, names []string) string {
	marked := marks(text, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !contentful(n) }))
	for range names {
		for _, n := range names {
			if !contentful(n) && strings.TrimSpace(n) != "" {
				word := `(?i)\b` + regexp.QuoteMeta(n) + `\b`
				marked = regexp.MustCompile(word+`(`+beside+marker+`)`).ReplaceAllString(marked, marker+"$1")
				marked = regexp.MustCompile(`(`+marker+beside+`)`+word).ReplaceAllString(marked, "${1}"+marker)
			}
		}
	}
	return several.ReplaceAllString(marked, marker)
}

// Beside reports whether a text has a name without a content word, such as "it", next to one of
// others: "it and products".
func Beside(text, name string, others []string) bool {
	if contentful(name) || strings.TrimSpace(name) == "" {
		return false
	}
	marked := marks(text, slices.DeleteFunc(slices.Clone(others), func(n string) bool { return !contentful(n) }))
	word := `\b` + regexp.QuoteMeta(name) + `\b`
	return regexp.MustCompile(`(?i)` + word + beside + marker + `|` + marker + beside + word).MatchString(marked)
}

// contentful reports whether a name has a content word.
func contentful(name string) bool {
	return slices.ContainsFunc(split(name), func(w string) bool { return len([]rune(w)) > 1 && !Function(w) })
}

// marks replaces each name by a marker.
func marks(text string, names []string) string {
	spans := wordSpans(text)
	var b strings.Builder
	done := 0
	for i := 0; i < len(spans); i++ {
		for j := i; j < min(len(spans), i+maxPlaceWords); j++ {
			of := split(text[spans[i].start:spans[j].end])
			if len(of) == 0 || !slices.ContainsFunc(names, func(n string) bool { return slices.Equal(split(n), of) }) {
				continue
			}
			b.WriteString(text[done:spans[i].start] + marker)
			done, i = spans[j].end, j
			break
		}
	}
	return b.String() + text[done:]
}

// about returns the topic of "say about" as a question.
func about(what string) string {
	what = strings.TrimSpace(what)
	if asksHow.MatchString(what) {
		return strings.TrimRight(what, "?!. ") + "?"
	}
	return "What is said about " + what
}

func split(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}
