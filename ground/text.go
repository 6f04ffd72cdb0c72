package ground

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/sentence"
)

// A word is a word, number or sign of a unit in a text.
type word struct {
	raw     string
	stem    string // lower-cased and stemmed; of a number its value
	content bool   // false: a function word, or a sign
	number  bool
}

var wordPattern = lazyregexp.New(`[\pL\pM_][\pL\pN\pM_]*(?:[.'][\pL\pN\pM_]+)*|\d+(?:/\d+)+|\d{1,2}:\d\d\b|\d+(?:[.,]\d+)*|°[CF]\b|[%€$£¥°]`)

// abbreviation matches single letters with full stops: "p.m", "U.S".
var abbreviation = lazyregexp.New(`^(?:\pL\.)+\pL$`)

// wordsOf returns the words of a text. Hyphenated words, and numbers joined to a unit, are split:
// "6-week", "30kg". So are dates, "12/31/2021", but not fractions.
func wordsOf(text string) []word {
	found := wordPattern.FindAllString(plainQuotes.Replace(text), -1)
	words := make([]word, 0, len(found))
	for _, raw := range found {
		if part, ok := fraction(raw); ok {
			words = append(words, word{raw: raw, stem: strconv.FormatFloat(part, 'g', -1, 64), number: true, content: true})
			continue
		}
		if strings.Contains(raw, "/") {
			words = append(words, wordsOf(strings.ReplaceAll(raw, "/", " "))...)
			continue
		}
		if abbreviation.MatchString(raw) {
			raw = strings.ReplaceAll(raw, ".", "")
		}
		lower := strings.ToLower(raw)
		w := word{raw: raw, content: !lexical.Function(lower) && hasWord(raw)}
		if value, ok := numeral(lower); ok {
			w.stem, w.number, w.content = strconv.FormatFloat(value, 'g', -1, 64), true, true
		} else {
			w.stem = analysis.Stem(strings.TrimSuffix(lower, "'s"), "en")
		}
		words = append(words, w)
	}
	return words
}

// isPlain reports whether a word is a content word and not a number.
func (w word) isPlain() bool { return w.content && !w.number }

// plainQuotes replaces typographic quotation marks, apostrophes, dashes and fractions.
var plainQuotes = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "–", "-", "—", "-", "\u00a0", " ", "\u202f", " ",
	"½", " 1/2", "¼", " 1/4", "¾", " 3/4", "⅓", " 1/3", "⅔", " 2/3")

// contentOf returns the content words of words, including numbers.
func contentOf(words []word) []word {
	var out []word
	for _, w := range words {
		if w.content {
			out = append(out, w)
		}
	}
	return out
}

// stemsOf returns the stems of words with their counts.
func stemsOf(words []word) map[string]int {
	stems := make(map[string]int, len(words))
	for _, w := range words {
		stems[w.stem]++
	}
	return stems
}

// exactSpan finds the whole sentences or whole lines of text that are claim word for word.
// White space and typographic quotes may differ. Part of a sentence is not enough: "it is
// wrong that water boils" contains "water boils" and denies it.
func exactSpan(text, claim string) (sp sentence.Span, ok bool) {
	start, end, ok := Find(text, claim)
	if !ok {
		return sp, false
	}
	sp = sentence.Span{Start: start, End: end}
	starts, ends := false, false
	for _, u := range unitsOf(text) {
		mark := len(itemMark.FindString(text[u.Start:u.End]))
		starts = starts || u.Start == start || u.Start+mark == start
		ends = ends || u.End == end
	}
	return sp, starts && ends || wholeLines(text, start, end)
}

// wholeLines reports whether [start, end) are two or more whole lines of text, as in code and
// tables, which have no sentences.
func wholeLines(text string, start, end int) bool {
	before := text[strings.LastIndexByte(text[:start], '\n')+1 : start]
	after, _, _ := strings.Cut(text[end:], "\n")
	return strings.Contains(text[start:end], "\n") && strings.TrimSpace(before) == "" && strings.TrimSpace(after) == ""
}

// Find returns the first occurrence of part in text. It treats all runs of white space as equal,
// and typographic quotation marks as plain ones.
func Find(text, part string) (start, end int, ok bool) {
	folded, at := fold(text)
	want, _ := fold(part)
	want = strings.TrimSuffix(want, " ")
	i := strings.Index(folded, want)
	if want == "" || i < 0 {
		return 0, 0, false
	}
	last := at[i+len(want)-1]
	_, size := utf8.DecodeRuneInString(text[last:])
	return at[i], last + size, true
}

// fold returns text with runs of white space as one space and plain quotation marks, and for each
// of its bytes the offset in text of the original character.
func fold(text string) (folded string, at []int) {
	var b strings.Builder
	b.Grow(len(text))
	at = make([]int, 0, len(text))
	blank := true // drops leading blanks
	put := func(s string, from int) {
		b.WriteString(s)
		for range len(s) {
			at = append(at, from)
		}
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case unicode.IsSpace(r):
			if !blank {
				put(" ", i)
			}
			blank = true
		case r < utf8.RuneSelf: // plainQuotes replaces none of these
			put(text[i:i+size], i)
			blank = false
		default:
			put(plainQuotes.Replace(text[i:i+size]), i)
			blank = false
		}
		i += size
	}
	return b.String(), at
}

// Locate returns the span of the sentences of text that support a claim: those that contain it
// verbatim, otherwise the one to three consecutive sentences that share most of its words. The span
// is empty (start == end) if no sentence shares a content word with it.
func Locate(claim, text string) (start, end int) {
	units := unitsOf(text)
	if start, end, ok := Find(text, claim); ok {
		if wholeLines(text, start, end) {
			return start, end
		}
		for _, u := range units {
			if u.Start < end && start < u.End {
				start, end = min(start, u.Start), max(end, u.End)
			}
		}
		return start, end
	}
	const most = 3
	want := stemsOf(contentOf(wordsOf(claim)))
	bags := bagsOf(text, units)
	best := 0
	for size := 1; size <= most; size++ {
		for i := 0; i+size <= len(units); i++ {
			if n := stemsIn(want, bags[i:i+size]); n > best {
				best, start, end = n, units[i].Start, units[i+size-1].End
			}
		}
	}
	return start, end
}

// bagsOf returns the stems of each unit of a text.
func bagsOf(text string, units []unit) []map[string]int {
	bags := make([]map[string]int, len(units))
	for i, u := range units {
		bags[i] = stemsOf(wordsOf(text[u.Start:u.End]))
	}
	return bags
}

// commonStems returns the number of stems of want that a text has.
func commonStems(want, have map[string]int) int { return stemsIn(want, []map[string]int{have}) }

// stemsIn returns the number of stems of want that are in at least one bag.
func stemsIn(want map[string]int, bags []map[string]int) int {
	n := 0
	for stem := range want {
		for _, bag := range bags {
			if bag[stem] > 0 {
				n++
				break
			}
		}
	}
	return n
}
