package retrieve

import (
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lexical"
)

// A compound is one word that a text may have instead of two words of the query: "filename" for
// "file name", "shutdown" for "shut the server down".
type compound struct {
	word   string
	stem   string
	stands []string // stems of the words it replaces; a stop word has none
}

// particles are the second words of English phrasal verbs that also form compounds. A particle may
// follow up to particleReach words after its verb.
var particles = map[string]bool{
	"up": true, "down": true, "in": true, "out": true, "off": true, "on": true, "over": true, "back": true, "away": true, "through": true,
}

const particleReach = 4

// compounds returns the compounds that a query's words could form, without duplicates. Most of them
// are not words, which is harmless: a term that no document contains does not change a search.
func compounds(query string) []compound {
	var words []string
	for _, w := range lexical.Words(query) {
		words = append(words, strings.ToLower(w))
	}
	var out []compound
	made := map[[2]string]bool{}
	add := func(a, b string) {
		if made[[2]string{a, b}] {
			return
		}
		made[[2]string{a, b}] = true
		c := compound{word: a + b, stem: stem(a + b)}
		for _, w := range []string{a, b} {
			if s := stem(w); s != "" {
				c.stands = append(c.stands, s)
			}
		}
		if c.stem != "" && len(c.stands) > 0 {
			out = append(out, c)
		}
	}
	for i, w := range words {
		if lexical.Function(w) || len(w) < 2 {
			continue
		}
		for j := i + 1; j < len(words) && j <= i+particleReach; j++ {
			next := words[j]
			if particles[next] || j == i+1 && !lexical.Function(next) && len(next) > 1 {
				add(w, next)
			}
		}
	}
	return out
}

// stem returns the single term that a word yields, or "" if it yields none or several.
func stem(word string) string {
	tokens := analysis.Tokens(word, "")
	if len(tokens) != 1 {
		return ""
	}
	return tokens[0].Term
}

// withCompounds returns the query's text followed by its possible compounds.
func withCompounds(text string, cs []compound) string {
	var b strings.Builder
	b.WriteString(text)
	for _, c := range cs {
		b.WriteString(" " + c.word)
	}
	return b.String()
}

// splitTerms separates the compounds from the terms of an extended query. It returns the query's
// own terms and the compounds that at least one chunk contains.
func splitTerms(text string, terms []assay.Term, cs []compound) (own []assay.Term, held []compound) {
	words := map[string]bool{} // of the query, in their original form
	for _, t := range analysis.Tokens(text, anyLanguage) {
		words[text[t.Start:t.End]] = true
	}
	extended := map[string]bool{}
	for _, c := range cs {
		extended[c.word] = !words[c.word]
	}
	chunks, known := map[string]int{}, map[string]bool{}
	own = []assay.Term{}
	for _, t := range terms {
		chunks[t.Stem] = t.Chunks
		if !extended[t.Text] {
			known[t.Stem] = true
			own = append(own, t)
		}
	}
	for _, c := range cs {
		if chunks[c.stem] > 0 && !known[c.stem] {
			held = append(held, c)
		}
	}
	return own, held
}

// anyLanguage is the language code for which words are neither stemmed nor dropped as stop words.
const anyLanguage = "und"
