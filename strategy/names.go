package strategy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/sentence"
)

// namedIn is the number of best hits that are searched for names.
const namedIn = 2

// names returns the possible answers to a finding's question, the likeliest first, at most
// maxFills. They are the grader's answers or, if it gave none, the names in the best hits.
func (f *finding) names() []candidate {
	if len(f.grade.Answers) == 0 {
		return f.leads(described)
	}
	var list []candidate
	for _, x := range f.grade.Answers[:min(maxFills, len(f.grade.Answers))] {
		list = append(list, candidate{name: x.Text, chunk: x.Chunk, score: x.Score})
	}
	return list
}

// described is the least share of the weight of a question's terms in a sentence whose names may be
// the entity that the question describes.
const described = 0.5

// leads returns at most maxFills names in the best hits that are not in the question, from the
// sentences with the highest share of the weight of the question's terms. Sentences below least are
// ignored.
func (f *finding) leads(least float64) []candidate {
	const (
		second = 0.9  // factor for a name in a hit other than the best
		among  = 0.75 // of the best score
	)
	asked := stemsOf("", f.question)
	var finder entity.Finder
	best := map[string]candidate{}
	for i, h := range f.ranked()[:min(namedIn, len(f.hits))] {
		about := stemsOf(h.Language, append(slices.Clone(h.Chunk.Headings), h.Title)...)
		for _, sp := range sentence.Spans(h.Text) {
			text := h.Text[sp.Start:sp.End]
			score := f.weightIn(text, h.Language, about)
			if i > 0 {
				score *= second
			}
			for _, name := range finder.Names(text, h.Language) {
				words := text[name.Start:name.End]
				if old, ok := best[name.Key]; score > 0 && score >= least && within(asked, words) < 1 && (!ok || score > old.score) {
					best[name.Key] = candidate{name: words, chunk: h.Chunk.ID, score: score}
				}
			}
		}
	}
	list := slices.SortedFunc(maps.Values(best), func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.name, b.name))
	})
	if len(list) > 0 {
		list = slices.DeleteFunc(list, func(c candidate) bool { return c.score < among*list[0].score })
	}
	return list[:min(maxFills, len(list))]
}

// weightIn returns the share of the weight of the question's terms that a text contains together
// with its headings.
func (f *finding) weightIn(text, language string, about map[string]bool) float64 {
	asked, held := stemsOf(language, f.question), stemsOf(language, text)
	has, all := 0.0, 0.0
	for _, t := range f.terms {
		if !asked[t.Stem] {
			continue
		}
		all += t.Weight
		here := func(stem string) bool { return held[stem] || about[stem] }
		if here(t.Stem) || slices.ContainsFunc(t.Forms, here) {
			has += t.Weight
		}
	}
	if all == 0 {
		return 0
	}
	return has / all
}

// within returns the share of a text's stems that are known.
func within(known map[string]bool, text string) float64 {
	stems := stemsOf("", text)
	n := 0
	for stem := range stems {
		if known[stem] {
			n++
		}
	}
	return float64(n) / float64(max(1, len(stems)))
}

// ranked returns the hits in the order in which searches ranked them.
func (f *finding) ranked() []assay.Hit {
	hits := slices.Clone(f.hits)
	slices.SortStableFunc(hits, func(a, b assay.Hit) int {
		return cmp.Compare(f.places[a.Chunk.ID], f.places[b.Chunk.ID])
	})
	return hits
}

// speaksOfAll reports whether a hit contains all words of the names.
func speaksOfAll(h assay.Hit, names []string) bool {
	held := stemsOf(h.Language, append(slices.Clone(h.Chunk.Headings), h.Title, h.Text)...)
	return !slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(analysis.Tokens(name, ""), func(t analysis.Token) bool { return !t.Part && !held[t.Term] })
	})
}
