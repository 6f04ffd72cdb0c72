package ground

import (
	"cmp"
	"slices"

	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/llm"
)

// A window is a run of units of a cited passage that a claim is read against.
type window struct {
	passage int
	units   []unit
	size    int    // maximum number of its units: 1, 2 or 4
	score   int    // number of content words in common with the part of the claim
	prefix  string // lead of the first unit, if it is outside the run
}

// windowSizes lists the sizes of windows, in units.
var windowSizes = [...]int{1, 2, 4}

// perSize is the number of windows of each size that a part of a claim is read against. A
// claim of many parts is read against one of each.
const (
	perSize   = 2
	manyParts = 4
)

// A source is a cited passage split into units and words.
type source struct {
	Passage
	units []unit
	words [][]word         // of each unit
	bags  []map[string]int // of each unit
}

// sourcesOf prepares cited passages.
func sourcesOf(cited []Passage) []source {
	sources := make([]source, len(cited))
	for i, p := range cited {
		if p.Context == "" {
			p.Context = p.Quote
		}
		s := source{Passage: p, units: unitsOf(p.Context)}
		for _, u := range s.units {
			words := wordsOf(p.Context[u.Start:u.End])
			s.words, s.bags = append(s.words, words), append(s.bags, stemsOf(words))
		}
		sources[i] = s
	}
	return sources
}

// windowsOf returns the windows that share the most content words with a part of a claim, at most n
// of each size. Ties go to the earlier window.
func windowsOf(part string, sources []source, n int) []window {
	want := stemsOf(contentOf(wordsOf(part)))
	var out []window
	for _, size := range windowSizes {
		var all []window
		for p, s := range sources {
			for i := range s.units {
				if i > 0 && i+size > len(s.units) {
					break
				}
				end := min(i+size, len(s.units))
				w := window{passage: p, units: s.units[i:end], size: size}
				bags := s.bags[i:end]
				if lead := s.leadOf(w.units[0]); lead != "" {
					w.prefix = lead + "\n"
					bags = append(slices.Clone(bags), stemsOf(wordsOf(w.prefix)))
				}
				w.score = stemsIn(want, bags)
				all = append(all, w)
			}
		}
		slices.SortStableFunc(all, func(a, b window) int { return cmp.Compare(b.score, a.score) })
		out = append(out, all[:min(n, len(all))]...)
	}
	return out
}

// span returns the bytes of the window in its passage.
func (w window) span() sentence.Span {
	return sentence.Span{Start: w.units[0].Start, End: w.units[len(w.units)-1].End}
}

// excerpt returns the window in the form in which the reader reads it.
func (w window) excerpt(s source) llm.Excerpt {
	sp := w.span()
	return llm.Excerpt{Heading: joinHeading(s.Heading), Text: w.prefix + s.Context[sp.Start:sp.End]}
}

// deciding returns the unit of the window that holds the decisive words of a reading. If these are
// in the lead, it returns the first unit that shares the most words with the part.
func (w window) deciding(decisive llm.Extract, want map[string]int, s source) Span {
	start := w.span().Start
	middle := start + (decisive.Start+decisive.End)/2 - len(w.prefix)
	best, most := w.units[0], -1
	for _, u := range w.units {
		if isDecisive := u.Start <= middle && middle < u.End; isDecisive && decisive.Start < decisive.End {
			best = u
			break
		}
		if n := commonStems(want, stemsOf(wordsOf(s.Context[u.Start:u.End]))); n > most {
			best, most = u, n
		}
	}
	return Span{Passage: w.passage, Start: best.Start, End: best.End}
}
