package strategy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/retrieve"
)

func TestNotes(t *testing.T) {
	a, b := assay.Note{Kind: assay.NoteSearch, Text: "a"}, assay.Note{Kind: assay.NoteSearch, Text: "b"}
	covered := func(coverage float64) assay.Note {
		return assay.Note{Kind: assay.NoteCoverage, Text: retrieve.CoverageNote(assay.IndexVersion{Model: "m", Coverage: coverage})}
	}
	results := func(coverage float64, notes ...assay.Note) assay.Results {
		v := assay.IndexVersion{Model: "m", Coverage: coverage}
		if n := covered(coverage); n.Text != "" {
			notes = append(notes, n)
		}
		return assay.Results{Index: v, Notes: notes}
	}
	tests := []struct {
		name string
		of   []assay.Results
		want []assay.Note
		at   float64 // coverage
	}{
		{"nothing", nil, nil, 0},
		{"all covered", []assay.Results{results(1), results(1)}, nil, 1},
		{"one text twice", []assay.Results{results(1, a), results(1, b, a)}, []assay.Note{a, b}, 1},
		{"the least coverage", []assay.Results{results(0.25), results(0.1, a), results(0.5)},
			[]assay.Note{a, covered(0.1)}, 0.1},
		{"covered in the end", []assay.Results{results(0.9), results(1)},
			[]assay.Note{covered(0.9)}, 0.9},
		{"text alone says nothing of vectors", []assay.Results{{Notes: []assay.Note{a}}}, []assay.Note{a}, 0},
	}
	for _, test := range tests {
		var one noteList
		for _, r := range test.of {
			one.add(r)
		}
		var joined noteList
		for _, r := range test.of {
			var n noteList
			n.add(r)
			joined.join(n)
		}
		for how, n := range map[string]noteList{"added": one, "joined": joined} {
			if diff := cmp.Diff(test.want, n.list()); diff != "" || n.index.Coverage != test.at {
				t.Errorf("%s, %s: coverage %v (-want +got):\n%s", test.name, how, n.index.Coverage, diff)
			}
		}
	}
}
