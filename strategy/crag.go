package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// cragSpec describes CRAG.
var cragSpec = Spec{
	Name:    "crag",
	Summary: "scores each passage; where the web may be searched, its results replace weak ones",
	Source: "Yan et al., \"Corrective Retrieval Augmented Generation\", 2024: the three actions, and knowledge " +
		"refinement",
	Func: CRAG,
	Defaults: "relevant from 0.7 (crag.correct), irrelevant under 0.3 (crag.incorrect); 2 hits are enough " +
		"(crag.relevant); 5 results of the web (crag.web) with a score of 0.8 (crag.web_score)",
	UsualCost: "a score more than static; a refinement if hits are ambiguous; a web search and one step for each page " +
		"if there are too few",
}

// CRAG scores each hit of one search and acts on the scores:
//
//   - If enough hits are relevant, only they are used.
//   - If relevant and ambiguous hits together are enough, the ambiguous ones are refined to the
//     sentences that bear on the question, and dropped if there are none.
//   - Otherwise the web is searched, and its results join the relevant hits.
//
// All hits used are finally graded, as in every strategy, because hits that scored well may still
// not cover the question. If the web is off, the answer reports it.
func CRAG(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	sq := subQuestion{question: env.Question, stop: assay.StopIterationLimit}
	err := sq.evaluate(ctx, s, &env)
	if stop := stopOf(err); stop != "" {
		sq.endSearch(stop, err)
		err = nil
	}
	if err != nil {
		return Result{}, err
	}
	if sq.sufficient() {
		sq.stop = assay.StopSufficient
	}
	answer, _, err := env.finish(ctx, s.Sub("finish", 0), "crag", []subQuestion{sq})
	return answer, err
}

// evaluate searches, scores the hits, acts on the scores and grades the hits that are used.
func (sq *subQuestion) evaluate(ctx context.Context, s run.Scope, env *Env) error {
	if _, err := sq.search(ctx, s, *env, assay.Query{Text: sq.question}); err != nil {
		return err
	}
	sq.grade.Missing = []string{questionSources(env.Question).line(sq.question)} // until hits are used
	scores, err := env.score(ctx, s, sq.question, sq.hits, &sq.notes)
	if err != nil {
		return err
	}
	if n := len(sq.hits) - len(scores); n > 0 {
		sq.notes.say(assay.NoteLeftOut, fmt.Sprintf("%s beyond the first %d were not scored, and are set aside", count(n, "passage", "passages"), len(scores)))
	}
	settings := env.Settings.CRAG
	relevant, ambiguous, aside := sq.scored(scores, settings)
	sq.hits = relevant
	switch {
	case len(relevant) >= settings.Relevant:
		aside = append(ambiguous, aside...)
	case len(relevant)+len(ambiguous) >= settings.Relevant:
		if env.Limits.Passages == 0 { // with a fixed number, whole passages are compared
			if ambiguous, err = env.refine(ctx, s, sq.question, ambiguous, &sq.notes); err != nil {
				return err
			}
			env.Limits.Keep = max(env.Limits.Keep, len(relevant)+len(ambiguous)) // excerpts are short
		}
		sq.hits = append(sq.hits, ambiguous...)
	default:
		aside = append(ambiguous, aside...)
		sq.notes.say(assay.NoteSearch, fmt.Sprintf("fewer than %s of the documents scored %.2f or more for the question",
			count(settings.Relevant, "passage", "passages"), settings.Incorrect))
		err := env.searchWebFor(ctx, s, sq)
		if stop := stopOf(err); stop != "" { // the relevant hits are used without the web
			sq.endSearch(stop, err)
			sq.notes.say(assay.NoteLimit, fmt.Sprintf("the run had no budget left left to search the web to the end (%s)", stop))
		} else if err != nil {
			return err
		}
	}
	if len(sq.hits) > 0 {
		slices.SortStableFunc(sq.hits, byScore) // with those of the web
		err = sq.gradeAll(ctx, s, *env)
	}
	sq.hits = append(sq.hits, aside...) // reported as the closest passages
	return err
}

// scored sets the scores of the hits and groups the hits by score, best first. Hits without a score
// are irrelevant.
func (sq *subQuestion) scored(scores []float64, c CRAGSettings) (relevant, ambiguous, irrelevant []assay.Hit) {
	hits := slices.Clone(sq.hits)
	for i, score := range scores {
		hits[i].Scores.Score = &score
	}
	slices.SortStableFunc(hits, byScore)
	for _, h := range hits {
		switch score := h.Scores.Score; {
		case score != nil && *score >= c.Correct:
			relevant = append(relevant, h)
		case score != nil && *score >= c.Incorrect:
			ambiguous = append(ambiguous, h)
		default:
			irrelevant = append(irrelevant, h)
		}
	}
	return relevant, ambiguous, irrelevant
}

// byScore orders hits by their scores, the best first; those without one come last.
func byScore(a, b assay.Hit) int {
	score := func(h assay.Hit) float64 {
		if h.Scores.Score == nil {
			return -1
		}
		return *h.Scores.Score
	}
	return cmp.Compare(score(b), score(a))
}

// refine returns the parts of hits that bear on a question, as hits with the scores of the whole
// hit. Hits without such parts are dropped.
func (e Env) refine(ctx context.Context, s run.Scope, question string, hits []assay.Hit, notes *noteList) ([]assay.Hit, error) {
	if len(hits) == 0 {
		return nil, nil
	}
	whole := role.WholeHits(hits)
	out, err := runRole(ctx, s.Sub("refine", 0), e, job[scoreInput, role.Refinement]{
		task: role.RefinerTask,
		do: func(ctx context.Context, c role.Caller, in scoreInput) (role.Refinement, error) {
			out, err := e.Roles.Judge.Refine(ctx, c, in.Question, in.Hits)
			if err == nil && !partsFit(out.Parts, in.Hits) {
				out.Parts, out.Notes = whole, append(slices.Clone(out.Notes), "refiner: its parts are not of the passages, which are used whole")
			}
			return out, err
		},
		cautious: role.Refinement{Parts: whole},
	}, scoreInput{question, hits}, notes)
	if err != nil {
		return nil, err
	}
	if !partsFit(out.Parts, hits) {
		return nil, fmt.Errorf("parts that are not of their hits: %w", assay.ErrDamaged)
	}
	var refined []assay.Hit
	for i, h := range hits {
		for _, p := range out.Parts[i] {
			if p.Start == 0 && p.End == len(h.Text) {
				refined = append(refined, h)
				continue
			}
			refined = append(refined, excerpt(h, p.Start, p.End))
		}
	}
	return refined, nil
}

// partsFit reports whether parts are ascending spans of the texts of hits.
func partsFit(parts [][]role.Span, hits []assay.Hit) bool {
	if len(parts) != len(hits) {
		return false
	}
	for i, h := range hits {
		last := 0
		for _, p := range parts[i] {
			isPart := last <= p.Start && p.Start < p.End && p.End <= len(h.Text)
			if !isPart || !utf8.ValidString(h.Text[p.Start:p.End]) {
				return false
			}
			last = p.End
		}
	}
	return true
}

// scoreInput is the input of a scorer.
type scoreInput struct {
	Question string      `json:"question"`
	Hits     []assay.Hit `json:"hits"`
}

// score asks the scorer for the scores of the hits, at most as many as one search returns. An
// invalid score becomes role.CautiousScore.
func (e Env) score(ctx context.Context, s run.Scope, question string, hits []assay.Hit, notes *noteList) ([]float64, error) {
	hits = hits[:min(len(hits), e.Limits.Candidates)]
	if len(hits) == 0 {
		return nil, nil
	}
	cautious := slices.Repeat([]float64{role.CautiousScore}, len(hits))
	out, err := runRole(ctx, s, e, job[scoreInput, role.HitScores]{
		task: role.ScorerTask,
		do: func(ctx context.Context, c role.Caller, in scoreInput) (role.HitScores, error) {
			out, err := e.Roles.Judge.Score(ctx, c, in.Question, in.Hits)
			return sound(out, len(in.Hits)), err
		},
		cautious: role.HitScores{Scores: cautious},
	}, scoreInput{question, hits}, notes)
	if err == nil && len(out.Scores) != len(hits) {
		return nil, fmt.Errorf("%d scores for %d hits: %w", len(out.Scores), len(hits), assay.ErrDamaged)
	}
	return out.Scores, err
}

// sound returns a scorer's output with exactly n scores in [0, 1]. It replaces invalid scores by
// role.CautiousScore and notes that.
func sound(out role.HitScores, n int) role.HitScores {
	if len(out.Scores) != n {
		if out.Failure == "" {
			out.Notes = append(slices.Clone(out.Notes), fmt.Sprintf("scorer: it gave %d scores for %d passages, which count with %v each", len(out.Scores), n, role.CautiousScore))
		}
		out.Scores = slices.Repeat([]float64{role.CautiousScore}, n)
		return out
	}
	out.Scores = slices.Clone(out.Scores)
	bad := 0
	for i, s := range out.Scores {
		if !(s >= 0 && s <= 1) {
			out.Scores[i] = role.CautiousScore
			bad++
		}
	}
	if bad > 0 {
		out.Notes = append(slices.Clone(out.Notes), fmt.Sprintf("scorer: %s outside of 0 to 1, replaced by %v", count(bad, "score", "scores"), role.CautiousScore))
	}
	return out
}
