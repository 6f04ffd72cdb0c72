package strategy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/retrieve"
)

func TestNotes(t *testing.T) {
	results := func(coverage float64, notes ...string) assay.Results {
		v := assay.IndexVersion{Model: "m", Coverage: coverage}
		if covered := retrieve.CoverageNote(v); covered != "" {
			notes = append(notes, covered)
		}
		return assay.Results{Index: v, Notes: notes}
	}
	tests := []struct {
		name string
		of   []assay.Results
		want []string
		at   float64 // coverage
	}{
		{"nothing", nil, nil, 0},
		{"all covered", []assay.Results{results(1), results(1)}, nil, 1},
		{"one text twice", []assay.Results{results(1, "a"), results(1, "b", "a")}, []string{"a", "b"}, 1},
		{"the least coverage", []assay.Results{results(0.25), results(0.1, "a"), results(0.5)},
			[]string{"a", retrieve.CoverageNote(assay.IndexVersion{Model: "m", Coverage: 0.1})}, 0.1},
		{"covered in the end", []assay.Results{results(0.9), results(1)},
			[]string{retrieve.CoverageNote(assay.IndexVersion{Model: "m", Coverage: 0.9})}, 0.9},
		{"text alone says nothing of vectors", []assay.Results{{Notes: []string{"a"}}}, []string{"a"}, 0},
	}
	for _, test := range tests {
		var one notes
		for _, r := range test.of {
			one.add(r)
		}
		var joined notes
		for _, r := range test.of {
			var n notes
			n.add(r)
			joined.join(n)
		}
		for how, n := range map[string]notes{"added": one, "joined": joined} {
			if diff := cmp.Diff(test.want, n.list()); diff != "" || n.index.Coverage != test.at {
				t.Errorf("%s, %s: coverage %v (-want +got):\n%s", test.name, how, n.index.Coverage, diff)
			}
		}
	}
}
