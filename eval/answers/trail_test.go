package answers

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/engine"
)

// TestInOrder checks that concurrent steps are sorted the same way, whichever ended first.
func TestInOrder(t *testing.T) {
	want := []string{"plan", "sub[0]/round[0]/search", "sub[0]/round[1]/search", "sub[2]/round[0]/search", "sub[10]/round[0]/search", "finish[0]/generate"}
	for _, ended := range [][]string{
		want,
		{"plan", "sub[10]/round[0]/search", "sub[2]/round[0]/search", "sub[0]/round[0]/search", "sub[0]/round[1]/search", "finish[0]/generate"},
		{"plan", "sub[0]/round[0]/search", "sub[10]/round[0]/search", "sub[0]/round[1]/search", "sub[2]/round[0]/search", "finish[0]/generate"},
	} {
		var steps []engine.Step
		for i, path := range ended {
			steps = append(steps, engine.Step{Ordinal: i, Path: path})
		}
		var got []string
		for _, s := range inOrder(steps) {
			got = append(got, s.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", ended, diff)
		}
	}
}
