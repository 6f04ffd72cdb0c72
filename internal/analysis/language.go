package analysis

import (
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
)

// other is the code of all languages without rules.
const other = "und"

// rules holds the differences between languages. The zero value is for an unknown language.
type rules struct {
	language string                       // its canonical code
	snowball func(*snowballstem.Env) bool // the stemmer; nil: none
	stops    map[string]struct{}          // words that are not indexed, lower case
	// elisions lists the words that an apostrophe joins to the next word without being a part of it
	// (l'homme). In a language with elisions, an apostrophe separates words.
	elisions map[string]struct{}
}

// languages holds the rules by canonical code.
var languages = map[string]rules{
	"ar": {snowball: arabic.Stem},
	"ca": {elisions: set(`l d n s m t`)},
	"da": {snowball: danish.Stem},
	"de": {snowball: german.Stem},
	"en": {snowball: english.Stem},
	"es": {snowball: spanish.Stem},
	"fi": {snowball: finnish.Stem},
	"fr": {snowball: french.Stem, elisions: set(`l d j m t s c n qu jusqu lorsqu puisqu quoiqu presqu`)},
	"ga": {snowball: irish.Stem},
	"hu": {snowball: hungarian.Stem},
	"it": {snowball: italian.Stem, elisions: set(`l d c m t s v n un gl dell all nell sull dall coll quest quell degl agl`)},
	"nl": {snowball: dutch.Stem},
	"no": {snowball: norwegian.Stem},
	"pt": {snowball: portuguese.Stem},
	"ro": {snowball: romanian.Stem},
	"ru": {snowball: russian.Stem},
	"sv": {snowball: swedish.Stem},
	"ta": {snowball: tamil.Stem},
	"tr": {snowball: turkish.Stem},
}

// canonical returns the code of a language's rules. "en-GB" and "" are "en", both written forms of
// Norwegian are "no", and all languages without rules share one code.
func canonical(language string) string {
	if i := strings.IndexAny(language, "-_"); i >= 0 {
		language = language[:i]
	}
	switch language = strings.ToLower(language); language {
	case "":
		return "en"
	case "nb", "nn":
		return "no"
	}
	if _, ok := languages[language]; !ok {
		return other
	}
	return language
}

func rulesOf(language string) rules {
	code := canonical(language)
	ru := languages[code]
	ru.language = code
	ru.stops = stopWords[code]
	return ru
}

// isStop reports whether a folded word is a stop word.
func (ru rules) isStop(word string) bool {
	_, ok := ru.stops[word]
	return ok
}

// elision returns the length of the elided word at text[i:] with its apostrophe, such as "l'" in
// "l'homme", or 0 if there is none.
func (ru rules) elision(text string, i int) int {
	if ru.elisions == nil {
		return 0
	}
	const longest = len("lorsqu")
	for end := i; end < len(text) && end <= i+longest; end++ {
		if isASCIILetter(text[end]) {
			continue
		}
		size := apostrophe(text[end:])
		if size == 0 || !startsWord(text, end+size) {
			return 0
		}
		if _, ok := ru.elisions[strings.ToLower(text[i:end])]; !ok {
			return 0
		}
		return end + size - i
	}
	return 0
}

// apostrophe returns the length of the apostrophe that text begins with, or 0.
func apostrophe(text string) int {
	switch {
	case strings.HasPrefix(text, "'"):
		return len("'")
	case strings.HasPrefix(text, "’"):
		return len("’")
	}
	return 0
}

func set(words string) map[string]struct{} {
	m := make(map[string]struct{})
	for w := range strings.FieldsSeq(words) {
		m[w] = struct{}{}
	}
	return m
}
