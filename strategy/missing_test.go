package strategy

import (
	"slices"
	"testing"

	"github.com/assay-rag/assay/role"
)

// What two findings lack is said once.
func TestMissingOnce(t *testing.T) {
	lacks := finding{question: "Who?", grade: role.Grade{Missing: []string{"Kestrel", "something"}}}
	a := notFound("multihop", "Who?", []finding{lacks, lacks, {question: "something"}})
	if want := []string{"Kestrel", "something"}; !slices.Equal(a.Missing, want) {
		t.Errorf("missing %q, want %q", a.Missing, want)
	}
}
