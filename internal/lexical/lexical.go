// Package lexical finds the names, numbers, negations and content words of a text
// by their form. It knows English; in other languages it finds only names and
// numbers.
package lexical

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/sentence"
)

// Function reports whether a lower-case English word has no content of its own: an article,
// pronoun, preposition, conjunction, auxiliary or question word, or a word that only introduces a
// request ("please", "tell", "explain").
func Function(word string) bool { return functionWords[word] }

var functionWords = set(`
a an the this that these those some any each every all both either neither no
i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
myself yourself himself herself itself ourselves themselves one ones someone anyone something anything everything nothing
who whom whose which what when where why how whether
am is are was were be been being do does did doing done have has had having
can could may might must shall should will would ought need needs
and or but nor so if then else than as because since while until unless though although
of in on at by for with without about against between among into onto through during before after above below
to from up down out off over under again further within across along around behind beyond per via upon
not also just only very too more most much many few less least such same other another
there here now ever never always often still yet already
dont doesnt didnt isnt arent wasnt werent cant cannot couldnt wont wouldnt shouldnt hasnt havent hadnt
im ive id ill youre theyre thats whats lets
please tell explain describe give show say says said know want like get gets got getting let make makes made
mean means happen happens way ways thing things kind sort
`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// Asking returns the lower-case words of a question that are part of its question
// word, such as "long" in "how long".
func Asking(question string) map[string]bool {
	asking := map[string]bool{}
	words := Words(strings.ToLower(question))
	for i, w := range words {
		if w == "how" && i+1 < len(words) && measures[words[i+1]] {
			asking[words[i+1]] = true
		}
	}
	return asking
}

var measures = set(`long large big small old young far fast quick quickly often deep high tall wide heavy hot cold soon late early well easy hard`)

// Negations counts the words of a text that negate.
func Negations(text string) int {
	n := 0
	for _, w := range Words(text) {
		lower := strings.ReplaceAll(strings.ToLower(w), "’", "'")
		if negations[lower] || strings.HasSuffix(lower, "n't") {
			n++
		}
	}
	return n
}

var negations = set(`not no never none nobody nothing nowhere neither nor without cannot lack lacks lacked fail fails failed
absent unable rarely hardly kein keine keinen nicht nie niemals ohne`)

// Contrasts returns the two sides of an explicit contrast, the texts before and after
// the contrasting word: "X differs from Y", "X, whereas Y". It also finds the sides of
// "X and Y differ", "the difference between X and Y" and "unlike X, Y". Ok is false if
// there is no contrasting word.
func Contrasts(text string) (one, other string, ok bool) {
	at := contrast.FindStringIndex(text)
	if at == nil {
		return "", "", false
	}
	before, word, after := text[:at[0]], strings.ToLower(text[at[0]:at[1]]), text[at[1]:]
	switch {
	case strings.HasPrefix(word, "difference"):
		return sides(after)
	case word == "differ":
		if one, other, ok := sides(before); ok {
			return one, other, true
		}
	case word == "unlike" && strings.TrimSpace(before) == "":
		one, other, ok = strings.Cut(after, ",")
		return one, other, ok
	}
	return before, after, true
}

// sides splits "X and Y".
func sides(text string) (one, other string, ok bool) { return strings.Cut(text, " and ") }

var contrast = lazyregexp.New(`(?i)\b(differ(s|ed|ent|ently|ence|ences)?|unlike|whereas|in contrast|by contrast|instead of|rather than|compared (to|with)|versus)\b`)

// Words returns the words of a text: runs of letters, digits and marks, with joining
// characters inside (don't, os.Open, file_name, 1,000).
func Words(text string) []string {
	var words []string
	for _, w := range wordSpans(text) {
		words = append(words, text[w.start:w.end])
	}
	return words
}

type span struct{ start, end int }

func wordSpans(text string) []span {
	var spans []span
	start := -1
	for i, r := range text {
		if isWord(r) || start >= 0 && joins(text, i, r) {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			spans = append(spans, span{start, i})
			start = -1
		}
	}
	if start >= 0 {
		spans = append(spans, span{start, len(text)})
	}
	return spans
}

func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_'
}

// joins reports whether the character at text[i:] is inside a word.
func joins(text string, i int, r rune) bool {
	if !strings.ContainsRune(".,'’-", r) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
	prev, _ := utf8.DecodeLastRuneInString(text[:i])
	switch r {
	case ',':
		return unicode.IsDigit(prev) && unicode.IsDigit(next)
	case '-':
		return isWord(prev) && unicode.IsLetter(next)
	}
	return isWord(prev) && isWord(next)
}

// Numbers returns the numbers of a text in plain digits, in order: "1,000" is
// 1000, "3.50" is 3.5, "four" is 4. Identifiers with digits (utf8, E1042, go1.22)
// are not numbers but names.
func Numbers(text string) []string {
	var numbers []string
	for _, w := range wordSpans(text) {
		if n, ok := number(text[w.start:w.end]); ok {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// Labels returns the numbers in digits of a text that name something rather than count
// it: no content word follows them ("Which pages does chapter 3 have?", not "Is it 30
// seconds?").
func Labels(text string) []string {
	var labels []string
	spans := wordSpans(text)
	for i, w := range spans {
		word := text[w.start:w.end]
		n, ok := number(word)
		if !ok || numberWords[strings.ToLower(word)] != "" {
			continue
		}
		if i+1 == len(spans) || Function(strings.ToLower(text[spans[i+1].start:spans[i+1].end])) {
			labels = append(labels, n)
		}
	}
	return labels
}

var numberWords = map[string]string{
	"zero": "0", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
	"nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "twenty": "20", "thirty": "30", "forty": "40",
	"fifty": "50", "hundred": "100", "thousand": "1000", "million": "1000000", "billion": "1000000000",
}

func number(word string) (string, bool) {
	if n, ok := numberWords[strings.ToLower(word)]; ok {
		return n, true
	}
	word = strings.ReplaceAll(word, ",", "")
	for _, suffix := range []string{"st", "nd", "rd", "th", "s", "%"} { // 1st, 1990s
		if cut := strings.TrimSuffix(word, suffix); cut != word && allDigits(cut) {
			word = cut
		}
	}
	whole, fraction, dotted := strings.Cut(word, ".")
	if !allDigits(whole) || dotted && !allDigits(fraction) {
		return "", false
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	return whole, true
}

func allDigits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// Names returns the names in a text, in order and without duplicates: capitalised words
// that do not begin a sentence (neighbours together: "G. Stanley Hall"), words with
// capitals or digits inside, identifiers (os.Open, HTTP, file_name, E1042), and text in
// quotes or backticks.
func Names(text string) []string {
	var names []string
	seen := map[string]bool{}
	add := func(name string) {
		name = strings.Trim(name, " \t\n.,;:!?")
		if key := strings.ToLower(name); name != "" && !seen[key] {
			seen[key] = true
			names = append(names, name)
		}
	}
	for _, q := range quoted(text) {
		add(q)
	}
	for _, sp := range sentence.Spans(text) {
		s := text[sp.Start:sp.End]
		words := wordSpans(s)
		for i := 0; i < len(words); i++ {
			w := s[words[i].start:words[i].end]
			if !isName(w, i == 0) {
				continue
			}
			start, end := words[i].start, words[i].end
			for i+1 < len(words) && capitalised(s[words[i+1].start:words[i+1].end]) && strings.Trim(s[end:words[i+1].start], " .") == "" {
				i++
				end = words[i].end
			}
			add(s[start:end])
		}
	}
	return names
}

// Quiet returns a text that is all in capitals in lower case, and any other text
// unchanged.
func Quiet(text string) string {
	if shouted(text) {
		return strings.ToLower(text)
	}
	return text
}

// shouted reports whether a text is all in capitals and is not a name: it has three words
// or more, and a function word.
func shouted(text string) bool {
	words := Words(text)
	return len(words) > 2 && strings.ToUpper(text) == text && slices.ContainsFunc(words, func(w string) bool {
		w = strings.ToLower(w)
		return len(w) > 1 && Function(w)
	})
}

// isName reports whether a word is a name by its form. The first word of a sentence
// may have a capital without being a name.
func isName(w string, first bool) bool {
	if identifier(w) {
		return true
	}
	return !first && capitalised(w) && !Function(strings.ToLower(w))
}

// codeMark holds the punctuation that is frequent in code.
var codeMark = func() (t [utf8.RuneSelf]bool) {
	for _, c := range "{}()[];=<>&|*/\\_+:#$@^~" {
		t[c] = true
	}
	return t
}()

// Code reports whether a sentence, or lines without a blank one between them, looks like program
// code or markup rather than prose. More than a tenth of such text is punctuation of code, or it
// has a mark that prose does not have.
func Code(text string) bool {
	trimmed := strings.TrimSpace(text)
	for _, mark := range []string{":=", ") {", "){", "};", "{ //", "/*", "*/"} {
		if strings.Contains(trimmed, mark) {
			return true
		}
	}
	for line := range strings.Lines(trimmed) {
		line = strings.TrimSpace(line)
		comment := strings.HasPrefix(line, "//") || strings.Contains(line, " // ")
		block := strings.HasPrefix(line, "}") || line != "" && strings.ContainsAny(line[len(line)-1:], "{};")
		if comment || block {
			return true
		}
	}
	marks, all := 0, 0
	for _, r := range trimmed {
		if unicode.IsSpace(r) {
			continue
		}
		all++
		if r < utf8.RuneSelf && codeMark[r] {
			marks++
		}
	}
	return marks*10 > all
}

// MostlyCode reports whether more than half of a text is code and none of it is a sentence of
// prose. A passage that explains code, or has an example of it, is not code.
//
// Of 4,500 functions of Go and Python it classifies 4,456 as code, and of the 11,528 passages of
// the shared retrieval sets 15, most of them examples or formulas. By the share of bytes in pieces
// that Code accepts alone, the numbers are 4,216 and 49.
func MostlyCode(text string) bool {
	code, all := 0, 0
	for _, sp := range sentence.Spans(text) {
		piece := text[sp.Start:sp.End]
		all += len(piece)
		words, share := plainWords(piece)
		switch {
		case share < proseShare || Code(piece):
			code += len(piece)
		case words >= proseWords:
			return false
		}
	}
	return 2*code > all
}

// A sentence of prose has at least proseWords plain words, and at least the share proseShare of its
// text without numbers is plain words.
const (
	proseWords = 5
	proseShare = 0.67
)

// plainWords returns the number of words of a text without a sign of code, and their share of its
// bytes without numbers and blanks, or 1 if there are no other bytes.
func plainWords(text string) (words int, share float64) {
	plain, all := 0, 0
	for field := range strings.FieldsSeq(text) {
		word := strings.TrimFunc(field, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) })
		if word == "" || word[0] >= '0' && word[0] <= '9' {
			continue
		}
		all += len(field)
		if !strings.ContainsFunc(word, inCode) {
			plain += len(field)
			words++
		}
	}
	if all == 0 {
		return 0, 1
	}
	return words, float64(plain) / float64(all)
}

// inCode reports whether a rune within a word is a sign of code.
func inCode(r rune) bool {
	return r < utf8.RuneSelf && !unicode.IsLetter(r) && !strings.ContainsRune("'-/", r)
}

// identifier reports whether a word has the form of an identifier or acronym: a capital after its
// first letter, a digit beside letters, or an underscore or a dot inside.
func identifier(w string) bool {
	if _, ok := number(w); ok {
		return false
	}
	hasLetter := false
	for i, r := range w {
		if unicode.IsLetter(r) {
			hasLetter = true
		}
		if i == 0 {
			continue
		}
		inner := unicode.IsUpper(r) && !strings.ContainsRune("'’-", rune(w[i-1]))
		afterLetter := hasLetter && (r == '.' || unicode.IsDigit(r))
		if inner || afterLetter || r == '_' {
			return true
		}
	}
	return false
}

func capitalised(w string) bool {
	r, _ := utf8.DecodeRuneInString(w)
	return unicode.IsUpper(r)
}

// quoted returns the short texts between quotation marks or backticks.
func quoted(text string) []string {
	const maxBytes = 80
	var found []string
	for _, pair := range [][2]string{{"`", "`"}, {`"`, `"`}, {"“", "”"}, {"«", "»"}} {
		rest := text
		for {
			_, after, ok := strings.Cut(rest, pair[0])
			if !ok {
				break
			}
			inside, tail, ok := strings.Cut(after, pair[1])
			if !ok {
				break
			}
			if len(inside) <= maxBytes && !strings.Contains(inside, "\n") {
				found = append(found, inside)
			}
			rest = tail
		}
	}
	return found
}
