package strategy

import (
	"cmp"
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A hop is the state of a sub-question while a plan is carried out.
type hop struct {
	sub          role.SubQuestion
	state        subQuestion // for the sub-question as finally asked, with names inserted
	names        []candidate // possible answers
	needed       bool        // another hop needs it
	withQuestion bool        // searched together with the question, by which relevance is measured
	done         bool        // it was searched
	substituted  []substitutedSearch
}

// substitutedSearch is the search state of a sub-question with certain names inserted.
type substitutedSearch struct {
	substitution
	state subQuestion
}

// hops carries out a plan. Sub-questions that do not need each other are searched in parallel. A
// sub-question that needs others is searched with the names found for them, with one search for
// each of the likeliest. The names whose best hit is most relevant are kept, and the hits found
// with them are graded.
//
// A need that does not refer to an earlier sub-question is ignored. Sub-questions beyond
// Limits.Parts are not searched, nor those at a depth beyond Settings.Multihop.Hops. The
// sub-questions are in the order of the plan. If the planner revises the plan, its new
// sub-questions come after those that were searched before.
//
// If known is not nil, names contained in its hits are not searched for. If known is nil, each
// sub-question is searched.
func (e Env) hops(ctx context.Context, s run.Scope, plan role.Plan, known *subQuestion) ([]subQuestion, error) {
	t := planRun{env: e, knownHits: known}
	t.add(plan.SubQuestions)
	for k := range e.Settings.Multihop.Hops {
		stage := t.ready()
		if len(stage) == 0 {
			break
		}
		s := s.Sub("stage", k)
		err := s.Parallel(ctx, "sub", len(stage), sideBySide, func(ctx context.Context, j int, s run.Scope) error {
			return t.searchHop(ctx, s, stage[j])
		})
		if err != nil {
			return nil, err
		}
		for _, i := range stage {
			t.hops[i].done = true
		}
		if e.revises && k+1 < e.Settings.Multihop.Hops {
			if err := t.revise(ctx, s); err != nil {
				return nil, err
			}
		}
	}
	found := make([]subQuestion, len(t.hops))
	for i, h := range t.hops {
		found[i] = h.state
	}
	return found, nil
}

// planRun is a plan while it is carried out.
type planRun struct {
	env       Env
	hops      []hop
	knownHits *subQuestion // hits found before; nil: none are used
}

// add adds sub-questions to the plan.
func (t *planRun) add(subs []role.SubQuestion) {
	from := len(t.hops)
	var plan role.Plan
	for i := range t.hops {
		plan.SubQuestions = append(plan.SubQuestions, role.SubQuestion{Text: t.hops[i].state.question})
	}
	plan.SubQuestions = append(plan.SubQuestions, subs...)
	spelled := displayQuestions(plan)
	for i, sub := range plan.SubQuestions[from:] {
		i += from
		sub.Needs = earlier(sub.Needs, i)
		t.hops = append(t.hops, hop{sub: sub, state: subQuestion{question: spelled[i], filter: sub.Filter, stop: assay.StopIterationLimit}})
		for _, n := range sub.Needs {
			t.hops[n].needed = true
			t.hops[n].state.neededBy = append(t.hops[n].state.neededBy, i)
		}
	}
}

// ready returns the indexes of the sub-questions that can be searched next: those that need no
// others than searched ones.
func (t *planRun) ready() []int {
	var ready []int
	for i, h := range t.hops[:min(len(t.hops), t.env.Limits.Parts)] {
		waits := slices.ContainsFunc(h.sub.Needs, func(n int) bool { return !t.hops[n].done })
		if !h.done && !waits {
			ready = append(ready, i)
		}
	}
	return ready
}

// searchHop searches for a sub-question with the names found for those that it needs.
func (t *planRun) searchHop(ctx context.Context, s run.Scope, i int) error {
	h := &t.hops[i]
	fillings := substitute(h.sub, func(n int) neededQuestion { return t.hops[n].state.withAnswers(t.hops[n].names) })
	if t.knownHits != nil {
		if h.needed {
			if found, err := h.useKnownHits(ctx, s, t.env, *t.knownHits, fillings[0]); found || err != nil {
				return err
			}
		}
		if t.knownHits.wasSearched(fillings[0].text, h.sub.Filter) { // without a known name it is the question again
			h.state.stop = assay.StopCircular
			return nil
		}
		fillings = fillings[:min(len(fillings), maxKnownSubstitutions)]
	}
	return h.search(ctx, s, t.env, fillings)
}

// maxKnownSubstitutions is the number of names that are tried in a sub-question if known hits are
// used.
const maxKnownSubstitutions = 1

// useKnownHits takes the names for a sub-question that others need from known hits, and reports
// whether there are any. It grades the known hits for the sub-question.
func (h *hop) useKnownHits(ctx context.Context, s run.Scope, env Env, known subQuestion, x substitution) (bool, error) {
	known.question, known.searchKeys = x.text, nil
	var err error
	known.grade, err = env.grade(ctx, s.Sub("known", 0), known)
	if stopOf(err) != "" {
		return false, nil // the search that follows will report it
	}
	if err != nil {
		return false, err
	}
	if h.names = known.names(); len(h.names) == 0 || known.grade.Verdict == assay.Insufficient {
		return false, nil
	}
	h.state.question, h.state.displayed, h.state.stop = x.text, x.displayed, assay.StopSufficient
	h.state.terms, h.state.bestRank = known.terms, known.bestRank
	for _, hit := range known.hits {
		if slices.ContainsFunc(h.names, func(c candidate) bool { return c.chunk == hit.Chunk.ID }) {
			h.state.hits = append(h.state.hits, hit)
			h.state.grade.Relevant = append(h.state.grade.Relevant, hit.Chunk.ID)
		}
	}
	h.state.hopHits = h.state.hits
	return true, nil
}

// search searches for the sub-question with each of the possible names inserted, and grades the
// hits of the best, within the time of a sub-question. Hits that were not graded by then are graded
// without a model.
func (h *hop) search(ctx context.Context, s run.Scope, env Env, fillings []substitution) error {
	outer := s
	s, err := env.withTimeLimit(ctx, s)
	if err != nil {
		return err
	}
	h.substituted = make([]substitutedSearch, len(fillings))
	err = s.Parallel(ctx, "fill", len(fillings), maxSubstitutions, func(ctx context.Context, i int, s run.Scope) error {
		x := &h.substituted[i]
		x.substitution = fillings[i]
		x.state = h.state
		x.state.question, x.state.displayed = x.text, x.displayed
		q := assay.Query{Text: x.text, Filter: h.sub.Filter}
		if h.withQuestion {
			q.Text, q.Rewrites, x.state.question = h.sub.Text, []string{x.text}, h.sub.Text
		}
		_, err := x.state.search(ctx, s, env, q)
		if stop := stopOf(err); stop != "" {
			x.state.endSearch(stop, err)
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	h.keepBestNames()
	if h.state.cutShort() {
		return nil
	}
	err = h.state.gradeAll(ctx, s, env)
	if stop := stopOf(err); stop != "" {
		h.state.endSearch(stop, err)
		err = h.state.gradeWithoutModel(ctx, outer.Sub("late", 0), env)
	}
	if h.state.sufficient() {
		h.state.stop = assay.StopSufficient
	}
	if h.needed {
		h.names = h.state.names()
	}
	return err
}

// wholeQuestion is the index of the whole question among sub-questions.
const wholeQuestion = -1

// bridge makes a second hop for a question that grammar does not split, by the answers that were
// read in its hits although these are not sufficient. The hits are evidence for the question but do
// not count as an answer to it. It returns nil if nothing was read that is not in the question.
func (e Env) bridge(ctx context.Context, s run.Scope, whole subQuestion) ([]subQuestion, error) {
	asked := stemsOf("", whole.question)
	names := slices.DeleteFunc(whole.names(), func(c candidate) bool { return within(asked, c.name) == 1 })
	if len(names) == 0 {
		return nil, nil
	}
	h := hop{sub: role.SubQuestion{Text: whole.question, Needs: []int{0}}, withQuestion: true}
	h.state = subQuestion{question: whole.question, filter: whole.filter, stop: assay.StopIterationLimit, neededBy: []int{wholeQuestion}}
	err := h.search(ctx, s, e, substitute(h.sub, func(int) neededQuestion { return whole.withAnswers(names) }))
	return []subQuestion{h.state}, err
}

// hopPassages is the number of passages that a sub-question hands to the generator if the number of
// passages is fixed; hits of the whole question fill the other places. On musique-train100 the
// share of questions with all gold is .83 for corrective, and .75 if the hits accepted for each
// sub-question are used instead.
const hopPassages = 2

// keepBestNames keeps the sub-question of the best names and merges the records of all searches.
func (h *hop) keepBestNames() {
	value := map[string]float64{}
	var hits []assay.Hit
	best, top := 0, -1.0
	for i, x := range h.substituted {
		for _, hit := range x.state.hits {
			v := x.hitScore(hit)
			if v > top {
				best, top = i, v
			}
			if _, known := value[hit.Chunk.ID]; !known {
				hits = append(hits, hit)
			}
			value[hit.Chunk.ID] = max(value[hit.Chunk.ID], v)
		}
	}
	slices.SortStableFunc(hits, func(a, b assay.Hit) int { return cmp.Compare(value[b.Chunk.ID], value[a.Chunk.ID]) })
	h.state = h.substituted[best].state
	h.state.searched, h.state.iterations = nil, 0
	for i, x := range h.substituted {
		h.state.searched = append(h.state.searched, x.state.searched...)
		h.state.iterations += x.state.iterations
		if i != best {
			h.state.notes.join(x.state.notes)
		}
		if x.state.cutShort() && len(h.state.hits) == 0 {
			h.state.stop, h.state.shortfall = x.state.stop, x.state.shortfall
		}
	}
	h.state.hopHits = hits[:min(hopPassages, len(hits))]
}

// hitScore scores how well a hit confirms the names it was found with, by its relevance, its rank
// and whether it contains them.
func (x *substitutedSearch) hitScore(h assay.Hit) float64 {
	const unnamed = 0.5
	v := (h.Scores.Relevance + 1/float64(1+x.state.bestRank[h.Chunk.ID])) / 2 * x.score
	if !containsAll(h, x.names) {
		v *= unnamed
	}
	return v
}
