package retrieve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/assay-rag/assay/internal/analysis"
	detect "github.com/assay-rag/assay/internal/language"
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
// it, else "".
func (s *search) foreign() string {
	if code := s.language(); !s.speaks(code) {
		return code
	}
	return ""
}

// tellers is how many of the best hits by words tell a question's language.
const tellers = 10

// language returns the language of the question, "" where nothing tells. It is
// told by its stop words, which the trigrams of a few words do not replace: 8 of
// scifact's 809 claims were taken for Dutch, Italian or the like by those alone.
// What is asked without is taken to be in the language of what its words find:
// that of most of the relevance of the best hits.
func (s *search) language() string {
	text := s.query.Text
	if code := detect.Detect(text); code != "" {
		if stops, others, listed := analysis.StopShares(text, code); listed && stops > 0 && stops >= others {
			return code
		}
	}
	best := slices.Clone(s.found)
	slices.SortStableFunc(best, func(a, b *candidate) int { return cmp.Compare(b.of[0].words, a.of[0].words) })
	shares := map[string]float64{} // of the relevance
	for _, code := range s.languages() {
		shares[code] = 0
	}
	all := 0.0
	for _, c := range best[:min(len(best), tellers)] {
		all += c.of[0].words
		if c.hit.Language != "" {
			shares[c.hit.Language] += c.of[0].words
		}
	}
	told, most, alone := "", 0.0, false
	for _, code := range slices.Sorted(maps.Keys(shares)) {
		switch stops, _, _ := analysis.StopShares(text, code); {
		case stops > most:
			told, most, alone = code, stops, true
		case stops == most:
			alone = false
		}
	}
	if alone {
		return told
	}
	for code, share := range shares {
		if share > all/2 {
			return code
		}
	}
	return ""
}

// foreignNote says that vectors do not serve.
func (s *search) foreignNote(code string) string {
	return fmt.Sprintf("the question is in %s, the encoder %s was made for %s",
		name(code), s.Embedder.Model(), names(s.languages()))
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
