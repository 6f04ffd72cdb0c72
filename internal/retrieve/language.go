package retrieve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/assay-rag/assay/internal/analysis"
	detect "github.com/assay-rag/assay/internal/language"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/llm"
)

// languages returns the languages that the encoder supports; none means that it is not limited.
func (s *search) languages() []string {
	if l, ok := s.Embedder.(llm.Linguist); ok {
		return l.Languages()
	}
	return nil
}

// encoderSupports reports whether the encoder supports a language. An unknown language is assumed
// to be supported.
func (s *search) encoderSupports(code string) bool {
	own := s.languages()
	return code == "" || len(own) == 0 || slices.Contains(own, code)
}

// unsupportedLanguage returns the language of the question if the encoder does not support it, and
// "" otherwise. A question without a letter of the encoder's script is in an unsupported language,
// even if that language cannot be identified.
func (s *search) unsupportedLanguage() string {
	own := s.languages()
	if len(own) > 0 && !writtenAs(s.query.Text, own) {
		return cmp.Or(detect.Detect(s.query.Text), otherScript)
	}
	if code := s.language(); !s.encoderSupports(code) {
		return code
	}
	return ""
}

// otherScript is the language code of a question identified only by its script.
const otherScript = "und"

// writtenAs reports whether a text has a letter of the script of one of the languages, or no letter
// at all. It only recognizes the Latin script and returns true if one of the languages has another.
func writtenAs(text string, codes []string) bool {
	for _, code := range codes {
		if script, _ := language.Make(code).Script(); script.String() != "Latn" {
			return true
		}
	}
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Latin, r) }) || !strings.ContainsFunc(text, unicode.IsLetter)
}

// languageHits is how many of the best hits by words are used to identify the question's language.
const languageHits = 10

// minStopWords is the least number of stop words that identify a question as being in a language
// that neither the encoder supports nor the hits are in.
const minStopWords = 2

// language returns the language of the question, or "" if it cannot be determined. It counts stop
// words, because trigrams are unreliable on a few words: they alone took 8 of scifact's 809 claims
// for Dutch, Italian or similar. Ties between languages are resolved in favour of the encoder's
// languages or those of the best hits, weighted by relevance. Of 3,106 English questions of the
// shared sets the stop words put one in another language; of 1,190 German ones they identify 1,157.
func (s *search) language() string {
	text := s.query.Text
	stops, _ := analysis.StopCounts(text)
	stops["en"] = max(stops["en"], englishWords(text))
	expected := map[string]float64{} // language → its share of the relevance
	for _, code := range s.languages() {
		expected[code] = 0
	}
	best := slices.Clone(s.found)
	slices.SortStableFunc(best, func(a, b *candidate) int { return cmp.Compare(b.of[0].words, a.of[0].words) })
	all := 0.0
	for _, c := range best[:min(len(best), languageHits)] {
		all += c.of[0].words
		if c.hit.Language != "" {
			expected[c.hit.Language] += c.of[0].words
		}
	}
	most := 0
	for code := range expected {
		most = max(most, stops[code])
	}
	strange, stranger := max(most, minStopWords-1), ""
	for _, code := range slices.Sorted(maps.Keys(stops)) {
		if stops[code] > strange {
			strange, stranger = stops[code], code
		}
	}
	if stranger != "" {
		return stranger
	}
	var told []string
	for _, code := range slices.Sorted(maps.Keys(expected)) {
		if most > 0 && stops[code] == most {
			told = append(told, code)
		}
	}
	if len(told) == 1 {
		return told[0]
	}
	for code, share := range expected {
		if share > all/2 {
			return code
		}
	}
	return ""
}

// englishWords counts the English function words of a text. They include more than the index's stop
// words, for example question words.
func englishWords(text string) int {
	n := 0
	for _, w := range lexical.Words(text) {
		if lexical.Function(strings.ToLower(w)) {
			n++
		}
	}
	return n
}

// unsupportedNote returns the note that the encoder does not support the question's language.
func (s *search) unsupportedNote(code string) string {
	in := name(code)
	if code == otherScript {
		in = "another script"
	}
	return fmt.Sprintf("the question is in %s, the encoder %s was made for %s", in, s.Embedder.Model(), names(s.languages()))
}

// mixedNote returns the note that passages in unsupported languages were found by text alone.
func (s *search) mixedNote() string {
	return fmt.Sprintf("the encoder %s was made for %s: passages in other languages were found by text alone",
		s.Embedder.Model(), names(s.languages()))
}

// name returns the English name of a language.
func name(code string) string {
	if tag, err := language.Parse(code); err == nil {
		if n := display.English.Languages().Name(tag); n != "" {
			return n
		}
	}
	return code
}

func names(codes []string) string {
	list := make([]string, len(codes))
	for i, code := range codes {
		list[i] = name(code)
	}
	return strings.Join(list, ", ")
}
