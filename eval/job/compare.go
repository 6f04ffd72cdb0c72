package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/testset"
)

// hashOf identifies the text of a question.
func hashOf(question string) string {
	sum := sha256.Sum256([]byte(question))
	return hex.EncodeToString(sum[:8])
}

// ResultOf returns the Result of an evaluation that is done. One without a result is assay.ErrInvalid,
// and one that was not made by Start assay.ErrDamaged.
func ResultOf(e engine.Evaluation) (Result, error) {
	if len(e.Result) == 0 {
		return Result{}, fmt.Errorf("evaluation %s has no result (%s): %w", e.ID, e.State, assay.ErrInvalid)
	}
	var r Result
	if err := json.Unmarshal(e.Result, &r); err != nil {
		return Result{}, fmt.Errorf("the result of evaluation %s: %w: %w", e.ID, assay.ErrDamaged, err)
	}
	return r, nil
}

// Measured returns the report with its outcomes, as far as the result has them: without texts, and with
// a hash in place of each question.
func (r Result) Measured() answers.Report {
	report := r.Report
	report.Systems = slices.Clone(report.Systems)
	for i := range report.Systems {
		s := &report.Systems[i]
		s.Outcomes = nil
		for _, q := range r.Questions {
			if q.Strategy != s.Name {
				continue
			}
			o := answers.Outcome{
				Case: testset.Case{ID: q.ID, Question: q.Asked}, System: q.Strategy, Run: q.Run, Right: q.Right, Lost: q.Lost, Metrics: q.Metrics,
				Answer: assay.Answer{Status: q.Status},
			}
			if q.Failed {
				o.Error = "the run failed"
			}
			s.Outcomes = append(s.Outcomes, o)
		}
	}
	return report
}

// A Comparison is the difference between two evaluations.
type Comparison struct {
	Systems []ComparedSystem `json:"systems"`
	Missing []string         `json:"missing,omitempty"` // systems that only one of them has
}

// A ComparedSystem is the difference of one strategy on the questions that both evaluations have.
type ComparedSystem struct {
	Name   string           `json:"name"`
	Other  string           `json:"other"`  // that it is compared with
	Common int              `json:"common"` // questions
	Only   int              `json:"only"`   // questions of the present evaluation alone
	Gone   int              `json:"gone"`   // questions of the earlier evaluation alone
	Paired []answers.Paired `json:"paired"`
	Turned []TurnedQuestion `json:"turned"`
}

// A TurnedQuestion is one that was right and is now wrong, or the reverse.
type TurnedQuestion struct {
	Is  Question `json:"is"`
	Was Question `json:"was"`
}

// Compare returns the differences of an evaluation to an earlier one. An earlier one of a single
// strategy is compared with all strategies of the present one. Questions are the same if their IDs and
// texts are. The intervals are those of a paired bootstrap, and the probabilities those of a paired
// randomisation test.
func Compare(is, was Result) Comparison {
	var c Comparison
	report, baseline := is.Measured(), answers.BaselineOf(was.Measured(), nil)
	for _, s := range report.Systems {
		paired, ok := answers.Differences(s, baseline)
		if !ok {
			c.Missing = append(c.Missing, s.Name)
			continue
		}
		one := ComparedSystem{Name: s.Name, Other: otherName(s.Name, baseline), Paired: paired}
		before := map[[2]string]Question{}
		for _, q := range was.Questions {
			if q.Strategy == one.Other {
				before[[2]string{q.ID, q.Asked}] = q
			}
		}
		for _, q := range is.Questions {
			if q.Strategy != s.Name {
				continue
			}
			old, known := before[[2]string{q.ID, q.Asked}]
			if !known {
				one.Only++
				continue
			}
			one.Common++
			if old.Right != q.Right {
				one.Turned = append(one.Turned, TurnedQuestion{q, old})
			}
		}
		one.Gone = len(before) - one.Common
		c.Systems = append(c.Systems, one)
	}
	for _, b := range baseline.Systems {
		if !slices.ContainsFunc(c.Systems, func(s ComparedSystem) bool { return s.Other == b.Name }) {
			c.Missing = append(c.Missing, b.Name)
		}
	}
	return c
}

// otherName returns the name of the system of a baseline that a system is compared with.
func otherName(name string, b answers.Baseline) string {
	if len(b.Systems) == 1 {
		return b.Systems[0].Name
	}
	return name
}

// Check holds an evaluation to a gate, with an earlier one as the baseline, as assay eval gate does.
func Check(gate answers.Gate, is, was Result) answers.Gating {
	return gate.Check(is.Measured(), answers.BaselineOf(was.Measured(), &gate))
}
