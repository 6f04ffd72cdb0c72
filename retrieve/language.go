package retrieve

import (
	"cmp"
	"fmt"
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

// tellers is how many of the best hits by words tell a question's language.
const tellers = 10

// foreign returns the language of the question if the encoder was not made for
// it, else "". A question is told by its stop words, which trigrams of a few words
// do not replace: 8 of scifact's 809 claims were taken for Dutch, Italian or the
// like by those alone. One without is taken to be in the language of what its
// words find: most of the relevance of the best hits.
func (s *search) foreign() string {
	own := s.languages()
	if len(own) == 0 {
		return ""
	}
	if code := detect.Detect(s.query.Text); !s.speaks(code) {
		if stops, others, listed := analysis.StopShares(s.query.Text, code); listed && stops > 0 && stops >= others {
			return code
		}
	}
	for _, code := range own {
		if stops, others, listed := analysis.StopShares(s.query.Text, code); listed && stops > others {
			return ""
		}
	}
	best := slices.Clone(s.found)
	slices.SortStableFunc(best, func(a, b *candidate) int { return cmp.Compare(b.of[0].words, a.of[0].words) })
	shares := map[string]float64{}
	all := 0.0
	for _, c := range best[:min(len(best), tellers)] {
		all += c.of[0].words
		if !s.speaks(c.hit.Language) {
			shares[c.hit.Language] += c.of[0].words
			shares[""] += c.of[0].words
		}
	}
	if shares[""] <= all/2 {
		return ""
	}
	delete(shares, "")
	code := ""
	for l, share := range shares {
		if code == "" || share > shares[code] || share == shares[code] && l < code {
			code = l
		}
	}
	return code
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
