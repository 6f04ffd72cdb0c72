package answers

import (
	"testing"

	"github.com/assay-rag/assay/eval/testset"
)

// TestFindQuote checks that a quote is found at its span, nearest to it, or with other white space.
func TestFindQuote(t *testing.T) {
	const text = "One two. Three four.\nOne two. Five\n  six."
	tests := []struct {
		gold       testset.Gold
		start, end int
		found      bool
	}{
		{testset.Gold{Start: 0, End: 8, Quote: "One two."}, 0, 8, true},
		{testset.Gold{Start: 21, End: 29, Quote: "One two."}, 21, 29, true},
		{testset.Gold{Start: 19, End: 27, Quote: "One two."}, 21, 29, true},
		{testset.Gold{Quote: "One two."}, 0, 8, true},
		{testset.Gold{Quote: "Five six."}, 30, len(text), true},
		{testset.Gold{Quote: "two.\nThree"}, 4, 14, true},
		{testset.Gold{Quote: "Fivesix."}, 0, 0, false},
		{testset.Gold{Quote: "Seven"}, 0, 0, false},
		{testset.Gold{Quote: "  "}, 0, 0, false},
		{testset.Gold{Start: 90, End: 99, Quote: "Three"}, 9, 14, true},
	}
	for _, tt := range tests {
		start, end, found := findQuote(text, tt.gold)
		if start != tt.start || end != tt.end || found != tt.found {
			t.Errorf("findQuote(%+v) = %d, %d, %v, want %d, %d, %v", tt.gold, start, end, found, tt.start, tt.end, tt.found)
		}
	}
}

// TestQuestionType checks that the first words of a question determine its type.
func TestQuestionType(t *testing.T) {
	for question, want := range map[string]string{
		"How many points were scored?": "number", "Who scored?": "person", "Whose ball is it?": "person", "When was it?": "date", "Where?": "place",
		"Why not?": "reason", "How does it work?": "way", "Is it so?": "yes or no", "What's that?": "thing", "whichever comes": "other",
		"In what city was it?": "place", "Wie viele sind es?": "number", "restart the server": "other", "": "other",
	} {
		if got := questionType(question); got != want {
			t.Errorf("questionType(%q) = %q, want %q", question, got, want)
		}
	}
}
