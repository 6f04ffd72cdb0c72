package local

import "testing"

// An "it" that stands for nothing needs no sentence before it.
func TestNamers(t *testing.T) {
	for text, want := range map[string]int{
		"It is possible to open the store twice.": 0,
		"It takes a minute to open the store.":    0,
		"It opens the store.":                     1,
		"Its door is red.":                        1,
		"The store is open.":                      0,
		"Items are sorted.":                       0,
	} {
		all := []candidate{{unit: unit{text: "The store is new."}, at: 4}, {unit: unit{text: text}, at: 5}}
		if got := namers(all, 1); len(got) != want {
			t.Errorf("%q: %d sentences come along, want %d", text, len(got), want)
		}
	}
}
