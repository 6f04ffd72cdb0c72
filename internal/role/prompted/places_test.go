package prompted

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/role"
)

// TestPlannerPlaces checks that a placeholder must refer to an earlier sub-question. A reply with
// other placeholders is rejected, and then mended by removing those sub-questions.
func TestPlannerPlaces(t *testing.T) {
	const question = "Who is the spouse of the director of the #1 film?"
	p := Planner{}
	good := planReply{Parts: []partReply{{Text: "the director of the #1 film"}, {Text: "the town of Ulm"}, {Text: "Who of #2 knows it?"}}}
	if problems := p.check(question, &good); len(problems) > 0 {
		t.Errorf("refused: %q", problems)
	}
	plan := p.planOf(question, good, role.Outcome{})
	if plan.Shape != role.Chain || plan.SubQuestions[0].Needs != nil || !cmp.Equal(plan.SubQuestions[2].Needs, []int{1}) {
		t.Errorf("plan %+v", plan)
	}
	bad := planReply{Parts: []partReply{{Text: ""}, {Text: "the director of Jump"}, {Text: "Who is the spouse of #2?"}, {Text: "Where was #9 born?"}}}
	if len(p.check(question, &bad)) == 0 {
		t.Error("a place for no sub-question is let through")
	}
	notes := p.mend("Where was the spouse of the director of Jump born?", &bad)
	want := []partReply{{Text: "the director of Jump"}, {Text: "Who is the spouse of #1?"}}
	if diff := cmp.Diff(want, bad.Parts); diff != "" || len(notes) != 2 {
		t.Errorf("mended: %s; notes %q", diff, notes)
	}
}
