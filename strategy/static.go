package strategy

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/run"
)

// staticSpec describes Static.
var staticSpec = Spec{
	Name:    "static",
	Summary: "one search, one answer: the floor that the others are measured against",
	Source: "plain retrieval-augmented generation: Lewis et al., \"Retrieval-Augmented Generation for " +
		"Knowledge-Intensive NLP Tasks\", 2020",
	Func: Static,
	Defaults: "20 candidates (corrective.candidates), of which 5 relevant ones become evidence (corrective.keep); " +
		"relevance floor 0.5 (corrective.floor)",
	UsualCost: "search, grade, generate, verify, grade the answer",
}

// Static retrieves once, generates and verifies. It grades the hits, so that weak context never
// passes silently into an answer.
func Static(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	sq, err := env.searchQuestion(ctx, s, env.Question, assay.Filter{})
	if err != nil {
		return Result{}, err
	}
	answer, _, err := env.finish(ctx, s.Sub("finish", 0), "static", []subQuestion{sq})
	return answer, err
}

// searchQuestion makes one search for a question, narrowed by filter, and grades the hits.
func (e Env) searchQuestion(ctx context.Context, s run.Scope, question string, filter assay.Filter) (subQuestion, error) {
	return e.searchFor(ctx, s, assay.Query{Text: question, Filter: filter})
}

// searchFor makes one search and grades the hits.
func (e Env) searchFor(ctx context.Context, s run.Scope, q assay.Query) (subQuestion, error) {
	sq := subQuestion{question: q.Text, filter: q.Filter, stop: assay.StopIterationLimit}
	err := sq.searchFurther(ctx, s, e, q)
	return sq, err
}

// searchFurther makes one search and grades all hits found so far. It returns an error only if the
// run cannot go on.
func (sq *subQuestion) searchFurther(ctx context.Context, s run.Scope, env Env, q assay.Query) error {
	_, err := sq.search(ctx, s, env, q)
	if err == nil {
		err = sq.gradeAll(ctx, s, env)
	}
	if stop := stopOf(err); stop != "" {
		sq.endSearch(stop, err)
		return nil
	}
	if err == nil && sq.sufficient() {
		sq.stop = assay.StopSufficient
	}
	return err
}
