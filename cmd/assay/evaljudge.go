package main

import (
	"context"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// judgeOf returns the judge of answers, including the user's own measures. It returns nil if
// judging is off.
func (v *evaluating) judgeOf(ctx context.Context) (judge.Judge, error) {
	if v.flags.judge == "off" {
		return nil, nil
	}
	wanted := v.needs()
	if v.flags.judge == "model" || len(v.measures) > 0 {
		wanted = answering
	}
	configured, err := v.app.engineConfig(ctx, v.at, wanted)
	if err != nil {
		return nil, err
	}
	model := judging(configured.Models)
	if model == nil && (v.flags.judge == "model" || len(v.measures) > 0) {
		what := "--judge model"
		if v.flags.judge != "model" {
			what = "--measures"
		}
		return nil, hinted{usagef("%s, and no model is configured", what), "see: assay doctor"}
	}
	var base judge.Judge = judge.Prompted{Model: model}
	if v.flags.judge == "local" {
		writes := v.needs() == answering && configured.Models.Roles[role.GeneratorRole] != nil
		if base, err = localJudge(writes); err != nil {
			return nil, err
		}
	}
	var custom []judge.Custom
	for _, p := range v.measures {
		c, err := p.By(model, nil)
		if err != nil {
			return nil, err
		}
		custom = append(custom, c)
	}
	if len(custom) == 0 {
		return base, nil
	}
	return judge.With(base, custom...)
}

// ownMeasures converts prompts to measures for reports.
func ownMeasures(prompts []judge.Prompt) []metric.Measure {
	var own []metric.Measure
	for _, p := range prompts {
		own = append(own, p.Measure())
	}
	return own
}

// judging returns the model of the role judge, or else that of the verifier or the generator. It
// returns nil if there is none.
func judging(models engine.Models) llm.Model {
	for _, name := range []string{role.JudgeRole, role.VerifierRole, role.GeneratorRole} {
		if m := models.Roles[name]; m != nil {
			return m
		}
	}
	return nil
}

// localJudge judges with the local verifier. Quoted answers are checked against the floor for shown
// answers, answers written by a model against the balanced floor.
func localJudge(written bool) (judge.Judge, error) {
	reader, err := localReader()
	if err != nil {
		return nil, err
	}
	verifier := ground.Local{Reader: reader}
	if written {
		if _, verifier.Floor, err = ground.Floors(); err != nil {
			return nil, err
		}
	}
	return judge.Local{Verifier: verifier, Called: "local verifier"}, nil
}
