package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball"
	"golang.org/x/text/unicode/norm"
)

// Stop reports whether word, in any case, is one of the 33 English words that
// carry no meaning of their own and are not indexed.
func Stop(word string) bool {
	if len(word) > len("these") {
		return false
	}
	_, ok := stopWords[word]
	if !ok {
		_, ok = stopWords[strings.ToLower(word)]
	}
	return ok
}

// stopWords is the classic list of Lucene's English analyzer.
var stopWords = func() map[string]struct{} {
	m := make(map[string]struct{})
	for w := range strings.FieldsSeq(`a an and are as at be but by for if in into is it no not of on or such
		that the their then there these they this to was will with`) {
		m[w] = struct{}{}
	}
	return m
}()

// Stem returns the term of one word in a language, named as for Tokens: lower-
// cased, freed of accents, stemmed. Stop words are stemmed like others. A word
// with digits or signs in it has no other form than itself.
func Stem(word, language string) string {
	a := borrow(language)
	defer giveBack(a)
	return strings.Clone(a.stem(a.rules.fold(withoutApostrophes(word))))
}

// rules are what differs between languages.
type rules struct {
	language string
	snowball string // the stemmer's name; "": none
	stops    bool   // English stop words are removed
	elides   bool   // an apostrophe separates two words: l'homme
}

// snowballNames are the stemmers there are, by ISO 639-1 code.
var snowballNames = map[string]string{
	"en": "english", "es": "spanish", "fr": "french", "hu": "hungarian",
	"nb": "norwegian", "nn": "norwegian", "no": "norwegian", "ru": "russian", "sv": "swedish",
}

func stemmed(language string) bool { return snowballNames[language] != "" }

// baseLanguage cuts a code to its language: "en-GB" and "" are "en".
func baseLanguage(language string) string {
	if i := strings.IndexAny(language, "-_"); i >= 0 {
		language = language[:i]
	}
	if language == "" {
		return "en"
	}
	return strings.ToLower(language)
}

func rulesOf(language string) rules {
	language = baseLanguage(language)
	return rules{
		language: language,
		snowball: snowballNames[language],
		stops:    language == "en",
		elides:   language == "fr" || language == "it" || language == "ca",
	}
}

// fold returns word in lower case; for English without accents too. Other
// languages' stemmers want to see them first.
func (ru rules) fold(word string) string {
	if isASCII(word) {
		return strings.ToLower(word)
	}
	word = strings.ToLower(norm.NFKC.String(word))
	if ru.language == "en" {
		return withoutAccents(word)
	}
	return word
}

// stem returns the stem of a folded word.
func (a *Analyzer) stem(word string) string {
	if s, ok := a.stems[word]; ok {
		return s
	}
	if len(a.stems) >= maxCached {
		clear(a.stems)
	}
	word = strings.Clone(word)
	s := word
	if a.rules.snowball != "" && allLetters(word) && (a.rules.language != "en" || isASCII(word)) {
		if stemmed, err := snowball.Stem(word, a.rules.snowball, true); err == nil && stemmed != "" {
			s = stemmed
		}
	}
	s = withoutAccents(s)
	a.stems[word] = s
	return s
}

// withoutAccents drops the marks of Latin, Greek and Cyrillic letters and
// spells out the Latin letters that have no plain form within them.
func withoutAccents(word string) string {
	if isASCII(word) {
		return word
	}
	var b strings.Builder
	base := rune(0)
	for _, r := range norm.NFKD.String(word) {
		if unicode.Is(unicode.Mn, r) && unicode.In(base, unicode.Latin, unicode.Greek, unicode.Cyrillic) {
			continue
		}
		base = r
		if plain, ok := plainLetters[r]; ok {
			b.WriteString(plain)
		} else {
			b.WriteRune(r)
		}
	}
	return norm.NFC.String(b.String())
}

var plainLetters = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'đ': "d", 'ð': "d", 'ł': "l", 'þ': "th", 'ı': "i", 'ħ': "h", 'ŧ': "t",
}

// runeClass is classAt for what is not ASCII.
func runeClass(r rune) class {
	switch {
	case isIdeograph(r):
		return ideograph
	case unicode.IsLetter(r), unicode.IsMark(r):
		return letter
	case unicode.IsNumber(r):
		return digit
	}
	return separator
}

// isIdeograph reports whether r belongs to a script that is written without
// spaces and that bigrams serve: Chinese and Japanese, and Korean, whose words
// carry their particles with them.
func isIdeograph(r rune) bool {
	return r >= 0x1100 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) ||
		r == 'ー' || r == 'ｰ') && (unicode.IsLetter(r) || r == '〇')
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func allLetters(s string) bool {
	for _, r := range s {
		if !unicode.IsLetter(r) {
			return false
		}
	}
	return s != ""
}
