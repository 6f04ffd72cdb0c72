package strategy

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/run"
)

// graphSpec describes Graph.
var graphSpec = Spec{
	Name:    "graph",
	Summary: "walks over an entity graph from what the question names to what the documents say of it together",
	Source: "Gutiérrez et al., \"HippoRAG: Neurobiologically Inspired Long-Term Memory for Large Language Models\", " +
		"2024, for personalised PageRank over what passages name; Andersen, Chung and Lang, FOCS 2006, for its " +
		"computation; the hops are assay's",
	Func:      Graph,
	Defaults:  "3 names are followed; the walk starts at 5 hits",
	UsualCost: "up to three searches more than static",
}

// Graph walks over the entity graph of the documents. The first search starts a far walk from the
// names in the question and from its first hits by words and by vectors, and adds the passages that
// the walk reaches. Passages reached under names that are not in the question are clues, such as
// the article about a person named in a hit. The best clues are followed by a second hop in
// parallel: a search for the question alone and with that name, whose walk also starts at that
// passage. All hits are fused by reciprocal rank and graded together by their relevance to the
// question alone: a passage is not relevant merely because it stands under the name that was
// searched.
func Graph(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	sq := subQuestion{question: env.Question, stop: assay.StopIterationLimit}
	err := sq.walk(ctx, s, env)
	if stop := stopOf(err); stop != "" {
		sq.endSearch(stop, err)
	} else if err != nil {
		return Result{}, err
	}
	if err := sq.gradeAll(ctx, s, env); stopOf(err) != "" {
		sq.endSearch(stopOf(err), err)
	} else if err != nil {
		return Result{}, err
	}
	if sq.sufficient() && !sq.cutShort() {
		sq.stop = assay.StopSufficient
	}
	answer, _, err := env.finish(ctx, s.Sub("finish", 0), "graph", []subQuestion{sq})
	return answer, err
}

// walk searches for the sub-question, then follows its clues.
func (sq *subQuestion) walk(ctx context.Context, s run.Scope, env Env) error {
	hops := []subQuestion{{question: sq.question}}
	_, err := hops[0].search(ctx, s.Sub("hop", 0), env, assay.Query{Text: sq.question, Walk: assay.WalkFar})
	if err != nil {
		return err
	}
	clues := cluesOf(sq.question, hops[0].hits)
	hops = append(hops, make([]subQuestion, len(clues))...)
	err = s.Sub("hop", 1).Parallel(ctx, "clue", len(clues), sideBySide, func(ctx context.Context, i int, s run.Scope) error {
		h := &hops[1+i]
		h.question = sq.question
		q := assay.Query{Text: sq.question, Rewrites: []string{sq.question + " " + clues[i].name}, Walk: assay.WalkFar, From: []string{clues[i].chunk}}
		_, err := h.search(ctx, s, env, q)
		if stop := stopOf(err); stop != "" {
			h.endSearch(stop, err)
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for i := range hops {
		sq.add(hops[i])
	}
	sq.order(reciprocalRanks(hops))
	return nil
}

// A clue is a passage that a walk reached, with its heading or title.
type clue struct{ name, chunk string }

// maxClues is the number of clues that are followed.
const maxClues = 3

// cluesOf returns the passages with the most mass of the walk whose heading or title is not in the
// question.
func cluesOf(question string, hits []assay.Hit) []clue {
	reached := slices.DeleteFunc(slices.Clone(hits), func(h assay.Hit) bool { return h.Scores.Graph == nil })
	slices.SortStableFunc(reached, func(a, b assay.Hit) int { return cmp.Compare(*b.Scores.Graph, *a.Scores.Graph) })
	asked := stemsOf("", question)
	var clues []clue
	for _, h := range reached {
		name := standsUnder(h)
		known := slices.ContainsFunc(clues, func(c clue) bool { return strings.EqualFold(c.name, name) })
		if name == "" || known || !slices.ContainsFunc(analysis.Tokens(name, ""), func(t analysis.Token) bool { return !t.Part && !asked[t.Term] }) {
			continue
		}
		if clues = append(clues, clue{name, h.Chunk.ID}); len(clues) == maxClues {
			break
		}
	}
	return clues
}

// standsUnder returns the last heading of a hit, or its title.
func standsUnder(h assay.Hit) string {
	if n := len(h.Chunk.Headings); n > 0 {
		return h.Chunk.Headings[n-1]
	}
	return h.Title
}
