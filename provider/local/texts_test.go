package local

import "strings"

// plainWords are the words of the texts in the vectors' fixture.
var plainWords = strings.Fields(`the of and in to a is was for as on with by that it from at are this be or an which were
	protein cells patients river market court history season temperature electric museum language village engine signal committee
	parliament glacier algorithm harvest theorem vaccine bridge orchestra reactor novel currency satellite treaty enzyme volcano
	increases describes requires measured founded reported discovered connects replaced reduces before after between during without
	large small early northern public modern several important different possible 1998 2021 37 percent`)

// textOf returns a random text of the given number of tokens, including [CLS] and [SEP], of plain
// words or of mixed fragments.
func textOf(t *tokenizer, tokens int, mixed bool, random *sequenceOf) string {
	var text string
	for {
		from := plainWords
		if mixed {
			from = fragments
		}
		longer := text + from[random.next(len(from))] + " "
		if n := len(t.single(nil, longer)); n > tokens {
			break
		}
		text = longer
	}
	for len(t.single(nil, text)) < tokens {
		text += "a "
	}
	return text
}

// sampleTexts returns texts of 3 to most tokens, for comparing vectors.
func sampleTexts(t *tokenizer, most int) []string {
	random := sequenceOf(7)
	var texts []string
	for i, tokens := range []int{3, 4, 5, 6, 8, 10, 12, 16, 20, 27, 33, 48, 64, 65, 97, 128, 129, 190, 255, 256, 300, 384, 511, 512} {
		texts = append(texts, textOf(t, min(tokens, most), i%3 == 2, &random))
	}
	return texts
}
