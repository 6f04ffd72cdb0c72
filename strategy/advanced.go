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

// Advanced prepares one good search for the question, or for each of several in one,
// side by side. The question is searched together with other wordings of it and with a
// passage as it would stand in a document that answers it (HyDE), narrowed by the
// filter that the plan has for it; the retriever fuses what all of them find and
// reranks it, and the grader drops what is under the floor. Where that does not suffice
// the question may be too narrow: it is searched once more, together with a more
// general one (step-back). What is relevant is compressed and put into order, the best
// first and last, for the generator, and each statement of the draft is verified.
//
// Only the question itself says how relevant a hit is: a rewriting brings passages and
// vouches for none.
func Advanced(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	const name = "advanced"
	plan, said, err := env.plan(ctx, s)
	if stop := stopOf(err); stop != "" {
		return env.unplannable(name, stop, err, said), nil
	}
	if err != nil {
		return Result{}, err
	}
	parts := plan.SubQuestions
	if filter, common := filterOf(plan); plan.Shape != role.Conjunction && common {
		parts = []role.SubQuestion{{Text: env.Question, Filter: filter}}
	}
	found := make([]finding, len(parts))
	for i, sub := range parts {
		found[i] = finding{question: sub.Text, filter: sub.Filter, stop: assay.StopIterationLimit}
	}
	found[0].notes.join(said)
	err = s.Parallel(ctx, "sub", min(len(parts), env.Limits.Parts), sideBySide, func(ctx context.Context, i int, s run.Scope) error {
		return found[i].lookReworded(ctx, s, env)
	})
	if err != nil {
		return Result{}, err
	}
	answer, _, err := env.finish(ctx, s.Sub("finish", 0), name, found)
	return answer, err
}

// lookReworded searches for the finding's question with other wordings of it; where that
// does not suffice, with a more general question. It returns an error only if the run
// cannot go on.
func (f *finding) lookReworded(ctx context.Context, s run.Scope, env Env) error {
	err := f.reworded(ctx, s, env)
	if stop := stopOf(err); stop != "" {
		f.ends(stop, err)
		return nil
	}
	if err == nil && f.sufficient() {
		f.stop = assay.StopSufficient
	}
	return err
}

func (f *finding) reworded(ctx context.Context, s run.Scope, env Env) error {
	wordings, err := env.rewrite(ctx, s.Sub("expand", 0), role.RewriteInput{Question: f.question, Technique: role.Expand}, &f.notes)
	if err != nil {
		return err
	}
	passage, err := env.rewrite(ctx, s.Sub("hyde", 0), role.RewriteInput{Question: f.question, Technique: role.HyDE}, &f.notes)
	if err != nil {
		return err
	}
	wordings = distinct(wordings, passage...)
	if err := f.searchWith(ctx, s.Sub("round", 0), env, wordings); err != nil || f.sufficient() {
		return err
	}
	general, err := env.rewrite(ctx, s.Sub("step_back", 0), role.RewriteInput{Question: f.question, Technique: role.StepBack}, &f.notes)
	if err != nil || len(general) == 0 {
		return err
	}
	return f.searchWith(ctx, s.Sub("round", 1), env, general)
}

// searchWith searches for the finding's question together with other wordings, and
// grades what it holds then.
func (f *finding) searchWith(ctx context.Context, s run.Scope, env Env, wordings []string) error {
	if _, err := f.find(ctx, s, env, assay.Query{Text: f.question, Filter: f.filter, Rewrites: wordings}); err != nil {
		return err
	}
	return f.regrade(ctx, s, env)
}

// How many rewritings of one technique are searched, whatever a role makes: where no
// number is asked for, so that those of two fit into one query, and at most.
const (
	fewWordings = 4
	maxWordings = 8
)

// rewrite asks the rewriter. What it makes that says nothing, is the question itself, is
// longer than a question may be or too much is left out, and the notes say so of the
// latter two. A rewriter that fails has made nothing.
func (e Env) rewrite(ctx context.Context, s run.Scope, in role.RewriteInput, said *notes) ([]string, error) {
	out, err := hand(ctx, s, e, job[role.RewriteInput, role.Rewriting]{
		role:    role.RewriterRole,
		do:      e.Roles.Rewriter.Rewrite,
		outcome: func(r *role.Rewriting) *role.Outcome { return &r.Outcome },
	}, in, said)
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
		said.say(assay.NoteRole, fmt.Sprintf("rewriter: %s longer than a question may be and not searched", count(long, "of its rewritings is", "of its rewritings are")))
	}
	if n := len(made) - most; n > 0 {
		said.say(assay.NoteRole, fmt.Sprintf("rewriter: %s more than asked for and not searched", count(n, "of its rewritings is", "of its rewritings are")))
		made = made[:most]
	}
	return made, nil
}

// distinct adds to texts those that it does not have, whatever their case.
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
