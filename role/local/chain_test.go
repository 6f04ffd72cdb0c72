package local_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

func TestChains(t *testing.T) {
	for question, want := range map[string][]role.SubQuestion{
		"Who is the spouse of the director of Jump for Glory?": {
			{Text: "the director of Jump for Glory"}, {Text: "Who is the spouse of #1?", Needs: []int{0}},
		},
		"When did the country where the village of Clonbrook is located, become a member of CARICOM?": {
			{Text: "the village of Clonbrook"}, {Text: "the country where #1 is located", Needs: []int{0}},
			{Text: "When did #2, become a member of CARICOM?", Needs: []int{1}},
		},
		"When did the country containing Nugegoda leave the British Empire?": {
			{Text: "the country containing Nugegoda"}, {Text: "When did #1 leave the British Empire?", Needs: []int{0}},
		},
		"Which region is Corey Taylor's city of birth located?": {
			{Text: "Corey Taylor's city of birth"}, {Text: "Which region is #1 located?", Needs: []int{0}},
		},
		"Who played the It'll Be Me singer in Walk the Line?": {
			{Text: "the It'll Be Me singer"}, {Text: "Who played #1 in Walk the Line?", Needs: []int{0}},
		},
		"What river flows through the city Kevin Durant played for before Golden State?": {
			{Text: "the city Kevin Durant played for before Golden State"}, {Text: "What river flows through #1?", Needs: []int{0}},
		},
		// These ask one thing.
		"What is the population of France?":                       nil,
		"How do I read a file in Go?":                             nil,
		"What does os.Open return?":                               nil,
		"Who wrote the #1 song of the band that made Ten?":        nil,
		"what is the role of the prime minister in canada":        nil,
		"The Women's League includes a team formed in what year?": nil,
	} {
		plan, err := local.Planner{}.Plan(context.Background(), nil, question)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			if plan.Shape == role.Chain {
				t.Errorf("%s: %+v, want one question", question, plan.SubQuestions)
			}
			continue
		}
		if diff := cmp.Diff(want, plan.SubQuestions, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", question, diff)
		}
	}
}

// A plan's sub-questions say something, need earlier ones only, and have a place for each
// that they need.
func FuzzChain(f *testing.F) {
	for _, seed := range []string{
		"Who is the spouse of the director of Jump for Glory?", "the the of of's X's", "who which that where Y's \"", "the X of the Y that the Z of the W who #1 did",
		"«the» city' where (A.) is's was born. What?", strings.Repeat("the city where A is ", 60), "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, question string) {
		if len(question) > 8<<10 {
			return
		}
		plan, err := local.Planner{}.Plan(context.Background(), nil, question)
		if err != nil || len(plan.SubQuestions) == 0 {
			t.Fatalf("%+v, %v", plan, err)
		}
		for i, sub := range plan.SubQuestions {
			if len(plan.SubQuestions) > 1 && strings.TrimSpace(sub.Text) == "" {
				t.Errorf("%q: sub-question %d of %+v asks nothing", question, i, plan.SubQuestions)
			}
			for _, n := range sub.Needs {
				if n < 0 || n >= i {
					t.Errorf("%q: sub-question %d of %+v needs %d", question, i, plan.SubQuestions, n)
				}
			}
		}
	})
}
