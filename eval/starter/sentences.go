package starter

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/sentence"
)

// A statement is a sentence that can be understood without its context.
type statement struct {
	text  string // on one line, without its full stop
	start int    // of the sentence in its passage
	end   int
}

// The length, in bytes, of sentences that questions are made from. Shorter sentences have too
// little content and longer ones too much.
const (
	shortest = 30
	longest  = 240
)

// statements returns the sentences of a passage that can be asked about on their own.
func statements(p Passage) []statement {
	var all []statement
	for _, s := range sentence.Spans(p.Text) {
		raw := p.Text[s.Start:s.End]
		trimmed := strings.TrimSpace(raw)
		start := s.Start + strings.Index(raw, trimmed)
		line := strings.Join(strings.Fields(trimmed), " ")
		if first, _, two := strings.Cut(line, "; "); two { // each half stands by itself
			line = first + "."
		}
		if len(line) < shortest || len(line) > longest || !strings.HasSuffix(line, ".") || odd.MatchString(line) || strings.Contains(raw, "\n\n") {
			continue
		}
		first, _ := utf8.DecodeRuneInString(line)
		if !unicode.IsUpper(first) || !balanced(line) || dangles(line) || signs(line) || lost.MatchString(line) {
			continue
		}
		all = append(all, statement{text: strings.TrimSuffix(line, "."), start: start, end: start + len(trimmed)})
	}
	return all
}

// odd matches text that is not a plain sentence: code, tables, addresses, quoted speech and notes.
var odd = lazyregexp.New("[|{}<>\\\\\\[\\]=`*_#~^]|https?:|www\\.|\\.\\.\\.|…|::|\\(\\)|[“”\"]|;|:|\\?|!|\\$|/|@|  | - ")

// lost matches the place of a missing word, as when markup was dropped: an article followed by a
// word that is not a noun.
var lost = lazyregexp.New(`\b(?:an?|[Tt]he) (?:of|in|on|for|to|with|and|or|is|are|was|were|be|by|from|which|an?|the|can|may|must) | [,.)]|\( `)

// signs reports whether a line has symbols that prose does not use.
func signs(line string) bool {
	return strings.IndexFunc(line, func(r rune) bool { return r > unicode.MaxLatin1 && !unicode.IsLetter(r) && r != '’' && r != '–' }) >= 0
}

// balanced reports whether the parentheses of s are balanced.
func balanced(s string) bool { return strings.Count(s, "(") == strings.Count(s, ")") }

// leaning lists words that refer to an antecedent or to the context.
var leaning = wordSet(`it its itself this that these those they them their theirs he him his she her hers we us our
 you your i my me here there then thus therefore hence however moreover furthermore also such same former latter above below following previous
 next another other others both instead otherwise meanwhile additionally consequently nevertheless again similarly likewise so too now today
 tomorrow yesterday first second third finally lastly accordingly yet still later earlier soon recently`)

// wordSet returns the set of the words of a text.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}

// standing lists the words of leaning that need no antecedent unless they come first.
var standing = wordSet("that first second third other same next later earlier above below following recently then here still")

// own lists possessives and reflexives that refer to the subject of the same sentence when they
// follow its verb, as in "The store keeps its files apart".
var own = wordSet("its their itself themselves")

const ownFrom = 3 // words

// dangles reports whether a sentence refers to an antecedent outside itself.
func dangles(line string) bool {
	for i, w := range strings.Fields(line) {
		w = strings.ToLower(strings.Trim(w, ",.()'’"))
		w, _, _ = strings.Cut(w, "'")
		if leaning[w] && (i == 0 || !standing[w]) && (i < ownFrom || !own[w]) {
			return true
		}
	}
	return false
}

// note counts how the words of a document are written in the middle of sentences. A word is a name
// if it is capitalized more often than not.
func (g *gathering) note(text string) {
	for _, m := range inside.FindAllStringSubmatch(text, -1) {
		w := m[1]
		if low := strings.ToLower(w); low != w {
			g.capital[low]++
		} else {
			g.small[low]++
		}
	}
}

// proper reports whether a word is written as a name.
func (g *gathering) proper(w string) bool {
	low := strings.ToLower(w)
	return g.capital[low] > g.small[low]
}

// inside matches a word in the middle of a sentence.
var inside = lazyregexp.New(`[a-z,] (\pL[\pL\pN’'-]*)`)

var askingWords = wordSet("what who whom when where why which how many much does do did is was are were according")

// contentWords returns the stems by which questions are compared.
func contentWords(question string) map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsSeq(strings.ToLower(question)) {
		w = strings.Trim(w, "?,.()'’“”\"")
		if w != "" && !analysis.Stop(w) && !askingWords[w] {
			words[analysis.Stem(w, "en")] = true
		}
	}
	return words
}
