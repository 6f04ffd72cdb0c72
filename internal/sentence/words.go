package sentence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// An abbreviation is the behaviour at the end of a sentence of a word with its own stop.
type abbreviation int

const (
	none         abbreviation = iota // an ordinary word
	never                            // does not end a sentence: "e.g.", "Dr."
	beforeNumber                     // not before a number or label: "Fig. 2", "No. 5"
	maybe                            // only before a word that often starts one: "U.S.", "G."
	seldom                           // only before a capital: "etc.", "Inc."
)

// abbreviations maps lower-case words without their last stop to their kind.
var abbreviations = func() map[string]abbreviation {
	m := map[string]abbreviation{}
	for kind, words := range map[abbreviation]string{
		never: "e.g eg i.e ie cf vs viz dr mr mrs ms prof messrs mme mlle st gen rep sen gov lt sgt capt cmdr rev hon " +
			"mt approx ca resp esp incl excl orig aka a.k.a w.r.t i.a bzw z.b d.h u.a vgl ggf inkl evtl ca hr fr p.ex",
		beforeNumber: "no nos nr fig figs eq eqs sec sect ch chap vol art p pp par para tab ex ver v app appx ref refs " +
			"tbl alg thm lem prop def cor ed abs kap bd jan feb mar apr jun jul aug sep sept oct nov dec",
		seldom: "etc usw et.al al inc ltd co corp llc gmbh bros jr sr dept est univ assn ave blvd rd max min avg misc temp",
	} {
		for w := range strings.FieldsSeq(words) {
			m[w] = kind
		}
	}
	return m
}()

// longestAbbreviation is the largest length that is looked up.
const longestAbbreviation = 8

func abbreviationOf(word string) abbreviation {
	if isInitial(word) || isAcronym(word) {
		if abbreviations[strings.ToLower(word)] == never {
			return never
		}
		if len(word) == 1 && 'a' <= word[0] && word[0] <= 'z' {
			return abbreviations[word]
		}
		return maybe
	}
	if len(word) > longestAbbreviation {
		return none
	}
	return abbreviations[strings.ToLower(word)]
}

// isInitial reports whether word is one letter, as in "G. Stanley Hall".
func isInitial(word string) bool {
	r, n := utf8.DecodeRuneInString(word)
	return n == len(word) && unicode.IsLetter(r)
}

// isAcronym reports whether word consists of short groups of letters separated by stops: "U.S",
// "a.m", "Ph.D".
func isAcronym(word string) bool {
	if len(word) > longestAbbreviation || strings.IndexByte(word, '.') < 0 {
		return false
	}
	for part := range strings.SplitSeq(word, ".") {
		if n := utf8.RuneCountInString(part); n < 1 || n > 2 {
			return false
		}
		for _, r := range part {
			if !unicode.IsLetter(r) {
				return false
			}
		}
	}
	return true
}

// isEnumerator reports whether word, the first of a sentence, with its stop is a number of the
// sentence: "1", "2.3", "a", "iv".
func isEnumerator(word string) bool {
	if len(word) > 8 {
		return false
	}
	if strings.Trim(word, "0123456789.") == "" {
		return true
	}
	if len(word) == 1 {
		return isInitial(word)
	}
	return strings.Trim(word, "ivx") == "" || strings.Trim(word, "IVX") == ""
}

// isPlain reports whether word has only letters.
func isPlain(word string) bool {
	for _, r := range word {
		if !unicode.IsLetter(r) {
			return false
		}
	}
	return true
}

// lastWord returns the end of text after its last blank or opening quote or bracket, at most
// maxWord bytes.
func lastWord(text string) string {
	at := len(text)
	for at > 0 && len(text)-at < maxWord {
		r, n := utf8.DecodeLastRuneInString(text[:at])
		if unicode.IsSpace(r) || isOpener(r) && r != '_' || isCloser(r) && r != '_' {
			break
		}
		at -= n
	}
	return text[at:]
}

const maxWord = 32

// A following classifies the text after a stop.
type following struct {
	kind    followKind
	name    bool // an identifier rather than a word: "os.Open", "fooBar", "x_1"
	label   bool // a single capital or Roman number, as in "Fig. B"
	starter bool // a capitalised word that often starts a sentence
}

type followKind int

const (
	upper followKind = iota // a capital, a letter without case, or anything else that can start a sentence
	lower
	digit
	joins // a dash, a comma, an operator: the sentence continues
)

// follow classifies text, which starts with a rune that is not blank.
func follow(text string) following {
	text = strings.TrimLeftFunc(text, isOpener)
	r, n := utf8.DecodeRuneInString(text)
	word := text[:min(len(text), maxWord)]
	if end := strings.IndexFunc(word, unicode.IsSpace); end >= 0 {
		word = word[:end]
	}
	switch {
	case unicode.IsDigit(r):
		return following{kind: digit}
	case unicode.IsLower(r):
		return following{kind: lower, name: isName(word)}
	case unicode.IsUpper(r):
		bare := strings.TrimRight(word, ".,;:!?)]'\"")
		return following{
			kind:    upper,
			label:   len(bare) == n || strings.Trim(bare, "IVX") == "",
			starter: starters[bare],
		}
	case strings.ContainsRune("-–—,;:=+&|<>%", r):
		return following{kind: joins}
	}
	return following{kind: upper}
}

// isName reports whether word looks like an identifier, a path or a command rather than a word of
// prose.
func isName(word string) bool {
	word = strings.TrimRight(word, ".,;:!?)]'\"")
	for i, r := range word {
		if i > 0 && (unicode.IsUpper(r) || unicode.IsDigit(r)) {
			return true
		}
		if strings.ContainsRune("._/\\()@=<>", r) {
			return true
		}
	}
	return false
}

// starters are words that often start a sentence and rarely follow an initial.
var starters = wordSet("The A An This That These Those It Its If In On At As To For From By With When Where While " +
	"He She They We You I There Then Thus But And Or So However Because Since After Before Each Every All Any Some No Not " +
	"Use See Note Both Other Such One Our Their His Her My Your What Which Who How Why Is Are Was Does Do Can")

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// A listMarker is the kind of marker at the start of a line.
type listMarker int

const (
	plain  listMarker = iota // not a list item
	bullet                   // "- ", "* ", "• "
	number                   // "1. ", "2) ", "a) "
)

// marker classifies the line at the start of text.
func marker(text string) listMarker {
	r, n := utf8.DecodeRuneInString(text)
	switch r {
	case '-', '*', '+', '•', '◦', '▪', '‣', '–':
		if len(text) > n && (text[n] == ' ' || text[n] == '\t') {
			return bullet
		}
		return plain
	}
	if _, ok := numberMarker(text); ok {
		return number
	}
	return plain
}

// numberMarker returns the length of the list number at the start of text, up to the blank after
// it.
func numberMarker(text string) (int, bool) {
	i := 0
	for i < len(text) && i < 3 && '0' <= text[i] && text[i] <= '9' {
		i++
	}
	if i == 0 && len(text) > 1 && 'a' <= text[0]|0x20 && text[0]|0x20 <= 'z' && text[1] == ')' {
		i = 1
	}
	if i == 0 || i+1 >= len(text) || text[i] != '.' && text[i] != ')' || text[i+1] != ' ' && text[i+1] != '\t' {
		return 0, false
	}
	return i + 1, true
}
