package metric

import (
	"strings"
	"unicode"
)

// ExactMatch is 1 if said equals one of the reference answers by their Words, else 0. Source:
// Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", EMNLP 2016, and
// its evaluation script.
func ExactMatch(said string, answers []string) float64 {
	words := strings.Join(Words(said), " ")
	return best(answers, func(right []string) float64 {
		return one(words == strings.Join(right, " "))
	})
}

// F1 is the word overlap of said with the reference answer that matches best. It is the harmonic
// mean of precision and recall over the bags of words. If one text has no words, it is 1 if neither
// has any, else 0. Source: as of ExactMatch, and Rajpurkar et al., "Know What You Don't Know", ACL
// 2018, for texts without words.
func F1(said string, answers []string) float64 {
	words := Words(said)
	return best(answers, func(right []string) float64 {
		if len(words) == 0 || len(right) == 0 {
			return one(len(words) == len(right))
		}
		left := map[string]int{}
		for _, w := range right {
			left[w]++
		}
		same := 0
		for _, w := range words {
			if left[w] > 0 {
				left[w]--
				same++
			}
		}
		return 2 * float64(same) / float64(len(words)+len(right))
	})
}

// Contains is 1 if said contains all words of a reference answer in one piece, else 0. It suits a
// cited sentence, which contains the answer but is longer. Source: Mallen et al., "When Not to
// Trust Language Models", ACL 2023, which searches for the answer as a string. Here words are whole
// ("London" is not in "Londonderry").
func Contains(said string, answers []string) float64 {
	words := " " + strings.Join(Words(said), " ") + " "
	return best(answers, func(right []string) float64 {
		return one(len(right) > 0 && strings.Contains(words, " "+strings.Join(right, " ")+" "))
	})
}

// best returns the highest score over the answers; 0 without answers.
func best(answers []string, score func(right []string) float64) float64 {
	most := 0.0
	for _, a := range answers {
		most = max(most, score(Words(a)))
	}
	return most
}

// Words returns the words by which answers are compared: in lower case, without punctuation and
// without the articles a, an and the, as in SQuAD's script. It also drops punctuation outside ASCII
// and makes each Chinese and Japanese character a word, as in the script of Lewis et al., "MLQA:
// Evaluating Cross-lingual Extractive Question Answering", ACL 2020. For ASCII text the two scripts
// and this function agree.
func Words(text string) []string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r < unicode.MaxASCII && (unicode.IsPunct(r) || unicode.IsSymbol(r)), unicode.IsPunct(r):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			b.WriteString(" " + string(r) + " ")
		default:
			b.WriteRune(r)
		}
	}
	var words []string
	for w := range strings.FieldsSeq(b.String()) {
		if w != "a" && w != "an" && w != "the" {
			words = append(words, w)
		}
	}
	return words
}
