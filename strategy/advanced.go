package strategy

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// advancedSpec describes Advanced.
var advancedSpec = Spec{
	Name:    "advanced",
	Summary: "searches the question in other words as well, and a passage as an answer would be written",
	Source: "Gao et al., \"Retrieval-Augmented Generation for Large Language Models: A Survey\", 2023; HyDE: Gao et " +
		"al., \"Precise Zero-Shot Dense Retrieval without Relevance Labels\", 2022; step-back: Zheng et al., \"Take " +
		"a Step Back\", 2023; order: Liu et al., \"Lost in the Middle\", 2023",
	Func:     Advanced,
	Defaults: "those of static; 3 rewritings by expand, one by each of the others",
	UsualCost: "a plan and two rewritings more than static; a rewriting, a search and a grade more if that does not " +
		"suffice",
}

// Advanced prepares one good search for the question, or one for each of several questions in it,
// in parallel. The question is searched together with other wordings of it and with a passage as it
// would stand in a document that answers it (HyDE), narrowed by the plan's filter for it. The
// retriever fuses and reranks all hits, and the grader drops those below the floor. If the hits are
// insufficient, the question may be too narrow: it is searched once more, together with a more
// general one (step-back). The relevant passages are compressed and ordered for the generator, the
// best first and last, and each statement of the draft is verified.
//
// The relevance of a hit is always its relevance to the question itself. A rewriting adds hits but
// does not change their relevance.
func Advanced(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	const name = "advanced"
	plan, notes, err := env.plan(ctx, s)
	if stop := stopOf(err); stop != "" {
		return env.unplannable(name, stop, err, notes), nil
	}
	if err != nil {
		return Result{}, err
	}
	parts := plan.SubQuestions
	if filter, common := filterOf(plan); plan.Shape != role.Conjunction && common {
		parts = []role.SubQuestion{{Text: env.Question, Filter: filter}}
	}
	found := make([]subQuestion, len(parts))
	for i, sub := range parts {
		found[i] = subQuestion{question: sub.Text, filter: sub.Filter, stop: assay.StopIterationLimit}
	}
	found[0].notes.join(notes)
	err = s.Parallel(ctx, "sub", min(len(parts), env.Limits.Parts), sideBySide, func(ctx context.Context, i int, s run.Scope) error {
		return found[i].searchWithRewordings(ctx, s, env)
	})
	if err != nil {
		return Result{}, err
	}
	answer, _, err := env.finish(ctx, s.Sub("finish", 0), name, found)
	return answer, err
}

// searchWithRewordings searches for the sub-question's question together with other wordings of it, and with a
// more general question if the hits are insufficient. It returns an error only if the run cannot go
// on.
func (sq *subQuestion) searchWithRewordings(ctx context.Context, s run.Scope, env Env) error {
	err := sq.inTime(ctx, s, env, func(s run.Scope) error { return sq.searchRewordings(ctx, s, env) })
	if stop := stopOf(err); stop != "" {
		sq.endSearch(stop, err)
		return nil
	}
	if err == nil && sq.sufficient() && !sq.late {
		sq.stop = assay.StopSufficient
	}
	return err
}

func (sq *subQuestion) searchRewordings(ctx context.Context, s run.Scope, env Env) error {
	wordings, err := env.rewrite(ctx, s.Sub("expand", 0), role.RewriteInput{Question: sq.question, Technique: role.Expand}, &sq.notes)
	if err != nil {
		return err
	}
	passage, err := env.rewrite(ctx, s.Sub("hyde", 0), role.RewriteInput{Question: sq.question, Technique: role.HyDE}, &sq.notes)
	if err != nil {
		return err
	}
	wordings = distinct(wordings, passage...)
	if err := sq.searchVariants(ctx, s.Sub("round", 0), env, wordings); err != nil || sq.sufficient() {
		return err
	}
	general, err := env.rewrite(ctx, s.Sub("step_back", 0), role.RewriteInput{Question: sq.question, Technique: role.StepBack}, &sq.notes)
	if err != nil || len(general) == 0 {
		return err
	}
	return sq.searchVariants(ctx, s.Sub("round", 1), env, general)
}

// searchVariants searches for the sub-question together with other wordings and grades all
// hits found so far.
func (sq *subQuestion) searchVariants(ctx context.Context, s run.Scope, env Env, wordings []string) error {
	if _, err := sq.search(ctx, s, env, assay.Query{Text: sq.question, Filter: sq.filter, Rewrites: wordings}); err != nil {
		return err
	}
	return sq.gradeAboveFloor(ctx, s, env)
}

// Limits on the rewritings of one technique that are searched: fewWordings if the caller asks for
// no number, so that the rewritings of two techniques fit into one query, and maxWordings at most.
const (
	fewWordings = 4
	maxWordings = 8
)

// rewrite asks the rewriter. It drops rewritings that are empty, equal to the question, too long
// for a query or more than were asked for, and records the last two cases in the notes. If the
// rewriter fails, there are no rewritings.
func (e Env) rewrite(ctx context.Context, s run.Scope, in role.RewriteInput, notes *noteList) ([]string, error) {
	out, err := runRole(ctx, s, e, job[role.RewriteInput, role.Rewriting]{
		task: role.RewriterRole,
		do:   e.Roles.Rewriter.Rewrite,
	}, in, notes)
	if err != nil {
		return nil, err
	}
	most := fewWordings
	if in.Most > 0 {
		most = min(in.Most, maxWordings)
	}
	var made []string
	long := 0
	for _, q := range out.Queries {
		if q = visible.Line(q); len(q) > maxQuery {
			long++
		} else if q != "" && !strings.EqualFold(q, visible.Line(in.Question)) {
			made = distinct(made, q)
		}
	}
	if long > 0 {
		notes.say(assay.NoteRole, fmt.Sprintf("rewriter: %s longer than a question may be and not searched", count(long, "of its rewritings is", "of its rewritings are")))
	}
	if n := len(made) - most; n > 0 {
		notes.say(assay.NoteRole, fmt.Sprintf("rewriter: %s more than asked for and not searched", count(n, "of its rewritings is", "of its rewritings are")))
		made = made[:most]
	}
	return made, nil
}

// distinct appends to texts those of more that it does not contain, ignoring case.
func distinct(texts []string, more ...string) []string {
	for _, m := range more {
		known := false
		for _, t := range texts {
			known = known || strings.EqualFold(t, m)
		}
		if !known {
			texts = append(texts, m)
		}
	}
	return texts
}
