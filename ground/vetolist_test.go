package ground_test

import (
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

// TestListedAgainst: an item of a list says what the line that announces it makes of it.
func TestListedAgainst(t *testing.T) {
	const (
		never  = "Keep your account safe.\n\nNever do this:\n\n- share your password with colleagues\n- leave the server room open at night\n\nCall the help desk when in doubt."
		always = "Keep your account safe.\n\nDo this every day:\n\n- lock your screen when you leave\n- close the server room at night\n"
		items  = "- damage by water\n- lost parts\n"
	)
	for _, tt := range []struct {
		claim, text string
		heading     []string
		want        bool
	}{
		{"Share your password with colleagues.", never, nil, false},
		{"share your password with colleagues", never, nil, false},
		{"Leave the server room open at night", never, nil, false},
		{"Never share your password with colleagues.", never, nil, true},
		{"Call the help desk when in doubt.", never, nil, true},
		{"Lock your screen when you leave", always, nil, true},
		{"damage by water", items, []string{"Warranty", "Not covered"}, false},
		{"damage by water", items, []string{"Warranty", "Covered"}, true},
	} {
		other := ground.Passage{Quote: "The kitchen is on the second floor.", Context: "The kitchen is on the second floor."}
		p := ground.Passage{Quote: tt.text, Context: tt.text, Heading: tt.heading}
		for _, cited := range [][]ground.Passage{{p}, {other, p}} {
			j, err := ground.Learned{}.Verify(t.Context(), tt.claim, cited)
			if err != nil {
				t.Fatal(err)
			}
			if (j.Verdict == assay.Supported) != tt.want {
				t.Errorf("%q of %d passages is %s, %.2f (%s)", tt.claim, len(cited), j.Verdict, j.Score, j.Reason)
			}
			for _, s := range j.Spans {
				if tt.want && cited[s.Passage].Context != tt.text {
					t.Errorf("%q rests on %q", tt.claim, cited[s.Passage].Context[s.Start:s.End])
				}
			}
		}
	}
}
