package ground

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPartsOf(t *testing.T) {
	for _, tt := range []struct {
		claim string
		want  []string
	}{
		{"The tenant pays the rent.", []string{"The tenant pays the rent."}},
		{"The fee is 5 €. The term is a year.", []string{"The fee is 5 €.", "The term is a year."}},
		{"The Pro plan is new. It costs 5 €.", []string{"The Pro plan is new. It costs 5 €."}},
		{"How long is it? Three months.", []string{"How long is it? Three months."}},
		{"The office is open, and the canteen is closed.", []string{"The office is open", "the canteen is closed."}},
		{"The plan is new and has a limit.", []string{"The plan is new", "The plan has a limit."}},
		{"Keys are free; cards must be paid.", []string{"Keys are free", "cards must be paid."}},
		{"Dogs are allowed but cats are not.", []string{"Dogs are allowed", "cats are not."}},
		{"If it rains, the match is off and the bar is closed.", []string{"If it rains, the match is off and the bar is closed."}},
		{"Apples, pears and plums are sold.", []string{"Apples, pears and plums are sold."}},
		{"Guests who stay are charged and are served.", []string{"Guests who stay are charged and are served."}},
		{"x = {a; b is c}", []string{"x = {a; b is c}"}},
	} {
		if diff := cmp.Diff(tt.want, partsOf(tt.claim)); diff != "" {
			t.Errorf("%q: %s", tt.claim, diff)
		}
	}
}

func TestWindows(t *testing.T) {
	p := Passage{Heading: []string{"Prices"}, Context: "Ducks swim. Geese fly. You need:\n- a key,\n- a card.\n\nPlan | Price\nPro | 5 €\nTeam | 9 €"}
	sources := sourcesOf([]Passage{p})
	for _, tt := range []struct{ claim, want string }{
		{"Geese can fly.", "Geese fly."},
		{"A card is needed.", "You need:\n- a card."},
		{"The Team plan has the price 9 €.", "Plan | Price\nTeam | 9 €"},
	} {
		windows := windowsOf(tt.claim, sources, perSize)
		if len(windows) != perSize*len(windowSizes) {
			t.Errorf("%q: %d windows", tt.claim, len(windows))
		}
		x := windows[0].excerpt(sources[0])
		if x.Text != tt.want || x.Heading != "Prices" {
			t.Errorf("%q: the best window is %+v, want %q", tt.claim, x, tt.want)
		}
	}
	if windows := windowsOf("Anything.", sourcesOf([]Passage{{}}), perSize); len(windows) != 0 {
		t.Errorf("windows of nothing: %+v", windows)
	}
}
