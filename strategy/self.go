package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// selfSpec describes Self.
var selfSpec = Spec{
	Name:    "self",
	Summary: "grades its passages and its drafts, and searches again for what is not supported",
	Source: "Asai et al., \"Self-RAG: Learning to Retrieve, Generate, and Critique through Self-Reflection\", 2023: its " +
		"grades ISREL and ISSUP, given by roles and not by tokens that a model was trained to write",
	Func:     Self,
	Defaults: "3 drafts (self.iterations)",
	UsualCost: "a grade of hits and one of statements more than static; each further draft costs all steps of static " +
		"again",
}

// Self grades each hit of a search (relevant, partly, not), writes a draft from the relevant ones,
// and grades each of its statements (supported, partly, not). If no hit is relevant, the draft is
// not fully supported, or the evidence is insufficient, it refines the query with the missing
// points and starts again. Only a fully supported draft from sufficient evidence ends the loop
// before its limit.
//
// Each draft is finished as in every strategy: only statements supported by the verifier are shown.
// Self returns the answer with the best status and then the most claims, and the later of two equal
// ones. It is incomplete if the support grader did not grade it fully supported.
func Self(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	const name = "self"
	r := relevantSearch{subQuestion: subQuestion{question: env.Question, stop: assay.StopIterationLimit}}
	var best Result
	query, drafts := env.Question, 0
	for i := range env.Settings.Self.Iterations {
		s := s.Sub("draft", i)
		fresh, err := r.searchRelevant(ctx, s, env, query)
		if stop := stopOf(err); stop != "" {
			r.endSearch(stop, err)
			break
		}
		if err != nil {
			return Result{}, err
		}
		if i > 0 && fresh == 0 || r.noProgress.stalled() { // the draft would not change
			if !r.late {
				r.stop = assay.StopNoProgress
			}
			break
		}
		var weak []string // statements that are not fully supported
		if r.quality() != notRelevant {
			drafts++
			var answer Result
			if answer, weak, err = r.answer(ctx, s, env); err != nil {
				return Result{}, err
			}
			if best.Review == nil || !betterThan(best, answer) {
				best = answer
			}
			if answer.Review.GenerationQuality == supported && r.sufficient() && !r.cutShort() {
				r.stop = assay.StopSufficient
				break
			}
		}
		if r.cutShort() || i+1 == env.Settings.Self.Iterations {
			break
		}
		if query = r.refined(weak); query == "" {
			r.stop = assay.StopNoProgress
			break
		}
	}
	if r.gradeSkipped { // no hit reached the floor, so none was graded
		if err := r.siftPassed(ctx, s.Sub("passed", 0), env); err != nil {
			return Result{}, err
		}
		if r.quality() != notRelevant && len(r.accepted(1)) > 0 {
			drafts++
			var err error
			if best, _, err = r.answer(ctx, s.Sub("passed", 0), env); err != nil {
				return Result{}, err
			}
		}
	}
	if best.Review == nil { // the run ended before a draft, or no passage was relevant
		answer, _, err := env.finish(ctx, s.Sub("finish", 0), name, []subQuestion{r.subQuestion})
		answer.Review = &assay.Review{RetrievalQuality: r.quality(), GenerationQuality: notSupported}
		if err == nil && len(answer.Claims) > 0 {
			answer.holdBack(nil, "the run ended before the support grader graded the draft")
		}
		return answer, err
	}
	review := best.Review
	best = withSearchesOf(best, env.base(best.Strategy, []subQuestion{r.subQuestion}), best.Notes)
	best.Review, review.Iterations = review, drafts
	if review.GenerationQuality != supported && len(best.Claims) > 0 {
		best.holdBack(nil, "the support grader calls the draft "+strings.ReplaceAll(review.GenerationQuality, "_", " "))
	}
	return best, nil
}

// The qualities of retrieval and generation, with the names used by the source.
const (
	relevant          = "relevant"
	partiallyRelevant = "partially_relevant"
	notRelevant       = "not_relevant"

	supported          = "supported"
	partiallySupported = "partially_supported"
	notSupported       = "not_supported"
)

// quality returns the quality of the retrieval, which is that of the best hit.
func (r *relevantSearch) quality() string {
	quality := notRelevant
	for _, g := range r.grades {
		switch g {
		case role.Relevant:
			return relevant
		case role.PartlyRelevant:
			quality = partiallyRelevant
		}
	}
	return quality
}

// answer writes and verifies an answer, and has its statements graded. It also returns those that are
// not fully supported.
func (r *relevantSearch) answer(ctx context.Context, s run.Scope, env Env) (answer Result, weak []string, err error) {
	retrieval := r.quality()
	answer, used, err := r.draft(ctx, s, env)
	if err != nil {
		return Result{}, nil, err
	}
	answer.Review = &assay.Review{
		RetrievalQuality: retrieval, GenerationQuality: notSupported, ContextsUsed: used, ByModel: env.byModel(role.SupportGraderTask),
	}
	if r.cutShort() && !r.late {
		return answer, nil, nil
	}
	answer.Review.GenerationQuality, weak, err = r.support(ctx, s, env)
	if stop := stopOf(err); stop != "" {
		r.endSearch(stop, err)
		err = nil
	}
	return answer, weak, err
}

// draft writes and verifies an answer. It also returns the evidence numbers used.
func (r *relevantSearch) draft(ctx context.Context, s run.Scope, env Env) (answer Result, used []int, err error) {
	found := []subQuestion{r.subQuestion}
	answer, _, err = env.finish(ctx, s.Sub("finish", 0), "self", found)
	r.subQuestion = found[0]
	evidence, _ := env.numberEvidence(found)
	for _, ev := range evidence {
		used = append(used, ev.Number)
	}
	return answer, used, err
}

// relevantSearch is a sub-question with the grades of its hits.
type relevantSearch struct {
	subQuestion
	grades map[string]role.Relevance // by chunk
}

// sift searches and keeps the relevant hits, and those of the partly relevant ones that the grader
// accepted. If all hits are below the relevance floor, neither grader is asked and the querier names
// the next search. It returns the number of new hits. If the time for searches is over, the local
// graders grade what was found.
func (r *relevantSearch) searchRelevant(ctx context.Context, s run.Scope, env Env, query string) (fresh int, err error) {
	err = r.inTime(ctx, s, env, func(s run.Scope) error {
		var err error
		if fresh, err = r.search(ctx, s, env, assay.Query{Text: query}); err != nil {
			return err
		}
		if !r.reachesFloor(env) {
			r.skipGrade(env)
			return r.askQuerier(ctx, s, env)
		}
		if err = r.gradeAll(ctx, s, env); err != nil {
			return err
		}
		return r.keepRelevant(ctx, s, env)
	})
	if err == nil && r.late && !r.gradeSkipped {
		err = r.keepRelevant(ctx, s.Sub("late", 1), env.judgingLocally())
	}
	return fresh, err
}

// siftPassed grades hits that are all below the relevance floor, once no other search follows.
func (r *relevantSearch) siftPassed(ctx context.Context, s run.Scope, env Env) error {
	if err := r.gradeAfterSkip(ctx, s, env); err != nil || r.gradeSkipped || r.cutShort() && !r.late {
		return err
	}
	if r.late {
		env = env.judgingLocally()
	}
	err := r.keepRelevant(ctx, s, env)
	if stop := stopOf(err); stop != "" {
		r.endSearch(stop, err)
		return nil
	}
	return err
}

// keepRelevant has the hits graded, and keeps of the accepted ones those that are relevant.
func (r *relevantSearch) keepRelevant(ctx context.Context, s run.Scope, env Env) error {
	if err := r.gradeRelevance(ctx, s, env); err != nil {
		return err
	}
	listed := r.grade.Relevant
	r.grade.Relevant = []string{}
	for _, want := range []role.Relevance{role.Relevant, role.PartlyRelevant} {
		for _, h := range r.hits {
			id := h.Chunk.ID
			if r.grades[id] == want && (want == role.Relevant || slices.Contains(listed, id)) {
				r.grade.Relevant = append(r.grade.Relevant, id)
			}
		}
	}
	if len(r.grade.Relevant) == 0 && r.sufficient() {
		r.grade.Verdict, r.grade.Missing = assay.Insufficient, []string{questionSources(env.Question).line(r.question)}
	}
	r.enforceFloor(env) // a hit that the grader did not accept may be relevant
	return nil
}

// retrievalInput is the recorded input of the retrieval grader.
type retrievalInput struct {
	Question string      `json:"question"`
	Hits     []assay.Hit `json:"hits"`
}

// gradeRelevance grades the best hits that have no grade yet. If the grader fails, or returns
// another number of grades, they count as partly relevant.
func (r *relevantSearch) gradeRelevance(ctx context.Context, s run.Scope, env Env) error {
	in := retrievalInput{Question: r.question}
	for _, h := range r.hits[:min(len(r.hits), env.Limits.Candidates)] {
		if r.grades[h.Chunk.ID] == "" {
			in.Hits = append(in.Hits, h)
		}
	}
	if len(in.Hits) == 0 {
		return nil
	}
	out, err := runRole(ctx, s, env, job[retrievalInput, role.RetrievalGrades]{
		task: role.RetrievalGraderTask,
		do: func(ctx context.Context, c role.Caller, in retrievalInput) (role.RetrievalGrades, error) {
			out, err := env.Roles.Judge.GradeRetrieval(ctx, c, in.Question, in.Hits)
			if err == nil && len(out.Grades) != len(in.Hits) {
				err = fmt.Errorf("%d grades for %d hits", len(out.Grades), len(in.Hits))
			}
			return out, err
		},
	}, in, &r.notes)
	if err != nil {
		return err
	}
	if r.grades == nil {
		r.grades = map[string]role.Relevance{}
	}
	for i, h := range in.Hits {
		r.grades[h.Chunk.ID] = role.PartlyRelevant
		if i < len(out.Grades) && (out.Grades[i] == role.Relevant || out.Grades[i] == role.NotRelevant) {
			r.grades[h.Chunk.ID] = out.Grades[i]
		}
	}
	return nil
}

// support grades the statements of the last draft. It returns the quality of the draft and the
// statements that are not fully supported, or the question if the draft has none. If the grader
// fails, or returns another number of grades, the statements count as partly supported.
func (r *relevantSearch) support(ctx context.Context, s run.Scope, env Env) (quality string, weak []string, err error) {
	draft := r.lastDraft.draft
	if len(draft.Statements) == 0 {
		return notSupported, []string{r.question}, nil
	}
	evidence, parts := env.numberEvidence([]subQuestion{r.subQuestion})
	in := role.DraftInput{
		Reading: role.Reading{Question: r.question, Evidence: evidence, Context: env.assemble(evidence, parts)},
		Draft:   draft,
	}
	out, err := runRole(ctx, s, env, job[role.DraftInput, role.SupportGrades]{
		task: role.SupportGraderTask,
		do: func(ctx context.Context, c role.Caller, in role.DraftInput) (role.SupportGrades, error) {
			out, err := env.Roles.Judge.GradeSupport(ctx, c, in)
			if err == nil && len(out.Grades) != len(in.Draft.Statements) {
				err = fmt.Errorf("%d grades for %d statements", len(out.Grades), len(in.Draft.Statements))
			}
			return out, err
		},
	}, in, &r.notes)
	if err != nil {
		return notSupported, nil, err
	}
	refuted := 0
	for i, st := range draft.Statements {
		if i >= len(out.Grades) || out.Grades[i] != role.FullySupported {
			weak = append(weak, st.Text)
		}
		if i < len(out.Grades) && out.Grades[i] == role.NotSupported {
			refuted++
		}
	}
	switch {
	case len(weak) == 0:
		return supported, nil, nil
	case refuted == len(draft.Statements):
		return notSupported, weak, nil
	}
	return partiallySupported, weak, nil
}

// refined returns the next query: the grader's query, otherwise the question with the words of a
// statement that is not fully supported. It returns "" if all of these were searched.
func (r *relevantSearch) refined(weak []string) string {
	queries := []string{r.grade.Query}
	for _, w := range weak {
		if w == r.question {
			continue
		}
		words := strings.Fields(visible.Line(w))
		queries = append(queries, r.question+" "+strings.Join(words[:min(len(words), maxExtra)], " "))
	}
	for _, q := range queries {
		if q != "" && len(q) <= maxQuery && !r.wasSearched(q, assay.Filter{}) {
			return q
		}
	}
	return ""
}

// maxExtra is the number of words of a statement that are appended to the question.
const maxExtra = 12

// betterThan reports whether an answer is better than a later one, by status and then by number of
// claims.
func betterThan(a, later Result) bool {
	rank := map[assay.Status]int{assay.Answered: 2, assay.Conflicting: 2, assay.Incomplete: 1}
	return rank[a.Status] > rank[later.Status] || rank[a.Status] == rank[later.Status] && len(a.Claims) > len(later.Claims)
}
