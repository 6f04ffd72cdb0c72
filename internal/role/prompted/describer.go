package prompted

import (
	"context"
	"strings"

	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// A figureReply is the reply requested from the model.
type figureReply struct {
	Decorative  bool   `json:"decorative"`
	Description string `json:"description"`
	Text        string `json:"text"`
}

// describing is the task of describing a figure. Tests of prompts do not list it among Tasks, since
// it is not part of a question's run.
var describing = NewTask[figureReply](role.DescriberTask, source("prompts/describer.tmpl"), nil)

// A Figure is an image of a document.
type Figure struct {
	Image    llm.Image
	Document string // title
	Caption  string // alternative text, caption and recognised text
	Language string // of the description, ISO 639-1; empty: the model's choice
}

// DescriberPrompt returns the ID of the prompt of Describe.
func DescriberPrompt() string { return describing.Prompt() }

// Describe returns a model's description of a figure. It is empty if the figure is decorative or,
// with a Failure in the outcome, if no reply of the model can be used. A failure of the provider is
// an error.
func Describe(ctx context.Context, c role.Caller, model llm.Model, f Figure) (string, role.Outcome, error) {
	const longest = 4000 // bytes
	reply, outcome, err := describing.try(ctx, c, Sheet[figureReply]{
		Model: model, Images: []llm.Image{f.Image}, MaxTokens: 900,
		Data: map[string]any{"Document": shorten(line(f.Document), 300), "Caption": shorten(f.Caption, 2000), "Language": f.Language},
		Check: func(r *figureReply) []string {
			if !r.Decorative && strings.TrimSpace(r.Description+r.Text) == "" {
				return []string{"it neither describes the figure nor calls it decorative"}
			}
			return nil
		},
	})
	if err != nil || outcome.Failure != "" || reply.Decorative {
		return "", outcome, err
	}
	text := strings.TrimSpace(reply.Description + "\n" + reply.Text)
	return shorten(visible.Text(text), longest), outcome, nil
}
