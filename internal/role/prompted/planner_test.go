package prompted_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/role"
)

func TestPlan(t *testing.T) {
	const question = "Who led the team that wrote Hamlet in 2021, and which legal documents say so?"
	keys := []prompted.Key{
		{Name: "year", Kinds: []assay.ValueKind{assay.KindNumber}},
		{Name: "team", Kinds: []assay.ValueKind{assay.KindString}, Values: []string{"legal", "sales"}},
		{Name: "signed", Kinds: []assay.ValueKind{assay.KindTime}},
		{Name: "author", Kinds: []assay.ValueKind{assay.KindString}},
	}
	year := assay.Filter{Op: assay.OpEquals, Key: "year", Value: assay.NumberValue(2021)}
	stoodIn, err := local.Planner{}.Plan(t.Context(), replies(t), question)
	if err != nil {
		t.Fatal(err)
	}
	whole := role.Plan{Shape: role.Single, SubQuestions: []role.SubQuestion{{Text: question}}}
	tests := []struct {
		name   string
		script []any
		want   role.Plan
		calls  int
		says   string
	}{
		{"one", []any{`{"shape":"chain","sub_questions":[{"text":"anything at all"}]}`}, whole, 1, ""},
		{"a chain with a filter", []any{`{"shape":"conjunction","sub_questions":[
			{"text":"Which team wrote Hamlet?","needs":[],"conditions":[{"key":"year","operator":"equals","value":"2021"},{"key":"team","operator":"equals","value":"legal"}]},
			{"text":"Who led\nthat team?","needs":[1,1]}]}`},
			role.Plan{Shape: role.Chain, SubQuestions: []role.SubQuestion{
				{Text: "Which team wrote Hamlet?", Filter: assay.And(year, assay.Filter{Op: assay.OpEquals, Key: "team", Value: assay.StringValue("legal")})},
				{Text: "Who led that team?", Needs: []int{0}},
			}}, 1, ""},
		{"a time and a name that the question has", []any{`{"shape":"comparison","sub_questions":[
			{"text":"a","conditions":[{"key":"signed","operator":"greaterThanOrEquals","value":"2021-06-01"}]},
			{"text":"b","conditions":[{"key":"author","operator":"startsWith","value":"Hamlet"}]}]}`},
			role.Plan{Shape: role.Comparison, SubQuestions: []role.SubQuestion{
				{Text: "a", Filter: assay.Filter{Op: assay.OpGreaterThanOrEquals, Key: "signed", Value: assay.TimeValue(time.Date(2021, 6, 1, 0, 0, 0, 0, time.UTC))}},
				{Text: "b", Filter: assay.Filter{Op: assay.OpStartsWith, Key: "author", Value: assay.StringValue("Hamlet")}},
			}}, 1, ""},
		{"needs a later one, then right", []any{
			`{"shape":"chain","sub_questions":[{"text":"a","needs":[2]},{"text":"b","needs":[]}]}`,
			`{"shape":"chain","sub_questions":[{"text":"a","needs":[]},{"text":"b","needs":[1]}]}`,
		}, role.Plan{Shape: role.Chain, SubQuestions: []role.SubQuestion{{Text: "a"}, {Text: "b", Needs: []int{0}}}}, 2, ""},
		{"wrong to the end", []any{`{"shape":"chain","sub_questions":[
			{"text":"a","needs":[1,7],"conditions":[
				{"key":"secret","operator":"equals","value":"x"},{"key":"year","operator":"equals","value":"1999"},
				{"key":"team","operator":"equals","value":"hr"},{"key":"author","operator":"greaterThan","value":"Hamlet"},{"key":"year","operator":"equals","value":"2021"}]},
			{"text":""},{"text":"A"},{"text":"b","needs":[2,1]},{"text":"c"},{"text":"d"},{"text":"e"},{"text":"f"},{"text":"g"}]}`},
			role.Plan{Shape: role.Chain, SubQuestions: []role.SubQuestion{
				{Text: "a", Filter: year}, {Text: "b", Needs: []int{0}}, {Text: "c"}, {Text: "d"}, {Text: "e"}, {Text: "f"},
			}}, 3, "dropped a filter"},
		{"nothing", []any{`{"shape":"single","sub_questions":[]}`}, stoodIn, 3, "no sub-questions"},
		{"an operator that does not exist", []any{`{"sub_questions":[{"text":"a","conditions":[{"key":"year","operator":"orAll","value":"2021"}]}]}`}, stoodIn, 3, `one of`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := replies(t, tt.script...)
			got, err := prompted.Planner{Config: config(), Local: local.Planner{}, Keys: keys}.Plan(t.Context(), c, question)
			if err != nil {
				t.Fatal(err)
			}
			said := got.Failure + strings.Join(got.Notes, "\n")
			if len(c.calls) != tt.calls || tt.says == "" && said != "" || !strings.Contains(said, tt.says) {
				t.Errorf("%d calls, want %d; failure %q, notes %q, want %q", len(c.calls), tt.calls, got.Failure, got.Notes, tt.says)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(role.Plan{}, "Outcome")); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPlanFilters checks that a filter's value is named by the question in some form, and exists.
func TestPlanFilters(t *testing.T) {
	keys := []prompted.Key{
		{Name: "team", Kinds: []assay.ValueKind{assay.KindString}, Values: []string{"Engineering", "legal"}},
		{Name: "year", Kinds: []assay.ValueKind{assay.KindNumber}, Values: []string{"2022", "2024"}},
		{Name: "draft", Kinds: []assay.ValueKind{assay.KindBoolean}},
		{Name: "tags", Kinds: []assay.ValueKind{assay.KindList}, Values: []string{"lessee", "x"}},
	}
	const question = "Which drafts of the engineers are about tenants, since 2023?"
	for _, tt := range []struct {
		key, operator, value string
		want                 string // in the filter syntax; empty: rejected
	}{
		{"team", "equals", "engineering", `team = "Engineering"`},
		{"team", "equals", "legal", ""},
		{"team", "equals", "engineers", ""},
		{"year", "greaterThanOrEquals", "2023", "year >= 2023"},
		{"year", "equals", "2023", ""},
		{"year", "greaterThan", "2022", ""},
		{"draft", "equals", "true", "draft = true"},
		{"draft", "equals", "yes", ""},
		{"tags", "listContains", "lessee", `tags has "lessee"`},
		{"tags", "listContains", "x", ""},
		{"Team", "equals", "engineering", ""},
	} {
		reply := `{"sub_questions":[{"text":"a","conditions":[{"key":"` + tt.key + `","operator":"` + tt.operator + `","value":"` + tt.value + `"}]}]}`
		cfg := prompted.Config{Model: model{}, Domain: domain(t, "legal.md")}
		got, err := prompted.Planner{Config: cfg, Keys: keys}.Plan(t.Context(), replies(t, reply), question)
		if err != nil || len(got.SubQuestions) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		if f := got.SubQuestions[0].Filter.String(); f != tt.want || (tt.want == "") != (len(got.Notes) > 0) {
			t.Errorf("%s %s %s: filter %q, want %q; notes %q", tt.key, tt.operator, tt.value, f, tt.want, got.Notes)
		}
	}
}

// TestPlanLongQuestion checks that a long question is accepted as its own sub-question, whatever
// its length.
func TestPlanLongQuestion(t *testing.T) {
	question := strings.Repeat("What does the lease say of the garden? ", 200)
	for _, reply := range []string{
		`{"shape":"single","sub_questions":[{"text":"` + question + ` And more."}]}`,
		`{"shape":"conjunction","sub_questions":[{"text":"` + question + `"},{"text":"What of the cellar?"}]}`,
	} {
		c := replies(t, reply)
		got, err := prompted.Planner{Config: config()}.Plan(t.Context(), c, question)
		if err != nil || len(c.calls) != 1 || got.Failure != "" || len(got.Notes) > 0 || !strings.HasPrefix(got.SubQuestions[0].Text, "What does") {
			t.Errorf("%d calls, failure %q, notes %q, %v", len(c.calls), got.Failure, got.Notes, err)
		}
	}
}

// TestPlanWithoutKeys checks that a plan has no filters without keys.
func TestPlanWithoutKeys(t *testing.T) {
	c := replies(t, `{"sub_questions":[{"text":"a","conditions":[{"key":"year","operator":"equals","value":"2021"}]},{"text":"b"}]}`)
	got, err := prompted.Planner{Config: config()}.Plan(t.Context(), c, "What of 2021?")
	if err != nil || len(got.SubQuestions) != 2 || !got.SubQuestions[0].Filter.IsZero() || len(got.Notes) == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if !strings.Contains(c.last(0), "There are no keys") {
		t.Errorf("prompt %q", c.last(0))
	}
}

func TestPlanStandIn(t *testing.T) {
	got, err := prompted.Planner{Config: config(), Local: local.Planner{}}.Plan(t.Context(), replies(t, down), "What is the difference between new and make?")
	if err != nil || got.Shape != role.Comparison || got.Failure != "" || len(got.Notes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
