package strategy

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/run"
)

// An Earlier is a run whose answer may be that to the question: it was asked with the
// same rights, of the same documents, models and settings.
type Earlier struct {
	Run      string `json:"run"`
	Question string `json:"question"`
}

// A Cache reaches the answers of earlier runs.
type Cache interface {
	// Similar returns the cosine of the vectors of a question and of each of others.
	Similar(ctx context.Context, question string, others []string) ([]float64, error)

	// Given returns the answer of an earlier run, if it may be given again, and the
	// documents that the run read; nil, if it may not: it is gone, what it depends on has
	// changed, or who asks may not see it any more.
	Given(ctx context.Context, run string) (*assay.Answer, []string, error)
}

// MinSimilarity is how near the vectors of two questions have to be that are near by
// their words, see Alike. Of 24 written pairs that are one question 23 are nearer.
const MinSimilarity = 0.95

// maxSimilarity is the most that is said of two questions whose words are not the same.
const maxSimilarity = 0.9999

// maxNear is how many questions that are near by their words are compared by their
// vectors.
const maxNear = 3

// A cacheOutput is what a look for an earlier answer brought.
type cacheOutput struct {
	Answer    *assay.Answer `json:"answer"`              // nil: there is none to be given
	Documents []string      `json:"documents,omitempty"` // that its run read, by ID
}

// cacheInput is what a look for an earlier answer records.
type cacheInput struct {
	Question string       `json:"question"`
	Earlier  []Earlier    `json:"earlier"`
	Access   assay.Access `json:"access"`
}

// fromCache returns the answer of an earlier run to the same question, or to one that is
// near enough; ok is false when there is none. Not to find one is no failure of the
// run: it goes on and answers the question anew.
func (e Env) fromCache(ctx context.Context, s run.Scope, said *notes) (answer assay.Answer, ok bool) {
	if len(e.Earlier) == 0 {
		return assay.Answer{}, false
	}
	in := cacheInput{Question: e.Question, Earlier: e.Earlier, Access: e.Access}
	step := run.Step{Name: "cache", Kind: assay.StepCache}
	left := leftFor(s)
	found, err := run.Do(ctx, s, step, in, func(ctx context.Context, in cacheInput) (cacheOutput, assay.Usage, error) {
		meter := llm.NewMeter(left)
		found, err := e.lookForEarlier(llm.WithMeter(ctx, meter), in)
		return found, meter.Spent(), err
	})
	if err != nil {
		said.say(remark(fmt.Sprintf("no earlier answer could be looked for: %v", err)))
		return assay.Answer{}, false
	}
	if found.Answer == nil {
		return assay.Answer{}, false
	}
	return *found.Answer, true
}

// lookForEarlier takes the first of the earlier runs whose question is the same, else
// the one whose question is nearest.
func (e Env) lookForEarlier(ctx context.Context, in cacheInput) (cacheOutput, error) {
	var near []Earlier
	for _, r := range in.Earlier {
		switch Alike(in.Question, r.Question) {
		case Same:
			if found, err := e.given(ctx, in.Question, r, 1); err != nil || found.Answer != nil {
				return found, err
			}
		case Near:
			near = append(near, r)
		}
	}
	near = near[:min(len(near), maxNear)]
	if len(near) == 0 {
		return cacheOutput{}, nil
	}
	questions := make([]string, len(near))
	for i, r := range near {
		questions[i] = r.Question
	}
	similar, err := e.Cache.Similar(ctx, in.Question, questions)
	if err != nil {
		return cacheOutput{}, err
	}
	best := 0
	for i := range similar {
		if similar[i] > similar[best] {
			best = i
		}
	}
	if len(similar) != len(near) || similar[best] < MinSimilarity {
		return cacheOutput{}, nil
	}
	return e.given(ctx, in.Question, near[best], min(similar[best], maxSimilarity))
}

// given returns the answer of an earlier run as that to the question.
func (e Env) given(ctx context.Context, question string, r Earlier, similarity float64) (cacheOutput, error) {
	before, documents, err := e.Cache.Given(ctx, r.Run)
	if err != nil || before == nil {
		return cacheOutput{}, err
	}
	a := *before
	a.Question, a.Understood = question, ""
	a.Cached = &assay.Cached{Run: r.Run, Question: r.Question, Similarity: similarity}
	a.Roles = make([]assay.RoleUse, len(before.Roles)) // who did it then; it costs nothing now
	for i, use := range before.Roles {
		use.Usage = assay.Usage{}
		a.Roles[i] = use
	}
	again := notes{texts: []string{fmt.Sprintf("given again: the answer of run %s; nothing that it depends on has changed since", r.Run)}}
	if similarity < 1 {
		again.texts[0] = fmt.Sprintf("given again: the answer of run %s to %q; nothing that it depends on has changed since", r.Run, asked(question).line(r.Question))
	}
	again.join(notes{texts: before.Notes})
	a.Notes = again.texts
	return cacheOutput{Answer: &a, Documents: documents}, nil
}
