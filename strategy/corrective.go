package strategy

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// correctiveSpec describes Corrective.
var correctiveSpec = Spec{
	Name:    "corrective",
	Summary: "looks up each part of the question until its evidence suffices",
	Source: "Yan et al., \"Corrective Retrieval Augmented Generation\", 2024, for the graded loop; the escalation " +
		"ladder and the re-drive are assay's",
	Func: Corrective,
	Defaults: "4 searches and 12 s for a sub-question (corrective.iterations, corrective.seconds), 6 sub-questions " +
		"(corrective.parts); two searches in a row with 90 % of hits seen before end the loop",
	UsualCost: "a plan more than static, and a search and a grade for each further search",
}

// Corrective plans sub-questions and searches for each until its evidence is graded sufficient.
// Each further search climbs the escalation ladder (see Rung): the query that the grader proposes, a
// wider filter, another collection, the web if the question allows it, and in the end "not found".
// Each rung is a step of the journal. A part of the answer that the verifier rejects is searched for
// by its rejected claims, and the answer is written again.
func Corrective(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	plan, notes, err := env.plan(ctx, s)
	if stop := stopOf(err); stop != "" {
		return env.unplannable("corrective", stop, err, notes), nil
	}
	if err != nil {
		return Result{}, err
	}
	return env.correct(ctx, s, plan, nil, notes)
}

// unplannable returns the answer of a run that ended before there was a plan.
func (e Env) unplannable(strategy string, stop assay.Stop, err error, notes noteList) Result {
	sq := subQuestion{question: e.Question, notes: notes}
	sq.endSearch(stop, err)
	return e.notFound(strategy, []subQuestion{sq})
}

// sideBySide is the number of sub-questions that are searched in parallel.
const sideBySide = 4

// correct carries out a plan. First, if not nil, is the sub-question for the first sub-question.
// Sub-questions beyond the limit are not searched and are reported as missing. Said holds the notes
// of earlier work that is not in a sub-question.
//
// If sub-questions have slots for names, the whole question is also searched once, as a fallback if
// a name is not found.
func (e Env) correct(ctx context.Context, s run.Scope, plan role.Plan, first *subQuestion, notes noteList) (Result, error) {
	e = e.forPlan(plan)
	found, spelled := make([]subQuestion, len(plan.SubQuestions)), displayQuestions(plan)
	for i, sub := range plan.SubQuestions {
		found[i] = subQuestion{question: spelled[i], filter: sub.Filter, stop: assay.StopIterationLimit}
	}
	plan.SubQuestions = plan.SubQuestions[:min(len(plan.SubQuestions), e.Limits.Parts)]
	if first != nil && len(found) > 0 {
		found[0] = *first
	}
	if len(found) > 0 {
		found[0].notes.join(notes)
	}
	for i, sub := range plan.SubQuestions {
		for _, n := range sub.Needs {
			if n >= 0 && n < i {
				found[n].neededBy = append(found[n].neededBy, i)
			}
		}
	}
	for k, stage := range stages(plan) {
		err := s.Sub("stage", k).Parallel(ctx, "sub", len(stage), sideBySide, func(ctx context.Context, j int, s run.Scope) error {
			i := stage[j]
			found[i].setSubstitutions(substitutions(plan, found, i))
			return found[i].searchLadder(ctx, s, e, hints(plan, found, i))
		})
		if err != nil {
			return Result{}, err
		}
	}
	if err := e.webRung(ctx, s, found[:len(plan.SubQuestions)]); err != nil {
		return Result{}, err
	}
	if err := e.giveUp(ctx, s, found[:len(plan.SubQuestions)]); err != nil {
		return Result{}, err
	}
	if slices.ContainsFunc(plan.SubQuestions, hasSlots) {
		whole, err := e.searchQuestion(ctx, s, e.Question, assay.Filter{})
		if err != nil {
			return Result{}, err
		}
		for i, sq := range found {
			found[i].hopHits = sq.ranked()[:min(hopPassages, len(sq.hits))]
		}
		found = join(whole, found)
	}
	answer, ungrounded, err := e.finish(ctx, s.Sub("finish", 0), "corrective", found)
	if err != nil || len(ungrounded) == 0 {
		return answer, err
	}
	return e.redrive(ctx, s, found, answer, ungrounded)
}

// redrive searches once more for the parts of an answer that are not grounded, within their
// iterations, and has the answer written again, until it is grounded or nothing new is found. A later
// answer replaces an earlier one unless it covers less.
func (e Env) redrive(ctx context.Context, s run.Scope, found []subQuestion, answer Result, open []ungroundedPart) (Result, error) {
	name := answer.Strategy
	ofDraft := without(answer.Notes, e.base(name, found).Notes)
	for n := 0; len(open) > 0; n++ {
		fresh := false
		for _, part := range open {
			more, err := found[part.finding].redrive(ctx, s.Sub("redrive", n).Sub("part", part.finding), e, part.claims)
			if err != nil {
				return Result{}, err
			}
			fresh = fresh || more
		}
		if !fresh {
			break
		}
		again, still, err := e.finish(ctx, s.Sub("finish", n+1), name, found)
		if err != nil {
			return Result{}, err
		}
		open = still
		if again.coversMore(answer, len(still) == 0) {
			answer, ofDraft = again, without(again.Notes, e.base(name, found).Notes)
		}
	}
	// The claims verified before stay; only the list of searches grows.
	return withSearchesOf(answer, e.base(name, found), ofDraft), nil
}

// coversMore reports whether r, an answer from more evidence than old, replaces it: it covers no
// less of the question and, unless it is grounded throughout, has no fewer claims.
func (r Result) coversMore(old Result, grounded bool) bool {
	switch {
	case len(old.Claims) == 0:
		return true
	case len(r.Claims) == 0 || r.details.open > old.details.open:
		return false
	}
	return grounded || r.details.open < old.details.open || r.details.supported >= old.details.supported
}

// stages groups a plan's sub-questions so that those of one stage do not need each other and can be
// searched in parallel.
func stages(plan role.Plan) [][]int {
	var stages [][]int
	depth := make([]int, len(plan.SubQuestions))
	for i, sub := range plan.SubQuestions {
		for _, n := range sub.Needs {
			if n >= 0 && n < i {
				depth[i] = max(depth[i], depth[n]+1)
			}
		}
		for len(stages) <= depth[i] {
			stages = append(stages, nil)
		}
		stages[depth[i]] = append(stages[depth[i]], i)
	}
	return stages
}

// setSubstitutions sets a sub-question to the likeliest substitution and keeps the others for later
// searches.
func (sq *subQuestion) setSubstitutions(with []substitution) {
	if len(with) > 0 {
		sq.question, sq.displayed, sq.alternatives = with[0].text, with[0].displayed, with[1:]
	}
}

// hints returns the titles of hits accepted for the sub-questions that i needs, which often name
// its own evidence. It returns nil if i has slots for their answers.
func hints(plan role.Plan, found []subQuestion, i int) []string {
	if sub := plan.SubQuestions[i]; hasSlots(sub) {
		return nil
	}
	var titles []string
	for _, n := range plan.SubQuestions[i].Needs {
		if n < 0 || n >= i {
			continue
		}
		for _, h := range found[n].accepted(2) {
			titles = append(titles, h.Title)
		}
	}
	return titles
}

// searchLadder searches for one sub-question, up the escalation ladder, until its evidence is
// sufficient or another stop reason applies. It returns an error only if the run cannot go on.
func (sq *subQuestion) searchLadder(ctx context.Context, s run.Scope, env Env, hints []string) error {
	if err := sq.climbLadder(ctx, s, env, hints); err != nil {
		return err
	}
	return sq.gradeAfterSkip(ctx, s.Sub("passed", 0), env)
}

// climbLadder is searchLadder without the grade of hits below the relevance floor.
func (sq *subQuestion) climbLadder(ctx context.Context, s run.Scope, env Env, hints []string) error {
	if sq.cutShort() {
		return nil // the exhausted budget is still exhausted
	}
	outer := s
	at := search{rung: RungQuestion, query: sq.question, filter: sq.filter}
	if len(hints) > 0 {
		at.query += " " + strings.Join(hints, " ")
	}
	if sq.iterations > 0 { // the question itself was already searched
		if sq.sufficient() {
			return nil
		}
		var err error
		if at, err = sq.next(ctx, outer, env, at); err != nil {
			return err
		}
	}
	sq.stop = assay.StopIterationLimit
	err := sq.inTime(ctx, s, env, func(s run.Scope) error { return sq.climbOn(ctx, s, outer, env, at) })
	if stop := stopOf(err); stop != "" {
		sq.endSearch(stop, err)
		return nil
	}
	return err
}

// climbOn makes the search at and those up the ladder from it, in scope s. Their rungs are recorded in
// outer.
func (sq *subQuestion) climbOn(ctx context.Context, s, outer run.Scope, env Env, at search) error {
	for sq.iterations < env.Limits.Iterations {
		if sq.stop = at.stop; sq.stop != "" {
			return nil
		}
		if err := sq.searchRung(ctx, s, outer, env, at); err != nil {
			return err
		}
		if sq.sufficient() {
			sq.stop = assay.StopSufficient
			return nil
		}
		if sq.stop = assay.StopIterationLimit; sq.iterations < env.Limits.Iterations {
			var err error
			if at, err = sq.next(ctx, outer, env, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// withTimeLimit returns a scope that ends with the time limit of a sub-question, or s if the time
// for all searches of the run is shorter.
func (e Env) withTimeLimit(ctx context.Context, s run.Scope) (run.Scope, error) {
	limit := time.Duration(e.Limits.Seconds) * time.Second
	if limit >= e.Limits.Wall*3/4 {
		return s, nil
	}
	now, err := s.Elapsed(ctx)
	return s.Until(now + limit), err
}

// inTime runs look, a part of the retrieval of a sub-question, within what is left of the sub-question's
// time. Work between two parts, such as writing a draft, does not count. If the time is over, the
// search has ended, hits that were not graded by then are graded without a model, and f.late is set. An
// end of the time of the run is an error.
func (sq *subQuestion) inTime(ctx context.Context, s run.Scope, env Env, look func(run.Scope) error) error {
	limit := time.Duration(env.Limits.Seconds) * time.Second
	if limit >= env.Limits.Wall*3/4 {
		return look(s)
	}
	start, err := s.Elapsed(ctx)
	if err != nil {
		return err
	}
	looked := look(s.Until(start + max(0, limit-sq.took)))
	end, err := s.Elapsed(ctx)
	if err != nil {
		return err
	}
	sq.took += end - start
	if stopOf(looked) != assay.StopDeadline || end >= env.Limits.Wall*3/4 {
		return looked
	}
	sq.late = true
	sq.endSearch(assay.StopDeadline, looked)
	return sq.gradeWithoutModel(ctx, s.Sub("late", 0), env)
}

// gradeLate grades hits without a model if the time for a sub-question ended before they were
// graded.
func (sq *subQuestion) gradeWithoutModel(ctx context.Context, s run.Scope, env Env) error {
	if sq.stop != assay.StopDeadline || sq.graded == len(sq.searched) {
		return nil
	}
	err := sq.gradeAll(ctx, s, env.withLocalGrader())
	if stopOf(err) != "" { // the whole run is out of time
		return nil
	}
	if err == nil {
		sq.notes.say(assay.NoteLimit, "the time for a part of the question ended before its passages were graded; they were graded without a model")
	}
	return err
}

func (sq *subQuestion) wasSearched(query string, filter assay.Filter) bool {
	return slices.Contains(sq.searchKeys, searchKeyOf(query, filter))
}

// redrive searches once more for a part of the draft that is not grounded: by its failed claims if it
// has any, else one rung up the ladder. It reports whether there are new hits.
func (sq *subQuestion) redrive(ctx context.Context, s run.Scope, env Env, failed []checkedClaim) (bool, error) {
	if sq.cutShort() {
		return false, nil
	}
	if sq.ladder.ungraded > 0 {
		sq.ladder.ungraded = 0
		before := sq.accepted(len(sq.hits))
		err := sq.gradeAll(ctx, s, env)
		if stop := stopOf(err); stop != "" {
			sq.endSearch(stop, err)
			return false, nil
		}
		if err != nil || !sameHits(before, sq.accepted(len(sq.hits))) {
			return err == nil, err
		}
	}
	if sq.iterations >= env.Limits.Iterations {
		return false, nil
	}
	at, err := sq.redriveBy(ctx, s, env, failed)
	if err != nil || at.stop != "" {
		return false, err
	}
	known := len(sq.hits)
	err = sq.inTime(ctx, s, env, func(limited run.Scope) error { return sq.searchRung(ctx, limited, s, env, at) })
	if stop := stopOf(err); stop != "" {
		sq.endSearch(stop, err)
		return false, nil
	}
	return len(sq.hits) > known, err
}

// redriveBy returns the search for a part of the draft that is not grounded.
func (sq *subQuestion) redriveBy(ctx context.Context, s run.Scope, env Env, failed []checkedClaim) (search, error) {
	for _, c := range failed {
		if q := c.query(sq.question); q != "" && !sq.wasSearched(q, sq.lastFilter()) {
			return search{rung: RungRedrive, query: q, filter: sq.lastFilter(), why: "a statement of the draft is not grounded: " + remarkLine(c.Reason)}, nil
		}
	}
	return sq.next(ctx, s, env, search{rung: sq.ladder.top(), filter: sq.lastFilter()})
}

// lastFilter returns the filter of the sub-question's last search: its own until it is widened.
func (sq *subQuestion) lastFilter() assay.Filter {
	if slices.Contains(sq.ladder.taken, RungWiden) {
		return assay.Filter{}
	}
	return sq.filter
}

// sameHits reports whether two lists have the same hits in the same order.
func sameHits(a, b []assay.Hit) bool {
	return slices.EqualFunc(a, b, func(x, y assay.Hit) bool { return x.Chunk.ID == y.Chunk.ID })
}
