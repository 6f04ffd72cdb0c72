package ground_test

import (
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

// One half of a sentence says what it says, unless the other takes it back.
func TestHalfOfASentence(t *testing.T) {
	tests := []struct {
		source, claim string
		want          bool
	}{
		{"The warranty lasts two years and does not cover damage by water.", "The warranty lasts two years.", true},
		{"The warranty lasts two years and does not cover damage by water.", "The warranty does not cover damage by water.", true},
		{"Trains are booked in second class, and flights are not booked in first class.", "Trains are booked in second class.", true},
		{"The warranty lasts two years and does not cover damage by water.", "The warranty lasts three years.", false},
		{"The warranty lasts two years and does not cover damage by water.", "The warranty covers damage by water.", false},
		{"The warranty lasts two years and does not cover damage by water.", "The warranty lasts two years and covers damage by water.", false},
		{"The warranty lasts two years but does not hold for batteries.", "The warranty lasts two years.", false},
		{"If the door is open, the alarm is off and the light is on.", "The light is on.", false},
		{"The manual says that the pump is loud and the valve is not hot.", "The manual says that the pump is loud.", false},
	}
	for _, tt := range tests {
		cited := []ground.Passage{{Quote: tt.source, Context: tt.source}}
		j, err := ground.Learned{}.Verify(t.Context(), tt.claim, cited)
		strict := j.Verdict == assay.Supported && j.Score >= 0.99
		if err != nil || strict != tt.want {
			t.Errorf("%q of %q is %s at %.2f (%s), %v; want surely supported %v", tt.claim, tt.source, j.Verdict, j.Score, j.Reason, err, tt.want)
		}
		if tt.want && (len(j.Spans) != 1 || j.Spans[0].End != len(tt.source)) {
			t.Errorf("%q cites %v, want the sentence", tt.claim, j.Spans)
		}
	}
}
