package metric

import (
	"strings"
	"unicode"
)

// ExactMatch is 1 where what was said is one of the right answers, as Words compares
// them, else 0. Source: Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine
// Comprehension of Text", EMNLP 2016, and its evaluation script.
func ExactMatch(said string, answers []string) float64 {
	words := strings.Join(Words(said), " ")
	return best(answers, func(right []string) float64 {
		return one(words == strings.Join(right, " "))
	})
}

// F1 is how far the words of what was said and of a right answer are the same, of the
// right answer for which that is most: the harmonic mean of the share of the words said
// that the answer has and of the share of the answer's that were said, as bags. Where
// one of the two has no words, it is 1 if neither has. Source: as of ExactMatch, and
// Rajpurkar et al., "Know What You Don't Know", ACL 2018, for texts without words.
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

// Contains is 1 where the words of a right answer stand in what was said, all of them and
// in one piece, else 0: a cited sentence holds an answer and is none of its length.
// Source: Mallen et al., "When Not to Trust Language Models", ACL 2023, which looks for
// the answer as a string; here words are whole ("London" is not in "Londonderry").
func Contains(said string, answers []string) float64 {
	words := " " + strings.Join(Words(said), " ") + " "
	return best(answers, func(right []string) float64 {
		return one(len(right) > 0 && strings.Contains(words, " "+strings.Join(right, " ")+" "))
	})
}

// best is the most that a score gives for one of the answers; 0 where there are none.
func best(answers []string, score func(right []string) float64) float64 {
	most := 0.0
	for _, a := range answers {
		most = max(most, score(Words(a)))
	}
	return most
}

// Words returns the words by which answers are compared: in lower case, without
// punctuation and without the articles a, an and the, as SQuAD's script has them. Of
// characters outside ASCII, all punctuation is left out too and each of the Chinese and
// Japanese scripts is a word, as in the script of Lewis et al., "MLQA: Evaluating
// Cross-lingual Extractive Question Answering", ACL 2020. For text in ASCII the two
// scripts and this agree.
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
