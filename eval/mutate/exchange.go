package mutate

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// thing matches a clause that begins with an article or pronoun. Such a clause is neither an order
// nor the rest of a sentence.
const thing = `(?:The|A|An|Every|No|Its?|They) [^,;:]+?`

var (
	compared = lazyregexp.New(`^(` + thing + `|"[^"]+"|\p{Lu}\w+) (is|are|was|were) ([^,;:]*?(?:\w+er|more \w+|less \w+)) than (the [^,;:]+?|"[^"]+"|\w+)\.$`)
	ordered  = lazyregexp.New(`^(` + thing + `) (before|after|because) (` + strings.ToLower(thing) + `)\.$`)
	finite   = lazyregexp.New(` (?:is|are|was|were|has|have|may|must|can|will|\w+s|\w+ed) `)
)

// Exchange swaps the two sides of a comparison, or of "before", "after" or "because", in a claim.
// It reports false if the claim has none of these, or if a side is not a complete clause.
func Exchange(claim string) (m Mutation, ok bool) {
	m.Kind = Order
	if at := compared.FindStringSubmatch(claim); at != nil {
		m.Claim = upper(at[4]) + " " + at[2] + " " + at[3] + " than " + lower(at[1]) + "."
		m.Old, m.New = at[1], at[4]
		return m, at[1] != at[4]
	}
	at := ordered.FindStringSubmatch(claim)
	if at == nil || !finite.MatchString(" "+at[1]+" ") || !finite.MatchString(" "+at[3]+" ") {
		return Mutation{}, false
	}
	m.Claim = upper(at[3]) + " " + at[2] + " " + lower(at[1]) + "."
	m.Old, m.New = at[1], at[3]
	return m, true
}

func upper(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[size:]
}

// lower lower-cases the first word of a text if it is not a name.
func lower(text string) string {
	word, rest, _ := strings.Cut(text, " ")
	if noName[word] && word != "I" {
		return strings.TrimSpace(strings.ToLower(word) + " " + rest)
	}
	return text
}
