package prompted

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/assay-rag/assay/role"
)

// templates are the prompt templates: one file for each role, which defines "system" and "user",
// and one shared file. The first line of each file has its version.
//
//go:embed prompts/*.tmpl
var templates embed.FS

// shared is the file that every template includes.
const shared = "prompts/shared.tmpl"

// functions are the template functions. All text from outside the templates enters a prompt through
// them.
var functions = template.FuncMap{"data": fenced, "steady": func() string { return steady }}

// A prompt is a role's template for one configuration.
type prompt struct {
	id     string // the role and a hash of all constant parts: "grader@5f0c7a1e"
	system string
	user   *template.Template
}

// promptOf returns the prompt of a role. It panics if the template is invalid, which is a
// programming error.
func (c Config) promptOf(name string) prompt {
	return newPrompt(name, c.Domain.part(name), source(shared), source("prompts/"+name+".tmpl"))
}

// source returns the text of a template file.
func source(file string) string {
	raw, err := templates.ReadFile(file)
	if err != nil {
		panic(fmt.Sprintf("prompts: %v", err))
	}
	return string(raw)
}

// newPrompt returns the prompt of the given templates. in is the data of "system".
func newPrompt(name string, in any, sources ...string) prompt {
	t := template.New(name).Funcs(functions)
	for _, raw := range sources {
		template.Must(t.Parse(raw))
	}
	var system strings.Builder
	if err := t.ExecuteTemplate(&system, "system", in); err != nil {
		panic(fmt.Sprintf("prompt of the %s: %v", name, err))
	}
	p := prompt{system: strings.TrimSpace(system.String()), user: t.Lookup("user")}
	if p.user == nil {
		panic(fmt.Sprintf("prompt of the %s: there is no template \"user\"", name))
	}
	sum := sha256.New()
	for _, raw := range sources {
		sum.Write([]byte(raw))
	}
	sum.Write([]byte(p.system)) // includes the domain's part
	p.id = name + "@" + hex.EncodeToString(sum.Sum(nil)[:4])
	return p
}

// render fills in the user part.
func (p prompt) render(in any) string {
	var text strings.Builder
	if err := p.user.Execute(&text, in); err != nil {
		panic(fmt.Sprintf("prompt %s: %v", p.id, err))
	}
	return mark(strings.TrimSpace(text.String()))
}

// Prompt returns the ID of a task's prompt: its name and a hash of the template and of the domain's
// part. It returns "" for a name that is not a task of this package.
func (c Config) Prompt(name string) string {
	if !slices.Contains(Tasks(), name) {
		return ""
	}
	return c.promptOf(name).id
}

// Tasks returns the names of the tasks in this package, by role.
func Tasks() []string {
	return []string{
		role.PlannerRole, role.RouterTask, role.ReviserTask,
		role.RewriterRole, role.QuerierTask, role.ClarifierTask,
		role.GraderRole,
		role.GeneratorRole,
		role.VerifierRole,
		role.JudgeRole, role.AnalystTask, role.ReflectorTask, role.CriticTask, role.ScorerTask, role.RefinerTask, role.RetrievalGraderTask,
		role.SupportGraderTask, role.AnswerGraderTask,
		role.ActorRole, role.ActorPlanTask, role.ActorCritiqueTask, role.AgentTask, role.ExtractorTask, role.SummariserTask, role.ComparerTask,
	}
}
