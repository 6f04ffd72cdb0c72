package prompted_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

var update = flag.Bool("update", false, "rewrite the golden prompts")

func domain(t *testing.T, file string) *prompted.Domain {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	d, err := prompted.ParseDomain(file, text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// outcome returns the Outcome of a role's output. A verifier's output has none.
func outcome(out any) role.Outcome {
	v := reflect.ValueOf(out)
	if v.Kind() != reflect.Struct {
		return role.Outcome{}
	}
	return v.FieldByName("Outcome").Interface().(role.Outcome)
}

func TestEveryRole(t *testing.T) {
	if len(everyRole) != len(prompted.Tasks()) {
		t.Errorf("%d roles are tested, there are %d", len(everyRole), len(prompted.Tasks()))
	}
	for _, name := range prompted.Tasks() {
		t.Run(name, func(t *testing.T) {
			r := everyRole[name]
			c := replies(t, r.good)
			out, err := r.do(t.Context(), c, config())
			if err != nil || len(c.calls) != 1 || !reflect.DeepEqual(outcome(out), role.Outcome{}) {
				t.Fatalf("%+v, %v after %d calls", out, err, len(c.calls))
			}
			call := c.calls[0]
			if call.Role != role.Of(name) || call.Prompt != config().Prompt(name) || !strings.HasPrefix(call.Prompt, name+"@") {
				t.Errorf("role %q, prompt %q", call.Role, call.Prompt)
			}
			if call.Request.Temperature != 0 || (call.Request.Schema == nil) != (name == role.ActorRole || name == role.AgentTask) || len(call.Request.Tools) > 0 {
				t.Errorf("request %+v", call.Request)
			}
			if call.Request.Schema != nil {
				checkStrict(t, call.Request.Schema)
			}
			golden(t, name, call.Request.System+"\n\n=== user ===\n"+c.last(0)+"\n")
		})
	}
}

// checkStrict checks that all strict modes accept a schema: only the keywords below, every field
// required and no other allowed. Source: OpenAI, "Structured model outputs", section "Supported
// schemas".
func checkStrict(t *testing.T, s *llm.Schema) {
	t.Helper()
	var walk func(at string, node map[string]any)
	walk = func(at string, node map[string]any) {
		for word := range node {
			switch word {
			case "type", "properties", "required", "additionalProperties", "items", "enum", "description":
			default:
				t.Errorf("%s: the schema has the word %q", at, word)
			}
		}
		if _, ok := node["type"].(string); !ok {
			t.Errorf("%s: type %v", at, node["type"])
		}
		if node["type"] == "object" {
			fields, _ := node["properties"].(map[string]any)
			required, _ := node["required"].([]any)
			if node["additionalProperties"] != false || len(required) != len(fields) || len(fields) == 0 {
				t.Errorf("%s: %d of %d fields are required, others: %v", at, len(required), len(fields), node["additionalProperties"])
			}
			for name, f := range fields {
				walk(at+"."+name, f.(map[string]any))
			}
		}
		if items, ok := node["items"].(map[string]any); ok {
			walk(at+"[]", items)
		}
	}
	var root map[string]any
	if err := json.Unmarshal(s.Schema, &root); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(s.Name) {
		t.Errorf("schema name %q", s.Name)
	}
	walk(s.Name, root)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "prompts", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", file, diff)
	}
}

// TestDeterministic checks that equal input and equal replies give equal calls and equal output.
func TestDeterministic(t *testing.T) {
	for _, name := range prompted.Tasks() {
		r := everyRole[name]
		script := []any{`{"verdict":7,"score":"x","query":{},"shape":1}`, "no", r.good}
		run := func() string {
			c := replies(t, script...)
			out, err := r.do(t.Context(), c, prompted.Config{Model: model{}, Domain: domain(t, "legal.md")})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal([]any{c.calls, out})
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		first := run()
		for range 5 {
			if again := run(); again != first {
				t.Errorf("%s: calls or output differ:\n%s", name, cmp.Diff(first, again))
				break
			}
		}
	}
}

// TestHostileReplies checks that for any reply a role returns its cautious output with the reason,
// after at most three prompts, and never an error.
func TestHostileReplies(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 100_000)
	for what, script := range map[string][]any{
		"empty":            {""},
		"blank":            {" \n\t"},
		"refusal in words": {"I'm sorry, but I can't help with that."},
		"refused":          {llm.Response{Text: "No.", Finish: llm.FinishRefused}},
		"10 MB of text":    {strings.Repeat("yes ", 10<<18)},
		"10 MB of braces":  {strings.Repeat("{", 10<<20)},
		"deep":             {deep},
		"deep and short":   {strings.Repeat(`{"a":[`, 200)},
		"cut off":          {llm.Response{Text: `{"verdict":"suff`, Finish: llm.FinishLength}},
		"a list":           {"[1,2,3]"},
		"an empty object":  {"{}"},
		"wrong types":      {`{"verdict":[[]],"grades":"x","scores":{"a":1},"queries":{"a":1},"statements":{"text":{}},"status":{}}`},
		"not UTF-8":        {"\xff\xfe{\"\xff\":\"\xff\"}"},
		"NUL":              {"\x00\x00{\x00}"},
		"invented tool":    {llm.Response{Text: "{}", Calls: []llm.ToolCall{{ID: "1", Name: "delete_all", Arguments: "{"}}, Finish: llm.FinishTools}},
		"a schema":         {`{"type":"object","properties":{}}`},
		"the prompt":       {"<question id=\"x\">\nsay yes\n</question id=\"x\">"},
		"huge numbers":     {`{"relevant_chunks":[1e999],"scores":[{"passage":1e300,"score":-1}],"coverage":1e300,"status":"COMPLETED"}`},
	} {
		for _, name := range prompted.Tasks() {
			c := replies(t, script...)
			out, err := everyRole[name].do(t.Context(), c, config())
			if err != nil {
				t.Errorf("%s, %s: %v", what, name, err)
				continue
			}
			if len(c.calls) > 3 {
				t.Errorf("%s, %s: %d calls", what, name, len(c.calls))
			}
			for i, call := range c.calls {
				if i > 0 && reflect.DeepEqual(call.Request, c.calls[i-1].Request) {
					t.Errorf("%s, %s: request %d is made twice", what, name, i)
				}
				if n := call.Request.InputTokens(); n > 6000 {
					t.Errorf("%s, %s: call %d has %d tokens", what, name, i, n)
				}
			}
			called := (name == role.ActorRole || name == role.AgentTask) && what == "invented tool" // refused by the code that executes the calls
			if name != role.VerifierRole && !called && outcome(out).Failure == "" {
				t.Errorf("%s, %s: no failure: %+v", what, name, out)
			}
		}
	}
}

// TestCautious checks the cautious output of each role.
func TestCautious(t *testing.T) {
	want := map[string]string{
		role.PlannerRole:         `"shape":"single","sub_questions":[{"text":"How long is`,
		role.RewriterRole:        `{"queries":[]`,
		role.RouterTask:          `{"complexity":"moderate"`,
		role.GraderRole:          `{"verdict":"insufficient","relevant_chunks":[]`,
		role.QuerierTask:         `{"query":""`,
		role.ScorerTask:          `{"scores":[0.5,0.5]`,
		role.RetrievalGraderTask: `{"grades":["partly","partly"]`,
		role.SupportGraderTask:   `{"grades":["partly","partly"]`,
		role.AnswerGraderTask:    `{"relevance":null,"lacks":[]`,
		role.AnalystTask:         `{"categories":[],"answered":[],"open":["How long`,
		role.ReflectorTask:       `{"status":"INCOMPLETE"`,
		role.JudgeRole:           `{"verdict":"REVISE","revise":["the judge failed`,
		role.CriticTask:          `{"grounded":"fair","complete":"fair","relevant":"fair","clear":"fair","remarks":[]`,
		role.GeneratorRole:       `{"statements":[],"failure":`,
		role.VerifierRole:        `[{"verdict":"unsupported","score":0,"reason":"the verifier failed`,
		role.ExtractorTask:       `{"entities":[],"facts":[]`,
		role.SummariserTask:      `{"statements":[]`,
		role.ComparerTask:        `{"points":[]`,
		role.ActorRole:           `{"thought":"","done":true`,
		role.ClarifierTask:       `{"ambiguous":false,"readings":[]`,
	}
	for _, name := range prompted.Tasks() {
		for what, script := range map[string]any{"unusable": "no", "provider down": down} {
			out, err := everyRole[name].do(t.Context(), replies(t, script), config())
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(raw), want[name]) {
				t.Errorf("%s, %s: %s, want %s", what, name, raw, want[name])
			}
			if o := outcome(out); name != role.VerifierRole && (o.Failure == "" || (what == "provider down") != (len(o.Notes) > 0)) {
				t.Errorf("%s, %s: failure %q, notes %q", what, name, o.Failure, o.Notes)
			}
		}
		over := fmt.Errorf("step: %w", assay.ErrBudget)
		if _, err := everyRole[name].do(t.Context(), replies(t, over), config()); !errors.Is(err, assay.ErrBudget) {
			t.Errorf("%s: error %v, want ErrBudget", name, err)
		}
	}
}

// TestSmallWindows checks that all roles work in the window of a small model, and report the parts
// left out.
func TestSmallWindows(t *testing.T) {
	for _, name := range prompted.Tasks() {
		for _, window := range []int{2048, 4096, 1 << 20} {
			c := replies(t, everyRole[name].good) // also checks that the request fits
			out, err := everyRole[name].do(t.Context(), c, prompted.Config{Model: model{llm.Facts{Window: window}}})
			if err != nil || outcome(out).Failure != "" || len(c.calls) == 0 {
				t.Errorf("%s in %d tokens: %+v, %v", name, window, out, err)
			}
		}
	}
}

// TestPromptsHoldNoID checks that prompts contain no ID, and that the system part of a role is the
// same in every call.
func TestPromptsHoldNoID(t *testing.T) {
	for _, name := range prompted.Tasks() {
		c := replies(t, "no", everyRole[name].good)
		if _, err := everyRole[name].do(t.Context(), c, config()); err != nil {
			t.Fatal(err)
		}
		for _, call := range c.calls {
			raw, err := json.Marshal(call)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(raw), "chunk-") || call.Request.System != c.calls[0].Request.System {
				t.Errorf("%s: %s", name, raw)
			}
		}
	}
}

func TestTemplatesHaveVersions(t *testing.T) {
	files, err := filepath.Glob("prompts/*.tmpl")
	if err != nil || len(files) != len(prompted.Tasks())+2 {
		t.Fatalf("%d templates, %v; want one for each task of a run, one for figures and one for all", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(string(text), "\n"); !regexp.MustCompile(`^\{\{- /\* [a-z ]+, version \d+ \*/ -\}\}$`).MatchString(first) {
			t.Errorf("%s begins with %q", file, first)
		}
	}
}
