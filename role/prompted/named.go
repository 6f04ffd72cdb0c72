package prompted

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/language"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// Holdings are what the sources of a job say, for holding statements to them: a
// statement that names something has to cite a source that names it verbatim, and
// one that gives a number in digits a source that has the number.
//
// Names are told by their form. In languages that write all nouns with a capital
// (German) these are identifiers and quotations, and of the nouns those of which
// neither the sources nor the question have a relative ([nouns]); in scripts without capitals Latin words with one.
//
// Measured: of 936 sentences of Markdown documents, held to their own paragraph, 3
// are refused, all of them listings. Of WiCE's development claims (Wikipedia against
// web pages) 35% of the supported ones are, mostly for a name that the page writes in
// another way, 88% of those not supported, and 94% of all held to another's page; of
// SciFact's 35%, 67% and 61%.
type holdings struct {
	given  []int
	texts  map[int]string  // by number, on one line, with title and headings
	names  map[string]bool // that the sources or the question have as names
	words  map[string]bool // that any of them has, as they stand
	stems  map[string]bool // of those
	nouned bool            // the statements are of a language that writes nouns with a capital
	nouns  map[int]nouns   // by number, where nouned; under 0 those of the question
}

func newHoldings(in role.Reading, given []int, claims []claimReply) holdings {
	h := holdings{given: given, texts: map[int]string{}, names: map[string]bool{}, words: map[string]bool{}, stems: map[string]bool{}}
	everything := []string{in.Question}
	for _, ev := range in.Evidence {
		parts := append(append([]string{ev.Hit.Title}, ev.Hit.Chunk.Headings...), ev.Hit.Text)
		h.texts[ev.Number] = visible.Line(strings.Join(parts, " · "))
		everything = append(everything, parts...)
	}
	for _, text := range everything {
		for _, w := range surface.Words(text) {
			h.words[w] = true
		}
		for _, n := range surface.Names(text) {
			h.names[n] = true
		}
		for _, t := range analysis.Tokens(text, "") {
			h.stems[t.Term] = true
		}
	}
	var said []string
	for _, c := range claims {
		said = append(said, c.Text)
	}
	if h.nouned = nounsCapitalised(strings.Join(said, " "), strings.Join(everything, "\n")); h.nouned {
		h.nouns = map[int]nouns{0: newNouns(in.Question)}
		for number, text := range h.texts {
			h.nouns[number] = newNouns(text)
		}
	}
	return h
}

// nounsCapitalised reports whether a text is of a language that writes all nouns
// with a capital, or at least looks so. Where that is not plain, as with a text that
// is names and little else, it is taken to be of the language of what it speaks of.
func nounsCapitalised(text, about string) bool {
	const manyNouns = 0.3 // of the words that do not begin a sentence
	switch cmp.Or(language.Guess(text), language.Guess(about)) {
	case "de", "lb":
		return true
	case "":
	default:
		return false
	}
	words, capitals := 0, 0
	for _, sp := range sentence.Spans(text) {
		for i, w := range surface.Words(text[sp.Start:sp.End]) {
			if i == 0 {
				continue
			}
			words++
			if first, _ := utf8.DecodeRuneInString(w); unicode.IsUpper(first) {
				capitals++
			}
		}
	}
	return words >= 20 && float64(capitals) > manyNouns*float64(words)
}

// vet returns the statements that their sources can carry, and the others with
// the reason.
func (h holdings) vet(claims []claimReply) (kept []role.Statement, dropped []role.Dropped) {
	kept = []role.Statement{}
	for _, c := range claims {
		text := statementText(c.Text)
		sources := slices.Sorted(slices.Values(known(c.Sources, h.given)))
		switch reason := h.objection(text, sources); {
		case text == "":
		case len(kept) == maxStatements:
			dropped = append(dropped, role.Dropped{Text: shorten(text, maxStatement), Reason: fmt.Sprintf("there are more than %d", maxStatements)})
		case reason != "":
			dropped = append(dropped, role.Dropped{Text: shorten(text, maxStatement), Reason: reason})
		default:
			kept = append(kept, role.Statement{Text: text, Evidence: sources})
		}
	}
	return kept, dropped
}

// objection says why sources cannot carry a statement; "" when nothing speaks
// against it.
func (h holdings) objection(text string, sources []int) string {
	if len(sources) == 0 {
		return "it has no source that was given"
	}
	if len(text) > maxStatement {
		return fmt.Sprintf("it has %d bytes, at most %d are allowed", len(text), maxStatement)
	}
	for _, name := range h.named(text) {
		if !slices.ContainsFunc(sources, func(n int) bool { return h.says(n, name) }) {
			return nobodyNames(name)
		}
	}
	if name := h.stranger(text, sources); name != "" {
		return nobodyNames(name)
	}
	numbers := map[string]bool{}
	for _, n := range sources {
		for _, x := range surface.Numbers(h.texts[n]) {
			numbers[x] = true
		}
	}
	for _, x := range surface.Numbers(strings.Join(digits(text), " ; ")) {
		if !numbers[x] {
			return fmt.Sprintf("none of its sources has the number %s", x)
		}
	}
	return ""
}

// nobodyNames says that a name is in none of a statement's sources. People read that: an
// address that a model was told to show is not in it either.
func nobodyNames(name string) string {
	if anAddress.MatchString(name) {
		return "none of its sources has an address that it gives"
	}
	return fmt.Sprintf("none of its sources names %q", name)
}

// stranger returns a noun of a statement, in a language that writes nouns with a
// capital, that is a name which neither its sources nor the question have; "" if there
// is none. Next to sources in another language nothing tells one.
func (h holdings) stranger(text string, sources []int) string {
	if !h.nouned {
		return ""
	}
	read := []nouns{h.nouns[0]}
	for _, n := range sources {
		if language.Differ(language.Guess(h.texts[n]), "de") {
			return ""
		}
		read = append(read, h.nouns[n])
	}
	if names := strangers(text, read...); len(names) > 0 {
		return names[0]
	}
	return ""
}

// says reports whether a source has a name verbatim; of one with an owner ("Acme's
// Terms"), both.
func (h holdings) says(number int, name string) bool {
	text := h.texts[number]
	if name = visible.Line(name); verbatim(text, name) {
		return true
	}
	parts := owner.Split(name, -1)
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool { return !verbatim(text, p) })
}

// owner matches what joins an owner to what it owns.
var owner = lazyregexp.New(`['’]s? `)

// verbatim reports whether a text has a name as it is written, not as a part of a
// longer word.
func verbatim(text, name string) bool {
	for from := 0; name != ""; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			break
		}
		if i += from; bounded(text, i, i+len(name)) {
			return true
		}
		from = i + 1
	}
	return false
}

// named returns what a statement names, as far as the form of its words tells.
func (h holdings) named(text string) []string {
	var out []string
	add := func(name string) {
		if name = possessive.ReplaceAllString(strings.Trim(name, " .,;:!?"), ""); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, n := range surface.Names(text) {
		if !h.nouned || !plainWord(n) {
			add(n)
		}
	}
	if h.nouned {
		return out
	}
	for _, sp := range sentence.Spans(text) {
		if name := h.opening(text[sp.Start:sp.End]); name != "" {
			add(name)
		}
	}
	return out
}

// possessive matches the ending of "Acme's".
var possessive = lazyregexp.New(`['’]s?$`)

// plainWord reports whether a name is words of letters with at most a capital in
// front, which in some languages any noun is.
func plainWord(name string) bool {
	for _, w := range strings.Fields(name) {
		for i, r := range w {
			if !unicode.IsLetter(r) && r != '-' || i > 0 && unicode.IsUpper(r) {
				return false
			}
		}
	}
	return true
}

// capitalRun matches the capitalised words that a sentence opens with, and the
// word after them.
var capitalRun = lazyregexp.New(`^["'“‘(\[]*(\p{Lu}[\p{L}\p{M}\p{N}_&.'’-]*(?: \p{Lu}[\p{L}\p{M}\p{N}_&.'’-]*)*)( [\p{Ll}]+)?`)

// opening returns the name that a sentence opens with. The capital of its first
// word says nothing, so that one is a name only where more speaks for it: others
// with a capital follow, a source or the question has it as a name or with a
// capital only, or nobody has the word at all and it is told of in the singular,
// as a name is.
func (h holdings) opening(s string) string {
	m := capitalRun.FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	run, next := possessive.ReplaceAllString(strings.TrimRight(m[1], "."), ""), strings.TrimSpace(m[2])
	first, rest, several := strings.Cut(run, " ")
	if surface.Function(strings.ToLower(first)) || several && strings.HasSuffix(first, "ly") {
		return rest // which surface.Names has found by itself
	}
	switch {
	case several, h.names[first], h.words[first] && !h.words[strings.ToLower(first)]:
		return run
	case h.knows(first) || strings.HasSuffix(first, "ly"):
		return ""
	case singular[next] || strings.HasSuffix(next, "s") && !strings.HasSuffix(next, "ss"):
		return first
	}
	return ""
}

// singular are verbs that tell of one thing.
var singular = map[string]bool{"is": true, "was": true, "has": true, "does": true, "said": true, "made": true}

// knows reports whether a source or the question has a word in any form.
func (h holdings) knows(word string) bool {
	for _, t := range analysis.Tokens(word, "") {
		if h.stems[t.Term] {
			return true
		}
	}
	return surface.Function(strings.ToLower(word))
}

// wordAt finds a word, or words in a row, in a text, whatever their case, where
// nothing goes on before or after it.
func wordAt(text, word string) (start, end int, ok bool) {
	for from := 0; from+len(word) <= len(text) && word != ""; {
		if strings.EqualFold(text[from:from+len(word)], word) && bounded(text, from, from+len(word)) {
			return from, from + len(word), true
		}
		_, size := utf8.DecodeRuneInString(text[from:])
		from += size
	}
	return 0, 0, false
}

// bounded reports whether text[start:end] is not a part of a longer word.
func bounded(text string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return !wordRune(before) && !wordRune(after)
}

func wordRune(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
