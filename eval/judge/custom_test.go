package judge_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/judge"
)

func scoring(name string, value float64, err error) judge.Func {
	return judge.Func{Name: name, Of: func(context.Context, judge.Input) (float64, string, error) { return value, "so it is", err }}
}

func TestCustomFunctions(t *testing.T) {
	j, err := judge.With(judge.Local{Verifier: holding{}},
		scoring("brief", 0.25, nil), scoring("broken", 0, errors.New("no idea")), scoring("wild", 1.5, nil), scoring("nothing", math.NaN(), nil))
	if err != nil {
		t.Fatal(err)
	}
	got, err := j.Judge(t.Context(), bridge())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(judge.Score{Value: 0.25, Reason: "so it is", By: "function brief"}, got.Scores["brief"]); diff != "" {
		t.Errorf("brief: (-want +got)\n%s", diff)
	}
	for _, name := range []string{"broken", "wild", "nothing"} {
		if _, scored := got.Scores[name]; scored || got.NotJudged[name] == "" {
			t.Errorf("%s has a score, or does not say why not: %+v", name, got)
		}
	}
	measures := of(got)
	if by := got.Judges(measures); by["brief"] != "function brief" || by["faithfulness"] != "local" {
		t.Errorf("judged by %v", by)
	}
	refused := bridge()
	refused.Refused = true
	if got, err := j.Judge(t.Context(), refused); err != nil || len(got.Scores) != 0 {
		t.Errorf("of a refusal: %+v, %v", got, err)
	}
	ending, err := judge.With(judge.Local{}, scoring("brief", 0, assay.ErrBudget))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ending.Judge(t.Context(), bridge()); !errors.Is(err, assay.ErrBudget) {
		t.Errorf("error %v, want that the budget has ended", err)
	}
}

func TestCustomNames(t *testing.T) {
	for _, custom := range [][]judge.Custom{
		{scoring("faithfulness", 1, nil)}, {scoring("claims", 1, nil)}, {scoring("a", 1, nil), scoring("a", 1, nil)}, {scoring("", 1, nil)}, {scoring("Über", 1, nil)},
	} {
		if _, err := judge.With(judge.Local{}, custom...); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%q: %v, want that it is invalid", custom[0].Measure().Name, err)
		}
	}
}

func TestCustomPrompts(t *testing.T) {
	p := judge.Prompt{Name: "politeness", Prompt: "How polite is it? {{.Never}} 1 is rude, 5 is polite.", Scale: [2]float64{1, 5}}
	tests := []struct {
		reply string
		want  float64 // below 0: not judged
	}{
		{`{"reason":"kind","score":4}`, 0.75},
		{`{"reason":"kind","score":1}`, 0},
		{`{"reason":"kind","score":5.5}`, -1},
		{`{"reason":"kind","score":0}`, -1},
		{`{"reason":"kind"}`, -1},
		{`four`, -1},
	}
	for _, tt := range tests {
		m := model(t, tt.reply)
		custom, err := p.By(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		j, err := judge.With(judge.Local{Verifier: holding{}}, custom)
		if err != nil {
			t.Fatal(err)
		}
		got, err := j.Judge(t.Context(), bridge())
		s, scored := got.Scores["politeness"]
		if err != nil || scored != (tt.want >= 0) || scored && !near(s.Value, tt.want) || !scored && got.NotJudged["politeness"] == "" {
			t.Errorf("%s: %+v, not judged %q, %v; want %v", tt.reply, s, got.NotJudged["politeness"], err, tt.want)
		}
		if scored && (s.By != "scripted/model" || !strings.HasPrefix(s.Prompt, "politeness@")) {
			t.Errorf("scored by %q with %q", s.By, s.Prompt)
		}
		if system := m.Requests()[0].System; !strings.Contains(system, "{{.Never}} 1 is rude") || got.Usage.Calls == 0 {
			t.Errorf("system %q, usage %+v", system, got.Usage)
		}
	}
}

// TestCustomPromptHash checks that a different criterion gives a different prompt hash.
func TestCustomPromptHash(t *testing.T) {
	id := func(text string) string {
		c, err := judge.Prompt{Name: "tone", Prompt: text}.By(model(t, `{"reason":"x","score":5}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		s, _, err := c.Score(t.Context(), bridge())
		if err != nil {
			t.Fatal(err)
		}
		return s.Prompt
	}
	if a, b := id("Is it friendly?"), id("Is it cold?"); a == b || a != id("Is it friendly?") {
		t.Errorf("prompts %q and %q", a, b)
	}
}

func TestReadPrompts(t *testing.T) {
	tests := []struct {
		name, text string
		want       []judge.Prompt // nil: invalid
	}{
		{"one", "name: tone\nprompt: |\n  How friendly?\n", []judge.Prompt{{Name: "tone", Prompt: "How friendly?\n", Scale: [2]float64{0, 10}}}},
		{"a list", "- {name: tone, prompt: Friendly?, scale: [1, 5]}\n- {name: slang_2, prompt: Slang?, less_is_better: true}\n",
			[]judge.Prompt{{Name: "tone", Prompt: "Friendly?", Scale: [2]float64{1, 5}}, {Name: "slang_2", Prompt: "Slang?", Scale: [2]float64{0, 10}, Less: true}}},
		{"nothing", "", nil},
		{"no prompt", "name: tone\n", nil},
		{"no name", "prompt: x\n", nil},
		{"a name with blanks", "name: how nice\nprompt: x\n", nil},
		{"a name of the table", "name: faithfulness\nprompt: x\n", nil},
		{"one name twice", "- {name: a, prompt: x}\n- {name: a, prompt: y}\n", nil},
		{"a scale that falls", "{name: a, prompt: x, scale: [5, 1]}\n", nil},
		{"a scale without a width", "{name: a, prompt: x, scale: [5, 5]}\n", nil},
		{"a scale without an end", "{name: a, prompt: x, scale: [0, .inf]}\n", nil},
		{"an unknown key", "{name: a, promt: x}\n", nil},
		{"no YAML", "{{", nil},
		{"another form", "42\n", nil},
		{"too long", "{name: a, prompt: " + strings.Repeat("x", 9000) + "}\n", nil},
	}
	for _, tt := range tests {
		file := filepath.Join(t.TempDir(), "measures.yaml")
		if err := os.WriteFile(file, []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := judge.ReadPrompts(file)
		if tt.want == nil {
			if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "measures.yaml") {
				t.Errorf("%s: %v, %v; want that it is invalid", tt.name, got, err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", tt.name, err, diff)
		}
	}
	if _, err := judge.ReadPrompts(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
}
