package prompted_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/role"
)

// TestRevise checks the typed revision of a plan for replies of every kind, and that the model sees
// what was found and the rest of the plan.
func TestRevise(t *testing.T) {
	in := role.RevisionInput{
		Question:  "Where was the founder of the maker of the Zephyr born?",
		Done:      []role.HopResult{{Question: "the maker of the Zephyr", Answers: []string{"Brandvik Works"}, Verdict: assay.Sufficient, Found: []string{"Zephyr: The Zephyr is made by Brandvik Works."}}},
		Remaining: []role.SubQuestion{{Text: "the founder of #1", Needs: []int{0}}, {Text: "Where was #2 born?", Needs: []int{1}}},
	}
	const replace = `{"reason":"it is run by a city","decision":"replace","sub_questions":[{"text":"the city that runs #1","needs":[1]},{"text":"Where is #2?","needs":[]}]}`
	keep := role.Revision{Decision: role.Keep, Reason: "it fits"}
	stoodIn := role.Revision{Decision: role.Keep, Reason: "the local planner does not revise plans"}
	tests := []struct {
		name   string
		script []any
		want   role.Revision
		calls  int
		says   string
	}{
		{"keep", []any{`{"reason":"it fits","decision":"keep","sub_questions":[]}`}, keep, 1, ""},
		{"keep, with sub-questions", []any{`{"reason":"it fits","decision":"keep","sub_questions":[{"text":"a","needs":[9]}]}`}, keep, 1, ""},
		{"replace", []any{replace}, role.Revision{Decision: role.Replace, Reason: "it is run by a city", SubQuestions: []role.SubQuestion{
			{Text: "the city that runs #1", Needs: []int{0}}, {Text: "Where is #2?", Needs: []int{1}},
		}}, 1, ""},
		{"needs a later one, then right", []any{strings.Replace(replace, `"needs":[1]`, `"needs":[3]`, 1), replace}, role.Revision{
			Decision: role.Replace, Reason: "it is run by a city", SubQuestions: []role.SubQuestion{{Text: "the city that runs #1", Needs: []int{0}}, {Text: "Where is #2?", Needs: []int{1}}},
		}, 2, ""},
		{"replaced by nothing", []any{`{"reason":"it fits","decision":"replace","sub_questions":[]}`}, keep, 3, "the plan is kept"},
		{"another decision", []any{`{"reason":"it fits","decision":"drop","sub_questions":[]}`}, role.Revision{Decision: role.Keep}, 3, "one of"},
		{"provider down", []any{down}, stoodIn, 1, "local reviser"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := replies(t, tt.script...)
			got, err := prompted.Planner{Config: config(), Local: local.Planner{}}.Revise(t.Context(), c, in)
			if err != nil {
				t.Fatal(err)
			}
			if got.Failure != "" {
				got.Reason = ""
			}
			said := got.Failure + strings.Join(got.Notes, "\n")
			if len(c.calls) != tt.calls || tt.says == "" && said != "" || !strings.Contains(said, tt.says) {
				t.Errorf("%d calls, want %d; failure %q, notes %q, want %q", len(c.calls), tt.calls, got.Failure, got.Notes, tt.says)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(role.Revision{}, "Outcome")); diff != "" {
				t.Errorf("revision (-want +got):\n%s", diff)
			}
			for _, shown := range []string{"1. the maker of the Zephyr", "Answers: Brandvik Works", "made by Brandvik Works", "2. the founder of #1\n3. Where was #2 born?"} {
				if !strings.Contains(c.last(0), shown) {
					t.Errorf("the prompt lacks %q:\n%s", shown, c.last(0))
				}
			}
			if c.calls[0].Prompt != config().Prompt("reviser") || c.calls[0].Role != role.PlannerRole {
				t.Errorf("prompt %q of the %s", c.calls[0].Prompt, c.calls[0].Role)
			}
			checkStrict(t, c.calls[0].Request.Schema)
		})
	}
}
