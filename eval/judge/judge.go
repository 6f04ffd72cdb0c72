// Package judge computes the judged measures of an answer: faithfulness, correctness, completeness,
// harmfulness, relevance, the precision and recall of claims and citations, and user-defined
// measures. [Local] judges with a verifier and no language model, [Prompted] with a language model.
// Every score names its judge.
//
// A judge lists the measures that it could not judge. It never substitutes a default score for a
// failure. The judged text is data, so neither an answer nor a passage can instruct a judge.
package judge

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/ground"
)

// The names of the judged scores, as in package metric.
const (
	Correctness  = "correctness"
	Completeness = "completeness"
	Harmfulness  = "harmfulness"
	Relevance    = "answer_relevance"

	// ClaimMeasures is the key in NotJudged for all claim measures: faithfulness, the precision and
	// recall of claims and citations, and noise sensitivity.
	ClaimMeasures = "claims"
)

// A Judge judges answers. It is safe for concurrent use.
type Judge interface {
	// Name returns "local" or the name of the model, such as "openai/gpt-4.1".
	Name() string

	// Judge judges one answer. The error is the end of ctx or of a budget. All other failures are
	// recorded in Judgement.NotJudged.
	Judge(ctx context.Context, in Input) (Judgement, error)
}

// Input is an answer with the material that it is judged by.
type Input struct {
	Question string
	Answer   string // without citation numbers
	Claims   []Claim
	Refused  bool // the system abstained; Answer and Claims are ignored

	Contexts   []ground.Passage // passages given to the generator, in order; Quote and Context are the passage's text
	References []string         // alternative reference answers; empty: none is known
	Sources    []bool           // for each expected source, whether a claim cites it
}

// A Claim is a statement of the answer.
type Claim struct {
	Text  string // as in the answer
	Cited []int  // indexes of cited contexts; one out of range supports nothing
}

// A Judgement is a judge's result for an answer. Each measure is in Scores or in NotJudged, or does
// not apply.
type Judgement struct {
	By     string // the judge of the claims, and of each Score without a By
	Prompt string // the prompt and its hash, "judge@5f0c7a1e"; empty: no model was called

	Scores map[string]Score // by the measure's name

	// Claims holds the verdicts on the answer's claims. Reference reports for each claim of the
	// reference answer whether the answer entails it. Of several references, the one with the most
	// entailed claims is used. nil means not judged.
	Claims    []metric.Claim
	Reference []bool

	NotJudged map[string]string // reason, by the measure's name or ClaimMeasures
	Usage     assay.Usage
}

// A Score is a judge's value of one measure.
type Score struct {
	Value  float64 // in [0, 1]
	Reason string  // short
	By     string  // the judge
	Prompt string  // as Judgement.Prompt
}

// Fill copies the judgement into the input of the measures.
func (j Judgement) Fill(in *metric.Input) {
	in.Claims, in.Reference = j.Claims, j.Reference
	in.Judged = map[string]float64{}
	for name, s := range j.Scores {
		in.Judged[name] = s.Value
	}
}

// Judges returns the judge of each judged measure in measures: "local", or a model and its prompt,
// such as "openai/gpt-4.1, judge@5f0c7a1e".
func (j Judgement) Judges(measures map[string]float64) map[string]string {
	out := map[string]string{}
	for name := range measures {
		by, prompt := j.By, j.Prompt
		if s, ok := j.Scores[name]; ok {
			by, prompt = s.By, s.Prompt
		} else if m, known := metric.Lookup(name); !known || !m.Judged {
			continue
		}
		if prompt != "" {
			by += ", " + prompt
		}
		out[name] = by
	}
	return out
}

// score adds a score. A value outside [0, 1] is recorded in NotJudged instead.
func (j *Judgement) score(name string, value float64, reason string) {
	if math.IsNaN(value) || value < 0 || value > 1 {
		j.not(name, fmt.Sprintf("%v is not a score", value))
		return
	}
	j.Scores[name] = Score{Value: value, Reason: reason, By: j.By, Prompt: j.Prompt}
}

// not records why there is no score.
func (j *Judgement) not(name, why string) { j.NotJudged[name] = why }

func newJudgement(by, prompt string) Judgement {
	return Judgement{By: by, Prompt: prompt, Scores: map[string]Score{}, NotJudged: map[string]string{}}
}

// refused returns the judgement of a refusal. With a known reference answer, correctness and
// completeness are 0, so that a system does not gain by refusing. No other measure applies. The
// judgement carries the judge's name although the judge is not called.
func refused(by, prompt string, in Input) Judgement {
	j := newJudgement(by, prompt)
	if len(in.References) > 0 {
		const reason = "nothing was answered"
		j.score(Correctness, 0, reason)
		j.score(Completeness, 0, reason)
		j.Reference = []bool{false}
	}
	return j
}

// With returns a judge that adds custom measures to those of base. The error is assay.ErrInvalid if
// two measures have the same name or one has the name of a built-in measure.
func With(base Judge, custom ...Custom) (Judge, error) {
	seen := map[string]bool{}
	for _, c := range custom {
		name := c.Measure().Name
		if _, taken := metric.Lookup(name); taken || seen[name] || name == ClaimMeasures {
			return nil, fmt.Errorf("custom measure %q: the name is taken: %w", name, assay.ErrInvalid)
		}
		if !isName(name) {
			return nil, fmt.Errorf("custom measure %q: want lower-case letters, digits and _: %w", name, assay.ErrInvalid)
		}
		seen[name] = true
	}
	return withCustom{base, slices.Clone(custom)}, nil
}

// Calls returns the number of model calls that a judge makes for an answer if every reply can be
// used. It is 0 for a local judge and for nil.
func Calls(j Judge) int {
	switch j := j.(type) {
	case Prompted:
		return 1
	case withCustom:
		n := Calls(j.base)
		for _, c := range j.custom {
			if _, asks := c.(prompting); asks {
				n++
			}
		}
		return n
	}
	return 0
}

type withCustom struct {
	base   Judge
	custom []Custom
}

// Name implements Judge.
func (w withCustom) Name() string { return w.base.Name() }

// Judge implements Judge.
func (w withCustom) Judge(ctx context.Context, in Input) (Judgement, error) {
	j, err := w.base.Judge(ctx, in)
	if err != nil || in.Refused {
		return j, err
	}
	j.Scores, j.NotJudged = maps.Clone(j.Scores), maps.Clone(j.NotJudged)
	for _, c := range w.custom {
		name := c.Measure().Name
		s, usage, err := c.Score(ctx, in)
		j.Usage = j.Usage.Add(usage)
		switch {
		case ended(ctx, err):
			return j, err
		case err != nil:
			j.NotJudged[name] = err.Error()
		case math.IsNaN(s.Value) || s.Value < 0 || s.Value > 1:
			j.NotJudged[name] = fmt.Sprintf("%v is not a score in [0, 1]", s.Value)
		default:
			j.Scores[name] = s
		}
	}
	return j, nil
}
