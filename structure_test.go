package assay

import "testing"

func TestProvenanceOf(t *testing.T) {
	s := Structure{Provenance: []Provenance{
		{Start: 10, End: 20, Kind: ProvenanceRecognized, Confidence: 0.9},
		{Start: 20, End: 30, Kind: ProvenanceRecognized, Confidence: 0.5},
		{Start: 40, End: 50, Kind: ProvenanceDescribed, Model: "m"},
		{Start: 50, End: 60, Kind: ProvenanceRecognized, Confidence: 0.7},
	}}
	for _, test := range []struct {
		start, end int
		want       Provenance
	}{
		{0, 10, Provenance{}},
		{0, 11, Provenance{Kind: ProvenanceRecognized, Confidence: 0.9}},
		{19, 20, Provenance{Kind: ProvenanceRecognized, Confidence: 0.9}},
		{15, 35, Provenance{Kind: ProvenanceRecognized, Confidence: 0.5}},
		{30, 40, Provenance{}},
		{25, 70, Provenance{Kind: ProvenanceDescribed, Model: "m"}},
		{55, 70, Provenance{Kind: ProvenanceRecognized, Confidence: 0.7}},
		{60, 70, Provenance{}},
	} {
		test.want.Start, test.want.End = test.start, test.end
		if got := s.ProvenanceOf(test.start, test.end); got != test.want {
			t.Errorf("[%d, %d): %+v, want %+v", test.start, test.end, got, test.want)
		}
	}
}
