package strategy

import (
	"cmp"
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// fusionSpec describes Fusion.
var fusionSpec = Spec{
	Name:    "fusion",
	Summary: "searches several wordings of the question and fuses the results by rank",
	Source: "Raudaschl, \"Forget RAG, the Future is RAG-Fusion\", 2023; k = 60: Cormack, Clarke and Büttcher, " +
		"\"Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods\", SIGIR 2009",
	Func:      Fusion,
	Defaults:  "3 rewritings, at most 8 (fusion.queries)",
	UsualCost: "a rewriting, and a search for each of its results, more than static",
}

// Fusion searches for the question and several rewritings of it in parallel, and fuses the hits by
// reciprocal rank. Hits are graded and read in the order of the fused rank. Whether a hit is
// relevant depends on its calibrated relevance to the question, which no rank changes.
func Fusion(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	sq := subQuestion{question: env.Question, stop: assay.StopIterationLimit}
	err := sq.fuse(ctx, s, env)
	if err == nil {
		err = sq.gradeAll(ctx, s, env)
	}
	switch stop := stopOf(err); {
	case stop != "":
		sq.endSearch(stop, err)
	case err != nil:
		return Result{}, err
	case sq.sufficient() && !sq.cutShort():
		sq.stop = assay.StopSufficient
	}
	answer, _, err := env.finish(ctx, s.Sub("finish", 0), "fusion", []subQuestion{sq})
	return answer, err
}

// fuse searches for the sub-question and for each of its rewritings, and orders the hits
// of all searches. A search that exceeds the budget is left out.
func (sq *subQuestion) fuse(ctx context.Context, s run.Scope, env Env) error {
	in := role.RewriteInput{Question: sq.question, Technique: role.Expand, Most: env.Settings.Fusion.Queries}
	rewritings, err := env.rewrite(ctx, s, in, &sq.notes)
	if err != nil && stopOf(err) == "" { // the budget may still allow a search
		return err
	}
	branches := make([]subQuestion, 1+len(rewritings))
	err = s.Parallel(ctx, "query", len(branches), sideBySide, func(ctx context.Context, i int, s run.Scope) error {
		b := &branches[i]
		b.question = sq.question
		q := assay.Query{Text: sq.question}
		if i > 0 { // with the question, which alone determines relevance
			q.Rewrites = rewritings[i-1 : i]
		}
		_, err := b.search(ctx, s, env, q)
		if stop := stopOf(err); stop != "" {
			b.endSearch(stop, err)
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for i := range branches {
		sq.add(branches[i])
	}
	sq.order(reciprocalRanks(branches))
	return nil
}

// add merges another sub-question for the same question into sq.
func (sq *subQuestion) add(other subQuestion) {
	sq.notes.join(other.notes)
	sq.addHits(other.hits)
	if sq.terms == nil {
		sq.terms = other.terms
	}
	sq.searched = append(sq.searched, other.searched...)
	sq.searchKeys = append(sq.searchKeys, other.searchKeys...)
	sq.iterations += other.iterations
	if other.cutShort() {
		sq.stop, sq.shortfall = other.stop, other.shortfall
	}
}

// rankDamping damps the best ranks of reciprocal rank fusion.
const rankDamping = 60

// reciprocalRanks returns for each chunk the sum over the sub-questions of 1/(60 + rank), with
// ranks from 1. Higher is better.
func reciprocalRanks(branches []subQuestion) map[string]float64 {
	fused := map[string]float64{}
	for _, b := range branches {
		for id, place := range b.bestRank {
			fused[id] += 1 / float64(rankDamping+place+1)
		}
	}
	return fused
}

// order sorts the hits by fused score, best first, and records that as their rank. Ties keep their
// order.
func (sq *subQuestion) order(fused map[string]float64) {
	slices.SortStableFunc(sq.hits, func(a, b assay.Hit) int { return cmp.Compare(fused[b.Chunk.ID], fused[a.Chunk.ID]) })
	for i, h := range sq.hits {
		sq.bestRank[h.Chunk.ID] = i
	}
}
