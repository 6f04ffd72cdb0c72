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
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/llm"
)

// languages are those that the encoder was made for; none: it is not limited.
func (s *search) languages() []string {
	if l, ok := s.Embedder.(llm.Linguist); ok {
		return l.Languages()
	}
	return nil
}

// speaks reports whether the encoder was made for a language. What is not known to
// be another is taken for one of its own.
func (s *search) speaks(code string) bool {
	own := s.languages()
	return code == "" || len(own) == 0 || slices.Contains(own, code)
}

// foreign returns the language of the question if the encoder was not made for
// it, else "". A question without a letter of the encoder's script is in another,
// whichever that is.
func (s *search) foreign() string {
	own := s.languages()
	if len(own) > 0 && !writtenAs(s.query.Text, own) {
		return cmp.Or(detect.Detect(s.query.Text), otherScript)
	}
	if code := s.language(); !s.speaks(code) {
		return code
	}
	return ""
}

// otherScript stands for the language of a question that only its letters tell.
const otherScript = "und"

// writtenAs reports whether a text has a letter of the script of one of the
// languages, or no letter at all. Of scripts other than Latin it cannot tell.
func writtenAs(text string, codes []string) bool {
	for _, code := range codes {
		if script, _ := language.Make(code).Script(); script.String() != "Latn" {
			return true
		}
	}
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Latin, r) }) || !strings.ContainsFunc(text, unicode.IsLetter)
}

// tellers is how many of the best hits by words tell a question's language.
const tellers = 10

// strangeWords is how many stop words it takes to be taken for a language in which
// neither the encoder nor what was found is.
const strangeWords = 2

// language returns the language of the question, "" where nothing tells. It is
// told by its stop words, which the trigrams of a few words do not replace: 8 of
// scifact's 809 claims were taken for Dutch, Italian or the like by those alone.
// Of languages that have as many it is one of the encoder's or of what its words
// find: that of most of the relevance of the best hits. Of 3,106 questions of the
// shared sets in English one is taken for another language by its stop words, of
// 1,190 German ones 1,157 are told by them.
func (s *search) language() string {
	text := s.query.Text
	stops, _ := analysis.StopCounts(text)
	stops["en"] = max(stops["en"], englishWords(text))
	expected := map[string]float64{} // languages, with their share of the relevance
	for _, code := range s.languages() {
		expected[code] = 0
	}
	best := slices.Clone(s.found)
	slices.SortStableFunc(best, func(a, b *candidate) int { return cmp.Compare(b.of[0].words, a.of[0].words) })
	all := 0.0
	for _, c := range best[:min(len(best), tellers)] {
		all += c.of[0].words
		if c.hit.Language != "" {
			expected[c.hit.Language] += c.of[0].words
		}
	}
	most := 0
	for code := range expected {
		most = max(most, stops[code])
	}
	strange, stranger := max(most, strangeWords-1), ""
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

// englishWords counts the words of a text that hold English sentences together:
// more than are stop words in the index, what questions begin with among them.
func englishWords(text string) int {
	n := 0
	for _, w := range surface.Words(text) {
		if surface.Function(strings.ToLower(w)) {
			n++
		}
	}
	return n
}

// foreignNote says that vectors do not serve.
func (s *search) foreignNote(code string) string {
	in := name(code)
	if code == otherScript {
		in = "another script"
	}
	return fmt.Sprintf("the question is in %s, the encoder %s was made for %s", in, s.Embedder.Model(), names(s.languages()))
}

// mixedNote says how what is in other languages was found.
func (s *search) mixedNote() string {
	return fmt.Sprintf("the encoder %s was made for %s: passages in other languages were found by text alone",
		s.Embedder.Model(), names(s.languages()))
}

// name is the English name of a language.
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
