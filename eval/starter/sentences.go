package starter

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/sentence"
)

// A statement is a sentence that stands by itself.
type statement struct {
	text  string // on one line, without its full stop
	start int    // of the sentence in its passage
	end   int
}

// The length of sentences, in bytes, that questions are made of: shorter ones say too
// little, longer ones too much.
const (
	shortest = 30
	longest  = 240
)

// statements returns the sentences of a passage that can be asked about by themselves.
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

// odd matches what is no plain sentence: code, tables, addresses, quoted speech, notes.
var odd = lazyregexp.New("[|{}<>\\\\\\[\\]=`*_#~^]|https?:|www\\.|\\.\\.\\.|…|::|\\(\\)|[“”\"]|;|:|\\?|!|\\$|/|@|  | - ")

// lost matches where a word is missing, as where markup was left out: an article, and then
// what is no noun.
var lost = lazyregexp.New(`\b(?:an?|[Tt]he) (?:of|in|on|for|to|with|and|or|is|are|was|were|be|by|from|which|an?|the|can|may|must) | [,.)]|\( `)

// signs reports whether a line has signs that prose does not have.
func signs(line string) bool {
	return strings.IndexFunc(line, func(r rune) bool { return r > unicode.MaxLatin1 && !unicode.IsLetter(r) && r != '’' && r != '–' }) >= 0
}

// balanced reports whether what is opened is closed.
func balanced(s string) bool { return strings.Count(s, "(") == strings.Count(s, ")") }

// leaning are words that stand for something said before.
var leaning = wordSet(`it its itself this that these those they them their theirs he him his she her hers we us our
 you your i my me here there then thus therefore hence however moreover furthermore also such same former latter above below following previous
 next another other others both instead otherwise meanwhile additionally consequently nevertheless again similarly likewise so too now today
 tomorrow yesterday first second third finally lastly accordingly yet still later earlier soon recently`)

// wordSet is a set of the words of a text.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}

// standing are those of them that need nothing before them when they are not the first word.
var standing = wordSet("that first second third other same next later earlier above below following recently then here still")

// own are words for what is the subject's, from about its verb on: "The store keeps its
// files apart".
var own = wordSet("its their itself themselves")

const ownFrom = 3 // words

// dangles reports whether a sentence needs what was said before it.
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

// note keeps which words of a document are written as names: those that have a capital
// letter in the middle of sentences, and more often so than not.
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

// contentWords are those that questions are compared by.
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
