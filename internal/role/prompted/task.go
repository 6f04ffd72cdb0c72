package prompted

import (
	"context"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// A Task is a typed request to a model that is not the job of a role, such as that of an
// evaluation's judge. It has its own prompt. The package comment on prompts and replies applies to
// it, except that no part of the prompt is left out: a prompt that exceeds the window is a failure.
// A reply is unmarshalled into T; optional fields have "omitempty". A Task may be used repeatedly
// and concurrently.
type Task[T any] struct {
	name   string
	prompt prompt
	out    func() output
}

// NewTask returns a task. The name consists of letters, digits and _. The templates define
// "system", which is executed with system and includes {{template "rules"}}, and "user". In "user"
// the function data fences external text with a name: {{data "answer" .Answer}}. NewTask panics if
// a template or T is invalid, which is a programming error.
func NewTask[T any](name, templates string, system any) *Task[T] {
	return &Task[T]{name: name, prompt: newPrompt(name, system, source(shared), templates), out: outputOf[T](name)}
}

// Prompt returns the ID of the prompt: the task's name and a hash of all constant parts.
func (t *Task[T]) Prompt() string { return t.prompt.id }

// A Sheet is the input of a task.
type Sheet[T any] struct {
	Model     llm.Model
	Data      any         // for the template "user"
	Images    []llm.Image // which the model reads before the text
	MaxTokens int         // of a reply; a reply that is cut off gets more room on retry

	// Check returns the problems of a reply that has the right form, in words for the model, which
	// is then asked again, at most twice. The third such reply is returned unchanged, with the
	// problems in Outcome.Notes. The caller must drop the invalid parts.
	Check func(*T) []string
}

// Do returns the output. A Failure in the outcome means that there is no output because the
// provider failed or no reply was readable. A non-nil error ends the caller's run; see [role.Ends].
func (t *Task[T]) Do(ctx context.Context, c role.Caller, s Sheet[T]) (T, role.Outcome, error) {
	out, outcome, err := t.try(ctx, c, s)
	if failed(ctx, err) {
		return out, role.Outcome{Failure: providerText(err)}, nil
	}
	return out, outcome, err
}

// try is Do, except that a failure of the provider is an error.
func (t *Task[T]) try(ctx context.Context, c role.Caller, s Sheet[T]) (T, role.Outcome, error) {
	var wrong []string
	own := t.prompt
	return ask(ctx, c, job[T]{
		Config: Config{Model: s.Model}, task: t.name, out: t.out(), maxTokens: s.MaxTokens, own: &own, images: s.Images,
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
}
