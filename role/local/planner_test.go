package local_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

func TestPlan(t *testing.T) {
	tests := []struct {
		question string
		shape    role.PlanShape
		subs     []string
	}{
		{"How do I shut a server down without dropping requests?", role.Single, []string{"How do I shut a server down without dropping requests?"}},
		{"What happens when I send and receive on a nil channel?", role.Single, []string{"What happens when I send and receive on a nil channel?"}},
		{"How and why does the scheduler preempt?", role.Single, []string{"How and why does the scheduler preempt?"}},
		{"I have a server. How do I stop it?", role.Single, []string{"I have a server. How do I stop it?"}},
		{
			"What is a slice and how do I copy one?", role.Conjunction,
			[]string{"What is a slice?", "how do I copy one (slice)?"},
		},
		{
			"What does os.Open return? How do I close it?", role.Conjunction,
			[]string{"What does os.Open return?", "How do I close it (os.Open)?"},
		},
		{"What is the difference between new and make?", role.Comparison, []string{"new", "make"}},
		{"What is the difference between a soft and a hard reset?", role.Comparison, []string{"soft reset", "hard reset"}},
		{
			"How long is parental leave and who approves it?", role.Conjunction,
			[]string{"How long is parental leave?", "who approves it (parental leave)?"},
		},
		{
			"How many rows did an update change, and does every driver report it?", role.Conjunction,
			[]string{"How many rows did an update change?", "does every driver report it (rows update change)?"},
		},
		{"Compare arrays with slices.", role.Comparison, []string{"arrays", "slices"}},
		{"How do arrays differ from slices?", role.Comparison, []string{"arrays", "slices"}},
		{
			"Are Christopher Nolan and Sathish Kalathil both film directors?", role.Comparison,
			[]string{"Is Christopher Nolan film directors?", "Is Sathish Kalathil film directors?"},
		},
		{
			"Which magazine was started first, Arthur's Magazine or First for Women?", role.Comparison,
			[]string{"Arthur's Magazine: Which magazine was started first?", "First for Women: Which magazine was started first?"},
		},
		{
			"Who was the first president of the association which published Journal of Psychotherapy Integration?", role.Chain,
			[]string{
				"the association which published Journal of Psychotherapy Integration",
				"Who was the first president of #1?",
			},
		},
		{"", role.Single, []string{""}},
	}
	for _, tt := range tests {
		plan, err := local.Planner{}.Plan(context.Background(), nil, tt.question)
		if err != nil {
			t.Fatal(err)
		}
		var subs []string
		for _, s := range plan.SubQuestions {
			subs = append(subs, s.Text)
		}
		if plan.Shape != tt.shape {
			t.Errorf("Plan(%q).Shape = %s, want %s", tt.question, plan.Shape, tt.shape)
		}
		if diff := cmp.Diff(tt.subs, subs); diff != "" {
			t.Errorf("Plan(%q) (-want +got):\n%s", tt.question, diff)
		}
	}
}

func FuzzPlan(f *testing.F) {
	f.Add("What is A and what is B of the C that D?")
	f.Add("a vs b? c: x or y\xff")
	f.Fuzz(func(t *testing.T, question string) {
		plan, err := local.Planner{}.Plan(context.Background(), nil, question)
		if err != nil || len(plan.SubQuestions) == 0 {
			t.Fatalf("Plan(%q) = %v, %v; want one sub-question or more", question, plan, err)
		}
		for i, s := range plan.SubQuestions {
			for _, n := range s.Needs {
				if n < 0 || n >= i {
					t.Errorf("Plan(%q): sub-question %d needs %d", question, i, n)
				}
			}
		}
	})
}
