package eval

import (
	"strings"
	"unicode"
)

// matchAnswer reports whether a right answer stands in what was said, word for word,
// and how far the words of the two are the same: the F1 of their bags of words. Both
// are compared in lower case and without punctuation and articles.
//
// Source: Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of
// Text", EMNLP 2016, and its evaluation script for how words are compared. Theirs asks
// for equality where this asks for containment: a cited sentence holds an answer, and
// is none of its length.
func matchAnswer(said, right string) (match bool, f1 float64) {
	a, b := answerWords(said), answerWords(right)
	if len(a) == 0 || len(b) == 0 {
		return false, 0
	}
	match = strings.Contains(" "+strings.Join(a, " ")+" ", " "+strings.Join(b, " ")+" ")
	left := map[string]int{}
	for _, w := range b {
		left[w]++
	}
	same := 0
	for _, w := range a {
		if left[w] > 0 {
			left[w]--
			same++
		}
	}
	return match, 2 * float64(same) / float64(len(a)+len(b))
}

// answerWords returns the words that answers are compared by.
func answerWords(text string) []string {
	bare := strings.Map(func(c rune) rune {
		if unicode.IsPunct(c) || unicode.IsSymbol(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, text)
	var words []string
	for w := range strings.FieldsSeq(bare) {
		if w != "a" && w != "an" && w != "the" {
			words = append(words, w)
		}
	}
	return words
}
