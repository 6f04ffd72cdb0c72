package strategy

import (
	"cmp"
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A hop is a sub-question while a plan is carried out.
type hop struct {
	sub     role.SubQuestion
	finding finding     // for the sub-question with names in it, as it was asked in the end
	names   []candidate // that may be its answer
	needed  bool        // for another one
	beside  bool        // searched beside what it asks, to which hits are relevant or not
	fills   []filled
}

// A filled is what was found for a sub-question with some names in it.
type filled struct {
	filling
	finding finding
}

// hops carries a plan out: sub-questions that do not need one another are searched side
// by side, and one that needs others is asked with the names that were found for them,
// each of the likeliest in a search of its own. The names stay whose best hit is most
// relevant, and what was found with those is graded.
//
// What a sub-question needs and is no earlier one is not needed. Sub-questions beyond
// Limits.Parts are not looked up, nor those that build on more than Settings.Multihop.Hops
// others. The findings are in the order of the plan.
//
// A name that stands in what is known already is not searched for; known is nil where that
// is not to be looked at, and then each sub-question is searched for.
func (e Env) hops(ctx context.Context, s run.Scope, plan role.Plan, known *finding) ([]finding, error) {
	hops, spelled := make([]hop, len(plan.SubQuestions)), spelledOut(plan)
	plan.SubQuestions = slices.Clone(plan.SubQuestions)
	for i, sub := range plan.SubQuestions {
		sub.Needs = earlier(sub.Needs, i)
		plan.SubQuestions[i].Needs = sub.Needs
		hops[i] = hop{sub: sub, finding: finding{question: spelled[i], filter: sub.Filter, stop: assay.StopIterationLimit}}
		for _, n := range sub.Needs {
			hops[n].needed = true
			hops[n].finding.serves = append(hops[n].finding.serves, i)
		}
	}
	plan.SubQuestions = plan.SubQuestions[:min(len(plan.SubQuestions), e.Limits.Parts)]
	stages := stages(plan)
	for k, stage := range stages[:min(len(stages), e.Settings.Multihop.Hops)] {
		err := s.Sub("stage", k).Parallel(ctx, "sub", len(stage), sideBySide, func(ctx context.Context, j int, s run.Scope) error {
			h := &hops[stage[j]]
			fillings := fillIn(h.sub, func(n int) answered { return hops[n].finding.answeredBy(hops[n].names) })
			if known != nil {
				if h.needed {
					if found, err := h.know(ctx, s, e, *known, fillings[0]); found || err != nil {
						return err
					}
				}
				if known.wasTried(fillings[0].text, h.sub.Filter) { // no name is known, so it is the question again
					h.finding.stop = assay.StopCircular
					return nil
				}
				fillings = fillings[:min(len(fillings), knownFills)]
			}
			return h.ask(ctx, s, e, fillings)
		})
		if err != nil {
			return nil, err
		}
	}
	found := make([]finding, len(hops))
	for i, h := range hops {
		found[i] = h.finding
	}
	return found, nil
}

// knownFills is how many names are tried in a sub-question where what is known already is
// looked at first.
const knownFills = 1

// know takes the names for a sub-question that others need from what is known already, and
// reports whether there are any. What is known is graded for the sub-question.
func (h *hop) know(ctx context.Context, s run.Scope, env Env, known finding, x filling) (bool, error) {
	known.question, known.tries = x.text, nil
	var err error
	known.grade, err = env.grade(ctx, s.Sub("known", 0), known)
	if stopOf(err) != "" {
		return false, nil // the search that follows will say so
	}
	if err != nil {
		return false, err
	}
	if h.names = known.names(); len(h.names) == 0 || known.grade.Verdict == assay.Insufficient {
		return false, nil
	}
	h.finding.question, h.finding.asked, h.finding.stop = x.text, x.asked, assay.StopSufficient
	h.finding.terms, h.finding.places = known.terms, known.places
	for _, hit := range known.hits {
		if slices.ContainsFunc(h.names, func(c candidate) bool { return c.chunk == hit.Chunk.ID }) {
			h.finding.hits = append(h.finding.hits, hit)
			h.finding.grade.Relevant = append(h.finding.grade.Relevant, hit.Chunk.ID)
		}
	}
	h.finding.best = h.finding.hits
	return true, nil
}

// ask searches for the sub-question with each of the names that may be in it, and grades
// what was found with the best of them.
func (h *hop) ask(ctx context.Context, s run.Scope, env Env, fillings []filling) error {
	h.fills = make([]filled, len(fillings))
	err := s.Parallel(ctx, "fill", len(fillings), maxFills, func(ctx context.Context, i int, s run.Scope) error {
		x := &h.fills[i]
		x.filling = fillings[i]
		x.finding = h.finding
		x.finding.question, x.finding.asked = x.text, x.asked
		q := assay.Query{Text: x.text, Filter: h.sub.Filter}
		if h.beside {
			q.Text, q.Rewrites, x.finding.question = h.sub.Text, []string{x.text}, h.sub.Text
		}
		_, err := x.finding.find(ctx, s, env, q)
		if stop := stopOf(err); stop != "" {
			x.finding.ends(stop, err)
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	h.settle()
	if h.finding.cutShort() {
		return nil
	}
	err = h.finding.regrade(ctx, s, env)
	if stop := stopOf(err); stop != "" {
		h.finding.ends(stop, err)
		err = nil
	}
	if h.finding.sufficient() {
		h.finding.stop = assay.StopSufficient
	}
	if h.needed {
		h.names = h.finding.names()
	}
	return err
}

// itself stands for the question itself where sub-questions are counted.
const itself = -1

// bridge follows what was found for a question that grammar does not take apart: the names
// in the best hits that the question does not have may lead on from there. What that brings
// is evidence for the question, and does not say that it is answered. It returns nothing
// where there are no names.
func (e Env) bridge(ctx context.Context, s run.Scope, whole finding) ([]finding, error) {
	names := whole.leads(0)
	if len(names) == 0 {
		return nil, nil
	}
	h := hop{sub: role.SubQuestion{Text: whole.question, Needs: []int{0}}, beside: true}
	h.finding = finding{question: whole.question, filter: whole.filter, stop: assay.StopIterationLimit, serves: []int{itself}}
	err := h.ask(ctx, s, e, fillIn(h.sub, func(int) answered { return whole.answeredBy(names) }))
	return []finding{h.finding}, err
}

// picked is how many passages a sub-question hands to the generator where their number is
// set for the whole question, the hits of which take the other places: with what each
// sub-question accepts instead, corrective has .75 all gold on musique-train100, .83 so.
const picked = 2

// settle takes the names with which the best was found, and notes what was searched with
// all of them.
func (h *hop) settle() {
	value := map[string]float64{}
	var hits []assay.Hit
	best, top := 0, -1.0
	for i, x := range h.fills {
		for _, hit := range x.finding.hits {
			v := x.value(hit)
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
	h.finding = h.fills[best].finding
	h.finding.searched, h.finding.iterations = nil, 0
	for i, x := range h.fills {
		h.finding.searched = append(h.finding.searched, x.finding.searched...)
		h.finding.iterations += x.finding.iterations
		if i != best {
			h.finding.notes.join(x.finding.notes)
		}
		if x.finding.cutShort() && len(h.finding.hits) == 0 {
			h.finding.stop, h.finding.lacked = x.finding.stop, x.finding.lacked
		}
	}
	h.finding.best = hits[:min(picked, len(hits))]
}

// value says how much a hit speaks for the names that it was found with: it is relevant,
// among the first, and speaks of them.
func (x *filled) value(h assay.Hit) float64 {
	const unnamed = 0.5
	v := (h.Scores.Relevance + 1/float64(1+x.finding.places[h.Chunk.ID])) / 2 * x.score
	if !speaksOfAll(h, x.names) {
		v *= unnamed
	}
	return v
}
