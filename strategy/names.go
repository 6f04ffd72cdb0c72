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

// namedIn is in how many of the best hits of a search a name is looked for.
const namedIn = 2

// names returns what may be the answer to a finding's question, the likeliest first, at
// most maxFills: the answers that its grader found, else the names in its best hits.
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

// described is the share of the weight of a question's terms that a sentence has at least
// whose names may be what the question describes.
const described = 0.5

// leads returns the names in the best hits that the question does not have, at most
// maxFills: those in the sentences with most of the weight of the question's terms, which is
// least at least.
func (f *finding) leads(least float64) []candidate {
	const (
		second = 0.9  // of a name in a hit that is not the best one
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

// weightIn returns the share of the weight of the question's terms that a text has together
// with what it stands under.
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

// speaksOfAll reports whether a hit has all words of the names.
func speaksOfAll(h assay.Hit, names []string) bool {
	held := stemsOf(h.Language, append(slices.Clone(h.Chunk.Headings), h.Title, h.Text)...)
	return !slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(analysis.Tokens(name, ""), func(t analysis.Token) bool { return !t.Part && !held[t.Term] })
	})
}
