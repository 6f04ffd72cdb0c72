package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// cragSpec describes CRAG.
var cragSpec = Spec{
	Name:    "crag",
	Summary: "scores each passage; with --web, search results from the web replace weak ones",
	Source: "Yan et al., \"Corrective Retrieval Augmented Generation\", 2024: the three actions, and knowledge " +
		"refinement",
	Func: CRAG,
	Defaults: "relevant from 0.7 (crag.correct), irrelevant under 0.3 (crag.incorrect), 2 relevant hits suffice " +
		"(crag.relevant); 5 results of the web (crag.web) with a score of 0.8 (crag.web_score)",
	UsualCost: "a score more than static; a web search and one step for each page where the web is searched",
}

// CRAG has each hit of one search scored, and acts by what the scores say of the
// search as a whole: correct hits are refined into excerpts and used; ambiguous ones are
// refined too, and the web is searched besides; incorrect ones are set aside, and the
// web is searched instead. Where the web is off the answer says so, and rests on what
// the documents hold.
//
// What is used is graded in the end, as everywhere: a search that scored well may still
// lack what the question names.
func CRAG(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	f := finding{question: env.Question, stop: assay.StopIterationLimit}
	err := f.evaluate(ctx, s, &env)
	if stop := stopOf(err); stop != "" {
		f.ends(stop, err)
		err = nil
	}
	if err != nil {
		return Result{}, err
	}
	if f.sufficient() {
		f.stop = assay.StopSufficient
	}
	answer, _, err := env.finish(ctx, s.Sub("finish", 0), "crag", []finding{f})
	return answer, err
}

// evaluate searches, scores, acts, and grades what is used.
func (f *finding) evaluate(ctx context.Context, s run.Scope, env *Env) error {
	if _, err := f.find(ctx, s, *env, assay.Query{Text: f.question}); err != nil {
		return err
	}
	f.grade.Missing = []string{asked(env.Question).line(f.question)} // until something is used
	scores, err := env.score(ctx, s, f.question, f.hits, &f.notes)
	if err != nil {
		return err
	}
	if n := len(f.hits) - len(scores); n > 0 {
		f.notes.say(assay.NoteLeftOut, fmt.Sprintf("%s beyond the first %d were not scored, and are set aside", count(n, "passage", "passages"), len(scores)))
	}
	action := env.Settings.CRAG.action(scores)
	aside := f.setAside(scores, env.Settings.CRAG.Incorrect, action == incorrect)
	if action != correct {
		f.notes.say(assay.NoteSearch, action.words(env.Settings.CRAG))
		err := env.fromWeb(ctx, s, f)
		if stop := stopOf(err); stop != "" { // what the documents say stands
			f.ends(stop, err)
			f.notes.say(assay.NoteLimit, fmt.Sprintf("the run had no room left to search the web to the end (%s)", stop))
		} else if err != nil {
			return err
		}
	}
	if len(f.hits) > 0 {
		slices.SortStableFunc(f.hits, byScore) // those of the web among them
		if env.Limits.Passages == 0 {          // else passages are handed on whole
			f.recompose(env)
		}
		err = f.regrade(ctx, s, *env)
	}
	f.hits = append(f.hits, aside...) // they are what came closest
	return err
}

// recompose refines the hits. As many hits as before may be kept, and all excerpts of
// each.
func (f *finding) recompose(env *Env) {
	kept := refine(f.hits[:min(len(f.hits), env.Limits.Keep)], f.terms)
	others := refine(f.hits[min(len(f.hits), env.Limits.Keep):], f.terms)
	env.Limits.Keep = max(env.Limits.Keep, len(kept))
	f.hits = append(kept, others...)
}

// An action is what follows from the scores of a search.
type action string

const (
	correct   action = "correct"
	ambiguous action = "ambiguous"
	incorrect action = "incorrect"
)

// action says what follows from scores.
func (c CRAGSettings) action(scores []float64) action {
	relevant, hopeless := 0, true
	for _, s := range scores {
		if s >= c.Correct {
			relevant++
		}
		hopeless = hopeless && s < c.Incorrect
	}
	switch {
	case hopeless:
		return incorrect
	case relevant >= c.Relevant:
		return correct
	}
	return ambiguous
}

// words say why the web is looked to.
func (a action) words(c CRAGSettings) string {
	if a == incorrect {
		return fmt.Sprintf("no passage of the documents scored %.2f or more for the question: what was found there is set aside", c.Incorrect)
	}
	return fmt.Sprintf("fewer than %s of the documents scored %.2f or more for the question: what they say may not be all", count(c.Relevant, "passage", "passages"), c.Correct)
}

// setAside gives the hits their scores, orders them by these, and takes away those whose
// score is under the floor; all of them is taken at its word.
func (f *finding) setAside(scores []float64, floor float64, all bool) (aside []assay.Hit) {
	hits := slices.Clone(f.hits)
	for i, score := range scores {
		hits[i].Scores.Score = &score
	}
	slices.SortStableFunc(hits, byScore)
	f.hits = nil
	for _, h := range hits {
		if all || h.Scores.Score == nil || *h.Scores.Score < floor {
			aside = append(aside, h)
		} else {
			f.hits = append(f.hits, h)
		}
	}
	return aside
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

// scoreInput is what a scorer is handed.
type scoreInput struct {
	Question string      `json:"question"`
	Hits     []assay.Hit `json:"hits"`
}

// score has hits scored, the first of them up to as many as a search brings. A score
// that is none is the cautious one.
func (e Env) score(ctx context.Context, s run.Scope, question string, hits []assay.Hit, said *notes) ([]float64, error) {
	hits = hits[:min(len(hits), e.Limits.Candidates)]
	if len(hits) == 0 {
		return nil, nil
	}
	cautious := slices.Repeat([]float64{role.CautiousScore}, len(hits))
	out, err := hand(ctx, s, e, job[scoreInput, role.HitScores]{
		role: role.ScorerRole,
		do: func(ctx context.Context, c role.Caller, in scoreInput) (role.HitScores, error) {
			out, err := e.Roles.Scorer.Score(ctx, c, in.Question, in.Hits)
			return sound(out, len(in.Hits)), err
		},
		outcome:  func(s *role.HitScores) *role.Outcome { return &s.Outcome },
		cautious: role.HitScores{Scores: cautious},
	}, scoreInput{question, hits}, said)
	if err == nil && len(out.Scores) != len(hits) {
		return nil, fmt.Errorf("%d scores for %d hits: %w", len(out.Scores), len(hits), assay.ErrDamaged)
	}
	return out.Scores, err
}

// sound returns a scorer's word with n scores in [0, 1].
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
		out.Notes = append(slices.Clone(out.Notes), fmt.Sprintf("scorer: %s outside of 0 to 1, for which %v counts", count(bad, "score", "scores"), role.CautiousScore))
	}
	return out
}
