package prompted

import (
	"context"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// A Task is something to get out of a model that is no role's job, with a prompt of its
// own: an evaluation's judge has such. All that the package comment says of prompts and
// replies holds for it, but that nothing is left out: what does not fit into the window
// is a failure. T is what the reply is unmarshalled into; fields that may be missing have
// "omitempty". A Task can be done any number of times, also at once.
type Task[T any] struct {
	name   string
	prompt prompt
	out    func() output
}

// NewTask returns a task. Its name is of letters, digits and _. The templates define
// "system", which is filled with system and has {{template "rules"}}, and "user"; there
// the function data fences what is not theirs, by a name and the text: {{data "answer"
// .Answer}}. Templates and types that cannot be used are a programmer's mistake, and panic.
func NewTask[T any](name, templates string, system any) *Task[T] {
	return &Task[T]{name: name, prompt: newPrompt(name, system, source(shared), templates), out: outputOf[T](name)}
}

// Prompt returns the id of the prompt: the task's name and a hash of all that is constant.
func (t *Task[T]) Prompt() string { return t.prompt.id }

// A Sheet is what a task is done with.
type Sheet[T any] struct {
	Model     llm.Model
	Data      any // for the template "user"
	MaxTokens int // of a reply; one that is cut off gets more room when it is asked for again

	// Check says, in words for the model, what of a reply that has the form is wrong all
	// the same; it is then asked again, twice at most. The third such reply is returned as
	// it is, with Outcome.Notes that say what is wrong: the caller leaves that out.
	Check func(*T) []string
}

// Do gets the output. A Failure in the outcome says why there is none, as where the
// provider failed or no reply could be read; the error is the end of the caller's run, as
// [role.Ends] has it.
func (t *Task[T]) Do(ctx context.Context, c role.Caller, s Sheet[T]) (T, role.Outcome, error) {
	var wrong []string
	own := t.prompt
	out, outcome, err := ask(ctx, c, job[T]{
		Config: Config{Model: s.Model}, role: t.name, out: t.out(), maxTokens: s.MaxTokens, own: &own,
		write: func(p prompt, room int) (string, []string, bool) {
			user := p.render(s.Data)
			return user, nil, llm.EstimateTokens(user) <= room
		},
		check: func(v *T) []string {
			if s.Check == nil {
				return nil
			}
			wrong = s.Check(v)
			return wrong
		},
		salvage: func(*T) ([]string, bool) { return wrong, true },
	})
	if failed(ctx, err) {
		return out, role.Outcome{Failure: providerText(err)}, nil
	}
	return out, outcome, err
}
