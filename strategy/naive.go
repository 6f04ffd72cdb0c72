package strategy

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// NaivePassages is the number of passages that Naive gives the generator.
const NaivePassages = 5

// Naive is the baseline of measurements: one search by vectors and one call of the generator. Hits
// are neither reranked nor graded. The draft is not verified, so it is not an answer for users, and
// Naive is not one of Specs.
//
// The mode is assay.ModeVector, or assay.ModeText if there are no vectors. Env needs a Retriever
// and a Generator only.
func Naive(ctx context.Context, s run.Scope, env Env, mode assay.Mode) (role.Draft, error) {
	env = env.withDefaults()
	env.Limits.Passages = 0 // a fixed number would widen the search
	found, err := env.search(ctx, s, assay.Query{Text: env.Question, Mode: mode, Limit: NaivePassages, Unranked: true})
	if err != nil {
		return role.Draft{}, err
	}
	part := role.Part{Question: env.Question, Terms: found.Terms}
	var evidence []assay.Evidence
	for i, h := range found.Hits {
		evidence = append(evidence, assay.Evidence{Number: i + 1, Hit: h})
		part.Evidence = append(part.Evidence, i+1)
	}
	parts := []role.Part{part}
	in := role.GenerateInput{Question: env.Question, Parts: parts, Evidence: evidence, Context: env.assemble(evidence, parts)}
	return env.generate(ctx, s, env.Roles.Generator, env.Roles.Models[role.GeneratorRole], in)
}
