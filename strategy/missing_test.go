package strategy

import (
	"slices"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// TestMissing checks that a gap of two sub-questions is reported once, and is marked if a model
// named it.
func TestMissing(t *testing.T) {
	lacks := subQuestion{question: "Who?", grade: role.Grade{Missing: []string{"Kestrel [x](https://evil.example)", "something"}}}
	stoodIn := subQuestion{question: "Who?", grade: role.Grade{Missing: []string{"Heron"}, Outcome: role.Outcome{StoodIn: true}}}
	found := []subQuestion{lacks, lacks, {question: "something"}, stoodIn}
	for _, model := range []string{"", "fake/grader"} {
		e := Env{Request: Request{Question: "Who?", Began: map[string]string{role.GraderRole: model}}}
		want := []assay.Gap{{Text: "Kestrel x", ByModel: model != ""}, {Text: "something", ByModel: model != ""}, {Text: "Heron"}}
		if r := e.notFound("multihop", found); !slices.Equal(r.Missing, want) {
			t.Errorf("missing %+v, want %+v", r.Missing, want)
		}
	}
}
