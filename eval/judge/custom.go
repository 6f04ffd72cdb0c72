package judge

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/internal/safeyaml"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// A Custom is a user-defined measure.
type Custom interface {
	// Measure describes the measure. Its name consists of lower-case letters, digits and _, and
	// differs from those of the built-in table.
	Measure() metric.Measure

	// Score scores one answer that is not a refusal. It returns an error with the reason if the
	// answer cannot be scored. An error that ends the evaluation is returned unchanged.
	Score(ctx context.Context, in Input) (Score, assay.Usage, error)
}

// A Func is a custom measure implemented by a Go function.
type Func struct {
	Name string
	Doc  string // a description of one line
	Less bool   // less is better

	// Of returns a score in [0, 1] and a short reason. It must be safe for concurrent use.
	Of func(ctx context.Context, in Input) (score float64, reason string, err error)
}

// Measure implements Custom.
func (f Func) Measure() metric.Measure {
	return metric.Measure{Name: f.Name, Group: custom, Doc: f.Doc, Less: f.Less, Judged: true, Source: "a function"}
}

// Score implements Custom.
func (f Func) Score(ctx context.Context, in Input) (Score, assay.Usage, error) {
	value, reason, err := f.Of(ctx, in)
	return Score{Value: value, Reason: reason, By: "function " + f.Name}, assay.Usage{}, err
}

// A Prompt is a custom measure that a language model scores by a criterion in words.
type Prompt struct {
	Name   string     `yaml:"name"`
	Prompt string     `yaml:"prompt"` // the criterion: what to look for, and what the ends of the scale mean
	Scale  [2]float64 `yaml:"scale"`  // lowest and highest score; 0 and 0: 0 to 10
	Less   bool       `yaml:"less_is_better"`
}

// maxPrompt is the largest length of a criterion in bytes.
const maxPrompt = 8 << 10

// check reports an invalid prompt and sets the default scale.
func (p *Prompt) check() error {
	if p.Scale == [2]float64{} {
		p.Scale = [2]float64{0, highest}
	}
	low, high := p.Scale[0], p.Scale[1]
	switch {
	case !isName(p.Name):
		return fmt.Errorf("name %q: want lower-case letters, digits and _, starting with a letter", p.Name)
	case strings.TrimSpace(p.Prompt) == "":
		return fmt.Errorf("%s: the prompt is missing", p.Name)
	case len(p.Prompt) > maxPrompt:
		return fmt.Errorf("%s: the prompt has %d bytes; the limit is %d", p.Name, len(p.Prompt), maxPrompt)
	case math.IsNaN(low) || math.IsInf(low, 0) || math.IsNaN(high) || math.IsInf(high, 0) || low >= high:
		return fmt.Errorf("%s: scale: got %v and %v, want two numbers, the lower first", p.Name, low, high)
	}
	return nil
}

// ReadPrompts reads custom measures from a YAML file that holds one {name, prompt, scale,
// less_is_better} or a list of them. Any other content, including an unknown key or a name that is
// taken, gives assay.ErrInvalid with its position.
//
//   - name: politeness
//     prompt: How polite is the answer? 1 is rude, 5 is as polite as can be.
//     scale: [1, 5]
func ReadPrompts(file string) ([]Prompt, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("custom measures: %s: %w", file, assay.ErrNotFound)
	} else if err != nil {
		return nil, fmt.Errorf("custom measures: %w", err)
	}
	prompts, err := parsePrompts(data)
	if err != nil {
		return nil, fmt.Errorf("custom measures: %s: %w: %w", file, err, assay.ErrInvalid)
	}
	return prompts, nil
}

func parsePrompts(data []byte) (prompts []Prompt, err error) {
	defer func() {
		if broken := recover(); broken != nil { // the YAML library panics on some invalid texts
			prompts, err = nil, errors.New("invalid YAML")
		}
	}()
	if err := safeyaml.Check(data); err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalWithOptions(data, &prompts, yaml.Strict()); err != nil {
		var one Prompt
		if yaml.UnmarshalWithOptions(data, &one, yaml.Strict()) != nil {
			return nil, errors.New(yaml.FormatError(err, false, true))
		}
		prompts = []Prompt{one}
	}
	if len(prompts) == 0 {
		return nil, errors.New("no measures are defined")
	}
	seen := map[string]bool{}
	for i := range prompts {
		if err := prompts[i].check(); err != nil {
			return nil, err
		}
		name := prompts[i].Name
		if _, taken := metric.Lookup(name); taken || seen[name] || name == ClaimMeasures {
			return nil, fmt.Errorf("%s: a measure of that name exists", name)
		}
		seen[name] = true
	}
	return prompts, nil
}

func isName(name string) bool {
	for i, r := range name {
		letter := 'a' <= r && r <= 'z'
		if !letter && (i == 0 || r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

//go:embed prompts/custom.tmpl
var customTemplate string

// By returns the measure as scored by a model. The error is assay.ErrInvalid if the prompt cannot
// be used.
func (p Prompt) By(model llm.Model, caller func() role.Caller) (Custom, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("custom measure %w: %w", err, assay.ErrInvalid)
	}
	system := map[string]any{"Name": p.Name, "Prompt": strings.TrimSpace(p.Prompt), "Low": p.Scale[0], "High": p.Scale[1]}
	return prompting{p, Prompted{Model: model, Caller: caller}, prompted.NewTask[scoreReply](p.Name, customTemplate, system)}, nil
}

type prompting struct {
	Prompt
	by   Prompted
	task *prompted.Task[scoreReply]
}

// Measure describes the measure, as in Custom.
func (p Prompt) Measure() metric.Measure {
	doc, _, _ := strings.Cut(strings.TrimSpace(p.Prompt), "\n")
	return metric.Measure{Name: p.Name, Group: custom, Doc: doc, Less: p.Less, Judged: true, Source: "a prompt"}
}

// custom is the group of user-defined measures.
const custom = "your own"

// Score implements Custom. It maps the scale to [0, 1].
func (p prompting) Score(ctx context.Context, in Input) (Score, assay.Usage, error) {
	low, high := p.Scale[0], p.Scale[1]
	wrong := func(r scoreReply) []string {
		if math.IsNaN(r.Score) || r.Score < low || r.Score > high {
			return []string{fmt.Sprintf("the score is %v, want %v to %v", r.Score, low, high)}
		}
		return nil
	}
	caller := &metered{caller: p.by.caller()}
	out, outcome, err := p.task.Do(ctx, caller, prompted.Sheet[scoreReply]{
		Model: p.by.Model, MaxTokens: scoresTokens / 4, Check: func(r *scoreReply) []string { return wrong(*r) },
		Data: map[string]any{"Question": in.Question, "Answer": in.Answer, "Passages": passagesOf(in), "References": referencesOf(in)},
	})
	switch {
	case err != nil:
		return Score{}, caller.usage, err
	case outcome.Failure != "":
		return Score{}, caller.usage, errors.New(outcome.Failure)
	}
	if why := wrong(out); why != nil {
		return Score{}, caller.usage, errors.New(why[0])
	}
	return Score{Value: (out.Score - low) / (high - low), Reason: out.Reason, By: p.by.Name(), Prompt: p.task.Prompt()}, caller.usage, nil
}
