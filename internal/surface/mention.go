package surface

import (
	"slices"
	"strings"
	"unicode"
)

// Mentions reports whether a text names something, as whole words in whatever case: a
// name of several words, or with marks between them ("hr-handbook"), also with blanks in
// place of these. A name that is nothing but words without content is never mentioned.
func Mentions(text, name string) bool {
	words, of := split(text), split(name)
	content := slices.ContainsFunc(of, func(w string) bool { return len([]rune(w)) > 1 && !Function(w) })
	if !content || len(of) > len(words) {
		return false
	}
	for i := range len(words) - len(of) + 1 {
		if slices.Equal(words[i:i+len(of)], of) {
			return true
		}
	}
	return false
}

// leads are the words before a name that go with it: "in the handbook and the contracts".
var leads = set(`in of from the a our and or both between by at for within across collection collections`)

// Without returns a text without the names that it mentions, and without the words that
// lead to them: of "What is the notice period in the contracts and in the handbook?" it
// leaves "What is the notice period?". It is empty where no word of content is left.
func Without(text string, names ...string) string {
	spans := wordSpans(text)
	drop := make([]bool, len(spans))
	for _, name := range names {
		of := split(name)
		for i := range spans {
			// A name can be one word of the text or several, whatever marks are in it.
			var words []string
			for j := i; j < len(spans) && len(words) < len(of); j++ {
				if words = append(words, split(text[spans[j].start:spans[j].end])...); len(of) > 0 && slices.Equal(words, of) {
					for k := i; k <= j; k++ {
						drop[k] = true
					}
				}
			}
		}
	}
	for i := len(spans) - 2; i >= 0; i-- {
		if drop[i+1] && leads[strings.ToLower(text[spans[i].start:spans[i].end])] {
			drop[i] = true
		}
	}
	var kept []string
	content := false
	for i, w := range spans {
		if word := text[w.start:w.end]; !drop[i] {
			kept = append(kept, word)
			content = content || !Function(strings.ToLower(word))
		}
	}
	if !content {
		return ""
	}
	left := strings.Join(kept, " ")
	if end := strings.TrimSpace(text); strings.HasSuffix(end, "?") {
		left += "?"
	}
	return left
}

func split(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}
