// Package judge gives the judged measures of an answer: faithfulness, correctness,
// completeness, harmfulness, relevance, what its claims and citations are worth, and
// measures of a user's own. [Local] judges with a verifier and no language model,
// [Prompted] with one. Which of them a score is from always stands beside it.
//
// A judge reports what it was able to judge and names what it was not: no score stands for
// a judge that failed, and there is no default. What is judged is data: neither an answer
// nor a passage can tell a judge what to say of it.
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

// The scores that judges give, by the names that package metric has for them.
const (
	Correctness  = "correctness"
	Completeness = "completeness"
	Harmfulness  = "harmfulness"
	Relevance    = "answer_relevance"

	// ClaimMeasures stands in NotJudged for all that is measured of claims: faithfulness,
	// the precision and recall of claims and citations, noise sensitivity.
	ClaimMeasures = "claims"
)

// A Judge judges answers. It is safe for concurrent use.
type Judge interface {
	// Name says who judges: "local", or the model: "openai/gpt-4.1".
	Name() string

	// Judge judges one answer. The error is the end of ctx or of a budget; all else that
	// goes wrong is in Judgement.NotJudged.
	Judge(ctx context.Context, in Input) (Judgement, error)
}

// Input is an answer and what it is judged by.
type Input struct {
	Question string
	Answer   string // without citation numbers
	Claims   []Claim
	Refused  bool // the system said that the documents do not answer the question; Answer and Claims do not count

	Contexts   []ground.Passage // that the generator was handed, in order; Quote and Context are the passage's text
	References []string         // right answers, any of which will do; empty: none is known
	Sources    []bool           // of each place that a right answer rests on, whether a claim cites it
}

// A Claim is a statement of the answer.
type Claim struct {
	Text  string // as it stands in the answer
	Cited []int  // contexts that it cites, by index; one out of range is one that says nothing
}

// A Judgement is what a judge says of an answer. A measure is in Scores, in NotJudged, or
// does not apply.
type Judgement struct {
	By     string // who judged the claims, and what a Score does not name another for
	Prompt string // the prompt and its hash, "judge@5f0c7a1e"; empty: no model was asked

	Scores map[string]Score // by the measure's name

	// Of each claim of the answer what is known, and of each of the right answer whether
	// the answer says it: of the right answer of which it says the most, where there are
	// several. nil: not judged.
	Claims    []metric.Claim
	Reference []bool

	NotJudged map[string]string // by the measure's name, or ClaimMeasures: why there is none
	Usage     assay.Usage
}

// A Score is a judge's word on one measure.
type Score struct {
	Value  float64 // in [0, 1]
	Reason string  // in a few words
	By     string  // who judged
	Prompt string  // as Judgement.Prompt
}

// Fill puts the judgement into the input of the measures.
func (j Judgement) Fill(in *metric.Input) {
	in.Claims, in.Reference = j.Claims, j.Reference
	in.Judged = map[string]float64{}
	for name, s := range j.Scores {
		in.Judged[name] = s.Value
	}
}

// Judges says, of those of the measures that are judged, who did: "local", or a model and
// its prompt: "openai/gpt-4.1, judge@5f0c7a1e".
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

// score adds a score; one that is no number in [0, 1] is none.
func (j *Judgement) score(name string, value float64, reason string) {
	if math.IsNaN(value) || value < 0 || value > 1 {
		j.not(name, fmt.Sprintf("%v is no score", value))
		return
	}
	j.Scores[name] = Score{Value: value, Reason: reason, By: j.By, Prompt: j.Prompt}
}

// not says why there is no score.
func (j *Judgement) not(name, why string) { j.NotJudged[name] = why }

func newJudgement(by, prompt string) Judgement {
	return Judgement{By: by, Prompt: prompt, Scores: map[string]Score{}, NotJudged: map[string]string{}}
}

// refused is the judgement of an answer that is none. Where a right answer is known it is
// neither correct nor complete, so that a system does not gain by refusing; nothing else
// applies. It is in the judge's name, though it did not have to be asked.
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

// With returns a judge that gives custom measures besides those of base. The error is
// assay.ErrInvalid where two have one name, or one has that of a measure of the table.
func With(base Judge, custom ...Custom) (Judge, error) {
	seen := map[string]bool{}
	for _, c := range custom {
		name := c.Measure().Name
		if _, taken := metric.Lookup(name); taken || seen[name] || name == ClaimMeasures {
			return nil, fmt.Errorf("custom measure %q: there is one of that name: %w", name, assay.ErrInvalid)
		}
		if !isName(name) {
			return nil, fmt.Errorf("custom measure %q: a name is of small letters, digits and _: %w", name, assay.ErrInvalid)
		}
		seen[name] = true
	}
	return withCustom{base, slices.Clone(custom)}, nil
}

// Calls is how many calls of a model a judge makes for an answer, if each reply can be
// used: 0 for a local one, and for nil.
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
			j.NotJudged[name] = fmt.Sprintf("%v is no score in [0, 1]", s.Value)
		default:
			j.Scores[name] = s
		}
	}
	return j, nil
}
